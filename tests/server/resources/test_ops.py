"""/ops: results, failures in the middle, the catalogue."""

from typing import Any

import httpx
import pytest
from rest_client import Rest, op

from serving import ok, problem

ONE_TO_THREE = {"dtype": "float32", "data": [1, 2, 3]}


def test_what_stands_before_a_failure_stands_and_the_other_ids_stay_free(rest: Rest) -> None:
    rest.create("variables", {"id": "w", "value": ONE_TO_THREE})
    rest.create("tapes", {"id": "t", "persistent": True})
    ops = [
        op("neg", "w", to="a"),
        {**op("mul", "w", [1.5, 2.5], to="b"), "where": "train.py:7"},
        op("neg", "b", to="c"),
    ]
    refusal = problem(rest.post("tapes/t/ops", {"ops": ops}), 422, "invalid_argument")
    assert refusal["details"] == {"command": 1, "op": "mul", "inputs": ["w", None], "where": "train.py:7"}
    assert "[3] vs. [2]" in refusal["detail"]
    assert rest.data("tensors/a") == [-1, -2, -3]
    problem(rest.get("tensors/b"), 404, "unknown_id")
    assert ok(rest.get("tapes/t")).json()["recording"] is False
    rest.done("tapes/t/ops", {"ops": [op("mul", "w", "w", to="b"), op("neg", "b", to="c")]})
    [dw] = rest.done("tapes/t/gradient", {"targets": ["c"], "sources": ["w"]})["derivatives"]
    assert dw["value"]["data"] == [-2, -4, -6]


@pytest.mark.parametrize(
    ("call", "status", "code", "text"),
    [
        (op("sigmoyd", "w"), 422, "unknown_op", "sigmoid"),
        (op("reduce_sum", "w", axes=0), 422, "bad_attribute", "axis"),
        (op("reduce_sum", "w", axis="first"), 422, "bad_attribute", "axis"),
        (op("add", "w"), 422, "invalid_argument", "2 inputs"),
        (op("matmul", "w", "w"), 422, "invalid_argument", ""),
        (op("add", "w", {"dtype": "float64", "data": [1, 2, 3]}), 422, "invalid_argument", "float"),
        (op("add", "w", "nobody"), 404, "unknown_id", "nobody"),
        (op("add", "w", "gone"), 410, "released_id", "gone"),
        (op("add", "w", "tape"), 422, "invalid_argument", "a tape"),
        (op("add", "w", {"data": [[1], [2, 3]]}), 422, "invalid_argument", "same length"),
        (op("add", "w", {"data": ["one"]}), 422, "invalid_argument", "one"),
        (op("fill", 1.5, shape=[10**6, 10**6]), 507, "resource_exhausted", "bytes"),
    ],
)
def test_ops_that_cannot_be(rest: Rest, call: dict[str, Any], status: int, code: str, text: str) -> None:
    rest.create("variables", {"id": "w", "value": ONE_TO_THREE})
    rest.create("tensors", {"id": "gone", "value": 1.5})
    rest.create("tapes", {"id": "tape"})
    rest.delete("tensors/gone")
    refusal = problem(rest.post("ops", {"ops": [call | {"outputs": ["y"]}]}), status, code)
    assert text in refusal["detail"]
    rest.done("ops", {"ops": [op("neg", "w", to="y")]})


def test_an_op_of_several_results_has_an_id_for_each(rest: Rest) -> None:
    matrix = {"dtype": "float64", "data": [[2, 0], [0, 1]]}
    named = rest.done("ops", {"ops": [op("eigh", matrix) | {"outputs": ["e", "v"]}], "fetch": ["e"]})
    assert [(result["id"], result["shape"]) for result in named["outputs"]] == [("e", [2]), ("v", [2, 2])]
    assert named["values"]["e"]["data"] == [1, 2]
    generated = rest.done("ops", {"ops": [{"op": "linalg.eigh", "inputs": [matrix]}]})
    assert [result["shape"] for result in generated["outputs"]] == [[2], [2, 2]]
    refusal = problem(rest.post("ops", {"ops": [op("eigh", matrix, to="f")]}), 422, "invalid_argument")
    assert "2 outputs (values, vectors), found 1 ids" in refusal["detail"]


def test_only_what_is_asked_for_is_fetched(rest: Rest) -> None:
    rest.create("tensors", {"id": "x", "value": ONE_TO_THREE})
    both = {"ops": [op("neg", "x", to="a"), op("square", "x", to="b")], "fetch": ["x", "a"]}
    assert {name: entry["data"] for name, entry in rest.done("ops", both)["values"].items()} == {
        "x": [1, 2, 3],
        "a": [-1, -2, -3],
    }
    assert rest.done("ops", {"ops": [op("neg", "x")], "fetch": []})["values"] == {}
    problem(rest.post("ops", {"ops": [op("neg", "x", to="c")], "fetch": ["nobody"]}), 404, "unknown_id")
    problem(rest.get("tensors/c"), 404, "unknown_id")  # nothing was done


def test_the_catalogue_is_reported(http: httpx.Client) -> None:
    def names(**query: str) -> set[str]:
        return {entry["name"] for entry in ok(http.get("/v1/ops", params=query)).json()["ops"]}

    assert len(names()) > 100
    assert "matmul" in names(name="MAT")
    assert "mul" not in names(name="mat")
    assert {"equal", "argmax"} < names(differentiable="false")
    assert names(differentiable="false") | names(differentiable="true") == names()
    assert names(differentiable="false") & names(differentiable="true") == set()
    mul = ok(http.get("/v1/ops/mul")).json()
    first, second = mul["inputs"]
    assert mul["gradients"][first] == {"kind": "dense", "keeps": [second]}
    assert mul["tensorflow"][0].startswith("tf.")
    assert "softmax" in problem(http.get("/v1/ops/softmacks"), 404, "not_found")["detail"]


@pytest.mark.parametrize("name", ["add", "AddV2", "math.add", "tf.add", "tf.raw_ops.AddV2"])
def test_tensorflows_names_are_accepted_and_ours_are_answered(rest: Rest, name: str) -> None:
    assert ok(rest.http.get(f"/v1/ops/{name}")).json()["name"] == "add"
    listed = ok(rest.http.get("/v1/ops", params={"name": name.rpartition(".")[2]})).json()["ops"]
    assert "add" in [facts["name"] for facts in listed]
    rest.create("tensors", {"id": "x", "value": [1.0, 2.0]})
    rest.done("ops", {"ops": [op(name, "x", "x", to="y")]})
    assert rest.data("tensors/y") == [2.0, 4.0]
    rest.create("functions", {"id": "f", "inputs": ["a"], "steps": [op(name, "a", "a", to="b")], "outputs": ["b"]})
    assert [step["op"] for step in ok(rest.get("functions/f")).json()["steps"]] == ["add"]
