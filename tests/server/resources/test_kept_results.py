"""Which results of a request stay, and under which ids: scratch, keep, replace, and reset with release_outputs."""

from typing import Any

import pytest
from rest_client import Rest, op

from serving import ok, problem

ONE_TO_THREE = {"dtype": "float32", "data": [1, 2, 3]}
RAW = "application/octet-stream"


def ids(rest: Rest, collection: str = "tensors") -> list[str]:
    return [each["id"] for each in ok(rest.get(collection)).json()[collection]]


@pytest.fixture
def w(rest: Rest) -> Rest:
    """The session with a variable w, a function f and a persistent tape t."""
    rest.create("variables", {"id": "w", "value": ONE_TO_THREE})
    rest.create("tapes", {"id": "t", "persistent": True})
    rest.create("functions", {"id": "f", "inputs": ["x"], "steps": [op("square", "x", to="y")], "outputs": ["y"]})
    return rest


REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "ops": ("ops", {"ops": [op("square", "w", to="a"), op("neg", "a", to="b")]}),
    "ops of a tape": ("tapes/t/ops", {"ops": [op("square", "w", to="a"), op("neg", "a", to="b")]}),
    "a call": ("functions/f/call", {"inputs": ["w"], "outputs": ["b"]}),
    "a call on a tape": ("functions/f/call", {"inputs": ["w"], "outputs": ["b"], "tape": "t"}),
    "a while loop": (
        "functions/f/while",
        {
            "inputs": [1.5],
            "outputs": ["b"],
            "cond": {"inputs": ["x"], "steps": [op("less", "x", 100.5, to="more")], "outputs": ["more"]},
        },
    ),
    "a scan": ("functions/f/scan", {"inputs": [[1.5, 2.5]], "outputs": ["b"]}),
}


# ------------------------------------------------------------------------------------------------------- scratch, keep
def test_results_end_with_the_request_but_for_those_in_keep(w: Rest) -> None:
    for place, body in REQUESTS.values():
        shown = w.done(place, body | {"scratch": True})
        assert list(shown["values"]) == ["b"]
        assert shown["outputs"] == []
        assert ids(w) == []
        again = w.done(place, body | {"keep": ["b"]})
        assert again["values"] == shown["values"]
        assert [output["id"] for output in again["outputs"]] == ["b"] == ids(w)
        w.done(place, body | {"keep": [], "replace": True, "scratch": True})
        assert ids(w) == []


def test_ids_that_nobody_chose_end_too(w: Rest) -> None:
    shown = w.done("ops", {"ops": [op("square", "w"), op("neg", "w", to="b")], "keep": ["b"], "fetch": ["b", "w"]})
    assert sorted(shown["values"]) == ["b", "w"]
    assert ids(w) == ["b"]


def test_a_tape_keeps_what_it_needs_of_scratch_results(w: Rest) -> None:
    w.done("tapes/t/ops", {"ops": [op("exp", "w", to="e"), op("reduce_sum", "e", to="loss")], "keep": ["loss"]})
    [dw] = w.done("tapes/t/gradient", {"targets": ["loss"], "sources": ["w"]})["derivatives"]
    assert dw["value"]["data"] == pytest.approx([2.718282, 7.389056, 20.085537])


def test_scratch_results_end_also_if_an_op_fails(w: Rest) -> None:
    ops = [op("square", "w", to="a"), op("matmul", "a", "a", to="b")]
    problem(w.post("ops", {"ops": ops, "scratch": True}), 422, "invalid_argument")
    assert ids(w) == []


# ------------------------------------------------------------------------------------------------------------- replace
def test_the_same_request_again_replaces_its_results_when_asked(w: Rest) -> None:
    for place, body in REQUESTS.values():
        first = w.done(place, body | {"replace": True})
        refusal = problem(w.post(place, body), 409, "id_in_use")
        assert "`replace`" in refusal["detail"]
        assert w.done(place, body | {"replace": True})["values"] == first["values"]
        w.delete("tensors/b")
        problem(w.post(place, body | {"replace": False}), 409, "id_in_use")
        assert w.done(place, body | {"replace": True})["values"] == first["values"]


def test_a_result_may_replace_its_own_input(w: Rest) -> None:
    w.create("tensors", {"id": "z", "value": 1.5})
    for _ in range(3):
        z = w.done("ops", {"ops": [op("add", "z", "z", to="z"), op("neg", "z", to="z")], "replace": True})
    assert z["values"]["z"]["data"] == -12
    assert [output["id"] for output in z["outputs"]] == ["z"] == ids(w)


CREATIONS: dict[str, dict[str, Any]] = {
    "tensors": {"id": "new", "value": 1.5},
    "variables": {"id": "new", "value": 1.5},
    "tapes": {"id": "new"},
    "functions": {"id": "new", "inputs": ["x"], "steps": [op("neg", "x", to="y")], "outputs": ["y"]},
}


