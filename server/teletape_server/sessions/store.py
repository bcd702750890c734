"""Where the records of sessions are kept, so that sessions can be known without a host."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from teletape_server.sessions.lifecycle import Phase
from teletape_server.sessions.record import SessionRecord


class Store(Protocol):
    """Keeps records. Its methods never wait: a store on a disk or in a network writes later, in the order of calls."""

    def put(self, record: SessionRecord) -> None:
        """Keeps a record, in the place of an earlier one with its uid; the record of an ended session goes."""

    def all(self) -> list[SessionRecord]:
        """Returns the records of the sessions that have not ended, oldest first."""


class MemoryStore:
    """Implements `Store` in this process: its sessions end with the server.

    Args:
        records: Of sessions that there are from the beginning.
    """

    def __init__(self, records: Iterable[SessionRecord] = ()) -> None:
        self._records = {record.uid: record for record in records}

    def put(self, record: SessionRecord) -> None:
        """As `Store.put`."""
        if record.state.phase is Phase.ENDED:
            self._records.pop(record.uid, None)
        else:
            self._records[record.uid] = record

    def all(self) -> list[SessionRecord]:
        """As `Store.all`."""
        return [*self._records.values()]
