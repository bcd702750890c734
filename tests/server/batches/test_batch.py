"""Batches over HTTP: both forms, exactly once, and what is refused before anything happens."""

import contextlib
import json
import threading
from http.client import HTTPResponse
from typing import Any

import httpx
import numpy as np
import pytest

import teletape_wire as wire
from serving import Program, Server, long_work, ok, problem, unread_post, until
from teletape_engine.commands import Assign, Batch, Call, Constant, Fetch, MakeVariable
from teletape_engine.commands.results import Fetched
from teletape_engine.recording.values import Literal
from teletape_server.sessions.quotas import Quota

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def http(server: Server) -> Any:
    with server.client() as client:
        ok(client.post("/v1/sessions", json={"id": "demo"}))
        yield client


@pytest.fixture
def program(http: httpx.Client) -> Program:
    return Program(http, "demo")


def numbers(answer: Any) -> list[Any]:
    return [result.array.tolist() for result in answer.results if isinstance(result, Fetched)]


def long_batch(program: Program, *last: Any, count: int = 200) -> Batch:
    """Work for longer than the server's patience (0.05 s)."""
    return program.batch(Constant(1, np.zeros((), np.float32)), *long_work(count), *last)


def test_a_batch_in_json_goes_on_with_other_strands_if_it_is_to(http: httpx.Client) -> None:
    commands = [
        {"do": "constant", "id": "x", "value": [1.0, 2.0]},
        {
            "do": "op",
            "op": "gather",
            "inputs": ["x", {"dtype": "int32", "data": [9]}],
            "outputs": ["y"],
            "where": "a:1",
        },
        {"do": "context.switch", "context": "c", "strand": "s"},
        {"do": "op", "op": "neg", "inputs": ["x"], "outputs": ["z"]},
        {"do": "fetch", "id": "z"},
        {"do": "context.switch", "context": "c", "strand": "other"},
        {"do": "fetch", "id": "y"},
    ]
    answer = ok(http.post("/v1/sessions/demo/batch", json={"commands": commands, "on_failure": "strand"})).json()
    assert (answer["failure"]["command"], answer["failure"]["where"]) == (1, "a:1")
    assert [(each["command"], each["code"]) for each in answer["further_failures"]] == [(6, "poisoned")]
    assert [result["value"]["data"] for result in answer["results"]] == [[-1.0, -2.0]]


def test_commands_in_json_as_a_person_sends_them(http: httpx.Client) -> None:
    commands = [
        {"do": "variable", "id": "x", "value": 3.0},
        {"do": "tape.open", "id": "t"},
        {"do": "op", "op": "mul", "inputs": ["x", "x"], "outputs": ["y"]},
        {"do": "gradient", "tape": "t", "targets": ["y"], "sources": ["x"], "outputs": ["dx"]},
        {"do": "fetch", "id": "dx"},
    ]
    answer = ok(http.post("/v1/sessions/demo/batch", json={"commands": commands, "release": ["t"]})).json()
    assert answer["results"] == [
        {"command": 3, "kinds": ["dense"]},
        {"command": 4, "id": "dx", "value": {"dtype": "float32", "shape": [], "data": 6.0}},
    ]
    assert answer["failure"] is None
    assert answer["bytes_in_use"] > 0
    assert answer["expires_at"].endswith("Z")


def test_nan_and_infinities_in_json_both_ways(http: httpx.Client) -> None:
    commands = [
        {"do": "constant", "id": "x", "value": [1.0, "NaN", "-Infinity"]},
        {"do": "op", "op": "neg", "inputs": ["x"], "outputs": ["y"]},
        {"do": "fetch", "id": "y"},
    ]
    answer = ok(http.post("/v1/sessions/demo/batch", json={"commands": commands})).json()
    assert answer["results"][0]["value"]["data"] == [-1.0, "NaN", "Infinity"]


def test_frames_and_what_they_report_with_the_answer(server: Server, program: Program) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    batch = program.batch(Constant(7, x), Call("neg", (7,), (8,)), Fetch(8))
    response = ok(program.outcome(batch))
    assert response.headers["content-type"] == wire.FRAME_TYPE
    answer, served = wire.decode_answer(response.content)
    assert numbers(answer) == [(-x).tolist()]
    prefix = wire.decode_prefix(response.content)
    assert (prefix.client, prefix.seq, prefix.nonce) == (batch.client, batch.seq, batch.nonce)
    assert served.expires_at is not None
    assert server.clock() + 30 < served.expires_at <= server.clock() + 60
    assert served.queue_seconds >= 0
    assert served.compute_seconds > 0


