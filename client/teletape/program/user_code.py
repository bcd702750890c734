"""The program's lines that lead to an error in a function that is traced, as TensorFlow's messages list them."""

from __future__ import annotations

import linecache
import os
import sys
from types import FrameType
from typing import Final

from teletape.program.call_site import PACKAGES, is_own, line_of
from teletape.program.cells import cell_of

_TRACING: Final = os.path.join(PACKAGES[0], "functions", "trace.py")  #: Its frames run the functions of the program.


def user_code() -> str:
    """Returns the lines of the traced functions that lead to where this is called, the outermost first.

    A line as of TensorFlow's `in user code:`, or "" if no function is traced.
    """
    lines: list[str] = []
    traced: list[str] = []  # those inside the outermost function
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file == _TRACING:
            traced = lines[:]
        elif not is_own(file):
            lines.append(_entry(frame, file))
        frame = frame.f_back
    return "".join(["\n\nin user code:\n", *("\n" + entry for entry in reversed(traced)), "\n"]) if traced else ""


def _entry(frame: FrameType, file: str) -> str:
    line, cell = line_of((frame.f_code, frame.f_lasti)), cell_of(file)
    place = f'File "{file}", line {line}, in {frame.f_code.co_name}' if cell is None else f"{cell}, line {line}"
    return f"    {place}  *\n        {linecache.getline(file, line).strip()}"
