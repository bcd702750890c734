"""The binary form: a fixed prefix, a msgpack header, raw tensors. One frame is a batch or the answer to one.

Commands are arrays [code, fields ...] in the order of `teletape_engine.commands.fields`, trailing defaults left out. A
receiver knows every length before it allocates, and refuses what does not add up.
"""

from __future__ import annotations

import dataclasses
import enum
import struct
import zlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgpack
import numpy as np

from teletape.wire.errors import CorruptFrameError, FrameTooLargeError, UnsupportedVersionError, WireError
from teletape.wire.tensors import NAMES, Array, Buffer, Table, aligned, padded, read
from teletape_engine import commands
from teletape_engine.commands import COMMANDS, Batch, Call, Command
from teletape_engine.errors import BadCommandError, InvalidArgumentError
from teletape_engine.graph import Literal
from teletape_engine.session import Answer, Failure, Fetched, Kinds, Made, Result, SlicesArrays
from teletape_engine.spec import Spec, dtype_of

FRAME_TYPE: Final = "application/vnd.teletape.frame"
VERSION: Final = 1
#: Not text, so that a transfer that mends line ends breaks it visibly (as PNG's does).
MAGIC: Final = b"\x89TAPE\r\n\x1a"
PREFIX_LENGTH: Final = 64
MAX_HEADER: Final = 64 << 20
MAX_ITEMS: Final = 16_384  #: Members of one list inside a command: inputs, sources, an attribute.

_PREFIX: Final = struct.Struct("<8sHHIQQ16sQQ")
_NO_NONCE: Final = bytes(16)
_TENSOR, _COMPLEX, _BIG = 1, 2, 3  # msgpack extension types
_INDEX: Final = struct.Struct("<I")
_PAIR: Final = struct.Struct("<dd")
_BIG_BYTES: Final = 130  # no larger integer becomes a float

#: The number of each command. A number never gets another meaning.
CODES: Final = {
    "put": 1,
    "variable": 2,
    "assign": 3,
    "op": 4,
    "tape.open": 5,
    "tape.watch": 6,
    "tape.pause": 7,
    "tape.resume": 8,
    "tape.reset": 9,
    "context.switch": 10,
    "gradient": 11,
    "declare": 12,
    "program": 13,
    "call": 14,
    "fetch": 15,
    "part": 16,
}
_VERBS: Final = {code: verb for verb, code in CODES.items()}
_OP: Final = CODES["op"]


class FrameKind(enum.IntEnum):
    """What a frame holds."""

    BATCH = 1
    ANSWER = 2


class Prefix(NamedTuple):
    """The first 64 bytes: what a receiver must know before it takes the rest.

    Attributes:
        kind: Batch or answer.
        client, seq, nonce: Which batch it is, or answers; `nonce` has 16 bytes, or none.
        header_crc: CRC32 of the header.
        header_length, total_length: In bytes; the total counts the prefix.
    """

    kind: FrameKind
    client: int
    seq: int
    nonce: bytes
    header_crc: int
    header_length: int
    total_length: int


class Frame(NamedTuple):
    """A frame to be sent: its buffers in order, and their bytes in all. Big tensors are views, not copies."""

    buffers: list[Buffer]
    length: int


class Served(NamedTuple):
    """What a server says beside an answer.

    Attributes:
        expires_at: When the session ends unless something happens in it, as Unix seconds.
        waited, computed: Seconds between the batch's arrival and its start, and from there to its end.
    """

    expires_at: float | None = None
    waited: float = 0.0
    computed: float = 0.0


# ------------------------------------------------------------------------------------------------------------- prefix
def decode_prefix(data: Buffer, *, max_header: int = MAX_HEADER, max_total: int | None = None) -> Prefix:
    """Reads and checks the first 64 bytes of a frame.

    Raises:
        WireError: Too short, not a frame, of another version, over a limit, or with lengths that contradict.
    """
    if len(data) < PREFIX_LENGTH:
        raise WireError(f"a frame begins with a prefix of {PREFIX_LENGTH} bytes, found {len(data)}")
    magic, version, kind, crc, client, seq, nonce, header_length, total = _PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise WireError(f"not a frame: it begins with {magic!r}, expected {MAGIC!r}")
    if version != VERSION:
        raise UnsupportedVersionError(f"frame version {version}, this side speaks {VERSION}", versions=[VERSION])
    if kind not in (1, 2):
        raise WireError(f"a frame is of kind 1 (batch) or 2 (answer), found {kind}")
    if header_length > max_header:
        raise FrameTooLargeError(
            f"the header is declared with {header_length} bytes, at most {max_header} are taken: send smaller batches",
            found=header_length,
            limit=max_header,
        )
    if max_total is not None and total > max_total:
        raise FrameTooLargeError(
            f"the frame is declared with {total} bytes, at most {max_total} are taken", found=total, limit=max_total
        )
    if total < PREFIX_LENGTH + header_length:
        raise WireError(f"the frame is declared with {total} bytes, prefix and header alone have more")
    return Prefix(FrameKind(kind), client, seq, b"" if nonce == _NO_NONCE else nonce, crc, header_length, total)