def test_a_frame_may_ask_for_json_and_json_for_a_frame(http: httpx.Client, program: Program) -> None:
    readable = ok(program.outcome(program.batch(Constant(1, np.ones(2))), Accept="application/json"))
    assert readable.json()["failure"] is None
    body = {"commands": [{"do": "fetch", "id": {"id": 1}}]}
    answer, _ = wire.decode_answer(
        ok(http.post("/v1/sessions/demo/batch", json=body, headers={"Accept": wire.FRAME_TYPE})).content
    )
    assert numbers(answer) == [[1.0, 1.0]]


def test_json_previews_large_tensors_unless_all_is_asked_for(http: httpx.Client) -> None:
    commands = [{"do": "op", "op": "fill", "inputs": [1.0], "outputs": ["x"], "attrs": {"shape": [5000]}}]
    commands[0]["inputs"] = [{"dtype": "float32", "shape": [], "data": 1.0}]
    ok(http.post("/v1/sessions/demo/batch", json={"commands": commands}))
    fetch = {"commands": [{"do": "fetch", "id": "x"}]}
    (brief,) = ok(http.post("/v1/sessions/demo/batch", json=fetch)).json()["results"]
    assert (brief["value"]["complete"], len(brief["value"]["data"])) == (False, 1000)
    (whole,) = ok(http.post("/v1/sessions/demo/batch?full=true", json=fetch)).json()["results"]
    assert len(whole["value"]["data"]) == 5000
    raw = ok(http.post("/v1/sessions/demo/batch?full=true&encoding=base64", json=fetch)).json()["results"][0]["value"]
    assert np.array_equal(wire.tensor_from_json(raw), np.ones(5000, np.float32))


def test_large_tensors_go_through_shared_memory_unharmed(program: Program) -> None:
    """Bodies of the same size, one after the other: memory is reused only after its last reader."""
    arrays = [np.random.default_rng(i).random(1 << 18).astype(np.float32) for i in range(4)]
    for i, array in enumerate(arrays):
        program.run(Constant(i, array))
    for i, array in enumerate(arrays):
        (fetched,) = program.run(Fetch(i)).results
        assert isinstance(fetched, Fetched)
        assert np.array_equal(fetched.array, array)


def test_a_retry_gets_the_first_answer_again(program: Program) -> None:
    program.run(MakeVariable("v", np.zeros((), np.float32)))
    batch = program.batch(Assign("v", Literal(1.0), "add"), Fetch("v"))
    first = ok(program.outcome(batch)).content
    again = ok(program.outcome(batch)).content
    assert numbers(wire.decode_answer(first)[0]) == numbers(wire.decode_answer(again)[0]) == [1.0]
    assert numbers(program.run(Fetch("v"))) == [1.0]


def test_a_retry_of_a_running_batch_joins_it(program: Program) -> None:
    """202 has the progress; every retry gets the answer after the end, and the batch ran once."""
    program.run(MakeVariable("v", np.zeros((), np.float32)))
    batch = long_batch(program, Assign("v", Literal(1.0), "add"), Fetch("v"))
    waits = []
    while (response := program.post(batch)).status_code == 202:
        assert float(response.headers["Retry-After"]) > 0
        waits.append(response.json())
    assert waits, "the batch was too short to be waited for"
    assert {progress["status"] for progress in waits} == {"running"}
    assert all(0 <= progress["done"] <= progress["total"] for progress in waits)
    assert numbers(wire.decode_answer(ok(response).content)[0]) == [1.0]
    assert numbers(program.run(Fetch("v"))) == [1.0]


