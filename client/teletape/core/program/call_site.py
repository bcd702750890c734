"""Call sites: where the user's program called an op. Recorded cheaply, turned into a file and a line only for messages.

`TELETAPE_WHERE=0` records none.
"""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType
from typing import Any, Final, TypeAlias

import teletape_engine
from teletape.core import environment
from teletape.core.program.cells import cell_of

#: A code object of the user's program and the offset of the instruction in it.
CallSite: TypeAlias = tuple[CodeType, int]
#: None: not recorded.
Where: TypeAlias = CallSite | None

#: Where Teletape's own modules are.
PACKAGES: Final = tuple(
    os.path.dirname(os.path.abspath(file)) + os.sep
    for file in (os.path.dirname(os.path.dirname(os.path.abspath(__file__))), teletape_engine.__file__)
)
_TRACING: Final = os.path.join(PACKAGES[0], "core", "functions", "trace.py"), "trace"
_packages: Final = list(PACKAGES)
#: A folder whose modules read values only to show them, in the cell that ends with them.
_SHOWS_VALUES: Final = f"{os.sep}IPython{os.sep}"


class _Files(dict[str, bool]):
    """Whether a source file belongs to Teletape, to a package that runs on it, or to IPython; computed once a file."""

    def __missing__(self, name: str) -> bool:
        own = self[name] = name.startswith(tuple(_packages)) or _SHOWS_VALUES in name
        return own


_own_files: Final = _Files()


class _InstalledFiles(dict[str, bool]):
    """Whether a source file is not the program's: Teletape's or Keras's, the standard library's, or installed."""

    def __missing__(self, name: str) -> bool:
        foreign = self[name] = _own_files[name] or name.startswith(_LIBRARY) or any(map(name.__contains__, _INSTALLED))
        return foreign


#: Where the standard library is, and where installers put packages.
_LIBRARY: Final = (os.path.dirname(os.path.abspath(os.__file__)) + os.sep, "<frozen ")
_INSTALLED: Final = tuple(f"{os.sep}{folder}{os.sep}" for folder in ("site-packages", "dist-packages"))
_foreign_files: Final = _InstalledFiles()


def add_package(folder: str) -> None:
    """Makes the files below a folder no part of the user's program: a call site is then the code that calls them."""
    _packages.append(os.path.join(os.path.abspath(folder), ""))
    _own_files.clear()
    _foreign_files.clear()


def is_own(file: str) -> bool:
    """Whether a source file belongs to Teletape, to a package that runs on it, or to IPython."""
    return _own_files[file]


def call_site_of(frame: FrameType) -> CallSite:
    """Returns the user's code at or around a frame: the nearest frame that is in no installed package.

    Of a program that is installed itself it is the nearest frame outside Teletape and Keras.
    """
    innermost, code = frame, frame.f_code
    while _foreign_files[code.co_filename]:
        outer = frame.f_back
        if outer is None:
            return _installed_call_site(innermost)
        frame = outer
        code = frame.f_code
    return code, frame.f_lasti


def _installed_call_site(innermost: FrameType) -> CallSite:
    """Returns the nearest code outside Teletape and Keras at or around a frame, or else the outermost."""
    frame = innermost
    while _own_files[frame.f_code.co_filename] and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


#: The program's code that has called an op last: a call from the same code needs no search. One for both ways to call.
latest_code: Final[list[CodeType | None]] = [None]


def new_call_site(frame: FrameType) -> CallSite:
    """Returns the call site of an op that is not called by `latest_code`, which becomes the code that calls it."""
    site = call_site_of(frame)
    if site[0] is frame.f_code and not _foreign_files[site[0].co_filename]:
        latest_code[0] = site[0]
    return site


def caller() -> CallSite:
    """Returns the user's code that is running."""
    return call_site_of(sys._getframe(2))


def is_tracing(code: CodeType) -> bool:
    """Whether code is that which calls a function of the program to trace it."""
    return (code.co_filename, code.co_name) == _TRACING


def traced_caller() -> Where:
    """Returns the user's code that is running in the innermost function that is traced, or None."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not is_tracing(frame.f_code):
        if not _foreign_files[frame.f_code.co_filename]:
            return frame.f_code, frame.f_lasti
        frame = frame.f_back
    return None


def line_of(where: CallSite) -> int:
    """Returns the number of the line."""
    code, offset = where
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= offset < end and number is not None:
            line = number
    return line


def call_site_text(where: Where) -> str:
    """Returns the file, line and function; of code in a notebook the cell, as IPython writes it.

    A path is relative if the file is below the working directory.
    """
    if where is None:
        return "an unknown line (TELETAPE_WHERE=0)"
    code, line = where[0], line_of(where)
    cell = cell_of(code.co_filename)
    if cell is not None:
        return f"{cell}, line {line}" + ("" if code.co_name.startswith("<") else f", in {code.co_name}")
    path = os.path.relpath(code.co_filename) if code.co_filename.startswith(os.getcwd() + os.sep) else code.co_filename
    return f"{path}:{line}, in {code.co_name}"


def shown_call_site(where: Any) -> str | None:
    """Returns a call site as text; text, as a server sends it, stays. None: not recorded, or not to be shown."""
    if where is None or isinstance(where, str):
        return where
    return call_site_text(where) if environment.call_sites() else None