def _header(frame: memoryview, kind: FrameKind, max_header: int) -> tuple[Prefix, memoryview]:
    prefix = decode_prefix(frame, max_header=max_header)
    if prefix.kind is not kind:
        raise WireError(f"expected a frame of kind {kind.name.lower()}, found {prefix.kind.name.lower()}")
    if prefix.total_length != frame.nbytes:
        raise WireError(f"the frame is declared with {prefix.total_length} bytes, found {frame.nbytes}: cut or padded")
    header = frame[PREFIX_LENGTH : PREFIX_LENGTH + prefix.header_length]
    if zlib.crc32(header) != prefix.header_crc:
        raise CorruptFrameError("the header's CRC32 does not match: send the frame again")
    return prefix, header


# ------------------------------------------------------------------------------------------------------------ writing
class _Writer:
    """Packs the parts of one frame; tensors met on the way go into its table."""

    def __init__(self) -> None:
        self.table = Table()
        self.pack = msgpack.Packer(default=self._other).pack

    def _other(self, value: Any) -> Any:
        """What msgpack has no form for. It comes here in C order, which is the order of the commands."""
        kind = value.__class__
        if kind is Literal:
            number = value.array
            if number.__class__ is float:
                return number
            return (number.real, number.imag) if number.__class__ is complex else (number,)
        if kind is np.ndarray:
            return msgpack.ExtType(_TENSOR, _INDEX.pack(self.table.add(value)))
        if kind is complex:
            return msgpack.ExtType(_COMPLEX, _PAIR.pack(value.real, value.imag))
        if kind is int:
            size = value.bit_length() // 8 + 1
            if size > _BIG_BYTES:
                raise InvalidArgumentError(f"an integer of {value.bit_length()} bits cannot travel: no dtype holds it")
            return msgpack.ExtType(_BIG, value.to_bytes(size, "little", signed=True))
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.dtype):
            return value.name
        if isinstance(value, Spec):
            return (NAMES[value.dtype], value.shape)
        if hasattr(value, "keys"):
            return dict(value)
        raise InvalidArgumentError(f"a {kind.__name__} cannot travel in a command: {value!r:.60}")

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
        prefix = _PREFIX.pack(
            MAGIC, VERSION, kind, zlib.crc32(header), client, seq, nonce or _NO_NONCE, len(header), total
        )
        gap = bytes(aligned(end) - end) if rows else b""
        return Frame([b"".join((prefix, header, gap)), *padded(views)], total)


def _positional(command: Command) -> list[Any]:
    verb = command.verb
    out = [CODES[verb], *[getattr(command, name) for name in commands.fields(verb)]]
    for default in reversed(_DEFAULTS[verb]):
        if default is dataclasses.MISSING or out[-1] != default:
            break
        out.pop()
    if verb == "program":
        out[3] = [_call_row(call) for call in out[3]]
    return out


def _call_row(command: Call) -> Any:
    if command.where is not None:
        return (_OP, command.op, command.inputs, command.outputs, command.attrs, command.where)
    if command.attrs:
        return (_OP, command.op, command.inputs, command.outputs, command.attrs)
    return (_OP, command.op, command.inputs, command.outputs)


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
    rows = [_call_row(c) if c.__class__ is Call else _positional(c) for c in batch.commands]  # type: ignore[arg-type]
    body = [writer.pack(rows), writer.pack(batch.releases)]
    return writer.frame(FrameKind.BATCH, body, client=batch.client, seq=batch.seq, nonce=batch.nonce)


