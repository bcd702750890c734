"""Decodes frames into batches and answers. Lengths, offsets, checksums and commands are checked before use."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgpack  # type: ignore[import-untyped]  # ships no types
import numpy as np

from teletape_engine.commands import Batch, Call, Command, FieldKind, Id, Input, OnFailure, schema
from teletape_engine.commands.fields import Field
from teletape_engine.commands.results import Answer, Facts, Failure, Fetched, Kinds, Result, SlicesArrays, Specs
from teletape_engine.commands.schema import is_id
from teletape_engine.errors import BadCommandError
from teletape_engine.recording.values import Literal
from teletape_engine.spec import Spec, dtype_of
from teletape_wire.checksum import crc32
from teletape_wire.errors import CorruptFrameError, FrameTooLargeError, WireError
from teletape_wire.frame import (
    CODES,
    EXT_BIG,
    EXT_COMPLEX,
    EXT_INDEX,
    EXT_PAIR,
    EXT_TENSOR,
    FACTS,
    FETCHED,
    KINDS,
    MAX_HEADER,
    MAX_INT_BYTES,
    MAX_ITEMS,
    OP,
    PARTS,
    PREFIX_LENGTH,
    SLICES,
    SPECS,
    WITH_OPTIONS,
    FrameKind,
    Prefix,
    Served,
    decode_prefix,
)
from teletape_wire.tensors import Array, Buffer, read

_VERBS: Final = {code: verb for verb, code in CODES.items()}


def _header(frame: memoryview, kind: FrameKind, max_header: int) -> tuple[Prefix, memoryview]:
    prefix = decode_prefix(frame, max_header=max_header)
    if prefix.kind is not kind:
        raise WireError(f"expected a frame of kind {kind.name.lower()}, found {prefix.kind.name.lower()}")
    if prefix.total_length != frame.nbytes:
        raise WireError(f"the frame is declared with {prefix.total_length} bytes, found {frame.nbytes}: cut or padded")
    header = frame[PREFIX_LENGTH : PREFIX_LENGTH + prefix.header_length]
    if crc32(header) != prefix.header_crc:
        raise CorruptFrameError("the header's CRC32 does not match: send the frame again")
    return prefix, header


def _extension(tensors: list[Array], code: int, data: bytes) -> Any:
    if code == EXT_TENSOR and len(data) == EXT_INDEX.size:
        (index,) = EXT_INDEX.unpack(data)
        if index < len(tensors):
            return tensors[index]
        raise WireError(f"a command names tensor {index}, the frame has {len(tensors)}")
    if code == EXT_COMPLEX and len(data) == EXT_PAIR.size:
        return complex(*EXT_PAIR.unpack(data))
    if code == EXT_BIG and 0 < len(data) <= MAX_INT_BYTES:
        return int.from_bytes(data, "little", signed=True)
    raise WireError(f"unknown msgpack extension {code} with {len(data)} bytes")


class _Reader:
    """Unpacks one header. The length of lists is bounded, so that a short header cannot declare a long list.

    The unpacker refers to the tensors and not to the reader: a cycle would keep the frame until a garbage collection.
    """

    def __init__(self, header: memoryview) -> None:
        self.tensors: list[Array] = []
        size = max(len(header), 1)
        self._stream = msgpack.Unpacker(
            None,
            max_buffer_size=size,
            use_list=False,
            ext_hook=partial(_extension, self.tensors),
            max_array_len=min(size, MAX_ITEMS),
            max_map_len=min(size, MAX_ITEMS),
        )
        self._stream.feed(header)
        self._length = len(header)
        self.next = self._stream.unpack

    def count(self) -> int:
        """The length of the next list; its members follow, each by `next`."""
        return int(self._stream.read_array_header())

    def done(self) -> None:
        """Checks that the header has no further content."""
        if self._stream.tell() != self._length:
            raise WireError(f"the header has {self._length} bytes, its content ends at byte {self._stream.tell()}")


def _guarded(decode: Callable[..., Any], *args: Any) -> Any:
    """Runs `decode`, and turns what msgpack raises for invalid bytes into a WireError."""
    try:
        return decode(*args)
    except (WireError, BadCommandError):
        raise
    except MemoryError:
        raise FrameTooLargeError("the header declares more than this process may allocate") from None
    except (ValueError, TypeError, OverflowError, msgpack.exceptions.UnpackException) as error:
        raise WireError(f"the header is no valid msgpack: {type(error).__name__}: {error}"[:300]) from None


def decode_batch(buffer: Buffer, *, copy_below: int = 0, max_header: int = MAX_HEADER) -> Batch:
    """Decodes the batch in a frame.

    Args:
        buffer: The whole frame. Tensors are read-only views of it, and keep it alive.
        copy_below: Tensors with fewer bytes are copied instead.
        max_header: Limit for the header, in bytes.

    Raises:
        WireError: The bytes are not a batch, or a length, offset or checksum in them is wrong.
        BadCommandError: A field of a command is missing, unknown or of the wrong kind.
    """
    return _guarded(_batch, memoryview(buffer).toreadonly(), copy_below, max_header)  # type: ignore[no-any-return]


def _open(frame: memoryview, kind: FrameKind, copy_below: int, max_header: int) -> tuple[Prefix, int, _Reader]:
    """The prefix, the number of the header's parts, and a reader of the parts after the table of tensors."""
    prefix, header = _header(frame, kind, max_header)
    reader = _Reader(header)
    parts = reader.count()
    if parts != PARTS and not (parts == WITH_OPTIONS and kind is FrameKind.BATCH):
        raise WireError(f"the header must be a list of {PARTS} parts, found {parts}")
    rows = [reader.next() for _ in range(reader.count())]
    reader.tensors += read(frame, rows, PREFIX_LENGTH + len(header), copy_below=copy_below)
    return prefix, parts, reader


