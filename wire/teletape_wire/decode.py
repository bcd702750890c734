"""Decodes frames into batches and answers. Lengths, offsets, checksums and commands are checked before use."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgpack  # type: ignore[import-untyped]  # ships no types

from teletape_engine.commands import Batch, Id, OnFailure
from teletape_engine.commands.results import Answer, Facts, Failure, Fetched, Kinds, Result, SlicesArrays, Specs
from teletape_engine.commands.structure import Repetition
from teletape_engine.errors import BadCommandError
from teletape_engine.recording.values import Literal, untyped
from teletape_engine.spec import FLOATING, Spec, dtype_of
from teletape_wire.checksum import crc32
from teletape_wire.errors import CorruptFrameError, FrameTooLargeError, WireError
from teletape_wire.frame import (
    EXT_BIG,
    EXT_COMPLEX,
    EXT_INDEX,
    EXT_PAIR,
    EXT_TENSOR,
    EXT_UNTYPED,
    FACTS,
    FETCHED,
    KINDS,
    MAX_HEADER,
    MAX_INT_BYTES,
    MAX_ITEMS,
    PARTS,
    PREFIX_LENGTH,
    REPEATED_PARTS,
    SLICES,
    SPECS,
    WITH_OPTIONS,
    FrameKind,
    Prefix,
    Served,
    decode_prefix,
)
from teletape_wire.rows import commands_of, ids_of
from teletape_wire.structures import Structures, contents_of
from teletape_wire.tensors import Array, Buffer, read

_KIND_AT: Final = 10  # the offset of the kind in a prefix
_SMALL: Final = 4096  # bytes of a header from which its unpacker is not used again
_SHORT: Final = MAX_ITEMS  # bytes of a header in which no list can be too long: its lists are unpacked whole


def _header(
    frame: memoryview, kind: FrameKind, max_header: int, known: Prefix | None = None
) -> tuple[Prefix, memoryview]:
    prefix = known or decode_prefix(frame, max_header=max_header)
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
    if code == EXT_UNTYPED and len(data) > EXT_INDEX.size:
        return _untyped(tensors, EXT_INDEX.unpack_from(data)[0], data[EXT_INDEX.size :])
    if code == EXT_COMPLEX and len(data) == EXT_PAIR.size:
        return complex(*EXT_PAIR.unpack(data))
    if code == EXT_BIG and 0 < len(data) <= MAX_INT_BYTES:
        return int.from_bytes(data, "little", signed=True)
    raise WireError(f"unknown msgpack extension {code} with {len(data)} bytes")


def _untyped(tensors: list[Array], index: int, name: bytes) -> Literal:
    """Numbers without a dtype.

    Raises:
        WireError: There is no such tensor, or its dtype or the other one is none of those that they may have.
    """
    numbers = tensors[index] if index < len(tensors) else None
    alone = {dtype.name.encode(): dtype for dtype in FLOATING}.get(name)
    if numbers is None or numbers.dtype.name not in ("int64", "uint64", "float64") or alone is None:
        raise WireError(
            "numbers without a dtype are a tensor of int64, uint64 or float64, and the name of a dtype of floats; "
            f"found tensor {index} and {name!r:.40}"
        )
    return untyped(numbers, alone)


class _Reference(int):
    """The number of a tensor in an answer."""


def _reference(code: int, data: bytes) -> Any:
    if code == EXT_TENSOR and len(data) == EXT_INDEX.size:
        return _Reference(EXT_INDEX.unpack(data)[0])
    return _extension([], code, data)


class _Unpacker(NamedTuple):
    """An unpacker of msgpack, and the tensors that what it unpacks may refer to.

    It refers to the tensors and not to a reader: a cycle would keep the frame until a garbage collection.
    """

    stream: Any
    tensors: list[Array]


def _unpacker(size: int, hook: Callable[[int, bytes], Any], tensors: list[Array]) -> _Unpacker:
    """Returns an unpacker of headers up to this size. The length of lists is bounded by it.

    Args:
        size: Bytes.
        hook: Returns the value of an extension.
        tensors: Those that the hook returns.
    """
    most = min(size, MAX_ITEMS)
    stream = msgpack.Unpacker(
        None, max_buffer_size=size, use_list=False, ext_hook=hook, max_array_len=most, max_map_len=most
    )
    return _Unpacker(stream, tensors)


def _batch_unpacker(size: int) -> _Unpacker:
    tensors: list[Array] = []
    return _unpacker(size, partial(_extension, tensors), tensors)


#: Unpackers of small headers that nothing uses: to make one fills 40 KB with zeros. Threads share it without a lock.
_unused: Final[list[_Unpacker]] = []


class _FrameReader:
    """Unpacks one header. The length of lists is bounded, so that a short header cannot declare a long list."""

    __slots__ = ("_begin", "_length", "_stream", "_unpacker", "next", "tensors")

    def __init__(self, header: memoryview, unpacker: _Unpacker | None = None) -> None:
        self._length = len(header)
        if unpacker is not None:
            self._unpacker = unpacker
        elif self._length > _SMALL:
            self._unpacker = _batch_unpacker(self._length)
        else:
            try:
                self._unpacker = _unused.pop()
            except IndexError:
                self._unpacker = _batch_unpacker(_SMALL)
        self._stream, self.tensors = self._unpacker
        self._begin = self._stream.tell()
        self._stream.feed(header)
        self.next = self._stream.unpack

    def count(self) -> int:
        """The length of the next list; its members follow, each by `next`."""
        return int(self._stream.read_array_header())

    def members(self) -> Iterable[Any]:
        """The members of the next list, which alone may be longer than `MAX_ITEMS`."""
        if self._length > _SHORT:
            return (self.next() for _ in range(self.count()))
        value = self.next()
        if value.__class__ is not tuple:
            raise TypeError(f"a list is needed, found {value!r:.60}")
        return value

    def done(self) -> None:
        """Checks that the header has no further content. The reader cannot be used afterwards."""
        end = self._stream.tell() - self._begin
        if end != self._length:
            raise WireError(f"the header has {self._length} bytes, its content ends at byte {end}")
        if self._length <= _SMALL:
            self.tensors.clear()
            _unused.append(self._unpacker)


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


def decode_request(
    buffer: Buffer,
    structures: Structures,
    *,
    copy_below: int = 0,
    max_header: int = MAX_HEADER,
    prefix: Prefix | None = None,
) -> Batch | Repetition:
    """Decodes the batch in a frame, whole or repeated; the structure of one that is marked so is kept.

    Args:
        buffer: As of `decode_batch`.
        structures: Those that the receiver keeps.
        copy_below: As of `decode_batch`.
        max_header: As of `decode_batch`.
        prefix: The frame's, if it was decoded already.

    Raises:
        WireError, BadCommandError: As of `decode_batch`; or the contents do not fit the structure.
        UnknownStructureError: The repeated batch names a structure that is not kept.
    """
    frame = memoryview(buffer).toreadonly()
    decode = _repeated if _is_repeated(frame) else _batch
    return _guarded(decode, frame, copy_below, max_header, structures, prefix)  # type: ignore[no-any-return]


def _is_repeated(frame: memoryview) -> bool:
    return frame.nbytes > _KIND_AT and frame[_KIND_AT] == FrameKind.REPEATED


def _open(
    frame: memoryview, kind: FrameKind, copy_below: int, max_header: int, known: Prefix | None
) -> tuple[Prefix, int, _FrameReader]:
    """The prefix, the number of the header's parts, and a reader of the parts after the table of tensors."""
    prefix, header = _header(frame, kind, max_header, known)
    reader = _FrameReader(header)
    parts = reader.count()
    expected = REPEATED_PARTS if kind is FrameKind.REPEATED else PARTS
    if parts != expected and not (parts == WITH_OPTIONS and kind is FrameKind.BATCH):
        raise WireError(f"the header must be a list of {expected} parts, found {parts}")
    rows = [*reader.members()]
    reader.tensors += read(frame, rows, PREFIX_LENGTH + len(header), copy_below=copy_below)
    return prefix, parts, reader


