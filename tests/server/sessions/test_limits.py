"""Sessions and their limits over HTTP: made, kept, ended, and refused with the numbers."""

import os
import re
import signal
import threading
from typing import Any

import httpx
import numpy as np
import pytest

import teletape_wire as wire
from serving import KEYS, Program, Server, long_work, ok, problem
from teletape_engine.commands import Call, Constant, Fetch
from teletape_engine.errors import tree
from teletape_engine.recording.values import Literal
from teletape_server.handlers.idempotency import IdempotencyConflictError
from teletape_server.problems import PROBLEMS, Problem
from teletape_server.sessions.quotas import Quota, RunQueue
from teletape_server.settings import Settings
from teletape_wire import timestamp
from teletape_wire.errors import WireError


@pytest.fixture
def http(server: Server) -> Any:
    with server.client() as client:
        yield client


def test_the_engines_and_the_wires_codes_are_all_in_the_table() -> None:
    codes = tree()
    assert codes.keys() >= {WireError.code, IdempotencyConflictError.code}
    own = {code for code, cls in codes.items() if cls.__module__.startswith(("teletape_engine", "teletape_wire"))}
    assert own <= PROBLEMS.keys()
    for code in PROBLEMS:
        Problem(code, "said")
    with pytest.raises(KeyError):
        Problem("no_such_code", "said")


def test_a_session_is_made_looked_at_listed_and_ended(server: Server, http: httpx.Client) -> None:
    created = http.post("/v1/sessions", json={"id": "demo", "device": "cpu", "memory_limit": 1 << 20})
    assert created.status_code == 201
    assert created.headers["Location"] == "/v1/sessions/demo"
    facts = ok(http.get("/v1/sessions/demo")).json()
    assert facts == created.json() | {"expires_at": facts["expires_at"]}
    assert (facts["device"], facts["memory_limit"], facts["bytes_in_use"]) == ("cpu", 1 << 20, 0)
    assert facts["running"] == {"requests": 0, "done": 0, "total": 0, "iteration": 0, "iterations": 0, "wait": None}
    other = ok(http.post("/v1/sessions", json={})).json()
    assert other["id"].startswith("_")
    assert [session["id"] for session in ok(http.get("/v1/sessions")).json()["sessions"]] == ["demo", other["id"]]
    assert http.delete("/v1/sessions/demo").status_code == 204
    assert [session["id"] for session in ok(http.get("/v1/sessions")).json()["sessions"]] == [other["id"]]
    refusal = problem(http.get("/v1/sessions/demo"), 410, "session_ended")
    assert refusal["details"]["reason"] == "deleted"
    assert refusal["details"]["ended_at"].endswith("Z")


def test_making_the_same_session_again_gives_it_and_another_is_a_conflict(http: httpx.Client) -> None:
    assert http.post("/v1/sessions", json={"id": "demo"}).status_code == 201
    Program(http, "demo").run(Constant("x", np.ones(2)))
    assert http.post("/v1/sessions", json={"id": "demo"}).status_code == 200
    assert ok(http.post("/v1/sessions/demo/batch", json={"commands": [{"do": "fetch", "id": "x"}]})).json()["results"]
    problem(http.post("/v1/sessions", json={"id": "demo", "memory_limit": 4096}), 409, "id_in_use")
    ok(http.delete("/v1/sessions/demo"))
    assert http.post("/v1/sessions", json={"id": "demo"}).status_code == 201


def test_requests_for_the_same_new_session_at_once_make_one(server: Server) -> None:
    statuses: list[int] = []

    def make() -> None:
        with server.client() as client:
            statuses.append(ok(client.post("/v1/sessions", json={"id": "demo"})).status_code)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200, 200, 200, 201]


def test_a_session_that_does_not_exist_is_404(http: httpx.Client) -> None:
    for response in (
        http.get("/v1/sessions/nobody"),
        http.post("/v1/sessions/nobody/batch", json={"commands": []}),
        http.post("/v1/sessions/nobody/attach"),
    ):
        assert "'nobody'" in problem(response, 404, "unknown_session")["detail"]