def test_two_senders_of_one_running_batch_get_one_answer(server: Server, program: Program) -> None:
    program.run(MakeVariable("v", np.zeros((), np.float32)))
    batch = long_batch(program, Assign("v", Literal(1.0), "add"), Fetch("v"))
    values: list[Any] = []

    def send() -> None:
        with server.client() as client:
            frame = b"".join(wire.encode_batch(batch).buffers)
            while True:
                response = client.post(program.path, content=frame, headers={"Content-Type": wire.FRAME_TYPE})
                if response.status_code != 202:
                    break
            values.append(numbers(wire.decode_answer(ok(response).content)[0]))

    threads = [threading.Thread(target=send) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values == [[1.0]] * 3


def test_another_batch_of_the_same_seq_is_a_conflict(program: Program) -> None:
    first = program.batch(Constant(1, np.ones(2)))
    ok(program.outcome(first))
    other = Batch((Constant(2, np.ones(2)),), (), first.client, first.seq, b"another nonce...")
    problem(program.outcome(other), 409, "sequence_conflict")


def test_out_of_turn_is_refused_with_the_expected_seq(program: Program) -> None:
    late = Batch((), (), program.client, 9, b"n" * 16)
    assert problem(program.outcome(late), 409, "out_of_turn")["details"]["expected"] == 1


def test_an_idempotency_key_makes_json_safe_to_repeat(http: httpx.Client) -> None:
    path, key = "/v1/sessions/demo/batch", {"Idempotency-Key": "one"}
    ok(http.post(path, json={"commands": [{"do": "variable", "id": "v", "value": 0.0}]}))
    add = {"commands": [{"do": "assign", "variable": "v", "value": 1.0, "mode": "add"}, {"do": "fetch", "id": "v"}]}
    answers = [ok(http.post(path, json=add, headers=key)).json()["results"] for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    (last,) = ok(http.post(path, json={"commands": [{"do": "fetch", "id": "v"}]})).json()["results"]
    assert last["value"]["data"] == 1.0
    other = {"commands": [{"do": "fetch", "id": "v"}]}
    problem(http.post(path, json=other, headers=key), 422, "idempotency_conflict")
    problem(http.post(path, json=other, headers={"Idempotency-Key": "k" * 300}), 422, "invalid_request")


def test_a_refusal_is_repeated_too(http: httpx.Client) -> None:
    for _ in range(2):
        response = http.post("/v1/sessions/demo/batch", content=b"{", headers=JSON | {"Idempotency-Key": "bad"})
        problem(response, 400, "malformed_json")


def test_a_failure_in_the_middle_keeps_what_stood_and_poisons_the_rest(program: Program) -> None:
    answer = program.run(
        Constant(1, np.ones(2, np.float32)),
        Call("mull", (1, 1), (2,), where="train.py:7"),
        Call("neg", (2,), (3,)),
        Fetch(1),
    )
    assert answer.failure is not None
    assert (answer.failure.index, answer.failure.code, answer.failure.where) == (1, "unknown_op", "train.py:7")
    assert "mul" in answer.failure.message
    assert answer.results == ()
    assert numbers(program.run(Fetch(1))) == [[1.0, 1.0]]
    later = program.run(Fetch(3))
    assert later.failure is not None
    assert later.failure.code == "poisoned"
    assert "mull" in later.failure.message


def test_a_failure_reads_the_same_in_json(http: httpx.Client) -> None:
    commands = [{"do": "fetch", "id": "nobody"}]
    answer = ok(http.post("/v1/sessions/demo/batch", json={"commands": commands})).json()
    assert (answer["failure"]["command"], answer["failure"]["code"]) == (0, "unknown_id")
    assert "nobody" in answer["failure"]["message"]


def test_cancel_stops_what_runs_between_commands(server: Server, program: Program) -> None:
    batch = long_batch(program, Fetch(1), count=2000)
    response = program.post(batch)
    assert response.status_code == 202
    while not (work := ok(program.http.get("/v1/sessions/demo")).json()["running"])["done"]:
        assert work["requests"], "the batch ended before it could be cancelled"
    ok(program.http.post("/v1/sessions/demo/cancel"))
    while (response := program.post(batch)).status_code == 202:
        pass
    answer, _ = wire.decode_answer(ok(response).content)
    assert answer.failure is not None
    assert answer.failure.code == "cancelled"
    batch = program.batch(Fetch(1))
    while (response := program.post(batch)).status_code == 202:
        pass
    answer, _ = wire.decode_answer(ok(response).content)
    assert numbers(answer) == [0.0]


def test_malformed_json_names_line_and_column(http: httpx.Client) -> None:
    response = http.post("/v1/sessions/demo/batch", content=b'{"commands": [}', headers=JSON)
    assert "line 1 column 15" in problem(response, 400, "malformed_json")["detail"]


def test_a_bad_command_is_named_by_its_place(http: httpx.Client) -> None:
    body = {"commands": [{"do": "fetch", "id": "x"}, {"do": "fetch"}]}
    refusal = problem(http.post("/v1/sessions/demo/batch", json=body), 422, "bad_command")
    assert refusal["detail"].startswith("command 1: ")
    assert refusal["details"] == {"command": 1}


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda frame: b"GIF89a" + frame[6:], "malformed_frame"),
        (lambda frame: frame[:30], "malformed_frame"),
        (lambda frame: frame[:-1], "malformed_frame"),
        (lambda frame: frame + b"\0", "malformed_frame"),
        (lambda frame: frame[:48] + (1 << 40).to_bytes(8, "little") + frame[56:], "frame_too_large"),
        (lambda frame: frame[:8] + b"\7" + frame[9:], "unsupported_version"),
        (lambda frame: frame[:-1] + bytes([frame[-1] ^ 1]), "corrupt_frame"),
    ],
)
def test_a_lying_frame_is_refused_and_consumes_nothing(program: Program, spoil: Any, code: str) -> None:
    good = program.batch(Constant(1, np.full(100, 7.0)))
    frame = b"".join(wire.encode_batch(good).buffers)
    bad = program.http.post(program.path, content=spoil(frame), headers={"Content-Type": wire.FRAME_TYPE})
    assert problem(bad, bad.status_code, code)["status"] in (400, 413)
    ok(program.outcome(good))
    assert numbers(program.run(Fetch(1))) == [[7.0] * 100]


