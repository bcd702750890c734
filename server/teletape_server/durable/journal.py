"""Writes a log, one record after the other."""

from __future__ import annotations

from teletape_server.durable.disk import File
from teletape_server.durable.records import Kind, length_of, with_reserve, written_head, written_record


class Journal:
    """A log that is written.

    Args:
        file: The file.
        end: Where the next record begins.
        number: Its number.
        reserved: Where the space ends that is reserved.

    Attributes:
        end: Where the next record begins.
        number: Its number.
        reserved: Where the space ends that is reserved.
        broken: Why a write has failed: from then on nothing is written, since the log's end is not known.
    """

    def __init__(self, file: File, end: int, number: int, *, reserved: int) -> None:
        self._file = file
        self.end, self.number = end, number
        self.reserved = reserved
        self.broken = ""

    @classmethod
    def begin(cls, file: File, facts: dict[str, object]) -> Journal:
        """Returns a new log, whose head is on the disk.

        Args:
            file: The file, which is empty.
            facts: Of the head; `first` is the number of the first record.

        Raises:
            OSError: It could not be written.
        """
        head = written_head(facts)
        file.allocate(reserved := with_reserve(len(head)))
        file.write(0, head)
        file.sync()
        return cls(file, len(head), int(str(facts["first"])), reserved=reserved)

    def reserve(self, payload: int) -> None:
        """Reserves space for a record with a payload of that many bytes.

        Raises:
            OSError: There is too little: the request that it is for must not run.
        """
        if self.broken:
            raise OSError(self.broken)
        end = self.end + length_of(payload)
        if end > self.reserved:
            reserved = with_reserve(end)
            self._file.allocate(reserved)  # so that a write changes nothing but bytes
            self.reserved = reserved

    def append(self, kind: Kind, payload: bytes, synced: int) -> int:
        """Writes a record, and returns its number. It survives the end of every process from now on.

        Args:
            kind: What it has.
            payload: That, packed.
            synced: The number of the last record that would survive a power cut.

        Raises:
            OSError: It was not written, and nothing will be.
        """
        if self.broken:
            raise OSError(self.broken)
        number, begin = self.number, self.end
        data = written_record(number, synced, kind, payload)
        end = begin + len(data)
        try:
            if end > self.reserved:
                self.reserve(len(payload))
            self._file.write(begin, data)
        except OSError as error:
            self.broken = f"the log of the session could not be written ({error})"
            raise
        self.end, self.number = end, number + 1
        return number

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
