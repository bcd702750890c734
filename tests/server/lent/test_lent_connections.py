"""Connections that a session's process serves: no caller sees a difference, whatever it sends and whoever ends."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from frame_streams import PATH, REFUSED, answer, frame, head, host_of
from lent_callers import ENDLESS, Caller, lent

import teletape_wire as wire
from serving import KEYS, Program, Server, needs_exchange, ok, problem, until
from teletape_engine.commands import Assign, Batch, Call, Constant, Fetch, MakeVariable
from teletape_engine.recording.values import Literal
from teletape_server.connections import lending
from teletape_server.hosts import loans
from teletape_server.hosts.loans import LentRequest
from teletape_server.hosts.running import Running
from teletape_server.ipc.channel import close_files
from teletape_server.ipc.confinement import User
from teletape_server.ipc.heads import FRAME, Approval, Label
from teletape_server.ipc.leases import Times
from teletape_server.ipc.page import SLOTS, Page
from teletape_server.settings import Settings
from teletape_server.worker.lent.connections import DirectConnections

pytestmark = needs_exchange

MIB = 1 << 20
#: A batch that runs for some tenths of a second, and is small enough for a process to read it itself.
LONG = [
    Call("fill", (Literal(1e-3),), ("a",), {"shape": (300, 5000)}),
    Call("fill", (Literal(1e-3),), ("b",), {"shape": (5000, 300)}),
    *[Call("matmul", ("a", "b"), (f"m{i}",)) for i in range(30)],
    Call("reduce_sum", ("a",), ("sum",)),
]


@pytest.fixture(scope="module", autouse=True)
def patient() -> Iterator[None]:
    """A busy machine makes no frame too slow to count, and no connection idle."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lending, "_QUICK", 600.0)
        patch.setattr(loans, "_IDLE_SECONDS", 600.0)
        yield


@pytest.fixture
def undisturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine makes no frame so long that its connection is reclaimed."""
    monkeypatch.setattr(loans, "_LONG_SECONDS", 600.0)


@pytest.fixture(scope="module")
def direct() -> Iterator[Server]:
    settings = Settings(
        api_keys=KEYS, direct="on", max_body=64 * MIB, max_header=8 * MIB, patience=600.0, shutdown_grace=0.1
    )
    with Server(settings).running() as server:
        yield server


@pytest.fixture
def http(direct: Server) -> Iterator[httpx.Client]:
    with direct.client() as client:
        ok(client.post("/v1/sessions", json={"id": "demo"}))
        yield client
        client.delete("/v1/sessions/demo")


@pytest.fixture
def caller(direct: Server, http: httpx.Client) -> Iterator[Caller]:
    with Caller(direct, http) as one_caller:
        yield one_caller


def answered_by_process(host: Any, label: Label = FRAME) -> int:
    """Requests with that label that the process has read and answered itself."""
    durations = host.facts().answered.get(label)
    return 0 if durations is None else durations.total


def frames_of(server: Server) -> int:
    """Frames that the process has read and answered itself."""
    return answered_by_process(host_of(server))


def page_of(server: Server) -> Page:
    page: Page = host_of(server)._loans.page
    return page


def signal_idle(server: Server, signal_number: signal.Signals) -> None:
    """Sends a signal to the session's process as soon as it waits for a frame."""
    pid = server.worker("demo")
    until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S")
    os.kill(pid, signal_number)


def stop_running(server: Server) -> None:
    """Stops the session's process in the middle of a frame that the server knows to run."""
    until(lambda: bool(host_of(server).running))
    os.kill(server.worker("demo"), signal.SIGSTOP)


def run_elsewhere(server: Server, http: httpx.Client, batch: Batch) -> httpx.Response:
    """Sends a batch through a connection that the server serves, until it has run."""
    path = f"{PATH}?encoding="
    while (
        response := http.post(path, content=frame(batch), headers={"Content-Type": wire.FRAME_TYPE})
    ).status_code == 202:
        pass
    return response


