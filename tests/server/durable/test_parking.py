"""Parking and waking: what is under way waits, what does not fit is refused whole, and nothing is done twice."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from lasting import PATH, Lasting, X, fetched

from serving import KEYS, Server, ok, problem, until
from teletape_engine.commands import Assign, Fetch
from teletape_server.ipc.page import IDLE_BYTES
from teletape_server.sessions.lifecycle import Phase
from teletape_server.sessions.quotas import Quota
from teletape_server.settings import Settings


@pytest.fixture
def lasting(tmp_path: Path) -> Iterator[Lasting]:
    with Lasting(tmp_path).running() as lasting:
        yield lasting


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as executor:
        yield executor


class Waiting:
    """Lets a host end only when the test allows it, and counts the calls."""

    def __init__(self, host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls, self.may_end, self._suspend = 0, threading.Event(), host.suspend
        monkeypatch.setattr(host, "suspend", self._wait)

    async def _wait(self) -> bool:
        self.calls += 1
        while not self.may_end.is_set():  # noqa: ASYNC110  # another thread sets it
            await asyncio.sleep(0.001)
        ended: bool = await self._suspend()
        return ended


def phase(entry: Any) -> Phase:
    current: Phase = entry.record.state.phase
    return current


def park(http: httpx.Client, path: str = PATH) -> str:
    state: str = ok(http.post(f"{path}/park")).json()["state"]
    return state


def states(http: httpx.Client) -> dict[str, str]:
    return {item["id"]: item["state"] for item in ok(http.get("/v1/sessions")).json()["sessions"]}


# ------------------------------------------------------------------------------------------- what comes while it parks
def test_what_comes_while_it_parks_waits_for_the_next_process_and_it_parks_once(
    lasting: Lasting, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = lasting.create()
    entry, host = lasting.entry, lasting.entry.host
    waiting = Waiting(host, monkeypatch)
    parks = [threads.submit(park, lasting.http) for _ in range(2)]
    until(lambda: phase(entry) is Phase.PARKING and lasting.server.answering() == 2)
    frame = threads.submit(program.run, Assign("w", X, "add"), Fetch("w"))
    listed = threads.submit(lasting.http.get, f"{PATH}/variables")
    until(lambda: lasting.server.answering() == 4)
    assert not frame.done()
    waiting.may_end.set()
    assert fetched(frame.result()) == [2.0, 4.0]
    ok(listed.result())
    assert {future.result() for future in parks} <= {"parked", "waking", "live"}
    assert (waiting.calls, entry.record.epoch, host.ended.done()) == (1, 2, True)
    assert park(lasting.http) == park(lasting.http) == "parked"  # the second time there is nothing to do
    assert entry.record.epoch == 2


def test_a_body_that_comes_while_it_parks_goes_to_the_next_process(lasting: Lasting) -> None:
    """Not to memory of the next process that has the same number as the former one's."""
    lasting.create()
    value = "[" + ",".join(["0.5"] * 20_000) + "]"  # more than travels in a message
    parts = [f'{{"value": {value}, '.encode(), b'"id": "v"}']

    def body() -> Iterator[bytes]:
        yield parts[0]
        until(lambda: lasting.entry.receiving == 1)
        with lasting.server.client() as other:
            assert park(other) == "parked"
            ok(other.post(f"{PATH}/variables", json={"id": "u", "value": [2.0] * 20_000}))
        yield parts[1]

    headers = {"Content-Length": str(sum(map(len, parts))), "Content-Type": "application/json"}
    ok(lasting.http.post(f"{PATH}/variables", content=body(), headers=headers))
    shown = ok(lasting.http.get(f"{PATH}/variables/v?full=true")).json()
    assert shown["value"]["data"] == [0.5] * 20_000


# ------------------------------------------------------------------------------------------------------------- memory
class FreeMemory:
    """The machine's memory as the test says."""

    def __init__(self, lasting: Lasting, monkeypatch: pytest.MonkeyPatch) -> None:
        self.free: Callable[[], int] = lambda: 1 << 40
        self._places = lasting.server.app.state.registry._places
        monkeypatch.setattr(self._places, "_free", lambda: self.free())

    @property
    def reservations(self) -> int:
        """How many sessions have one."""
        return len(self._places._ledger._reservations)


