"""How often a session is brought back, after which pauses, and what counts against it; its hosts are here."""

import asyncio
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from in_this_process import HostHere, HostsHere

import teletape_wire as wire
from serving import Server, ok, problem, until
from teletape_engine.errors import DeadlineExceededError
from teletape_engine.session.session import Session
from teletape_server.handlers.methods import TIME_LIMIT
from teletape_server.hosts.protocols import Ending, HostFacts, HostGone, Start
from teletape_server.hosts.running import Running
from teletape_server.ipc.leases import NEVER, Reason, Terms
from teletape_server.sessions.entry import SessionEntry
from teletape_server.sessions.record import SessionLimits, SessionRecord, new_uid
from teletape_server.settings import Settings
from teletape_server.worker.time_limits import TimeLimits

PATH = "/v1/sessions/demo"


class Dying(HostHere):
    """A host that dies when the test says so."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.known = HostFacts()

    def facts(self) -> HostFacts:
        return self.known


class FailingHosts(HostsHere):
    """Hosts that cannot be started while the test says why."""

    def __init__(self) -> None:
        super().__init__(lambda: Session("cpu"))
        self.error: Exception | None = None
        self.starts = 0

    async def start(self, start: Start) -> HostHere:
        self.starts += 1
        if self.error is not None:
            raise self.error
        self.hosts.append(Dying(Session("cpu")))
        return self.hosts[-1]


class Recovering:
    """A server with one session that lasts."""

    def __init__(self, folder: Path) -> None:
        self.hosts = FailingHosts()
        self.server = Server(Settings(data_dir=str(folder), shutdown_grace=0.1), hosts=lambda: self.hosts)
        self.http: httpx.Client

    def die(
        self, why: str = "the test ends it", *, running: int = 0, written: int = 7, by_request: bool = True
    ) -> None:
        """Ends the session's host; `running` and `written` are as of `HostFacts`."""
        host = self.hosts.hosts[-1]
        assert isinstance(host, Dying)
        host.known = HostFacts(running=running, written=written)
        ending = Ending(Reason.WORKER_DIED, why, by_request)
        self.server.loop().call_soon_threadsafe(host.ended.set_result, ending)
        until(lambda: self.entry.host is not host)

    @property
    def entry(self) -> Any:
        return self.server.app.state.registry.find_live("local", "demo")

    def described(self) -> dict[str, Any]:
        facts: dict[str, Any] = ok(self.http.get(PATH)).json()
        return facts

    def read(self) -> httpx.Response:
        return self.http.get(f"{PATH}/variables")


@pytest.fixture
def recovering(tmp_path: Path) -> Iterator[Recovering]:
    recovering = Recovering(tmp_path)
    with recovering.server.running(), recovering.server.client() as recovering.http:
        ok(recovering.http.post("/v1/sessions", json={"id": "demo"}))
        yield recovering


def test_the_pauses_between_attempts_grow_to_half_a_minute_and_end_with_a_start() -> None:
    async def start(entry: SessionEntry) -> HostHere:
        raise AssertionError("nothing is started")

    record = SessionRecord(new_uid(), "local", "demo", "cpu", SessionLimits(1), 0.0, Terms(1.0, NEVER))
    entry = SessionEntry(record, start, lambda: 0.0)
    pauses = []
    for _ in range(7):
        entry.note_failure(100.0)
        pauses.append(entry.pause(100.0))
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert (entry.pause(129.0), entry.pause(131.0), entry.attempts) == (1.0, 0.0, 7)


class Noting:
    """A host that notes the parameters of requests, and never answers."""

    def submit(self, method: str, params: Any, *, running: Running | None = None, **_: Any) -> Running:
        self.params = params
        return running or Running(asyncio.get_running_loop().create_future())


