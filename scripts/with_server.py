"""Runs a command against a server of its own: `python scripts/with_server.py COMMAND [ARGUMENT ...]`.

Starts `teletape serve` on a free loopback port, waits until it answers, runs the command with TELETAPE_URL set, and
ends the server in any case. Exits with the status of the command.
"""

import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

START_SECONDS = 60.0
STOP_SECONDS = 10.0
LOG_TAIL_LINES = 40


def main() -> int:
    """Runs the command of the command line and returns its exit status."""
    command = sys.argv[1:]
    if not command:
        raise SystemExit(__doc__)
    signal.signal(signal.SIGTERM, _leave)
    teletape = Path(sys.executable).with_name("teletape")
    if not teletape.exists():
        raise SystemExit(f"with_server: no {teletape}: run `make install`, then this script with .venv/bin/python.")
    with tempfile.TemporaryDirectory(prefix="teletape-") as folder, server([teletape], Path(folder)) as url:
        return subprocess.call(command, env={**clean_environment(), "TELETAPE_URL": url})


@contextlib.contextmanager
def server(
    teletape: list[Any],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    certificate: tuple[Path, Path] | None = None,
    port: int = 0,
) -> Iterator[str]:
    """Starts a server, yields its address, and stops it after the block.

    Args:
        teletape: The command `teletape`, without arguments.
        folder: For the server's log.
        environment: The server's; None: `clean_environment()`.
        certificate: Files with a certificate for localhost and its key; None: connections have no TLS.
        port: Where it listens; 0: any free one.
    """
    port = port or _free_port()
    url, log = f"http://127.0.0.1:{port}", folder / "server.log"
    settings = ["--host", "127.0.0.1", "--port", str(port)]
    if certificate is not None:
        url = f"https://localhost:{port}"
        settings += ["--tls-certificate", str(certificate[0]), "--tls-key", str(certificate[1])]
    with log.open("wb") as output:
        # A session of its own, so that Ctrl-C reaches the command first and the server outlives its last request.
        process = subprocess.Popen(
            [*teletape, "serve", *settings],
            env=clean_environment() if environment is None else environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_until_healthy(process, url, log, None if certificate is None else certificate[0])
        yield url
    finally:
        _stop(process)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def clean_environment() -> dict[str, str]:
    """The environment without the caller's server settings: their keys and hosts are not this server's."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TELETAPE_")}


def _wait_until_healthy(process: subprocess.Popen[bytes], url: str, log: Path, certificate: Path | None) -> None:
    # The machine's proxy settings must not catch a request to loopback.
    handlers: list[Any] = [urllib.request.ProxyHandler({})]
    if certificate is not None:
        handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(certificate))))
    direct = urllib.request.build_opener(*handlers)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            _fail(f"the server ended with status {process.returncode} before it answered", log)
        try:
            with direct.open(f"{url}/v1/health", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    _fail(f"{url}/v1/health did not answer within {START_SECONDS:g} s", log)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _fail(problem: str, log: Path) -> NoReturn:
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])
    raise SystemExit(f"with_server: {problem}. Its log ends:\n{tail or '(nothing)'}")


def _leave(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
