"""Repeated batches through the server: kept, found, forgotten, sent in full, and executed once."""

from typing import Any

import httpx
import numpy as np
import pytest
from rest_client import Rest

import teletape_wire as wire
from serving import Program, ok, problem
from teletape_engine.commands import Assign, Batch, Call, Fetch, MakeVariable
from teletape_engine.commands.results import Fetched
from teletape_engine.commands.structure import structure_of
from teletape_engine.recording.values import Literal
from teletape_wire.structures import MOST_STRUCTURES


@pytest.fixture
def program(http: httpx.Client, rest: Rest) -> Program:
    program = Program(http, rest.path.rpartition("/")[2])
    program.run(MakeVariable("v", np.zeros((), np.float32)))
    return program


def step(program: Program, amount: float, out: int) -> Batch:
    """Adds an amount to the variable, and reads twice its value."""
    return program.batch(
        Assign("v", Literal(amount), "add"), Call("mul", ("v", Literal(2.0)), (out,)), Fetch(out), Fetch("v")
    )


def whole(batch: Batch, keep: int | None = None) -> bytes:
    return b"".join(wire.encode_batch(batch, keep=keep).buffers)


def repeated(batch: Batch, number: int) -> bytes:
    both = structure_of(batch)
    assert both is not None
    frame = wire.encode_repeated(number, both[1], client=batch.client, seq=batch.seq, nonce=batch.nonce)
    return b"".join(frame.buffers)


def send(program: Program, frame: bytes, **headers: str) -> httpx.Response:
    return program.http.post(program.path, content=frame, headers={"Content-Type": wire.FRAME_TYPE, **headers})


def numbers(response: httpx.Response) -> list[Any]:
    answer, _ = wire.decode_answer(ok(response).content)
    assert answer.failure is None
    return [result.array.tolist() for result in answer.results if isinstance(result, Fetched)]


def test_a_repeated_batch_is_executed_as_the_whole_one(program: Program) -> None:
    assert numbers(send(program, whole(step(program, 1.0, 1), keep=5))) == [2.0, 1.0]
    assert numbers(send(program, repeated(step(program, 0.5, 2), 5))) == [3.0, 1.5]
    assert numbers(send(program, repeated(step(program, 2.0, 3), 5))) == [7.0, 3.5]


def test_a_structure_that_is_not_known_executes_nothing(program: Program) -> None:
    batch = step(program, 1.0, 1)
    details = problem(send(program, repeated(batch, 5)), 409, "unknown_structure")["details"]
    assert details == {"structure": 5}
    assert numbers(send(program, whole(batch, keep=5))) == [2.0, 1.0]
    assert numbers(send(program, repeated(step(program, 1.0, 2), 5))) == [4.0, 2.0]


def test_a_retry_in_the_other_form_is_the_same_batch(program: Program) -> None:
    send(program, whole(step(program, 1.0, 1), keep=5))
    batch = step(program, 1.0, 2)
    first = numbers(send(program, repeated(batch, 5)))
    for frame in (repeated(batch, 5), whole(batch), whole(batch, keep=6), repeated(batch, 99)):
        response = send(program, frame)
        assert response.headers["Idempotent-Replayed"] == "true"
        assert numbers(response) == first == [4.0, 2.0]
    assert numbers(send(program, whole(step(program, 1.0, 3)))) == [6.0, 3.0]


def test_a_structure_is_forgotten_and_sent_again(program: Program) -> None:
    ok(send(program, whole(step(program, 1.0, 1), keep=0)))
    for number in range(1, MOST_STRUCTURES + 1):
        ok(send(program, whole(step(program, 0.0, 1 + number), keep=number)))
    batch = step(program, 1.0, 500)
    problem(send(program, repeated(batch, 0)), 409, "unknown_structure")
    assert numbers(send(program, whole(batch, keep=0))) == [4.0, 2.0]
    assert numbers(send(program, repeated(step(program, 1.0, 501), 0))) == [6.0, 3.0]


def test_a_failure_names_its_command(program: Program) -> None:
    ok(send(program, whole(step(program, 1.0, 1), keep=5)))
    batch = step(program, 1.0, 1)  # the id is in use
    answer, _ = wire.decode_answer(ok(send(program, repeated(batch, 5))).content)
    assert answer.failure is not None
    assert (answer.failure.index, answer.failure.code, answer.failure.op) == (1, "id_in_use", "mul")
    again, _ = wire.decode_answer(ok(send(program, whole(batch))).content)
    assert again.failure == answer.failure


def test_contents_that_do_not_fit_consume_no_seq(program: Program) -> None:
    ok(send(program, whole(step(program, 1.0, 1), keep=5)))
    batch = Batch((Fetch("v"),), (), program.client, program.seq, b"n" * 16)
    problem(send(program, repeated(batch, 5)), 422, "bad_command")
    problem(send(program, repeated(batch, 5)[:-1]), 400, "malformed_frame")
    assert numbers(send(program, repeated(step(program, 1.0, 2), 5))) == [4.0, 2.0]


def test_the_answer_may_be_json(program: Program) -> None:
    ok(send(program, whole(step(program, 1.0, 1), keep=5)))
    body = ok(send(program, repeated(step(program, 1.0, 2), 5), Accept="application/json")).json()
    assert [result["value"]["data"] for result in body["results"]] == [4.0, 2.0]


def test_the_server_says_that_it_takes_them(http: httpx.Client) -> None:
    assert "repeated-batches" in ok(http.get("/v1/info")).json()["features"]