def test_what_is_created_again_replaces_what_there_was_when_asked(rest: Rest) -> None:
    for collection, body in CREATIONS.items():
        rest.create(collection, body | {"replace": True})
        problem(rest.post(collection, body), 409, "id_in_use")
        rest.create(collection, body | {"replace": True})
        assert ids(rest, collection) == ["new"]
        for other in CREATIONS.keys() - {collection}:
            refusal = problem(rest.post(other, CREATIONS[other] | {"replace": True}), 409, "id_in_use")
            assert "only its own kind" in refusal["detail"]
        rest.delete(f"{collection}/new")
        problem(rest.post(collection, body), 409, "id_in_use")


def test_bytes_replace_too(rest: Rest) -> None:
    headers = {"Content-Type": RAW, "Tensor-Dtype": "float32", "Tensor-Shape": "1"}
    for collection, id in (("tensors", "x"), ("variables", "v")):
        for content, query, status in (
            (b"\0\0\x80?", "", 201),
            (b"\0\0\0@", "", 409),
            (b"\0\0\0@", "&replace=true", 201),
        ):
            path = f"{rest.path}/{collection}?id={id}{query}"
            assert rest.http.post(path, content=content, headers=headers).status_code == status
        assert rest.data(f"{collection}/{id}") == [2]


def test_a_variable_is_no_result(w: Rest) -> None:
    refusal = problem(w.post("ops", {"ops": [op("neg", "w", to="w")], "replace": True}), 409, "id_in_use")
    assert "assign to it" in refusal["detail"]
    assert w.data("variables/w") == [1, 2, 3]


def test_derivatives_replace_those_of_the_step_before(w: Rest) -> None:
    w.done("tapes/t/ops", {"ops": [op("square", "w", to="y"), op("round", "w", to="cut")]})
    question: dict[str, Any] = {"targets": ["y"], "sources": ["w"], "outputs": ["dw"]}
    w.done("tapes/t/gradient", question)
    problem(w.post("tapes/t/gradient", question), 409, "id_in_use")
    jacobian = question | {"replace": True}
    w.done("tapes/t/jacobian", jacobian)
    assert w.data("tensors/dw") == [[2, 0, 0], [0, 4, 0], [0, 0, 6]]
    w.done("tapes/t/questions", {"questions": [question | {"replace": True}]})
    assert w.data("tensors/dw") == [2, 4, 6]
    [none] = w.done("tapes/t/gradient", question | {"targets": ["cut"], "replace": True})["derivatives"]
    assert (none["kind"], none["id"], none["why"]["code"]) == ("none", None, "non_differentiable_op")
    problem(w.get("tensors/dw"), 410, "released_id")  # and not the gradient of the step before


def test_derivatives_of_functions_replace_too(w: Rest) -> None:
    direction = [[1.5, 0.5, 0.5]]
    questions: dict[str, dict[str, Any]] = {
        "gradient": {},
        "value_and_gradient": {},
        "jacobian": {},
        "hessian": {"outputs": [["d"]]},
        "hvp": {"vectors": direction},
        "vjp": {"output_gradients": direction},
        "jvp": {"tangents": direction},
    }
    w.create("tensors", {"id": "d", "value": 1.5})
    for question, fields in questions.items():
        body = {"inputs": ["w"], "outputs": ["d"], **fields}
        problem(w.post(f"functions/f/{question}", body), 409, "id_in_use")
        answer = w.done(f"functions/f/{question}", body | {"replace": True})["derivatives"][0]
        assert w.data("tensors/d") == (answer[0] if question == "hessian" else answer)["value"]["data"]
    assert ids(w) == ["d"]


def test_questions_of_one_request_need_ids_of_their_own(w: Rest) -> None:
    w.done("tapes/t/ops", {"ops": [op("square", "w", to="y")]})
    question = {"targets": ["y"], "sources": ["w"], "outputs": ["d"], "replace": True}
    refusal = problem(w.post("tapes/t/questions", {"questions": [question, question]}), 409, "id_in_use")
    assert "'d' is given to two derivatives" in refusal["detail"]
    assert ids(w) == ["y"]
    w.create("tensors", {"id": "taken", "value": 1.5})
    others = {"targets": ["y"], "sources": ["w"], "outputs": ["taken"]}
    problem(w.post("tapes/t/questions", {"questions": [question, others]}), 409, "id_in_use")
    assert ids(w) == ["y", "taken"]


