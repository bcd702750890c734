"""Why a request waits, who is ahead of it and when it starts: in 202s, events, descriptions, and GET /v1/usage."""

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import httpx
import pytest

from serving import KEYS, Program, Server, ok, until
from teletape_engine.commands import Call
from teletape_engine.recording.values import Literal
from teletape_server.hosts.protocols import HostFacts, Running
from teletape_server.hosts.shares import Shares
from teletape_server.hosts.time_slices import TimeSlices
from teletape_server.ipc.durations import Durations
from teletape_server.ipc.page import IDLE_BYTES
from teletape_server.ipc.rights import Rights
from teletape_server.settings import Settings
from teletape_server.waiting.estimates import seconds_left, seconds_until, seconds_until_place, total_seconds
from teletape_server.waiting.keys import Box
from teletape_server.waiting.reasons import Ahead, Waiting, of_request, of_run

ASYNC = {"Prefer": "respond-async"}
RUN = {"commands": [{"do": "op", "op": "exp", "inputs": [0.5], "outputs": ["x"]}], "fetch": ["x"]}
FOREVER = {
    "commands": [
        {"do": "function", "id": "body", "inputs": ["x"], "outputs": ["y"], "steps": [
            {"op": "add", "inputs": ["x", 1.0], "outputs": ["y"]}]},
        {"do": "scan", "body": "body", "inputs": [0.0], "outputs": ["last"], "carried": 1, "length": 1_000_000_000},
    ]
}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    settings = Settings(api_keys=KEYS, runs=1, patience=60.0, shutdown_grace=0.1, max_iterations=2_000_000_000)
    with Server(settings).running() as item:
        yield item


@contextmanager
def stopped(server: Server, session: str, owner: str = "ann") -> Iterator[None]:
    """A block in which the session's process does nothing."""
    pid = server.worker(session, owner)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_request_waits_for_those_of_its_session(server: Server) -> None:
    with server.client("ann") as ann, server.client("bob") as bob:
        for http, name in ((ann, "busy"), (bob, "spare")):
            ok(http.post("/v1/sessions", json={"id": name}))
        ok(ann.post("/v1/sessions/busy/tensors", json={"id": "v", "value": [1.0]}))
        with stopped(server, "busy"):
            answers = [
                ok(
                    ann.post(
                        "/v1/sessions/busy/run",
                        json=RUN | {"scratch": True},
                        headers=ASYNC | {"Idempotency-Key": str(number)},
                    )
                )
                for number in range(3)
            ]
            reasons = [answer.json()["wait"] for answer in answers]
            assert [wait["position"] for wait in reasons] == [0, 1, 2]
            assert reasons[2]["reason"] == (
                "a session runs one request at a time, and 2 other requests of the session busy came before it"
            )
            assert [(request["owner"], request["session"]) for request in reasons[2]["ahead"]] == [("ann", "busy")] * 2
            assert reasons[2]["starts_in_seconds"] is not None  # one has been answered, so that there is an estimate
            until(lambda: unanswered(bob, "ann") == 3)
            use = ok(bob.get("/v1/usage")).json()
            assert use["owner"] == "bob"
            assert use["longest_idle"]["session"] == "spare"
            keys = {key.pop("owner"): key for key in use["keys"]}
            assert keys["ann"]["sessions"] == 1
            assert keys["bob"].pop("bytes_reserved") == IDLE_BYTES
            assert use["memory_free"] > use["memory_promised"] >= 0
            assert keys["bob"] == {"sessions": 1, "bytes_in_use": 0, "computing": 0, "waiting": 0, "share": 0.0}
            assert (use["requests"], use["timeline"]) == ([], None)
            assert use["processors"] == len(os.sched_getaffinity(0))
            mine = ok(ann.get("/v1/usage")).json()["requests"]
            assert [(request["session"], request["wait"]["position"]) for request in mine] == [
                ("busy", position) for position in range(3)
            ]
            assert ok(ann.get("/v1/sessions/busy")).json()["running"]["wait"]["position"] == 2
            price = ok(ann.post("/v1/price", json=RUN | {"session": "busy"})).json()
            assert (price["verdict"], price["cost"], price["wait"]["position"]) == ("waits", None, 3)
            assert price["reason"] == reasons[2]["reason"].replace("2 other", "3 other")
            listed = ok(ann.get("/v1/sessions")).json()["sessions"]
            assert [session["running"]["wait"] for session in listed] == [None]
        for answer in answers:
            ok(ann.get(answer.headers["location"]))
        until(lambda: not waits(ann, "/v1/sessions/busy"))  # the request for a price ends too: it was cancelled
        for http, name in ((ann, "busy"), (bob, "spare")):
            ok(http.delete(f"/v1/sessions/{name}"))