def _batch(
    frame: memoryview,
    copy_below: int,
    max_header: int,
    structures: Structures | None = None,
    known: Prefix | None = None,
) -> Batch:
    prefix, parts, reader = _open(frame, FrameKind.BATCH, copy_below, max_header, known)
    decoded = tuple(commands_of(reader.members()))
    releases = ids_of(reader.members(), "a release")
    temporaries: tuple[Id, ...] = ()
    on_failure = OnFailure.POISON
    number: int | None = None
    replace = False
    if parts == WITH_OPTIONS:
        temporaries, on_failure, number, replace = _options(reader.next(), prefix.client)
    reader.done()
    batch = Batch(decoded, releases, prefix.client, prefix.seq, prefix.nonce, temporaries, on_failure, replace)
    if number is not None and structures is not None:
        structures.keep(batch, number, prefix.header_length)
    return batch


def _options(part: Any, client: int) -> tuple[tuple[Id, ...], OnFailure, int | None, bool]:
    """The fourth part of a header: [temporaries, on_failure], then the number of the structure, then `replace`."""
    if type(part) is not tuple or len(part) not in (2, 3, 4) or type(part[0]) is not tuple:
        raise WireError(
            f"the header's part 4 must be [temporary ids, on_failure, structure, replace], found {part!r:.60}"
        )
    temporaries, on_failure, *others = part
    if type(on_failure) is not str or on_failure not in set(OnFailure):
        raise BadCommandError(f"on_failure is {', '.join(OnFailure)}; found {on_failure!r:.60}")
    replace = others[1] if len(others) > 1 else False
    if type(replace) is not bool or (replace and others[0] is not None):
        raise WireError(f"replace is true or false, and a batch that replaces has no structure; found {others!r:.60}")
    number = _structure_number(others[0], client) if others and others[0] is not None else None
    return ids_of(temporaries, "a temporary"), OnFailure(on_failure), number, replace