def test_a_retry_with_a_key_does_not_replace_twice(w: Rest) -> None:
    w.create("tensors", {"id": "z", "value": 1.5})
    body = {"ops": [op("add", "z", "z", to="z")], "replace": True}
    answers = [w.post("ops", body, **{"Idempotency-Key": "one"}) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert answers[1].headers["idempotent-replayed"] == "true"
    assert w.data("tensors/z") == 3


def test_a_poisoned_id_can_be_written_again(w: Rest) -> None:
    commands = [{"do": "fetch", "id": "nobody"}, {"do": "op", "op": "neg", "inputs": ["w"], "outputs": ["p"]}]
    w.done("batch", {"commands": commands})
    problem(w.get("tensors/p"), 409, "poisoned")
    w.done("ops", {"ops": [op("neg", "w", to="p")], "replace": True})
    assert w.data("tensors/p") == [-1, -2, -3]


def test_the_etag_of_a_variable_in_the_place_of_another_is_another(rest: Rest) -> None:
    tags = []
    for value in (1.5, 2.5):
        rest.create("variables", {"id": "v", "value": value, "replace": True})
        tags.append(rest.get("variables/v").headers["etag"])
    assert tags[0] != tags[1]
    assert rest.put("variables/v", {"value": 3.5}, **{"If-Match": tags[0]}).status_code == 412


# --------------------------------------------------------------------------------------------------------------- reset
def test_a_reset_ends_what_requests_on_the_tape_left_when_asked(w: Rest) -> None:
    w.create("tensors", {"id": "x", "value": ONE_TO_THREE})
    step = {"ops": [op("neg", "x", to="unwatched"), op("mul", "w", "unwatched", to="y")]}
    for _ in range(2):
        w.done("tapes/t/ops", step)
        w.done("functions/f/call", {"inputs": ["w"], "outputs": ["called"], "tape": "t"})
        w.done("tapes/t/gradient", {"targets": ["y"], "sources": ["w"], "outputs": ["dw"]})
        assert ids(w) == ["x", "unwatched", "y", "called", "dw"]
        assert w.done("tapes/t/reset", {"release_outputs": True})["ops"] == 0
        assert ids(w) == ["x"]
    w.done("tapes/t/ops", step)
    ok(w.post("tapes/t/reset", {}))
    assert ids(w) == ["x", "unwatched", "y"]
    w.done("tapes/t/reset")


def test_a_reset_leaves_what_took_the_place_of_an_output(w: Rest) -> None:
    w.done("tapes/t/ops", {"ops": [op("neg", "w", to="a"), op("neg", "w", to="b"), op("neg", "w", to="c")]})
    w.create("tensors", {"id": "a", "value": 1.5, "replace": True})
    w.delete("tensors/b")
    w.create("variables", {"id": "b", "value": 1.5, "replace": True})
    w.done("tapes/t/reset", {"release_outputs": True})
    assert (ids(w), ids(w, "variables")) == (["a"], ["w", "b"])


# ----------------------------------------------------------------------------------------------------------- bad input
OPS = {"ops": [op("neg", "w", to="y")]}


WRONG: list[tuple[str, Any, list[str]]] = [
    ("ops", OPS | {"scratch": "yes"}, ["scratch", "true or false", "yes"]),
    ("ops", OPS | {"scratch": ["y"]}, ["scratch", "true or false"]),
    ("ops", OPS | {"keep": "y"}, ["keep", "list"]),
    ("ops", OPS | {"keep": ["loss"]}, ["keep", "results (y)", "found loss"]),
    ("ops", OPS | {"keep": [None]}, ["keep.0"]),
    ("ops", OPS | {"keep": ["1"]}, ["keep.0"]),
    ("ops", {"ops": [op("neg", "w")], "keep": ["y"]}, ["keep", "none has an id of yours", "found y"]),
    ("ops", OPS | {"replace": 1}, ["replace", "true or false"]),
    ("functions/f/call", {"inputs": ["w"], "keep": ["y"]}, ["keep", "found y"]),
    ("functions/f/scan", {"inputs": ["w"], "keep": ["y"]}, ["keep", "found y"]),
    ("tapes/t/ops", OPS | {"kept": []}, ["kept"]),
    ("tapes/t/gradient", {"targets": ["w"], "sources": ["w"], "replace": None}, ["replace"]),
    ("tapes/t/reset", {"release_outputs": "all"}, ["release_outputs", "true or false"]),
    ("tapes/t/reset", {"release": True}, ["release"]),
    ("tapes/t/reset", [], ["object"]),
    ("tensors", {"id": "x", "value": 1.5, "replace": "x"}, ["replace", "true or false"]),
]


def test_fields_that_cannot_be(w: Rest) -> None:
    for place, body, words in WRONG:
        refusal = problem(w.post(place, body), 422, "invalid_request")
        for word in words:
            assert word in refusal["detail"]
        assert ids(w) == []
