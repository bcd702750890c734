"""The prefix of a frame: its first 64 bytes, from which a receiver learns what follows and how long it is.

Also what both directions share: the numbers of commands and of results, and the limits.
"""

from __future__ import annotations

import enum
import struct
from typing import Final, NamedTuple

import msgpack  # type: ignore[import-untyped]  # ships no types

from teletape_engine.commands.schema import MAX_ITEMS as MAX_ITEMS
from teletape_wire.errors import FrameTooLargeError, UnsupportedVersionError, WireError
from teletape_wire.tensors import Buffer, aligned

FRAME_TYPE: Final = "application/vnd.teletape.frame"
VERSION: Final = 1
#: Not text: a transfer that converts line ends changes it, so that the damage shows (as in PNG).
MAGIC: Final = b"\x89TAPE\r\n\x1a"
PREFIX_LENGTH: Final = 64
MAX_HEADER: Final = 64 << 20

PREFIX: Final = struct.Struct("<8sHHIQQ16sQQ")
NO_NONCE: Final = bytes(16)

#: Parts of a header: the table of tensors, commands or results, and the rest; a batch may have a fourth: its options.
PARTS, WITH_OPTIONS = 3, 4
#: Those of a repeated batch: the table, the structure's number, ids from before, new ids, numbers.
REPEATED_PARTS: Final = 5

#: msgpack extension types: a tensor's index, a complex number, an integer of more than 64 bits, and numbers without a
#: dtype: the index of a tensor that has them, and the name of the dtype that they take where they meet no tensor.
EXT_TENSOR, EXT_COMPLEX, EXT_BIG, EXT_UNTYPED = 1, 2, 3, 4
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
    "client.attach": 21,
    "client.detach": 22,
    "context.end": 24,
    "tape.own": 25,
    "profile": 26,
    "function": 13,
    "call": 14,
    "fetch": 15,
    "slices.component": 16,
    "tape.describe": 17,
    "tape.graph": 18,
    "check_gradients": 19,
    "tape.check_gradients": 20,
    "explain": 23,
    "gradient_statistics": 27,
    "while": 40,
    "cond": 41,
    "scan": 42,
    "value_and_gradient": 43,
    "map": 44,
    "jacobian": 30,
    "batch_jacobian": 31,
    "vjps": 32,
    "hessian": 33,
    "hvp": 34,
    "sparse_jacobian": 35,
    "sparse_hessian": 36,
    "estimate": 37,
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
FETCHED, SLICES, KINDS, SPECS, FACTS = 1, 2, 3, 4, 5


class FrameKind(enum.IntEnum):
    """What a frame holds."""

    BATCH = 1
    ANSWER = 2
    REPEATED = 3


_KINDS: Final = tuple(FrameKind)


class Prefix(NamedTuple):
    """The first 64 bytes of a frame.

    Attributes:
        kind: Batch or answer.
        client, seq, nonce: Of the batch, or of the batch that is answered; `nonce` has 16 bytes, or none.
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
    """A frame to send: its buffers in order, and their bytes in all. Large tensors are views, not copies."""

    buffers: list[Buffer]
    length: int


class Served(NamedTuple):
    """What a server says about an answer.

    Attributes:
        expires_at: When the session ends if it is not used, in Unix seconds.
        queue_seconds: From the batch's arrival to its start.
        compute_seconds: From its start to its end.
    """

    expires_at: float | None = None
    queue_seconds: float = 0.0
    compute_seconds: float = 0.0


def decode_prefix(data: Buffer, *, max_header: int = MAX_HEADER, max_total: int | None = None) -> Prefix:
    """Reads and checks the first 64 bytes of a frame.

    Raises:
        WireError: It is too short, not a frame, of another version, over a limit, or its lengths contradict each other.
    """
    if len(data) < PREFIX_LENGTH:
        raise WireError(f"a frame begins with a prefix of {PREFIX_LENGTH} bytes, found {len(data)}")
    magic, version, kind, crc, client, seq, nonce, header_length, total = PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise WireError(f"not a frame: it begins with {magic!r}, expected {MAGIC!r}")
    if version != VERSION:
        raise UnsupportedVersionError(f"frame version {version}, this side speaks {VERSION}", versions=[VERSION])
    if kind not in (1, 2, 3):
        raise WireError(f"a frame is of kind 1 (batch), 2 (answer) or 3 (repeated batch), found {kind}")
    if header_length > max_header:
        raise FrameTooLargeError(
            f"the header is declared with {header_length} bytes, the limit is {max_header}: send smaller batches",
            found=header_length,
            limit=max_header,
        )
    if max_total is not None and total > max_total:
        raise FrameTooLargeError(
            f"the frame is declared with {total} bytes, the limit is {max_total}", found=total, limit=max_total
        )
    if total < PREFIX_LENGTH + header_length:
        raise WireError(f"the frame is declared with {total} bytes, prefix and header alone have more")
    return Prefix(_KINDS[kind - 1], client, seq, b"" if nonce == NO_NONCE else nonce, crc, header_length, total)


def large_tensors(frame: Buffer, least: int) -> list[tuple[int, int, int]]:
    """Where the large tensors of a batch's frame are, which has been decoded before.

    Args:
        frame: The whole frame, of a whole or a repeated batch.
        least: Bytes from which on a tensor is large.

    Returns:
        The offset in the frame, the length and the CRC32 of each, in order.
    """
    if len(frame) < least:
        return []
    end = PREFIX_LENGTH + decode_prefix(frame).header_length
    header = msgpack.Unpacker(None, max_buffer_size=end)
    header.feed(frame[PREFIX_LENGTH:end])
    header.read_array_header()
    return [(aligned(end) + offset, length, crc) for _, _, offset, length, crc in header.unpack() if length >= least]
