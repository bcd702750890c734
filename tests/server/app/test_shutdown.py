"""The orderly end of a server: running work, event streams, new requests, half-sent ones, the log, a second signal."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from run_commands import ENDLESS, loop

from prepared import Prepared
from serving import KEYS, Server, metric, ok, problem, until
from teletape_server.settings import Settings

EVENTS = {"Accept": "text/event-stream"}


@pytest.fixture
def server(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[Server]:
    """A server that gives running work the seconds of the parameter; its log must have no error."""
    settings = Settings(api_keys=KEYS, memory_limit=64 << 20, max_body=16 << 20, shutdown_grace=request.param)
    with caplog.at_level(logging.INFO), Server(settings).running() as server:
        yield server
    entries = [entry for phase in ("setup", "call", "teardown") for entry in caplog.get_records(phase)]
    assert not [entry for entry in entries if entry.levelno >= logging.ERROR or entry.exc_info]
    [entry] = [entry for entry in entries if "the server stops" in entry.getMessage()]
    assert entry.getMessage().endswith(f"running ones have {request.param:g} s")


class Callers:
    """Requests that run in threads of their own.

    Attributes:
        responses: By name, when they have come.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._threads: list[threading.Thread] = []
        self.responses: dict[str, httpx.Response] = {}

    def post(self, name: str, path: str, body: dict[str, Any], **headers: str) -> None:
        """Sends a request, and keeps its response."""

        def send() -> None:
            with self._server.client() as http:
                self.responses[name] = http.post(path, json=body, headers=headers)

        self._threads.append(threading.Thread(target=send))
        self._threads[-1].start()

    def join(self) -> dict[str, httpx.Response]:
        """Waits for all responses."""
        for thread in self._threads:
            thread.join()
        return self.responses


def until_running(http: httpx.Client, count: int) -> None:
    """Waits until this number of requests runs or waits in all sessions, those of single requests too."""
    until(lambda: metric(http, "teletape_unanswered_requests") >= count)


def last_event(text: str) -> tuple[str, Any]:
    """The kind and the data of a stream's last event."""
    fields = dict(line.partition(": ")[::2] for line in text.strip().split("\n\n")[-1].split("\n"))
    return fields["event"], json.loads(fields["data"])


@pytest.mark.parametrize("server", [3600.0], indirect=True)
def test_new_requests_are_refused_while_running_ones_have_their_grace(server: Server) -> None:
    callers = Callers(server)
    with server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "one"}))
        worker = server.worker("one")
        callers.post("batch", "/v1/sessions/one/batch", ENDLESS)
        until_running(http, 1)
        server.stop()
        while (ready := http.get("/v1/ready")).status_code == 200:
            pass
        assert "shutting down" in problem(ready, 503, "shutting_down")["detail"]
        assert (ready.headers["connection"], ready.headers["retry-after"]) == ("close", "1")
        assert ok(http.get("/v1/health")).json() == {"status": "ok"}
        assert "teletape_sessions 1.0" in ok(http.get("/metrics")).text
        for path in ("/v1/sessions", "/v1/run", "/v1/sessions/one/cancel"):
            problem(http.post(path, json={}), 503, "shutting_down")
        os.kill(worker, signal.SIGKILL)  # nothing else would end what runs
    assert problem(callers.join()["batch"], 410, "session_ended")["details"]["reason"] == "worker_died"


@pytest.mark.parametrize("server", [0.1], indirect=True)
def test_running_requests_are_cancelled_after_the_grace(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teletape_server.sessions.registry._CANCEL_SECONDS", 60.0)  # however slow this machine is
    callers = Callers(server)
    with server.client() as http:
        for name in ("one", "two"):
            ok(http.post("/v1/sessions", json={"id": name}))
        callers.post("batch", "/v1/sessions/one/batch", ENDLESS)
        callers.post("stream", "/v1/sessions/two/batch", ENDLESS, **EVENTS)
        callers.post("run", "/v1/run", ENDLESS | {"fetch": ["last"]})
        until_running(http, 3)
        server.stop()
        responses = callers.join()
    kind, answer = last_event(responses["stream"].text)
    assert kind == "answer"
    refusals = [
        ok(responses["batch"]).json()["failure"],
        answer["failure"],
        problem(responses["run"], 409, "cancelled"),
    ]
    for refusal in refusals:
        assert refusal["code"] == "cancelled"
        assert refusal["details"]["reason"] == "server_shutdown"
        assert "the server is stopping" in (refusal.get("message") or refusal["detail"])


@pytest.mark.parametrize("server", [60.0], indirect=True)
def test_work_that_ends_in_the_grace_is_answered(server: Server) -> None:
    callers = Callers(server)
    with server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "one"}))
        callers.post("batch", "/v1/sessions/one/batch", loop(50_000))
        until_running(http, 1)
        server.stop()
    assert ok(callers.join()["batch"]).json()["failure"] is None