# --------------------------------------------------------------------------------------------------------- what is lent
@pytest.mark.usefixtures("undisturbed")
def test_the_process_serves_small_frames_itself(direct: Server, http: httpx.Client, caller: Caller) -> None:
    """The server knows all the same how much memory the session takes, and that it is not idle."""
    host = host_of(direct)
    submitted, before = host._last_number, frames_of(direct)
    caller.run(Constant(1, np.arange(1000.0)))
    first = ok(http.get("/v1/sessions/demo")).json()
    assert first["bytes_in_use"] >= 8000
    for i in range(20):
        (fetched,) = caller.run(Call("neg", (1,), (i + 2,)), Fetch(i + 2))
        assert np.array_equal(fetched.array, -np.arange(1000.0))
    assert frames_of(direct) == before + 21
    assert host._last_number == submitted
    second = ok(http.get("/v1/sessions/demo")).json()
    assert second["bytes_in_use"] >= 21 * 8000
    assert second["expires_at"] >= first["expires_at"]
    assert second["running"]["requests"] == 0


@pytest.mark.usefixtures("undisturbed")
def test_answers_are_the_same_on_all_ways(direct: Server, http: httpx.Client, caller: Caller) -> None:
    caller.run(Constant(1, np.arange(10.0)))
    with Caller(direct, http, lends=False, X_Forwarded_For="192.0.2.7") as other:
        for commands in ([], [Fetch(1)], [Fetch("none")], [Call("nothing", (1,), (2,))]):
            items = []
            for one_caller in (caller, other):
                batch = one_caller.program.batch(*commands)
                one_caller.sock.sendall(one_caller.request(batch))
                item = one_caller.answer()
                answered, served = wire.decode_answer(item.body)
                assert served.expires_at
                items.append((item.comparable(), repr(answered), sorted(name for name, _ in item.headers)))
            assert items[0] == items[1]
    assert caller.lent == 1


@pytest.mark.usefixtures("undisturbed")
def test_a_frame_that_the_process_leaves_to_the_server_is_counted_once(
    direct: Server, http: httpx.Client, caller: Caller
) -> None:
    def answered() -> dict[str, int]:
        counts = ok(http.get("/v1/sessions/demo")).json()["answered"]
        return {name: counts[name] for name in ("requests", "frames", "problems")}

    caller.lend()
    before, by_process = answered(), frames_of(direct)
    caller.program.seq += 5
    caller.send()
    assert caller.answer().status == 409, "out of turn"
    assert answered() == {name: count + 1 for name, count in before.items()}
    assert frames_of(direct) == by_process


@pytest.mark.usefixtures("undisturbed")
def test_a_head_keeps_its_request_id(direct: Server, http: httpx.Client) -> None:
    with Caller(direct, http, X_Request_Id="mine") as caller:
        before = frames_of(direct)
        caller.send()
        assert dict(caller.answer().headers)["x-request-id"] == "mine"
        assert frames_of(direct) == before + 1
    with Caller(direct, http) as caller:
        ids = set()
        for _ in range(3):
            caller.send()
            ids.add(dict(caller.answer().headers)["x-request-id"])
        assert len(ids) == 3


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_the_same_as_elsewhere(direct: Server, http: httpx.Client, caller: Caller, name: str) -> None:
    _, _, body, headers = REFUSED[name]
    fields = dict(headers)
    path = fields.pop("path", PATH)
    request = head(len(body), path=path, **fields) + body
    caller.sock.sendall(request)
    first = caller.answer()
    with socket.create_connection(("127.0.0.1", direct.port), timeout=60) as sock:
        sock.sendall(request)
        assert answer(sock).comparable() == first.comparable()


def test_refusals_of_the_process_are_answered(direct: Server, caller: Caller) -> None:
    """The connection goes on, and is lent again."""
    batch = caller.program.batch()
    for seq in (batch.seq + 7, 1):
        wrong = Batch((), (), batch.client, seq, b"another nonce 16")
        caller.sock.sendall(caller.request(wrong))
        item = caller.answer()
        assert item.status == 409
        assert json.loads(item.body)["instance"].endswith(dict(item.headers)["x-request-id"])
    caller.sock.sendall(caller.request(batch))
    assert caller.results() == ()
    caller.lend()


def test_a_retry_gets_the_first_answer(direct: Server, caller: Caller) -> None:
    caller.run(MakeVariable("v", np.zeros((), np.float32)))
    batch = caller.send(Assign("v", Literal(1.0), "add"), Fetch("v"))
    first = caller.answer()
    caller.sock.sendall(caller.request(batch))
    second = caller.answer()
    assert dict(second.headers)["idempotent-replayed"] == "true"
    assert second.status == 200
    assert repr(wire.decode_answer(first.body)[0]) == repr(wire.decode_answer(second.body)[0])


