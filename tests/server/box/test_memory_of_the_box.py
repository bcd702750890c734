"""Sessions that grow at the same time: what they have together fits into the box, and nothing of them is killed."""

import asyncio
import mmap
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from serving import KEYS, Program, Server, ok, problem, until
from teletape_engine.commands import Assign, Call, Fetch, MakeVariable
from teletape_engine.commands.results import Answer
from teletape_engine.recording.values import Literal
from teletape_server.budgets.limits import Limits
from teletape_server.identity.token_rules import OWNER
from teletape_server.ipc.page import IDLE_BYTES
from teletape_server.settings import Settings

MIB = 1 << 20
LEAST = 256 * MIB
PROCESS = 64 * MIB  # that the start of a session takes besides


class Box:
    """A machine with little memory: what the processes of the server's sessions take is missing from it."""

    def __init__(self, server: Server, monkeypatch: pytest.MonkeyPatch, nbytes: int) -> None:
        self._registry, self._pool = server.app.state.registry, server.app.state.pool
        self.nbytes, self.least_free = nbytes + LEAST, 1 << 60
        self._before: dict[int, int] = {}
        monkeypatch.setattr(self._registry._places, "_free", self.free)
        self._stop = threading.Event()
        self._watch = threading.Thread(target=self._look)

    def free(self) -> int:
        free = self.nbytes - sum(self.used().values())
        self.least_free = min(self.least_free, free)
        return free

    def used(self) -> dict[str, int]:
        """What each process of a session, or of published functions, has taken since it was seen first."""
        used = {}
        hosts = {entry.id: entry.host for entry in [*self._registry.live.by_key.values()]}
        hosts |= {f"published {i}": process.host for i, process in enumerate([*self._pool._processes])}
        for name, host in hosts.items():
            pid = getattr(host, "pid", None)
            try:
                resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * mmap.PAGESIZE
            except OSError:
                continue
            used[name] = max(resident - self._before.setdefault(pid, resident), 0)
        return used

    def _look(self) -> None:
        while not self._stop.wait(0.002):
            self.free()

    def __enter__(self) -> "Box":
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._watch.join()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    settings = Settings(data_dir=str(tmp_path), api_keys=KEYS, shutdown_grace=0.1)
    with Server(settings).running() as server:
        yield server


def create(http: httpx.Client, id: str, **of: Any) -> Program:
    ok(http.post("/v1/sessions", json={"id": id, "durability": "none", **of}))
    return Program(http, id)


def grow(program: Program, name: str, mib: int) -> Answer:
    """Makes a tensor of that size that stays: a quarter of a million numbers are a MiB."""
    return program.run(Call("fill", (Literal(1.0),), (name,), {"shape": [mib << 18]}))


def reservation(server: Server, owner: str, id: str) -> int:
    """The bytes that a session has reserved."""
    number: int = server.app.state.registry.find(owner, id).host._memory._page.reserved
    return number


