"""Calls of published functions over connections that a process serves: no caller sees a difference but in time."""

import contextlib
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from frame_streams import Stream
from scraped import read

from serving import KEYS, Server, needs_exchange, ok, until
from teletape_server.connections import lending
from teletape_server.connections.reader import Stage
from teletape_server.handlers.methods import Result
from teletape_server.handlers.published.batching import batch_limit, late
from teletape_server.hosts import loans
from teletape_server.ipc.durations import SIZES, Batches
from teletape_server.ipc.heads import Approval
from teletape_server.ipc.leases import Times
from teletape_server.ipc.page import Page
from teletape_server.ipc.token import Token
from teletape_server.published import pool as pool_module
from teletape_server.settings import Settings
from teletape_server.worker.lent import connections as lent_connections
from teletape_server.worker.lent.connections import DirectConnections
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE
from teletape_wire.safetensors.reader import read_file
from teletape_wire.safetensors.writer import write_file

pytestmark = needs_exchange

SQUARES: dict[str, Any] = {"function": {"text": "y = sum(x * x * w)"}, "inputs": {"x": {"shape": ["n"]}}}
JSON = "application/json"
ROUTE = "/v1/published/{name}/value_and_gradient"
#: Members of an answer's head that differ from answer to answer.
OWN = ("date", "x-request-id", "content-length")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine makes no call too slow to count, and no connection idle or too long busy."""
    monkeypatch.setattr(lending, "_QUICK_CALL", 600.0)
    for name in ("_IDLE_SECONDS", "_LONG_SECONDS", "_LONG_TOGETHER_SECONDS"):
        monkeypatch.setattr(loans, name, 600.0)


def publish(server: Server, name: str, weight: float, **fields: Any) -> None:
    with server.client() as http:
        ok(http.put(f"/v1/published/{name}", json={**SQUARES, "weights": {"w": weight}, **fields}))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(Settings(api_keys=KEYS, shutdown_grace=0.1)).running() as running:
        publish(running, "squares", 1.0)
        yield running


class Caller:
    """A caller with a connection of its own, which sends each request at once."""

    def __init__(self, server: Server, name: str = "squares", owner: str = "ann", content_type: str = JSON) -> None:
        self.server, self.name, self.owner, self.content_type = server, name, owner, content_type
        self.connect()

    def connect(self) -> None:
        self.sock = socket.create_connection(("127.0.0.1", self.server.port), timeout=60)
        self.stream = Stream(self.sock)

    def __enter__(self) -> "Caller":
        return self

    def __exit__(self, *_: object) -> None:
        self.stream._file.close()
        self.sock.close()

    def reconnect(self) -> None:
        self.__exit__()
        self.connect()

    def send(
        self, x: Any, headers: tuple[str, ...] = (), *, between: Callable[[], None] | None = None, **fields: Any
    ) -> None:
        """Sends a call, head and body at once, or with something done between them."""
        if self.content_type == JSON:
            body = json.dumps({"inputs": {"x": x}, **fields}).encode()
        else:
            body = b"".join(write_file({"x": np.asarray(x, "f4")}, {"request": json.dumps(fields)}))
        lines = [
            f"POST /v1/published/{self.name}/value_and_gradient HTTP/1.1",
            "Host: 127.0.0.1",
            f"Authorization: Bearer {KEYS[self.owner]}",
            *(f"{name}: {self.content_type}" for name in ("Content-Type", "Accept")),
            *headers,
            f"Content-Length: {len(body)}",
        ]
        head = "\r\n".join([*lines, "", ""]).encode()
        if between is not None:
            self.sock.sendall(head)
            between()
            head = b""
        self.sock.sendall(head + body)

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the next answer."""
        status = int(self.stream.readline().split()[1])
        headers = {}
        while line := self.stream.readline().strip():
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        return status, headers, self.stream.read(int(headers["content-length"]))

    def ask(self, x: Any, **fields: Any) -> Any:
        """The answer to a call, which must be one in JSON."""
        self.send(x, **fields)
        status, _, body = self.answer()
        assert status == 200, body
        return json.loads(body)

    def lend(self) -> "Caller":
        """Asks until a process has answered some calls itself."""
        before = by_process(self.server, self.name)

        def is_lent() -> bool:
            self.send([1.0])
            assert self.answer()[0] == 200
            return by_process(self.server, self.name) > before + 4

        until(is_lent)
        return self