def test_what_a_request_has_waited_for_a_process_that_ended_counts_for_its_caller() -> None:
    async def start(entry: SessionEntry) -> HostHere:
        raise AssertionError("nothing is started")

    async def go_on() -> tuple[Any, Any]:
        record = SessionRecord(new_uid(), "local", "demo", "cpu", SessionLimits(1), 0.0, Terms(1.0, NEVER))
        entry: Any = SessionEntry(record, start, lambda: 0.0)
        first, second = Noting(), Noting()
        entry.log, entry.host = True, first
        running = entry.submit("batch", {TIME_LIMIT: 5.0}, wire.FRAME_TYPE, None)
        running.began -= 10
        entry.leave([running])
        entry.host = second
        entry.go_on()
        running.reply.cancel()
        return first.params, second.params

    first, second = asyncio.run(go_on())
    now = time.monotonic()
    assert not TimeLimits(60.0, first, now).caller_waits_no_longer
    assert TimeLimits(60.0, second, now).caller_waits_no_longer
    with pytest.raises(DeadlineExceededError, match="not done within 5 s"):
        TimeLimits(60.0, second, now).check()


def test_a_session_says_which_request_has_ended_last(recovering: Recovering) -> None:
    assert recovering.described()["answered"]["last_request"] is None
    before = recovering.server.clock()
    ok(recovering.read())
    last = recovering.described()["answered"]["last_request"]
    assert (last["code"], last["seconds"] >= 0) == (None, True)
    assert before - 0.001 <= datetime.fromisoformat(last["at"]).timestamp() <= recovering.server.clock()
    problem(recovering.http.get(f"{PATH}/variables/w"), 404, "unknown_id")
    assert recovering.described()["answered"]["last_request"]["code"] == "unknown_id"


def test_an_attempt_that_fails_is_said_and_another_one_comes_after_a_pause(recovering: Recovering) -> None:
    """A lack of something is no fault of the session, however often it is tried."""
    hosts, clock = recovering.hosts, recovering.server.clock
    hosts.error = OSError("too many open files")
    recovering.die()
    for attempt in range(1, 6):
        until(lambda attempt=attempt: recovering.entry.attempts >= attempt)  # type: ignore[misc]  # a default of mypy's
        described = recovering.described()
        assert described["state"] == "recovering"
        assert f"the test ends it; attempt {attempt} has failed: " in described["why"]
        assert "too many open files" in described["why"]
        starts = hosts.starts
        refused = recovering.read()
        problem(refused, 503, "recovering")
        assert 1 <= int(refused.headers["retry-after"]) <= min(2 ** (attempt - 1), 30)
        assert hosts.starts == starts, "within the pause it is not tried"
        clock.ahead += 31
    hosts.error = None
    until(lambda: recovering.entry.host is not None)
    ok(recovering.read())
    assert (recovering.entry.attempts, recovering.described()["state"]) == (0, "live")


def test_hosts_that_end_while_they_bring_it_back_leave_it_damaged_after_three(recovering: Recovering) -> None:
    recovering.hosts.error = HostGone("it ends while it reads")
    recovering.die()
    for attempt in (1, 2):
        until(lambda attempt=attempt: recovering.entry.attempts >= attempt)  # type: ignore[misc]  # a default of mypy's
        assert recovering.described()["state"] == "recovering"
        recovering.server.clock.ahead += 31
    until(lambda: recovering.described()["state"] == "damaged")
    assert "ended 3 times while it was brought back" in recovering.described()["why"]
    problem(recovering.read(), 409, "session_damaged")


def test_only_deaths_in_a_request_after_one_record_count(recovering: Recovering) -> None:
    """A host that ends since its disk has failed is none; one record later the count begins anew."""
    deaths: list[dict[str, Any]] = [
        {"running": 0},
        {"running": 0},
        {"running": 1, "by_request": False},
        {"running": 1, "by_request": False},
        {"running": 1},
        {"running": 1, "written": 8},
    ]
    for death in deaths:
        recovering.die("its disk failed", **death)
        until(lambda: recovering.entry.host is not None)
    recovering.die(running=1, written=0)
    until(lambda: recovering.described()["state"] == "damaged")
    assert "died 2 times after record 0" in recovering.described()["why"]
