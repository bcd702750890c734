"""The answer to a name that does not exist: the nearest names, and the page that lists all.

It serves attributes of objects, as `tape.gradiant`; imports, as `from teletape.nn import reluu`; names of Keras.
`publishing.py` answers for the attributes of public modules.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any, Final

from teletape.names.modules import Answer
from teletape.program.tracebacks import reports
from teletape_engine.suggestions import nearest

PAGE: Final = "docs/compatibility.md has every name"
_FEW: Final = 24  #: Names of an object that are listed if none is near.
#: The similarity of names, from 0 to 1, from which on one is suggested for the other.
_ALIKE_IN_MODULE: Final = 0.65
_ALIKE_ELSEWHERE: Final = 0.75


def answer(missing: str, near: Sequence[str]) -> str:
    """Returns the sentence that a name is missing, with the nearest names."""
    if not near:
        return missing
    return f"{missing}; the nearest {'names are' if near[1:] else 'name is'} {', '.join(near)}"


# ------------------------------------------------------------------------------------------------ attributes of objects
class MissingAttribute:
    """The text about an attribute that an object lacks, made when it is read, because `hasattr` does not read it.

    Args:
        owner: The object's class.
        name: The attribute.
        shown: The class's name for people; None: its own.
    """

    def __init__(self, owner: type, name: str, shown: str | None = None) -> None:
        self._owner, self._name, self._shown = owner, name, shown or owner.__name__

    def __str__(self) -> str:
        public = [name for name in dir(self._owner) if not name.startswith("_")]
        near = nearest(self._name, public)
        text = answer(f"{self._shown!r} object has no attribute {self._name!r}", near)
        if not near and len(public) <= _FEW:
            text += f"; it has {', '.join(public)}"
        return f"{text}. {PAGE}"

    __repr__ = __str__


@reports
def _missing(self: Any, name: str) -> Any:
    """The `__getattr__` of public classes: Python calls it for missing attributes.

    Raises:
        AttributeError: Always. If a property raised one, it is raised again.
    """
    if name.startswith("_"):
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
    if hasattr(type(self), name):
        return object.__getattribute__(self, name)
    raise AttributeError(MissingAttribute(type(self), name), name=name, obj=self)


def answer_for_objects(public: type) -> None:
    """Makes the objects of a public class name the nearest attributes, unless the class has a `__getattr__`."""
    if not hasattr(public, "__getattr__"):
        setattr(public, "__getattr__", _missing)  # noqa: B010  # no attribute to mypy


# ----------------------------------------------------------------------------------------------------- names of modules
def nearest_names(path: str, name: str, known: Iterable[str]) -> list[str]:
    """Returns at most three known names whose last part is equal or similar to `name`, those of the same module first.

    In `tf.compat.v1` it is the name of TensorFlow 2, if there is one.
    """
    path = path.removeprefix("compat.v1").lstrip(".")
    paths: dict[str, list[str]] = {}
    for dotted in known:
        paths.setdefault(dotted.rpartition(".")[2], []).append(dotted)
    own = {last for last, listed in paths.items() if f"{path}.{last}".lstrip(".") in listed}
    matches = [name] if name in paths else difflib.get_close_matches(name, own, cutoff=_ALIKE_IN_MODULE)
    matches = matches or difflib.get_close_matches(name, paths, cutoff=_ALIKE_ELSEWHERE)
    return [min(paths[match], key=lambda dotted: (dotted.rpartition(".")[0] != path, len(dotted))) for match in matches]


def answer_for_keras(module: ModuleType, path: str = "tf.keras") -> None:
    """Makes a public module of Keras, and the modules in it, name the nearest names."""

    def missing(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        near = nearest(name, [known for known in dir(module) if not known.startswith("_")])
        text = answer(f"{path}.{name} is not in Keras", [f"{path}.{known}" for known in near])
        raise AttributeError(f"{text}. {PAGE}", name=name)

    if "__getattr__" in vars(module):
        return
    setattr(module, "__getattr__", Answer(missing))  # noqa: B010  # no attribute to mypy
    for name, inner in list(vars(module).items()):
        if isinstance(inner, ModuleType) and not name.startswith("_"):
            answer_for_keras(inner, f"{path}.{name}")