def by_process(server: Server, name: str = "squares") -> int:
    """How many calls of a function processes have read and answered themselves."""
    served = server.app.state.pool.lent.served()
    return sum(item.durations.total for account, item in served.items() if account.function == name.partition("@")[0])


def gradient(answer: Any) -> Any:
    return answer["derivatives"][0]["value"]["data"]


# ----------------------------------------------------------------------------------------------------- what is the same
def test_calls_are_answered_by_the_process_with_the_same_heads_and_bodies(server: Server) -> None:
    for content_type in (JSON, SAFETENSORS_TYPE):
        with Caller(server, content_type=content_type) as caller, Caller(server, content_type=content_type) as other:
            caller.lend()
            before = by_process(server)
            for x in ([1.0, 2.0], [0.5], [3.0, -1.0, 0.25]):
                answers = []
                for item in (caller, other):  # the other one asks too seldom
                    item.send(x)
                    status, headers, body = item.answer()
                    assert status == 200
                    if content_type == JSON:
                        answer = json.loads(body)
                        assert answer.pop("batch").keys() == {"size", "waited_us", "why"}
                        content: Any = answer
                    else:
                        tensors = read_file(memoryview(body), copy_below=1 << 20).tensors
                        content = {name: array.tolist() for name, array in tensors.items()}
                    answers.append(({name: v for name, v in headers.items() if name not in OWN}, content))
                assert answers[0] == answers[1]
            assert by_process(server) >= before + 3


def test_calls_of_many_callers_are_computed_together_and_exact_ones_alone(server: Server) -> None:
    with contextlib.ExitStack() as stack:
        callers = [stack.enter_context(Caller(server)).lend() for _ in range(12)]
        sizes: set[int] = set()

        def ask_all() -> bool:
            for number, caller in enumerate(callers):
                caller.send([float(number), 2.0], exact=number % 4 == 3)
            for number, caller in enumerate(callers):
                answer = json.loads(caller.answer()[2])
                assert gradient(answer) == [2.0 * number, 4.0]
                if number % 4 == 3:
                    assert (answer["batch"]["size"], answer["batch"]["why"]) == (1, "exact")
                else:
                    sizes.add(answer["batch"]["size"])
            return max(sizes) > 4

        until(ask_all)
        assert max(sizes) <= 9


def test_a_call_that_is_refused_gets_its_problem_and_the_others_their_answers(server: Server) -> None:
    with contextlib.ExitStack() as stack:
        callers = [stack.enter_context(Caller(server)).lend() for _ in range(6)]
        for number, caller in enumerate(callers):
            caller.send([[1.0], [2.0]] if number == 2 else [float(number)])
        for number, caller in enumerate(callers):
            status, headers, body = caller.answer()
            if number == 2:
                assert (status, headers["content-type"]) == (422, "application/problem+json")
                assert json.loads(body)["code"] == "invalid_request"
                assert gradient(caller.ask([3.0])) == [6.0], "the server goes on with the connection"
            else:
                assert gradient(json.loads(body)) == [2.0 * number]


# ------------------------------------------------------------------------------------------------------- what changes
def test_what_a_name_means_changes_with_the_answer_that_says_so(server: Server) -> None:
    publish(server, "moving", 1.0)
    with Caller(server, "moving") as caller, Caller(server, "moving@stable") as stable, server.client() as http:
        version = ok(http.get("/v1/published/moving")).json()["version"]["version"]
        ok(http.put("/v1/published/moving/aliases/stable", json={"version": version}))
        caller.lend(), stable.lend()
        publish(server, "moving", 10.0)
        assert gradient(caller.ask([1.0])) == [20.0]
        assert gradient(stable.ask([1.0])) == [2.0]
        caller.lend(), stable.lend()
        ok(http.put("/v1/published/moving/aliases/stable", json={"version": "latest"}))
        assert gradient(stable.ask([1.0])) == [20.0]
        caller.lend()
        ok(http.delete("/v1/published/moving"))
        caller.send([1.0])
        status, _, body = caller.answer()
        assert (status, json.loads(body)["code"]) == (404, "unknown_id")