def encode_answer(
    answer: Answer, served: Served = Served(), *, client: int = 0, seq: int = 0, nonce: bytes = b""  # noqa: B008  # immutable
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


_FETCHED, _SLICES, _KINDS, _MADE = 1, 2, 3, 4


def _result_row(result: Result) -> tuple[Any, ...]:
    if isinstance(result, Kinds):
        return (_KINDS, result.index, result.kinds)
    if isinstance(result, Made):
        return (_MADE, result.index, result.specs)
    if isinstance(result.array, SlicesArrays):
        return (_SLICES, result.index, result.id, result.array.values, result.array.indices, result.spec)
    return (_FETCHED, result.index, result.id, result.array, result.spec, result.complete)


# ------------------------------------------------------------------------------------------------------------ reading
class _Reader:
    """Unpacks one header. Lists are bounded, so that a short header cannot claim a long one."""

    def __init__(self, header: memoryview) -> None:
        self.tensors: list[Array] = []
        size = max(len(header), 1)
        self._stream = msgpack.Unpacker(
            None,
            max_buffer_size=size,
            use_list=False,
            ext_hook=self._extension,
            max_array_len=min(size, MAX_ITEMS),
            max_map_len=min(size, MAX_ITEMS),
        )
        self._stream.feed(header)
        self._length = len(header)
        self.next = self._stream.unpack

    def count(self) -> int:
        """The length of a list whose members follow one by one."""
        return int(self._stream.read_array_header())

    def done(self) -> None:
        """Checks that nothing is left."""
        if self._stream.tell() != self._length:
            raise WireError(f"the header has {self._length} bytes, its content ends at byte {self._stream.tell()}")

    def _extension(self, code: int, data: bytes) -> Any:
        if code == _TENSOR and len(data) == _INDEX.size:
            (index,) = _INDEX.unpack(data)
            if index < len(self.tensors):
                return self.tensors[index]
            raise WireError(f"a command names tensor {index}, the frame has {len(self.tensors)}")
        if code == _COMPLEX and len(data) == _PAIR.size:
            return complex(*_PAIR.unpack(data))
        if code == _BIG and 0 < len(data) <= _BIG_BYTES:
            return int.from_bytes(data, "little", signed=True)
        raise WireError(f"unknown msgpack extension {code} with {len(data)} bytes")


def _guarded(decode: Callable[..., Any], *args: Any) -> Any:
    """Runs `decode`; what msgpack raises for garbage becomes a WireError."""
    try:
        return decode(*args)
    except (WireError, BadCommandError):
        raise
    except MemoryError:
        raise FrameTooLargeError("the header declares more than this process may allocate") from None
    except (ValueError, TypeError, OverflowError, msgpack.exceptions.UnpackException) as error:
        raise WireError(f"the header is no valid msgpack: {type(error).__name__}: {error}"[:300]) from None


def decode_batch(buffer: Buffer, *, copy_below: int = 0, max_header: int = MAX_HEADER) -> Batch:
    """The batch in a frame.

    Args:
        buffer: The whole frame. Tensors are read-only views of it, and keep it alive.
        copy_below: Tensors shorter than this many bytes are copied instead.
        max_header: Bytes that a header may have.

    Raises:
        WireError: The bytes are no batch, or a length, offset or checksum in them is wrong.
        BadCommandError: A command with a field missing, left over, or of the wrong kind.
    """
    return _guarded(_batch, memoryview(buffer).toreadonly(), copy_below, max_header)  # type: ignore[no-any-return]


def _open(frame: memoryview, kind: FrameKind, copy_below: int, max_header: int) -> tuple[Prefix, _Reader]:
    prefix, header = _header(frame, kind, max_header)
    reader = _Reader(header)
    parts = reader.count()
    if parts != 3:
        raise WireError(f"the header must be a list of 3 parts, found {parts}")
    rows = [reader.next() for _ in range(reader.count())]
    reader.tensors = read(frame, rows, PREFIX_LENGTH + len(header), copy_below=copy_below)
    return prefix, reader


def _batch(frame: memoryview, copy_below: int, max_header: int) -> Batch:
    prefix, reader = _open(frame, FrameKind.BATCH, copy_below, max_header)
    made = _commands(reader.next, reader.count())
    take = reader.next
    releases = [_released(take()) for _ in range(reader.count())]
    reader.done()
    return Batch(tuple(made), tuple(releases), prefix.client, prefix.seq, prefix.nonce)


def _released(value: Any) -> commands.Id:
    if (type(value) is int and value >= 0) or (type(value) is str and value):
        return value
    raise BadCommandError(f"a release must be an id (a name, or an integer from 0 up), found {value!r:.60}")


def _commands(take: Callable[[], Any], count: int) -> list[Command]:
    made: list[Command] = []
    try:
        for _ in range(count):
            row = take()
            if row.__class__ is not tuple or not row:
                raise BadCommandError(f"must be an array [code, fields ...], found {row!r:.60}")
            made.append(_call(row) if row[0] == _OP else _other(row))
    except BadCommandError as error:
        raise BadCommandError(f"command {len(made)}: {error.message}", command=len(made)) from None
    return made


def _call(row: tuple[Any, ...]) -> Command:
    """The quick way for the one command that comes by the thousand; what it does not know, `make` judges."""
    size = len(row)
    if 4 <= size <= 6:
        op, given, outputs = row[1], row[2], row[3]
        attrs = row[4] if size > 4 else {}
        where = row[5] if size > 5 else None
        if (
            op.__class__ is str
            and op
            and given.__class__ is tuple
            and outputs.__class__ is tuple
            and attrs.__class__ is dict
            and (where is None or (where.__class__ is str and where))
        ):
            inputs = []
            for one in given:
                if one.__class__ is int and one >= 0:
                    inputs.append(one)
                elif one.__class__ is float:
                    inputs.append(Literal(one))
                else:
                    inputs.append(_input(one))
            for one in outputs:
                if (one.__class__ is not int or one < 0) and (one.__class__ is not str or not one):
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


def _inputs(value: Any) -> Any:
    return tuple([None if one is None else _input(one) for one in value]) if type(value) is tuple else value


def _calls(value: Any) -> Any:
    return tuple(_commands(iter(value).__next__, len(value))) if type(value) is tuple else value


#: How a field's msgpack form becomes what `commands.make` takes; fields not named here are taken as they are.
_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "Input": _input,
    "Tensor | Literal": _input,
    "tuple[Input, ...]": _inputs,
    "tuple[Input | None, ...] | None": _inputs,
    "tuple[Call, ...]": _calls,
}
_FIELDS: Final = {
    verb: tuple((f.name, _READ.get(str(f.type))) for f in dataclasses.fields(cls))  # type: ignore[arg-type]
    for verb, cls in COMMANDS.items()
}


