"""The form of a log: a head, and records after it. Reading is pure: bytes in, records and what was cut out.

head     magic, its length, its CRC32, msgpack
record   length of the payload, CRC32, number, number of the last record that was surely on the disk, kind; payload

Everything begins at a multiple of 8. After the last record are zeros, which were reserved: the file ends at a multiple
of 1 MiB. One that ends elsewhere, and not after zeros, was cut short.
"""

from __future__ import annotations

import enum
import functools
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgpack  # type: ignore[import-untyped]  # ships no types
import numpy as np

from teletape_engine.catalogue.describe import digest
from teletape_engine.errors import TeletapeError
from teletape_server import version
from teletape_wire.checksum import crc32
from teletape_wire.tensors import Buffer

LOG_LOST: Final = "its log is lost, or the beginning of it"  #: Why a session that had a log is damaged.
MAGIC: Final = b"TTJ1"
_HEAD: Final = struct.Struct("<4sII")
_RECORD: Final = struct.Struct("<IIQQB7x")
_COVERED: Final = struct.Struct("<IQQB")  # what of a record's own fields its CRC32 covers, before the payload
_RESERVED: Final = 1 << 20  # bytes, of which the length of a file is a multiple
_ALIGNMENT: Final = 8  # of which the length of a record's own fields is a multiple
_PADDING: Final = [bytes(count) for count in range(_ALIGNMENT)]
DIGEST_BYTES: Final = 16 << 20  #: Of the variables, of which a checksum is made.


@functools.cache
def versions() -> dict[str, Any]:
    """Returns what the last bits of a result may depend on: a log is run again with the same alone.

    The catalogue of this process must have all ops.
    """
    config = np.show_config(mode="dicts")
    blas, simd = config["Build Dependencies"]["blas"], config["SIMD Extensions"]
    return {
        "teletape": version(),
        "catalogue": digest(),
        "numpy": np.__version__,
        "blas": f"{blas.get('name')} {blas.get('version')}",
        "cpu": " ".join(simd.get("found", [])),
    }


class Kind(enum.IntEnum):
    """What a record has."""

    REQUEST = 1  #: The batches of one request, or of a part of a long one, with what came of them.
    STRUCTURE = 2  #: The structure of a batch that records after this one repeat.
    EPOCH = 3  #: Another process goes on from here.
    DIGEST = 4  #: A checksum of the variables.


class Record(NamedTuple):
    """One record.

    Attributes:
        number: One more than that of the record before.
        kind: What it has.
        payload: The rest, as `unpacked` reads it.
        begin: Where in the log it begins.
        synced: The number of the last record that was surely on the disk when it was written.
    """

    number: int
    kind: Kind
    payload: memoryview
    begin: int
    synced: int


class Log(NamedTuple):
    """A log that was read.

    Attributes:
        head: Facts about the log.
        records: In order.
        end: Where the last one ends; the next begins there.
        cut: Bytes after that which belong to no whole record: a write that was under way.
    """

    head: dict[str, Any]
    records: list[Record]
    end: int
    cut: int