def test_a_key_that_may_not_see_it_any_more_is_refused(server: Server) -> None:
    publish(server, "shared", 1.0, visibility="everybody")
    with Caller(server, "shared", owner="bob") as caller:
        caller.lend()
        publish(server, "shared", 1.0, visibility="me")
        caller.send([1.0])
        assert caller.answer()[0] == 404


def test_another_key_on_the_connection_is_looked_at_by_the_server(server: Server) -> None:
    publish(server, "own", 1.0)
    with Caller(server, "own") as caller:
        caller.lend()
        caller.owner = "bob"
        caller.send([1.0])
        assert caller.answer()[0] == 404


class Lent:
    """A connection that is lent to this process: its caller's end, and the server's end of messages.

    Attributes:
        caller, messages: These ends.
        connections: The connections of this process.
        returned: Loans that it has returned.
        computed: Calls that it has computed.
        waits: Seconds for which it would have waited, each time that it looks what has come.
        on_wait: Called before it looks, with the number of times that it did before.
        gate: Of its answers: none waits for a disk.
    """

    gate = None

    def __init__(self, has_version: bool = True) -> None:
        self._requests, self.messages = socket.socketpair()
        self._mine, self.caller = socket.socketpair()
        self.connections = DirectConnections(self._requests, self._run, self, lambda version: has_version)  # type: ignore[arg-type]  # of the answers what it needs
        self.connections.page, file = Page.new()
        os.close(file)
        self.connections._poll, self._poll = self, self.connections._poll  # type: ignore[assignment]
        self.register, self.modify, self.unregister = self._poll.register, self._poll.modify, self._poll.unregister
        self.returned: list[int] = []
        self.computed: list[bytes] = []
        self.waits: list[float] = []
        self.on_wait: Callable[[int], object] = lambda number: None
        params = {"version": "v1", "question": "call", "call": {}}
        approval = Approval(
            *(
                b"Length: ",
                b"\r\n",
                "published-ask",
                JSON,
                params,
                b"",
                None,
                100,
                100,
                100,
                ("POST", ROUTE, 200),
                JSON,
            ),
            *("squares", "ann", 64),
        )
        files = [os.dup(self._mine.fileno()), Token.new().duplicate()]
        self.connections.add(7, 0, approval, Times(0.0, 0.0, 0.0, 0.0), files)

    def __enter__(self) -> "Lent":
        return self

    def __exit__(self, *_: object) -> None:
        for connection in [*self.connections._by_file.values()]:
            self.connections._drop(connection)
        self._poll.close()
        for sock in (self._requests, self.messages, self._mine, self.caller):
            sock.close()
        self.connections.page.close()

    def poll(self, seconds: float) -> Any:
        self.on_wait(len(self.waits))
        self.waits.append(seconds)
        return self._poll.poll(seconds)

    def return_loan(self, id: int, unsent: bytes) -> None:
        self.returned.append(id)

    def _run(self, number: int, method: str, params: Any, content_type: str, body: memoryview, *_: Any) -> Result:
        self.computed.append(bytes(body))
        return Result(JSON, [b"{}"], 2, {"parts": [(2, JSON, None)]})

    @property
    def unread(self) -> bytes:
        """What the process has left in the connection."""
        return self._mine.recv(100, socket.MSG_DONTWAIT)


def test_a_call_of_a_version_that_the_process_has_dropped_is_left_to_the_server() -> None:
    with Lent(has_version=False) as lent:
        lent.caller.sendall(b"Length: 2\r\n{}")
        lent.connections.serve(0.01)
        assert (lent.computed, lent.returned) == ([], [7])
        assert lent.unread == b"Length: 2\r\n{}", "nothing of it is read"


def test_a_call_that_comes_with_a_message_is_computed_after_it_also_if_nothing_else_comes() -> None:
    with Lent() as lent:
        lent.caller.sendall(b"Length: 2\r\n[]")
        lent.messages.sendall(b"m")
        assert lent.connections.serve(60.0)
        assert lent.computed == [], "first the message, which may bring one more connection"
        assert lent._requests.recv(10) == b"m"
        lent.on_wait = lambda number: lent.waits and lent.computed and lent.messages.sendall(b"m")
        waits = len(lent.waits)
        assert lent.connections.serve(60.0)
        assert (lent.computed, lent.caller.recv(10)) == ([b"[]"], b"{}")
        assert lent.waits[waits] == 0.0


