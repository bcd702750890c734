"""Plain requests in JSON over connections that a session's process serves: no caller sees a difference."""

import contextlib
import copy
import json
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from frame_streams import Stream, answer, head
from scraped import read

from serving import KEYS, Server, needs_exchange, ok, problem, until
from teletape_server.connections import lending
from teletape_server.hosts import loans
from teletape_server.hosts.running import REQUEST_ID
from teletape_server.ipc.heads import Label
from teletape_server.settings import Settings

pytestmark = needs_exchange

SESSION = "/v1/sessions/demo"
QUESTION = f"{SESSION}/functions/loss/value_and_gradient"
ROUTE = "/v1/sessions/{session}/functions/{function}/value_and_gradient"
LABEL: Label = ("POST", ROUTE, 200)
#: Headers and members that differ from answer to answer.
OWN = ("date", "x-request-id", "teletape-boot-id", "content-length", "instance", "bytes_in_use")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine makes no request too slow to count, and no connection idle."""
    monkeypatch.setattr(lending, "_QUICK", 600.0)
    monkeypatch.setattr(loans, "_IDLE_SECONDS", 600.0)


@pytest.fixture
def undisturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine makes no request so long that its connection is reclaimed."""
    monkeypatch.setattr(loans, "_LONG_SECONDS", 600.0)


def prepared(way: str) -> Server:
    return Server(Settings(api_keys=KEYS, direct=way, shutdown_grace=0.1))


@pytest.fixture
def server() -> Iterator[Server]:
    with prepared("auto").running() as running, running.client() as http:
        prepare(http)
        yield running


@pytest.fixture
def http(server: Server) -> Iterator[httpx.Client]:
    """A client whose one connection asks the questions."""
    with server.client() as client:
        yield client


@pytest.fixture
def other(server: Server) -> Iterator[httpx.Client]:
    """A client with a connection of its own."""
    with server.client() as client:
        yield client


def prepare(http: httpx.Client) -> None:
    ok(http.post("/v1/sessions", json={"id": "demo", "dtype": "float64"}))
    ok(http.post(f"{SESSION}/functions", json={"id": "loss", "text": "sum((x * x - y)**2)"}))
    squares = "reshape(x, [-1, 1]) * reshape(x, [1, -1])"
    ok(http.post(f"{SESSION}/functions", json={"id": "long", "text": f"sum(tanh(tanh(tanh(tanh({squares})))))"}))


def host_of(server: Server) -> Any:
    return server.app.state.registry.find("ann", "demo").host


def by_process(server: Server, label: Label = LABEL) -> int:
    """Requests with that label that the process has read and answered itself."""
    durations = host_of(server).facts().answered.get(label)
    return 0 if durations is None else durations.total


def ask(http: httpx.Client, x: Any, y: Any = 1.0, **fields: Any) -> httpx.Response:
    return http.post(QUESTION, json={"inputs": {"x": x, "y": y}, "sources": ["x"], **fields})


def ask_long(http: httpx.Client, count: int) -> httpx.Response:
    """A question that takes a second for some thousand numbers."""
    return http.post(QUESTION.replace("loss", "long"), json={"inputs": {"x": [0.5] * count}})


def lend(server: Server, send: Callable[[], object]) -> None:
    """Sends until the process has read some requests: one that comes back after fewer is not lent soon again."""
    before = by_process(server)
    until(lambda: bool(send()) and by_process(server) > before + 4)


def gradient(response: httpx.Response) -> Any:
    return ok(response).json()["derivatives"][0]["value"]["data"]


# ----------------------------------------------------------------------------------------------------- what is the same
@pytest.mark.usefixtures("undisturbed")
def test_a_question_is_answered_by_the_process(server: Server, http: httpx.Client) -> None:
    lend(server, lambda: ask(http, [1.0, 2.0]))
    submitted, before = host_of(server)._last_number, by_process(server)
    for i in range(10):
        x = [0.5 * i, 2.0]
        assert gradient(ask(http, x)) == [4 * value * (value * value - 1.0) for value in x]
    assert by_process(server) == before + 10
    assert host_of(server)._last_number == submitted, "the server has passed none on"


