"""Every null among derivatives comes with its reason: in every answer that can have one, in JSON."""

from typing import Any

import httpx
import pytest
from rest_client import Rest, op

from serving import ok

#: Questions to a tape that have a null for `x` if `y` is a constant for it, and what else they need.
QUESTIONS: dict[str, dict[str, Any]] = {
    "gradient": {},
    "jacobian": {},
    "vjps": {"output_gradients": [[1.0]]},
    "hessian": {},
    "hvp": {"vectors": [1.0]},
}


def prepared(rest: Rest, *ops: dict[str, Any], **tape: Any) -> None:
    """Variables x and z, and a tape `t` with these ops."""
    rest.create("variables", {"id": "x", "value": 2.5})
    rest.create("variables", {"id": "z", "value": 1.5})
    rest.create("tapes", {"id": "t", **tape})
    rest.done("tapes/t/ops", {"ops": list(ops)})


def the_null(derivatives: Any) -> dict[str, Any]:
    while isinstance(derivatives, list):
        [derivatives] = derivatives
    assert (derivatives["kind"], derivatives["value"]) == ("none", None)
    return derivatives["why"]  # type: ignore[no-any-return]  # JSON


ROUND = {
    "code": "non_differentiable_op",
    "message": "op 'round' is declared non-differentiable: it has no gradient",
    "op": "round",
    "where": "train.js:7",
}


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_to_a_tape_says_why_a_derivative_is_null(rest: Rest, question: str, persistent: bool) -> None:
    prepared(
        rest, op("round", "x", to="r") | {"where": "train.js:7"}, op("mul", "r", 2.0, to="y"), persistent=persistent
    )
    body = {"targets": ["y"], "sources": ["x"], **QUESTIONS[question]}
    why = the_null(rest.done(f"tapes/t/{question}", body)["derivatives"])
    assert why.pop("advice")
    assert why == ROUND


def test_several_questions_say_it_each(rest: Rest) -> None:
    prepared(rest, op("round", "x", to="r"), op("mul", "z", 2.0, to="y"))
    questions = [
        {"do": question, "targets": ["y"], "sources": ["x"], **fields} for question, fields in QUESTIONS.items()
    ]
    questions.append({"targets": ["r"], "sources": ["x"]})
    results = rest.done("tapes/t/questions", {"questions": questions})["results"]
    codes = [the_null(result["derivatives"])["code"] for result in results]
    assert codes == ["unconnected"] * len(QUESTIONS) + ["non_differentiable_op"]


def test_what_exists_has_no_reason_and_zeros_neither(rest: Rest) -> None:
    prepared(rest, op("mul", "x", 2.0, to="y"), persistent=True)
    first, second = rest.done("tapes/t/gradient", {"targets": ["y"], "sources": ["x", "z"]})["derivatives"]
    assert "why" not in first
    assert second["why"]["code"] == "unconnected"
    body = {"targets": ["y"], "sources": ["x", "z"], "unconnected": "zero"}
    assert all("why" not in each for each in rest.done("tapes/t/gradient", body)["derivatives"])


def test_second_derivatives_say_which_order_is_missing(rest: Rest) -> None:
    """y = x² + 3 z + round(w): the blocks by z exist nowhere, those by w not even in first order."""
    rest.create("variables", {"id": "w", "value": 0.5})
    prepared(
        rest,
        op("square", "x", to="a"),
        op("mul", "z", 3.0, to="b"),
        op("round", "w", to="c"),
        op("add_n", "a", "b", "c", to="y"),
        persistent=True,
    )
    sources = ["x", "z", "w"]
    blocks = rest.done("tapes/t/hessian", {"targets": ["y"], "sources": sources})["derivatives"]
    codes = [[block.get("why") and (block["why"]["code"], block["why"]["op"]) for block in row] for row in blocks]
    linear, cut = ("unconnected", None), ("non_differentiable_op", "round")
    assert codes == [[None, linear, cut], [linear, linear, cut], [cut, cut, cut]]
    assert "first derivative" in blocks[1][1]["why"]["message"]
    body = {"targets": ["y"], "sources": sources, "vectors": [1.0, 1.0, 1.0]}
    products = rest.done("tapes/t/hvp", body)["derivatives"]
    assert [each.get("why") and (each["why"]["code"], each["why"]["op"]) for each in products] == [None, linear, cut]


def test_a_functions_gradient_says_it(rest: Rest) -> None:
    steps = [op("floor", "a", to="f"), op("mul", "f", "b", to="y")]
    rest.create("functions", {"id": "f", "inputs": ["a", "b"], "steps": steps, "outputs": ["y"]})
    for _ in range(5):  # also when the request is one that the session knows
        a, b = rest.done("functions/f/gradient", {"inputs": [1.5, 2.5]})["derivatives"]
        assert (a["why"]["code"], a["why"]["op"]) == ("non_differentiable_op", "floor")
        assert "why" not in b