def test_a_wake_without_enough_memory_is_refused_whole(lasting: Lasting, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = FreeMemory(lasting, monkeypatch)
    program = lasting.create()
    assert park(lasting.http) == "parked"
    before = lasting.entry.record
    ok(lasting.http.post("/v1/sessions", json={"id": "other", "durability": "none"}))
    memory.free = lambda: 300 << 20
    for _ in range(2):
        refused = problem(lasting.http.get(f"{PATH}/variables"), 503, "overloaded")
        assert "300 MiB of memory left" in refused["detail"]
        assert "local has 0 MiB in 2 sessions" in refused["detail"]
        facts = refused["details"]
        assert facts["accounts"] == [
            {"account": "local", "sessions": 2, "memory_bytes": 0, "reserved_bytes": IDLE_BYTES}
        ]
        assert (facts["free"], facts["reserve"]) == (300 << 20, 256 << 20)
        assert facts["asked"] >= 64 << 20
        assert (lasting.entry.record, lasting.entry.host, lasting.entry.log) == (before, None, None)
        assert memory.reservations == 1
    memory.free = lambda: 1 << 40
    assert fetched(program.run(Fetch("w"))) == X.tolist()
    assert memory.reservations == 2


def test_over_the_machines_memory_the_longest_idle_is_parked(lasting: Lasting, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = FreeMemory(lasting, monkeypatch)
    program = lasting.create()
    park(lasting.http)
    for name in ("old", "new"):
        ok(lasting.http.post("/v1/sessions", json={"id": name}))
        lasting.server.clock.ahead += 60
    old = lasting.server.app.state.registry.find_live("local", "old")
    memory.free = lambda: 0 if old.host is not None else 1 << 40
    assert fetched(program.run(Fetch("w"))) == X.tolist()
    assert states(lasting.http) == {"demo": "live", "old": "parked", "new": "live"}
    demo = lasting.entry
    lasting.server.clock.ahead += 60
    ok(lasting.http.post("/v1/sessions/new/run", json={"commands": []}))
    memory.free = lambda: 0 if demo.host is not None else 1 << 40  # a session has grown
    until(lambda: phase(demo) is Phase.PARKED)
    assert states(lasting.http) == {"demo": "parked", "old": "parked", "new": "live"}


def test_the_memory_through_which_a_gpus_arrays_pass_is_counted_before_parking(
    lasting: Lasting, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = FreeMemory(lasting, monkeypatch)
    program = lasting.create()
    program.run(Fetch("w"))
    entry = lasting.entry
    monkeypatch.setattr(entry, "record", replace(entry.record, device="gpu:0"))
    memory.free = lambda: 0
    problem(lasting.http.post(f"{PATH}/park"), 503, "overloaded")
    lasting.server.clock.ahead += 2000
    ok(lasting.http.get(PATH))
    assert phase(entry) is Phase.LIVE
    memory.free = lambda: 1 << 40
    assert park(lasting.http) == "parked"


# ------------------------------------------------------------------------------------------------------------- places
def test_an_idle_session_is_parked_before_anybody_is_refused(tmp_path: Path) -> None:
    """One's own beyond one's own number, and anybody's beyond the server's; none that works or has just worked."""
    settings = Settings(data_dir=str(tmp_path), api_keys=KEYS, sessions_per_key=3, sessions=4, shutdown_grace=0.1)
    with Server(settings).running() as server, server.client("ann") as ann, server.client("bob") as bob:
        for name in ("a", "b", "c"):
            ok(ann.post("/v1/sessions", json={"id": name}))
        refused = ann.post("/v1/sessions", json={"id": "d"})
        problem(refused, 409, "too_many_sessions")  # all have just worked
        assert 1 <= int(refused.headers["Retry-After"]) <= Quota.parks_after
        ok(ann.post("/v1/sessions/a/extend", json={"seconds": 3600}))
        server.clock.ahead += 60
        ok(ann.post("/v1/sessions", json={"id": "d"}))
        assert states(ann) == {"a": "live", "b": "parked", "c": "live", "d": "live"}
        ok(ann.post("/v1/sessions/c/run", json={"commands": []}))
        assert "in use" in problem(ann.get("/v1/sessions/b/variables"), 503, "overloaded")["detail"]
        server.clock.ahead += 60
        for name in ("first", "second"):
            ok(bob.post("/v1/sessions", json={"id": name}))
        assert states(ann) == {"a": "live", "b": "parked", "c": "live", "d": "parked"}
        ok(ann.post("/v1/sessions/c/run", json={"commands": []}))
        problem(ann.get("/v1/sessions/b/variables"), 503, "overloaded")
        assert states(ann)["b"] == "parked"
        server.clock.ahead += 60
        ok(ann.get("/v1/sessions/b/variables"))
        assert states(ann) == {"a": "live", "b": "live", "c": "live", "d": "parked"}
        assert states(bob) == {"first": "parked", "second": "live"}


def test_parked_sessions_count_by_key(tmp_path: Path) -> None:
    with Lasting(tmp_path, lasting_per_key=2, sessions=1).running() as lasting:
        lasting.create()
        park(lasting.http)
        ok(lasting.http.post("/v1/sessions", json={"id": "other"}))
        refused = problem(lasting.http.post("/v1/sessions", json={"id": "third"}), 409, "too_many_sessions")
        assert "parked ones too" in refused["detail"]
        assert park(lasting.http, "/v1/sessions/other") == "parked"
        ok(lasting.http.post("/v1/sessions", json={"id": "third", "durability": "none"}))