@pytest.mark.usefixtures("undisturbed")
def test_only_some_connections_of_a_session_are_lent(
    direct: Server, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("teletape_server.connections.connection.KEEP_ALIVE_SECONDS", 600.0)  # a busy machine
    with contextlib.ExitStack() as stack:
        callers = [stack.enter_context(Caller(direct, http)) for _ in range(SLOTS)]
        callers += [stack.enter_context(Caller(direct, http, lends=False)) for _ in range(3)]
        for i in range(5):
            for k, caller in enumerate(callers):
                (fetched,) = caller.run(Constant(f"{k}.{i}", np.full(3, k)), Fetch(f"{k}.{i}"))
                assert np.array_equal(fetched.array, np.full(3, k))
        assert callers[0].lent == SLOTS
    until(lambda: not lent(direct))
    with Caller(direct, http) as caller:  # their places are free
        caller.run()


@pytest.mark.usefixtures("undisturbed")
def test_slots_of_connections_that_broke_while_the_process_wrote_are_used_again(
    direct: Server, http: httpx.Client
) -> None:
    def break_off(connection: Any) -> None:
        connection.lending.loan.token.take()  # as the process does to write an answer; it may have it already
        connection.transport.abort()

    for _ in range(SLOTS + 1):
        with Caller(direct, http) as caller:
            port = caller.sock.getsockname()[1]
            [connection] = [item for item in direct.app.state.connections.open if item.client[1] == port]
            direct.loop().call_soon_threadsafe(break_off, connection)
            until(lambda: not lent(direct))


@pytest.mark.usefixtures("undisturbed")
def test_connections_of_proxies_are_not_lent(direct: Server, http: httpx.Client) -> None:
    """A process could read what comes over its connections, and other callers' requests may come over a proxy's."""
    with Caller(direct, http, lends=False, X_Forwarded_For="192.0.2.7") as caller:
        for _ in range(10):
            caller.run()
        assert not caller.lent


def test_which_servers_lend_connections() -> None:
    """Not those whose sessions' processes are to have less than the server: they could read their callers' keys."""
    nobody = User(65534, 65534)
    for has_keys in (False, True):
        assert Settings().is_direct(has_keys=has_keys)
        assert Settings(worker_user=nobody).is_direct(has_keys=has_keys) is not has_keys
        assert Settings(worker_user=nobody, direct="on").is_direct(has_keys=has_keys)
        assert not Settings(direct="off").is_direct(has_keys=has_keys)
        assert not Settings(frames="off").is_direct(has_keys=has_keys)
        assert not Settings(access_log="on").is_direct(has_keys=has_keys)


@pytest.mark.usefixtures("undisturbed")
def test_a_unix_socket_is_lent_over_too(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    settings = Settings(unix=path)
    server = Server(settings)
    server.listener.close()
    server.listener = socket.socket(socket.AF_UNIX)
    server.listener.bind(path)
    server.listener.listen()
    transport = httpx.HTTPTransport(uds=path)
    server.client = lambda *_, **__: httpx.Client(base_url="http://localhost", transport=transport, timeout=60)  # type: ignore[method-assign]
    with server.running(), server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        program = Program(http, "demo")
        host = server.app.state.registry.find("local", "demo").host
        deadline = time.monotonic() + 60
        while not host.facts().lent:
            assert time.monotonic() < deadline
            program.run()
        for i in range(3):
            (fetched,) = program.run(Constant(i, np.arange(3.0)), Fetch(i)).results
            assert np.array_equal(fetched.array, np.arange(3.0))  # type: ignore[union-attr]
        assert answered_by_process(host) >= 3


# -------------------------------------------------------------------------------------------------------- in any pieces
@pytest.mark.parametrize("piece", [1, 7, 64, 1000])
def test_frames_may_come_in_small_pieces(direct: Server, caller: Caller, piece: int) -> None:
    caller.run(Constant(1, np.arange(10.0)))
    sent = caller.request(caller.program.batch(Fetch(1)))
    for start in range(0, len(sent), piece):
        caller.sock.sendall(sent[start : start + piece])
    (fetched,) = caller.results()
    assert np.array_equal(fetched.array, np.arange(10.0))
    caller.run(Fetch(1))


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize("cut", [1, 30, 200, -1])
def test_a_frame_whose_rest_comes_late_is_received(direct: Server, caller: Caller, cut: int) -> None:
    """The process does not wait for it: its other callers are served, and the server waits."""
    caller.run(Constant(1, np.arange(10.0)))
    sent = caller.request(caller.program.batch(Fetch(1)))
    caller.sock.sendall(sent[:cut])
    until(lambda: not caller.lent)
    caller.sock.sendall(sent[cut:])
    (fetched,) = caller.results()
    assert np.array_equal(fetched.array, np.arange(10.0))


def test_pipelined_frames_are_answered_in_order(direct: Server, caller: Caller) -> None:
    """Also frames after other requests, and other requests after frames."""
    caller.run(MakeVariable("v", np.zeros((), np.float32)))
    sent, health = b"", b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"
    for i in range(40):
        constant = Constant(i + 1, np.zeros(i % 20 * 700, np.float32))
        sent += caller.request(caller.program.batch(Assign("v", Literal(1.0), "add"), constant, Fetch("v")))
        sent += health if i % 10 == 9 else b""
    sender = threading.Thread(target=caller.sock.sendall, args=(sent,))
    sender.start()
    values = []
    for i in range(44):
        item = caller.answer()
        assert item.status == 200
        if i % 11 != 10:
            (fetched,) = wire.decode_answer(item.body)[0].results
            values.append(float(fetched.array))  # type: ignore[union-attr]
    sender.join()
    assert values == [i + 1.0 for i in range(40)]


def test_garbage_after_a_frame_is_refused(direct: Server, caller: Caller) -> None:
    caller.sock.sendall(caller.request(caller.program.batch()) + b"\0garbage\r\n\r\n")
    assert caller.results() == ()
    item = caller.answer()
    assert (item.status, json.loads(item.body)["code"]) == (400, "malformed_http")
    assert caller.sock.recv(100) == b""


def test_another_request_goes_to_the_server(direct: Server, http: httpx.Client, caller: Caller) -> None:
    """A wrong key in a later request too, and then a right one again."""
    batch = caller.program.batch()
    wrong = caller.request(batch).replace(KEYS["ann"].encode(), KEYS["ann"][::-1].encode())
    caller.sock.sendall(wrong)
    assert caller.answer().status == 401
    caller.sock.sendall(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert caller.answer().status == 200
    caller.sock.sendall(caller.request(batch))
    assert caller.results() == ()
    caller.lend()


def test_large_frames_and_answers_are_the_server_s(direct: Server, caller: Caller) -> None:
    array = np.random.default_rng(0).random(MIB)
    caller.run(Constant(1, array))
    caller.lend()
    (fetched,) = caller.run(Fetch(1))
    assert np.array_equal(fetched.array, array)
    (fetched,) = caller.run(Call("reduce_sum", (1,), (2,)), Fetch(2))
    assert np.isclose(fetched.array, array.sum())


def test_a_caller_that_does_not_read_does_not_stop_its_session(direct: Server, http: httpx.Client) -> None:
    """What it does not take is the server's to write."""
    array = np.arange(3000.0)
    with Caller(direct, http) as other, Caller(direct, http) as caller:
        other.run(Constant("x", array))
        requests = b"".join(caller.request(caller.program.batch(Fetch("x"))) for _ in range(300))
        sender = threading.Thread(target=caller.sock.sendall, args=(requests,))
        sender.start()
        until(lambda: not caller.is_lent)
        for _ in range(5):
            other.run(Fetch("x"))
        for _ in range(300):
            (fetched,) = caller.results()
            assert np.array_equal(fetched.array, array)
        sender.join()


# --------------------------------------------------------------------------------------------------- callers that leave
@pytest.mark.parametrize("part", [10, 200, -1])
def test_a_caller_that_leaves_in_its_frame_leaves_nothing(direct: Server, http: httpx.Client, part: int) -> None:
    with Caller(direct, http) as caller:
        open_before = len(direct.app.state.connections.open)
        caller.sock.sendall(caller.request(caller.program.batch(Constant(1, np.ones(2))))[:part])
    until(lambda: not lent(direct))
    until(lambda: len(direct.app.state.connections.open) < open_before)
    assert page_of(direct).slot(0).number == 0


def test_a_caller_that_leaves_before_its_answer_leaves_the_batch_running(direct: Server, http: httpx.Client) -> None:
    with Caller(direct, http) as caller:
        caller.run(MakeVariable("v", np.zeros((), np.float32)))
        batch = caller.send(*LONG, Assign("v", Literal(1.0), "add"), Fetch("v"))
    item = run_elsewhere(direct, http, batch)
    (*_, fetched) = wire.decode_answer(ok(item).content)[0].results
    assert fetched.array == 1.0  # type: ignore[union-attr]
    until(lambda: not lent(direct) and not direct.answering())


# -------------------------------------------------------------------------------------------- what takes long, and ends
def test_a_long_batch_is_the_server_s(direct: Server, http: httpx.Client, caller: Caller) -> None:
    """It is seen to run, and can be cancelled."""
    caller.send(*ENDLESS, Fetch("sum"))
    until(lambda: bool(host_of(direct).running))
    assert ok(http.get("/v1/sessions/demo")).json()["running"]["requests"] == 1
    assert ok(http.post("/v1/sessions/demo/cancel")).json()["running"]["requests"] == 1
    item = caller.answer()
    assert item.status == 200
    failure = wire.decode_answer(item.body)[0].failure
    assert failure is not None
    assert failure.code == "cancelled"
    caller.lend()


def test_a_cancel_concerns_what_the_process_has_not_read(direct: Server, http: httpx.Client, caller: Caller) -> None:
    """Whether the server has looked yet or not; what comes afterwards is not cancelled."""
    signal_idle(direct, signal.SIGSTOP)
    caller.send(*LONG, Fetch("sum"))
    ok(http.post("/v1/sessions/demo/cancel"))
    os.kill(direct.worker("demo"), signal.SIGCONT)
    failure = wire.decode_answer(caller.answer().body)[0].failure
    assert failure is not None
    assert failure.code == "cancelled"
    assert caller.run() == ()


def test_the_batch_of_a_client_is_cancelled_alone(direct: Server, http: httpx.Client, caller: Caller) -> None:
    """The one that runs; the one of another client, which waits for it, is answered."""
    other = Caller(direct, http, lends=False)
    with other:
        batch = caller.send(*ENDLESS, Fetch("sum"))
        until(lambda: ok(http.get("/v1/sessions/demo")).json()["running"]["requests"] == 1)
        other.send(Constant("kept", np.ones(2)), Fetch("kept"))
        until(lambda: ok(http.get("/v1/sessions/demo")).json()["running"]["requests"] == 2)
        for seq in (batch.seq + 1, batch.seq):  # the first names no batch
            ok(http.post("/v1/sessions/demo/cancel", params={"client": batch.client, "seq": seq}))
        failure = wire.decode_answer(caller.answer().body)[0].failure
        assert failure is not None
        assert failure.code == "cancelled"
        [fetched] = other.results()
        assert fetched.array.tolist() == [1.0, 1.0]
    caller.lend()


def test_a_cancel_of_one_batch_names_client_and_number(http: httpx.Client) -> None:
    refusal = problem(http.post("/v1/sessions/demo/cancel", params={"client": 3}), 422, "invalid_request")
    assert "client and seq name a batch together" in refusal["detail"]


@pytest.mark.usefixtures("undisturbed")
def test_terms_are_those_of_the_lease(direct: Server, http: httpx.Client, caller: Caller) -> None:
    ok(http.post("/v1/sessions/demo/extend", json={"seconds": 80000}))
    caller.lend()
    before = frames_of(direct)
    caller.send()
    _, served = wire.decode_answer(caller.answer().body)
    session = ok(http.get("/v1/sessions/demo")).json()
    assert frames_of(direct) == before + 1
    assert abs(served.expires_at - time.time() - 80000) < 600
    assert session["expires_at"] == wire.timestamp(served.expires_at) or served.expires_at > time.time() + 70000


def test_a_session_with_such_a_connection_ends_when_it_is_idle(http: httpx.Client) -> None:
    settings = Settings(direct="on", idle_limit=1000.0)
    with Server(settings).running() as server, server.client() as client:
        ok(client.post("/v1/sessions", json={"id": "demo"}))
        program = Program(client, "demo")
        host = server.app.state.registry.find("local", "demo").host
        while not host.facts().lent:
            program.run()
        for _ in range(2):
            server.clock.ahead += 900
            until(lambda: not host.facts().lent)  # the process takes the time of day for what it was
            program.run()
        server.clock.ahead += 1100
        body = ok(client.get("/v1/sessions")).json()
        response = program.post(program.batch())
        assert response.status_code == 410
        assert response.json()["details"]["reason"] == "idle"
        assert body["sessions"] == [] or body["sessions"][0]["id"] == "demo"


def test_patience_is_the_server_s() -> None:
    """A retry joins the batch, from wherever it comes, and it runs once."""
    with Server(Settings(direct="on", api_keys=KEYS, patience=0.2)).running() as server, server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        with Caller(server, http) as caller:
            caller.run(MakeVariable("v", np.zeros((), np.float32)))
            batch = caller.send(*LONG, Assign("v", Literal(1.0), "add"), Fetch("v"))
            stop_running(server)
            for _ in range(3):
                assert caller.answer().status == 202
                assert len(host_of(server).running) == 1
                caller.sock.sendall(caller.request(batch))
            os.kill(server.worker("demo"), signal.SIGCONT)
            while (item := caller.answer()).status == 202:
                caller.sock.sendall(caller.request(batch))
            (*_, fetched) = wire.decode_answer(item.body)[0].results
            assert fetched.array == 1.0  # type: ignore[union-attr]
            (fetched,) = caller.run(Fetch("v"))
            assert fetched.array == 1.0


def test_a_process_that_stands_still_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server reclaims the connection, and answers in the place of a process that has not read the frame."""
    monkeypatch.setattr(loans, "_IDLE_SECONDS", 0.1)
    with Server(Settings(direct="on", api_keys=KEYS, patience=0.2)).running() as server, server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        with Caller(server, http) as caller:
            signal_idle(server, signal.SIGSTOP)
            batch = caller.send(MakeVariable("v", np.zeros((), np.float32)), Fetch("v"))
            assert caller.answer().status == 202
            os.kill(server.worker("demo"), signal.SIGCONT)
            item = None
            while item is None or item.status == 202:
                caller.sock.sendall(caller.request(batch))
                item = caller.answer()
            assert item.status == 200


@pytest.mark.parametrize("when", ["idle", "running", "running and looked at"])
def test_a_process_that_dies_is_reported(direct: Server, http: httpx.Client, when: str) -> None:
    with Caller(direct, http) as caller:
        if when == "idle":
            signal_idle(direct, signal.SIGKILL)
            until(lambda: not ok(http.get("/v1/sessions")).json()["sessions"])
            caller.send()
        else:
            page = page_of(direct)
            until(lambda: not page.slot(0).number)  # the frame before is answered
            caller.send(*LONG, Fetch("sum"))
            until(
                lambda: bool(host_of(direct).running if when == "running and looked at" else page.slot(0).is_unanswered)
            )
            os.kill(direct.worker("demo"), signal.SIGKILL)
        item = caller.answer()
        assert item.status == 410
        assert json.loads(item.body)["details"]["reason"] == "worker_died"


@pytest.mark.parametrize("is_running", [False, True])
def test_a_deleted_session_is_reported(direct: Server, http: httpx.Client, caller: Caller, is_running: bool) -> None:
    page = page_of(direct)
    until(lambda: not page.slot(0).number)  # a connection of a process that dies as it writes is closed
    if is_running:
        caller.send(*ENDLESS, Fetch("sum"))
        until(lambda: bool(host_of(direct).running))
    ok(http.delete("/v1/sessions/demo"))
    if not is_running:
        caller.send()
    item = caller.answer()
    assert item.status == 410
    assert json.loads(item.body)["details"]["reason"] == "deleted"


def test_a_frame_that_runs_is_answered_when_the_server_stops() -> None:
    """Frames that come meanwhile are refused, over connections that the process had too."""
    settings = Settings(api_keys=KEYS, direct="on", patience=600.0, shutdown_grace=600.0)
    with Server(settings).running() as server, server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        with Caller(server, http) as caller, Caller(server, http) as late:
            page = page_of(server)
            until(lambda: not page.slot(0).number)
            caller.send(*LONG, Fetch("sum"))
            until(lambda: bool(page.slot(0).number or host_of(server).running))
            server.stop()
            until(lambda: server.app.state.registry.live.stopping)
            late.send()
            item = late.answer()
            assert (item.status, json.loads(item.body)["code"]) == (503, "shutting_down")
            (fetched,) = [result for result in caller.results() if hasattr(result, "array")]
            assert abs(fetched.array - 1500.0) < 1e-2


def test_a_process_without_free_descriptors_returns_the_connection() -> None:
    returned: list[tuple[int, bytes]] = []

    class Answers:
        def return_loan(self, id: int, unsent: bytes) -> None:
            returned.append((id, unsent))

    requests, file = socket.socketpair()
    with requests, file:
        connections = DirectConnections(requests, None, Answers(), None)  # type: ignore[arg-type]  # it needs nothing else
        received = os.dup(file.fileno())
        approval = Approval(b"", b"", "batch", wire.FRAME_TYPE, {}, b"", None, 0, 0, 0, FRAME, wire.FRAME_TYPE)
        connections.add(5, 0, approval, Times(0.0, 0.0, 0.0, 0.0), [received])
        assert returned == [(5, b"")]
        assert not connections
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(received)


def test_the_time_limit_holds() -> None:
    with Server(Settings(api_keys=KEYS, direct="on", time_limit=0.05)).running() as server, server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        with Caller(server, http) as caller:
            caller.send(*LONG, Fetch("sum"))
            failure = wire.decode_answer(caller.answer().body)[0].failure
            assert failure is not None
            assert failure.code == "deadline_exceeded"


# ------------------------------------------------------------------------------------------------ many at the same time
def _no_request(number: int, seconds: float) -> Running:
    raise AssertionError("none runs")


class _Session:
    """A session that does not end."""

    def __init__(self, clock: "Clock") -> None:
        self._clock = clock

    def times(self) -> Times:
        return Times(self._clock.now, 1.0, 1.0, 1.0)


class Clock:
    """A loop whose time is set; what it is to call later is called by the test."""

    now = 100.0

    def time(self) -> float:
        return self.now

    def call_later(self, _: float, call: Callable[[], None]) -> None:
        self.next = call


class Lender:
    """A connection that is lent."""

    is_lent = True

    def reclaimed(self, request: LentRequest | None) -> None:
        self.is_lent = False


def test_many_small_requests_are_no_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request of the server's waits for them, and is no reason to reclaim their connections: each takes little."""
    clock, (page, file), lender = Clock(), Page.new(), Lender()
    monkeypatch.setattr(loans, "_IDLE_SECONDS", 600.0)
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: clock)
    all_loans = loans.Loans(page, lambda _, files: close_files(files), _no_request, lambda: 0.0)
    ours, theirs = socket.socketpair()
    approval = Approval(b"", b"", "batch", wire.FRAME_TYPE, {}, b"", None, 1, 1, 1, FRAME, wire.FRAME_TYPE)
    assert all_loans.lend(lender, ours.fileno(), approval, _Session(clock)) is not None  # type: ignore[arg-type]
    for _ in range(20):
        page.begin_request()
        clock.now += 0.05
        clock.next()
        assert lender.is_lent
    clock.now += 0.05
    clock.next()
    assert not lender.is_lent, "the last one takes long"
    for item in (ours, theirs):
        item.close()
    all_loans.end()
    os.close(file)


@pytest.mark.usefixtures("undisturbed")
def test_callers_of_one_session_at_the_same_time(direct: Server, http: httpx.Client) -> None:
    """Eight with connections that the process has, and two with others: no batch is lost, and none runs twice."""
    with contextlib.ExitStack() as stack:
        callers = [stack.enter_context(Caller(direct, http, lends=False)) for _ in range(10)]
        callers[0].run(MakeVariable("v", np.zeros((), np.float32)))
        errors: list[BaseException] = []

        def work(caller: Caller, number: int) -> None:
            try:
                for i in range(60):
                    name = f"{number}.{i}"
                    caller.run(Assign("v", Literal(1.0), "add"), Constant(name, np.zeros(i % 7 * 500)), Fetch(name))
                    if number == 9 and i % 10 == 0:
                        ok(http.get("/v1/sessions/demo"))
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(caller, i)) for i, caller in enumerate(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        (fetched,) = callers[0].run(Fetch("v"))
        assert fetched.array == 600.0
        assert frames_of(direct) > 0
