"""Questions to a tape over REST: Jacobians, second derivatives, many at once, and what is refused."""

from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from serving import ok, problem

W, X = [0.5, 1.5, 2.5], [4.0, 5.0, 6.0]


class Tape:
    """A tape t in a session: w is a variable, x a tensor, y = w² x, loss = sum(y)."""

    def __init__(self, http: httpx.Client, *, persistent: bool = True) -> None:
        self.http = http
        self.path = "/v1/sessions/" + ok(http.post("/v1/sessions", json={})).json()["id"]
        self.send("variables", {"id": "w", "value": W})
        self.send("tensors", {"id": "x", "value": X})
        self.send("tapes", {"id": "t", "persistent": persistent})
        self.send("tapes/t/watch", {"tensors": ["x"]})
        ops = [
            {"op": "square", "inputs": ["w"], "outputs": ["ww"]},
            {"op": "mul", "inputs": ["ww", "x"], "outputs": ["y"]},
            {"op": "reduce_sum", "inputs": ["y"], "outputs": ["loss"]},
            {"op": "reshape", "inputs": ["y"], "outputs": ["columns"], "attrs": {"shape": [3, 1]}},
            {"op": "exp", "inputs": ["columns"], "outputs": ["grown"]},
        ]
        self.send("tapes/t/ops", {"ops": ops})

    def send(self, place: str, body: Any) -> Any:
        return ok(self.http.post(f"{self.path}/{place}", json=body)).json()

    def ask(self, what: str, body: Any) -> Any:
        return self.send(f"tapes/t/{what}", body)

    def refused(self, what: str, body: Any, status: int, code: str) -> dict[str, Any]:
        return problem(self.http.post(f"{self.path}/tapes/t/{what}", json=body), status, code)

    def tensors(self) -> set[str]:
        return {tensor["id"] for tensor in ok(self.http.get(f"{self.path}/tensors")).json()["tensors"]}


@pytest.fixture
def tape(http: httpx.Client) -> Iterator[Tape]:
    session_tape = Tape(http)
    yield session_tape
    http.delete(session_tape.path)


def data(answer: Any) -> Any:
    return np.asarray(answer["value"]["data"])


w, x = np.asarray(W), np.asarray(X)


def test_a_jacobian(tape: Tape) -> None:
    before = tape.tensors()
    derivatives = tape.ask("jacobian", {"targets": ["y"], "sources": ["w", "x"], "outputs": ["J", None]})["derivatives"]
    np.testing.assert_allclose(data(derivatives[0]), np.diag(2 * w * x))
    np.testing.assert_allclose(data(derivatives[1]), np.diag(w * w))
    assert [(derivative["source"], derivative["kind"], derivative["id"]) for derivative in derivatives] == [
        ("w", "dense", "J"),
        ("x", "dense", None),
    ]
    assert tape.tensors() == before | {"J"}


def test_a_jacobian_in_chunks_is_the_same_and_below_a_row_refused(tape: Tape) -> None:
    [whole] = tape.ask("jacobian", {"targets": ["y"], "sources": ["w"]})["derivatives"]
    [parts] = tape.ask("jacobian", {"targets": ["y"], "sources": ["w"], "max_bytes": 60})["derivatives"]
    assert parts == whole
    refusal = tape.refused("jacobian", {"targets": ["y"], "sources": ["w"], "max_bytes": 8}, 507, "resource_exhausted")
    assert "max_bytes is 8: raise it" in refusal["detail"]
    assert refusal["details"]["bound"] == 8 < refusal["details"]["needed"]
    tape.refused("jacobian", {"targets": ["y"], "sources": ["w"], "max_bytes": 0}, 422, "invalid_request")


def test_the_jacobian_of_each_example(tape: Tape) -> None:
    [derivative] = tape.ask("batch_jacobian", {"targets": ["grown"], "sources": ["columns"], "outputs": ["B"]})[
        "derivatives"
    ]
    np.testing.assert_allclose(data(derivative)[:, 0, 0], np.exp(w * w * x), rtol=1e-5)
    assert (derivative["source"], derivative["id"]) == ("columns", "B")
    refusal = tape.refused("batch_jacobian", {"targets": ["y"], "sources": ["w"]}, 422, "invalid_argument")
    assert refusal["detail"] == "Shape (3,) must have rank at least 2"