def test_a_session_ends_after_the_idle_limit(server: Server, http: httpx.Client) -> None:
    ok(http.post("/v1/sessions", json={"id": "demo"}))
    program = Program(http, "demo")
    server.clock.ahead += 50
    program.run(Constant("x", np.ones(2)))
    server.clock.ahead += 50
    ok(http.get("/v1/sessions/demo"))
    server.clock.ahead += 11
    refusal = problem(program.post(program.batch()), 410, "session_ended")
    assert refusal["details"]["reason"] == "idle"
    assert "60 s" in refusal["detail"]
    problem(http.get("/v1/sessions/demo"), 410, "session_ended")


def test_a_session_can_be_kept_within_the_greatest_age(server: Server, http: httpx.Client) -> None:
    before = ok(http.post("/v1/sessions", json={"id": "demo"})).json()
    after = ok(http.post("/v1/sessions/demo/extend", json={"seconds": 300})).json()
    assert after["expires_at"] > before["expires_at"]
    server.clock.ahead += 299
    ok(http.get("/v1/sessions/demo"))
    most = ok(http.post("/v1/sessions/demo/extend", json={"seconds": 10_000})).json()
    assert most["expires_at"] == most["ends_at"]
    server.clock.ahead += 302
    assert problem(http.get("/v1/sessions/demo"), 410, "session_ended")["details"]["reason"] == "max_age"


def test_the_answer_reports_when_the_session_expires(server: Server, http: httpx.Client) -> None:
    ok(http.post("/v1/sessions", json={"id": "demo"}))
    ok(http.post("/v1/sessions/demo/extend", json={"seconds": 300}))
    program = Program(http, "demo")
    server.clock.ahead += 100
    _, served = wire.decode_answer(ok(program.post(program.batch())).content)
    assert served.expires_at is not None
    assert abs(served.expires_at - (server.clock() + 200)) < 10


def test_sessions_are_counted(http: httpx.Client, server: Server) -> None:
    for _ in range(3):
        ok(http.post("/v1/sessions", json={}))
    answer = http.post("/v1/sessions", json={})
    refusal = problem(answer, 409, "too_many_sessions")
    assert 0 < int(answer.headers["Retry-After"]) <= server.settings.idle_limit  # then the first ends by itself
    assert refusal["details"].pop("frees_at") > timestamp(server.clock())
    expected = {"account": "ann", "name": "sessions", "used": 3, "asked": 1, "limit": 3}
    assert refusal["details"] == expected
    with server.client("bob") as bob:
        for _ in range(2):
            ok(bob.post("/v1/sessions", json={}))
        refused = bob.post("/v1/sessions", json={})
        assert problem(refused, 503, "overloaded")["details"] == {"found": 5, "limit": 5}
        assert "End one of yours that you no longer need" in refused.json()["detail"]
        assert refused.headers["Retry-After"] == "10"
    first = ok(http.get("/v1/sessions")).json()["sessions"][0]["id"]
    ok(http.delete(f"/v1/sessions/{first}"))
    ok(http.post("/v1/sessions", json={}))


