"""The answer to a name that a public module lacks: the nearest names, and the page that lists all.

`publishing.py` answers with it for `tf` and its modules; modules of Keras get it here.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from types import ModuleType
from typing import Any, Final

from teletape.core.program.missing_names import PAGE, answer
from teletape.names.modules import Answer
from teletape_engine.suggestions import nearest

#: The similarity of names, from 0 to 1, from which on one is suggested for the other.
_ALIKE_IN_MODULE: Final = 0.65
_ALIKE_ELSEWHERE: Final = 0.75


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