@pytest.mark.usefixtures("undisturbed")
def test_answers_are_the_same_on_both_ways() -> None:
    answered = []
    for way in ("auto", "off"):
        with prepared(way).running() as server, server.client() as http, server.client() as other:
            prepare(http)
            if way == "auto":
                lend(server, lambda: ask(http, [1.0]))
            responses = [ask(http, [1.5]), ask(http, [1.5], 2, fetch=["result"]), ask(http, 1e300)]
            assert by_process(server) >= (4 if way == "auto" else 0)
            for x, fields in (("none", {}), ([1.0], {"sources": ["z"]}), ([[1.0], [2.0, 3.0]], {}), ([1.0] * 900, {})):
                responses.append(ask(http, x, **fields))
            answered.append(
                [
                    (
                        response.status_code,
                        {name: value for name, value in response.headers.items() if name not in OWN},
                        {name: value for name, value in response.json().items() if name not in OWN},
                    )
                    for response in responses
                ]
            )
            assert ok(other.get(SESSION)).json()["answered"]["problems"] == 3
    for lent, front in zip(*answered, strict=True):
        assert lent == front
    assert [status for status, _, _ in answered[0]] == [200, 200, 200, 404, 422, 422, 200]


@pytest.mark.usefixtures("undisturbed")
def test_requests_of_the_process_are_counted_by_route(server: Server, http: httpx.Client, other: httpx.Client) -> None:
    sent = 0

    def send() -> httpx.Response:
        nonlocal sent
        sent += 1
        return ok(ask(http, [1.0]))

    lend(server, send)
    for _ in range(5):
        send()
    metrics = read(other)
    assert metrics["teletape_requests_total", "POST", ROUTE, "200"] == sent
    assert metrics["teletape_request_seconds_count", ROUTE] == sent
    assert metrics["teletape_request_seconds_sum", ROUTE] > 0
    assert metrics["teletape_frame_seconds_count",] == 0
    answered = ok(other.get(SESSION)).json()["answered"]
    assert (answered["requests"], answered["frames"]) == (sent + 2, 0), "with those that made the functions"
    of_key = metrics["teletape_key_requests_total", "ann"]
    assert of_key >= sent
    ok(other.delete(SESSION))
    after = read(other)
    assert after["teletape_requests_total", "POST", ROUTE, "200"] == sent, "what has ended stays counted"
    assert after["teletape_key_requests_total", "ann"] > of_key


@pytest.mark.usefixtures("undisturbed")
def test_the_limits_left_are_those_of_a_caller_alone(server: Server) -> None:
    """The process answers one request after the other, whatever ran when the connections were lent."""
    with contextlib.ExitStack() as stack:
        callers = [stack.enter_context(server.client()) for _ in range(6)]

        def ask_together() -> int:
            threads = [threading.Thread(target=ask, args=(caller, [1.0])) for caller in callers]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return int(host_of(server).facts().lent)

        until(lambda: ask_together() == len(callers))
        before = by_process(server)
        answered = [ask(caller, [1.0]) for caller in callers]
        assert by_process(server) == before + len(callers)
    limits = {(response.headers["ratelimit"], response.headers["ratelimit-policy"]) for response in answered}
    assert limits == {('"requests";r=128', '"requests";q=128;qu="concurrent-requests"')}


