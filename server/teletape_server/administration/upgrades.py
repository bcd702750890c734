"""`teletape upgrade --check`: brings copies of sessions back with this installation, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

from teletape_server import version
from teletape_server.administration.backups import copy_session
from teletape_server.administration.running_server import CommandError, address_of_server
from teletape_server.administration.stored_sessions import stored_sessions


def check(data_dir: str) -> int:
    """Prints for each session whether it would go on; returns the exit status (1: one would not).

    Args:
        data_dir: A folder for data, which a server may have, or a backup. It stays as it is.

    Raises:
        CommandError: There is no such folder.
        OSError: A file cannot be read, or a copy cannot be written.
    """
    if not os.path.isdir(data_dir):
        raise CommandError(f"there is no folder {data_dir}")
    is_live = address_of_server(data_dir) is not None
    refused = 0
    for session in stored_sessions(data_dir):
        with tempfile.TemporaryDirectory(prefix="teletape-upgrade-") as folder:
            copy = os.path.join(folder, session.uid)
            why = copy_session(session.folder, copy, is_live=is_live) or session.unreadable or _tried(copy)
        cut = 0 if why or is_live else session.folder.cut_bytes()
        goes_on = f"goes on, without {cut} bytes of a write that was not finished" if cut else "goes on"
        sys.stdout.write(f"{session.name}  {f'would not go on: {why}' if why else goes_on}\n")
        refused += bool(why)
    outcome = f"{refused} of them would not go on" if refused else "all of them go on"
    sys.stdout.write(f"with teletape {version()} {outcome}\n")
    return 1 if refused else 0


def _tried(copy: str) -> str:
    """Why a session would not go on; nothing: it would."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "teletape_server.worker.trial", copy], capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return f"its process has ended with status {done.returncode} ({last})"
    facts = json.loads(done.stdout)
    if not facts["why"] or facts["anyway"]:
        return str(facts["why"])
    return f"{facts['why']}. Run all the same, its log gives the same {facts['checksums']} checksums of variables"
