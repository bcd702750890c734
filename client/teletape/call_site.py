"""Where in the program something was recorded: noted as cheaply as can be, turned into a line only when it is told."""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType
from typing import Any, Final, TypeAlias

import teletape_engine

#: A code object of the program and the instruction in it; None: nobody may know (TELETAPE_WHERE=0).
Where: TypeAlias = tuple[CodeType, int] | None

_PACKAGES: Final = tuple(
    os.path.dirname(os.path.abspath(file)) + os.sep for file in (os.path.dirname(__file__), teletape_engine.__file__)
)


class _Files(dict[str, bool]):
    """Whether a source file is Teletape's own, found out once a file."""

    def __missing__(self, name: str) -> bool:
        found = self[name] = name.startswith(_PACKAGES)
        return found


_ours: Final = _Files()


def told() -> bool:
    """Whether lines of the program are noted at all: TELETAPE_WHERE=0 says no."""
    return os.environ.get("TELETAPE_WHERE", "1") != "0"


def line_of(frame: FrameType) -> tuple[CodeType, int]:
    """The program's own code at or around a frame: the nearest outside Teletape."""
    code = frame.f_code
    while _ours[code.co_filename]:
        outer = frame.f_back
        if outer is None:
            break
        frame = outer
        code = frame.f_code
    return code, frame.f_lasti


def caller() -> tuple[CodeType, int]:
    """The program's own code that is running."""
    return line_of(sys._getframe(2))


def place(where: Where) -> str:
    """The file and line; relative where the file lies below the working directory."""
    if where is None:
        return "an unknown line (TELETAPE_WHERE=0)"
    code, offset = where
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= offset < end and number is not None:
            line = number
    path = os.path.relpath(code.co_filename) if code.co_filename.startswith(os.getcwd() + os.sep) else code.co_filename
    return f"{path}:{line}, in {code.co_name}"


def placed(where: Any) -> str | None:
    """A noted place as text; texts, as a server gives them, stay. None: not known, or not to be told."""
    return where if where is None or isinstance(where, str) else place(where) if told() else None