def _structure_number(value: Any, client: int) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise WireError(f"the number of a structure is an integer from 0 up, of 63 bits; found {value!r:.60}")
    if not client:
        raise WireError(f"structure {value} has no client: only attached clients have structures")
    return value


def _repeated(
    frame: memoryview, copy_below: int, max_header: int, structures: Structures, known: Prefix | None
) -> Repetition:
    prefix, _, reader = _open(frame, FrameKind.REPEATED, copy_below, max_header, known)
    number = _structure_number(reader.next(), prefix.client)
    taken, created, numbers = [*reader.members()], [*reader.members()], [*reader.members()]
    tensors = [*reader.tensors]
    reader.done()
    structure = structures.find(prefix.client, number)
    contents = contents_of(structure, tuple(taken), tuple(created), tuple(numbers), tensors)
    return Repetition(structure, contents, prefix.client, prefix.seq, prefix.nonce)


def decode_answer(buffer: Buffer, *, max_header: int = MAX_HEADER) -> tuple[Answer, Served]:
    """Decodes the answer in a frame, and what the server says about it. Arrays are read-only views of the frame.

    Raises:
        WireError: The bytes are not an answer, or a length, offset or checksum in them is wrong.
    """
    return _guarded(_answer, memoryview(buffer).toreadonly(), max_header)  # type: ignore[no-any-return]


def _answer(frame: memoryview, max_header: int) -> tuple[Answer, Served]:
    _, header = _header(frame, FrameKind.ANSWER, max_header)
    parts = _answer_parts(header)
    if len(parts) != PARTS:
        raise WireError(f"the header must be a list of {PARTS} parts, found {len(parts)}")
    tensors, rows, (failed, bytes_in_use, expires_at, queue_seconds, compute_seconds, *further) = parts
    if tensors.__class__ is not tuple or rows.__class__ is not tuple:
        raise WireError("tensors and results must be lists")
    arrays = read(frame, tensors, PREFIX_LENGTH + len(header), copy_below=0)
    results = tuple([_result(arrays, *row) for row in rows])
    failure = None if failed is None else Failure(*failed)
    others = tuple([Failure(*row) for row in further[0]]) if further else ()
    return Answer(results, failure, bytes_in_use, others), Served(expires_at, queue_seconds, compute_seconds)


def _answer_parts(header: memoryview) -> Sequence[Any]:
    """Returns the parts of an answer's header; in the place of tensors are their numbers."""
    size = len(header)
    if size <= _SHORT:
        most = max(size, 1)
        parts = msgpack.unpackb(header, use_list=False, ext_hook=_reference, max_array_len=most, max_map_len=most)
        return parts if parts.__class__ is tuple else ()
    reader = _FrameReader(header, _unpacker(size, _reference, []))
    parts = [tuple(reader.members()) for _ in range(reader.count())]
    reader.done()
    return parts


def _result(tensors: list[Array], code: int, index: int, *parts: Any) -> Result:
    if code == FETCHED:
        name, array, spec, complete = parts
        return Fetched(index, name, _tensor(tensors, array), _spec(*spec), complete)
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
        arrays = SlicesArrays(_tensor(tensors, values), _tensor(tensors, indices), dense)
        return Fetched(index, name, arrays, dense, True)
    raise WireError(f"unknown kind of result {code!r:.60}")


def _tensor(tensors: list[Array], number: Any) -> Array:
    if number.__class__ is not _Reference:
        raise WireError(f"a result needs a tensor, found {number!r:.60}")
    if number >= len(tensors):
        raise WireError(f"a result names tensor {number:d}, the frame has {len(tensors)}")
    return tensors[number]


def _spec(dtype: str, shape: tuple[int, ...]) -> Spec:
    return Spec.of(shape, dtype_of(dtype))
