"""The records of a provenance log by the value that they made, kept with the log from one explanation to the next.

Each record is looked at once, so that an explanation costs in an old session what it costs in a young one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from teletape_engine.locks import ReentrantLock
from teletape_engine.recording.provenance import LENGTH, Event, Record, Records, expanded
from teletape_engine.recording.values import Uid

_UPDATES = ReentrantLock()  #: Threads of a program share logs.


class LogIndex:
    """What the latest records of a log say, those of planned calls too.

    Attributes:
        records: The records of each value, by its uid, in order; the reads of one value of a variable as one.
        names: The names of variables that were read, by uid; None: it has none.
        versions: The values of each variable, in order, by its uid.
        truncated: Whether older records are lost.
    """

    def __init__(self) -> None:
        self.records: dict[Uid, list[Record]] = {}
        self.names: dict[Uid, Any] = {}
        self.versions: dict[Uid, list[Uid]] = {}
        self.truncated = False
        self.count = 0  #: Of the records.
        self._last: Record | None = None  # of the log, when it was looked at
        self._chunks: deque[Sequence[Record]] = deque()  # for each record of the log those that it stands for
        self._uses: dict[Uid, int] = {}  # how many records name a variable, by its uid
        self._reads: dict[Uid, int] = {}  # how many are the read of one value of a variable, by the value's uid

    @classmethod
    def of(cls, log: Records) -> LogIndex:
        """The index of a log, with all its records."""
        with _UPDATES:
            if log.index is None:
                log.index = cls()
            index: LogIndex = log.index
            index._update(log)
        return index

    def is_variable(self, uid: Uid) -> bool:
        """Whether a record reads or assigns a variable with this uid."""
        return uid in self._uses

    def _update(self, log: Records) -> None:
        latest: list[Sequence[Record]] = []
        count = 0
        snapshot = tuple(log)  # other threads may add records meanwhile
        for record in reversed(snapshot):
            if record is self._last and count < LENGTH:
                break
            if count >= LENGTH:
                self._clear()
                break
            latest.append(expanded(record))
            count += len(latest[-1])
        else:
            self._clear()
        for chunk in reversed(latest):
            self._chunks.append(chunk)
            self.count += len(chunk)
            for record in chunk:
                self._add(record)
        while len(self._chunks) > len(snapshot) or (self._chunks and self.count - len(self._chunks[0]) >= LENGTH):
            chunk = self._chunks.popleft()
            self.count -= len(chunk)
            for record in chunk:
                self._remove(record)
        self._last = snapshot[-1] if snapshot else None
        self.truncated = self.count >= LENGTH or len(snapshot) == log.maxlen

    def _clear(self) -> None:
        for table in (self.records, self.names, self.versions, self._chunks, self._uses, self._reads):
            table.clear()
        self.count = 0

    def _add(self, record: Record) -> None:
        what, _, output, where = record
        if what is Event.READ:
            reads = self._reads[output] = self._reads.get(output, 0) + 1
            if reads > 1:  # it says nothing new
                return
        self.records.setdefault(output, []).append(record)
        variable = _variable(record)
        if variable is not None:
            self._uses[variable] = self._uses.get(variable, 0) + 1
            if what is Event.READ:
                self.names.setdefault(variable, where)
            else:
                self.versions.setdefault(variable, []).append(output)

    def _remove(self, record: Record) -> None:
        """Of the records that there are, it is the oldest."""
        what, _, output, _ = record
        if what is Event.READ:
            self._reads[output] -= 1
            if self._reads[output]:
                return
            del self._reads[output]
        records = self.records[output]
        records.remove(record)
        if not records:
            del self.records[output]
        variable = _variable(record)
        if variable is not None:
            self._uses[variable] -= 1
            if what is not Event.READ:
                del self.versions[variable][0]
            if not self._uses[variable]:
                del self._uses[variable]
                self.names.pop(variable, None)
                self.versions.pop(variable, None)


def _variable(record: Record) -> Uid | None:
    """The uid of the variable that a record reads or assigns."""
    what, inputs = record[:2]
    if what is Event.READ:
        return inputs[0]
    return inputs[1] if what is Event.ASSIGN or what is Event.UPDATE else None