def test_a_call_whose_head_and_body_come_apart_is_computed_as_its_body_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not looked for all the time: what comes wakes the process."""
    monkeypatch.setattr(lent_connections, "_INCOMPLETE", 600.0)  # a busy machine
    with Lent() as lent:
        for _ in range(2):
            before = len(lent.waits)
            lent.caller.sendall(b"Length: 2\r\n")

            def go_on(number: int, before: int = before) -> None:
                if number == before + 2:
                    lent.caller.sendall(b"[]")
                if lent.computed:
                    lent.messages.sendall(b"m")

            lent.on_wait = go_on
            assert lent.connections.serve(60.0)
            assert (lent.computed, lent.caller.recv(10), lent.returned) == ([b"[]"], b"{}", [])
            assert len(lent.waits) == before + 4, "for the head, once more, for the body, and for the message"
            assert lent._requests.recv(10) == b"m"
            lent.computed.clear()


def test_a_call_whose_body_does_not_come_is_left_to_the_server() -> None:
    with Lent() as lent:
        lent.caller.sendall(b"Length: 2\r\n[")
        lent.on_wait = lambda number: lent.returned and lent.messages.sendall(b"m")
        assert lent.connections.serve(60.0)
        assert (lent.computed, lent.returned, lent.unread) == ([], [7], b"Length: 2\r\n[")
        assert len(lent.waits) < 20


def test_a_connection_whose_heads_and_bodies_come_apart_is_lent(server: Server) -> None:
    """As those of httpx: the server waits until it has read the head, so that they never come together."""
    with Caller(server) as caller:
        connections = server.app.state.connections.open

        def is_lent() -> bool:
            return any(item.lending is not None and item.lending.loan is not None for item in connections)

        def has_head() -> bool:
            return any(item._reader.stage is Stage.BODY for item in connections)

        until(lambda: not is_lent())  # those of other tests
        for _ in range(1 + lending._FIRST):  # the first one brings the head
            caller.send([1.0], between=lambda: until(has_head))
            assert caller.answer()[0] == 200
        until(is_lent)


# ------------------------------------------------------------------------------------------------------------ reclaimed
def test_a_call_that_runs_as_its_connection_is_reclaimed_is_answered_by_the_server(server: Server) -> None:
    publish(
        server, "long", 1.0, function={"text": "y = sum(tanh(tanh(reshape(x, [-1, 1]) * reshape(x, [1, -1])))) * w"}
    )
    with Caller(server, "long") as caller, server.client() as http:
        caller.lend()
        before = read(http).get(("teletape_published_calls_total", "long", "value_and_gradient"))
        assert before is not None
        reclaimed: list[bool] = []

        def reclaim() -> None:
            for process in server.app.state.pool._processes:
                reclaimed.append(bool(process.host.running))
                process.host.reclaim()
                reclaimed.append(bool(process.host.running))

        def ask() -> bool:
            caller.lend()
            caller.send([0.5] * 3000)
            until(lambda: any(page_of(p).slot(i).number for p in server.app.state.pool._processes for i in range(4)))
            server.loop().call_soon_threadsafe(reclaim)
            status, _, body = caller.answer()
            assert (status, json.loads(body)["batch"]["size"]) == (200, 1)
            return True in reclaimed

        until(ask)


def page_of(process: Any) -> Page:
    page: Page = process.host._loans.page
    return page


def test_a_process_that_dies_is_replaced_and_its_calls_are_done_again(server: Server) -> None:
    text = "y = sum(tanh(tanh(reshape(x, [-1, 1]) * reshape(x, [1, -1])))) * w"
    publish(server, "deadly", 1.0, function={"text": text})
    with Caller(server, "deadly") as caller:
        expected = gradient(caller.ask([0.5] * 2000))

        def dies_as_it_computes() -> bool:
            caller.lend()
            before = by_process(server, "deadly")
            processes = [*server.app.state.pool._processes]
            caller.send([0.5] * 2000)
            until(lambda: any(page_of(process).slot(i).number for process in processes for i in range(4)))
            for process in processes:
                os.kill(process.host.pid, signal.SIGKILL)
            try:
                status, _, body = caller.answer()
            except (ConnectionError, IndexError):  # it died as it wrote
                caller.reconnect()
                return False
            assert (status, gradient(json.loads(body))) == (200, expected)
            return by_process(server, "deadly") == before

        until(dies_as_it_computes)
    with Caller(server) as caller:
        assert gradient(caller.ask([3.0])) == [6.0]


def test_busy_processes_get_another_one_and_the_servers_end_takes_connections_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Server(Settings(api_keys=KEYS, shutdown_grace=0.1)).running() as server:
        publish(server, "squares", 1.0)
        pool = server.app.state.pool
        pool._most = 2
        with Caller(server) as caller, Caller(server) as other:
            caller.lend(), other.lend()
            assert [process.host.lent for process in pool._processes] == [2]
            monkeypatch.setattr(pool_module, "_BUSY_SHARE", -1.0)

            def is_dealt_out() -> bool:
                caller.ask([1.0]), other.ask([1.0])
                return [process.host.lent for process in pool._processes] == [1, 1]

            until(is_dealt_out)
            server.stop()
            until(lambda: server.app.state.registry.live.stopping)
            with contextlib.suppress(ConnectionError, IndexError):  # it is closed between two requests
                caller.send([1.0])
                assert caller.answer()[0] in (200, 503)


# -------------------------------------------------------------------------------------------------------------- counted
def test_metrics_count_the_calls_that_a_process_has_answered(server: Server) -> None:
    with Caller(server) as caller, server.client() as http:
        caller.lend()
        before = read(http)
        assert before[("teletape_lent_connections",)] >= 1
        count = by_process(server)
        for _ in range(10):
            caller.ask([1.0])
        assert by_process(server) == count + 10
        after = read(http)
        for name in (
            ("teletape_published_calls_total", "squares", "value_and_gradient"),
            ("teletape_requests_total", "POST", ROUTE, "200"),
            ("teletape_published_batch_calls_bucket", "squares", "1.0"),
            ("teletape_published_batch_calls_sum", "squares"),
            ("teletape_request_seconds_count", ROUTE),
        ):
            assert after[name] == before[name] + 10, name
        name = ("teletape_published_compute_seconds_total", "squares")
        assert after[name] > before[name]
        assert after["teletape_key_requests_total", "ann"] >= before["teletape_key_requests_total", "ann"] + 10


def test_a_slot_counts_calls_and_batches_as_an_object_does() -> None:
    page, file = Page.new()
    os.close(file)
    expected = Batches()
    for size in (1, 2, 3, 64, 256, 300):
        for number in range(min(size, 3)):
            own = (0.25, 0.5, size) if number == 0 else (0.125, 0.0, 0)
            page.slot(5).note_computed(*own)
            expected.note(1, *own)
    batches = page.slot(5).served.batches
    assert (batches.counts, batches.calls) == (expected.counts, expected.calls)
    assert (batches.queue_seconds, batches.compute_seconds) == (expected.queue_seconds, expected.compute_seconds)
    assert len(batches.counts) == len(SIZES) + 1
    assert sum((batches + expected).counts) == 12
    assert not any(page.slot(4).served.batches.counts), "each connection has its own"
    page.close()


# ---------------------------------------------------------------------------------------------------------- time limits
def test_a_call_whose_time_is_over_is_not_begun() -> None:
    assert late(0.1, None) is None
    assert late(0.1, 0.2) is None
    text = late(0.3, 0.2)
    assert text is not None
    assert "0.2 s" in text


def test_a_batch_has_the_time_of_the_caller_who_gives_most_if_all_give_one() -> None:
    assert batch_limit([(0.0, 1.0), (0.5, None)]) == {}
    assert list(batch_limit([(0.0, 1.0), (0.5, 2.5)]).values()) == [2.0]
    assert list(batch_limit([(2.0, 1.0)]).values()) == [0.001]


def test_a_time_limit_holds_over_a_lent_connection(server: Server) -> None:
    with Caller(server) as caller:
        limited = ("Teletape-Time-Limit: 30",)
        before = by_process(server)
        answered: Callable[[], int] = lambda: caller.answer()[0]  # noqa: E731

        def is_lent() -> bool:
            caller.send([1.0], limited)
            assert answered() == 200
            return by_process(server) > before + 2

        until(is_lent)