def _batch(frame: memoryview, copy_below: int, max_header: int) -> Batch:
    prefix, parts, reader = _open(frame, FrameKind.BATCH, copy_below, max_header)
    decoded = _commands(reader.next, reader.count())
    next_value = reader.next
    releases = tuple([_id(next_value(), "a release") for _ in range(reader.count())])
    temporaries: tuple[Id, ...] = ()
    on_failure = OnFailure.POISON
    if parts == WITH_OPTIONS:
        temporaries, on_failure = _options(next_value())
    reader.done()
    return Batch(tuple(decoded), releases, prefix.client, prefix.seq, prefix.nonce, temporaries, on_failure)


def _options(part: Any) -> tuple[tuple[Id, ...], OnFailure]:
    """The fourth part of a header: [temporaries, on_failure]."""
    if type(part) is not tuple or len(part) != 2 or type(part[0]) is not tuple:
        raise WireError(f"the header's part 4 must be [temporary ids, on_failure], found {part!r:.60}")
    temporaries, on_failure = part
    if on_failure not in set(OnFailure):
        raise BadCommandError(f"on_failure is {', '.join(OnFailure)}; found {on_failure!r:.60}")
    return tuple([_id(value, "a temporary") for value in temporaries]), OnFailure(on_failure)


def _id(value: Any, what: str) -> Id:
    if is_id(value):
        return value  # type: ignore[no-any-return]  # checked
    raise BadCommandError(f"{what} must be an id (a name, or an integer from 0 up), found {value!r:.60}")


def _commands(next_row: Callable[[], Any], count: int) -> list[Command]:
    decoded: list[Command] = []
    try:
        for _ in range(count):
            row = next_row()
            if row.__class__ is not tuple or not row:
                raise BadCommandError(f"must be an array [code, fields ...], found {row!r:.60}")
            decoded.append(_call(row) if row[0] == OP else _other(row))
    except BadCommandError as error:
        raise BadCommandError(f"command {len(decoded)}: {error.message}", command=len(decoded)) from None
    return decoded


def _call(row: tuple[Any, ...]) -> Command:
    """A fast path for op, the command that comes by the thousand. Rows that it does not know go to `schema.make`."""
    size = len(row)
    if 4 <= size <= 6:
        op, operands, outputs = row[1], row[2], row[3]
        attrs = row[4] if size > 4 else {}
        where = row[5] if size > 5 else None
        if (
            op.__class__ is str
            and op
            and operands.__class__ is tuple
            and outputs.__class__ is tuple
            and attrs.__class__ is dict
            and (where is None or (where.__class__ is str and where))
        ):
            inputs: list[Input] = []
            for operand in operands:
                if operand.__class__ is int and operand >= 0:
                    inputs.append(operand)
                elif operand.__class__ is float:
                    inputs.append(Literal(operand))
                else:
                    inputs.append(_input(operand))
            for output in outputs:
                if (output.__class__ is not int or output < 0) and (output.__class__ is not str or not output):
                    return _other(row)
            for key in attrs:
                if key.__class__ is not str:
                    return _other(row)
            return Call(op, tuple(inputs), outputs, attrs, where)
    return _other(row)