def test_sessions_of_two_keys_that_grow_together_stay_within_the_box(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server.client("ann") as ann, server.client("bob") as bob, ThreadPoolExecutor(6) as threads:
        programs = {f"s{i}": create((ann, bob)[i % 2], f"s{i}") for i in range(6)}
        with Box(server, monkeypatch, 600 * MIB) as box:

            def fill(name: str) -> list[Answer]:
                return [grow(programs[name], f"{name}.{step}", 20) for step in range(15)]

            answers = {name: each.result() for name, each in {n: threads.submit(fill, n) for n in programs}.items()}
            assert box.least_free >= LEAST - 64 * MIB, "Python's own objects are not reserved"
            count = sum(answer.failure is None for each in answers.values() for answer in each)
            failures = [answer.failure for each in answers.values() for answer in each if answer.failure is not None]
            assert count * 20 > 300, "most of the box is used"
            assert count * 20 <= 600
            assert {failure.code for failure in failures} == {"resource_exhausted"}
            last = failures[-1]
            assert "the machine has" in last.message
            assert "no idle session can be parked" in last.message
            assert {each["account"] for each in last.details["accounts"]} == {"ann", "bob"}
            assert sum(each["reserved_bytes"] for each in last.details["accounts"]) > 300 * MIB
            assert last.details["used"] + last.details["asked"] > last.details["limit"]
            assert last.details["limit"] <= 600 * MIB + LEAST
            for name, program in programs.items():  # all live, and what was refused can be done with less
                steps = [step for step, answer in enumerate(answers[name]) if answer.failure is None]
                answer = program.run(
                    Call("reduce_sum", (f"{name}.{steps[-1]}",), (f"{name}.sum",)), Fetch(f"{name}.sum")
                )
                assert answer.failure is None
                assert np.asarray(answer.results[0].array) == 20 << 18  # type: ignore[union-attr]
        assert {entry.record.state.phase.value for entry in server.app.state.registry.live.all()} == {"live"}


def test_an_idle_lasting_session_of_another_key_is_parked_and_has_its_values_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server.client("ann") as ann, server.client("bob") as bob, Box(server, monkeypatch, 200 * MIB) as box:
        idle = create(ann, "idle", durability="journal")
        box.free()
        idle.run(MakeVariable("w", np.full(50 << 18, 0.5, np.float32)))
        growing = create(bob, "growing")
        server.clock.ahead += 60
        assert grow(growing, "x", 150).failure is None
        states = {item["id"]: item["state"] for item in ok(ann.get("/v1/sessions")).json()["sessions"]}
        assert states == {"idle": "parked"}
        refused = problem(ann.get("/v1/sessions/idle/variables"), 503, "overloaded")
        assert "bob has 150 MiB" in refused["detail"]
        bob.delete("/v1/sessions/growing")
        answer = idle.run(Call("reduce_sum", ("w",), ("sum",)), Fetch("sum"))
        assert np.asarray(answer.results[0].array) == 25 << 18  # type: ignore[union-attr]


def test_memory_that_an_idle_session_has_reserved_and_does_not_use_is_given_back(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server.client("ann") as ann, server.client("bob") as bob:
        first, second = create(ann, "first"), create(bob, "second")
        with Box(server, monkeypatch, 200 * MIB):
            assert grow(first, "x", 120).failure is None
            first.run(Call("fill", (Literal(1.0),), ("y",), {"shape": [1]}))
            ok(ann.delete("/v1/sessions/first/tensors/x"))
            assert reservation(server, "ann", "first") > 120 * MIB
            assert grow(second, "x", 150).failure is None
            assert reservation(server, "ann", "first") < 2 * IDLE_BYTES
            refused = grow(first, "z", 120).failure
            assert refused is not None
            assert refused.code == "resource_exhausted"


def test_small_sessions_never_ask(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    questions: list[Any] = []
    places = server.app.state.registry._places
    monkeypatch.setattr(places, "extend", lambda *args: questions.append(args))
    monkeypatch.setattr(places, "extend_if_free", lambda *args: questions.append(args))
    with server.client("ann") as http:
        program = create(http, "small")
        for _ in range(100):
            program.run(Call("fill", (Literal(1.0),), ("x",), {"shape": [1000]}), Call("add", ("x", "x"), ("y",)))
            http.delete("/v1/sessions/small/tensors/x")
            http.delete("/v1/sessions/small/tensors/y")
    assert not questions


def test_a_refusal_of_a_resource_says_who_has_the_memory(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with server.client("ann") as ann, server.client("bob") as bob:
        first, _ = create(ann, "first"), create(bob, "second")
        with Box(server, monkeypatch, 300 * MIB) as box:
            assert grow(first, "x", 180).failure is None
            commands = [{"do": "op", "op": "fill", "inputs": [1.0], "outputs": ["y"], "attrs": {"shape": [140 << 18]}}]
            key = {"Idempotency-Key": "k1"}
            answer = bob.post("/v1/sessions/second/run", json={"commands": commands}, headers=key)
            refused = problem(answer, 507, "resource_exhausted")
            assert "ann has 180 MiB in 1 sessions" in refused["detail"]
            assert refused["details"]["accounts"][0]["account"] == "ann"
            details = refused["details"]
            assert details["needed"] == 140 * MIB
            assert details["used"] + details["asked"] > details["limit"]
            ends = ok(ann.get("/v1/sessions/first")).json()["expires_at"]
            assert details["frees_at"] == ends, "the first session is idle, and no other"
            left = datetime.fromisoformat(ends).timestamp() - time.time()
            assert abs(int(answer.headers["retry-after"]) - left) < 2
            again = bob.post("/v1/sessions/second/run", json={"commands": commands}, headers=key)
            assert problem(again, 507, "resource_exhausted")["details"] == details
            assert "retry-after" not in again.headers, "the same request gets the same answer"
            box.nbytes -= 150 * MIB
            starting = problem(ann.post("/v1/sessions", json={"id": "third"}), 503, "overloaded")["details"]
            assert starting["used"] + starting["asked"] > starting["limit"]
            assert starting["frees_at"] == ends


def test_a_refusal_says_nothing_of_when_it_frees_while_no_session_is_idle(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server.client("bob") as bob:
        create(bob, "only")
        with Box(server, monkeypatch, 100 * MIB):
            commands = [{"do": "op", "op": "fill", "inputs": [1.0], "outputs": ["y"], "attrs": {"shape": [140 << 18]}}]
            answer = bob.post("/v1/sessions/only/run", json={"commands": commands})
            assert "frees_at" not in problem(answer, 507, "resource_exhausted")["details"]
            assert "retry-after" not in answer.headers


def test_a_session_does_not_grow_beyond_what_its_key_may_have(server: Server) -> None:
    limits = Limits(memory_bytes=64 * MIB)
    server.app.state.identity.budgets.set_limits({"ann": limits})
    with server.client("ann") as ann, server.client("bob") as bob:
        first, second = create(ann, "first"), create(ann, "second")
        assert grow(first, "x", 30).failure is None
        assert reservation(server, "ann", "first") <= 64 * MIB, "no step goes beyond the limit"
        assert grow(second, "x", 30).failure is None
        failure = grow(second, "y", 10).failure
        assert failure is not None
        assert failure.code == "resource_exhausted"
        assert "the keys of ann have used 62," in failure.message
        assert failure.details["account"] == "ann"
        assert grow(create(bob, "other"), "x", 100).failure is None
        ok(ann.delete("/v1/sessions/first"))
        assert grow(second, "z", 10).failure is None


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set as soon as a session waits for memory, which then takes a minute."""
    waits = threading.Event()

    async def extend(*_: Any) -> None:
        waits.set()
        await asyncio.sleep(60)

    monkeypatch.setattr("teletape_server.sessions.hosting.growth.Growth.extend", extend)
    return waits


def test_a_cancel_ends_the_wait_for_memory(server: Server, waits: threading.Event) -> None:
    places = server.app.state.registry._places
    with server.client("ann") as http, ThreadPoolExecutor(1) as threads:
        program, began = create(http, "waits"), time.monotonic()
        growing = threads.submit(grow, program, "x", 100)
        assert waits.wait(30)
        with server.client("ann") as other:
            ok(other.post("/v1/sessions/waits/cancel"))
        failure = growing.result().failure
        assert failure is not None
        assert failure.code == "cancelled"
        assert time.monotonic() - began < 30
        assert places.memory().accounts


def test_the_end_of_a_session_ends_its_wait_for_memory(server: Server, waits: threading.Event) -> None:
    with server.client("ann") as http, ThreadPoolExecutor(1) as threads:
        program = create(http, "waits")
        batch = program.batch(Call("fill", (Literal(1.0),), ("x",), {"shape": [100 << 18]}))
        growing = threads.submit(program.outcome, batch)
        assert waits.wait(30)
        with server.client("ann") as other:
            assert other.delete("/v1/sessions/waits").status_code == 204
        problem(growing.result(), 410, "session_ended")
    until(lambda: not server.app.state.registry._places._ledger._reservations)


def test_a_log_is_not_run_again_into_memory_that_is_not_there(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was done once must not become a failure: the wake is refused, and succeeds later."""
    with server.client("ann") as ann:
        program = create(ann, "demo", durability="journal")
        big = {"shape": [100 << 18]}
        program.run(
            MakeVariable("w", np.zeros(2, np.float32)),
            Call("fill", (Literal(1.0),), ("x",), big),  # much memory, and a small log
            Call("reduce_sum", ("x",), ("s",)),
            Assign("w", np.array([1.0, 2.0], np.float32), "add"),
        )
        entry = server.app.state.registry.find_live("ann", "demo")
        with Box(server, monkeypatch, 90 * MIB) as box:
            host = entry.host
            os.kill(host.pid, signal.SIGKILL)
            until(lambda: entry.host is not host)
            refused = ann.get("/v1/sessions/demo/variables")
            assert refused.status_code == 503
            assert entry.host is None
            until(lambda: entry.attempts > 0)
            assert "the machine has" in entry.record.state.why
            box.nbytes += 4000 * MIB
            server.clock.ahead += 60
            until(lambda: entry.host is not None)
            answer = program.run(Fetch("w"), Fetch("s"))
            assert answer.failure is None
            assert np.asarray(answer.results[0].array).tolist() == [1.0, 2.0]  # type: ignore[union-attr]
            assert np.asarray(answer.results[1].array) == 100 << 18  # type: ignore[union-attr]


def test_what_published_functions_and_prices_use_is_reserved_too(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = server.app.state.registry._places._ledger
    with server.client("ann") as ann, server.client("bob") as bob:
        for name in ("square", "other"):
            body = {
                "function": {"text": f"y = sum(x @ transpose(x)) * {len(name)}"},
                "inputs": {"x": {"shape": ["n", 1]}},
            }
            ok(ann.put(f"/v1/published/{name}", json=body))
        with Box(server, monkeypatch, 400 * MIB) as box:

            def call(name: str, length: int) -> httpx.Response:
                return ann.post(f"/v1/published/{name}/call", json={"inputs": {"x": [[1.0]] * length}})

            box.free()
            for name in ("square", "other", "square"):  # each has 64 MiB for a moment, and the next one gets them
                total = ok(call(name, 4096)).json()["values"]["y"]["data"]
                assert total == pytest.approx(4096**2 * len(name))
            reserved = ledger.reserved_by()["published functions"]
            assert 64 * MIB <= reserved <= 300 * MIB
            assert grow(create(bob, "large"), "x", 340).failure is None, "what is idle is given back"
            assert ledger.reserved_by()["published functions"] < 20 * MIB
            refused = problem(call("square", 4096), 507, "resource_exhausted")
            assert "the machine has" in refused["detail"]
            assert refused["details"]["asked"] > 60 * MIB
            assert refused["details"]["accounts"][0]["account"] == "bob"
            assert "published functions" in {each["account"] for each in refused["details"]["accounts"]}
            ok(bob.delete("/v1/sessions/large"))
            assert ok(call("other", 4096))
            assert box.least_free >= LEAST - 64 * MIB, "Python's own objects are not reserved"
            commands = {
                "commands": [{"do": "op", "op": "fill", "inputs": [1.0], "outputs": ["y"], "attrs": {"shape": [9]}}]
            }
            box.nbytes = 0
            refused = problem(bob.post("/v1/price", json=commands), 503, "overloaded")
            assert "a process for prices of commands takes" in refused["detail"]
            box.nbytes = 800 * MIB
            assert ok(bob.post("/v1/price", json=commands)).json()["verdict"] == "fits"
            assert ledger.reserved_by()["prices of commands"] == IDLE_BYTES


def test_no_key_can_have_the_name_of_a_process_of_the_server(server: Server) -> None:
    with server.client("ann") as ann:
        ok(ann.put("/v1/published/line", json={"function": {"text": "y = x"}, "inputs": {"x": {"shape": []}}}))
        ok(ann.post("/v1/published/line/call", json={"inputs": {"x": 1.5}}))
    (process,) = server.app.state.pool._processes
    assert not OWNER.fullmatch(process.host.owner)


def test_a_body_counts_before_it_comes_and_one_without_room_is_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = server.app.state.registry._places._ledger
    with server.client("ann") as ann, server.client("bob") as bob:
        program, _ = create(ann, "first"), create(bob, "second")
        tensor = np.full(10 << 18, 0.5, np.float32)
        with Box(server, monkeypatch, 20 * MIB) as box:
            refused = problem(program.outcome(program.batch(MakeVariable("w", tensor))), 503, "overloaded")
            assert "the request has a body of 10 MiB" in refused["detail"]
            assert refused["details"]["accounts"][0]["reserved_bytes"] == IDLE_BYTES
            assert ledger.coming == 0
            program.seq -= 1
            box.nbytes += 200 * MIB
            entry = server.app.state.registry.find_live("ann", "first")
            body = server.app.state.registry.body_buffer(entry, 50 * MIB)
            assert ledger.coming == 50 * MIB
            assert not ledger.fits(160 * MIB)
            body.discard()
            assert ledger.coming == 0
            assert program.run(MakeVariable("w", tensor)).failure is None
            assert ledger.coming == 0
