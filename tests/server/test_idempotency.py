"""Requests with an Idempotency-Key: executed once within the window, also creations of sessions."""

import asyncio
import threading
from typing import Any

import httpx
import pytest
from rest_client import Rest

from serving import Program, Server, ok, problem
from teletape_engine.commands import Constant
from teletape_engine.errors import AnswerDroppedError, ResourceExhaustedError, UnimplementedError
from teletape_server.creations import Created, Creations
from teletape_server.settings import Settings
from teletape_server.worker.idempotency import IdempotencyConflictError, Once, Refusal, ReplyStore
from teletape_server.worker.methods import METHODS, Request, Result, method

WINDOW = 3600.0
REPLAYED = "idempotent-replayed"


def key(name: str) -> dict[str, str]:
    return {"Idempotency-Key": name}


@pytest.fixture
def http(server: Server) -> Any:
    with server.client() as client:
        yield client


# --------------------------------------------------------------------------------------------- in a session's process
def request(body: bytes = b"", *, now: float = 0.0, **params: Any) -> Request:
    return Request(
        params | {"now": now}, "text/plain", memoryview(body), 0, lambda: False, lambda done, total: None, 0.0
    )


def test_an_answer_is_stored_under_its_key_and_returned_to_that_request_alone() -> None:
    runs: list[str] = []

    def run(name: str, request_: Request) -> Result:
        runs.append(name)
        return Result("text/plain", [b"ran ", str(len(runs)).encode()], 5)

    once = Once(WINDOW)
    first = once.run("key", "kind", request(b"x", now=1.0), run)
    again = once.run("key", "kind", request(b"x", now=2.0), run)
    assert isinstance(first, Result)
    assert isinstance(again, Result)
    assert b"".join(first.buffers) == b"".join(again.buffers) == b"ran 1"
    assert ("headers" in first.facts, again.facts["headers"]) == (False, {"Idempotent-Replayed": "true"})
    once.run(None, "kind", request(b"x"), run)
    assert len(runs) == 2
    for other in (request(b"y"), request(b"x", full=True)):
        with pytest.raises(IdempotencyConflictError, match="'key'"):
            once.run("key", "kind", other, run)
    with pytest.raises(IdempotencyConflictError):
        once.run("key", "another", request(b"x"), run)
    once.run("key", "another", request(b"x", now=1.0 + WINDOW), run)
    assert len(runs) == 3, "the window began with the first answer, and is over"


def test_a_refusal_is_stored_too() -> None:
    runs: list[str] = []

    def run(name: str, request_: Request) -> Result:
        runs.append(name)
        raise UnimplementedError("no", op="x")

    once = Once(WINDOW)
    with pytest.raises(UnimplementedError):
        once.run("key", "kind", request(), run)
    assert once.run("key", "kind", request(), run) == Refusal(UnimplementedError, "no", {"op": "x"})
    assert len(runs) == 1


def test_within_the_window_answers_are_dropped_but_no_key_is_forgotten() -> None:
    replies: ReplyStore[str] = ReplyStore(10.0, max_keys=3, max_bytes=100)
    for now, name in enumerate("abc"):
        assert replies.find(name, b"", now) is None
        replies.store(name, b"", name, 40 if name != "c" else 90, now)
    for dropped in "ab":
        with pytest.raises(AnswerDroppedError, match="nothing was executed again"):
            replies.find(dropped, b"", 3)
    assert replies.find("c", b"", 3) == "c"
    with pytest.raises(ResourceExhaustedError, match=r"3 requests with an Idempotency-Key in 10 s.*again in 7 s"):
        replies.find("d", b"", 3)
    assert replies.find("d", b"", 10.0) is None, "a is forgotten"
    replies.store("d", b"", "d", 500, 10.0)
    assert replies.find("d", b"", 10.0) == "d", "the last answer stays, however large it is"
    with pytest.raises(AnswerDroppedError):
        replies.find("c", b"", 10.0)
    assert [replies.find(name, b"", 30.0) for name in "abcd"] == [None] * 4
    replies.store("e", b"", "e", 100, 30.0)
    replies.store("f", b"", "f", 0, 30.0)
    assert replies.find("e", b"", 30.0) == "e", "the bytes of forgotten answers do not count"


def test_a_method_has_one_function() -> None:
    assert {"attach", "batch"} <= METHODS.keys()
    with pytest.raises(TypeError, match="registered twice"):
        method("batch")(lambda session, request: Result("", [], 0))


# ------------------------------------------------------------------------------------------------------ over HTTP
def test_a_retry_after_many_other_requests_is_not_executed_again(server: Server, http: httpx.Client) -> None:
    ok(http.post("/v1/sessions", json={"id": "counted"}))
    rest = Rest(http, "counted")
    rest.create("variables", {"id": "n", "value": 0.0})
    add = {"mode": "add", "value": 1.0}
    first, *_ = (ok(rest.put("variables/n", add, **key(f"add {turn}"))) for turn in range(65))
    assert REPLAYED not in first.headers
    again = ok(rest.put("variables/n", add, **key("add 0")))
    assert (again.content, again.headers[REPLAYED]) == (first.content, "true")
    assert rest.data("variables/n") == 65
    window = http.get("/v1/info").json()["limits"]["idempotency_window"]
    assert window == server.settings.idempotency_window


