"""Starts and ends the servers that programs call."""

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from certificates import make_certificate  # scripts, no packages
from with_nginx import proxy
from with_server import server as teletape_server

ROOT = Path(__file__).resolve().parents[2]
#: The module of each server that is not Teletape's.
MODULES = {
    "floor": "floor",
    "fastapi": "fastapi_torch",
    "fastapi-numpy": "fastapi_numpy",
    "tensorflow": "tensorflow_server",
    "tcp": "tcp",
}
KEY = "the-key-of-the-benchmark"  #: Of servers with keys.
START_SECONDS, STOP_SECONDS = 60.0, 3.0


@contextlib.contextmanager
def running(name: str, python: Path, environment: dict[str, str], folder: Path) -> Iterator[str]:
    """Starts a server, yields its address, and ends it after the block.

    Args:
        name: A `server` of systems.py.
        python: The interpreter.
        environment: The server's.
        folder: For its log; and for `cert.pem`, if there is a certificate that clients have to trust.
    """
    if name in ("teletape", "teletape-keys", "teletape-tls", "teletape-nginx"):
        keys = {} if name == "teletape" else {"TELETAPE_API_KEYS": f"ann:{KEY}"}
        files = make_certificate(folder) if name in ("teletape-tls", "teletape-nginx") else None
        with contextlib.ExitStack() as stack:
            own = files if name == "teletape-tls" else None
            url = stack.enter_context(
                teletape_server([python, "-P", "-m", "teletape_server.cli"], folder, {**environment, **keys}, own)
            )
            if name == "teletape-nginx" and files is not None:
                url = stack.enter_context(proxy(folder, int(url.rpartition(":")[2]), files[0])).url
            yield url
        return
    with contextlib.ExitStack() as stack:
        log = stack.enter_context((folder / f"{name}.log").open("wb"))
        if name == "teletape-unix":
            endpoint: Any = str(folder / "socket")
            command, address = [python.with_name("teletape"), "serve", "--unix", endpoint], f"unix://{endpoint}"
        else:
            with socket.create_server(("127.0.0.1", 0)) as listener:
                endpoint = listener.getsockname()
            command = [python, "-P", "-m", f"suite.remote.{MODULES[name]}", str(endpoint[1])]
            address = f"http://127.0.0.1:{endpoint[1]}"
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        stack.callback(_stop, process)
        _wait(process, endpoint, folder / f"{name}.log")
        yield address


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait(process: subprocess.Popen[bytes], endpoint: Any, log: Path) -> None:
    """Waits until a server accepts connections at a port's address, or at the path of a Unix socket."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.socket(_family(endpoint)) as connection:
            connection.connect(endpoint)
            return
        time.sleep(0.1)
    raise RuntimeError(f"the server did not start: {log.read_text(errors='replace')[-2000:]}")


def _family(endpoint: Any) -> socket.AddressFamily:
    return socket.AF_UNIX if isinstance(endpoint, str) else socket.AF_INET
