"""The frame's prefix: the first 64 bytes, which tell a receiver what comes and how much, before it takes any of it.

Also what both directions share: the numbers of the commands and of the results, and the limits.
"""

from __future__ import annotations

import enum
import struct
from typing import Final, NamedTuple

from teletape_engine.commands.schema import MAX_ITEMS as MAX_ITEMS
from teletape_wire.errors import FrameTooLargeError, UnsupportedVersionError, WireError
from teletape_wire.tensors import Buffer

FRAME_TYPE: Final = "application/vnd.teletape.frame"
VERSION: Final = 1
#: Not text, so that a transfer that mends line ends breaks it visibly (as PNG's does).
MAGIC: Final = b"\x89TAPE\r\n\x1a"
PREFIX_LENGTH: Final = 64
MAX_HEADER: Final = 64 << 20

PREFIX: Final = struct.Struct("<8sHHIQQ16sQQ")
NO_NONCE: Final = bytes(16)

#: msgpack extension types: a tensor's index, a complex number, an integer of more than 64 bits.
EXT_TENSOR, EXT_COMPLEX, EXT_BIG = 1, 2, 3
EXT_INDEX: Final = struct.Struct("<I")
EXT_PAIR: Final = struct.Struct("<dd")
MAX_INT_BYTES: Final = 130  #: No larger integer becomes a float.

#: The number of each command. A number never gets another meaning.
CODES: Final = {
    "constant": 1,
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
    "function": 13,
    "call": 14,
    "fetch": 15,
    "slices.component": 16,
    "tape.describe": 17,
    "tape.graph": 18,
    "check_gradients": 19,
    "tape.check_gradients": 20,
    "explain": 23,
    "while": 40,
    "cond": 41,
    "scan": 42,
    "jacobian": 30,
    "batch_jacobian": 31,
    "vjps": 32,
    "hessian": 33,
    "hvp": 34,
    "custom": 60,
    "backward.begin": 61,
    "backward.cotangents": 62,
    "backward.resume": 63,
    "backward.end": 64,
    "slices": 65,
    "custom.call": 66,
    "custom.function": 67,
    "accumulator.open": 50,
    "accumulator.close": 51,
    "accumulator.resume": 52,
    "jvp": 53,
}
OP: Final = CODES["op"]

#: The kinds of result in an answer.
FETCHED, SLICES, KINDS, MADE, TOLD = 1, 2, 3, 4, 5


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
    queue_seconds: float = 0.0
    compute_seconds: float = 0.0


def decode_prefix(data: Buffer, *, max_header: int = MAX_HEADER, max_total: int | None = None) -> Prefix:
    """Reads and checks the first 64 bytes of a frame.

    Raises:
        WireError: Too short, not a frame, of another version, over a limit, or with lengths that contradict.
    """
    if len(data) < PREFIX_LENGTH:
        raise WireError(f"a frame begins with a prefix of {PREFIX_LENGTH} bytes, found {len(data)}")
    magic, version, kind, crc, client, seq, nonce, header_length, total = PREFIX.unpack_from(data)
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
    return Prefix(FrameKind(kind), client, seq, b"" if nonce == NO_NONCE else nonce, crc, header_length, total)