def test_a_key_without_a_session_finds_a_place_and_the_longest_idle_session_makes_room() -> None:
    settings = Settings(api_keys=KEYS, sessions_per_key=4, sessions=4, shutdown_grace=0.1)
    with Server(settings).running() as server, server.client("ann") as ann, server.client("bob") as bob:
        for name in ("kept", "old", "new"):
            ok(ann.post("/v1/sessions", json={"id": name}))
        refused = problem(ann.post("/v1/sessions", json={}), 503, "overloaded")
        assert "1 places are kept for keys that have no session" in refused["detail"]
        ok(bob.post("/v1/sessions", json={"id": "first"}))
        problem(bob.post("/v1/sessions", json={"id": "second"}), 503, "overloaded")
        ok(ann.post("/v1/sessions/kept/extend", json={"seconds": 3600}))
        server.clock.ahead += 200.0
        ok(ann.post("/v1/sessions/new/run", json={"commands": []}))
        server.clock.ahead += 200.0
        ok(bob.post("/v1/sessions", json={"id": "second"}))
        ended = problem(ann.get("/v1/sessions/old"), 410, "session_ended")
        assert ended["details"]["reason"] == "room"
        assert re.search(r"it was idle for 4\d\d s, longer than others", ended["detail"])
        server.clock.ahead += 400.0
        problem(bob.post("/v1/sessions", json={}), 503, "overloaded")  # ann has no more than bob
        assert [session["id"] for session in ok(ann.get("/v1/sessions")).json()["sessions"]] == ["kept", "new"]


@pytest.mark.parametrize(
    ("mine", "all_sessions", "owners", "left"),
    [
        (0, 0, 0, 5),
        (1, 1, 1, 4),  # three keys have none
        (3, 3, 1, 2),
        (4, 4, 1, 1),
        (5, 5, 1, 0),
        (3, 6, 2, 0),
        (2, 6, 3, 1),
        (0, 7, 3, 1),  # its first one
        (0, 8, 3, 0),
        (2, 6, 4, 2),
    ],
)
def test_places_are_kept_for_keys_without_a_session(mine: int, all_sessions: int, owners: int, left: int) -> None:
    quota = Quota(8, 1, 1, 1, keys=lambda: 4)
    assert quota.sessions_left(mine, all_sessions, owners) == left


def test_at_most_half_of_the_places_are_kept() -> None:
    quota = Quota(8, 1, 1, 1, keys=lambda: 100)
    assert quota.sessions_left(1, 1, 1) == 3
    assert quota.sessions_left(4, 4, 1) == 0
    assert quota.sessions_left(0, 7, 4) == 1


@pytest.mark.parametrize(
    ("mine", "idle", "sessions", "makes_room"),
    [(0, 300, 1, True), (0, 299, 9, False), (1, 300, 3, True), (1, 300, 2, False), (2, 900, 3, False)],
)
def test_a_session_ends_for_a_key_that_has_fewer(mine: int, idle: float, sessions: int, makes_room: bool) -> None:
    assert Quota(8, 1, 1, 1).makes_room(mine, idle, sessions) is makes_room


def test_requests_without_a_session_run_in_order_and_keys_one_after_the_other() -> None:
    queue: RunQueue[str] = RunQueue(Quota(1, 1, 1, 1, keys=lambda: 2, runs=4, waiting_runs=3))
    assert [queue.enter("ann", f"a{i}") for i in range(6)] == [True, True, True, False, False, False]
    with pytest.raises(Problem, match="3 of your requests wait for one of the 4 places"):
        queue.enter("ann", "a6")
    assert [queue.enter("bob", f"b{i}") for i in range(3)] == [True, False, False]
    assert [queue.ahead(name) for name in ("b1", "a3", "a0")] == [[], ["bob"], None]
    assert queue.leave("ann") == ["b1"], "bob has one, ann two"
    assert queue.leave("ann") == ["a3"]
    queue.give_up("a4")
    assert queue.leave("bob") == ["b2"]
    assert queue.leave("bob") == ["a5"]
    assert not queue.enter("ann", "a6")
    assert queue.leave("bob") == [], "the last place is for bob's next one"
    assert (queue.running, queue.waiting) == (3, 1)
    assert queue.leave("ann") == ["a6"]
    assert queue.enter("bob", "b3")


def test_one_key_alone_has_all_places() -> None:
    queue: RunQueue[str] = RunQueue(Quota(1, 1, 1, 1, runs=4))
    assert [queue.enter("local", f"r{i}") for i in range(5)] == [True, True, True, True, False]
    assert queue.give_up_all() == ["r4"]
    assert queue.leave("local") == []


