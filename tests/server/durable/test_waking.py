"""Sessions without a host: whatever comes for one wakes it, once, and is answered; what only looks at it does not."""

import asyncio
import itertools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import httpx
import numpy as np
import pytest
from in_this_process import HostHere, HostsHere

import teletape_wire as wire
from serving import Server, ok, problem, until
from teletape_engine.commands import Batch, Fetch, MakeVariable
from teletape_engine.session.session import Session
from teletape_server.hosts.protocols import HostGone, Start
from teletape_server.ipc.leases import Reason, Terms
from teletape_server.sessions.lifecycle import Phase, State
from teletape_server.sessions.record import SessionLimits, SessionRecord, new_uid
from teletape_server.sessions.store import MemoryStore
from teletape_server.settings import Settings

PATH = "/v1/sessions/demo"
NONCES = (number.to_bytes(16, "little") for number in itertools.count(1))


class WaitingHosts(HostsHere):
    """Hosts in this process, which start when the test lets them."""

    def __init__(self) -> None:
        super().__init__(lambda: Session("cpu"))
        self.starts: list[Start] = []
        self.may_start = threading.Event()
        self.fails = False

    async def start(self, start: Start) -> HostHere:
        self.starts.append(start)
        while not self.may_start.is_set():  # noqa: ASYNC110  # another thread sets it
            await asyncio.sleep(0.001)
        if self.fails:
            raise HostGone("the test lets none start")
        return await super().start(start)


class Dormant:
    """A server that has a session without a host from its beginning."""

    def __init__(self) -> None:
        now = time.time()
        record = SessionRecord(
            new_uid(), "local", "demo", "cpu", SessionLimits(1 << 20), now, Terms(1000.0, now + 5000.0), epoch=3
        )
        self.hosts, self.store = WaitingHosts(), MemoryStore([replace(record, state=State(Phase.PARKED))])
        self.server = Server(Settings(shutdown_grace=0.1), hosts=lambda: self.hosts, store=self.store)

    @property
    def record(self) -> SessionRecord:
        """What the store has."""
        [record] = self.store.all()
        return record

    @property
    def phase(self) -> Phase:
        return self.record.state.phase


@pytest.fixture
def dormant() -> Iterator[Dormant]:
    dormant = Dormant()
    with dormant.server.running():
        yield dormant
        dormant.hosts.may_start.set()


@pytest.fixture
def http(dormant: Dormant) -> Iterator[httpx.Client]:
    with dormant.server.client() as client:
        yield client


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as executor:
        yield executor


def run_frame(http: httpx.Client) -> httpx.Response:
    """Makes a variable of its own, and reads it."""
    nonce = next(NONCES)
    batch = Batch((MakeVariable(nonce.hex(), np.array([1.5], np.float32)), Fetch(nonce.hex())), (), 0, 0, nonce)
    body = b"".join(wire.encode_batch(batch).buffers)
    return http.post(f"{PATH}/batch", content=body, headers={"Content-Type": wire.FRAME_TYPE})


def test_a_request_and_a_frame_wake_it_once_and_are_answered(
    dormant: Dormant, http: httpx.Client, threads: ThreadPoolExecutor
) -> None:
    pending: list[Future[httpx.Response]] = [threads.submit(run_frame, http) for _ in range(2)]
    pending += [threads.submit(http.get, f"{PATH}/variables") for _ in range(2)]
    until(lambda: dormant.server.answering() == len(pending))
    until(lambda: dormant.phase is Phase.WAKING)
    dormant.hosts.may_start.set()
    for future in pending:
        ok(future.result())
    (fetched,) = wire.decode_answer(pending[0].result().content)[0].results
    assert fetched.array == [1.5]  # type: ignore[union-attr]
    assert len(dormant.hosts.starts) == 1
    assert (dormant.record.state, dormant.record.epoch) == (State(Phase.LIVE), 4)
    ok(run_frame(http))
    assert len(dormant.hosts.starts) == 1


