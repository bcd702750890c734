"""POST /v1/run: one request, one session, nothing is kept."""

import json
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import pytest
from run_commands import LOOP, SQUARE, op

from serving import KEYS, Server, ok, problem, unread_post, until
from teletape_server.settings import Settings


def sessions(http: httpx.Client) -> set[str]:
    return {session["id"] for session in ok(http.get("/v1/sessions")).json()["sessions"]}


def test_a_gradient_from_one_request(http: httpx.Client) -> None:
    before = sessions(http)
    for _ in range(2):
        answer = ok(http.post("/v1/run", json={"commands": SQUARE, "fetch": ["y", "dx"]})).json()
        assert {name: value["data"] for name, value in answer["values"].items()} == {"y": 12.25, "dx": 7.0}
    assert sessions(http) == before


def test_fetch_commands_count_and_a_missing_gradient_is_null(http: httpx.Client) -> None:
    commands = [
        *SQUARE[:3],
        {"do": "tape.open", "id": "empty"},
        {"do": "gradient", "tape": "empty", "targets": ["y"], "sources": ["x"], "outputs": ["none"]},
        {"do": "fetch", "id": "y"},
    ]
    answer = ok(http.post("/v1/run", json={"commands": commands, "fetch": ["none"]})).json()
    assert answer["values"]["none"] is None
    assert answer["values"]["y"]["data"] == 12.25
    assert ok(http.post("/v1/run", json={"commands": []})).json() == {"values": {}}


def test_every_question_is_answered_under_the_position_of_its_command(http: httpx.Client) -> None:
    commands = [
        SQUARE[0],
        SQUARE[1] | {"replayable": True, "persistent": True},
        SQUARE[2],
        {"do": "explain", "tape": "t", "targets": ["y"], "sources": ["x"]},
        {"do": "tape.describe", "tape": "t"},
        {"do": "tape.graph", "tape": "t"},
        {"do": "tape.check_gradients", "tape": "t", "targets": ["y"], "sources": ["x"]},
        {"do": "op", "op": "nonzero", "inputs": [[True, False, True]], "outputs": ["places"]},
        SQUARE[3],
    ]
    results = ok(http.post("/v1/run", json={"commands": commands, "fetch": ["dx"]})).json()["results"]
    assert set(results) == {"3", "4", "5", "6", "7"}
    assert results["3"]["explanations"][0]["outcome"] == "gradient"
    assert results["4"]["bytes"] > 0
    assert len(results["5"]["nodes"]) >= 2
    assert results["6"]["agrees"] is True
    assert results["7"]["specs"] == [{"dtype": "int64", "shape": [2, 1]}]


def test_an_explained_none_in_one_request(http: httpx.Client) -> None:
    commands = [SQUARE[0], SQUARE[1], op("round", "x", to="y"), SQUARE[3]]
    commands.append({"do": "explain", "tape": "t", "targets": ["y"], "sources": ["x"]})
    answer = ok(http.post("/v1/run", json={"commands": commands, "fetch": ["dx"]})).json()
    assert answer["values"] == {"dx": None}
    [explanation] = answer["results"]["4"]["explanations"]
    assert explanation["code"] == answer["why"]["dx"]["code"] == "non_differentiable_op"


def test_large_answers_are_previewed(http: httpx.Client) -> None:
    body = {"commands": [op("fill", 1.5, to="x", shape=[2000])], "fetch": ["x"]}
    shown = ok(http.post("/v1/run", json=body)).json()["values"]["x"]
    assert (shown["complete"], len(shown["data"]), shown["shape"]) == (False, 1000, [2000])
    whole = ok(http.post("/v1/run?full=true", json=body)).json()["values"]["x"]
    assert whole["data"] == [1.5] * 2000


@pytest.mark.parametrize(
    ("body", "status", "code", "text"),
    [
        (
            {"commands": [*SQUARE, op("nothing", "x", to="z")]},
            422,
            "unknown_op",
            "command 4 (op 'nothing'): unknown op",
        ),
        ({"commands": [{"do": "dance"}]}, 422, "bad_command", "dance"),
        ({"commands": [{"do": "constant", "id": "x"}]}, 422, "bad_command", "value"),
        ({"commands": [op("fill", 1.5, to="x", shape=[10**6, 10**6])]}, 507, "resource_exhausted", "fill"),
        ({"commands": [], "fetch": ["x"]}, 404, "unknown_id", "'x'"),
        ({"commands": SQUARE, "fetch": 5}, 422, "invalid_request", "fetch"),
        ({"command": []}, 422, "invalid_request", "commands"),
        ({"commands": [*SQUARE, SQUARE[3] | {"outputs": ["again"]}]}, 409, "tape_consumed", "command 4"),
    ],
)
def test_what_cannot_run(http: httpx.Client, body: Any, status: int, code: str, text: str) -> None:
    before = sessions(http)
    assert text in problem(http.post("/v1/run", json=body), status, code)["detail"]
    assert sessions(http) == before