def test_a_stack_of_gradients(tape: Tape) -> None:
    stack = [[1.5, 0.5, 0.5], [0.5, 0.5, 2.5]]
    [derivative] = tape.ask("vjps", {"targets": ["y"], "sources": ["w"], "output_gradients": [stack]})["derivatives"]
    np.testing.assert_allclose(data(derivative), np.asarray(stack) * 2 * w * x)
    body = {"targets": ["y"], "sources": ["w"], "output_gradients": [[1.5, 0.5, 0.5]]}
    assert "it must be float32[k, 3], one leading axis" in tape.refused("vjps", body, 422, "invalid_argument")["detail"]


def test_a_hessian_by_blocks(tape: Tape) -> None:
    ids = [["ww2", None], [None, None]]
    before = tape.tensors()
    [[a, b], [c, d]] = tape.ask("hessian", {"targets": ["loss"], "sources": ["w", "x"], "outputs": ids})["derivatives"]
    np.testing.assert_allclose(data(a), np.diag(2 * x))
    np.testing.assert_allclose(data(b), np.diag(2 * w))
    np.testing.assert_allclose(data(c), np.diag(2 * w))
    assert (d["kind"], d["value"], d["source"], d["second_source"]) == ("none", None, "x", "x")
    assert (a["id"], b["source"], b["second_source"]) == ("ww2", "w", "x")
    assert tape.tensors() == before | {"ww2"}
    body = {"targets": ["loss"], "sources": ["w", "x"], "unconnected": "zero"}
    assert not data(tape.ask("hessian", body)["derivatives"][1][1]).any()
    tape.refused("hessian", body | {"outputs": [["a"]]}, 422, "invalid_request")


def test_a_product_with_the_hessian(tape: Tape) -> None:
    u, v = [1.5, 0.5, 0.5], [0.5, 0.5, 0.5]
    body = {"targets": ["loss"], "sources": ["w", "x"], "vectors": [u, v]}
    first, second = tape.ask("hvp", body)["derivatives"]
    np.testing.assert_allclose(data(first), 2 * x * u + 2 * w * v)
    np.testing.assert_allclose(data(second), 2 * w * u)
    refusal = tape.refused("hvp", body | {"vectors": [u]}, 422, "invalid_argument")
    assert refusal["detail"] == "2 sources, but 1 vectors: give one for each"


def test_second_derivatives_leave_the_tape_as_it_was(tape: Tape) -> None:
    before = ok(tape.http.get(f"{tape.path}/tapes/t")).json()
    tape.ask("hessian", {"targets": ["loss"], "sources": ["w"]})
    tape.ask("hvp", {"targets": ["loss"], "sources": ["w"], "vectors": ["w"]})
    assert ok(tape.http.get(f"{tape.path}/tapes/t")).json() == before


MANY = [
    {"targets": ["loss"], "sources": ["w"]},
    {"targets": ["y", "loss"], "sources": ["x", "w"], "outputs": ["kept", None]},
    {"do": "jacobian", "targets": ["y"], "sources": ["w"]},
    {"do": "batch_jacobian", "targets": ["grown"], "sources": ["columns"]},
    {"do": "vjps", "targets": ["y"], "sources": ["w"], "output_gradients": [[[1.5, 0.5, 0.5]]]},
    {"do": "hessian", "targets": ["loss"], "sources": ["w"]},
    {"do": "hvp", "targets": ["loss"], "sources": ["w"], "vectors": ["w"]},
    {"do": "gradient", "targets": ["loss"], "sources": ["x"], "output_gradients": [2.5]},
]


@pytest.mark.parametrize("persistent", [True, False])
def test_many_questions_are_answered_as_each_alone(http: httpx.Client, tape: Tape, persistent: bool) -> None:
    other = Tape(http, persistent=persistent)
    answers = other.ask("questions", {"questions": MANY})["results"]
    for question, answer in zip(MANY, answers, strict=True):
        alone = tape.ask(question.get("do", "gradient"), {k: v for k, v in question.items() if k != "do"})
        alone.pop("bytes_in_use")
        assert answer == alone
    assert other.tensors() & {"kept"} == {"kept"}
    if not persistent:
        other.refused("questions", {"questions": MANY[:1]}, 409, "tape_consumed")


def test_a_question_that_fails_is_reported_and_leaves_nothing(http: httpx.Client) -> None:
    tape = Tape(http, persistent=False)
    before = tape.tensors()
    wrong = {"do": "hvp", "targets": ["loss"], "sources": ["w"], "vectors": [[1.5]]}
    refusal = tape.refused("questions", {"questions": [MANY[0], wrong, MANY[2]]}, 422, "invalid_argument")
    assert refusal["detail"].startswith("question 1: a vector float32[1] for a source float32[3]")
    assert refusal["details"]["question"] == 1
    assert tape.tensors() == before
    assert len(tape.ask("questions", {"questions": MANY[:2]})["results"]) == 2  # the tape has not been used up


