"""Starts and ends the servers that programs call."""

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from with_server import server as teletape_server  # a script, not a package

ROOT = Path(__file__).resolve().parents[2]
#: The module of each server that is not Teletape's.
MODULES = {"floor": "floor", "fastapi": "fastapi_torch", "tensorflow": "tensorflow_server", "tcp": "tcp"}
START_SECONDS = 60.0


@contextlib.contextmanager
def running(name: str, python: Path, environment: dict[str, str], folder: Path) -> Iterator[str]:
    """Starts a server, yields its address, and ends it after the block.

    Args:
        name: A `server` of systems.py.
        python: The interpreter.
        environment: The server's.
        folder: For its log.
    """
    if name == "teletape":
        with teletape_server([python.with_name("teletape")], folder, environment) as url:
            yield url
        return
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [python, "-P", "-m", f"suite.remote.{MODULES[name]}", str(port)],
            env={**environment, "PYTHONPATH": str(ROOT / "benchmarks")},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait(process, port, folder / f"{name}.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise RuntimeError(f"the server did not start: {log.read_text(errors='replace')[-2000:]}")
