"""Reads a safetensors body in place.

The safetensors package copies every tensor out of bytes, and NumPy has no bfloat16 for it. This reader makes views of
the body, which lies in memory that the session's process shares with the server, and says what is wrong in our words.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from teletape_engine.spec import BOOL
from teletape_wire.errors import MalformedJsonError
from teletape_wire.json_text import parse_json
from teletape_wire.safetensors.errors import MalformedSafetensorsError
from teletape_wire.safetensors.layout import (
    DTYPE_OF,
    LENGTH_WIDTH,
    MAX_HEADER,
    MAX_TENSORS,
    METADATA,
)
from teletape_wire.tensors import MAX_DIMS, Array

_LARGEST: Final = 1 << 62  # NumPy counts bytes in 63 bits, also if an axis has the length 0


class TensorFile(NamedTuple):
    """A body that was read.

    Attributes:
        tensors: By name; read only.
        metadata: Texts by name.
    """

    tensors: dict[str, Array]
    metadata: dict[str, str]


class TensorPlace(NamedTuple):
    """A tensor as the header declares it; the offsets count from the header's end."""

    begin: int
    end: int
    name: str
    dtype: np.dtype[Any]
    shape: list[int]


def read_file(body: memoryview, *, copy_below: int, most: int = MAX_TENSORS) -> TensorFile:
    """Returns the tensors and the metadata of a body.

    Args:
        body: The whole body.
        copy_below: Bytes; smaller tensors are copied. Larger ones are views of the body if they lie at a multiple of
            their element's size in memory, else copies too.
        most: Tensors that it may have.

    Raises:
        MalformedSafetensorsError: The body is not in the safetensors format.
    """
    declared = read_header(body, most=most)
    return TensorFile(tensors_of(declared, body, copy_below=copy_below), declared.metadata)


class Header(NamedTuple):
    """A header that was read.

    Attributes:
        end: Where it ends in the body.
        entries: The tensors that it declares.
        metadata: Texts by name.
    """

    end: int
    entries: list[TensorPlace]
    metadata: dict[str, str]


def read_header(body: memoryview, *, most: int = MAX_TENSORS) -> Header:
    """Returns what the header of a body says, which is checked against the body's length.

    Raises:
        MalformedSafetensorsError: The body is not in the safetensors format.
    """
    header_end = header_length(body)
    header = _header(body[LENGTH_WIDTH:header_end])
    metadata = _metadata(header.pop(METADATA, {}))
    if len(header) > most:
        raise MalformedSafetensorsError(f"the header declares {len(header):,} tensors, the limit is {most:,}")
    entries = [_entry(name, facts) for name, facts in header.items()]
    _check_places(sorted(entries), len(body) - header_end)
    return Header(header_end, entries, metadata)


def tensors_of(header: Header, body: memoryview, *, copy_below: int) -> dict[str, Array]:
    """Returns the tensors of a body with this header, and of the length that was checked with it; see `read_file`.

    Raises:
        MalformedSafetensorsError: A boolean is no boolean.
    """
    data = body[header.end :]
    return {entry.name: _array(entry, data, copy_below) for entry in header.entries}


def header_length(body: memoryview) -> int:
    """Returns where the header of a body ends.

    Raises:
        MalformedSafetensorsError: The body is too short.
    """
    if len(body) < LENGTH_WIDTH:
        raise MalformedSafetensorsError(
            f"a safetensors body begins with {LENGTH_WIDTH} bytes, its header's length; this body has {len(body)}"
        )
    length = int.from_bytes(body[:LENGTH_WIDTH], "little")
    if length > MAX_HEADER:
        raise MalformedSafetensorsError(
            f"the first {LENGTH_WIDTH} bytes declare a header of {length:,} bytes, the limit is {MAX_HEADER:,}: "
            "is this body safetensors?"
        )
    end = LENGTH_WIDTH + length
    if end > len(body):
        raise MalformedSafetensorsError(
            f"the header ends at byte {end:,}, the body at byte {len(body):,}: it is cut, or no safetensors"
        )
    return end


def _header(text: memoryview) -> dict[str, Any]:
    if bytes(text[:1]) != b"{":
        first = f"found the byte 0x{text[0]:02x}" if len(text) else "it is empty"
        raise MalformedSafetensorsError(f"the header is a JSON object, and begins with {{; {first}")
    try:
        header: dict[str, Any] = parse_json(text)
    except MalformedJsonError as error:
        raise MalformedSafetensorsError(f"the header: {error.message}") from None
    return header