@pytest.mark.parametrize(
    ("questions", "text"),
    [
        ([], "questions"),
        (
            [{"do": "explain"}],
            "questions.0.do: must be one of gradient, jacobian, batch_jacobian, vjps, hessian, hvp",
        ),
        ([MANY[0], {"do": "jacobian", "sources": ["w"]}], "questions.1.targets: is missing, and is needed"),
        (
            [{"targets": ["loss"], "sources": ["w"], "outputs": []}],
            "question 0: outputs: one id for each of the 1 sources",
        ),
    ],
)
def test_bad_questions_are_refused_with_their_place(tape: Tape, questions: Any, text: str) -> None:
    assert text in tape.refused("questions", {"questions": questions}, 422, "invalid_request")["detail"]


def test_parents_record_the_answers(http: httpx.Client) -> None:
    path = "/v1/sessions/" + ok(http.post("/v1/sessions", json={})).json()["id"]

    def send(place: str, body: Any) -> Any:
        return ok(http.post(f"{path}/{place}", json=body)).json()

    send("variables", {"id": "v", "value": [0.5, 1.5]})
    send("tapes", {"id": "outer", "persistent": True})
    send("tapes", {"id": "inner", "parents": ["outer"]})
    send("tapes/inner/ops", {"ops": [{"op": "pow", "inputs": ["v", 3.0], "outputs": ["cubes"]}]})
    send("tapes/inner/jacobian", {"targets": ["cubes"], "sources": ["v"], "outputs": ["J"]})
    [second] = send("tapes/outer/jacobian", {"targets": ["J"], "sources": ["v"]})["derivatives"]
    expected = np.zeros((2, 2, 2))
    expected[0, 0, 0], expected[1, 1, 1] = 3.0, 9.0
    np.testing.assert_allclose(data(second), expected)


def test_one_request_without_a_session(http: httpx.Client) -> None:
    commands = [
        {"do": "variable", "id": "v", "value": [0.5, 1.5]},
        {"do": "tape.open", "id": "t"},
        {"do": "op", "op": "exp", "inputs": ["v"], "outputs": ["y"]},
        {"do": "jacobian", "tape": "t", "targets": ["y"], "sources": ["v"], "outputs": ["J"], "retain_tape": True},
        {"do": "hessian", "tape": "t", "targets": ["y"], "sources": ["v"], "outputs": ["H"], "retain_tape": True},
        {
            "do": "hvp",
            "tape": "t",
            "targets": ["y"],
            "sources": ["v"],
            "vectors": ["v"],
            "outputs": ["p"],
            "retain_tape": True,
        },
    ]
    commands[-1:-1] = [
        {
            "do": "vjps",
            "tape": "t",
            "targets": ["y"],
            "sources": ["v"],
            "output_gradients": [[[1.5, 0.5]]],
            "outputs": ["g"],
        }
        | {"retain_tape": True}
    ]
    values = ok(http.post("/v1/run", json={"commands": commands, "fetch": ["J", "H", "p", "g"]})).json()["values"]
    v = np.asarray([0.5, 1.5])
    np.testing.assert_allclose(values["J"]["data"], np.diag(np.exp(v)), rtol=1e-6)
    np.testing.assert_allclose(values["H"]["data"], np.diag(np.exp(v)), rtol=1e-6)
    np.testing.assert_allclose(values["p"]["data"], np.exp(v) * v, rtol=1e-6)
    np.testing.assert_allclose(values["g"]["data"], [np.exp(v) * [1.5, 0.5]], rtol=1e-6)


def test_in_one_request_what_is_not_connected_is_null(http: httpx.Client) -> None:
    commands = [
        {"do": "variable", "id": "v", "value": [0.5, 1.5]},
        {"do": "variable", "id": "u", "value": 1.5},
        {"do": "tape.open", "id": "t"},
        {"do": "op", "op": "exp", "inputs": ["v"], "outputs": ["y"]},
        {"do": "jacobian", "tape": "t", "targets": ["y"], "sources": ["u"], "outputs": ["J"]},
    ]
    assert ok(http.post("/v1/run", json={"commands": commands, "fetch": ["J"]})).json()["values"] == {"J": None}