class DamagedError(Exception):
    """Raised for files that are not as they were written, and not only at their end: nothing is lost by a power cut so.

    Args:
        why: What is wrong, and where.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class DivergedError(DamagedError):
    """Raised for a log that gives other values than it gave when it was written, though all of it can be read."""


class SessionDamagedError(TeletapeError):
    """Raised for a session that cannot be brought back from its files, which stay as they are.

    The detail `state` says whether it is `damaged` or `diverged`.
    """

    code = "session_damaged"


def packed(value: Any) -> bytes:
    """Returns JSON-able data, in which bytes may be, as a payload."""
    return msgpack.packb(value, default=str)  # type: ignore[no-any-return]


def packer() -> Callable[[Any], bytes]:
    """Returns what does the same as `packed` in one thread, and is made once."""
    return msgpack.Packer(default=str).pack  # type: ignore[no-any-return]


def unpacked(payload: Buffer) -> Any:
    """Returns the data of a payload.

    Raises:
        DamagedError: It is none.
    """
    try:
        return msgpack.unpackb(payload, strict_map_key=False)
    except (ValueError, msgpack.exceptions.UnpackException) as error:
        raise DamagedError(f"a record whose checksum is right cannot be read ({error})") from None


def written_head(facts: Mapping[str, Any]) -> bytes:
    """Returns the head of a log with these facts."""
    data = packed(facts)
    return _padded(_HEAD.pack(MAGIC, len(data), crc32(data)) + data)


def written_record(number: int, synced: int, kind: Kind, payload: bytes) -> bytes:
    """Returns a record.

    Args:
        number: Its number.
        synced: The number of the last record that would survive a power cut when this one is written.
        kind: What it has.
        payload: See `packed`.
    """
    length = len(payload)
    checksum = crc32(_COVERED.pack(length, number, synced, kind) + payload)
    return _RECORD.pack(length, checksum, number, synced, kind) + payload + _PADDING[-length % _ALIGNMENT]


def with_reserve(end: int) -> int:
    """Returns how long the file of a log is that has bytes up to `end`: half a MiB at least is reserved."""
    return -(-(end + _RESERVED // 2) // _RESERVED) * _RESERVED


def length_of(payload: int) -> int:
    """Returns the bytes of a record with a payload of that many."""
    return _aligned(_RECORD.size + payload)


def has_head(data: Buffer) -> bool:
    """Returns whether the first bytes of a log have its whole head."""
    return _read_head(memoryview(data))[0] is not None


def has_records(data: Buffer) -> bool:
    """Returns whether the first bytes of a log have anything after its head, or no whole head."""
    head, position = _read_head(memoryview(data))
    return head is None or any(memoryview(data)[position : position + _RECORD.size])


def read(data: Buffer, *, to_damage: bool = False) -> Log | None:
    """Reads a log; None: not even its head was written, so that there is nothing in it.

    Args:
        data: The log.
        to_damage: Whether damage is no error: the records before it are returned.

    Raises:
        DamagedError: It is damaged before its end.
    """
    view = memoryview(data).toreadonly()
    head, position = _read_head(view)
    if head is None:
        if _records_after(view, 0, 0):
            raise DamagedError("the head of the log cannot be read, and records follow it")
        return None
    records: list[Record] = []
    number = head["first"]
    while (whole := _record_at(view, position)) is not None and whole[0].number == number:
        record, position = whole
        records.append(record)
        number += 1
    cut = len(bytes(view[position:]).rstrip(b"\0"))
    is_short = len(view) % _RESERVED and (cut or len(view) < position + _RECORD.size)
    if is_short and not to_damage:
        raise DamagedError(
            f"the log ends at byte {len(view)}, in the middle of what was written: its file was cut short after record "
            f"{number - 1}"
        )
    if cut and not to_damage:
        for at, later, synced in _records_after(view, position, number):
            if synced >= number:
                raise DamagedError(
                    f"record {number} at byte {position} of the log cannot be read, and record {later} at byte {at} "
                    f"says that it was on the disk"
                )
    return Log(head, records, position, cut)


def _read_head(view: memoryview) -> tuple[dict[str, Any] | None, int]:
    if len(view) < _HEAD.size:
        return None, 0
    magic, length, checksum = _HEAD.unpack_from(view)
    data = view[_HEAD.size : _HEAD.size + length]
    if magic != MAGIC or len(data) < length or crc32(data) != checksum:
        return None, 0
    return unpacked(data), _aligned(_HEAD.size + length)


def _record_at(view: memoryview, position: int) -> tuple[Record, int] | None:
    """The record at a position, and where it ends; None: there is none."""
    if position + _RECORD.size > len(view):
        return None
    length, checksum, number, synced, kind = _RECORD.unpack_from(view, position)
    begin = position + _RECORD.size
    if kind not in set(Kind) or begin + length > len(view):
        return None
    payload = view[begin : begin + length]
    if crc32(_COVERED.pack(length, number, synced, kind) + bytes(payload)) != checksum:
        return None
    return Record(number, Kind(kind), payload, position, synced), position + length_of(length)


def _records_after(view: memoryview, position: int, number: int) -> list[tuple[int, int, int]]:
    """The records somewhere after one that cannot be read: the position, the number, and what was on the disk."""
    later = []
    at = position + _ALIGNMENT
    last = position + len(bytes(view[position:]).rstrip(b"\0"))
    while at < last:
        record = _record_at(view, at)
        if record is not None and record[0].number >= number:
            later.append((at, record[0].number, record[0].synced))
            at = record[1]
        else:
            at += _ALIGNMENT
    return later


def _aligned(length: int) -> int:
    return -(-length // _ALIGNMENT) * _ALIGNMENT


def _padded(data: bytes) -> bytes:
    return data + bytes(_aligned(len(data)) - len(data))
