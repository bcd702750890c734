"""The answer to a name that does not exist: the nearest names, and the page that lists all.

Here for attributes of objects, as `tape.gradiant`; `teletape.names` answers for public modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from teletape.core.program.tracebacks import reports
from teletape_engine.suggestions import nearest

PAGE: Final = "docs/compatibility.md has every name"
_FEW: Final = 24  #: Names of an object that are listed if none is near.


def answer(missing: str, near: Sequence[str]) -> str:
    """Returns the sentence that a name is missing, with the nearest names."""
    if not near:
        return missing
    return f"{missing}; the nearest {'names are' if near[1:] else 'name is'} {', '.join(near)}"


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
