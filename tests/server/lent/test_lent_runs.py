"""Requests without a session over lent connections: each begins with nothing, and no other caller waits for it."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from in_this_process import HostHere
from run_commands import LOOP, SQUARE, op

from serving import KEYS, Server, metric, needs_exchange, ok, problem, until
from teletape_engine.session.session import Session
from teletape_server.connections import lending
from teletape_server.hosts import loans
from teletape_server.ipc.durations import Durations
from teletape_server.ipc.heads import Label
from teletape_server.ipc.leases import NEVER, Terms
from teletape_server.sessions import runs
from teletape_server.sessions.entry import SessionEntry
from teletape_server.sessions.lifecycle import Phase, State
from teletape_server.sessions.quotas import Quota
from teletape_server.sessions.record import SessionLimits, SessionRecord, new_uid
from teletape_server.settings import Settings

pytestmark = needs_exchange

LABEL: Label = ("POST", "/v1/run", 200)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine makes no request too slow to count, and no connection idle."""
    monkeypatch.setattr(lending, "_QUICK", 600.0)
    monkeypatch.setattr(loans, "_IDLE_SECONDS", 600.0)
    monkeypatch.setattr(runs, "_CALM_SECONDS", 0.0)


@pytest.fixture
def undisturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine makes no request so long that its connection is reclaimed."""
    monkeypatch.setattr(loans, "_LONG_SECONDS", 600.0)


@pytest.fixture
def server() -> Iterator[Server]:
    """A server with one place for such requests."""
    with Server(Settings(api_keys=KEYS, runs=1, shutdown_grace=0.1)).running() as running:
        yield running


def answered(server: Server) -> int:
    """Such requests that processes have read and answered themselves."""
    return server.app.state.registry.usage().answered.get(LABEL, Durations()).total


def ask(http: httpx.Client, x: float = 3.5) -> tuple[float, float]:
    commands = [{**SQUARE[0], "value": x}, *SQUARE[1:]]
    values = ok(http.post("/v1/run", json={"commands": commands, "fetch": ["y", "dx"]})).json()["values"]
    return values["y"]["data"], values["dx"]["data"]


def lend(server: Server, send: Callable[[], Any]) -> None:
    """Sends until a process has read some requests."""
    before = answered(server)
    until(lambda: bool(send()) and answered(server) > before + 3)


@pytest.mark.usefixtures("undisturbed")
def test_the_process_answers_and_each_request_begins_with_nothing(server: Server) -> None:
    with server.client() as http, server.client() as other:
        lend(server, lambda: ask(http))
        before, begun = answered(server), metric(other, "teletape_runs_begun_total")
        for i in range(10):
            assert ask(http, float(i)) == (i * i, 2.0 * i)
        commands = [op("square", 2.0, to="z")]
        assert ok(http.post("/v1/run", json={"commands": commands, "fetch": ["z"]})).json()["values"]["z"]["data"] == 4
        assert answered(server) == before + 11
        assert metric(other, "teletape_runs_begun_total") == begun + 11
        assert metric(other, "teletape_runs") == 0, "a connection alone runs nothing"
        problem(http.post("/v1/run", json={"commands": [], "fetch": ["z"]}), 404, "unknown_id")
        problem(http.post("/v1/run", json={"commands": [op("square", "x", to="z")]}), 404, "unknown_id")


@pytest.mark.usefixtures("undisturbed")
def test_answers_are_the_same_on_both_ways() -> None:
    both = []
    for way in ("auto", "off"):
        with (
            Server(Settings(api_keys=KEYS, direct=way, shutdown_grace=0.1)).running() as server,
            server.client() as http,
        ):
            if way == "auto":
                lend(server, lambda: ask(http))
            bodies: list[Any] = [{"commands": SQUARE, "fetch": ["y"]}, {"commands": SQUARE, "fetch": ["none"]}]
            bodies += [{"commands": [op("log", -1.0, to="z")], "fetch": ["z"]}, {"commands": "none"}]
            responses = [http.post("/v1/run", json=body) for body in bodies]
            own = ("date", "x-request-id", "teletape-boot-id", "content-length")
            both.append(
                [
                    (
                        response.status_code,
                        {name: value for name, value in response.headers.items() if name not in own},
                        {name: value for name, value in response.json().items() if name != "instance"},
                    )
                    for response in responses
                ]
            )
    assert both[0] == both[1]
    assert [status for status, _, _ in both[0]] == [200, 404, 200, 422]


@pytest.mark.usefixtures("undisturbed")
def test_its_place_goes_to_whoever_waits(server: Server) -> None:
    """Of the same key or another one; a process serves one owner's requests alone."""
    with server.client() as http, server.client() as other, server.client("bob") as bob:
        for waiting in (other, bob):
            lend(server, lambda: ask(http))
            assert ask(waiting) == (12.25, 7.0)
            owners = [entry.owner for entry in server.app.state.registry.live.by_key.values()]
            assert owners == (["ann"] if waiting is other else ["bob"])
            assert ask(http) == (12.25, 7.0)


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize("calm_seconds", [0.0, 600.0])
def test_nothing_is_lent_for_a_while_after_a_request_has_waited(
    monkeypatch: pytest.MonkeyPatch, calm_seconds: float
) -> None:
    monkeypatch.setattr(runs, "_CALM_SECONDS", calm_seconds)

    async def lent() -> tuple[bool, bool]:
        places = runs.Runs(Quota(1, 1, 1, 1, keys=lambda: 2, runs=1), wait=60.0)

        async def start(entry: SessionEntry) -> HostHere:
            return HostHere(Session("cpu"))

        def entry(owner: str) -> SessionEntry:
            live, limits = State(Phase.LIVE), SessionLimits(1)
            record = SessionRecord(new_uid(), owner, "run", "cpu", limits, 0.0, Terms(1.0, NEVER), state=live)
            return SessionEntry(record, start, lambda: 0.0)

        first = await places.begin("ann", "ann", "cpu", lambda: entry("ann"), lambda _: None)
        places.end(first, keep=True)
        before = places.lend(first)
        places.end(first, keep=True)
        first = await places.begin("ann", "ann", "cpu", lambda: entry("ann"), lambda _: None)
        waiting = asyncio.create_task(places.begin("bob", "bob", "cpu", lambda: entry("bob"), lambda _: None))
        await asyncio.sleep(0)
        assert places.counts == (1, 1)
        places.end(first, keep=False)
        second = await waiting
        places.end(second, keep=True)
        return before, places.lend(second)

    assert asyncio.run(lent()) == (True, not calm_seconds)