def test_run_says_it_by_id(http: httpx.Client) -> None:
    commands = [
        {"do": "variable", "id": "x", "value": 2.5},
        {"do": "variable", "id": "w", "value": 2.5},
        {"do": "tape.open", "id": "t"},
        {"do": "op", "op": "round", "inputs": ["x"], "outputs": ["y"], "where": "main.go:12"},
        {"do": "gradient", "tape": "t", "targets": ["y"], "sources": ["x", "w"], "outputs": ["dx", "dw"]},
    ]
    answer = ok(http.post("/v1/run", json={"commands": commands, "fetch": ["dx", "y"]})).json()
    assert (answer["values"]["dx"], set(answer["why"])) == (None, {"dx"})
    assert {name: answer["why"]["dx"][name] for name in ("code", "op", "where")} == {
        "code": "non_differentiable_op",
        "op": "round",
        "where": "main.go:12",
    }


def test_forward_mode_says_it_too(http: httpx.Client) -> None:
    def run(*ops: dict[str, Any], opened: int = 0) -> dict[str, Any]:
        accumulator = {"do": "accumulator.open", "id": "a", "primals": ["x"], "tangents": [1.0]}
        commands = [
            {"do": "variable", "id": "x", "value": 2.5},
            *[{"do": "op", "attrs": {}} | each for each in ops[:opened]],
            accumulator,
            *[{"do": "op", "attrs": {}} | each for each in ops[opened:]],
            {"do": "jvp", "accumulator": "a", "targets": ["y"], "outputs": ["dy"]},
        ]
        return ok(http.post("/v1/run", json={"commands": commands, "fetch": ["dy"]})).json()  # type: ignore[no-any-return]

    mul = op("mul", "x", "x", to="m")
    cases = [
        (run(mul, op("round", "m", to="r"), op("add", "r", 1.0, to="y")), "non_differentiable_op", "round"),
        (run(mul, op("cast", "m", to="y", dtype="int32")), "target_dtype", None),
        (run(op("fill", 1.5, to="y", shape=[2])), "unconnected", None),
        (run(mul, op("neg", "m", to="y"), opened=1), "computed_while_stopped", "mul"),
    ]
    for answer, code, culprit in cases:
        assert answer["values"] == {"dy": None}
        assert (answer["why"]["dy"]["code"], answer["why"]["dy"]["op"]) == (code, culprit)


def test_a_pass_that_stops_at_custom_calls_says_it(http: httpx.Client) -> None:
    commands = [
        {"do": "variable", "id": "x", "value": 3.5},
        {"do": "tape.open", "id": "t"},
        {"do": "op", "op": "identity", "inputs": ["x"], "outputs": ["y"]},
        {"do": "custom", "inputs": ["x"], "outputs": ["y"], "tag": "mine"},
        {"do": "backward.begin", "id": "b", "tape": "t", "targets": ["y"], "sources": ["x"]},
        {"do": "backward.resume", "id": "b", "cotangents": [None]},
        {"do": "backward.end", "id": "b", "outputs": ["dx"]},
    ]
    answer = ok(http.post("/v1/run", json={"commands": commands, "fetch": ["dx"]})).json()
    assert answer["values"] == {"dx": None}
    assert answer["why"]["dx"]["code"] == "custom_none"


def test_json_batches_say_it_and_repeat_it(rest: Rest) -> None:
    rest.create("variables", {"id": "x", "value": 2.5})
    for number in range(6):  # a structure that comes again may run as a plan: with the reason, or without a null
        commands = [
            {"do": "tape.open", "id": f"t{number}"},
            {"do": "op", "op": "round", "inputs": ["x"], "outputs": [f"y{number}"]},
            {"do": "gradient", "tape": f"t{number}", "targets": [f"y{number}"], "sources": ["x"], "outputs": [None]},
        ]
        [kinds] = rest.done("batch", {"commands": commands})["results"]
        assert kinds["kinds"] == ["none"]
        assert [why["code"] for why in kinds["why"]] == ["non_differentiable_op"]


def test_the_advice_names_the_field_of_the_request(rest: Rest) -> None:
    prepared(rest, op("mul", "z", 2.0, to="y"))
    [derivative] = rest.done("tapes/t/gradient", {"targets": ["y"], "sources": ["x"]})["derivatives"]
    assert '"unconnected": "zero"' in derivative["why"]["advice"]
    assert "unconnected_gradients" not in derivative["why"]["advice"]