def _input(value: Any) -> Any:
    """An id or a tensor as it is, a number as a Literal."""
    kind = type(value)
    if kind is float:
        return Literal(value)
    if kind is tuple:
        if len(value) == 1 and type(value[0]) in (int, bool, float):
            return Literal(value[0])
        if len(value) == 2 and all(type(part) in (int, float) for part in value):
            return Literal(complex(*value))
        raise BadCommandError(f"an input in brackets is [number] or [re, im], found {value!r:.60}")
    if (kind is int and value >= 0) or (kind is str and value) or kind is np.ndarray:
        return value
    raise BadCommandError(f"an input is an id, a number or a tensor, found {value!r:.60}")


def _steps(value: Any) -> Any:
    return tuple(_commands(iter(value).__next__, len(value))) if type(value) is tuple else value


def _field_reader(field: Field) -> Callable[[Any], Any] | None:
    """From a field's msgpack form to what `schema.make` takes; None: they are the same."""
    if field.kind is FieldKind.STEP:
        return _steps
    if field.kind not in (FieldKind.INPUT, FieldKind.TENSOR):
        return None
    if field.is_list:
        return lambda value: (
            tuple([None if member is None else _input(member) for member in value]) if type(value) is tuple else value
        )
    return lambda value: None if value is None and field.nullable else _input(value)


_FIELDS: Final = {
    verb: tuple([(name, _field_reader(field)) for name, field in fields.items()])
    for verb, fields in schema.FIELDS.items()
}


def _other(row: tuple[Any, ...]) -> Command:
    verb = _VERBS.get(row[0]) if type(row[0]) is int else None
    if verb is None:
        codes = ", ".join(f"{code} {verb}" for code, verb in _VERBS.items())
        raise BadCommandError(f"unknown command code {row[0]!r:.60}; the codes are {codes}")
    fields = _FIELDS[verb]
    if len(row) - 1 > len(fields):
        names = ", ".join(name for name, _ in fields)
        raise BadCommandError(f"command {verb!r} has {len(fields)} fields ({names}), found {len(row) - 1}")
    values = {
        name: value if read_field is None else read_field(value)
        for (name, read_field), value in zip(fields, row[1:], strict=False)
    }
    return schema.make(verb, values)


def decode_answer(buffer: Buffer, *, max_header: int = MAX_HEADER) -> tuple[Answer, Served]:
    """Decodes the answer in a frame, and what the server says about it. Arrays are read-only views of the frame.

    Raises:
        WireError: The bytes are not an answer, or a length, offset or checksum in them is wrong.
    """
    return _guarded(_answer, memoryview(buffer).toreadonly(), max_header)  # type: ignore[no-any-return]


def _answer(frame: memoryview, max_header: int) -> tuple[Answer, Served]:
    _, _, reader = _open(frame, FrameKind.ANSWER, 0, max_header)
    results = tuple([_result(*reader.next()) for _ in range(reader.count())])
    failed, bytes_in_use, expires_at, queue_seconds, compute_seconds = reader.next()
    reader.done()
    failure = None if failed is None else Failure(*failed)
    return Answer(results, failure, bytes_in_use), Served(expires_at, queue_seconds, compute_seconds)


def _result(code: int, index: int, *parts: Any) -> Result:
    if code == KINDS:
        return Kinds(index, *parts)
    if code == SPECS:
        (specs,) = parts
        return Specs(index, tuple([_spec(*spec) for spec in specs]))
    if code == FACTS:
        (text,) = parts
        return Facts(index, json.loads(text))
    if code == SLICES:
        name, values, indices, spec = parts
        dense = _spec(*spec)
        return Fetched(index, name, SlicesArrays(values, indices, dense), dense, True)
    if code == FETCHED:
        name, array, spec, complete = parts
        return Fetched(index, name, array, _spec(*spec), complete)
    raise WireError(f"unknown kind of result {code!r:.60}")


def _spec(dtype: str, shape: tuple[int, ...]) -> Spec:
    return Spec.of(shape, dtype_of(dtype))
