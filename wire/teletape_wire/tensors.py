"""The tensors of a frame: their table in the header, and their bytes after the header at multiples of 64.

Row-major and little-endian, in the table's order, each at the first multiple of 64 after the one before. The lengths
determine every offset, so that a table with another offset is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from teletape_engine.spec import DTYPES
from teletape_wire.checksum import Buffer as Buffer
from teletape_wire.checksum import crc32
from teletape_wire.errors import CorruptFrameError, WireError

Array: TypeAlias = np.ndarray[Any, Any]

ALIGNMENT: Final = 64
MAX_DIMS: Final = 32
_JOINED: Final = 16 * 1024  # shorter tensors are joined: a write for each would cost more than the copy
_MAX_BYTES: Final = 1 << 62  # NumPy counts bytes in 63 bits, also if an axis has the length 0

if sys.byteorder != "little":
    raise ImportError("Teletape's frames are read and written in place, which needs a little-endian machine")

NAMES: Final = {dtype: name for name, dtype in DTYPES.items()}


def aligned(offset: int) -> int:
    """The first multiple of 64 from `offset` on."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def raw(array: Array) -> memoryview:
    """The array's elements as bytes, row-major and little-endian; a view if the array is laid out so already.

    Raises:
        WireError: Tensors cannot have the array's dtype.
    """
    dtype = array.dtype
    if dtype not in NAMES:
        native = dtype.newbyteorder("=")
        if native not in NAMES:
            raise WireError(f"dtype {dtype} cannot be sent; the dtypes are {', '.join(DTYPES)}")
        array = array.astype(native)
    # Through uint8: bfloat16 has no buffer format, and memoryview.cast takes no empty array.
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


class Table:
    """The tensors of a frame that is being written, in the order in which commands name them."""

    def __init__(self) -> None:
        self._arrays: list[Array] = []

    def add(self, array: Array) -> int:
        """Adds a tensor, and returns its index."""
        self._arrays.append(array)
        return len(self._arrays) - 1

    def layout(self) -> tuple[list[tuple[str, tuple[int, ...], int, int]], list[memoryview]]:
        """(dtype, shape, length, CRC32) of each tensor, and its bytes."""
        views = [raw(array) for array in self._arrays]
        rows = [
            (_name(array.dtype), array.shape, view.nbytes, crc32(view))
            for array, view in zip(self._arrays, views, strict=True)
        ]
        return rows, views


def _name(dtype: np.dtype[Any]) -> str:
    name = NAMES.get(dtype)
    return NAMES[dtype.newbyteorder("=")] if name is None else name


def padded(views: Sequence[memoryview]) -> list[Buffer]:
    """The bytes of the tensors with the gaps between them, small neighbours joined."""
    buffers: list[Buffer] = []
    small: list[Buffer] = []
    for position, view in enumerate(views):
        gap = bytes(aligned(view.nbytes) - view.nbytes) if position + 1 < len(views) else b""
        if view.nbytes < _JOINED:
            small += (view, gap)
        else:
            if small:
                buffers.append(b"".join(small))
            buffers.append(view)
            small = [gap]
    joined = b"".join(small)
    return [*buffers, joined] if joined else buffers


def read(frame: memoryview, rows: Sequence[Any], header_end: int, *, copy_below: int) -> list[Array]:
    """The tensors that a header's table declares, read only: views of the frame, or copies.

    Args:
        frame: The whole frame.
        rows: [dtype, shape, offset, length, CRC32] each, unchecked; offsets count from the tensors' section.
        header_end: Where the header ends; the section begins at the next multiple of 64.
        copy_below: Tensors with fewer bytes are copied.

    Raises:
        WireError: The table and the bytes disagree.
    """
    section = aligned(header_end)
    body = frame[section:] if rows else frame[header_end:]
    position, arrays = 0, []
    for index, row in enumerate(rows):
        fault = _fault(row)
        if fault is not None:
            raise WireError(f"{_where(index, rows)}: {fault}")
        name, shape, offset, length, crc = row
        dtype = DTYPES[name]
        expected = aligned(position)
        if offset != expected:
            raise WireError(
                f"{_where(index, rows)}: declared at offset {offset} of the tensors, expected {expected}: they follow "
                f"each other, each at the next multiple of {ALIGNMENT}"
            )
        position = offset + length
        if position > body.nbytes:
            raise WireError(
                f"{_where(index, rows)}: ends at byte {position} of the tensors, but the frame holds {body.nbytes} "
                "bytes of them"
            )
        part = body[offset:position]
        checksum = crc32(part)
        if checksum != crc:
            raise CorruptFrameError(
                f"{_where(index, rows)}: CRC32 is {checksum:#010x}, declared {crc:#010x}: send the frame again"
            )
        flat = np.frombuffer(part, np.uint8)
        if name == "bool" and length and flat.max() > 1:
            raise WireError(f"{_where(index, rows)}: dtype bool has only the bytes 0 and 1, found {flat.max()}")
        array = (flat.copy() if length < copy_below else flat).view(dtype).reshape(shape)
        array.flags.writeable = False
        arrays.append(array)
    if position != body.nbytes:
        raise WireError(f"after the header are {body.nbytes} bytes, the declared tensors end at byte {position}")
    return arrays


def _where(index: int, rows: Sequence[Any]) -> str:
    return f"tensor {index} of {len(rows)}"


def _fault(row: Any) -> str | None:
    """Returns what is wrong with a row of a table by itself; None: nothing is."""
    if row.__class__ is not tuple or len(row) != 5:
        return f"its row must be [dtype, shape, offset, length, crc32], found {_short(row)}"
    name, shape, offset, length, crc = row
    dtype = DTYPES.get(name) if name.__class__ is str else None
    if dtype is None:
        return f"unknown dtype {_short(name)}; the dtypes are {', '.join(DTYPES)}"
    needed = bound = dtype.itemsize  # an axis of length 0 counts as 1 in the bound
    if shape.__class__ is tuple:
        if len(shape) > MAX_DIMS:
            return f"{len(shape)} axes, the limit is {MAX_DIMS}"
        for n in shape:
            if n.__class__ is not int or n < 0:
                break
            needed *= n
            bound *= n or 1
        else:
            if bound >= _MAX_BYTES:
                return f"no array of {name} can have the shape {list(shape)}"
            for number in (offset, length, crc):
                if number.__class__ is not int or number < 0:
                    return f"offset, length and CRC32 must be integers from 0 up, found {_short((offset, length, crc))}"
            if length != needed:
                return f"{name}{list(shape)} takes {needed} bytes, declared are {length}"
            return None
    return f"the shape must be a list of lengths, none negative; found {_short(shape)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