def test_what_only_looks_at_it_does_not_wake_it(dormant: Dormant, http: httpx.Client) -> None:
    """It can be listed, kept longer, and deleted; its id is taken."""
    [listed] = ok(http.get("/v1/sessions")).json()["sessions"]
    described = ok(http.get(PATH)).json()
    assert described["id"] == listed["id"] == "demo"
    assert (described["device"], described["running"]["requests"], described["bytes_in_use"]) == ("cpu", 0, 0)
    extended = ok(http.post(f"{PATH}/extend", json={"seconds": 3000})).json()
    assert extended["expires_at"] > described["expires_at"]
    assert dormant.record.terms.until > time.time() + 2000
    ok(http.post(f"{PATH}/cancel"))
    problem(http.post("/v1/sessions", json={"id": "demo"}), 409, "id_in_use")
    assert dormant.phase is Phase.PARKED
    ok(http.delete(PATH))
    assert not dormant.store.all()
    assert problem(http.post(f"{PATH}/attach"), 410, "session_ended")["details"]["reason"] == Reason.DELETED
    assert not dormant.hosts.starts


def test_a_start_that_fails_is_said_to_all_who_wait_and_tried_again(
    dormant: Dormant, http: httpx.Client, threads: ThreadPoolExecutor
) -> None:
    dormant.hosts.fails = True
    pending = [threads.submit(run_frame, http) for _ in range(3)]
    until(lambda: dormant.server.answering() == len(pending))
    for _ in range(3):  # meanwhile the last of them comes to where it waits
        ok(http.get("/v1/health"))
    dormant.hosts.may_start.set()
    for future in pending:
        assert "the test lets none start" in problem(future.result(), 503, "recovering")["detail"]
        assert future.result().headers["retry-after"] == "1"
    assert dormant.phase is Phase.PARKED
    refused = problem(http.post("/v1/sessions", json={"id": "another"}), 503, "overloaded")
    assert "could not be started (the test lets none start)" in refused["detail"]
    dormant.hosts.fails = False
    ok(run_frame(http))
    assert len(dormant.hosts.starts) == 3


def test_a_session_that_is_deleted_while_it_wakes_has_ended(
    dormant: Dormant, http: httpx.Client, threads: ThreadPoolExecutor
) -> None:
    waiting = threads.submit(run_frame, http)
    until(lambda: bool(dormant.hosts.starts))
    ok(http.delete(PATH))
    assert problem(waiting.result(), 410, "session_ended")["details"]["reason"] == Reason.DELETED


def test_a_caller_that_leaves_does_not_end_the_start(dormant: Dormant, http: httpx.Client) -> None:
    with pytest.raises(httpx.ReadTimeout):
        http.get(f"{PATH}/variables", timeout=0.05)
    until(lambda: bool(dormant.hosts.starts))
    dormant.hosts.may_start.set()
    ok(http.get(f"{PATH}/variables"))
    assert len(dormant.hosts.starts) == 1


def test_the_end_of_the_server_refuses_those_who_wait(
    dormant: Dormant, http: httpx.Client, threads: ThreadPoolExecutor
) -> None:
    waiting = threads.submit(run_frame, http)
    until(lambda: bool(dormant.hosts.starts))
    dormant.server.stop()
    problem(waiting.result(), 503, "shutting_down")


def test_it_ends_when_it_has_been_idle_for_too_long(dormant: Dormant, http: httpx.Client) -> None:
    dormant.server.clock.ahead += 1500
    assert problem(http.get(PATH), 410, "session_ended")["details"]["reason"] == Reason.IDLE
    assert not dormant.store.all()


def test_a_uid_is_never_used_twice(dormant: Dormant, http: httpx.Client) -> None:
    """Neither after the end of a session nor for another one with its name."""
    dormant.hosts.may_start.set()
    uids = [dormant.record.uid]
    for _ in range(3):
        ok(http.delete(PATH))
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        uids.append(dormant.record.uid)
    assert len({*uids}) == len(uids)


def test_sessions_of_single_requests_are_not_kept(dormant: Dormant, http: httpx.Client) -> None:
    dormant.hosts.may_start.set()
    before = dormant.store.all()
    ok(http.post("/v1/run", json={"commands": []}))
    assert dormant.store.all() == before