def test_a_run_waits_for_a_place_and_learns_who_has_it(server: Server) -> None:
    with ExitStack() as stack:
        ann, bob = (stack.enter_context(server.client(owner)) for owner in ("ann", "bob"))
        holder = ok(bob.post("/v1/run", json=FOREVER, headers=ASYNC | {"Idempotency-Key": "long"}))
        until(lambda: wait(bob, holder)["reason"].startswith("it runs"))
        first = ok(ann.post("/v1/run", json=RUN, headers=ASYNC | {"Idempotency-Key": "first"}))
        until(lambda: wait(ann, first)["position"] == 1)
        second = ok(ann.post("/v1/run", json=RUN, headers=ASYNC | {"Idempotency-Key": "second"}))
        until(lambda: wait(ann, second)["position"] == 2)
        assert wait(ann, first)["reason"] == "the one place of POST /v1/run is taken, by bob: it is the next"
        why = wait(ann, second)
        assert why["reason"] == "the one place of POST /v1/run is taken: one more waits before it, of bob and ann"
        assert [(request["owner"], request["running_seconds"] is None) for request in why["ahead"]] == [
            ("bob", False),
            ("ann", True),
        ]
        price = ok(bob.post("/v1/price", json=RUN)).json()
        assert (price["verdict"], price["wait"]["position"], price["cost"]["ops"]) == ("waits", 3, 1)
        assert price["reason"] == ("the one place of POST /v1/run is taken: 2 more wait before it, of bob and ann")
        use = ok(ann.get("/v1/usage")).json()
        assert (use["runs"], use["waiting_runs"], use["places"]) == (1, 2, 1)
        assert [(request["session"], request["wait"]["position"]) for request in use["requests"]] == [
            (None, 1),
            (None, 2),
        ]
        with ann.stream("GET", first.headers["location"], headers={"Accept": "text/event-stream"}) as events:
            lines = events.iter_lines()
            assert next(lines) == "event: progress"
            assert json.loads(next(lines).removeprefix("data: "))["wait"]["position"] == 1
            ok(bob.delete(holder.headers["location"]))
            names = [line for line in lines if line.startswith("event: ")]
        assert names[-1] == "event: answer"
        assert ok(ann.get(second.headers["location"])).json()["values"]["x"]["data"] == pytest.approx(1.6487213)


def unanswered(http: httpx.Client, owner: str) -> int:
    """How many requests of an owner's sessions run or wait, as anybody sees it, half a second ago at most."""
    keys = {key["owner"]: key for key in ok(http.get("/v1/usage")).json()["keys"]}
    return int(keys[owner]["waiting"] + keys[owner]["computing"]) if owner in keys else 0


def wait(http: httpx.Client, accepted: httpx.Response) -> dict[str, Any]:
    """Why a request waits that was answered 202."""
    facts = ok(http.get(accepted.headers["location"], headers={"Prefer": "wait=0"})).json()
    why: dict[str, Any] = facts["wait"]
    return why


def test_estimates_follow_loops_commands_and_earlier_requests() -> None:
    loop = asyncio.new_event_loop()
    running = Running(loop.create_future(), done=1, total=4, iteration=20, iterations=100)
    facts = HostFacts(compute_seconds=12.0, durations=Durations([4, *[0] * 18]), running_seconds=2.0)
    assert seconds_left(running, facts) == 8.0  # by the loop: 80 of 100 iterations are left
    running.iterations = 0
    assert seconds_left(running, facts) == 6.0  # by the commands: three of four
    running.done = 0
    assert seconds_left(running, facts) == 1.0  # by the average of 3 s
    assert seconds_left(running, facts._replace(running_seconds=4.0)) is None
    assert seconds_left(running, HostFacts()) is None
    loop.close()
    assert seconds_until(6.0, 2, 3.0) == 12.0
    assert seconds_until(6.0, 0, None) == 6.0
    assert seconds_until(6.0, 1, None) is None
    assert seconds_until(None, 0, 3.0) is None
    assert seconds_until_place(3, 2, 4.0) == 6.0
    assert total_seconds([1.0, 2.0]) == 3.0
    assert total_seconds([1.0, None]) is None


