"""`teletape serve --unix`: who may connect, whose file it is, and that all works there as at a port."""

import contextlib
import errno
import fcntl
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

import prepared
from prepared import Prepared
from serving import Program, ok, problem
from teletape_engine.commands import Call, Constant, Fetch
from teletape_server.connections.listener import address_of, listening
from teletape_server.settings import Settings, SettingsError

SERVE = [sys.executable, "-P", "-m", "teletape_server.cli", "serve"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "teletape.sock"


def client(path: Path) -> httpx.Client:
    return httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url="http://localhost", timeout=60)


@pytest.fixture
def served(path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server without keys at a Unix socket, and what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TELETAPE_")}
    environment |= {"TELETAPE_UNIX": str(path), "TELETAPE_SHUTDOWN_GRACE": "0.1"}
    with Prepared(SERVE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = "".join(process.stdout.readline() for _ in range(5))
        yield process, lines
        process.kill()


def test_a_server_at_a_unix_socket(served: tuple[subprocess.Popen[str], str], path: Path) -> None:
    process, printed = served
    assert f'tf.connect("unix://{path}")' in printed
    assert re.search(rf"^Teletape serves at unix://{path} ", printed)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with client(path) as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        program = Program(http, "demo")
        array = np.arange(1 << 20, dtype=np.float32)
        (fetched,) = program.run(Constant(1, array), Call("neg", (1,), (2,)), Fetch(2)).results
        assert np.array_equal(fetched.array, -array)  # type: ignore[union-attr]
        problem(http.get("/v1/health", headers={"Host": "gpu-box.example"}), 403, "foreign_host")
    second = prepared.run([*SERVE, "--unix", str(path)])
    assert (second.returncode, second.stdout) == (1, "")
    assert f"cannot listen on {path}: another server listens there" in second.stderr
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) in (0, -signal.SIGTERM)
    assert not path.exists()
    assert process.stderr is not None
    assert f"every user who may write to {path}" in process.stderr.read()


@pytest.mark.parametrize("mode", ["600", "660", "0666"])
def test_the_file_has_its_permissions_from_the_beginning(
    path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = []
    bind = socket.socket.bind

    class Socket(socket.socket):
        def bind(self, address: str) -> None:
            bind(self, address)
            modes.append(stat.S_IMODE(path.stat().st_mode))

    monkeypatch.setattr(socket, "socket", Socket)
    umask = os.umask(0)
    try:
        settings = Settings.load(["--unix", str(path), "--unix-mode", mode], {})
        with listening(settings) as listener:
            assert modes == [int(mode, 8)]
            assert address_of(settings, listener) == f"unix://{path}"
        assert os.umask(0) == 0
    finally:
        os.umask(umask)
    assert not path.exists()


def test_the_file_of_a_killed_server_is_replaced(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))
    with listening(Settings(unix=str(path))), socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))


def test_what_is_no_socket_or_another_servers_is_left(path: Path) -> None:
    path.write_text("mine")
    with pytest.raises(OSError, match="no socket"), listening(Settings(unix=str(path))):
        pass
    assert path.read_text() == "mine"
    path.unlink()
    with listening(Settings(unix=str(path))):
        path.unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path))
            other.listen()
            with pytest.raises(OSError, match="another server"), listening(Settings(unix=str(path))):
                pass
    assert path.exists(), "it was another's by then"


def test_of_two_servers_that_start_at_once_one_gets_the_path(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bound, second_waits = threading.Event(), threading.Event()
    lock, refusals = fcntl.flock, []

    class Socket(socket.socket):
        def listen(self, backlog: int = 0) -> None:
            bound.set()
            assert second_waits.wait(60)
            super().listen(backlog)

    def start_second() -> None:
        try:
            with listening(Settings(unix=str(path))):
                pass
        except OSError as error:
            refusals.append(str(error))
        finally:
            second_waits.set()

    def noted_lock(folder: int, operation: int) -> None:
        if threading.current_thread() is second:
            second_waits.set()
        lock(folder, operation)

    second = threading.Thread(target=lambda: bound.wait(60) and start_second())
    monkeypatch.setattr(socket, "socket", Socket)
    monkeypatch.setattr(fcntl, "flock", noted_lock)
    second.start()
    with listening(Settings(unix=str(path))), socket.socket(socket.AF_UNIX) as sock:
        second.join(60)
        sock.connect(str(path))
    assert refusals == ["[Errno 98] another server listens there"]


def test_a_server_that_accepts_no_connections_is_noticed_without_waiting(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as stopped, contextlib.ExitStack() as callers:
        stopped.bind(str(path))
        stopped.listen(0)
        refusal = 0
        while not refusal:  # until as many callers wait as may
            caller = callers.enter_context(socket.socket(socket.AF_UNIX))
            caller.setblocking(False)
            refusal = caller.connect_ex(str(path))
        assert refusal == errno.EAGAIN
        socket.setdefaulttimeout(20)
        try:
            with pytest.raises(OSError, match="another server"), listening(Settings(unix=str(path))):
                pass
        finally:
            socket.setdefaulttimeout(None)
    assert path.exists()


def test_a_path_that_cannot_be_used_is_named() -> None:
    for unusable in ("/nowhere/teletape.sock", "/tmp/" + "a" * 200):
        result = prepared.run([*SERVE, "--unix", unusable])
        assert result.returncode == 1
        assert f"cannot listen on {unusable}: " in result.stderr


@pytest.mark.parametrize("mode", ["6", "888", "rw", "01777"])
def test_a_mode_is_three_octal_digits(mode: str) -> None:
    with pytest.raises(SettingsError, match="octal"):
        Settings.load(["--unix-mode", mode], {})


def test_a_unix_socket_needs_no_keys_whatever_the_address() -> None:
    assert Settings(host="0.0.0.0", unix="teletape.sock").api_keys == {}
