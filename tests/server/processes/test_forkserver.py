"""A forkserver that does not answer: starts fail in time, the next ones work, and the server's end waits for none."""

import contextlib
import itertools
import logging
import multiprocessing.connection
import multiprocessing.forkserver
import os
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import httpx
import pytest

from serving import KEYS, Server, ok, problem
from teletape_server.hosts.processes import forkserver
from teletape_server.hosts.processes.forkserver import end_stuck_start, start_process
from teletape_server.ipc.processes import ProcessKind
from teletape_server.settings import Settings

SECONDS = 60.0  # for what has to happen, however slow this machine is


def forkserver_pid() -> int:
    """The process id of the forkserver, which has started a process before."""
    pid = multiprocessing.forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    assert isinstance(pid, int)
    return pid


def is_alive(pid: int) -> bool:
    """Whether the process has not ended; one whose status has not been read has ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def until_ended(pid: int) -> None:
    """Waits until the process has ended."""
    deadline = time.monotonic() + SECONDS
    while is_alive(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Stops the process; at the end of the block it continues, if it still lives."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@pytest.fixture
def server(caplog: pytest.LogCaptureFixture) -> Iterator[Server]:
    """A server that gives running work an hour when it ends; its log must have no error."""
    settings = Settings(api_keys=KEYS, memory_limit=64 << 20, max_body=16 << 20, shutdown_grace=3600.0)
    with caplog.at_level(logging.INFO), Server(settings).running() as server:
        yield server
    assert not [entry for entry in caplog.records if entry.levelno >= logging.ERROR or entry.exc_info]


def until_spare(server: Server) -> None:
    """Waits until the process of the next session has started."""
    deadline = time.monotonic() + SECONDS
    while not ((spare := server.app.state.hosts.spare) and spare.done()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def start_and_end() -> None:
    """Starts a process, and ends it."""
    process, sockets = start_process(ProcessKind.SESSION)
    sockets.close()
    process.join(SECONDS)
    assert process.exitcode == 0


def test_a_forkserver_that_does_not_answer_is_replaced(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    start_and_end()
    stuck = forkserver_pid()
    with stopped(stuck):
        monkeypatch.setattr(forkserver, "_START_LIMIT", 0.1)
        with pytest.raises(OSError, match="a new one begins"):
            start_process(ProcessKind.SESSION)
        assert not is_alive(stuck)
    assert f"the forkserver, process {stuck}, did not start a process in 0.1 s" in caplog.text
    monkeypatch.setattr(forkserver, "_START_LIMIT", SECONDS)
    start_and_end()
    assert is_alive(forkserver_pid())


def test_a_start_does_not_touch_a_process_that_has_ended_and_that_its_owner_reads_and_closes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process, sockets = start_process(ProcessKind.SESSION)
    sockets.close()
    assert multiprocessing.connection.wait([process.sentinel], SECONDS)
    with monkeypatch.context() as amid_close:  # close() lets go of this before it lets go of the process
        amid_close.setattr(process, "_popen", None)
        start_and_end()
    popen = process._popen  # type: ignore[attr-defined]
    with monkeypatch.context() as watched:
        watched.setattr(popen, "poll", lambda: pytest.fail("the status was read by the start of another process"))
        start_and_end()
    process.join(SECONDS)
    assert process.exitcode == 0
    process.close()


def test_a_forkserver_that_starts_nothing_is_not_ended() -> None:
    start_and_end()
    end_stuck_start("does nothing")
    assert is_alive(forkserver_pid())


def test_a_forkserver_that_is_stopped_while_it_is_idle_is_ended_before_anyone_needs_it(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("teletape_server.hosts.processes.worker_pool._STOPPED_SECONDS", 0.0)
    monkeypatch.setattr(forkserver, "_START_LIMIT", 3600.0)
    until_spare(server)
    pid = forkserver_pid()
    with stopped(pid):
        until_ended(pid)
    assert f"the forkserver, process {pid}, was stopped" in caplog.text
    with server.client() as http:
        for _ in range(2):  # the second one's process is started by the new forkserver
            ok(http.post("/v1/sessions", json={}))


def test_callers_get_503_while_the_forkserver_hangs_and_then_sessions_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "one"}))
        until_spare(server)  # its start has the long limit
        with stopped(forkserver_pid()):
            monkeypatch.setattr(forkserver, "_START_LIMIT", 0.1)
            while (response := http.post("/v1/sessions", json={})).status_code == 201:
                pass  # it got a process that had started before
            refusal = problem(response, 503, "overloaded")
            assert "could not be started" in refusal["detail"]
            assert response.headers["retry-after"] == "1"
        monkeypatch.setattr(forkserver, "_START_LIMIT", SECONDS)
        deadline = time.monotonic() + SECONDS
        while (response := http.post("/v1/sessions", json={"id": "two"})).status_code != 201:
            problem(response, 503, "overloaded")  # a start that began with the short limit
            assert time.monotonic() < deadline
        ok(http.post("/v1/sessions/one/batch", json={"commands": []}))  # the old forkserver's processes live
        worker = server.worker("one")
        with stopped(worker):
            ok(http.delete("/v1/sessions/one"))
            until_ended(worker)


def test_the_end_of_a_server_refuses_those_who_wait_for_a_session_at_once(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("teletape_server.hosts.processes.worker_pool._START_SECONDS", 0.1)
    monkeypatch.setattr(forkserver, "_START_LIMIT", 3600.0)
    starting = server.app.state.registry.live.starting
    with server.client() as http, ThreadPoolExecutor(3) as callers:
        ok(http.post("/v1/sessions", json={"id": "one"}))
        stuck = forkserver_pid()
        with stopped(stuck):
            posts: list[Future[httpx.Response]] = []
            names = itertools.count()
            while len(starting) < 3:
                posts = [post for post in posts if not post.done()]
                if len(posts) < 3:
                    path = "/v1/run" if len(posts) == 2 else "/v1/sessions"
                    headers = {"Idempotency-Key": f"key {next(names)}"} if len(posts) == 1 else {}
                    body: dict[str, list[str]] = {"commands": []} if len(posts) == 2 else {}
                    posts.append(callers.submit(http.post, path, json=body, headers=headers))
            server.stop()
            answers = [post.result(SECONDS) for post in posts]
            refused = [answer for answer in answers if answer.is_error]
            assert len(refused) >= 2, "one may have a process that had started before"
            for answer in refused:
                assert "what came now is not executed" in problem(answer, 503, "shutting_down")["detail"]
            until_ended(stuck)  # or it would outlive the server


def test_it_can_begin_before_the_first_process_and_serves_that() -> None:
    forkserver.begin()
    pid = forkserver._pid()
    process, sockets = forkserver.start_process(ProcessKind.SESSION)
    assert forkserver._pid() == pid
    sockets.close()
    process.join(30)
    assert process.exitcode == 0
    process.close()


def test_a_process_does_not_run_the_main_module_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, ran = tmp_path / "script.py", tmp_path / "ran"
    script.write_text(f"open({str(ran)!r}, 'w').close()")
    main = ModuleType("__main__")
    main.__file__ = str(script)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "__main__", main)
        process, sockets = forkserver.start_process(ProcessKind.SESSION)
        assert sys.modules["__main__"] is main
    sockets.close()
    process.join(30)
    assert process.exitcode == 0
    process.close()
    assert not ran.exists()
