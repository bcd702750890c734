"""Errors that a read reports for an earlier line: the program sees that line first, as if it had raised."""

from __future__ import annotations

import copy
from types import CodeType, TracebackType
from typing import Final

from teletape.core.program.call_site import CallSite, Where, line_of
from teletape_engine.errors import TeletapeError

_RECORDED: Final = "recorded at "
_NO_COLUMNS: Final = 0x80 | 13 << 3  #: An entry of a line table without columns, of one unit of bytecode (PEP 626).
_UNITS: Final = 8  #: Units of bytecode that an entry has at most.


def error_at(error: TeletapeError, recorded: Where, read: CallSite) -> Exception:
    """Returns the exception that a read raises for a command that failed: always a new one.

    The session keeps the command's error for values that were never computed. If it were raised, it would hold the
    frames of the program, and with them tensors, and the session.

    Args:
        error: The command's; its message says where it was recorded.
        recorded: The line that recorded it.
        read: The line that reads. If it is another one, the error is chained to an error of the recorded line.
    """
    if recorded is None or (recorded[0], line_of(recorded)) == (read[0], line_of(read)):
        return copy.copy(error).surfaced()
    first, _, place = error.message.rpartition(_RECORDED)
    late = copy.copy(error)
    late.message = f"{first}{_RECORDED}an earlier line than this read: {place}"
    shown = late.surfaced()
    cause = copy.copy(error).surfaced()
    cause.__traceback__ = _traceback_at(recorded)
    shown.__cause__ = cause
    return shown


def _traceback_at(where: CallSite) -> TracebackType | None:
    """Returns the traceback of an exception that a line of the program would have raised."""
    code, line = where[0], line_of(where)
    stub = _with_line(compile("raise StopIteration", code.co_filename, "exec"), line)
    try:
        exec(stub.replace(co_name=code.co_name, co_qualname=code.co_qualname), {})  # noqa: S102  # for its frame alone
    except StopIteration as error:
        trace = error.__traceback__
        assert trace is not None
        return trace.tb_next
    return None  # pragma: no cover - it always raises


def _with_line(code: CodeType, line: int) -> CodeType:
    """Returns code all of which is on one line, and of which no columns are known."""
    units = len(code.co_code) // 2
    lengths = [min(_UNITS, units - first) for first in range(0, units, _UNITS)]
    table = b"".join(bytes((_NO_COLUMNS | length - 1, 0)) for length in lengths)
    return code.replace(co_firstlineno=line, co_linetable=table)
