"""The records of `rows.c`, in the same layout, and rows as they are written into tables."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np

from teletape_engine.plans.ir.instructions import TakeGeometry
from teletape_engine.plans.ir.rows import DEPTH, LoopRow

VERSION: Final = 2  #: Of the records below, in `rows.c` too.
ROW: Final = np.dtype(
    [
        ("function", "u8"),
        ("context", "u8"),
        ("auxiliary", "u8"),
        ("data", "u8", 4),
        ("n", "i8"),
        ("strides", "i8", 4),
    ]
)
STAGE: Final = np.dtype([("object", "i8"), ("is_scalar", "i8"), ("size", "i8"), ("target", "u8")])
PATCH: Final = np.dtype([("object", "i8"), ("offset", "i8"), ("alignment", "i8"), ("target", "u8")])
PROGRAM: Final = np.dtype(
    [
        ("rows", "u8"),
        ("count", "i8"),
        ("stage_count", "i8"),
        ("patch_count", "i8"),
        ("head", "i8"),
        ("stages", "u8"),
        ("patches", "u8"),
    ]
)
MOVE: Final = np.dtype([("target", "u8"), ("step", "i8")])
TURN: Final = np.dtype(
    [
        ("condition", "u8"),
        ("body", "u8"),
        ("condition_count", "i8"),
        ("body_count", "i8"),
        ("flag", "u8"),
        ("flag_size", "i8"),
        ("move_count", "i8"),
        ("moves", "u8"),
    ]
)
PART: Final = np.dtype([("row", "i8"), ("operand", "i8"), ("base", "i8"), ("size", "i8")])
FEED: Final = np.dtype(
    [
        ("function", "u8"),
        ("context", "u8"),
        ("auxiliary", "u8"),
        ("buffer", "u8"),
        ("size", "i8"),
        ("filled", "i8"),
        ("leaf", "i8"),
        ("leaves", "u8"),
    ]
)
WORKER: Final = np.dtype([("rows", "u8"), ("feeds", "u8")])
STRETCH: Final = np.dtype([("start", "i8"), ("stop", "i8"), ("leaf", "i8")])
GROUP: Final = np.dtype(
    [
        ("row_count", "i8"),
        ("part_count", "i8"),
        ("most", "i8"),
        ("feed_count", "i8"),
        ("worker_count", "i8"),
        ("parts", "u8"),
        ("bases", "u8"),
        ("workers", "u8"),
        ("stretches", "u8"),
    ]
)
HEAD: Final = object.__basicsize__  #: Bytes of every Python object, before its own.
POINTER: Final = ctypes.c_void_p
_LOOP: Final = [(name, "u8") for name in ("function", "context", "auxiliary")]


#: The contexts of functions of `rows.c`, by their names there.
CONTEXTS: Final = {
    "nest_t": np.dtype([*_LOOP, ("depth", "i8"), ("shape", "i8", DEPTH), ("strides", "i8", (DEPTH, 4))]),
    "product_t": np.dtype([*_LOOP, ("lengths", "i8", 4), ("strides", "i8", 9)]),
    "take_t": np.dtype([(name, "i8") for name in (*TakeGeometry._fields, "index_size")]),
}


class Info(ctypes.Structure):
    """What NumPy says of one of its loops."""

    _fields_ = (
        ("loop", POINTER),
        ("context", POINTER),
        ("auxiliary", POINTER),
        ("needs_python", ctypes.c_ubyte),
        ("no_float_errors", ctypes.c_ubyte),
    )


_NONE: Final = (0, 0, 0, 0)


def words(row: LoopRow, data: list[int]) -> tuple[int, ...]:
    """A row as it lies in a table: its fields are as wide as an integer each."""
    head = row.function, row.context, row.auxiliary, *data, *_NONE[len(data) :]
    return (*head, row.n, *row.strides, *_NONE[len(row.strides) :])


def table_of(rows: list[tuple[int, ...]]) -> Any:
    """A table of rows."""
    return np.array(rows, np.int64).reshape(-1).view(ROW)


def fill(table: Any, number: int, row: LoopRow, data: list[int]) -> None:
    """Writes one row into a table."""
    table[number : number + 1] = table_of([words(row, data)])