def test_a_session_may_not_ask_for_more_memory_than_there_is(http: httpx.Client) -> None:
    refusal = problem(http.post("/v1/sessions", json={"memory_limit": 1 << 40}), 422, "invalid_request")
    assert refusal["details"] == {"found": 1 << 40, "limit": 64 << 20}


def test_memory_is_limited_by_session(http: httpx.Client) -> None:
    """What one batch brings and what it computes both count; a refusal leaves the session as it was."""
    ok(http.post("/v1/sessions", json={"id": "demo", "memory_limit": 4 << 20}))
    program = Program(http, "demo")
    program.run(Constant("x", np.ones(1 << 18, np.float32)))
    answer = program.run(*[Call("add", ("x", Literal(float(i))), (f"y{i}",)) for i in range(8)])
    assert answer.failure is not None
    assert answer.failure.code == "resource_exhausted"
    assert f"{4 << 20:,}" in answer.failure.message
    assert answer.failure.details["limit"] == 4 << 20
    assert program.run(Fetch("y0")).failure is None
    large = program.run(Constant("z", np.ones(1 << 20, np.float32)))
    assert large.failure is not None
    assert large.failure.code == "resource_exhausted"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"id": "has space"}, "id: "),
        ({"id": "_generated"}, "id: "),
        ({"id": "x" * 65}, "id: "),
        ({"device": "tpu"}, "device: "),
        ({"memory_limit": 0}, "memory_limit: "),
        ({"memory_limit": "lots"}, "memory_limit: "),
        ({"limit": 3}, "limit: "),
        ([], "body"),
    ],
)
def test_a_session_that_is_asked_for_wrongly(http: httpx.Client, body: Any, text: str) -> None:
    refusal = problem(http.post("/v1/sessions", json=body), 422, "invalid_request")
    assert text in refusal["detail"]
    assert refusal["details"]["fields"]


def test_a_device_that_is_not_there(http: httpx.Client) -> None:
    present = ok(http.get("/v1/devices")).json()
    cpu, *gpus = present["devices"]
    assert cpu["device"] == present["default"] == "cpu"
    assert cpu["usable"]
    assert cpu["memory_bytes"] > cpu["free_bytes"] > 0
    refusal = problem(http.post("/v1/sessions", json={"device": "gpu:99"}), 422, "unknown_device")
    assert refusal["details"]["devices"] == [facts["device"] for facts in present["devices"] if facts["usable"]]
    if not any(facts["usable"] for facts in gpus):
        assert gpus[0]["device"] == "gpu"
        assert gpus[0]["reason"] in refusal["detail"]
        assert ok(http.post("/v1/sessions", json={"device": "auto"})).json()["device"] == "cpu"
    ok(http.post("/v1/sessions", json={"id": "demo"}))


def test_bodies_that_the_front_parses_are_small(http: httpx.Client) -> None:
    padded = b'{"id": "demo"' + b" " * (1 << 20) + b"}"
    headers = {"Content-Type": "application/json"}
    refusal = problem(http.post("/v1/sessions", content=padded, headers=headers), 413, "body_too_large")
    assert refusal["details"]["limit"] == 1 << 20
    problem(http.post("/v1/sessions", content=b"{", headers=headers), 400, "malformed_json")
    problem(http.post("/v1/sessions", content=iter([b"{}"]), headers=headers), 411, "length_required")


def test_a_body_without_a_content_type_is_json(http: httpx.Client) -> None:
    ok(http.post("/v1/sessions", content=b'{"id": "demo"}'))
    ok(http.post("/v1/sessions/demo/extend", content=b'{"seconds": 60}'))
    ok(http.post("/v1/sessions/demo/tensors", content=b'{"id": "x", "value": 1.5}'))


