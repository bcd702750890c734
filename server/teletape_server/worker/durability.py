"""Writes down what requests did to a session before they are answered, and brings a session back from that.

A request has one record: the batches that it has executed and the answer that is stored under its key. A long one has
several. Nothing is answered whose record is not written; if it cannot be written, the process ends, and the next one
goes on from the log, as if the request had not come.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from zlib import crc32

import numpy as np

import teletape_engine.ops  # noqa: F401  # fills the catalogue, whose digest is written down
import teletape_wire as wire
from teletape_engine.catalogue import describe
from teletape_engine.commands import Batch, Repetition
from teletape_engine.commands.results import Answer
from teletape_engine.errors import ResourceExhaustedError, TeletapeError
from teletape_engine.session.session import Session
from teletape_server import version
from teletape_server.durable import bases, records
from teletape_server.durable.batches import BatchReader, BatchWriter, Executed
from teletape_server.durable.disk import RealFile
from teletape_server.durable.journal import Journal
from teletape_server.durable.records import DamagedError, Kind, Log, SessionDamagedError, packed, unpacked
from teletape_server.handlers.endpoints import ENDPOINTS
from teletape_server.handlers.idempotency import Once
from teletape_server.handlers.methods import Request
from teletape_server.ipc.page import Page
from teletape_wire.tensors import Buffer

JOURNAL_SYNC: Final = "journal-sync"
_FORMAT: Final = 1
_MARGIN: Final = 64 << 10  # bytes of a record besides the request's body
_PART_SECONDS: Final = 1.0  # of a request after which what it has done so far is written
_LEAST_LOG: Final = 64 << 20  # bytes of a log that is not replaced by a base
_LOOK_BYTES: Final = 64 << 10  # that a long log grows by before the next look at whether a base can be written
_REPLAY_SECONDS: Final = 5.0  # that a log may take to run again
_DIGESTS: Final = 256  # requests between two checksums of the variables
_DIGEST_BYTES: Final = 16 << 20  # of the variables, of which a checksum is made


class RecordedSession(Session):
    """A session that notes what it executes.

    Attributes:
        executed: What it has executed since that was last written down.
        noted: Called after each batch.
    """

    executed: list[Executed]
    noted: Callable[[], None]

    def __init__(self, *args: Any, **limits: Any) -> None:
        super().__init__(*args, **limits)
        self.executed, self.noted = [], lambda: None

    def execute(self, batch: Batch | Repetition, **how: Any) -> Answer:
        """As `Session.execute`."""
        before = self.batches
        answer = super().execute(batch, **how)
        if self.batches != before:  # it was no retry
            self.executed.append(Executed.of(self, batch, answer, explain=how.get("explain", False)))
            self.noted()
        return answer


def versions() -> dict[str, Any]:
    """Returns what the last bits of a result may depend on: a log is run again with the same alone."""
    config = np.show_config(mode="dicts")
    blas, simd = config["Build Dependencies"]["blas"], config["SIMD Extensions"]
    return {
        "teletape": version(),
        "catalogue": describe.digest(),
        "numpy": np.__version__,
        "blas": f"{blas.get('name')} {blas.get('version')}",
        "cpu": " ".join(simd.get("found", [])),
    }


class Durability:
    """The log of a session.

    Args:
        session: The session, which has nothing.
        once: The answers to its requests with a key.
        facts: Of the log: uid, epoch and level of the session, `base`: whether it begins with one, `next`: the number
            of the log after it.
        files: Descriptors: of the log, of the next base and log, and of this log's base if it has one.
        page: Says which record is on the disk.
        send: Sends the server a message.

    Attributes:
        recovered: What was brought back, JSON-able: `record`, the number of the last record, `cut_bytes` and
            `seconds`; None: the session is new.

    Raises:
        SessionDamagedError: The session could not be brought back.
        OSError: The log could not be written.
    """

    def __init__(
        self,
        session: RecordedSession,
        once: Once,
        facts: Mapping[str, Any],
        files: Sequence[int],
        page: Page,
        send: Callable[[Any], None],
    ) -> None:
        self._session, self._once, self._page, self._send = session, once, page, send
        self._facts, self._versions = facts, versions()
        self._syncs = facts["level"] == JOURNAL_SYNC
        self._writer = BatchWriter()
        self._next: tuple[int, int, int] | None = (facts["next"], files[1], files[2])
        self._seconds = 0.0  # that the log takes to run again
        self._requests = self._look_at = 0
        self._is_safe, self._began, self._written = True, 0.0, 0.0
        self.recovered: dict[str, Any] | None = None
        file = RealFile(files[0])
        try:
            log = records.read(file.read())
            if log is None:
                self._journal = Journal.begin(file, self._head(1, None), self._synced)
            else:
                self._journal = self._recover(file, log, files[3] if facts["base"] else None)
        except (DamagedError, wire.WireError, TeletapeError) as error:
            why = error.why if isinstance(error, DamagedError) else f"it cannot be run again ({error})"
            raise SessionDamagedError(why) from error
        session.executed = []
        session.noted = self._part

    def _synced(self) -> int:
        return self._page.synced

    def _head(self, first: int, base: Sequence[int] | None) -> dict[str, Any]:
        """The head of a log: of its base, length and CRC32."""
        facts = self._facts
        own = {"format": _FORMAT, "uid": facts["uid"], "epoch": facts["epoch"], "first": first, "base": base}
        return {**own, "versions": self._versions}

    # ------------------------------------------------------------------------------------------------------- requests
    def begin(self, method: str, length: int) -> None:
        """Prepares for a request with a body of that many bytes.

        Raises:
            ResourceExhaustedError: It may change something, and the disk has too little space to write that down.
        """
        if self._is_due():
            self.checkpoint()
        endpoint = ENDPOINTS.get(method)
        self._is_safe = endpoint is not None and endpoint.safe
        self._session.executed.clear()
        self._began = self._written = time.monotonic()
        if self._is_safe:
            return
        try:
            self._journal.reserve(length + _MARGIN)
        except OSError as error:
            raise ResourceExhaustedError(
                f"the session is on a disk that takes nothing more ({error}): the request was not executed; requests "
                "that only read are answered. Free space in the server's data folder",
                disk=str(error),
            ) from None

    def commit(self, request: Request, *, is_frame: bool) -> None:
        """Writes what the request did; it may be answered then.

        Raises:
            OSError: It could not be written: the process has to end.
        """
        executed, reply = self._session.executed, self._once.take_stored()
        if self._is_safe:
            executed.clear()
        if not executed and reply is None:
            return
        self._write(executed, reply, request.body if is_frame and len(executed) == 1 else None)
        self._requests += 1
        if self._requests % _DIGESTS == 0:
            digest = self._session.digest(_DIGEST_BYTES)
            if digest is not None:
                self._append(Kind.DIGEST, packed(digest))
        self._settle()

    def _part(self) -> None:
        """Writes what a long request has done so far."""
        if not self._is_safe and time.monotonic() - self._written >= _PART_SECONDS:
            self._write(self._session.executed, None, None)
            self._settle()

    def _write(self, executed: list[Executed], reply: Any, sent: Buffer | None) -> None:
        rows = []
        for batch in executed:
            if (structure := self._writer.structure(batch)) is not None:
                self._append(Kind.STRUCTURE, structure)
            rows.append(self._writer.row(batch, sent))
        now = time.monotonic()
        seconds, self._written = now - self._written, now
        self._append(Kind.REQUEST, packed([rows, reply, seconds]))
        self._seconds += seconds
        executed.clear()

    def _append(self, kind: Kind, payload: bytes) -> None:
        self._page.written = self._journal.append(kind, payload)

    def _settle(self) -> None:
        """Waits until what is written survives a power cut, if the session is of that level."""
        if self._syncs:
            number = self._page.written
            self._journal.sync()
            self._page.synced = number

    # ----------------------------------------------------------------------------------------------------- new bases
    def add_files(self, number: int, base: int, log: int) -> None:
        """Takes the files of the next log."""
        self._next = (number, base, log)

    def _is_due(self) -> bool:
        """Returns whether the log is to be replaced by a base; a look at the whole session is seldom."""
        end = self._journal.end
        if (end <= _LEAST_LOG and self._seconds <= _REPLAY_SECONDS) or end < self._look_at:
            return False
        self._look_at = end + _LOOK_BYTES
        return self._seconds > _REPLAY_SECONDS or end > self._session.bytes_in_use()

    def checkpoint(self) -> bool:
        """Writes a base, and goes on with a log of its own; returns False if that cannot be now."""
        if self._next is None or self._session.obstacle():
            return False
        (number, base, log), self._next = self._next, None
        buffers = bases.written(self._session.snapshot(), {"replies": self._once.written()})
        try:
            file = RealFile(base)
            file.write(0, buffers)
            file.sync()
            length, checksum = sum(map(len, buffers)), _checksum(buffers)
            head = self._head(self._journal.number, [length, checksum])
            journal = Journal.begin(RealFile(log), head, self._synced)
        except OSError:  # no space: the log goes on
            return False
        self._journal, self._writer, self._seconds, self._look_at = journal, BatchWriter(), 0.0, 0
        self._page.written = self._page.synced = journal.number - 1
        self._send(("checkpointed", number))
        return True

    # ------------------------------------------------------------------------------------------------------- recovery
    def _recover(self, file: RealFile, log: Log, base: int | None) -> Journal:
        began = time.monotonic()
        if log.head["format"] != _FORMAT or log.head["uid"] != self._facts["uid"]:
            raise DamagedError(f"the log is of format {log.head['format']} and of the session {log.head['uid']}")
        if log.head["base"] is not None:
            self._restore(base, *log.head["base"])
        with self._session.without_limit():
            self._replay(log)
        file.truncate(log.end)
        number = log.records[-1].number + 1 if log.records else log.head["first"]
        journal = Journal(file, log.end, number, self._synced)
        self._page.written = journal.append(Kind.EPOCH, packed([self._facts["epoch"], self._versions]))
        journal.sync()
        self._page.synced = self._page.written
        seconds = time.monotonic() - began
        self.recovered = {"record": number - 1, "cut_bytes": log.cut, "seconds": seconds}
        return journal

    def _restore(self, base: int | None, length: int, checksum: int) -> None:
        data = b"" if base is None else memoryview(mmap.mmap(base, 0, prot=mmap.PROT_READ))
        if len(data) != length or crc32(data) != checksum:
            raise DamagedError(
                f"the base of the log has {len(data)} bytes, which are not the {length} that were written"
            )
        snapshot, more = bases.read(data)
        self._session.restore(snapshot)
        self._once.read(more["replies"])

    def _replay(self, log: Log) -> None:
        reader, written_by = BatchReader(), log.head["versions"]
        for record in log.records:
            if record.kind is Kind.EPOCH:
                _, written_by = unpacked(record.payload)
            elif record.kind is Kind.STRUCTURE:
                reader.add_structure(record.payload)
            elif record.kind is Kind.DIGEST:
                if self._session.digest(_DIGEST_BYTES) != unpacked(record.payload):
                    raise DamagedError(
                        f"the variables are not those that the session had at record {record.number}: it was run with "
                        f"{written_by}, and now with {self._versions}"
                    )
            else:
                self._check_versions(written_by, record.number)
                rows, reply, seconds = unpacked(record.payload)
                for row in rows:
                    reader.read(row).run_again(self._session)
                if reply is not None:
                    self._once.read([reply])
                self._seconds += seconds
                self._session.executed.clear()

    def _check_versions(self, written_by: Mapping[str, Any], number: int) -> None:
        other = [name for name, value in self._versions.items() if written_by.get(name) != value]
        if other:
            pairs = ", ".join(
                f"{name} {written_by.get(name)!r:.80} (now {self._versions[name]!r:.80})" for name in other
            )
            raise DamagedError(
                f"record {number} was written with {pairs}, and may give other numbers now. Start it with those once: "
                "an orderly end writes a base, which every version reads"
            )


def _checksum(buffers: Sequence[Buffer]) -> int:
    checksum = 0
    for buffer in buffers:
        checksum = crc32(buffer, checksum)
    return checksum
