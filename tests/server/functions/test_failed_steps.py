"""What a caller reads when a step of a function, or a command of a batch, fails: which one, of what, in which line."""

from typing import Any

import pytest
from rest_client import Rest, op

from serving import ok, problem

TEXT = "p = x @ w\nd = p - y\nloss = mean(d * d)"
INPUTS = {"x": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "w": [1.0, 2.0], "y": [1.0, 2.0]}
PLACE = "step 1 (op 'sub' of 'p', 'y'; line 2, columns 5-9): Incompatible shapes: [3] vs. [2]"
REMEDY = (
    "numbers without a dtype that meet no tensor are float32, "
    'unless the function, run or session has "dtype": "float64"'
)
FACTS = {"step": 1, "op": "sub", "inputs": ["p", "y"], "function": "loss", "where": "line 2, columns 5-9"}
QUESTIONS: dict[str, Any] = {
    "call": {},
    "gradient": {},
    "value_and_gradient": {},
    "vjp": {"output_gradients": [1.0]},
    "jacobian": {},
    "hessian": {},
    "sparse_jacobian": {"sources": ["w"]},
    "check_gradients": {},
    "explain": {},
    "jvp": {"sources": ["w"], "tangents": [[1.0, 2.0]]},
    "hvp": {"sources": ["w"], "vectors": [[1.0, 2.0]]},
    "train": {"optimizer": {"name": "sgd"}, "steps": 3},
    "scan": {"inputs": [[INPUTS["x"]], INPUTS["w"], INPUTS["y"]], "captured": 2},
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_says_which_step_failed(rest: Rest, question: str) -> None:
    rest.create("functions", {"id": "loss", "text": TEXT})
    rest.create("variables", {"id": "v", "value": INPUTS["w"]})
    body = {"inputs": INPUTS | {"w": "v"} if question == "train" else INPUTS} | QUESTIONS[question]
    for _ in range(2):  # the second time a plan may run it
        fault = problem(rest.post(f"functions/loss/{question}", body), 422, "invalid_argument")
        assert fault["detail"] == f"function 'loss', {PLACE}"
        assert FACTS.items() <= fault["details"].items()


def test_a_step_in_a_function_that_another_calls_is_said_by_its_own_number(rest: Rest) -> None:
    rest.create("functions", {"id": "loss", "text": TEXT})
    steps = [{"do": "call", "function": "loss", "inputs": ["x", "w", "y"], "outputs": ["l"]}, op("exp", "l", to="e")]
    rest.create("functions", {"id": "outer", "inputs": ["x", "w", "y"], "steps": steps, "outputs": ["e"]})
    fault = problem(rest.post("functions/outer/gradient", {"inputs": INPUTS}), 422, "invalid_argument")
    assert fault["detail"] == f"function 'loss', {PLACE}"
    assert fault["details"]["function"] == "loss"


def test_an_input_of_the_wrong_dtype_is_said_by_its_names(rest: Rest) -> None:
    rest.create("functions", {"id": "sum", "inputs": ["a", "scale"], "outputs": ["y"], "steps": [
        op("square", "a", to="b"), op("mul", "b", "scale", to="y")]})  # fmt: skip
    inputs = {"a": {"dtype": "float32", "data": [1.0]}, "scale": {"dtype": "float64", "data": 2.0}}
    fault = problem(rest.post("functions/sum/call", {"inputs": inputs}), 422, "invalid_argument")
    text = "has the dtype float64, but input a ('b') has float32: cast one of them"
    assert fault["detail"] == f"function 'sum', step 1 (op 'mul' of 'b', 'scale'): input b ('scale') {text}; {REMEDY}"


def test_a_number_that_met_only_numbers_is_refused_with_the_remedy(rest: Rest) -> None:
    inputs = {"x": {"dtype": "float64", "data": [1.0, 2.0]}, "s": 1.5}
    for dtype in (None, "float64"):
        rest.create("functions", {"id": "f", "text": "a = square(s)\ny = x * a", "dtype": dtype, "replace": True})
        answer = rest.post("functions/f/call", {"inputs": inputs})
        if dtype is None:
            text = "input b ('a') has the dtype float32, but input a ('x') has float64: cast one of them"
            assert problem(answer, 422, "invalid_argument")["detail"].endswith(f"{text}; {REMEDY}")
    [value] = ok(answer).json()["values"].values()
    assert (value["dtype"], value["data"]) == ("float64", [2.25, 4.5])


@pytest.mark.parametrize(("text", "called"), [("y = A @ x", "'@'"), ("y = dot(A, x)", "op 'dot'")])
def test_a_product_that_does_not_fit_is_said_as_the_text_writes_it(rest: Rest, text: str, called: str) -> None:
    rest.create("functions", {"id": "f", "text": text})
    fault = problem(rest.post("functions/f/call", {"inputs": [[[1, 2], [3, 4]], [1, 2, 3]]}), 422, "invalid_argument")
    assert fault["detail"].startswith(f"function 'f', step 0 ({called} of 'A', 'x'; line 1, columns 5-")
    subject = "a @ b" if "@" in text else "dot"
    assert f": {subject} sums over the last axis of a and the " in fault["detail"]


@pytest.mark.parametrize("path", ["run", "batch"])
def test_a_command_of_a_batch_is_said_by_its_number_and_op(rest: Rest, path: str) -> None:
    rest.create("functions", {"id": "loss", "text": TEXT})
    call = {"do": "call", "function": "loss", "inputs": [INPUTS["x"], INPUTS["w"], INPUTS["y"]], "outputs": ["l"]}
    start = {"do": "constant", "id": "a", "value": {"dtype": "float32", "data": [1.0, 2.0]}}

    def failed(command: dict[str, Any]) -> str:
        answer = rest.post(path, {"commands": [start, command], "replace": True}).json()
        message: str = answer["detail"] if path == "run" else answer["failure"]["message"]
        return message

    doubles = {"dtype": "float64", "data": [1.0]}
    command = "command 1 (op 'mul'): " if path == "run" else "op 'mul': "
    assert failed({"do": "op", **op("mul", "a", doubles, to="b")}).startswith(
        f"{command}input b has the dtype float64, but input a ('a') has float32"
        if path == "run"
        else f"{command}input b has the dtype float64, but input a has float32"
    )
    assert failed(call).endswith(f"function 'loss', {PLACE}")
    assert failed({"do": "tape.pause", "tape": "none"}).startswith("command 1 (tape.pause): " * (path == "run"))


def test_questions_in_one_request_are_said_by_their_numbers(rest: Rest) -> None:
    rest.create("variables", {"id": "v", "value": [1.0, 2.0]})
    rest.create("tapes", {"id": "t", "persistent": True})
    ok(rest.post("tapes/t/ops", {"ops": [op("square", "v", to="s")]}))
    questions = [
        {"targets": ["s"], "sources": ["v"]},
        {"do": "hvp", "targets": ["s"], "sources": ["v"], "vectors": [[1.0]]},
    ]
    answer = rest.post("tapes/t/questions", {"questions": questions}).json()
    assert answer["detail"].startswith("question 1: ")
    assert "command" not in answer["detail"]