@pytest.mark.parametrize(
    ("content", "headers", "status", "code"),
    [
        (b"{", {"Content-Type": "application/json"}, 400, "malformed_json"),
        (b"x", {"Content-Type": "text/plain"}, 415, "unsupported_media_type"),
        (b'{"commands": []}', {"Content-Type": "application/json", "Accept": "text/html"}, 406, "not_acceptable"),
    ],
)
def test_a_body_of_another_type_is_refused(
    http: httpx.Client, content: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    problem(http.post("/v1/run", content=content, headers=headers), status, code)


@pytest.mark.parametrize(("device", "code"), [("gpu:99", "unknown_device"), ("abacus", "invalid_request")])
def test_an_unknown_device_is_refused(http: httpx.Client, device: str, code: str) -> None:
    problem(http.post("/v1/run", params={"device": device}, json={"commands": []}), 422, code)


def test_a_slow_run_is_waited_for_even_with_a_key(server: Server) -> None:
    many = [{"do": "constant", "id": "x0", "value": 1.5}, *(op("neg", f"x{i}", to=f"x{i + 1}") for i in range(20_000))]
    with server.client() as http:
        headers = {"Idempotency-Key": "k"}
        answer = ok(http.post("/v1/run", json={"commands": many, "fetch": ["x20000"]}, headers=headers)).json()
        assert answer["values"]["x20000"]["data"] == 1.5


def test_a_run_needs_a_key(server: Server) -> None:
    with server.client(None) as http:
        problem(http.post("/v1/run", json={"commands": []}), 401, "unauthenticated")


def test_a_run_is_no_session(server: Server) -> None:
    with server.client() as http:
        for _ in range(server.settings.sessions_per_key):
            ok(http.post("/v1/sessions", json={}))
        ok(http.post("/v1/run", json={"commands": []}))


def test_runs_at_once_wait_for_their_turn() -> None:
    answers: list[httpx.Response] = []
    with Server(Settings(runs=2, sessions=2, sessions_per_key=2)).running() as server:

        def post() -> None:
            with server.client() as http:
                answers.append(http.post("/v1/run", json={"commands": [op("exp", 0.0, to="x")], "fetch": ["x"]}))

        threads = [threading.Thread(target=post) for _ in range(12)]
        for thread in threads:
            thread.start()
        with server.client() as http:
            assert ok(http.get("/v1/sessions")).json()["sessions"] == []
        for thread in threads:
            thread.join()
    assert [ok(answer).json()["values"]["x"]["data"] for answer in answers] == [1.0] * 12


def test_runs_that_wait_are_refused_when_the_server_stops() -> None:
    answers: list[httpx.Response] = []
    with Server(Settings(runs=1, shutdown_grace=0.1)).running() as server, server.client() as http:

        def post() -> None:
            answers.append(http.post("/v1/run", json={"commands": []}))

        with unread_post(http, "/v1/run", json.dumps({"commands": LOOP}).encode()):
            until(lambda: server.app.state.registry.usage().runs == (1, 0))
            thread = threading.Thread(target=post)
            thread.start()
            until(lambda: server.app.state.registry.usage().runs == (1, 1))
            server.stop()
            thread.join()
    problem(answers[0], 503, "shutting_down")


# ----------------------------------------------------------------------------------------------- sessions for the next
def processes(server: Server) -> set[int]:
    """The processes of requests without a session, those too that wait for the next one."""
    entries = list(server.app.state.registry.live.by_key.values())
    return {entry.host.pid for entry in entries if entry.record.is_run}


def run_of(http: httpx.Client, *commands: dict[str, Any], fetch: Sequence[str] = ()) -> httpx.Response:
    return http.post("/v1/run", json={"commands": commands, "fetch": fetch})


@pytest.fixture
def keyed() -> Iterator[Server]:
    with Server(Settings(api_keys=KEYS, runs=2, shutdown_grace=0.1)).running() as server:
        yield server


def test_a_process_runs_one_request_after_the_other_and_each_finds_it_empty(keyed: Server) -> None:
    seen: set[int] = set()
    variable = {"do": "variable", "id": "v", "value": 2.0}
    with keyed.client() as http:
        for _ in range(5):
            answer = ok(
                run_of(http, variable, {"do": "assign", "variable": "v", "value": 3.0, "mode": "add"}, fetch=["v"])
            )
            assert answer.json()["values"]["v"]["data"] == 5.0
            seen |= processes(keyed)
        problem(run_of(http, op("exp", "v", to="x"), fetch=["x"]), 404, "unknown_id")
        seen |= processes(keyed)
    assert len(seen) == 1
    assert keyed.app.state.registry.usage().bytes == 0


@pytest.mark.parametrize("runs", [1, 2])
def test_a_process_never_runs_requests_of_two_keys(runs: int) -> None:
    """There are as many as requests may run: one that waits ends for another key's."""
    settings = Settings(api_keys=KEYS, runs=runs, shutdown_grace=0.1)
    with Server(settings).running() as server, server.client("ann") as ann, server.client("bob") as bob:
        ok(run_of(ann))
        first = processes(server)
        ok(run_of(bob))
        both = processes(server)
        ok(run_of(ann))
        last = processes(server)
    assert len(both) == len(last) == runs
    assert (first < both) == (last == both) == (runs == 2)


def test_a_process_that_has_died_is_replaced(keyed: Server) -> None:
    with keyed.client() as http:
        ok(run_of(http))
        (pid,) = processes(keyed)
        os.kill(pid, signal.SIGKILL)
        until(lambda: not processes(keyed))
        ok(run_of(http))
        assert processes(keyed).isdisjoint({pid})


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "alive"}])
def test_comments_show_that_the_connection_of_events_is_alive(
    keyed: Server, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("teletape_server.http.events.HEARTBEAT_SECONDS", 0.0)
    headers |= {"Accept": "text/event-stream"}
    with (
        keyed.client() as http,
        http.stream("POST", "/v1/run", json={"commands": LOOP}, headers=headers) as response,
    ):
        lines = response.iter_lines()
        assert next(lines) == "event: progress"
        until(lambda: bool(processes(keyed)))  # one under a key may still wait for its turn
        (pid,) = processes(keyed)
        os.kill(pid, signal.SIGSTOP)  # so that there is no progress
        try:
            assert ": still running" in lines
        finally:
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "dies"}, {"Accept": "text/event-stream"}])
def test_a_request_whose_process_dies_is_sent_again(keyed: Server, headers: dict[str, str]) -> None:
    answers: list[httpx.Response] = []

    def post() -> None:
        with keyed.client() as http:
            answers.append(http.post("/v1/run", json={"commands": LOOP}, headers=headers))

    for _ in range(2):  # also the retry under the key begins anew
        thread = threading.Thread(target=post)
        thread.start()
        until(lambda: keyed.app.state.registry.usage().requests == 1)
        (pid,) = processes(keyed)
        os.kill(pid, signal.SIGKILL)
        thread.join()
        until(lambda: keyed.app.state.registry.usage().runs == (0, 0))
    for answer in answers:
        assert "session_ended" in answer.text
        assert "Nothing of it stays: send it again" in answer.text
        assert "the session" not in answer.text
        assert "idempotent-replayed" not in answer.headers


