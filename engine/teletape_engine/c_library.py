"""C libraries of the engine: what they export, records that Python and C share, and which library is of this version.

A library exports names that begin with `teletape_` alone. The records are declared once, in Python: `records.h`, beside
the source, is written from them by

    .venv/bin/python -m teletape_engine.plans.run.c.records
"""

from __future__ import annotations

import ctypes
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

PREFIX: Final = "teletape_"
_HEADER: Final = """/* Written from `{source}`, which says what the records are: a test holds that it is the same. */
#include <stdint.h>

typedef intptr_t word;
typedef int (*loop)(void *, char *const *, const word *, const word *, void *);

"""
_NUMBERS: Final = """
/* The number of these records, and a checksum of the C files that the library was built from: Python refuses others. */
word teletape_records(void) {{ return (word){number}u; }}
#ifndef SOURCES
#define SOURCES 0
#endif
word teletape_sources(void) {{ return (word)SOURCES; }}
"""


class SharedRecords:
    """The records that Python and a C library share: each field is a word or an address, of eight bytes.

    Args:
        source: The file that declares them, for the header.
        fields: For each record, by its name, its fields as C declares them.
        constants: Numbers that Python and C share.

    Attributes:
        dtypes: The layout of each record.
        header: The text of `records.h`.
        number: A checksum of it: a library of other records has another one.
    """

    def __init__(self, source: str, fields: Mapping[str, str], constants: Mapping[str, int] | None = None) -> None:
        self.dtypes = {name: _dtype_of(text) for name, text in fields.items()}
        lines = [f"#define {name} {number}" for name, number in (constants or {}).items()]
        for name, text in fields.items():
            lines.append(f"typedef struct {{ {text} }} {name};")
            size = self.dtypes[name].itemsize
            lines.append(f'_Static_assert(sizeof({name}) == {size}, "{name} has another size than Python expects");')
        body = _HEADER.format(source=source) + "\n".join(lines) + "\n"
        self.number = zlib.crc32(body.encode())
        self.header = body + _NUMBERS.format(number=self.number)


def _dtype_of(fields: str) -> np.dtype[Any]:
    """The layout of a record with these fields."""
    entries: list[Any] = []
    for declaration in fields.split(";")[:-1]:
        kind, declared = re.sub(r"\bconst\b", "", declaration).strip().split(" ", 1)
        for each in declared.split(","):
            (name,) = re.findall(r"\w+(?=$|\[)", each.strip())
            is_address = "*" in each or kind == "loop"
            shape = tuple([int(length) for length in re.findall(r"\[(\d+)\]", each)])
            entries.append((name, "u8" if is_address else "i8", shape))
    return np.dtype(entries)


def load(path: Path, records: SharedRecords) -> ctypes.CDLL:
    """A library, if it is of these records and of the C files in its folder.

    Raises:
        OSError: There is none, or it is of another machine.
        AttributeError: It is of a version without such numbers.
        ValueError: It is of another version.
    """
    library = ctypes.CDLL(str(path))
    for number in (library.teletape_records, library.teletape_sources):
        number.restype = ctypes.c_size_t
    if not is_of_sources(library, path.parent) or library.teletape_records() != records.number:
        raise ValueError(f"{path.name} is of another version: run hatch_build.py")
    return library


def is_of_sources(library: ctypes.CDLL, folder: Path) -> bool:
    """Whether a library was built from the C files in its folder, if they are there: after an update it may be old."""
    built, sources = library.teletape_sources(), sources_of(folder)
    return not built or not sources or bool(built == sources)


def sources_of(folder: Path) -> int:
    """The checksum of the C files in a folder, as `hatch_build.py` has it; 0: there are none."""
    return zlib.crc32(b"".join([path.read_bytes() for path in sorted(folder.glob("*.[ch]"))]))
