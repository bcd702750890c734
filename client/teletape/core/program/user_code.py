"""The program's lines that lead to an error in a function that is traced, as TensorFlow's messages list them."""

from __future__ import annotations

import itertools
import linecache
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Final

from teletape.core.program.call_site import is_own, is_tracing, line_of
from teletape.core.program.cells import cell_of
from teletape_engine.errors import TeletapeError

_HEAD: Final = "in user code:"
#: The text of an exception is then its only argument.
_PLAIN: Final = (BaseException.__str__, object.__str__, NameError.__str__, AttributeError.__str__)


def user_code() -> str:
    """Returns the lines of the traced functions that lead to this call, the outermost first.

    A line as of TensorFlow's `in user code:`, or "" if no function is traced.
    """
    lines: list[str] = []
    traced: list[str] = []  # those inside the outermost function
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if is_tracing(frame.f_code):
            traced = lines[:]
        elif not is_own(file):
            lines.append(_entry(frame, file, line_of((frame.f_code, frame.f_lasti))))
        frame = frame.f_back
    return _listed(traced[::-1])


def add_user_code(error: Exception) -> None:
    """Adds the program's lines in an exception's traceback to its message, unless the message lists lines.

    To be called where the outermost trace is left. A class with a text of its own, as `KeyError`, keeps it.
    """
    engine = isinstance(error, TeletapeError)
    text = error.message if isinstance(error, TeletapeError) else str(error)
    arguments = tuple(map(str, error.args)) if isinstance(error, AttributeError) else error.args  # see `names.missing`
    if _HEAD in text or not (engine or (arguments in ((), (text,)) and type(error).__str__ in _PLAIN)):
        return
    entries = []
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not is_own(file):
            entries.append(_entry(trace.tb_frame, file, trace.tb_lineno))
        trace = trace.tb_next
    text += _listed(entries)
    if isinstance(error, TeletapeError):
        error.message = text
    else:
        error.args = (text,)


def _listed(entries: Sequence[str]) -> str:
    entries = [entry for entry, _ in itertools.groupby(entries)]  # a converted lambda has two frames
    return "".join([f"\n\n{_HEAD}\n", *("\n" + entry for entry in entries), "\n"]) if entries else ""


def _entry(frame: FrameType, file: str, line: int) -> str:
    cell = cell_of(file)
    place = f'File "{file}", line {line}, in {frame.f_code.co_name}' if cell is None else f"{cell}, line {line}"
    return f"    {place}  *\n        {linecache.getline(file, line).strip()}"
