"""The stream of an owner's sessions: all at first, then changes; what admins see and end; the end of the server."""

import contextlib
import json
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

import serving
from serving import KEYS, Server, ok, problem
from teletape_server.routes.session import session_events
from teletape_server.sessions.lifecycle import Phase
from teletape_server.settings import Settings, SettingsError

EVENTS = {"Accept": "text/event-stream"}
LOOP = {
    "commands": [
        {
            "do": "function",
            "id": "step",
            "inputs": ["x"],
            "outputs": ["y"],
            "steps": [{"op": "sin", "inputs": ["x"], "outputs": ["y"]}],
        },
        {"do": "scan", "body": "step", "inputs": [2.5], "carried": 1, "length": 1_000_000_000, "outputs": ["last"]},
    ]
}


@contextlib.contextmanager
def stream(client: httpx.Client) -> Iterator[Iterator[tuple[str, Any]]]:
    with client.stream("GET", "/v1/sessions", headers=EVENTS) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")

        def events() -> Iterator[tuple[str, Any]]:
            name = ""
            for line in response.iter_lines():
                if line.startswith("event: "):
                    name = line[7:]
                elif line.startswith("data: "):
                    yield name, json.loads(line[6:])

        yield events()


def until(events: Iterator[tuple[str, Any]], name: str, **members: Any) -> Any:
    return next(
        data
        for event, data in events
        if event == name and all(data[member] == value for member, value in members.items())
    )


@pytest.fixture
def governed(server: Server) -> Iterator[Server]:
    """A server in which ann is an admin and bob is not."""
    settings = Settings(
        api_keys=KEYS, admins=frozenset({"ann"}), max_iterations=1 << 40, time_limit=100.0, log_level="error"
    )
    with Server(settings).running() as running:
        yield running


def test_an_owner_sees_what_changes_and_nobody_elses(governed: Server) -> None:
    with governed.client("bob") as bob, governed.client("ann") as ann, stream(bob) as events:
        assert next(events) == ("sessions", {"sessions": [], "owner": "bob", "admin": False})
        ok(ann.post("/v1/sessions", json={"id": "hers"}))
        created = ok(bob.post("/v1/sessions", json={"id": "his"})).json()
        assert next(events)[1]["id"] == "his"
        assert created["owner"] == "bob"
        ok(bob.post("/v1/sessions/his/tensors", json={"id": "x", "value": [1.5] * 1000}))
        until(events, "session", id="his", bytes_in_use=4000)
        later = ok(bob.post("/v1/sessions/his/extend", json={"seconds": 7200})).json()["expires_at"]
        assert until(events, "session", expires_at=later)["id"] == "his"
        ok(bob.delete("/v1/sessions/his"))
        ended = until(events, "ended", id="his")
        assert (ended["owner"], ended["reason"], ended["text"]) == ("bob", "deleted", "it was deleted")


def test_a_running_loop_shows_its_progress_and_a_cancel_ends_it(governed: Server) -> None:
    with governed.client("bob") as bob, governed.client("ann") as ann, stream(ann) as events:
        assert next(events)[1]["admin"] is True
        ok(bob.post("/v1/sessions", json={"id": "busy"}))
        answers: list[httpx.Response] = []
        loop = threading.Thread(target=lambda: answers.append(bob.post("/v1/sessions/busy/batch", json=LOOP)))
        loop.start()
        work = next(data["running"] for name, data in events if name == "session" and data["running"]["iteration"] > 0)
        assert (work["requests"], work["iterations"]) == (1, 1_000_000_000)
        ok(ann.post("/v1/sessions/bob:busy/cancel"))
        next(data for name, data in events if name == "session" and data["running"]["requests"] == 0)
        loop.join()
        assert ok(answers[0]).json()["failure"]["code"] == "cancelled"


def test_an_admin_sees_and_ends_the_sessions_of_all(governed: Server) -> None:
    with governed.client("ann") as ann, governed.client("bob") as bob, governed.client(None) as nobody:
        ok(ann.post("/v1/sessions", json={"id": "same"}))
        ok(bob.post("/v1/sessions", json={"id": "same"}))
        ok(bob.post("/v1/sessions/same/tensors", json={"id": "x", "value": 1.5}))
        listed = ok(ann.get("/v1/sessions")).json()["sessions"]
        assert [(session["owner"], session["id"]) for session in listed] == [("ann", "same"), ("bob", "same")]
        first = ok(ann.get("/v1/sessions?limit=1")).json()
        assert [session["owner"] for session in first["sessions"]] == ["ann"]
        rest = ok(ann.get("/v1/sessions", params={"after": first["next"]})).json()
        assert [session["owner"] for session in rest["sessions"]] == ["bob"]
        problem(bob.get("/v1/sessions?after=ann:same"), 404, "unknown_session")
        assert [session["owner"] for session in ok(bob.get("/v1/sessions")).json()["sessions"]] == ["bob"]
        assert ok(ann.get("/v1/sessions/bob:same/tensors/x/histogram")).json()["mean"] == 1.5
        assert ok(ann.get("/v1/sessions/same/tensors")).json()["tensors"] == []
        assert ok(bob.get("/v1/sessions/bob:same/tensors")).json()["tensors"] != []
        problem(bob.get("/v1/sessions/ann:same"), 404, "unknown_session")
        problem(nobody.get("/v1/sessions/ann:same"), 401, "unauthenticated")
        problem(nobody.get("/v1/sessions", headers=EVENTS), 401, "unauthenticated")
        problem(ann.get("/v1/sessions/bob:other"), 404, "unknown_session")
        ok(ann.delete("/v1/sessions/bob:same"))
        problem(bob.get("/v1/sessions/same"), 410, "session_ended")