def test_a_sentence_names_few_owners() -> None:
    running = [Ahead(owner, None, 1.0) for owner in ("ann", "bob", "cid", "dan", "eve")]
    waiting = of_run([], running, 5, None)
    assert waiting.reason == "all 5 places of POST /v1/run are taken, by ann, bob, cid and 2 more: it is the next"
    assert (waiting.position, waiting.starts_in) == (1, None)
    assert len(of_run(["ann"] * 40, running, 5, 1.0).ahead) == 10


def test_each_program_learns_why_its_own_batch_waits(server: Server) -> None:
    with server.client("ann") as ann, ThreadPoolExecutor(2) as threads:
        ok(ann.post("/v1/sessions", json={"id": "both"}))
        programs = [Program(ann, "both", nonces=nonces) for nonces in (b"1", b"2")]
        with stopped(server, "both"):
            answers = []
            for place, program in enumerate(programs):
                answers.append(threads.submit(program.run, Call("exp", (Literal(0.5),), (f"x{place}",))))
                path = f"/v1/sessions/both?client={program.client}"
                until(partial(waits, ann, path))
                assert ok(ann.get(path)).json()["running"]["wait"]["position"] == place
            first = ok(ann.get(f"/v1/sessions/both?client={programs[0].client}")).json()["running"]["wait"]
            assert (first["position"], ok(ann.get("/v1/sessions/both?client=999")).json()["running"]["wait"]) == (
                0,
                None,
            )
        assert [answer.result().failure for answer in answers] == [None, None]
        ok(ann.delete("/v1/sessions/both"))


def waits(http: httpx.Client, path: str) -> bool:
    """Whether a session has a request, or a batch of a client, that is not answered."""
    return ok(http.get(path)).json()["running"]["wait"] is not None


class OnGpu:
    """A session on a GPU that others share, with one request."""

    takes_turns, device, host = True, "gpu:0", object()

    def __init__(self, owner: str, running: Running, facts: HostFacts) -> None:
        self.owner, self.id, self.running, self.known = owner, f"of {owner}", {running}, facts

    def note_facts(self) -> HostFacts:
        return self.known


def test_sessions_wait_for_each_other_on_a_gpu() -> None:
    loop = asyncio.new_event_loop()
    owners = ("ann", "bob", "cid", "dan")
    requests = [Running(loop.create_future(), began=float(number)) for number in range(4)]
    earlier = Durations([2, *[0] * 18])
    idle, busy = (HostFacts(compute_seconds=6.0, durations=earlier, waiting=1 - now, running=now) for now in (0, 1))
    facts = [idle, busy._replace(running_seconds=1.0), idle, idle]
    sessions: Any = [OnGpu(*session) for session in zip(owners, requests, facts, strict=True)]
    box = Box({}, None, dict(zip(sessions, facts, strict=True)))
    waiting = of_request(sessions[2], requests[2], box)
    assert waiting.reason == "sessions take turns on gpu:0, and 2 requests of bob and ann came before it"
    assert (waiting.position, waiting.starts_in) == (2, 5.0)  # 2 s of bob's are left, and ann's takes 3 s
    assert of_request(sessions[1], requests[1], box) == Waiting(0, (), 0.0, "it runs")
    assert of_request(sessions[0], requests[0], box).reason == (
        "sessions take turns on gpu:0, and one request of bob came before it"
    )
    loop.close()


def test_parts_of_the_processors_follow_rights_or_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teletape_server.hosts.shares.cores", lambda: 2)
    busy = {"ann": 3, "bob": 3, "cid": 0}
    assert Shares(Rights({"ann": 5.0})).parts({"ann": 3, "bob": 1, "cid": 0}) == {"ann": 0.75, "bob": 0.25}
    assert TimeSlices(Rights({"ann": 4.0})).parts(busy) == {"ann": 0.8, "bob": 0.2}
    assert TimeSlices(Rights({"ann": 4.0})).parts({"ann": 3, "bob": 1}) == {"ann": 0.8, "bob": 0.2}
    assert TimeSlices(Rights({"ann": 4.0})).parts({"ann": 1, "bob": 3}) == {"ann": 0.5, "bob": 0.5}  # one core each
    assert Shares().parts({}) == TimeSlices(Rights()).parts({}) == {}
