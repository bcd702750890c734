"""Brings a session back: reads its base, and runs its log again on the same versions of everything."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final
from zlib import crc32

import teletape_engine.ops  # noqa: F401  # fills the catalogue, whose digest is written down
from teletape_engine.session.session import Session
from teletape_server.durable import bases, records
from teletape_server.durable.batches import BatchReader
from teletape_server.durable.blobs import Blobs, Place
from teletape_server.durable.disk import File
from teletape_server.durable.folders import JOURNAL_SYNC
from teletape_server.durable.journal import Journal
from teletape_server.durable.records import DIGEST_BYTES, DamagedError, DivergedError, Kind, Log, unpacked
from teletape_server.handlers.idempotency import Once

FORMAT: Final = 1  #: Of logs.


def check_is(log: Log, uid: str) -> None:
    """Returns if a log is of this format and of that session.

    Raises:
        DamagedError: It is not.
    """
    if log.head["format"] != FORMAT or log.head["uid"] != uid:
        of = f"of format {log.head['format']} and of the session {log.head['uid']}"
        raise DamagedError(f"the log is {of}, and this version runs format {FORMAT}")


def write_again(
    journal: Journal, file: File, data: bytes, blobs: Blobs, places: Sequence[Place], facts: Mapping[str, Any]
) -> int:
    """Writes a log's bytes, and its blobs, to their places; returns the last record from which the session goes on.

    The process that wrote them may have ended since they could not be brought to the disk. Then the system has
    forgotten that, and a sync alone would succeed without them.

    Args:
        journal: Goes on with the log; `broken` says afterwards why that failed.
        file: The log's file.
        data: The log.
        blobs: To which it refers.
        places: Where they are.
        facts: Of the session; see `Durability`.

    Raises:
        OSError: That failed, and it is not known which answers have left.
    """
    number, waits = journal.number - 1, facts["level"] == JOURNAL_SYNC
    try:
        for place in places:
            blobs.write_again(place)
        file.write(0, data)
        if waits:
            blobs.sync()
            journal.sync()
    except OSError as error:
        journal.broken = str(error)
        if waits:
            synced: int | None = facts["synced"]
            if synced is None:
                raise
            return min(synced, number)
    return number


def bring_back(
    session: Session, once: Once, log: Log, last: int, base: int | None, blobs: Blobs, *, any_version: bool = False
) -> float:
    """Gives a session what it had at a record; returns the seconds that the log has taken when it was written.

    Args:
        session: The session, which has nothing.
        once: The answers to its requests with a key, likewise.
        log: Its log.
        last: The record's number.
        base: The descriptor of the log's base, which is closed here; None: it has none.
        blobs: To which both refer.
        any_version: Whether the log is run whatever it was written with.

    Raises:
        DamagedError: The files are not as they were, or of other versions.
        DivergedError: The log gives other values than it gave when it was written.
        WireError, TeletapeError: A record cannot be run again.
    """
    if log.head["base"] is not None:
        _restore(session, once, base, blobs, *log.head["base"])
    with session.without_limit():
        return _replay(session, once, log, last, blobs, any_version=any_version)


def _restore(session: Session, once: Once, base: int | None, blobs: Blobs, length: int, checksum: int) -> None:
    data = memoryview(b"")
    if base is not None:
        data = memoryview(mmap.mmap(base, 0, prot=mmap.PROT_READ)) if os.fstat(base).st_size else data
        os.close(base)
    if len(data) != length:
        raise DamagedError(f"the base of the log has {len(data)} bytes, and {length} were written")
    if (present := crc32(data)) != checksum:
        raise DamagedError(f"the base of the log has the CRC32 {present:08x}, and was written with {checksum:08x}")
    snapshot, more = bases.read(data, blobs.read_into)
    session.restore(snapshot)
    once.read(more["replies"])


def _replay(session: Session, once: Once, log: Log, last: int, blobs: Blobs, *, any_version: bool) -> float:
    reader, own, written_by, seconds = BatchReader(blobs), records.versions(), log.head["versions"], 0.0
    for record in log.records[: last + 1 - log.head["first"]]:
        if record.kind is Kind.EPOCH:
            _, written_by, *last_client = unpacked(record.payload)
            if last_client:  # records of earlier versions have none
                session.note_clients(*last_client)
        elif record.kind is Kind.STRUCTURE:
            reader.add_structure(record.payload)
        elif record.kind is Kind.DIGEST:
            if session.digest(DIGEST_BYTES) != unpacked(record.payload):
                same = ", ".join(f"{name} {value}" for name, value in written_by.items())
                raise DivergedError(
                    f"the variables are not those that the session had at record {record.number}, though its log was "
                    f"run with the same versions ({same})"
                )
        else:
            if not any_version:
                _check_versions(written_by, own, record.number)
            rows, reply, took = unpacked(record.payload)
            for row in rows:
                reader.read(row).run_again(session)
            if reply is not None:
                once.read([reply])
            seconds += took
    return seconds


def _check_versions(written_by: Mapping[str, Any], own: Mapping[str, Any], number: int) -> None:
    other = [name for name, value in own.items() if written_by.get(name) != value]
    if other:
        pairs = ", ".join(f"{name} {written_by.get(name)!r:.80} (now {own[name]!r:.80})" for name in other)
        raise DamagedError(
            f"record {number} was written with {pairs}, and may give other numbers now. Start the server with those "
            "until `teletape sessions list` says of none that there is a log to run: then it has a base, which every "
            "version reads"
        )
