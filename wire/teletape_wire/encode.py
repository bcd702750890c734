"""Encodes batches and answers as frames. Large tensors are not copied: a frame is a list of buffers of known length."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import msgpack  # type: ignore[import-untyped]  # ships no types
import numpy as np

from teletape_engine.commands import Batch, Call, Command, FieldKind, Id, OnFailure, schema
from teletape_engine.commands.results import Answer, Facts, Failure, Kinds, Result, SlicesArrays, Specs
from teletape_engine.commands.structure import Contents
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.recording.values import Literal
from teletape_engine.spec import Spec
from teletape_wire.checksum import crc32
from teletape_wire.frame import (
    CODES,
    EXT_BIG,
    EXT_COMPLEX,
    EXT_INDEX,
    EXT_PAIR,
    EXT_TENSOR,
    EXT_UNTYPED,
    FACTS,
    FETCHED,
    KINDS,
    MAGIC,
    MAX_INT_BYTES,
    NO_NONCE,
    OP,
    PREFIX,
    PREFIX_LENGTH,
    SLICES,
    SPECS,
    VERSION,
    Frame,
    FrameKind,
    Served,
)
from teletape_wire.tensors import NAMES, Table, aligned, padded

_NOT_SERVED: Final = Served()
_BUFFER: Final = 4096  # bytes at first; msgpack's default of 256 KiB costs more than a small batch


def _other(table: Table, value: Any) -> Any:
    """The msgpack form of a value that msgpack does not know. Values come in the order of the commands."""
    kind = value.__class__
    if kind is Literal:
        number = value.array
        if value.spec.untyped:
            index = EXT_INDEX.pack(table.add(np.asarray(number)))
            return msgpack.ExtType(EXT_UNTYPED, index + NAMES[value.spec.alone].encode())
        if number.__class__ is float:
            return number
        return (number.real, number.imag) if number.__class__ is complex else (number,)
    if kind is np.ndarray:
        return msgpack.ExtType(EXT_TENSOR, EXT_INDEX.pack(table.add(value)))
    if kind is complex:
        return msgpack.ExtType(EXT_COMPLEX, EXT_PAIR.pack(value.real, value.imag))
    if kind is int:
        size = value.bit_length() // 8 + 1
        if size > MAX_INT_BYTES:
            raise InvalidArgumentError(f"an integer of {value.bit_length()} bits cannot be sent: no dtype holds it")
        return msgpack.ExtType(EXT_BIG, value.to_bytes(size, "little", signed=True))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, Spec):
        return (NAMES[value.dtype], value.shape)
    if hasattr(value, "keys"):
        return dict(value)
    raise InvalidArgumentError(f"a {kind.__name__} cannot be sent in a command: {value!r:.60}")


_FIXARRAY: Final = 0x90  # msgpack's first byte of a short list, without its length


class _FrameWriter:
    """Packs the parts of one frame; its tensors go into a table.

    The packer refers to the table and not to the writer: a cycle would keep tensors until a garbage collection.
    """

    def __init__(self) -> None:
        self.table = Table()
        self.pack = msgpack.Packer(default=partial(_other, self.table), buf_size=_BUFFER).pack

    def frame(self, kind: FrameKind, body: list[bytes], *, client: int, seq: int, nonce: bytes) -> Frame:
        """The finished frame; `body` has the header's parts after the table."""
        if len(nonce) not in (0, 16):
            raise InvalidArgumentError(f"a nonce has 16 bytes, or none; found {len(nonce)}")
        rows, views = self.table.layout()
        tail = b"".join(body)
        position, table = 0, []
        for dtype, shape, length, crc in rows:
            offset = aligned(position)
            table.append((dtype, shape, offset, length, crc))
            position = offset + length
        header = bytes([_FIXARRAY + 1 + len(body)]) + self.pack(table) + tail
        end = PREFIX_LENGTH + len(header)
        total = aligned(end) + position if rows else end
        prefix = PREFIX.pack(MAGIC, VERSION, kind, crc32(header), client, seq, nonce or NO_NONCE, len(header), total)
        gap = bytes(aligned(end) - end) if rows else b""
        return Frame([b"".join((prefix, header, gap)), *padded(views)], total)


def _positional(command: Command) -> list[Any]:
    """The command's code and its fields in order; default values at the end are left out."""
    code, fields, of_steps, defaults = _FORMS[command.verb]
    row: list[Any] = [code, *fields(command)]
    for i in of_steps:
        row[i] = [_row(step) for step in row[i]]
    for default in defaults:
        if row[-1].__class__ is np.ndarray or row[-1] != default:
            break
        row.pop()
    return row