@pytest.mark.parametrize("server", [3600.0], indirect=True)
def test_work_that_runs_in_the_grace_is_waited_for_and_cancelled_at_its_address(server: Server) -> None:
    with server.client() as http, server.client() as other:
        ok(http.post("/v1/sessions", json={"id": "one"}))
        accepted = http.post("/v1/sessions/one/batch", json=ENDLESS, headers={"Prefer": "respond-async"})
        location = accepted.headers["location"]
        server.stop()
        while http.get("/v1/ready").status_code == 200:
            pass
        assert http.get(location, headers={"Prefer": "wait=0"}).status_code == 202
        with http.stream("GET", location, headers=EVENTS) as stream:
            lines = stream.iter_lines()
            assert next(lines) == "event: progress"
            assert other.delete(location).status_code == 202
            kind, answer = last_event("\n".join(lines))
    assert (kind, answer["failure"]["code"]) == ("answer", "cancelled")


@pytest.mark.parametrize("server", [0.1], indirect=True)
def test_what_cannot_be_cancelled_learns_that_its_session_ended(server: Server) -> None:
    callers = Callers(server)
    with server.client() as http:
        for name in ("one", "two"):
            ok(http.post("/v1/sessions", json={"id": name}))
            os.kill(server.worker(name), signal.SIGSTOP)
        callers.post("batch", "/v1/sessions/one/batch", ENDLESS)
        callers.post("stream", "/v1/sessions/two/batch", ENDLESS, **EVENTS)
        until_running(http, 2)
        server.stop()
    responses = callers.join()
    assert problem(responses["batch"], 410, "session_ended")["details"]["reason"] == "server_shutdown"
    kind, refusal = last_event(responses["stream"].text)
    assert (kind, refusal["code"]) == ("problem", "session_ended")
    assert refusal["details"]["reason"] == "server_shutdown"


@pytest.mark.parametrize("server", [0.1], indirect=True)
def test_half_sent_requests_and_bodies_do_not_hold_the_end_up(server: Server) -> None:
    with server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "one"}))
    head = f"POST /v1/sessions/one/batch HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEYS['ann']}\r\n"
    body = f"{head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
    connections = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2)]
    for connection, text in zip(connections, (head, body), strict=True):
        connection.sendall(text.encode())
    while not server.answering():
        pass
    server.stop()
    for connection in connections:
        connection.settimeout(30)
        try:
            while connection.recv(65536):
                pass
        except ConnectionResetError:
            pass
        connection.close()


# -------------------------------------------------------------------------------------------------- with a real process
Ending = Callable[[subprocess.Popen[str], httpx.Client], None]


def end_of(tmp_path: Path, *arguments: str, end: Ending) -> tuple[int, str, str]:
    """Serves an endless event stream while `end` ends the server; its exit status, its log, the stream."""
    log = tmp_path / "log"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TELETAPE_")}
    command = [sys.executable, "-P", "-m", "teletape_server.cli", "serve", "--port", "0", *arguments]
    parts: list[str] = []
    with (
        log.open("w") as output,
        Prepared(command, env=environment, stdout=subprocess.PIPE, stderr=output) as process,
    ):
        assert process.stdout is not None
        url = process.stdout.readline().split()[3]
        with httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
            ok(http.post("/v1/sessions", json={"id": "one"}))

            def listen() -> None:
                with httpx.stream("POST", f"{url}/v1/sessions/one/batch", json=ENDLESS, headers=EVENTS) as response:
                    try:
                        parts.extend(response.iter_text())
                    except httpx.TransportError:
                        parts.append("cut off")

            thread = threading.Thread(target=listen)
            thread.start()
            until_running(http, 1)
            end(process, http)
        status = process.wait(60)
        thread.join()
    return status, log.read_text(), "".join(parts)


def test_a_signal_ends_streams_with_a_last_event_and_leaves_no_traceback(tmp_path: Path) -> None:
    status, log, stream = end_of(
        tmp_path, "--shutdown-grace", "0.2", end=lambda process, _: process.send_signal(signal.SIGTERM)
    )
    assert status in (0, -signal.SIGTERM)
    kind, answer = last_event(stream)  # session_ended where the machine is too slow to cancel in a second
    assert (answer["failure"] if kind == "answer" else answer)["code"] in ("cancelled", "session_ended")
    assert "Traceback" not in log
    assert "ERROR" not in log


def test_a_second_signal_ends_the_server_at_once(tmp_path: Path) -> None:
    def twice(process: subprocess.Popen[str], http: httpx.Client) -> None:
        process.send_signal(signal.SIGTERM)
        while http.get("/v1/ready").status_code == 200:
            pass
        process.send_signal(signal.SIGTERM)

    status, log, stream = end_of(tmp_path, "--shutdown-grace", "1h", end=twice)
    assert status == 128 + signal.SIGTERM
    assert stream.endswith("cut off")
    assert "Traceback" not in log
