"""Saves what can be read of a session from its files, which stay as they are: for one that is damaged."""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any, NamedTuple

import numpy as np

import teletape_wire as wire
from teletape_engine.commands import Batch, Fetch
from teletape_engine.commands.results import Fetched, SlicesArrays
from teletape_engine.errors import TeletapeError
from teletape_engine.session.session import Session
from teletape_server.durable import bases, records
from teletape_server.durable.batches import BatchReader
from teletape_server.durable.blobs import BlobError, Blobs
from teletape_server.durable.folders import Folder
from teletape_server.durable.records import DIGEST_BYTES, DamagedError, Kind, Log, unpacked
from teletape_wire.checksum import crc32
from teletape_wire.safetensors.layout import NAME_OF
from teletape_wire.safetensors.writer import write_file

_VALUES, _FACTS = "values.safetensors", "facts.json"
_DIVERGED = "diverged-"  # begins the names of files with values that the session did not have, as far as is known


class Rescued(NamedTuple):
    """What was saved.

    Attributes:
        values: The number of tensors and variables.
        record: The number of the last record that they are as of; 0: of none, but of the base.
        why: Why later ones are left out, and what is doubtful; empty: all of it is there.
        notes: What else is to be known; empty: nothing.
    """

    values: int
    record: int
    why: str
    notes: str


class _Run(NamedTuple):
    """A session that was made from files: as of which record, why not of a later one, and the checksums that it met.

    `agreed` is the last record at which its values were those that were written down; `differed` the first at which
    they were others, 0 if there is none.
    """

    session: Session
    record: int
    why: str
    agreed: int
    differed: int


def rescue(folder: Folder, out: str) -> Rescued:
    """Writes the last good values of a session's tensors and variables as safetensors, and the facts of everything.

    If the log gives other values than it gave when it was written, two are saved: those of the last record up to which
    they are known to be the same, and those that it gives in the end, in files that begin with `diverged-`.

    Args:
        folder: The session's.
        out: A folder, which is made; what safetensors has no dtype for is a file of NumPy's there.

    Raises:
        DamagedError: Neither a base nor a log can be read.
        OSError: A file cannot be read or written.
    """
    number, why, notes = folder.newest(), "", ""
    base: bytes | None
    data = folder.bytes_of_log(number) if os.path.exists(folder.at(f"log-{number}.ttj")) else b""
    try:
        log = records.read(data)
    except DamagedError as error:
        log, why = records.read(data, to_damage=True), f"; {error.why}"
    if log is None:
        log, base = _without_log(folder)
        why += f"; {records.LOG_LOST}: what requests did after the base is not there"
    else:
        base = None if log.head["base"] is None else _base(folder, number)
        if log.cut and not why:
            notes = f"; {log.cut} bytes of a write that was not finished, and not answered, are left out"
    with folder.blobs() as blobs:
        return _rescued(log, base, blobs, why, notes, out)


def _base(folder: Folder, number: int) -> bytes:
    try:
        return folder.bytes_of_base(number)
    except FileNotFoundError as error:
        raise DamagedError(f"{error.filename}, from which its log goes on, is not there") from None


def _without_log(folder: Folder) -> tuple[Log, bytes]:
    """The newest base that can be read, and a log that goes on from it and has nothing."""
    for base in folder.bases():
        with contextlib.suppress(DamagedError):
            bases.read(base, lambda *_: None)
            return Log({"first": 1, "base": [len(base), crc32(base)]}, [], 0, 0), base
    raise DamagedError(f"{folder.path} has neither a log with a head nor a base that can be read")


def _rescued(log: Log, base: bytes | None, blobs: Blobs, why: str, notes: str, out: str) -> Rescued:
    run = _run(log, base, blobs, log.head["first"] + len(log.records))
    os.makedirs(out, exist_ok=True)
    if run.differed:
        _write(run, why, notes, out, _DIVERGED)
        why += (
            f"; the log gives other values than the session had at record {run.differed}: those in the end, of record "
            f"{run.record}, are in files that begin with {_DIVERGED}"
        )
        run = _run(log, base, blobs, run.agreed)
    return _write(run, why, notes, out, "")


def _write(run: _Run, why: str, notes: str, out: str, prefix: str) -> Rescued:
    session, why = run.session, why + run.why
    listed = session.listing("variable", "tensor")
    arrays = {str(facts["id"]): _array(session, facts["id"]) for facts in listed}
    with open(os.path.join(out, f"{prefix}{_VALUES}"), "wb") as file:
        for buffer in write_file({name: array for name, array in arrays.items() if array.dtype in NAME_OF}, {}):
            file.write(buffer)
    for number, (name, array) in enumerate(arrays.items()):
        if array.dtype not in NAME_OF:
            np.save(os.path.join(out, f"{prefix}{number}.npy"), array)
            notes += f"; {name!r} is {prefix}{number}.npy, since safetensors has no {array.dtype.name}"
    why, notes = why.removeprefix("; "), notes.removeprefix("; ")
    everything = session.listing("variable", "tensor", "slices", "function", "tape")
    with open(os.path.join(out, f"{prefix}{_FACTS}"), "w", encoding="utf-8") as text:
        facts = {"record": run.record, "why": why, "notes": notes, "ids": everything}
        json.dump(facts, text, indent=1, default=str)
    return Rescued(len(arrays), run.record, why, notes)


def _run(log: Log, base: bytes | None, blobs: Blobs, last: int) -> _Run:
    """A session as far as its files can be read, and no further than a record."""
    session, why = Session(), ""
    if base is not None:
        length, checksum = log.head["base"]
        if (len(base), crc32(base)) != (length, checksum):
            why = "; the base is not the one that was written: its values may be wrong"
        changed: list[str] = []
        session.restore(bases.read(base, lambda place, to: _read_some(blobs, place, to, changed))[0])
        why += "".join([f"; {each}: values of the base that have it are wrong" for each in changed])
    reader, at = BatchReader(blobs), log.head["first"] - 1
    agreed, differed = at, 0
    for record in log.records[: max(last + 1 - log.head["first"], 0)]:
        try:
            if record.kind is Kind.STRUCTURE:
                reader.add_structure(record.payload)
            elif record.kind is Kind.REQUEST:
                for row in unpacked(record.payload)[0]:
                    reader.read(row).run_again(session)
            elif record.kind is Kind.DIGEST and not differed:
                if session.digest(DIGEST_BYTES) == unpacked(record.payload):
                    agreed = record.number
                else:
                    differed = record.number
        except (DamagedError, wire.WireError, TeletapeError) as error:
            why += f"; record {record.number} cannot be run again ({error})"
            break
        at = record.number
    return _Run(session, at, why, agreed, differed)


def _read_some(blobs: Blobs, place: Any, to: memoryview, changed: list[str]) -> None:
    """Reads the bytes at a place, as far as they are there; what is wrong with them is added to `changed`."""
    try:
        blobs.read_into(place, to)
    except BlobError as error:
        changed.append(error.why)


def _array(session: Session, name: Any) -> np.ndarray[Any, Any]:
    [result] = session.execute(Batch((Fetch(name),))).results
    assert isinstance(result, Fetched)
    assert not isinstance(result.array, SlicesArrays)
    return result.array
