"""Budgets: what is used is measured, counts by hours, survives a restart, is warned of, and refused beyond a limit."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from key_requests import ADMIN, LIMITS, bearer, me, new_key

from counting import calls
from serving import KEYS, Server, ok, problem, until
from teletape_server import setting_values
from teletape_server.budgets.budgets import Budgets
from teletape_server.budgets.history import HOUR, History
from teletape_server.budgets.limits import WINDOWS, Limits, Present, Use
from teletape_server.budgets.rates import Rate
from teletape_server.budgets.timeline import Minutes, Timeline
from teletape_server.hosts.protocols import HostFacts
from teletape_server.identity import identity as identity_module
from teletape_server.identity.identity import Identity
from teletape_server.identity.keys import environment_keys
from teletape_server.identity.store import Store
from teletape_server.ipc.leases import Terms
from teletape_server.models.keys import LimitsBody
from teletape_server.problems import Problem
from teletape_server.sessions.ended_sessions import Boot
from teletape_server.sessions.entry import Metered, SessionEntry
from teletape_server.sessions.hosting.meter import Meter, present
from teletape_server.sessions.live_sessions import LiveSessions
from teletape_server.sessions.record import SessionLimits, SessionRecord
from teletape_server.settings import Settings
from teletape_wire import timestamp

DAY = 24 * HOUR
_NUMBERS = itertools.count()


# ---------------------------------------------------------------------------------------------------------------- alone
def test_an_hour_counts_until_all_of_it_is_older_than_the_window() -> None:
    history = History({0: Use(5.0, 1.0, 3), 10: Use(2.0)})
    assert history.used("compute_seconds_1d", 10.5 * HOUR) == 7.0
    history.add(11.5 * HOUR, Use(1.0, 0.5, 1))
    assert history.used("compute_seconds_1d", 24.9 * HOUR) == 8.0
    assert history.used("compute_seconds_1d", 25 * HOUR) == 3.0
    assert history.used("compute_seconds_7d", 25 * HOUR) == 8.0
    assert history.used("gib_hours_30d", 25 * HOUR) == 1.5
    assert history.days(25 * HOUR) == {0: Use(8.0, 1.5, 4)}
    assert history.used("compute_seconds_30d", 31 * DAY) == 0.0
    assert not history.hours, "nothing older is remembered"


def test_it_is_known_when_less_than_a_limit_will_be_used() -> None:
    history = History({0: Use(5.0), 3: Use(2.0), 5: Use(2.0)})
    now = 6 * HOUR
    assert history.frees("compute_seconds_1d", now, 9.0) == 25 * HOUR
    assert history.frees("compute_seconds_1d", now, 4.0) == 28 * HOUR, "the first hour leaves 4, which is not less"
    assert history.frees("compute_seconds_1d", now, 3.0) == 28 * HOUR
    assert history.frees("compute_seconds_7d", now, 1.0) == (5 + 1 + 7 * 24) * HOUR
    assert history.frees("compute_seconds_1d", now, 10.0) == now


def test_a_rate_lets_a_second_through_at_once_and_then_each_in_its_time() -> None:
    rate = Rate(0.0)
    assert [rate.take(4.0, 0.0) for _ in range(5)] == [0.0, 0.0, 0.0, 0.0, 0.25]
    assert rate.take(4.0, 0.25) == 0.0
    assert rate.take(4.0, 0.3) == pytest.approx(0.2)
    slow = Rate(0.0)
    assert (slow.take(0.5, 0.0), slow.take(0.5, 1.0), slow.take(0.5, 2.0)) == (0.0, 1.0, 0.0)


def test_a_group_has_what_its_members_use_together_and_the_tightest_limit_counts() -> None:
    now = [100 * DAY]
    budgets = Budgets(Limits(sessions=3, compute_seconds_1d=100.0), lambda: now[0], lambda: now[0])
    budgets.set_groups({"ann": "lab", "bob": "lab", "eve": ""})
    budgets.set_limits({"@lab": Limits(sessions=4, compute_seconds_1d=10.0), "bob": Limits(sessions=9)})
    budgets.present = lambda: {"ann": Present(1, 10, 5), "bob": Present(2, 20, 0), "eve": Present(1)}
    assert budgets.limits("bob") == Limits(sessions=9, compute_seconds_1d=100.0)
    assert budgets.now_used("@lab") == Present(3, 30, 5)
    room = budgets.tightest("bob", ["ann", "bob", "bob", "eve"])
    assert room is not None
    assert (room.account, room.used, room.left) == ("@lab", 3, 1)
    budgets.charge("ann", Use(6.0))
    assert not budgets.look(), "nothing is refused or warned of"
    budgets.charge("bob", Use(2.5))
    assert budgets.look() == {"ann", "bob"}
    assert budgets.warnings["ann"].startswith(
        "85 % of a limit is used: the group lab may use 10 compute seconds within 1 d"
    )
    assert "eve" not in budgets.warnings
    budgets.charge("bob", Use(2.0))
    assert budgets.look() == {"ann", "bob"}
    with pytest.raises(Problem) as refused:
        budgets.check_work("ann")
    details = refused.value.details
    assert (details["used"], details["limit"], details["account"]) == (10.5, 10.0, "@lab")
    assert int(refused.value.headers["Retry-After"]) == 25 * 3600
    budgets.check_work("eve")
    now[0] += 25 * HOUR
    budgets.check_work("ann")
    assert budgets.look() == {"ann", "bob"}
    assert not budgets.over


@pytest.mark.parametrize(
    ("device", "facts", "seconds"),
    [
        ("cpu", HostFacts(cpu_seconds=2.0, compute_seconds=5.0, kernel_seconds=3.0), 3.0),
        ("cpu", HostFacts(kernel_seconds=3.0), 3.0),  # its process says that it has done nothing
        ("cpu", HostFacts(cpu_seconds=900.0, kernel_seconds=3.0), 3.0),
        ("cpu", HostFacts(cpu_seconds=2.0), 2.0),
        ("gpu:0", HostFacts(cpu_seconds=1.0, compute_seconds=5.0), 5.0),
        ("gpu:0", HostFacts(compute_seconds=5.0, kernel_seconds=6.0), 6.0),
    ],
)
def test_what_a_process_says_is_checked_against_the_kernel(
    device: str, facts: HostFacts, seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    budgets = Budgets(clock=lambda: 0.0)
    entry: Any = SimpleNamespace(account="ann", id="s", owner="ann", device=device, metered=Metered(0.0), log_facts={})
    Meter(budgets, lambda: 1.0).note(entry, facts)
    assert budgets.history("ann").used("compute_seconds_1d", 0.0) == seconds
    assert ("the kernel knows of 3.0 s" in caplog.text) is (facts.cpu_seconds > 100)
    Meter(budgets, lambda: 1.0).note(entry, facts)
    assert budgets.history("ann").used("compute_seconds_1d", 0.0) == seconds, "it counts once"


def test_the_texts_and_the_bodies_of_limits_have_the_same_names() -> None:
    assert set(LimitsBody.model_fields) == set(Limits._fields)
    assert WINDOWS.keys() <= {*Limits._fields}
    text = "sessions=4, memory_bytes=8GiB,compute_seconds_7d=10h,gib_hours_1d=2.5,requests_per_second=50"
    expected = Limits(
        sessions=4, memory_bytes=8 << 30, compute_seconds_7d=36000.0, gib_hours_1d=2.5, requests_per_second=50.0
    )
    assert setting_values.limits(text) == expected
    for wrong in ("session=4", "sessions", "sessions=-1", "memory_bytes=x", "gib_hours_1d=0", "sessions=1,sessions=2"):
        with pytest.raises(ValueError, match="limits"):
            setting_values.limits(wrong)


def test_use_is_there_after_a_restart_and_old_hours_are_not(tmp_path: Path) -> None:
    now = [100 * DAY]
    keys = environment_keys({"ann": "ann's key"}, ())

    def identity() -> Identity:
        return Identity(keys, Store.in_folder(str(tmp_path)), lambda: now[0])

    first = identity()
    first.budgets.charge("ann", Use(5.0, 1.5, 2))
    asyncio.run(first.close())
    now[0] += HOUR
    second = identity()
    second.budgets.charge("ann", Use(1.0, 0.0, 1))
    asyncio.run(second.close())
    third = identity()
    assert third.budgets.history("ann").hours == {2400: Use(5.0, 1.5, 2), 2401: Use(1.0, 0.0, 1)}
    now[0] += 31 * DAY
    third.budgets.charge("ann", Use(2.0))
    asyncio.run(third.close())
    store = Store.in_folder(str(tmp_path))
    assert [*store.use(0)["ann"].values()] == [Use(2.0)]
    store.close()


def test_a_timeline_has_minutes_hours_and_days_of_each_account() -> None:
    minutes, start = Minutes(), 50 * DAY
    minutes.add("ann", start, 2.5)
    minutes.add("ann", start + 59, 1.5)
    minutes.add("bob", start + 100 * 60, 8.0)
    used = {"ann": minutes.of("ann"), "bob": minutes.of("bob"), "idle": {}}
    line = Timeline.of("minutes", used, start + 100 * 60 + 30)
    assert (line.began, line.step, [*line.seconds]) == (start - 79 * 60, 60.0, ["ann", "bob"])
    assert [(place, seconds) for place, seconds in enumerate(line.seconds["ann"]) if seconds] == [(79, 4.0)]
    assert line.seconds["bob"][-1] == 8.0
    minutes.add("bob", start + 180 * 60, 1.0)
    assert (minutes.of("ann"), len(minutes.of("bob"))) == ({}, 2)  # three hours later the first minute is forgotten
    hour = round(start / 3600)
    hours = {"ann": {hour: 1.0, hour - 1: 2.0, hour - 48: 4.0, hour - 30 * 24: 8.0}}
    assert [second for second in Timeline.of("hours", hours, start).seconds["ann"] if second] == [2.0, 1.0]
    assert [second for second in Timeline.of("days", hours, start).seconds["ann"] if second] == [4.0, 2.0, 1.0]


# ------------------------------------------------------------------------------------------------------------ served
@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = str(tmp_path_factory.mktemp("data"))
    limits = Limits(sessions=2)
    settings = Settings(
        data_dir=folder, api_keys=KEYS, admins=frozenset({"ann"}), key_limits=limits, shutdown_grace=0.1
    )
    with Server(settings).running() as server:
        yield server


@pytest.fixture
def admin(server: Server) -> Iterator[httpx.Client]:
    with server.client("ann") as http:
        yield http


@pytest.fixture
def anybody(server: Server) -> Iterator[httpx.Client]:
    with server.client(None) as http:
        yield http


def compute(http: httpx.Client, headers: dict[str, str], session: str) -> httpx.Response:
    """Some hundredths of a second of computing in a session that has the variable w."""
    names = [f"y{next(_NUMBERS)}" for _ in range(10)]
    commands = [{"do": "op", "op": "matmul", "inputs": ["w", "w"], "outputs": [name]} for name in names]
    return http.post(f"/v1/sessions/{session}/run", json={"commands": commands}, headers=headers)


def test_a_key_with_limits_of_its_own_counts_by_itself_and_is_refused_beyond_them(
    server: Server, admin: httpx.Client, anybody: httpx.Client
) -> None:
    key = new_key(admin, owner="eve", group="lab", limits={"compute_seconds_1d": 0.5, "sessions": 1})
    mine, account = bearer(key["key"]), f"eve:{key['id']}"
    assert key["account"] == account
    facts = me(anybody, **mine)
    assert (facts["owner"], facts["key"], facts["role"], facts["group"]) == ("eve", key["id"], "user", "lab")
    assert (facts["use"]["account"], facts["use"]["group"]) == (account, "@lab")
    limits = {limit["name"]: (limit["used"], limit["limit"]) for limit in facts["use"]["limits"]}
    assert limits == {"sessions": (0, 1), "disk_bytes": (0, 64 << 30), "compute_seconds_1d": (0, 0.5)}

    ok(anybody.post("/v1/sessions", json={"id": "s"}, headers=mine))
    refused = problem(anybody.post("/v1/sessions", json={"id": "t"}, headers=mine), 409, "too_many_sessions")
    assert refused["details"].pop("frees_at") > timestamp(server.clock())
    assert refused["details"] == {"account": account, "name": "sessions", "used": 1, "asked": 1, "limit": 1}
    w = {"id": "w", "value": {"dtype": "float64", "shape": [500, 500], "data": [0.0] * 250_000}}
    ok(anybody.post("/v1/sessions/s/variables", json=w, headers=mine))
    last: list[httpx.Response] = []

    def is_over() -> bool:
        last.append(compute(anybody, mine, "s"))
        return last[-1].status_code == 429

    until(is_over)
    refused = problem(last[-1], 429, "over_budget")
    details = refused["details"]
    assert details["used"] >= details["limit"] == 0.5
    assert (details["account"], details["name"], details["asked"]) == (account, "compute_seconds_1d", None)
    assert details["frees_at"] in refused["detail"]
    assert 23 * 3600 < int(last[-1].headers["Retry-After"]) <= 25 * 3600
    problem(anybody.post("/v1/run", json={"commands": []}, headers=mine), 429, "over_budget")
    for place in ({}, {"session": "s"}):
        price = ok(anybody.post("/v1/price", json={"commands": [], **place}, headers=mine)).json()
        assert (price["verdict"], price["problem"]["code"]) == ("refused", "over_budget")
        assert price["problem"]["details"].keys() == details.keys()
    warned = anybody.get("/v1/sessions/s/variables/w", headers=mine)
    assert ok(warned).headers["Teletape-Warning"].startswith("100 % of a limit is used: the key ")
    assert me(anybody, **mine)["warning"] == warned.headers["Teletape-Warning"]
    kernel = server.app.state.registry.find("eve", "s").host.facts().kernel_seconds

    def computed() -> float:
        return float(sum(day["compute_seconds"] for day in me(anybody, **mine)["days"]))

    until(lambda: computed() == pytest.approx(kernel, abs=0.1))
    today = me(anybody, **mine)["days"]
    assert sum(day["requests"] for day in today) >= 2
    assert sum(day["gib_hours"] for day in today) > 0

    ok(admin.put(f"{LIMITS}/{account}", json={"compute_seconds_1d": 1000}))
    until(lambda: compute(anybody, mine, "s").is_success)
    ok(anybody.delete("/v1/sessions/s", headers=mine))
    listed = {item["account"]: item for item in ok(admin.get(LIMITS)).json()["accounts"]}
    assert {account, "@lab", "ann"} <= listed.keys()
    assert listed["@lab"]["limits"] == []


def test_limits_are_an_admins_and_further_keys_count_with_the_first(admin: httpx.Client, anybody: httpx.Client) -> None:
    key = new_key(admin, owner="kim", limits={"requests_per_second": 3})
    mine = bearer(key["key"])
    further = ok(anybody.post(ADMIN, json={}, headers=mine)).json()
    assert further["account"] == key["account"]
    answers = [anybody.get("/v1/me", headers=bearer(further["key"])) for _ in range(30)]
    refused = next(answer for answer in answers if not answer.is_success)
    details = problem(refused, 429, "busy")["details"]
    assert (details["name"], details["limit"], refused.headers["Retry-After"]) == ("requests_per_second", 3, "1")
    assert 0 < details["seconds"] <= 1 / 3
    plain = bearer(new_key(admin, owner="lou")["key"])
    problem(anybody.get(LIMITS, headers=plain), 403, "forbidden")
    problem(anybody.put(f"{LIMITS}/lou", json={}, headers=plain), 403, "forbidden")
    problem(anybody.post(ADMIN, json={"limits": {"sessions": 9}}, headers=plain), 403, "forbidden")
    rotated = ok(admin.post(f"{ADMIN}/{key['id']}/rotate", json={})).json()
    assert rotated["account"] == key["account"]
    problem(admin.put(f"{LIMITS}/a:b:c", json={}), 422, "invalid_request")


def test_a_groups_memory_is_that_of_its_members(server: Server, admin: httpx.Client, anybody: httpx.Client) -> None:
    ok(admin.put(f"{LIMITS}/@small", json={"memory_bytes": 1 << 20}))
    keys = [bearer(new_key(admin, owner=owner, group="small")["key"]) for owner in ("pat", "sam")]
    ok(anybody.post("/v1/sessions", json={"id": "s"}, headers=keys[0]))
    w = {"id": "w", "value": {"dtype": "float64", "shape": [500, 500], "data": [0.0] * 250_000}}
    ok(anybody.post("/v1/sessions/s/variables", json=w, headers=keys[0]))
    until(lambda: me(anybody, **keys[1])["warning"] != "")
    answer = anybody.post("/v1/sessions", json={}, headers=keys[1])
    refused = problem(answer, 507, "resource_exhausted")
    assert 0 < int(answer.headers["Retry-After"]) <= server.settings.idle_limit
    assert refused["details"].pop("frees_at") > timestamp(server.clock())
    assert refused["details"] == {
        "account": "@small",
        "name": "memory_bytes",
        "used": 2_000_000,
        "asked": 0,
        "limit": 1 << 20,
    }
    problem(anybody.post("/v1/run", json={"commands": []}, headers=keys[1]), 507, "resource_exhausted")
    ok(anybody.delete("/v1/sessions/s", headers=keys[0]))
    ok(anybody.post("/v1/sessions", json={"id": "s"}, headers=keys[1]))
    fill = {"op": "fill", "inputs": [0.0], "outputs": ["big"], "attrs": {"shape": [2000, 2000]}}
    answer = anybody.post("/v1/sessions/s/ops", json={"ops": [fill]}, headers=keys[1])
    assert "frees_at" not in problem(answer, 507, "resource_exhausted")["details"], "it is more than the group may have"
    assert "Retry-After" not in answer.headers


def test_use_is_written_while_the_server_runs(
    server: Server, admin: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity_module, "_BUDGET_SECONDS", 0.0)
    ok(admin.post("/v1/run", json={"commands": []}))
    assert server.settings.data_dir is not None
    store = Store.in_folder(server.settings.data_dir)
    until(lambda: "ann" in store.use(0))
    store.close()


def test_an_admin_sees_who_computed_when_and_others_only_themselves(server: Server) -> None:
    budgets = server.app.state.identity.budgets
    for account in ("ann", "bob", "cleo", "cleo:k1"):
        budgets.charge(account, Use(3.0))
    for step, count in (("minutes", 180), ("hours", 48), ("days", 30)):
        with server.client("ann") as ann, server.client("bob") as bob:
            seen = {
                owner: {line["account"]: line["seconds"] for line in of(http, step)["accounts"]}
                for owner, http in (("ann", ann), ("bob", bob))
            }
        assert {*seen["ann"]} >= {"ann", "bob", "cleo", "cleo:k1"}
        assert "" not in seen["ann"]
        assert {*seen["bob"]} == {"bob", ""}
        assert sum(seen["bob"]["bob"]) >= 3.0
        assert sum(seen["bob"][""]) >= 9.0
        assert {len(seconds) for seconds in (*seen["ann"].values(), *seen["bob"].values())} == {count}


def of(http: httpx.Client, step: str) -> dict[str, Any]:
    """The timeline in such steps, as a caller sees it."""
    timeline: dict[str, Any] = ok(http.get("/v1/usage", params={"timeline": step})).json()["timeline"]
    return timeline


def test_what_an_account_uses_costs_no_look_at_the_sessions_of_others() -> None:
    budgets, lefts = Budgets(), list[float]()
    quota: Any = SimpleNamespace(disk=lambda left: lefts.append(left) or left)
    store: Any = SimpleNamespace(nbytes=lambda record: 5)
    live = LiveSessions(store, quota, Boot.at(0.0), time.time, budgets)
    budgets.present_of = lambda names: present(live.of_accounts(names))
    budgets.set_groups({"ann": "lab", "bob": "lab"})
    budgets.set_limits({"ann": Limits(disk_bytes=1 << 40), "@lab": Limits(sessions=9, disk_bytes=1 << 40)})

    def add(owner: str, id: str, nbytes: int) -> SessionEntry:
        limits, terms = SessionLimits(1 << 20), Terms(1e9, 1e9)
        start: Any = None
        entry = SessionEntry(SessionRecord(id, owner, id, "cpu", limits, 0.0, terms), start, time.time)
        entry.disk_bytes = nbytes
        live.by_key[entry.record.key] = entry
        return entry

    mine = add("ann", "a", 5)
    add("bob", "b", 7)
    log: Any = SimpleNamespace(limit=lambda nbytes: None)
    mine.log = log

    def work() -> None:
        budgets.standings("ann")
        live.measure(mine)

    work()
    few = calls(work)
    for number in range(500):
        add("eve", f"e{number}", 3)
    assert calls(work) < few + 50, "one more account"
    assert budgets.now_used("@lab").disk_bytes == mine.disk_bytes + 7
    assert budgets.now_used("eve").disk_bytes == 1500
    assert lefts[-1] == (1 << 40) - 7, "of the group, without the session's own"
    whole = live.by_key
    assert sum(map(len, whole.by_account.values())) == len(whole)
    for key in [*whole]:
        whole.pop(key)
    assert whole.by_account == {}
    assert whole.pop(("no", "such")) is None
