"""`teletape serve` whose sessions' processes look into the others when a client attaches: a takeover, imitated."""

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

from teletape_server import cli
from teletape_server.handlers.methods import METHODS, Result, json_result, method
from teletape_server.hosts.processes import forkserver
from teletape_server.worker import main  # noqa: F401  # it registers the methods


def readable(pid: int) -> list[str]:
    """What this process can read of another one: names of files below /proc/PID."""
    names = []
    for name in ("environ", "maps", "mem"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:
            names += [name] if name == "mem" or file.read() else []
    with contextlib.suppress(OSError):
        names += ["fd"] if [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")] else []
    return names


del METHODS["attach"]


@method("attach")
def look(session: Any, request: Any) -> Result:
    """Answers with this process's id, and what it can read of each process of the machine."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
    return json_result({"pid": os.getpid(), "readable": {pid: readable(pid) for pid in pids if pid != os.getpid()}})


if __name__ == "__main__":
    own = Path(__file__)
    os.environ["PYTHONPATH"] = str(own.parent)
    forkserver._INHERITED = (*forkserver._INHERITED, own.stem)  # type: ignore[misc]  # with the method above
    sys.exit(cli.main(["serve", "--port", "0"]))
