"""The large tensors of a session's log and base, each content once, in one file that both refer to.

A tensor that is written again is found by its length and CRC32, which a frame has in its header, and compared: to read
40 MB takes a tenth of the time that writing them takes. What neither the base nor its log refers to any more is written
over, once the next base is on the disk.
"""

from __future__ import annotations

import contextlib
from bisect import insort
from typing import Any, Final, NamedTuple

import numpy as np

from teletape_server.durable.disk import File
from teletape_server.durable.records import DamagedError
from teletape_wire.checksum import crc32
from teletape_wire.tensors import Buffer

#: Bytes from which on a tensor is a blob: then writing it here, once, costs less than copying it into a record.
LEAST: Final = 256 << 10
_ALIGNMENT: Final = 4096
_PIECE: Final = 1 << 20  # bytes that are compared, or read, at a time


class Place(NamedTuple):
    """Where a blob is.

    Attributes:
        offset: Where it begins in the file.
        length: Its bytes.
        checksum: Their CRC32.
    """

    offset: int
    length: int
    checksum: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.offset + self.length


class BlobError(DamagedError):
    """Raised for a blob that is not as it was written, or not there.

    Args:
        place: Where it should be.
    """

    def __init__(self, place: Place) -> None:
        super().__init__(
            f"blob {place.checksum:08x} of {place.length} bytes, at byte {place.offset} of the file of blobs, is not "
            "as it was written"
        )


class Blobs:
    """The file of a session's blobs.

    Args:
        file: The file.

    Attributes:
        added: Bytes written since the last base.
        nbytes: Of all blobs that are in use.
    """

    def __init__(self, file: File) -> None:
        self._file = file
        self._places: list[Place] = []  # by offset; none overlap
        self._by_content: dict[tuple[int, int], list[Place]] = {}
        self._recent: set[Place] = set()  # what the base that is being written refers to, and the log after it
        self._before: tuple[list[Place], int] = ([], 0)  # that base: the places, and what was added
        self._is_synced = True
        self.added = self.nbytes = 0

    def put(self, data: memoryview, checksum: int | None = None) -> Place:
        """Returns where bytes are, which are written if they are nowhere yet.

        Args:
            data: The bytes.
            checksum: Their CRC32, if it is known.

        Raises:
            OSError: They could not be written.
        """
        checksum = crc32(data) if checksum is None else checksum
        for place in self._by_content.get((len(data), checksum), ()):
            if self._has(place, data):
                self._recent.add(place)
                return place
        place = Place(self._free(len(data)), len(data), checksum)
        self._is_synced = False
        self._file.write(place.offset, data)
        self.added += place.length
        self._note(place)
        return place

    def get(self, row: Any) -> memoryview:
        """Returns the bytes at a place, which is noted as in use.

        Args:
            row: The place, as it was packed.

        Raises:
            BlobError: They are not those that were written.
        """
        data = memoryview(bytearray(Place(*row).length))
        self.read_into(row, data)
        return data

    def read_into(self, row: Any, to: memoryview) -> None:
        """Reads the bytes at a place, which is noted as in use, into memory.

        Args:
            row: The place, as it was packed.
            to: As many bytes.

        Raises:
            BlobError: They are not those that were written; `to` has what is there, and then zeros.
        """
        place, checksum = Place(*row), 0
        for begin in range(0, place.length, _PIECE):  # each is checked while the processor has it at hand
            piece = to[begin : begin + _PIECE]
            count = self._file.read_into(place.offset + begin, piece)
            piece[count:] = bytes(len(piece) - count)
            checksum = crc32(piece, checksum)
        if checksum != place.checksum:
            raise BlobError(place)
        if place not in self._recent:
            self._note(place)

    def write_again(self, place: Place) -> None:
        """Writes the bytes at a place there once more, so that a sync brings them to the disk for certain.

        Raises:
            BlobError: They are not those that were written.
            OSError: They could not be written.
        """
        self._is_synced = False
        self._file.write(place.offset, self.get(place))

    def begin_base(self, *, doubtful: bool) -> None:
        """From now on a base is written: what is put until `end_base` stays after that, or goes with `give_up_base`.

        Args:
            doubtful: Whether it is not known that what is there can be brought to the disk: it is written elsewhere.
        """
        self._recent, self._before = set(), ([*self._places], self.added)
        if doubtful:
            self._by_content = {}

    def end_base(self) -> None:
        """Notes that the base is on the disk, and the log before it is gone: what only that referred to is free."""
        self._have_only(sorted(self._recent))
        self.added = 0

    def give_up_base(self, base: File) -> None:
        """Gives back the space of a base that could not be written, and of what was put for it: the log goes on."""
        with contextlib.suppress(OSError):
            base.truncate(0)
        places, self.added = self._before
        self._have_only(places)

    def _have_only(self, places: list[Place]) -> None:
        self._places, self._by_content, self.nbytes = [], {}, 0
        for place in places:
            self._note(place)
        with contextlib.suppress(OSError):  # it only takes space
            self._file.truncate(self._places[-1].end if self._places else 0)

    def reserve(self, nbytes: int) -> None:
        """Reserves space for that many bytes in one piece.

        Raises:
            OSError: There is too little.
        """
        self._file.allocate(self._free(nbytes) + nbytes)

    def sync(self) -> None:
        """Returns when what was put would survive a power cut.

        Raises:
            OSError: That is not certain.
        """
        if not self._is_synced:
            self._is_synced = True  # before it: another thread may put something meanwhile
            try:
                self._file.sync()
            except OSError:
                self._is_synced = False
                raise

    def _note(self, place: Place) -> None:
        insort(self._places, place)
        self.nbytes += place.length
        self._by_content.setdefault(place[1:], []).append(place)
        self._recent.add(place)

    def _free(self, length: int) -> int:
        """The first offset where that many bytes are free."""
        offset = 0
        for place in self._places:
            if place.offset - offset >= length:
                break
            offset = -(-place.end // _ALIGNMENT) * _ALIGNMENT
        return offset

    def _has(self, place: Place, data: memoryview) -> bool:
        """Whether a place has these bytes."""
        wanted = np.frombuffer(data, np.uint8)
        for begin in range(0, place.length, _PIECE):
            piece = self._file.read(place.offset + begin, min(_PIECE, place.length - begin))
            if not np.array_equal(np.frombuffer(piece, np.uint8), wanted[begin : begin + _PIECE]):
                return False
        return True


def parts_of(frame: Buffer, tensors: list[tuple[int, int, int]], blobs: Blobs) -> list[Any]:
    """A frame as a list of bytes and of places of the large tensors in it.

    Args:
        frame: The frame.
        tensors: Offset, length and CRC32 of those that have `LEAST` bytes or more, in order.
        blobs: Where they are put.

    Raises:
        OSError: They could not be written.
    """
    view, parts, end = memoryview(frame), [], 0
    for offset, length, checksum in tensors:
        parts += [bytes(view[end:offset]), [*blobs.put(view[offset : offset + length], checksum)]]
        end = offset + length
    return [*parts, bytes(view[end:])]


def frame_of(parts: Any, blobs: Blobs) -> bytes:
    """The frame of `parts_of`.

    Raises:
        BlobError: A blob is not as it was written.
    """
    return b"".join([blobs.get(part) if part.__class__ is list else part for part in parts])
