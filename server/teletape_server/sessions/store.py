"""Where the records of sessions are kept, so that sessions can be known without a host, and on a disk their logs."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Final, Protocol

from teletape_server.durable.disk import sync_folder
from teletape_server.durable.folders import FOLDER, GONE, LOCK, Folder
from teletape_server.durable.open_logs import OpenLog
from teletape_server.durable.syncer import Syncer
from teletape_server.ipc.leases import NEVER
from teletape_server.problems import overloaded
from teletape_server.sessions.lifecycle import LOST, Phase, State
from teletape_server.sessions.record import SessionRecord, record_of

_THREADS: Final = 4  # that open and close logs: a slow disk holds that many of them up
_LOCK_SECONDS: Final = 10.0  # that the server before may take to end

log = logging.getLogger("teletape")


class Store(Protocol):
    """Keeps records."""

    def put(self, record: SessionRecord) -> None:
        """Keeps a record, in the place of an earlier one with its uid; the record of an ended session goes.

        It is surely kept when `settled` has returned.
        """

    async def settled(self, record: SessionRecord) -> None:
        """Returns when all that was put of a session is kept.

        Raises:
            Problem: overloaded: it could not be kept.
        """

    def all(self) -> list[SessionRecord]:
        """Returns the records of the sessions that have not ended, oldest first."""

    async def open_log(self, record: SessionRecord) -> OpenLog | None:
        """Opens the log of a session, for its next host; None: nothing of the session outlives a host.

        Raises:
            Problem: overloaded.
        """

    def close_log(self, opened: OpenLog) -> None:
        """Closes a log whose host has ended."""

    def nbytes(self, record: SessionRecord) -> int:
        """Returns the bytes that a session takes on a disk."""

    def has_log_to_run(self, record: SessionRecord) -> bool:
        """Returns whether the base of a session without a host is not all that it had; see `Folder.has_log_to_run`."""

    def close(self) -> None:
        """Ends what works for the store; the second time it does nothing."""


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

    async def settled(self, record: SessionRecord) -> None:
        """It is kept at once."""

    def all(self) -> list[SessionRecord]:
        """As `Store.all`."""
        return [*self._records.values()]

    async def open_log(self, record: SessionRecord) -> OpenLog | None:
        """There is none."""
        return None

    def close_log(self, opened: OpenLog) -> None:
        """There is none."""

    def nbytes(self, record: SessionRecord) -> int:
        """They take none."""
        return 0

    def has_log_to_run(self, record: SessionRecord) -> bool:
        """They have none."""
        return False

    def close(self) -> None:
        """Nothing works for it."""


class DiskStore:
    """Implements `Store` in a folder: its sessions are there when the next server starts.

    Records are written by a thread, in their order: the event loop does not wait for the disk.

    Args:
        folder: The server's folder for data.
        now: Unix seconds: the time that has gone since a session's last work does not count for its age.

    Raises:
        OSError: The folder cannot be made or read.
    """

    def __init__(self, folder: str, now: float) -> None:
        self._path, self._now = os.path.abspath(os.path.join(folder, FOLDER)), now
        os.makedirs(self._path, mode=0o700, exist_ok=True)
        data = os.path.dirname(self._path)
        sync_folder(data)
        with suppress(PermissionError):  # whoever made it may keep the server from reading the rest of the folder
            sync_folder(os.path.dirname(data))
        lock = os.open(os.path.join(self._path, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        _wait_for(lock, folder)
        self._lock: int | None = lock
        self._syncer = Syncer(self._failed)
        self._writer = ThreadPoolExecutor(1, "store")
        self._threads = ThreadPoolExecutor(_THREADS, "logs")
        self._closing: dict[str, Future[None]] = {}  # by uid
        self._written: dict[str, SessionRecord] = {}  # by uid, as the last one was passed to the thread
        self._unwritten: dict[str, str] = {}  # by uid: why the thread could not write it
        self._synced: dict[str, int | None] = {}  # by uid, of sessions whose hosts have ended: their last sure records

    def _failed(self, opened: OpenLog, error: OSError) -> None:
        log.error("the disk of the session %s has failed: %s", opened.facts["uid"], error)

    def _folder(self, record: SessionRecord) -> Folder:
        return Folder(os.path.join(self._path, record.uid))

    def put(self, record: SessionRecord) -> None:
        """As `Store.put`; a session that does not outlive its host has no record."""
        if record.durability == "none":
            return
        if record.state.phase is Phase.ENDED:
            self._written.pop(record.uid, None)
            self._synced.pop(record.uid, None)
            self._unwritten.pop(record.uid, None)
            self._writer.submit(self._folder(record).remove)
            return
        if record.state.phase not in LOST:  # whoever reads it finds the session without a host
            record = replace(record, state=State(Phase.PARKED))
        if self._written.get(record.uid) != record:
            self._written[record.uid] = record
            self._writer.submit(self._write, record)

    def _write(self, record: SessionRecord) -> None:
        try:
            self._folder(record).write_manifest(asdict(record))
            self._unwritten.pop(record.uid, None)
        except OSError as error:
            self._unwritten[record.uid] = str(error)
            log.error("the manifest of the session %s could not be written: %s", record.uid, error)

    async def settled(self, record: SessionRecord) -> None:
        """As `Store.settled`."""
        await asyncio.wrap_future(self._writer.submit(lambda: None))
        if (why := self._unwritten.get(record.uid)) is not None:
            raise overloaded(f"the session could not be written down ({why})")

    def all(self) -> list[SessionRecord]:
        """As `Store.all`; all of them are without a host. What was about to begin, or to go, is removed."""
        records = []
        for name in sorted(os.listdir(self._path)):
            if name == LOCK:
                continue
            folder = Folder(os.path.join(self._path, name))
            manifest = None if name.endswith(GONE) else folder.manifest()
            if manifest is None and (name.endswith(GONE) or folder.is_unfinished()):
                folder.remove()
                continue
            try:
                record = record_of(manifest, name)
            except ValueError as error:
                log.error("%s is left as it is, and is no session of this server: %s", folder.path, error)
                continue
            with suppress(OSError):  # its next process finds out
                folder.sync()
            down = max(self._now - (folder.last_change() or self._now), 0.0)
            records.append(_without_host(record, down))
        return sorted(records, key=lambda record: record.created)

    async def open_log(self, record: SessionRecord) -> OpenLog | None:
        """As `Store.open_log`; a thread opens it, and who waits for it may leave."""
        if record.durability == "none":
            return None
        opening = asyncio.wrap_future(self._threads.submit(self._opened, record, self._closing.get(record.uid)))
        try:
            return await asyncio.shield(opening)
        except OSError as error:
            raise overloaded(f"the session's files could not be opened ({error})") from error
        except asyncio.CancelledError:
            opening.add_done_callback(self._close_unused)
            raise

    def _opened(self, record: SessionRecord, closing: Future[None] | None) -> OpenLog:
        if closing is not None:
            closing.result()
        folder = self._folder(record)
        if record.epoch == 1:  # else it is there, unless the disk is not
            folder.create()
        facts = {"uid": record.uid, "epoch": record.epoch, "level": record.durability}
        opened = OpenLog(folder, {**facts, "synced": self._synced.get(record.uid)})
        self._syncer.add(opened)
        return opened

    def _close_unused(self, opening: asyncio.Future[OpenLog]) -> None:
        if not opening.cancelled() and opening.exception() is None:
            self.close_log(opening.result())

    def close_log(self, opened: OpenLog) -> None:
        """As `Store.close_log`; a thread does it, after which the log can be opened again."""
        uid = opened.facts["uid"]
        if uid in self._written:
            self._synced[uid] = opened.synced
        self._closing[uid] = closing = self._threads.submit(self._syncer.drop, opened)
        closing.add_done_callback(partial(self._note_closed, uid))

    def _note_closed(self, uid: str, closing: Future[None]) -> None:
        if self._closing.get(uid) is closing:
            del self._closing[uid]

    def nbytes(self, record: SessionRecord) -> int:
        """As `Store.nbytes`."""
        return 0 if record.durability == "none" else self._folder(record).nbytes()

    def has_log_to_run(self, record: SessionRecord) -> bool:
        """As `Store.has_log_to_run`."""
        return self._folder(record).has_log_to_run()

    def close(self) -> None:
        """As `Store.close`."""
        self._threads.shutdown()
        self._syncer.stop()
        self._writer.shutdown()
        if self._lock is not None:
            os.close(self._lock)
        self._lock = None


def _without_host(record: SessionRecord, down: float) -> SessionRecord:
    """The record of a session that has no host; the seconds without a server are added to its times."""
    terms, (phase, _, why) = record.terms, record.state
    terms = replace(terms, ends=NEVER, until=terms.until + down if terms.until else 0.0)
    return replace(record, terms=terms, state=State(phase, why=why) if phase in LOST else State(Phase.PARKED))


def _wait_for(lock: int, folder: str) -> None:
    """Waits a while for a server that is about to end; two with one folder would end each other's sessions.

    Raises:
        OSError: It has not ended; the lock's descriptor is closed.
    """
    until = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                os.close(lock)
                raise OSError(f"another server has the folder {folder}: stop it, or name another --data-dir") from None
        time.sleep(0.05)