def _form(verb: str) -> tuple[int, Callable[[Command], tuple[Any, ...]], tuple[int, ...], tuple[Any, ...]]:
    """A command's code, what returns its fields, the positions of those of steps, and the last defaults, backwards."""
    fields = tuple(schema.FIELDS[verb].values())
    of_steps = tuple([i for i, field in enumerate(fields, 1) if field.kind is FieldKind.STEP])
    optional = itertools.takewhile(lambda field: not field.required, reversed(fields))
    return CODES[verb], schema.getter([*schema.FIELDS[verb]]), of_steps, tuple([field.default for field in optional])


_FORMS: Final = {verb: _form(verb) for verb in CODES if verb in schema.FIELDS}


def _row(command: Command) -> Any:
    return _call_row(command) if isinstance(command, Call) else _positional(command)


def _call_row(command: Call) -> Any:
    if command.where is not None:
        return (OP, command.op, command.inputs, command.outputs, command.attrs, command.where)
    if command.attrs:
        return (OP, command.op, command.inputs, command.outputs, command.attrs)
    return (OP, command.op, command.inputs, command.outputs)


def encode_batch(batch: Batch, *, keep: int | None = None) -> Frame:
    """Encodes a batch as a frame.

    Args:
        batch: The batch.
        keep: The number under which the receiver is to keep the batch's structure; None: it need not. One that
            replaces ids has none.

    Raises:
        InvalidArgumentError: A value in a command cannot be sent.
    """
    writer = _FrameWriter()
    rows = [_call_row(c) if c.__class__ is Call else _positional(c) for c in batch.commands]
    body = [writer.pack(rows), writer.pack(batch.releases)]
    if batch.replace:
        body.append(writer.pack((batch.temporaries, batch.on_failure.value, None, True)))
    elif keep is not None:
        body.append(writer.pack((batch.temporaries, batch.on_failure.value, keep)))
    elif batch.temporaries or batch.on_failure is not OnFailure.POISON:
        body.append(writer.pack((batch.temporaries, batch.on_failure.value)))
    return writer.frame(FrameKind.BATCH, body, client=batch.client, seq=batch.seq, nonce=batch.nonce)


def encode_repeated(number: int, contents: Contents, *, client: int, seq: int, nonce: bytes) -> Frame:
    """Encodes a batch as the number of a structure that the receiver keeps, and what is in its slots."""
    writer = _FrameWriter()
    for tensor in contents.tensors:
        writer.table.add(tensor)
    numbers = [literal.array for literal in contents.numbers]
    body = [writer.pack(part) for part in (number, _runs(contents.taken), _runs(contents.created), numbers)]
    return writer.frame(FrameKind.REPEATED, body, client=client, seq=seq, nonce=nonce)


def _runs(ids: Sequence[Id]) -> Sequence[Any]:
    """The ids; consecutive ones, as a client that counts makes them, as one pair [first, count]."""
    if len(ids) > 1 and ids[0].__class__ is int and ids == tuple(range(ids[0], ids[0] + len(ids))):
        return ((ids[0], len(ids)),)
    return ids


def encode_answer(
    answer: Answer,
    served: Served = _NOT_SERVED,
    *,
    client: int = 0,
    seq: int = 0,
    nonce: bytes = b"",
) -> Frame:
    """Encodes an answer as a frame; client, seq and nonce are those of the batch."""
    writer = _FrameWriter()
    failure = answer.failure and _failure_row(answer.failure)
    further = [[_failure_row(each) for each in answer.further_failures]] if answer.further_failures else []
    body = [
        writer.pack([_result_row(result) for result in answer.results]),
        writer.pack((failure, answer.bytes_in_use, *served, *further)),
    ]
    return writer.frame(FrameKind.ANSWER, body, client=client, seq=seq, nonce=nonce)


def _failure_row(failure: Failure) -> list[Any]:
    return [getattr(failure, field.name) for field in dataclasses.fields(failure)]


def _result_row(result: Result) -> tuple[Any, ...]:
    if isinstance(result, Kinds):
        return (KINDS, result.index, result.kinds)
    if isinstance(result, Specs):
        return (SPECS, result.index, result.specs)
    if isinstance(result, Facts):  # as text: a list among facts may be longer than a header's
        return (FACTS, result.index, json.dumps(result.facts, allow_nan=False))
    if isinstance(result.array, SlicesArrays):
        return (SLICES, result.index, result.id, result.array.values, result.array.indices, result.spec)
    spec = result.spec
    return (FETCHED, result.index, result.id, result.array, (NAMES[spec.dtype], spec.shape), result.complete)