def test_a_process_ends_with_the_caller_that_leaves_its_request(keyed: Server) -> None:
    with keyed.client() as http:
        ok(run_of(http))
        (pid,) = processes(keyed)
        with unread_post(http, "/v1/run", json.dumps({"commands": LOOP}).encode()):
            until(lambda: keyed.app.state.registry.usage().requests == 1)
        until(lambda: keyed.app.state.registry.usage().runs == (0, 0))
        ok(run_of(http))
        assert processes(keyed).isdisjoint({pid})


def test_a_process_that_waits_ends_after_a_while_and_is_no_session(keyed: Server) -> None:
    with keyed.client() as http:
        ok(run_of(http))
        assert sessions(http) == set()
        (entry,) = keyed.app.state.registry.live.by_key.values()
        problem(http.get(f"/v1/sessions/{entry.id}"), 404, "unknown_session")
        keyed.clock.ahead += 61
        until(lambda: not processes(keyed))
        ok(run_of(http))


def test_many_callers_share_the_processes_and_each_gets_its_own_answer(keyed: Server) -> None:
    answers: dict[float, Any] = {}

    def post(number: int) -> None:
        with keyed.client() as http:
            for i in range(5):
                x = number * 10.0 + i
                answers[x] = ok(run_of(http, op("add", x, 1.0, to="y"), fetch=["y"])).json()["values"]["y"]["data"]

    threads = [threading.Thread(target=post, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {x: x + 1.0 for x in answers}
    assert len(answers) == 80
    assert len(processes(keyed)) <= 2
