"""Sparse Jacobians and Hessians over REST, of tapes and of functions: COO and CSR, kept parts, nulls, refusals."""

from typing import Any

import numpy as np
import pytest
from rest_client import Rest, op
from scipy.sparse import csr_array

from serving import problem
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE
from teletape_wire.safetensors.reader import read_file

X = [1.0, 2.0, 3.0, 0.5]
STEPS = [
    op("strided_slice", "x", index=[[1, None, None]], to="after"),
    op("strided_slice", "x", index=[[0, 3, None]], to="before"),
    op("square", "before", to="squares"),
    op("mul", "after", "squares", to="terms"),
    op("reduce_sum", "terms", to="loss"),
]


def jacobian() -> Any:
    x = np.asarray(X)
    out = np.zeros((3, 4))
    out[range(3), range(3)], out[range(3), range(1, 4)] = 2 * x[1:] * x[:-1], x[:-1] ** 2
    return out


def hessian() -> Any:
    x = np.asarray(X)
    out = np.zeros((4, 4))
    out[range(3), range(3)] = 2 * x[1:]
    out[range(3), range(1, 4)] = out[range(1, 4), range(3)] = 2 * x[:-1]
    return out


@pytest.fixture
def tape(rest: Rest) -> Rest:
    """A persistent tape t with the loss Σ xᵢ₊₁ xᵢ² of the variable x; the variable `unused` is apart from it."""
    rest.create("variables", {"id": "x", "value": X})
    rest.create("variables", {"id": "unused", "value": 1.5})
    rest.create("tapes", {"id": "t", "persistent": True})
    rest.done("tapes/t/ops", {"ops": STEPS})
    return rest


def data(part: Any) -> Any:
    return np.asarray(part["value"]["data"])


def dense(derivative: Any) -> Any:
    out = np.zeros(derivative["shape"])
    out[data(derivative["rows"]), data(derivative["cols"])] = data(derivative["values"])
    return out


def test_a_jacobian_by_coordinates(tape: Rest) -> None:
    answer = tape.done("tapes/t/sparse_jacobian", {"targets": ["terms"], "sources": ["x"]})
    derivative = answer["derivative"]
    facts = {name: derivative[name] for name in ("source", "kind", "format", "shape", "entries", "vector_products")}
    assert facts == {
        "source": "x",
        "kind": "sparse",
        "format": "coo",
        "shape": [3, 4],
        "entries": 6,
        "vector_products": 2,
    }
    assert derivative["index_dtype"] == derivative["rows"]["value"]["dtype"] == "int32"
    np.testing.assert_allclose(dense(derivative), jacobian())
    assert answer["bytes_in_use"] > 0


def test_a_hessian_by_rows(tape: Rest) -> None:
    question = {"targets": ["loss"], "sources": ["x"], "format": "csr", "max_bytes": 1}
    derivative = tape.done("tapes/t/sparse_hessian", question)["derivative"]
    assert (derivative["entries"], derivative["vector_products"]) == (9, 3)
    parts = [data(derivative[part]) for part in ("values", "indices", "indptr")]
    np.testing.assert_allclose(csr_array(tuple(parts), shape=derivative["shape"]).toarray(), hessian())


def test_parts_are_kept_under_ids_or_not_at_all(tape: Rest) -> None:
    before = {tensor["id"] for tensor in tape.get("tensors").json()["tensors"]}
    question = {"targets": ["loss"], "sources": ["x"], "outputs": ["i", None, "H"]}
    derivative = tape.done("tapes/t/sparse_hessian", question)["derivative"]
    assert [derivative[part]["id"] for part in ("rows", "cols", "values")] == ["i", None, "H"]
    assert {tensor["id"] for tensor in tape.get("tensors").json()["tensors"]} == before | {"i", "H"}
    assert tape.data("tensors/H") == derivative["values"]["value"]["data"]
    problem(tape.post("tapes/t/sparse_hessian", question), 409, "id_in_use")
    tape.done("tapes/t/sparse_hessian", question | {"replace": True})


def test_a_null_has_its_reason_and_may_be_a_matrix_without_entries(tape: Rest) -> None:
    for what in ("sparse_jacobian", "sparse_hessian"):
        question = {"targets": ["loss"], "sources": ["unused"]}
        derivative = tape.done(f"tapes/t/{what}", question)["derivative"]
        why = derivative.pop("why")
        assert derivative == {"source": "unused", "kind": "none"}
        assert why["code"] == "unconnected"
        derivative = tape.done(f"tapes/t/{what}", question | {"unconnected": "zero"})["derivative"]
        assert (derivative["shape"], derivative["entries"], derivative["vector_products"]) == ([1, 1], 0, 0)


