"""Writes a log, one record after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from teletape_server.durable.disk import File
from teletape_server.durable.records import Kind, length_of, written_head, written_record

_MARGIN: Final = 64  # bytes that a record takes at most besides its payload
_RESERVED: Final = 1 << 20  #: Bytes that are reserved at a time, so that a write changes nothing but bytes.


class Journal:
    """A log that is written.

    Args:
        file: The file.
        end: Where the next record begins.
        number: Its number.
        synced: Returns the number of the last record that would survive a power cut.

    Attributes:
        end: Where the next record begins.
        number: Its number.
        broken: Why a write has failed: from then on nothing is written, since the log's end is not known.
    """

    def __init__(self, file: File, end: int, number: int, synced: Callable[[], int] = lambda: 0) -> None:
        self._file, self._synced = file, synced
        self.end, self.number = end, number
        self._reserved = end
        self.broken = ""

    @classmethod
    def begin(cls, file: File, facts: dict[str, object], synced: Callable[[], int] = lambda: 0) -> Journal:
        """Returns a new log, whose head is on the disk.

        Args:
            file: The file, which is empty.
            facts: Of the head; `first` is the number of the first record.
            synced: See above.

        Raises:
            OSError: It could not be written.
        """
        head = written_head(facts)
        file.allocate(len(head) + _RESERVED)
        file.write(0, [head])
        file.sync()
        return cls(file, len(head), int(str(facts["first"])), synced)

    def reserve(self, payload: int) -> None:
        """Reserves space for a record with a payload of that many bytes.

        Raises:
            OSError: There is too little: the request that it is for must not run.
        """
        if self.broken:
            raise OSError(self.broken)
        if self.end + payload + _MARGIN <= self._reserved:
            return
        end = self.end + length_of(payload)
        if end > self._reserved:
            self._file.allocate(end + _RESERVED)
            self._reserved = end + _RESERVED

    def append(self, kind: Kind, payload: bytes) -> int:
        """Writes a record, and returns its number. It survives the end of every process from now on.

        Raises:
            OSError: It was not written, and nothing will be.
        """
        if self.broken:
            raise OSError(self.broken)
        data = written_record(self.number, self._synced(), kind, payload)
        try:
            if self.end + len(data) > self._reserved:
                self.reserve(len(payload))
            self._file.write(self.end, [data])
        except OSError as error:
            self.broken = f"the log of the session could not be written ({error})"
            raise
        self.end += len(data)
        self.number += 1
        return self.number - 1

    def sync(self) -> None:
        """Returns when all records would survive a power cut.

        Raises:
            OSError: That is not certain; nothing will be written any more.
        """
        try:
            self._file.sync()
        except OSError as error:
            self.broken = f"the log of the session could not be written ({error})"
            raise
