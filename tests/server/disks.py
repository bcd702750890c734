"""A disk that loses what it may: everything that was not synced, in any part, in any order, torn between sectors."""

import errno
import random
from collections.abc import Sequence

SECTOR = 512


class SimulatedFile:
    """Implements `File`.

    Args:
        rng: Decides what a power cut leaves.
        space: Bytes that may be allocated or written; None: any.

    Attributes:
        fails: Whether writes and syncs fail from now on.
    """

    def __init__(self, rng: random.Random, data: bytes = b"", space: int | None = None) -> None:
        self._rng, self._space = rng, space
        self._durable = bytearray(data)
        self._seen = bytearray(data)
        self._pending: list[tuple[int, bytes]] = []
        self._ends: list[int] = []
        self.fails = False

    def read(self, offset: int = 0, length: int | None = None) -> bytes:
        return bytes(self._seen[offset : None if length is None else offset + length])

    def write_parts(self, offset: int, parts: Sequence[bytes | memoryview]) -> None:
        self.write(offset, b"".join(parts))

    def write(self, offset: int, data: bytes | memoryview) -> None:
        self._check()
        fits = len(data) if self._space is None else max(self._space - offset, 0)
        self._put(self._seen, offset, bytes(data[:fits]))
        self._pending.append((offset, bytes(data[:fits])))
        if fits < len(data):
            raise OSError(errno.ENOSPC, "no space")

    def allocate(self, end: int) -> None:
        self._check()
        if self._space is not None and end > self._space:
            raise OSError(errno.ENOSPC, "no space")
        self._seen.extend(bytes(max(end - len(self._seen), 0)))
        self._ends.append(len(self._seen))

    def truncate(self, end: int) -> None:
        self._check()
        del self._seen[end:]
        self._durable = bytearray(self._seen)
        self._pending = []

    def sync(self) -> None:
        self._check()
        self._durable = bytearray(self._seen)
        self._pending, self._ends = [], []

    def _check(self) -> None:
        if self.fails:
            raise OSError(errno.EIO, "the disk has failed")

    @staticmethod
    def _put(to: bytearray, offset: int, data: bytes) -> None:
        to.extend(bytes(max(offset + len(data) - len(to), 0)))
        to[offset : offset + len(data)] = data

    def after_kill(self) -> "SimulatedFile":
        """The file after the end of every process: all that was written is there."""
        return SimulatedFile(self._rng, bytes(self._seen), self._space)

    def after_power_cut(self) -> "SimulatedFile":
        """The file after a power cut: of what was not synced, any sectors are there."""
        left = bytearray(self._durable)
        if self._rng.random() < 0.5:  # the length is known before the bytes are there
            left.extend(bytes(max(len(self._seen) - len(left), 0)))
        for offset, data in self._rng.sample(self._pending, self._rng.randint(0, len(self._pending))):
            position = 0
            while position < len(data):
                end = min(SECTOR - (offset + position) % SECTOR + position, len(data))
                if self._rng.random() < 0.7:
                    self._put(left, offset + position, data[position:end])
                position = end
        if self._ends:  # its length is one that it has been given
            del left[max(end for end in (len(self._durable), *self._ends) if end <= len(left)) :]
        return SimulatedFile(self._rng, bytes(left), self._space)