def test_a_tape_that_is_not_persistent_answers_once(rest: Rest) -> None:
    rest.create("variables", {"id": "x", "value": X})
    rest.create("tapes", {"id": "t"})
    rest.done("tapes/t/ops", {"ops": STEPS})
    question = {"targets": ["terms"], "sources": ["x"]}
    assert rest.done("tapes/t/sparse_jacobian", question)["derivative"]["kind"] == "sparse"
    problem(rest.post("tapes/t/sparse_jacobian", question), 409, "tape_consumed")


def test_what_cannot_be_asked_is_refused(tape: Rest) -> None:
    place = "tapes/t/sparse_jacobian"
    problem(tape.post(place, {"targets": ["terms"], "sources": ["x", "x"]}), 422, "invalid_request")
    problem(tape.post(place, {"targets": ["terms", "loss"], "sources": ["x"]}), 422, "invalid_request")
    problem(tape.post(place, {"targets": ["terms"], "sources": ["x"], "format": "csc"}), 422, "invalid_request")
    problem(tape.post(place, {"targets": ["terms"], "sources": ["x"], "outputs": ["J"]}), 422, "invalid_request")
    problem(tape.post(place, {"targets": ["terms"], "sources": ["no"]}), 404, "unknown_id")


def test_a_parent_that_follows_the_target_is_refused(rest: Rest) -> None:
    rest.create("variables", {"id": "x", "value": X})
    rest.create("tapes", {"id": "outer"})
    rest.create("tapes", {"id": "t", "parents": ["outer"]})
    rest.done("tapes/t/ops", {"ops": STEPS})
    refusal = rest.post("tapes/t/sparse_hessian", {"targets": ["loss"], "sources": ["x"]})
    assert "another tape records" in problem(refusal, 422, "unimplemented")["detail"]


def test_a_function_has_them_too(rest: Rest) -> None:
    function = {"id": "f", "inputs": ["x"], "steps": STEPS, "outputs": ["loss"]}
    rest.create("functions", function)
    answer = rest.done("functions/f/sparse_hessian", {"inputs": [X], "fetch": ["loss"]})
    np.testing.assert_allclose(dense(answer["derivative"]), hessian())
    assert answer["values"]["loss"]["data"] == pytest.approx(2 * 1 + 3 * 4 + 0.5 * 9)
    rest.create("functions", function | {"id": "g", "outputs": ["terms", "loss"]})
    question = {"inputs": [X], "targets": ["terms"], "outputs": [None, None, "J"]}
    answer = rest.done("functions/g/sparse_jacobian", question)
    np.testing.assert_allclose(dense(answer["derivative"]), jacobian())
    assert answer["derivative"]["values"]["id"] == "J"
    assert (
        "name the one"
        in problem(rest.post("functions/g/sparse_jacobian", {"inputs": [X]}), 422, "invalid_request")["detail"]
    )


def test_as_safetensors_the_parts_are_named_by_their_places(tape: Rest) -> None:
    question = {"targets": ["loss"], "sources": ["x"], "format": "csr"}
    answer = tape.post("tapes/t/sparse_hessian", question, accept=SAFETENSORS_TYPE)
    tensors = read_file(memoryview(answer.content), copy_below=0).tensors
    parts = [tensors[f"derivative/{part}"] for part in ("values", "indices", "indptr")]
    np.testing.assert_allclose(csr_array(tuple(parts), shape=(4, 4)).toarray(), hessian())


def test_the_same_question_is_a_command(tape: Rest) -> None:
    command = {"do": "sparse_hessian", "tape": "t", "targets": ["loss"], "sources": ["x"], "outputs": ["i", "j", "H"]}
    facts, fetched = tape.done("batch", {"commands": [command, {"do": "fetch", "id": "H"}]})["results"]
    assert (facts["facts"]["vector_products"], facts["facts"]["entries"]) == (3, 9)
    assert len(fetched["value"]["data"]) == 9


def test_a_run_fetches_the_parts_or_says_why_there_are_none(rest: Rest) -> None:
    commands = [
        {"do": "variable", "id": "x", "value": X},
        {"do": "variable", "id": "unused", "value": 1.5},
        {"do": "tape.open", "id": "t", "persistent": True},
        {"do": "op", "op": "square", "inputs": ["x"], "outputs": ["y"]},
        {"do": "tape.pause", "tape": "t"},
        {"do": "sparse_jacobian", "tape": "t", "targets": ["y"], "sources": ["x"], "outputs": [None, "cols", "J"]},
        {"do": "sparse_hessian", "tape": "t", "targets": ["y"], "sources": ["unused"], "outputs": [None, None, "H"]},
    ]
    answer = rest.http.post("/v1/run", json={"commands": commands, "fetch": ["J", "cols", "H"]}).json()
    assert answer["values"]["J"]["data"] == [2.0, 4.0, 6.0, 1.0]
    assert answer["values"]["cols"]["data"] == [0, 1, 2, 3]
    assert answer["values"]["H"] is None
    assert answer["why"]["H"]["code"] == "unconnected"