def _other(row: tuple[Any, ...]) -> Command:
    verb = _VERBS.get(row[0]) if type(row[0]) is int else None
    if verb is None:
        known = ", ".join(f"{code} {verb}" for code, verb in _VERBS.items())
        raise BadCommandError(f"unknown command code {row[0]!r:.60}; the codes are {known}")
    known_fields = _FIELDS[verb]
    if len(row) - 1 > len(known_fields):
        names = ", ".join(name for name, _ in known_fields)
        raise BadCommandError(f"command {verb!r} has {len(known_fields)} fields ({names}), found {len(row) - 1}")
    given = {
        name: value if read is None else read(value)
        for (name, read), value in zip(known_fields, row[1:], strict=False)
    }
    return commands.make(verb, given)


def decode_answer(buffer: Buffer, *, max_header: int = MAX_HEADER) -> tuple[Answer, Served]:
    """The answer in a frame, and what the server said beside it. Arrays are read-only views of the frame.

    Raises:
        WireError: The bytes are no answer, or a length, offset or checksum in them is wrong.
    """
    return _guarded(_answer, memoryview(buffer).toreadonly(), max_header)  # type: ignore[no-any-return]


def _answer(frame: memoryview, max_header: int) -> tuple[Answer, Served]:
    _, reader = _open(frame, FrameKind.ANSWER, 0, max_header)
    results = tuple([_result(*reader.next()) for _ in range(reader.count())])
    failed, bytes_in_use, expires_at, waited, computed = reader.next()
    reader.done()
    failure = None
    if failed is not None:
        *facts, versions = failed
        failure = Failure(*facts, versions=dict(versions))
    return Answer(results, failure, bytes_in_use), Served(expires_at, waited, computed)


def _result(code: int, index: int, *parts: Any) -> Result:
    if code == _KINDS:
        return Kinds(index, *parts)
    if code == _MADE:
        (specs,) = parts
        return Made(index, tuple([_spec(*one) for one in specs]))
    if code == _SLICES:
        name, values, indices, spec = parts
        dense = _spec(*spec)
        return Fetched(index, name, SlicesArrays(values, indices, dense), dense, True)
    if code == _FETCHED:
        name, array, spec, complete = parts
        return Fetched(index, name, array, _spec(*spec), complete)
    raise WireError(f"unknown kind of result {code!r:.60}")


def _spec(dtype: str, shape: tuple[int, ...]) -> Spec:
    return Spec.of(shape, dtype_of(dtype))