def test_after_the_window_a_key_is_new() -> None:
    with Server(Settings(idempotency_window=60.0)).running() as server, server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "counted"}))
        rest = Rest(http, "counted")
        rest.create("variables", {"id": "n", "value": 0.0})
        for ahead, total in ((0, 1), (30, 1), (31, 2)):
            server.clock.ahead += ahead
            ok(rest.put("variables/n", {"mode": "add", "value": 1.0}, **key("add")))
            assert rest.data("variables/n") == total


def test_a_stored_refusal_is_marked_and_a_refused_request_is_not_executed_again(http: httpx.Client) -> None:
    ok(http.post("/v1/sessions", json={"id": "refused"}))
    rest = Rest(http, "refused")
    missing = {"op": "exp", "inputs": ["x"], "outputs": ["y"]}
    assert REPLAYED not in rest.post("ops", {"ops": [missing]}, **key("k")).headers
    rest.create("tensors", {"id": "x", "value": 1.5})
    again = rest.post("ops", {"ops": [missing]}, **key("k"))
    problem(again, 404, "unknown_id")
    assert again.headers[REPLAYED] == "true"


def test_the_answer_to_a_repeated_frame_is_marked(http: httpx.Client) -> None:
    ok(http.post("/v1/sessions", json={"id": "frames"}))
    program = Program(http, "frames")
    batch = program.batch(Constant("x", 1.5))
    assert REPLAYED not in ok(program.post(batch)).headers
    assert ok(program.post(batch)).headers[REPLAYED] == "true"


# -------------------------------------------------------------------------------------------------- creating sessions
def test_a_repeated_creation_returns_the_first_session(server: Server, http: httpx.Client) -> None:
    first = http.post("/v1/sessions", json={}, headers=key("mine"))
    again = http.post("/v1/sessions", json={}, headers=key("mine"))
    assert (first.status_code, again.status_code) == (201, 201)
    assert (first.content, first.headers["location"]) == (again.content, again.headers["location"])
    assert (REPLAYED in first.headers, again.headers[REPLAYED]) == (False, "true")
    assert len(ok(http.get("/v1/sessions")).json()["sessions"]) == 1
    conflict = http.post("/v1/sessions", json={"memory_limit": 4096}, headers=key("mine"))
    assert "'mine'" in problem(conflict, 422, "idempotency_conflict")["detail"]
    problem(http.post("/v1/sessions", json={}, headers=key("")), 422, "invalid_request")
    with server.client("bob") as bob:
        other = ok(bob.post("/v1/sessions", json={}, headers=key("mine")))
        assert other.json()["id"] != first.json()["id"], "another owner's key is another key"


def test_a_repeated_replacement_ends_nothing(http: httpx.Client) -> None:
    body = {"id": "again", "replace": True}
    ok(http.post("/v1/sessions", json=body, headers=key("first")))
    ok(http.post("/v1/sessions/again/tensors", json={"id": "x", "value": 1.5}))
    assert ok(http.post("/v1/sessions", json=body, headers=key("first"))).headers[REPLAYED] == "true"
    ok(http.get("/v1/sessions/again/tensors/x"))


def test_a_refused_creation_is_tried_again(http: httpx.Client) -> None:
    for _ in range(3):
        ok(http.post("/v1/sessions", json={}))
    for _ in range(2):
        problem(http.post("/v1/sessions", json={}, headers=key("fourth")), 409, "too_many_sessions")
    oldest = ok(http.get("/v1/sessions")).json()["sessions"][0]["id"]
    ok(http.delete(f"/v1/sessions/{oldest}"))
    created = ok(http.post("/v1/sessions", json={}, headers=key("fourth")))
    assert (created.status_code, REPLAYED in created.headers) == (201, False)


def test_creations_with_one_key_at_once_create_one_session(server: Server) -> None:
    ids: list[str] = []

    def create() -> None:
        with server.client() as client:
            ids.append(ok(client.post("/v1/sessions", json={}, headers=key("same"))).json()["id"])

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 4
    assert len(set(ids)) == 1


def test_a_creation_goes_on_without_its_caller_and_is_known_to_the_retry() -> None:
    async def go() -> None:
        creations = Creations(WINDOW, lambda: 0.0)
        release, begun, runs = asyncio.Event(), asyncio.Event(), 0

        async def create() -> Created:
            nonlocal runs
            runs += 1
            begun.set()
            await release.wait()
            return Created(201, "/v1/sessions/_1", b"{}")

        first = asyncio.create_task(creations.once("ann", "k", b"x", create))
        await begun.wait()
        first.cancel()
        with pytest.raises(IdempotencyConflictError):
            await creations.once("ann", "k", b"y", create)
        retry = asyncio.create_task(creations.once("ann", "k", b"x", create))
        await asyncio.sleep(0)
        release.set()
        assert await retry == (Created(201, "/v1/sessions/_1", b"{}"), True)
        assert await creations.once("ann", "k", b"x", create) == (Created(201, "/v1/sessions/_1", b"{}"), True)
        assert runs == 1

    asyncio.run(go())