def test_a_worker_that_dies_ends_its_session_with_the_reason(server: Server, http: httpx.Client) -> None:
    for name in ("doomed", "other"):
        ok(http.post("/v1/sessions", json={"id": name}))
    other, doomed = Program(http, "other"), Program(http, "doomed")
    other.run(Constant("x", np.ones(2)))
    batch = doomed.batch(*long_work(1000))
    assert doomed.post(batch).status_code == 202
    os.kill(server.worker("doomed"), signal.SIGKILL)
    while (response := doomed.post(batch)).status_code == 202:
        pass
    refusal = problem(response, 410, "session_ended")
    assert refusal["details"]["reason"] == "worker_died"
    assert "SIGKILL" in refusal["detail"]
    problem(http.get("/v1/sessions/doomed"), 410, "session_ended")
    assert other.run(Fetch("x")).failure is None
    ok(http.post("/v1/sessions", json={"id": "doomed"}))
    assert Program(http, "doomed").run(Constant("x", np.ones(2))).failure is None


def test_ending_a_session_answers_what_runs_in_it(server: Server, http: httpx.Client) -> None:
    ok(http.post("/v1/sessions", json={"id": "demo"}))
    program = Program(http, "demo")
    assert program.post(program.batch(*long_work(1000))).status_code == 202
    pid = server.worker("demo")
    ok(http.delete("/v1/sessions/demo"))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert problem(program.post(program.batch()), 410, "session_ended")["details"]["reason"] == "deleted"


def test_the_server_answers_while_a_session_computes(server: Server, http: httpx.Client) -> None:
    ok(http.post("/v1/sessions", json={"id": "demo"}))
    program = Program(http, "demo")
    batch = program.batch(*long_work(1000))
    assert program.post(batch).status_code == 202
    ok(http.get("/v1/health"))
    assert ok(http.get("/v1/sessions/demo")).json()["running"]["requests"] == 1


def test_info_reports_what_is_allowed(http: httpx.Client) -> None:
    info = ok(http.get("/v1/info")).json()
    assert info["frame_versions"] == [wire.VERSION]
    assert info["content_types"] == [wire.FRAME_TYPE, wire.JSON_TYPE]
    assert info["limits"]["max_body"] == 16 << 20
    assert {name: type(limit) for name, limit in info["limits"].items()} == {
        name: type(getattr(Settings(), name)) for name in info["limits"]
    }
    schema = ok(http.get("/openapi.json")).json()["components"]["schemas"]["Limits"]["properties"]
    types = {int: "integer", float: "number"}
    assert {name: schema[name]["type"] for name in schema} == {
        name: types[type(limit)] for name, limit in info["limits"].items()
    }
    assert len(info["catalogue"]) >= 16


def test_methods_and_paths_that_are_not_there(http: httpx.Client) -> None:
    problem(http.put("/v1/sessions/demo"), 405, "method_not_allowed")
    problem(http.get("/v9/sessions"), 404, "not_found")


def test_no_answer_leads_to_another_host(http: httpx.Client) -> None:
    for path in ("/v1/health/", "/v1/sessions/", "/docs/", "/v1//health"):
        answer = http.get(path, headers={"Host": "evil.example"})
        problem(answer, 404, "not_found")
        assert "evil" not in str(answer.headers)
    assert "evil" not in str(ok(http.get("//evil.example/")).headers), "this is the path / of another host"


@pytest.mark.parametrize("digits", [19, 20, 4301, 8000])
def test_an_id_of_many_digits_names_nothing(http: httpx.Client, digits: int) -> None:
    ok(http.post("/v1/sessions", json={"id": "demo"}))
    for collection in ("variables", "tensors", "tapes", "functions"):
        for method in ("GET", "DELETE"):
            problem(http.request(method, f"/v1/sessions/demo/{collection}/{'1' * digits}"), 404, "unknown_id")
    headers = {"Tensor-Dtype": "float32", "Tensor-Shape": "1" * digits, "Content-Type": "application/octet-stream"}
    problem(http.post("/v1/sessions/demo/tensors", content=b"1234", headers=headers), 422, "invalid_request")