def test_more_callers_than_places() -> None:
    settings = Settings(api_keys=KEYS, runs=2, shutdown_grace=0.1)
    with Server(settings).running() as server:
        seen: list[tuple[float, float]] = []

        def call(owner: str) -> None:
            with server.client(owner) as http:
                for i in range(30):
                    seen.append(ask(http, float(i)))

        threads = [threading.Thread(target=call, args=(owner,)) for owner in ("ann", "ann", "bob", "ann")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(seen) == sorted([(i * i, 2.0 * i) for i in range(30)] * 4)
        until(lambda: server.app.state.registry.usage().runs == (0, 0))


def test_one_that_takes_long_is_the_server_s_and_ends_with_its_caller(server: Server) -> None:
    with server.client() as http, server.client() as other:
        body = b'{"commands": [], "fetch": []}'
        lend(server, lambda: http.post("/v1/run", content=body, headers={"Content-Type": "application/json"}))
        (entry,) = server.app.state.registry.live.by_key.values()
        pid = entry.host.pid
        errors = list[Exception]()

        def call() -> None:
            try:
                http.post("/v1/run", json={"commands": LOOP})
            except httpx.TransportError as error:
                errors.append(error)

        waiting = threading.Thread(target=call)
        waiting.start()
        until(lambda: bool(entry.running))
        assert server.app.state.registry.usage().runs == (1, 0)
        (connection,) = [item for item in [*server.app.state.connections.open] if item.is_unanswered]
        server.loop().call_soon_threadsafe(connection.transport.abort)
        waiting.join()
        assert errors
        assert ask(other) == (12.25, 7.0)
        until(lambda: not os.path.exists(f"/proc/{pid}"))
        until(lambda: server.app.state.registry.usage().runs == (0, 0))


@pytest.mark.usefixtures("undisturbed")
def test_a_process_that_has_served_for_long_is_replaced(server: Server) -> None:
    with server.client() as http:
        lend(server, lambda: ask(http))
        registry = server.app.state.registry
        (entry,) = registry.live.by_key.values()
        pid = entry.host.pid
        registry._max_age *= 1e6  # half of that is more than what is left
        until(lambda: not os.path.exists(f"/proc/{pid}"))
        assert ask(http) == (12.25, 7.0)


@pytest.mark.usefixtures("undisturbed")
def test_a_process_that_dies_is_replaced(server: Server) -> None:
    with server.client() as http:
        lend(server, lambda: ask(http))
        (entry,) = server.app.state.registry.live.by_key.values()
        until(lambda: not entry.host._loans.page.slot(0).number)  # or the process ends as it writes the answer
        os.kill(entry.host.pid, 9)
        until(lambda: not server.app.state.registry.live.by_key)
        assert ask(http) == (12.25, 7.0)
        assert server.app.state.registry.usage().runs == (0, 0)
