"""/tapes: what they record, their gradients, parents and sparse gradients."""

import pytest
from rest_client import RAW, Rest, op

from serving import ok, problem

ONE_TO_THREE = {"dtype": "float32", "data": [1, 2, 3]}


def test_a_tape_records_its_own_ops_alone_and_answers_again_and_again(rest: Rest) -> None:
    rest.create("variables", {"id": "w", "value": ONE_TO_THREE})
    rest.create("tapes", {"id": "t", "persistent": True})
    rest.done("ops", {"ops": [op("square", "w", to="unrecorded")]})
    answer = rest.done("tapes/t/ops", {"ops": [op("square", "w"), op("square", "w", to="y")]})
    assert [output["shape"] for output in answer["outputs"]] == [[3], [3]]
    assert answer["values"] == {"y": {"dtype": "float32", "shape": [3], "data": [1, 4, 9]}}
    for _ in range(2):
        [dw] = rest.done("tapes/t/gradient", {"targets": ["y"], "sources": ["w"]})["derivatives"]
        assert dw == {
            "source": "w",
            "kind": "dense",
            "id": None,
            "value": {"dtype": "float32", "shape": [3], "data": [2, 4, 6]},
        }
    [none] = rest.done("tapes/t/gradient", {"targets": ["unrecorded"], "sources": ["w"]})["derivatives"]
    assert (none["kind"], none["value"]) == ("none", None)
    [zero] = rest.done("tapes/t/gradient", {"targets": ["unrecorded"], "sources": ["w"], "unconnected": "zero"})[
        "derivatives"
    ]
    assert zero["value"]["data"] == [0, 0, 0]
    facts = ok(rest.get("tapes/t")).json()
    assert (facts["watched_variables"], facts["recording"]) == (["w"], False)
    rest.done("tapes/t/reset")
    assert ok(rest.get("tapes/t")).json()["ops"] == 0


def test_a_watched_tensor_and_weights_for_the_targets(rest: Rest) -> None:
    rest.create("tensors", {"id": "x", "value": ONE_TO_THREE})
    rest.create("tapes", {"id": "t"})
    rest.done("tapes/t/watch", {"tensors": ["x"]})
    rest.done("tapes/t/ops", {"ops": [op("square", "x", to="y"), op("neg", "x", to="z")]})
    question = {"targets": ["y", "z"], "sources": ["x"], "output_gradients": [ONE_TO_THREE, None], "outputs": ["dx"]}
    [dx] = rest.done("tapes/t/gradient", question)["derivatives"]
    assert (dx["id"], dx["value"]["data"]) == ("dx", [1, 7, 17])
    assert rest.data("tensors/dx") == [1, 7, 17]
    refusal = problem(rest.post("tapes/t/gradient", question | {"outputs": ["again"]}), 409, "tape_consumed")
    assert "non-persistent" in refusal["detail"]
    problem(rest.post("tapes/t/ops", {"ops": [op("neg", "x")]}), 409, "tape_consumed")
    problem(rest.post("tapes/t/reset", None), 409, "tape_consumed")


def test_a_parent_gives_the_second_derivative(rest: Rest) -> None:
    rest.create("variables", {"id": "x", "value": 2.5})
    rest.create("tapes", {"id": "outer"})
    assert rest.create("tapes", {"id": "inner", "parents": ["outer"]})["parents"] == ["outer"]
    cube = [op("square", "x", to="x2"), op("mul", "x2", "x", to="y")]
    rest.done("tapes/inner/ops", {"ops": cube})
    [first] = rest.done("tapes/inner/gradient", {"targets": ["y"], "sources": ["x"], "outputs": ["dy"]})["derivatives"]
    assert first["value"]["data"] == pytest.approx(3 * 2.5**2)
    [second] = rest.done("tapes/outer/gradient", {"targets": ["dy"], "sources": ["x"]})["derivatives"]
    assert second["value"]["data"] == pytest.approx(6 * 2.5)


def test_a_sparse_gradient_shows_rows_and_indices(rest: Rest) -> None:
    rest.create("variables", {"id": "table", "value": {"dtype": "float32", "shape": [4, 2], "data": [1] * 8}})
    rest.create("tapes", {"id": "t"})
    rest.done("tapes/t/ops", {"ops": [op("gather", "table", [3, 1], to="rows")]})
    question = {"targets": ["rows"], "sources": ["table"], "outputs": ["d"]}
    [derivative] = rest.done("tapes/t/gradient", question)["derivatives"]
    assert derivative["kind"] == "slices"
    assert derivative["value"]["indices"]["data"] == [3, 1]
    assert derivative["value"]["values"]["data"] == [[1, 1], [1, 1]]
    assert ok(rest.get("tensors/d")).json()["kind"] == "slices"
    assert "sparse" in problem(rest.get("tensors/d", Accept=RAW), 422, "invalid_argument")["detail"]


def test_an_op_without_a_gradient_is_named(rest: Rest) -> None:
    rest.create("variables", {"id": "image", "value": {"dtype": "float32", "shape": [2, 2, 3], "data": [0.5] * 12}})
    rest.create("tapes", {"id": "t"})
    rest.done("tapes/t/ops", {"ops": [op("adjust_contrast", "image", 2.5, to="y")]})
    response = rest.post("tapes/t/gradient", {"targets": ["y"], "sources": ["image"]})
    assert "AdjustContrast" in problem(response, 422, "no_gradient_registered")["detail"]


def test_a_tape_that_a_program_records_on_is_left_alone(rest: Rest) -> None:
    rest.create("variables", {"id": "w", "value": 1.5})
    rest.create("tapes", {"id": "mine", "parents": []})
    ok(rest.post("batch", {"commands": [{"do": "tape.open", "id": "theirs"}]}))
    for place, body in (
        ("ops", {"ops": [op("neg", "w")]}),
        ("gradient", {"targets": ["w"], "sources": ["w"]}),
        ("reset", None),
    ):
        problem(rest.post(f"tapes/theirs/{place}", body), 409, "tape_state")
    assert ok(rest.get("tapes/theirs")).json()["recording"] is True
    rest.create("tapes", {"id": "child", "parents": ["theirs"]})
    problem(rest.post("tapes/child/ops", {"ops": [op("neg", "w", to="n")]}), 409, "tape_state")
    assert ok(rest.get("tapes/theirs")).json()["recording"] is True
    assert ok(rest.get("tapes/theirs")).json()["ops"] == 0
