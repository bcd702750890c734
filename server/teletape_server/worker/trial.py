"""Brings a session back from a copy of its files, in this process, and prints as JSON whether that has succeeded.

`python -m teletape_server.worker.trial FOLDER`: what a session's next process would do, with this installation.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import teletape_wire as wire
from teletape_engine.errors import TeletapeError
from teletape_engine.session.session import Session
from teletape_server.durable import records
from teletape_server.durable.batches import with_blobs
from teletape_server.durable.folders import Folder
from teletape_server.durable.records import DamagedError, Kind, Log
from teletape_server.handlers.idempotency import Once
from teletape_server.worker import recovery


def main(path: str) -> dict[str, Any]:
    """Returns `why` the session would not go on (empty: it would), and what came of its log in spite of its versions.

    Args:
        path: The copy of the session's folder.

    Returns:
        `why`; `anyway`: the same if its log is run with whatever versions, None if that was not asked; `checksums`: how
        many of the variables the log has, which were compared.
    """
    folder = Folder(path)
    try:
        log = records.read(folder.bytes_of_log(folder.newest())) if folder.has_log(folder.newest()) else None
    except DamagedError as error:
        return {"why": error.why, "anyway": None, "checksums": 0}
    if log is None:
        return {"why": records.LOG_LOST, "anyway": None, "checksums": 0}
    why = _tried(folder, log, any_version=False)
    return {
        "why": why,
        "anyway": _tried(folder, log, any_version=True) if why else None,
        "checksums": sum(record.kind is Kind.DIGEST for record in log.records),
    }


def _tried(folder: Folder, log: Log, *, any_version: bool) -> str:
    manifest = folder.manifest()
    assert manifest is not None
    try:
        session = Session(manifest["device"], memory_limit=manifest["limits"][0])
        recovery.check_is(log, manifest["uid"])
        base = folder.open_base(folder.newest(), is_new=False)
        with folder.blobs() as blobs:
            whole, _ = with_blobs(log, blobs)
            last = whole.records[-1].number if whole.records else log.head["first"] - 1
            recovery.bring_back(session, Once(0.0), whole, last, base, blobs, any_version=any_version)
    except (DamagedError, wire.WireError, TeletapeError) as error:
        return str(error)
    return ""


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1])))
