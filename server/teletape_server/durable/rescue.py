"""Saves what can be read of a session from its files, which stay as they are: for one that is damaged."""

from __future__ import annotations

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
from teletape_server.durable.folders import Folder
from teletape_server.durable.records import DamagedError, Kind, Log, unpacked
from teletape_wire.checksum import crc32
from teletape_wire.safetensors.layout import NAME_OF
from teletape_wire.safetensors.writer import write_file

_VALUES, _FACTS = "values.safetensors", "facts.json"


class Rescued(NamedTuple):
    """What was saved.

    Attributes:
        values: The number of tensors and variables.
        record: The number of the last record that they are as of.
        why: Why later ones are left out, and what is doubtful; empty: all of it is there.
    """

    values: int
    record: int
    why: str


def rescue(folder: Folder, out: str) -> Rescued:
    """Writes the last good values of a session's tensors and variables as safetensors, and the facts of everything.

    Args:
        folder: The session's.
        out: A folder, which is made; what safetensors has no dtype for is a file of NumPy's there.

    Raises:
        DamagedError: Neither a base nor a log can be read.
        OSError: A file cannot be read or written.
    """
    session, record, why = _session(folder)
    os.makedirs(out, exist_ok=True)
    listed = session.listing("variable", "tensor")
    arrays = {str(facts["id"]): _array(session, facts["id"]) for facts in listed}
    with open(os.path.join(out, _VALUES), "wb") as file:
        for buffer in write_file({name: array for name, array in arrays.items() if array.dtype in NAME_OF}, {}):
            file.write(buffer)
    for number, (name, array) in enumerate(arrays.items()):
        if array.dtype not in NAME_OF:
            np.save(os.path.join(out, f"{number}.npy"), array)
            why += f"; {name!r} is {number}.npy, since safetensors has no {array.dtype.name}"
    everything = session.listing("variable", "tensor", "slices", "function", "tape")
    with open(os.path.join(out, _FACTS), "w", encoding="utf-8") as text:
        json.dump({"record": record, "why": why, "ids": everything}, text, indent=1, default=str)
    return Rescued(len(arrays), record, why.removeprefix("; "))


def _session(folder: Folder) -> tuple[Session, int, str]:
    """The session as far as its files can be read, the last record, and what was wrong."""
    number, why = folder.newest(), ""
    data = folder.bytes_of_log(number)
    try:
        log = records.read(data)
    except DamagedError as error:
        log, why = records.read(data, to_damage=True), f"; {error.why}"
    if log is None:
        raise DamagedError(f"log {number} of {folder.path} has no head")
    session = Session()
    if log.head["base"] is not None:
        base = folder.bytes_of_base(number)
        length, checksum = log.head["base"]
        if (len(base), crc32(base)) != (length, checksum):
            why += "; the base is not the one that was written: its values may be wrong"
        session.restore(bases.read(base)[0])
    last, failed = _replayed(session, log)
    return session, last, why + failed


def _replayed(session: Session, log: Log) -> tuple[int, str]:
    reader, last = BatchReader(), log.head["first"] - 1
    for record in log.records:
        try:
            if record.kind is Kind.STRUCTURE:
                reader.add_structure(record.payload)
            elif record.kind is Kind.REQUEST:
                for row in unpacked(record.payload)[0]:
                    reader.read(row).run_again(session)
        except (DamagedError, wire.WireError, TeletapeError) as error:
            return last, f"; record {record.number} cannot be run again ({error})"
        last = record.number
    return last, ""


def _array(session: Session, name: Any) -> np.ndarray[Any, Any]:
    [result] = session.execute(Batch((Fetch(name),))).results
    assert isinstance(result, Fetched)
    assert not isinstance(result.array, SlicesArrays)
    return result.array