# ---------------------------------------------------------------------------------------------- what the server answers
@pytest.mark.usefixtures("undisturbed")
def test_problems_and_long_answers_are_the_server_s(server: Server, http: httpx.Client) -> None:
    lend(server, lambda: ask(http, [1.0]))
    before = by_process(server)
    problem(ask(http, "none"), 404, "unknown_id")
    long = ask(http, [0.1] * 1000)
    assert ok(long).headers["content-encoding"] == "gzip"
    problem(http.post(QUESTION, content=b"{", headers={"Content-Type": "application/json"}), 400, "malformed_json")
    assert ok(ask(http, [0.1] * 5000)).json()["derivatives"][0]["value"]["shape"] == [5000]
    assert by_process(server) == before
    lend(server, lambda: ask(http, [1.0]))


@pytest.mark.usefixtures("undisturbed")
def test_a_connection_is_not_lent_for_another_head_than_that_of_the_answer(
    server: Server, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the process may answer is the known head: that of a later request may ask another session."""
    original, tried = lending.Lending._lend, list[bool]()

    def after_another_request(self: lending.Lending, head: Any, entry: Any) -> None:
        original(self, copy.copy(head), entry)
        tried.append(self.loan is not None)

    with monkeypatch.context() as patch:
        patch.setattr(lending.Lending, "_lend", after_another_request)
        until(lambda: bool(ok(ask(http, [1.0]))) and len(tried) > 3)
    assert not any(tried)
    assert by_process(server) == 0
    lend(server, lambda: ask(http, [1.0]))


def test_another_request_on_the_connection_goes_to_the_server(server: Server, http: httpx.Client) -> None:
    for send in (
        lambda: ok(http.get(SESSION)).json()["id"] == "demo",
        lambda: ok(http.post(f"{SESSION}/functions/loss/call", json={"inputs": {"x": 2.0, "y": 3.0}})),
        lambda: problem(
            http.post(QUESTION, json={}, headers={"Authorization": "Bearer wrong"}), 401, "unauthenticated"
        ),
    ):
        lend(server, lambda: ask(http, [1.0]))
        before = by_process(server)
        assert send()
        assert by_process(server) == before


class Pipe:
    """A connection over which anything can be sent; its questions have ann's key, unless another is named."""

    def __init__(self, server: Server) -> None:
        self.sock = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        self.stream = Stream(self.sock)

    def __enter__(self) -> "Pipe":
        return self

    def __exit__(self, *_: object) -> None:
        self.stream._file.close()
        self.sock.close()

    @staticmethod
    def request(x: float, key: str | None = KEYS["ann"]) -> bytes:
        body = json.dumps({"inputs": {"x": [x], "y": 1.0}, "sources": ["x"]}).encode()
        owner = None if key is None else f"Bearer {key}"
        return head(len(body), path=QUESTION, Content_Type="application/json", Authorization=owner) + body

    def status(self, *requests: bytes) -> int:
        """Sends them at once; the status of the first answer."""
        self.sock.sendall(b"".join(requests))
        return answer(self.stream).status


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize(
    ("key", "code"), [(KEYS["ann"][:-1], 401), (KEYS["ann"] + "x", 401), (None, 401), (KEYS["bob"], 404)]
)
def test_a_request_with_another_key_is_not_answered_by_the_process(server: Server, key: str | None, code: int) -> None:
    """Nor is one with another owner's key, who has no such session; a connection with both is not lent again."""
    with Pipe(server) as pipe:
        lend(server, lambda: pipe.status(pipe.request(1.0)) == 200)
        before = by_process(server)
        assert pipe.status(pipe.request(1.0, key)) == code
        assert by_process(server) == before
        assert pipe.status(pipe.request(1.0)) == 200
        if code == 401:
            lend(server, lambda: pipe.status(pipe.request(1.0)) == 200)
            return
        before = by_process(server)
        for _ in range(20):
            assert pipe.status(pipe.request(1.0)) == 200
        assert by_process(server) == before


@pytest.mark.usefixtures("undisturbed")
def test_questions_with_several_keys_one_after_the_other(server: Server) -> None:
    """Each is answered with its own key, though all come at once."""
    with Pipe(server) as pipe:
        lend(server, lambda: pipe.status(pipe.request(1.0)) == 200)
        keys = [KEYS["ann"], KEYS["ann"], "wrong", KEYS["ann"], KEYS["bob"], KEYS["ann"], None]
        statuses = [pipe.status(*[pipe.request(1.0, key) for key in keys])]
        statuses += [answer(pipe.stream).status for _ in keys[1:]]
    assert statuses == [200, 200, 401, 200, 404, 200, 401]


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize(
    ("old", "new"), [(b"Host: localhost", b"Host localhost"), (b"Content-Length: ", b"Content-Length: -")]
)
def test_a_malformed_head_is_refused_by_the_server(server: Server, old: bytes, new: bytes) -> None:
    with Pipe(server) as pipe:
        lend(server, lambda: pipe.status(pipe.request(1.0)) == 200)
        before = by_process(server)
        request = pipe.request(1.0)
        assert old in request
        assert pipe.status(request.replace(old, new)) == 400
        assert by_process(server) == before


@pytest.mark.usefixtures("undisturbed")
def test_the_end_of_a_session_reaches_its_connections(server: Server, other: httpx.Client) -> None:
    with Pipe(server) as pipe:
        lend(server, lambda: pipe.status(pipe.request(1.0)) == 200)
        until(lambda: not host_of(server)._loans.page.slot(0).number)  # or its process ends as it writes the answer
        ok(other.delete(SESSION))
        assert pipe.status(pipe.request(1.0)) == 410


@pytest.mark.parametrize("end", ["answered", "cancelled", "session_ended"])
def test_a_long_question_is_the_server_s(server: Server, http: httpx.Client, other: httpx.Client, end: str) -> None:
    """It is seen to run, and can be cancelled; its caller learns of its end."""
    lend(server, lambda: ask_long(http, 3))
    responses, pid = list[httpx.Response](), server.worker("demo")
    asking = threading.Thread(target=lambda: responses.append(ask_long(http, 3000)))
    asking.start()
    until(lambda: bool(host_of(server).running))
    os.kill(pid, signal.SIGSTOP)  # in the middle of it
    assert ok(other.get(SESSION)).json()["running"]["requests"] == 1
    if end == "cancelled":
        ok(other.post(f"{SESSION}/cancel"))
    os.kill(pid, signal.SIGKILL if end == "session_ended" else signal.SIGCONT)
    asking.join()
    if end == "answered":
        assert gradient(responses[0])
    else:
        problem(responses[0], {"cancelled": 409, "session_ended": 410}[end], end)


def test_a_defect_is_logged_with_the_request_that_its_caller_knows(
    server: Server, http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where the server learns of the request after its defect."""
    lend(server, lambda: ask(http, [1.0]))
    host = host_of(server)
    head = ("reply", -7, "internal", "", {"message": "no", "details": {}, "headers": None})

    def answer() -> None:  # as the process does for a request that it has read itself
        host._on_message(("defect", -7, "Traceback"), None)
        assert not caplog.records
        host._begin_lent(-7, 0.0).request_id = "of-the-caller"
        host._on_message(head, None)

    answered = threading.Event()
    server.loop().call_soon_threadsafe(lambda: (answer(), answered.set()))
    answered.wait(60)
    assert "request of-the-caller met a defect of the server" in caplog.text


def test_a_session_that_dies_is_logged_without_the_request_that_began_it(
    server: Server, other: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    seen = list[str]()

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(REQUEST_ID.get())

    log, handler = logging.getLogger("teletape"), Handler()
    log.addHandler(handler)
    try:
        ok(other.post("/v1/sessions", json={"id": "dies"}, headers={"X-Request-Id": "the-first"}))
        seen.clear()
        os.kill(server.worker("dies"), signal.SIGKILL)
        until(lambda: "session dies of ann ended" in caplog.text)
    finally:
        log.removeHandler(handler)
    assert set(seen) == {"-"}