def _metadata(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise MalformedSafetensorsError(
            f"{METADATA} is an object of strings; found {value!r:.60}: write JSON in it as a string"
        )
    return value


def _entry(name: str, facts: Any) -> TensorPlace:
    """Returns a tensor as declared, checked by itself."""

    def fault(text: str) -> MalformedSafetensorsError:
        return MalformedSafetensorsError(f"tensor {name!r:.100}: {text}")

    if not isinstance(facts, dict) or facts.keys() != {"dtype", "shape", "data_offsets"}:
        members = ", ".join(facts) if isinstance(facts, dict) else repr(facts)
        raise fault(f"the header gives each tensor dtype, shape and data_offsets; found {members:.80}")
    dtype = DTYPE_OF.get(facts["dtype"]) if isinstance(facts["dtype"], str) else None
    if dtype is None:
        raise fault(
            f"the dtype {facts['dtype']!r:.40} is not one of {', '.join(DTYPE_OF)}: send it as another one, or in JSON"
        )
    shape, offsets = facts["shape"], facts["data_offsets"]
    if not _are_lengths(shape):
        raise fault(f"the shape is a list of lengths, none negative; found {shape!r:.60}")
    if len(shape) > MAX_DIMS:
        raise fault(f"it has {len(shape)} axes, the limit is {MAX_DIMS}")
    if math.prod([length or 1 for length in shape]) * dtype.itemsize >= _LARGEST:
        raise fault(f"no array of {dtype.name} can have the shape {shape!r:.80}")
    if not _are_lengths(offsets) or len(offsets) != 2:
        raise fault(f"data_offsets are [begin, end], counted from the header's end; found {offsets!r:.60}")
    begin, end = offsets
    if begin > end:
        raise fault(f"data_offsets begin at {begin:,} and end at {end:,}: the end comes second")
    needed = math.prod(shape) * dtype.itemsize
    if end - begin != needed:
        raise fault(f"{dtype.name}{shape} takes {needed:,} bytes, data_offsets {offsets} have {end - begin:,}")
    return TensorPlace(begin, end, name, dtype, shape)


def _are_lengths(value: Any) -> bool:
    return isinstance(value, list) and all(type(number) is int and number >= 0 for number in value)


def _check_places(entries: list[TensorPlace], length: int) -> None:
    """Checks that the tensors, in the order of their offsets, follow each other without gaps to the body's end."""
    position, last = 0, ""
    for entry in entries:
        if entry.end > length:
            raise MalformedSafetensorsError(
                f"tensor {entry.name!r:.100}: it ends at byte {entry.end:,} after the header, where the body has "
                f"{length:,} bytes: the body is cut, or the offset is wrong"
            )
        if entry.begin < position:
            raise MalformedSafetensorsError(
                f"tensor {entry.name!r:.100}: it begins at byte {entry.begin:,} after the header, and overlaps tensor "
                f"{last!r:.100}, which ends at {position:,}"
            )
        if entry.begin > position:
            raise MalformedSafetensorsError(
                f"tensor {entry.name!r:.100}: it begins at byte {entry.begin:,} after the header, and the bytes from "
                f"{position:,} to there belong to no tensor: the format has no gaps"
            )
        position, last = entry.end, entry.name
    if position != length:
        raise MalformedSafetensorsError(
            f"the tensors end at byte {position:,} after the header, the body at {length:,}: the rest belongs to none"
        )


def _array(entry: TensorPlace, data: memoryview, copy_below: int) -> Array:
    """Returns the tensor's elements: a view of the body if it is large and aligned."""
    flat = np.frombuffer(data[entry.begin : entry.end], np.uint8)
    if entry.dtype is BOOL and flat.size and flat.max() > 1:
        raise MalformedSafetensorsError(
            f"tensor {entry.name!r:.100}: dtype BOOL has only the bytes 0 and 1, found {flat.max()}"
        )
    is_aligned = flat.ctypes.data % entry.dtype.alignment == 0
    flat = flat if flat.size >= copy_below and is_aligned else flat.copy()
    array = flat.view(entry.dtype).reshape(entry.shape)
    array.flags.writeable = False
    return array
