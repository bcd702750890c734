"""Requests with an Idempotency-Key: executed once within the window, also creations of sessions."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import walk
from rest_client import Rest

from serving import KEYS, Program, Server, ok, problem, unread_post, until
from teletape_engine.commands import Constant
from teletape_engine.errors import AnswerDroppedError, ResourceExhaustedError, UnimplementedError
from teletape_server.handlers.idempotency import IdempotencyConflictError, Once, Refusal, ReplyStore
from teletape_server.handlers.methods import METHODS, Request, Result, method
from teletape_server.problems import Problem
from teletape_server.retries import Answers, Retries, Stored
from teletape_server.settings import Settings

WINDOW = 3600.0
REPLAYED = "idempotent-replayed"


def key(name: str) -> dict[str, str]:
    return {"Idempotency-Key": name}


@pytest.fixture
def server() -> Iterator[Server]:
    """A server with small limits that waits for its answers: a slow machine's are no 202."""
    settings = Settings(api_keys=KEYS, memory_limit=64 << 20, max_body=16 << 20, sessions_per_key=3, shutdown_grace=0.1)
    with Server(settings).running() as item:
        yield item


@pytest.fixture
def http(server: Server) -> Any:
    with server.client() as client:
        yield client


# --------------------------------------------------------------------------------------------- in a session's process
def request(body: bytes = b"", *, now: float = 0.0, **params: Any) -> Request:
    return Request(
        params | {"now": now},
        "text/plain",
        memoryview(body),
        0,
        lambda: False,
        lambda done, total: None,
        time.monotonic(),
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
    once.run("key", "another", request(b"x", now=1.5 + WINDOW), run)
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


async def once(retries: Retries, owner: str, key: str, digest: bytes, answer: Answers) -> tuple[Stored, bool]:
    """The answer to a request, and whether it is that of an earlier one."""
    attempt, is_earlier = await retries.attempt(owner, key, digest, answer)
    return await attempt.answer(digest), is_earlier


def test_an_answer_that_says_when_to_ask_again_is_not_the_last_one() -> None:
    statuses = [202, 202, 200]

    async def answer() -> Stored:
        status = statuses.pop(0)
        return Stored(status, {"Retry-After": "1"} if status == 202 else {}, b"")

    async def go() -> list[tuple[int, bool]]:
        retries = Retries(WINDOW, lambda: 0.0)
        results = [await once(retries, "ann", "k", b"", answer) for _ in range(4)]
        return [(stored.status, is_replayed) for stored, is_replayed in results]

    assert asyncio.run(go()) == [(202, False), (202, False), (200, False), (200, True)]


def test_stored_answers_are_bounded_for_an_owner_and_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teletape_server.retries._MAX_BYTES", 100)
    monkeypatch.setattr("teletape_server.retries._MAX_BYTES_OF_ALL", 150)

    async def go() -> None:
        retries = Retries(WINDOW, iter(map(float, range(100))).__next__)

        async def is_known(owner: str, name: str, length: int) -> bool:
            async def answer() -> Stored:
                return Stored(200, {}, memoryview(bytes(length)))

            return (await once(retries, owner, name, b"", answer))[1]

        for owner, name, length in (("ann", "a", 60), ("ann", "large", 101), ("bob", "b", 60), ("eve", "c", 60)):
            assert not await is_known(owner, name, length)
        with pytest.raises(AnswerDroppedError, match="new key to execute it again"):
            await is_known("ann", "large", 101)
        with pytest.raises(AnswerDroppedError):
            await is_known("ann", "a", 60)
        assert await is_known("bob", "b", 60)
        assert await is_known("eve", "c", 60)

    asyncio.run(go())


# ------------------------------------------------------------------------------------------------------ over HTTP
def test_a_stored_refusal_keeps_nothing_of_its_request() -> None:
    def refuse(body: bytes) -> None:
        raise Problem("busy", f"a body of {len(body)} bytes", headers={"Retry-After": "1"}, waiting=3)

    try:
        refuse(bytes(1000))
    except Problem as problem:
        stored = Stored.refused(problem)
    assert stored.refusal is not None
    assert stored.refusal.__traceback__ is None
    assert vars(stored.refusal) == vars(
        Problem("busy", "a body of 1000 bytes", headers={"Retry-After": "1"}, waiting=3)
    )


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
        creations = Retries(WINDOW, lambda: 0.0)
        release, begun, runs = asyncio.Event(), asyncio.Event(), 0

        async def create() -> Stored:
            nonlocal runs
            runs += 1
            begun.set()
            await release.wait()
            return Stored(201, {"location": "/v1/sessions/_1"}, b"{}")

        first = asyncio.create_task(once(creations, "ann", "k", b"x", create))
        await begun.wait()
        first.cancel()
        with pytest.raises(IdempotencyConflictError):
            await once(creations, "ann", "k", b"y", create)
        retry = asyncio.create_task(once(creations, "ann", "k", b"x", create))
        await asyncio.sleep(0)
        release.set()
        assert await retry == (Stored(201, {"location": "/v1/sessions/_1"}, b"{}"), True)
        assert await once(creations, "ann", "k", b"x", create) == (
            Stored(201, {"location": "/v1/sessions/_1"}, b"{}"),
            True,
        )
        assert runs == 1

    asyncio.run(go())


def test_a_key_of_an_admin_ends_with_the_session_that_it_named() -> None:
    settings = Settings(api_keys=KEYS, admins=frozenset({"ann"}), shutdown_grace=0.1)
    with Server(settings).running() as server, server.client("ann") as ann, server.client("bob") as bob:
        for _ in range(2):
            ok(bob.post("/v1/sessions", json={"id": "demo", "replace": True}))
            answers = [
                ok(ann.post("/v1/sessions/bob:demo/extend", json={"seconds": 60}, headers=key("extend")))
                for _ in range(2)
            ]
            assert [REPLAYED in answer.headers for answer in answers] == [False, True]


# ----------------------------------------------------------------------------------------------- every POST of the API
LONG = {  # computes until it is cancelled
    "commands": [
        {
            "do": "function",
            "id": "f",
            "inputs": ["x"],
            "outputs": ["y"],
            "steps": [{"op": "pow", "inputs": ["x", 1.0], "outputs": ["y"]}],
        },
        {"do": "scan", "body": "f", "inputs": [1.0], "carried": 1, "length": 9_000_000, "outputs": ["z"]},
    ]
}
RUN = {"commands": [{"do": "op", "op": "exp", "inputs": [0.5], "outputs": ["x"]}], "fetch": ["x"]}


def test_every_post_may_be_retried() -> None:
    """Each example of the document is sent twice with one key: the second answer is the first one, and is marked."""
    with Server(Settings(shutdown_grace=0.1)).running() as server, server.client() as http:
        document = ok(http.get("/openapi.json")).json()
        names = {
            operation["operationId"]: [parameter["name"] for parameter in operation.get("parameters", ())]
            for methods in document["paths"].values()
            for operation in methods.values()
        }
        posts = 0
        for step in walk.steps(document):
            first = walk.send(http, step, **key(step.operation))
            if step.method == "post":
                retry = walk.send(http, step, **key(step.operation))
                if "/published/" in step.path:  # a question that changes nothing needs no key
                    assert retry.status_code == first.status_code
                    continue
                assert "Idempotency-Key" in names[step.operation]
                assert (retry.status_code, retry.content) == (first.status_code, first.content), step.operation
                assert (REPLAYED in first.headers, retry.headers.get(REPLAYED)) == (False, "true"), step.operation
                posts += 1
        assert posts > 25


def runs(server: Server) -> int:
    """How many requests without a session have begun."""
    begun: int = server.app.state.registry.usage().begun
    return begun


def test_a_run_is_executed_once(server: Server, http: httpx.Client) -> None:
    first = ok(http.post("/v1/run", json=RUN, headers=key("draw")))
    assert runs(server) == 1
    again = ok(http.post("/v1/run", json=RUN, headers=key("draw")))
    assert runs(server) == 1
    assert again.content == first.content
    assert again.headers["content-type"] == first.headers["content-type"]
    assert (REPLAYED in first.headers, again.headers[REPLAYED]) == (False, "true")
    for other in ({"json": RUN | {"fetch": []}}, {"json": RUN, "params": {"full": "true"}}):
        problem(http.post("/v1/run", headers=key("draw"), **other), 422, "idempotency_conflict")
    problem(http.post("/v1/sessions", json={}, headers=key("draw")), 422, "idempotency_conflict")
    for wrong in ("", "k" * 256):
        problem(http.post("/v1/run", json=RUN, headers=key(wrong)), 422, "invalid_request")
    assert ok(http.get("/v1/sessions")).json()["sessions"] == []


def test_a_run_that_is_refused_is_refused_again_without_being_executed(server: Server, http: httpx.Client) -> None:
    body = {"commands": [{"do": "op", "op": "exp", "inputs": ["none"], "outputs": ["y"]}]}
    first = http.post("/v1/run", json=body, headers=key("wrong"))
    again = http.post("/v1/run", json=body, headers=key("wrong"))
    assert problem(first, 404, "unknown_id")["detail"] == problem(again, 404, "unknown_id")["detail"]
    assert (REPLAYED in first.headers, again.headers[REPLAYED]) == (False, "true")
    assert runs(server) == 1
    for wrong in (b"{", b""):
        headers = key("unreadable") | {"Content-Type": "application/json"}
        assert http.post("/v1/run", content=wrong, headers=headers).status_code in (400, 422)


def test_a_run_that_finds_no_place_is_tried_again() -> None:
    with (
        Server(Settings(runs=1, patience=0.1, shutdown_grace=0.1)).running() as server,
        server.client() as http,
        unread_post(http, "/v1/run", json.dumps(LONG).encode()),
    ):
        until(lambda: server.app.state.registry.usage().runs == (1, 0))
        refused = http.post("/v1/run", json=RUN, headers=key("full"))
        body = problem(refused, 503, "overloaded")
        assert "has waited 0.1 s for one of the 1 places" in body["detail"]
        assert "Of the places, local has 1: try again later" in body["detail"]
        assert body["details"] == {"limit": 1, "waiting": 1, "owners": [{"owner": "local", "running": 1}]}
        assert refused.headers["Retry-After"] == "1"
        host = next(iter(server.app.state.registry.live.by_key.values())).host
        server.loop().call_soon_threadsafe(host.cancel)
        until(lambda: server.app.state.registry.usage().runs == (0, 0))
        assert REPLAYED not in ok(http.post("/v1/run", json=RUN, headers=key("full"))).headers


def test_runs_with_one_key_at_once_are_one_run(server: Server) -> None:
    """More than a key's sessions, had each its own."""
    bodies: list[bytes] = []

    def run() -> None:
        with server.client() as client:
            bodies.append(ok(client.post("/v1/run", json=RUN, headers=key("same"))).content)

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(bodies) == 6
    assert len(set(bodies)) == 1
    assert runs(server) == 1


def test_a_run_with_a_key_goes_on_without_its_caller(server: Server, http: httpx.Client) -> None:
    many = [{"do": "constant", "id": "x0", "value": 1.5}]
    many += [{"do": "op", "op": "neg", "inputs": [f"x{at}"], "outputs": [f"x{at + 1}"]} for at in range(20_000)]
    body = json.dumps({"commands": [*many, *RUN["commands"]], "fetch": ["x"]}).encode()
    with unread_post(http, "/v1/run", body, Idempotency_Key="left"):
        until(lambda: server.app.state.retries.works)
    retry = ok(http.post("/v1/run", content=body, headers=key("left") | {"Content-Type": "application/json"}))
    assert retry.headers[REPLAYED] == "true"


def test_a_run_with_a_key_reports_its_progress(http: httpx.Client) -> None:
    headers = key("events") | {"Accept": "text/event-stream"}
    first = ok(http.post("/v1/run", json=RUN, headers=headers)).text
    again = ok(http.post("/v1/run", json=RUN, headers=headers)).text
    answers = [text.partition("event: answer")[2] for text in (first, again)]
    assert answers[0] == answers[1]
    assert '"values"' in answers[0]
    conflict = ok(http.post("/v1/run", json=RUN | {"fetch": []}, headers=headers)).text
    assert "event: problem\nid: 422" in conflict
    assert "idempotency_conflict" in conflict


def test_the_keys_of_a_session_end_with_it(http: httpx.Client) -> None:
    for _ in range(2):
        ok(http.post("/v1/sessions", json={"id": "twice"}))
        for place, body in (("extend", {"seconds": 60}), ("cancel", None), ("attach", None)):
            path = f"/v1/sessions/twice/{place}"
            first, again = (ok(http.post(path, json=body, headers=key(place))) for _ in range(2))
            assert (REPLAYED in first.headers, again.headers[REPLAYED]) == (False, "true")
            assert again.content == first.content
        problem(
            http.post("/v1/sessions/twice/extend", json={"seconds": 61}, headers=key("extend")),
            422,
            "idempotency_conflict",
        )
        ok(http.delete("/v1/sessions/twice"))