def test_a_body_cut_in_the_middle_consumes_nothing(program: Program) -> None:
    batch = program.batch(Constant(1, np.full(100_000, 7.0)))
    frame = b"".join(wire.encode_batch(batch).buffers)
    with unread_post(
        program.http, program.path, frame[: len(frame) // 2], length=len(frame), Content_Type=wire.FRAME_TYPE
    ):
        pass
    ok(program.outcome(batch))
    assert numbers(program.run(Fetch(1))) == [[7.0] * 100_000]


def test_a_body_over_the_limit_is_refused_before_it_is_read(program: Program) -> None:
    with unread_post(program.http, program.path, b"", length=1 << 40, Content_Type=wire.FRAME_TYPE) as raw:
        response = HTTPResponse(raw)
        response.begin()
        body = json.loads(response.read())
    assert response.status == 413
    assert body["code"] == "body_too_large"
    assert body["details"] == {"found": 1 << 40, "limit": 16 << 20}
    ok(program.outcome(program.batch()))


def test_a_body_without_a_length_is_refused(http: httpx.Client) -> None:
    response = http.post("/v1/sessions/demo/batch", content=iter([b"{}"]), headers=JSON)
    problem(response, 411, "length_required")


def test_unknown_content_types_come_with_the_list_of_known_ones(http: httpx.Client) -> None:
    response = http.post("/v1/sessions/demo/batch", content=b"x", headers={"Content-Type": "text/csv"})
    refusal = problem(response, 415, "unsupported_media_type")
    assert refusal["details"]["known"] == [wire.FRAME_TYPE, wire.JSON_TYPE]
    for accept in ("text/html", "application/json;q=0", "image/*, text/*;q=0.5"):
        response = http.post("/v1/sessions/demo/batch", json={"commands": []}, headers={"Accept": accept})
        assert problem(response, 406, "not_acceptable")["details"]["known"] == [wire.FRAME_TYPE, wire.JSON_TYPE]


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("*/*", wire.JSON_TYPE),
        ("application/*", wire.JSON_TYPE),
        (f"{wire.FRAME_TYPE};q=0.5, application/json", wire.JSON_TYPE),
        (f"{wire.FRAME_TYPE}, application/json;q=0.9", wire.FRAME_TYPE),
        (f"*/*;q=0.1, {wire.FRAME_TYPE}", wire.FRAME_TYPE),
        ("text/html, application/json;q=0.2, */*;q=0.1", wire.JSON_TYPE),
    ],
)
def test_accept_is_weighed(http: httpx.Client, accept: str, expected: str) -> None:
    response = ok(http.post("/v1/sessions/demo/batch", json={"commands": []}, headers={"Accept": accept}))
    assert response.headers["content-type"] == expected


def test_an_allocation_over_the_limit_is_refused_with_the_numbers(http: httpx.Client) -> None:
    scalar = {"dtype": "float32", "shape": [], "data": 1.0}
    fill = {"do": "op", "op": "fill", "inputs": [scalar], "outputs": ["x"], "attrs": {"shape": [10**12]}}
    answer = ok(http.post("/v1/sessions/demo/batch", json={"commands": [fill]})).json()
    assert answer["failure"]["code"] == "resource_exhausted"
    assert f"{4 * 10**12:,}" in answer["failure"]["message"]
    ok(http.post("/v1/sessions/demo/batch", json={"commands": []}))


def test_a_session_takes_a_bounded_number_of_requests_at_once(server: Server, program: Program) -> None:
    """Waiting requests hold memory: one more than the limit is refused, to be sent again."""
    running = program.post(long_batch(program, count=5000))
    assert running.status_code == 202
    host = server.app.state.registry.find("ann", "demo").host
    body = b'{"commands": [], "client": 0}'
    with contextlib.ExitStack() as connections:
        for key in range(Quota.waiting - 1):
            connections.enter_context(unread_post(program.http, program.path, body, Idempotency_Key=str(key)))
        until(lambda: len(host.running) == Quota.waiting)
        refused = program.http.post(program.path, content=body, headers=JSON)
    problem(refused, 429, "busy")
    assert refused.headers["Retry-After"] == "1"
