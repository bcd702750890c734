"""Batches and answers into frames. Big tensors are not copied: a frame is a list of buffers whose length is known."""

from __future__ import annotations

import dataclasses
import json
import zlib
from functools import partial
from typing import Any, Final

import msgpack  # type: ignore[import-untyped]  # ships no types
import numpy as np

from teletape_engine.commands import COMMANDS, Batch, Call, Command, schema
from teletape_engine.commands.results import Answer, Kinds, Made, Result, SlicesArrays, Told
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.recording.values import Literal
from teletape_engine.spec import Spec
from teletape_wire.frame import (
    CODES,
    EXT_BIG,
    EXT_COMPLEX,
    EXT_INDEX,
    EXT_PAIR,
    EXT_TENSOR,
    FETCHED,
    KINDS,
    MADE,
    MAGIC,
    MAX_INT_BYTES,
    NO_NONCE,
    OP,
    PREFIX,
    PREFIX_LENGTH,
    SLICES,
    TOLD,
    VERSION,
    Frame,
    FrameKind,
    Served,
)
from teletape_wire.tensors import NAMES, Table, aligned, padded

_NOTHING: Final = Served()
_BUFFER: Final = 4096  # bytes to begin with; msgpack's own 256 KiB cost more than a small batch


def _other(table: Table, value: Any) -> Any:
    """What msgpack has no form for. It comes here in the order of the commands."""
    kind = value.__class__
    if kind is Literal:
        number = value.array
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
            raise InvalidArgumentError(f"an integer of {value.bit_length()} bits cannot travel: no dtype holds it")
        return msgpack.ExtType(EXT_BIG, value.to_bytes(size, "little", signed=True))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, Spec):
        return (NAMES[value.dtype], value.shape)
    if hasattr(value, "keys"):
        return dict(value)
    raise InvalidArgumentError(f"a {kind.__name__} cannot travel in a command: {value!r:.60}")


class _Writer:
    """Packs the parts of one frame; tensors met on the way go into its table.

    The packer knows the table and not the writer: a cycle would keep tensors until a garbage collection.
    """

    def __init__(self) -> None:
        self.table = Table()
        self.pack = msgpack.Packer(default=partial(_other, self.table), buf_size=_BUFFER).pack

    def frame(self, kind: FrameKind, body: list[bytes], *, client: int, seq: int, nonce: bytes) -> Frame:
        """The finished frame: `body` are the header's parts behind the table."""
        if len(nonce) not in (0, 16):
            raise InvalidArgumentError(f"a nonce has 16 bytes, or none; found {len(nonce)}")
        rows, views = self.table.layout()
        tail = b"".join(body)
        at, table = 0, []
        for dtype, shape, length, crc in rows:
            offset = aligned(at)
            table.append((dtype, shape, offset, length, crc))
            at = offset + length
        header = b"\x93" + self.pack(table) + tail
        end = PREFIX_LENGTH + len(header)
        total = aligned(end) + at if rows else end
        prefix = PREFIX.pack(
            MAGIC, VERSION, kind, zlib.crc32(header), client, seq, nonce or NO_NONCE, len(header), total
        )
        gap = bytes(aligned(end) - end) if rows else b""
        return Frame([b"".join((prefix, header, gap)), *padded(views)], total)


def _positional(command: Command) -> list[Any]:
    verb = command.verb
    out = [CODES[verb], *[getattr(command, name) for name in schema.fields(verb)]]
    for default in reversed(_DEFAULTS[verb]):
        if default is dataclasses.MISSING or out[-1].__class__ is np.ndarray or out[-1] != default:
            break
        out.pop()
    if verb == "function":
        out[3] = [_row(step) for step in out[3]]
    return out


def _row(command: Command) -> Any:
    return _call_row(command) if isinstance(command, Call) else _positional(command)


def _call_row(command: Call) -> Any:
    if command.where is not None:
        return (OP, command.op, command.inputs, command.outputs, command.attrs, command.where)
    if command.attrs:
        return (OP, command.op, command.inputs, command.outputs, command.attrs)
    return (OP, command.op, command.inputs, command.outputs)


def _defaults(cls: type[Command]) -> tuple[Any, ...]:
    declared = dataclasses.fields(cls)  # type: ignore[arg-type]  # each command is a dataclass, their base is not
    return tuple(f.default if f.default_factory is dataclasses.MISSING else f.default_factory() for f in declared)


_DEFAULTS: Final = {verb: _defaults(cls) for verb, cls in COMMANDS.items()}


def encode_batch(batch: Batch) -> Frame:
    """The batch as a frame.

    Raises:
        InvalidArgumentError: Something in a command that cannot travel.
    """
    writer = _Writer()
    rows = [_call_row(c) if c.__class__ is Call else _positional(c) for c in batch.commands]
    body = [writer.pack(rows), writer.pack(batch.releases)]
    return writer.frame(FrameKind.BATCH, body, client=batch.client, seq=batch.seq, nonce=batch.nonce)


def encode_answer(
    answer: Answer,
    served: Served = _NOTHING,
    *,
    client: int = 0,
    seq: int = 0,
    nonce: bytes = b"",
) -> Frame:
    """The answer as a frame; client, seq and nonce are those of the batch."""
    writer = _Writer()
    failure = answer.failure and tuple(
        list(value.items()) if f.name == "versions" else value
        for f in dataclasses.fields(answer.failure)
        for value in (getattr(answer.failure, f.name),)
    )
    body = [
        writer.pack([_result_row(one) for one in answer.results]),
        writer.pack((failure, answer.bytes_in_use, *served)),
    ]
    return writer.frame(FrameKind.ANSWER, body, client=client, seq=seq, nonce=nonce)


def _result_row(result: Result) -> tuple[Any, ...]:
    if isinstance(result, Kinds):
        return (KINDS, result.index, result.kinds)
    if isinstance(result, Made):
        return (MADE, result.index, result.specs)
    if isinstance(result, Told):  # as text: facts may be longer than the lists of a header
        return (TOLD, result.index, json.dumps(result.facts, allow_nan=False))
    if isinstance(result.array, SlicesArrays):
        return (SLICES, result.index, result.id, result.array.values, result.array.indices, result.spec)
    return (FETCHED, result.index, result.id, result.array, result.spec, result.complete)
