"""Writes down what requests did to a session before they are answered, and brings a session back from that.

A request has one record: the batches that it has executed and the answer that is stored under its key. A long one has
several. Nothing is answered whose record is not written; if it cannot be written, the process ends, and the next one
goes on from the log, as if the request had not come. Answers may also wait until their record would survive a power
cut (`Gate`).
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import teletape_engine.ops  # noqa: F401  # fills the catalogue, whose digest is written down
import teletape_wire as wire
from teletape_engine.commands import Batch, Repetition
from teletape_engine.commands.results import Answer
from teletape_engine.errors import TeletapeError
from teletape_engine.session.session import Session
from teletape_server.durable import bases, records, refusals
from teletape_server.durable.batches import BatchWriter, Executed, only_reads, with_blobs
from teletape_server.durable.blobs import LEAST, Blobs
from teletape_server.durable.disk import RealFile
from teletape_server.durable.folders import JOURNAL_SYNC
from teletape_server.durable.journal import Journal
from teletape_server.durable.records import DamagedError, DivergedError, Kind, Log, SessionDamagedError, packed, packer
from teletape_server.handlers.endpoints import ENDPOINTS
from teletape_server.handlers.idempotency import Once
from teletape_server.handlers.methods import Request
from teletape_server.ipc.channel import LOG_FILES, close_files
from teletape_server.ipc.page import Page
from teletape_server.worker import recovery
from teletape_server.worker.gate import Gate
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE

_MARGIN: Final = 64 << 10  # bytes of a record besides the request's body
_SMALL: Final = 4 << 10  # likewise, if nothing of it is stored but a client's number
_WRITTEN_AS_SENT: Final = (wire.FRAME_TYPE, SAFETENSORS_TYPE)
_JSON_GROWTH: Final = 4  # times the bytes of a JSON body that are written at most: of "1," eight for a float64
_PART_SECONDS: Final = 1.0  # of a request after which what it has done so far is written
_SHARE: Final = 4  # a base is written for want of space if the log has that part of what the files may have
_LEAST_LOG: Final = 64 << 20  # bytes of a log that is not replaced by a base
_LOOK_BYTES: Final = 64 << 10  # that a long log grows by before the next look at whether a base can be written
_REPLAY_SECONDS: Final = 5.0  # that a log may take to run again
_DIGESTS: Final = 256  # requests between two checksums of the variables
_LOST_CLIENTS: Final = 128  # numbers: more than join within the 50 ms that a power cut may take
_TRY_SECONDS: Final = 1.0  # between two tries to go on with another log than one that has failed


class Durability:
    """The log of a session.

    Args:
        session: The session, which has nothing.
        once: The answers to its requests with a key.
        facts: Of the log: uid, epoch and level of the session, `log`: its number, `base`: whether it begins with one,
            `last_client`: see `Start`.
        files: Descriptors: of the log, of the next base and log, of the blobs, and of this log's base if it has one.
            They are closed here when they are not needed any more.
        page: Says which record is on the disk.
        send: Sends the server a message.
        wait_for_files: Waits until the server has sent the files of the next log: it calls `add_files`.
        failed: Called with the reason, in another thread, if what answers wait for cannot be brought to the disk: they
            must never leave.

    Attributes:
        gate: Withholds answers until their records are on the disk; None: they need not wait.
        recovered: What was brought back, JSON-able: `record`, the number of the last record, `cut_bytes` and
            `seconds`; None: the session is new.

    Raises:
        SessionDamagedError: The session could not be brought back.
        OSError: The log could not be written.
    """

    def __init__(
        self,
        session: Session,
        once: Once,
        facts: Mapping[str, Any],
        files: Sequence[int],
        page: Page,
        send: Callable[[Any], None],
        wait_for_files: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None:
        self._session, self._once, self._page = session, once, page
        self._send, self._wait_for_files = send, wait_for_files
        self._facts, self._versions = facts, records.versions()
        self._log, *following, self._blobs_file = files[:4]
        self._blobs = Blobs(RealFile(self._blobs_file))
        self._writer = BatchWriter(self._write_structure, self._blobs)
        self._next: tuple[int, int, int] | None = (facts["log"] + 1, *following)
        self._awaits_files = False
        self._syncing = threading.Lock()  # while a log is synced it is not closed
        self._seconds = 0.0  # that the log takes to run again
        self._executed: list[Executed] = []  # since that was last written down
        self._pack = packer()  # of records of one row, which are small: it keeps as much memory as the largest takes
        self._look_at, self._try_at = 0, 0.0
        self._base_length = 0  # of the base from which the log goes on
        self._safe = frozenset([name for name, endpoint in ENDPOINTS.items() if endpoint.safe])
        self._is_safe, self._written = True, 0.0
        self._changes, self._calm_until = page.changes, 0
        self.recovered: dict[str, Any] | None = None
        page.log = facts["log"]
        try:
            self._journal = self._opened(RealFile(self._log), files)
        except (DamagedError, wire.WireError, TeletapeError) as error:
            close_files(files[:4])
            why = error.why if isinstance(error, DamagedError) else f"it cannot be run again ({error})"
            state = "diverged" if isinstance(error, DivergedError) else "damaged"
            raise SessionDamagedError(why, state=state) from error
        except OSError:
            close_files(files[:4])
            raise
        self._digest_at = self._journal.number - 1 + _DIGESTS
        page.refuses = bool(self._journal.broken)
        self.gate: Gate | None = None
        if facts["level"] == JOURNAL_SYNC:
            self.gate = Gate(self._sync, lambda error: failed(f"its disk failed ({error})"), page)
        session.write_down(self._note)

    def _opened(self, file: RealFile, files: Sequence[int]) -> Journal:
        data = file.read()
        log = records.read(data)
        if log is None and self._facts["epoch"] > 1:
            raise DamagedError(records.LOG_LOST)
        if log is None:
            return Journal.begin(file, self._head(1, None))
        return self._recover(file, data, log, files[4] if self._facts["base"] else None)

    def _head(self, first: int, base: Sequence[int] | None) -> dict[str, Any]:
        """The head of a log: of its base, length and CRC32."""
        facts = self._facts
        own = {"format": recovery.FORMAT, "uid": facts["uid"], "epoch": facts["epoch"], "first": first, "base": base}
        return {**own, "versions": self._versions}

    # ------------------------------------------------------------------------------------------------------- requests
    def begin(self, method: str, request: Request) -> None:
        """Prepares for a request.

        Raises:
            ResourceExhaustedError: It may change something, and the disk has too little space to write that down.
        """
        journal, length = self._journal, len(request.body)
        if length > _SMALL and request.content_type not in _WRITTEN_AS_SENT:
            length *= _JSON_GROWTH
        self._is_safe, self._written = method in self._safe, time.monotonic()
        if (
            length >= LEAST
            or journal.end + length > self._calm_until
            or journal.broken
            or self._page.changes != self._changes
        ):
            self._prepare(method, request, length)

    def _prepare(self, method: str, request: Request, length: int) -> None:
        """Sees that a request with a body of that many bytes can be written down, and up to where others can."""
        page, journal = self._page, self._journal
        self._calm_until, self._changes = 0, page.changes
        if page.failed_log == page.log:
            journal.broken = "the disk has failed"
        if journal.broken:
            self._try_another_log()
        elif (journal.end + self._blobs.added > _LEAST_LOG or self._seconds > _REPLAY_SECONDS) and self._is_due():
            self.checkpoint()
        if self._is_safe:
            if not page.refuses:
                self._note_room()
            return
        if not self._has_room(length):
            if self._awaits_files:
                self._wait_for_files()
            if self._journal.end + self._blobs.added > self._page.disk_limit // _SHARE:
                self.checkpoint()
            if not self._has_room(length):
                page.refuses = True
                if self._is_let_through(method, request, length):
                    return
                limit = page.disk_limit
                raise refusals.over_limit(limit - self._room(), length + _MARGIN, limit)
        try:
            self._journal.reserve(length + _MARGIN)
            if length >= LEAST:
                self._blobs.reserve(length)
        except OSError as error:
            page.refuses = True
            if self._is_let_through(method, request, length):
                return
            raise refusals.disk_full(error) from None
        if page.refuses:
            page.refuses = False
        if length < LEAST:  # else it may bring blobs
            self._note_room()

    def _is_let_through(self, method: str, request: Request, length: int) -> bool:
        """Whether a request only reads, or joins to do so, and its record fits into what is reserved."""
        journal = self._journal
        fits = not journal.broken and journal.end + length + _SMALL <= journal.reserved
        is_frame = request.content_type == wire.FRAME_TYPE
        return fits and (method == "attach" or (is_frame and only_reads(request.body, request.structures)))

    def _room(self) -> int:
        """The bytes that the log may still get by the limit of the files; negative: they have too many."""
        limit = self._page.disk_limit
        return limit - self._journal.end - self._base_length - self._blobs.nbytes if limit else sys.maxsize

    def _has_room(self, length: int) -> bool:
        return length + _MARGIN <= self._room()

    def _note_room(self) -> None:
        """Notes how far the log may grow until the next request has to be prepared for."""
        journal = self._journal
        look = self._look_at if self._seconds > _REPLAY_SECONDS else max(_LEAST_LOG, self._look_at)
        most = journal.end + self._room() - _MARGIN
        self._calm_until = min(look - self._blobs.added, journal.reserved - _MARGIN, most)

    def commit(self, request: Request, *, is_frame: bool) -> None:
        """Writes what the request did; `answer` may send its answer then.

        Raises:
            OSError: It could not be written: the process has to end.
        """
        executed, reply = self._executed, self._once.stored
        try:
            if is_frame and reply is None and len(executed) == 1:
                self._write([self._writer.row(executed[0], request.body)], None, self._pack)
            elif executed or reply is not None:
                self._once.stored = None
                self._write([self._writer.row(batch) for batch in executed], reply)
        except OSError:
            if not self.checkpoint():
                raise
            executed.clear()

    def _note(self, batch: Batch | Repetition, answer: Answer, explain: bool) -> None:
        """Notes a batch that was executed; what a long request has done so far is written."""
        if self._is_safe:
            return
        executed, failed = self._executed, answer.failure is not None
        of = Executed.of(self._session, batch, answer, explain=explain) if failed else Executed(batch, explain)
        executed.append(of)
        if len(executed) > 1 and time.monotonic() - self._written >= _PART_SECONDS:
            self._write([self._writer.row(each) for each in executed], None)
            if self.gate is not None:
                self.gate.ask()

    def _write(self, rows: list[Any], reply: Any, pack: Callable[[Any], bytes] = packed) -> None:
        """Writes the record of what was executed."""
        page, now = self._page, time.monotonic()
        seconds, self._written = now - self._written, now
        page.written = number = self._journal.append(Kind.REQUEST, pack([rows, reply, seconds]), page.synced)
        self._executed.clear()
        self._seconds += seconds
        if pack is packed or self._seconds > _REPLAY_SECONDS:  # there may be blobs, or it is time for a base
            self._calm_until = 0
        if number >= self._digest_at:
            digest = self._session.digest(records.DIGEST_BYTES)
            if digest is not None:
                self._append(Kind.DIGEST, packed(digest))
            self._digest_at = self._journal.number - 1 + _DIGESTS

    def _write_structure(self, payload: bytes) -> None:
        self._append(Kind.STRUCTURE, payload)

    def _append(self, kind: Kind, payload: bytes) -> None:
        self._page.written = self._journal.append(kind, payload, self._page.synced)

    def _sync(self) -> int:
        """Brings the log to the disk, while requests run; returns the number of the last record that is there."""
        with self._syncing:
            number = self._page.written
            self._blobs.sync()
            self._journal.sync()
            self._page.synced = number
        return number

    # ----------------------------------------------------------------------------------------------------- new bases
    def add_files(self, number: int, files: Sequence[int]) -> None:
        """Takes the files of the next base and log, if they could be opened, here too."""
        self._awaits_files = False
        if len(files) == LOG_FILES:
            self._next = (number, files[0], files[1])
        else:
            close_files(files)

    def _is_due(self) -> bool:
        """Returns whether a long log is to be replaced by a base; a look at the whole session is seldom."""
        end = self._journal.end + self._blobs.added
        if end < self._look_at:
            return False
        self._look_at = end + _LOOK_BYTES
        return self._seconds > _REPLAY_SECONDS or end > self._session.bytes_in_use()

    def checkpoint(self) -> bool:
        """Writes a base, and goes on with a log of its own; returns False if that cannot be now."""
        if self._next is None or self._session.obstacle():
            return False
        number, base, log = self._next
        file = RealFile(base)
        self._blobs.begin_base(doubtful=bool(self._journal.broken))
        try:
            buffers = bases.written(self._session.snapshot(), {"replies": self._once.written()}, self._blobs)
            self._sync_blobs()
            file.truncate(0)
            file.write_parts(0, buffers)
            file.sync()
        except OSError:  # no space: the log goes on
            self._blobs.give_up_base(file)
            return False
        length = sum(map(len, buffers))
        head = self._head(self._journal.number, [length, bases.checksum(buffers)])
        try:
            journal = Journal.begin(RealFile(log), head)
        except OSError as error:
            self._take_back(RealFile(log), file, error)
            return False
        os.close(base)
        self._next, self._awaits_files = None, True
        self._blobs.end_base()
        self._base_length = length
        self._writer, self._seconds = BatchWriter(self._write_structure, self._blobs), 0.0
        self._look_at = self._calm_until = 0
        with self._syncing:
            os.close(self._log)
            self._log, self._journal = log, journal
            self._page.log = number
            self._page.written = self._page.synced = journal.number - 1
        if self.gate is not None:
            self.gate.note_durable(journal.number - 1)
        self._send(("checkpointed", number))
        return True

    def _sync_blobs(self) -> None:
        """Brings the blobs to the disk; if that fails, the log is lost too, which refers to some of them."""
        with self._syncing:
            try:
                self._blobs.sync()
            except OSError as error:
                self._journal.broken = f"the blobs of the session could not be written ({error})"
                raise

    def _take_back(self, log: RealFile, base: RealFile, error: OSError) -> None:
        """Empties a log whose head may be on the disk: the session would go on from there, and not from its log."""
        try:
            log.truncate(0)
            log.sync()
            self._blobs.give_up_base(base)
        except OSError:
            self._journal.broken = f"another log of the session could not be begun ({error})"

    def _try_another_log(self) -> None:
        """Goes on with a base and a log in other files than those that have failed, if that can be now."""
        now = time.monotonic()
        if now >= self._try_at:
            self._try_at = now + _TRY_SECONDS
            self.checkpoint()

    def close(self) -> None:
        """Lets go of the files; answers that wait never leave."""
        if self.gate is not None:
            self.gate.close()
        with self._syncing:
            self._journal.broken = "the session has ended"
            close_files((self._log, self._blobs_file, *(self._next or ())[1:]))
        self._next = None

    # ------------------------------------------------------------------------------------------------------- recovery
    def _recover(self, file: RealFile, data: bytes, log: Log, base: int | None) -> Journal:
        began = time.monotonic()
        recovery.check_is(log, self._facts["uid"])
        self._base_length = log.head["base"][0] if log.head["base"] else 0
        log, places = with_blobs(log, self._blobs)
        number = log.records[-1].number if log.records else log.head["first"] - 1
        journal = Journal(file, log.end, number + 1, reserved=len(data))
        again = journal, file, data[: log.end], self._blobs, places, self._facts
        last = recovery.write_again(*again) if log.records else number
        self._seconds = recovery.bring_back(self._session, self._once, log, last, base, self._blobs)
        self._page.written = self._page.synced = last
        if (log.records or log.head["base"] is None) and not self._facts["last_client"]:
            # With an earlier server a power cut may have taken clients, whose batches may still come.
            self._session.note_clients(self._session.last_client + 2 * _LOST_CLIENTS)
        if not journal.broken:
            try:
                if log.cut:
                    file.write(log.end, bytes(log.cut))  # zeros, on the disk before a record takes their place
                    journal.sync()
                epoch = [self._facts["epoch"], self._versions, self._session.last_client]
                self._page.written = journal.append(Kind.EPOCH, packed(epoch), last)
                self._blobs.sync()
                journal.sync()  # always: so a log without records shows that no client has joined since its base
                self._page.synced = self._page.written
            except OSError as error:  # what is there can be read
                journal.broken = str(error)
        self.recovered = {"record": last, "cut_bytes": log.cut, "seconds": time.monotonic() - began}
        return journal
