"""The records that Python and `rows.c` share, and rows as they are written into tables."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any, Final

import numpy as np

from teletape_engine.arrays import kernels
from teletape_engine.c_library import SharedRecords
from teletape_engine.plans.ir.instructions import TakeGeometry
from teletape_engine.plans.ir.rows import DEPTH, LoopRow

MOST_THREADS: Final = 16  #: That a group of tiles runs on.
_LOOP: Final = "loop function; void *context, *auxiliary;"
RECORDS: Final = SharedRecords(
    "records.py",
    {
        # A loop of NumPy or of a C library over memory.
        "row": f"{_LOOP} char *data[4]; word n, strides[4];",
        # What a run begins with: small arguments, copied into the arena, and addresses of others, written into rows.
        "stage": "word object, is_scalar, size; char *target;",
        "patch": "word object, offset, alignment; char **target;",
        "program": "const row *rows; word count, stage_count, patch_count, head; const stage *stages; "
        "const patch *patches;",
        # A loop of a program: its condition, its body, and addresses that move on from one iteration to the next.
        "move": "char **target; word step;",
        "turn": "const row *condition, *body; word condition_count, body_count; const char *flag; "
        "word flag_size, move_count; const move *moves;",
        # Rows that run tile by tile. A feed is a sum that gets the elements of one tile: they wait in its buffer until
        # there are as many as a leaf of the tree has; the list of leaves ends with 0. Operand 4 of a part is the row's
        # length. A stretch is what one thread takes at a time, and the number of its first leaf; -1: sums go on.
        "feed": f"{_LOOP} char *buffer; word size, filled, leaf; const word *leaves;",
        "part": "word row, operand, base, size;",
        "worker": "row *rows; feed *const *feeds;",
        "stretch": "word start, stop, leaf;",
        "group": "word row_count, part_count, most, feed_count, worker_count; const part *parts; char *const *bases; "
        "const worker *workers; const stretch *stretches;",
        # Contexts of functions of the same name.
        "nest": f"{_LOOP} word depth, shape[{DEPTH}], strides[{DEPTH}][4];",
        "product": f"{_LOOP} word lengths[4], strides[9];",
        "take": f"word {', '.join(TakeGeometry._fields)}, index_size;",
    },
    {"MOST_THREADS": MOST_THREADS, "DEPTH": DEPTH},
)
ROW, STAGE, PATCH, PROGRAM, MOVE, TURN, FEED, PART, WORKER, STRETCH, GROUP = list(RECORDS.dtypes.values())[:11]
HEAD: Final = object.__basicsize__  #: Bytes of every Python object, before its own.
POINTER: Final = ctypes.c_void_p


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


if __name__ == "__main__":  # writes the headers of both libraries
    for module, records in ((__file__, RECORDS), (kernels.__file__, kernels.RECORDS)):
        Path(module).with_name("records.h").write_text(records.header, encoding="utf-8")