def test_the_stream_ends_with_the_server(server: Server) -> None:
    with Server(server.settings).running() as second, second.client() as client, stream(client) as events:
        assert next(events)[0] == "sessions"
        ok(client.post("/v1/sessions", json={"id": "last"}))
        until(events, "session", id="last")
        second.stop()
        assert until(events, "ended", id="last")["reason"] == "server_shutdown"
        assert list(events) == []


def test_streams_are_limited_by_key_and_in_all(governed: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_events, "MOST_PER_KEY", 2)
    monkeypatch.setattr(session_events, "MOST", 3)
    with governed.client("bob") as bob, governed.client("ann") as ann, contextlib.ExitStack() as streams:
        with stream(bob) as events:
            next(events)
            mine = streams.enter_context(stream(bob))
            next(mine)
            refusal = problem(bob.get("/v1/sessions", headers=EVENTS), 429, "busy")
            assert "your key has 2 open streams" in refusal["detail"]
            assert refusal["details"] == {"found": 2, "limit": 2}
            hers = streams.enter_context(stream(ann))
            next(hers)
            assert "this server has 3" in problem(ann.get("/v1/sessions", headers=EVENTS), 429, "busy")["detail"]
            ok(bob.get("/v1/sessions"))
        serving.until(lambda: not governed.app.state.session_feed.is_full("bob"))
        next(streams.enter_context(stream(bob)))


def test_a_session_is_described_once_for_all_who_listen(governed: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    described, looks = list[str](), list[int]()
    describe, look = session_events.described, session_events.SessionFeed.look

    def counted(entry: Any, *facts: Any) -> Any:
        described.append(entry.id)
        return describe(entry, *facts)

    def looked(feed: Any, **how: bool) -> None:
        look(feed, **how)
        looks.append(len(described))

    monkeypatch.setattr(session_events, "described", counted)
    monkeypatch.setattr(session_events.SessionFeed, "look", looked)
    with governed.client("bob") as bob, contextlib.ExitStack() as streams:
        for id in ("one", "two"):
            ok(bob.post("/v1/sessions", json={"id": id}))
        all_events = [streams.enter_context(stream(bob)) for _ in range(10)]
        later = ok(bob.post("/v1/sessions/one/extend", json={"seconds": 7200})).json()["expires_at"]
        for events in all_events:
            assert until(events, "session", expires_at=later)["id"] == "one"
        assert looks[-1] == 2 * len(looks)
    serving.until(lambda: not governed.app.state.session_feed.is_looking)


def test_what_has_no_process_is_described_again_in_one_of_eight_looks_or_with_another_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    described = list[str]()

    def describe(entry: Any, *_: Any) -> Any:
        described.append(entry.id)
        facts = {"state": entry.record.state.phase.value, "running": SimpleNamespace(requests=0)}
        return SimpleNamespace(**facts, model_dump_json=str)

    def parked(id: str) -> Any:
        record = SimpleNamespace(state=SimpleNamespace(phase=Phase.PARKED))
        return SimpleNamespace(owner="bob", id=id, host=None, running=(), record=record)

    monkeypatch.setattr(session_events, "described", describe)
    ids = [f"s{number:02}" for number in range(20)]
    entries = [parked(id) for id in ids]
    live = SimpleNamespace(all=lambda: entries, stopping=False)
    feed = session_events.SessionFeed(SimpleNamespace(clock=float, disk_limit=0, live=live))  # type: ignore[arg-type]  # parts
    feed.look()
    assert described == ids
    described.clear()
    for _ in range(8):
        feed.look()
    assert sorted(described) == ids
    described.clear()
    entries[0].host = object()
    entries[1].record.state.phase = Phase.WAKING
    feed.look()
    feed.look()
    assert (described.count(ids[0]), described.count(ids[1])) == (2, 1)  # it is not the turn of either of them
    described.clear()
    feed.look(all_again=True)
    assert described == ids


def test_head_has_the_type_and_no_events(http: httpx.Client) -> None:
    answer = http.head("/v1/sessions", headers=EVENTS)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"].startswith("text/event-stream")


def test_admins_are_names_of_keys() -> None:
    environment = {"TELETAPE_API_KEYS": "ann:12345678,bob:87654321", "TELETAPE_ADMINS": "ann"}
    assert Settings.load([], environment).admins == {"ann"}
    with pytest.raises(SettingsError, match="an admin is the name of an API key, and there is none called eve"):
        Settings.load([], environment | {"TELETAPE_ADMINS": "ann, eve"})
    with pytest.raises(SettingsError, match="names of API keys"):
        Settings.load([], environment | {"TELETAPE_ADMINS": "a:b"})
