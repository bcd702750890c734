"""Expressions: a text means what Python computes for it, and a fault says where it is and what would be right."""

import asyncio
import math
import threading
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from serving import ok, problem
from teletape_engine.catalogue.op import CATALOGUE
from teletape_server.expressions.compiled import Compiled
from teletape_server.expressions.functions import FORMULAS
from teletape_server.expressions.parse_queue import MOST, MOST_PER_KEY, ParseQueue
from teletape_server.expressions.parser import MOST_CHARACTERS, MOST_DEPTH, parse
from teletape_server.problems import Problem

X = np.array([[0.5, -1.5], [2.5, 3.5]])
Y = np.array([[1.5, 0.25], [-0.5, 2.0]])


def run(text: str, **inputs: Any) -> Any:
    """The last output of the text's function, computed by the ops themselves on float64."""
    function = parse(text, "float64")
    values: dict[str, Any] = {**{name: array(value) for name, value in function.values.items()}, **inputs}
    assert set(function.inputs) <= set(values)
    for step in function.steps:
        operands = [array(operand, values) for operand in step["inputs"]]
        op = CATALOGUE[step["op"]]
        computed = op.forward(np, *operands, **op.attrs(step.get("attrs", {})))
        results = computed if isinstance(computed, tuple) else (computed,)
        values |= dict(zip(step["outputs"], results, strict=True))
    return values[function.outputs[-1]]


def array(value: Any, values: dict[str, Any] | None = None) -> Any:
    if isinstance(value, str):
        return (values or {})[value]
    if isinstance(value, dict) and "dtype" in value:
        numbers = np.array(value["data"], value["dtype"])
        return numbers.reshape(value["shape"]).astype(np.float64 if value["dtype"] == "float32" else value["dtype"])
    return float(value["number"]) if isinstance(value, dict) else np.float64(value)


# ------------------------------------------------------------------------------------------------------ random formulas
LEAVES = st.sampled_from(["x", "y", "x.T", "[[1, 2], [0.5, 4]]"]) | st.integers(1, 9).map(str) | st.just("0.25")
UNARY = st.sampled_from(["-{}", "+{}", "sin({})", "tanh({})", "exp(-abs({}))", "({}) ** 2", "(({}))", "square({})"])
BINARY = st.sampled_from(["{} + {}", "{} - {}", "{} * {}", "{} / (1 + abs({}))", "maximum({}, {})", "({}) @ x * ({})"])
RANDOM_FORMULAS = st.recursive(
    LEAVES,
    lambda parts: (
        st.builds(lambda form, part: form.format(part), UNARY, parts)
        | st.builds(lambda form, left, right: form.format(left, right), BINARY, parts, parts)
    ),
    max_leaves=12,
)
PYTHON = {
    "x": X,
    "y": Y,
    "sin": np.sin,
    "tanh": np.tanh,
    "exp": np.exp,
    "abs": np.abs,
    "maximum": np.maximum,
    "square": np.square,
}


@given(RANDOM_FORMULAS)
@settings(max_examples=100)
def test_a_formula_means_what_it_means_in_python(formula: str) -> None:
    formula = formula if "x" in formula else f"{formula} + x"
    if "(2) @" in formula or any(f"({number}) @" in formula for number in (*range(1, 10), "0.25")):
        formula = formula.replace("@", "*")  # no matrix product with a number
    python = formula.replace("[[1, 2], [0.5, 4]]", "array([[1, 2], [0.5, 4]])")
    try:
        expected = eval(python, {**PYTHON, "array": np.array})  # noqa: S307  # of a text that this test has written
    except ValueError:
        return  # a matrix product with a number
    np.testing.assert_allclose(run(f"z = {formula}", x=X, y=Y), expected, rtol=1e-9, atol=1e-9)


@given(st.text(alphabet="xy 12.()[]+-*/@=,:;#\n\"'<>sin", max_size=60))
@settings(max_examples=150)
def test_any_text_is_a_function_or_a_problem_in_it(text: str) -> None:
    function, fault = function_or_fault(text)
    if fault is not None:
        details = fault.details
        in_order = 0 <= details["start"] <= details["end"] <= len(text)
        assert (fault.code, in_order) == ("invalid_expression", True)
        assert fault.detail.startswith(f"line {details['line']}, column")
    if function is not None:
        known = set(function.inputs)
        for step in function.steps:
            assert {operand for operand in step["inputs"] if isinstance(operand, str)} <= known
            known |= set(step["outputs"])
        assert function.outputs
        assert set(function.outputs) <= known


def function_or_fault(text: str) -> tuple[Compiled | None, Problem | None]:
    try:
        return parse(text), None
    except Problem as fault:
        return None, fault


# -------------------------------------------------------------------------------------------------------- the language
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-x ** 2", -(X**2)),
        ("2 ** -1 * x", X / 2),
        ("2 ** 3 ** 2 + 0 * x", X * 0 + 512),
        ("x - y - x", X - Y - X),
        ("x @ y.T", X @ Y.T),
        ("sum(x, axis=0)", X.sum(0)),
        ("sum(x, 0, true)", X.sum(0, keepdims=True)),
        ("mean(x)", X.mean()),
        ("max(x)", X.max()),
        ("max(x, y)", np.maximum(X, Y)),
        ("x[0]", X[0]),
        ("x[0, 1]", X[0, 1]),
        ("x[:, 0]", X[:, 0]),
        ("x[..., ::-1]", X[..., ::-1]),
        ("x[1:, None, :1]", X[1:, None, :1]),
        ("gather(x, [1, 0])", X[[1, 0]]),
        ("where(x > 0 and not (x > 3), x, 0)", np.where((X > 0) & ~(X > 3), X, 0)),
        ("[x[0, 0], 2, sum(y)]", np.array([X[0, 0], 2, Y.sum()])),
        ("[[x[0, 0], 1], [2, 3]]", np.array([[X[0, 0], 1], [2, 3]])),
        ("concat([x, y], axis=1)", np.concatenate([X, Y], 1)),
        ("concat(x, y, axis=1)", np.concatenate([X, Y], 1)),
        ("reshape(x, [4])", X.reshape(4)),
        ('einsum("ij,kj->ik", x, y)', np.einsum("ij,kj->ik", X, Y)),
        ("a = x * 2\na = a + 1\nb = a * a", (X * 2 + 1) ** 2),
        ("a = x; a", X),
        ("x # the input\n\n", X),
        ("sin(\n  x\n)", np.sin(X)),
        ("c = [1, 2]; x * c", X * [1, 2]),
        ("x * c\nc = 3", X * 3),
        ("clip(x, 0, 1) + pi", np.clip(X, 0, 1) + np.pi),
        ("multiply(x, y)", X * Y),
        ("np.sin(x) + np.pi + tf.math.multiply(x, y)", np.sin(X) + np.pi + X * Y),
        ("x.sum(axis=0) * y.T.max()", X.sum(0) * Y.max()),
        ("x @ y[0]", X @ Y[0]),
        ("y[0] @ x", Y[0] @ X),
        ("x[0] @ y[1]", X[0] @ Y[1]),
        ("dot(x, y[0]) + np.dot(2, x[1])", X @ Y[0] + 2 * X[1]),
        ("x[None] @ y[:, :, None]", X[None] @ Y[:, :, None]),
        ("k = sqrt(2)\nk = 2 * k\nsin(2 * pi * x) + log(2) * x * k", np.sin(2 * np.pi * X) + np.log(2) * X * 8**0.5),
        ("exp([0.1, 0.2]) * x", np.exp([0.1, 0.2]) * X),
        ("where(2 > 1, sum([0.1, 0.2]), 1) * x", (0.1 + 0.2) * X),
        ("k = [sqrt(2), 1]; m = k; m * x", np.array([2**0.5, 1]) * X),
        ("x = 2; x = 3; y = x * y", 3 * Y),
        ("log(2)", np.log(2)),
        ("eigh(x @ x.T)[0]", np.linalg.eigvalsh(X @ X.T)),
        ("[x, y][1]", Y),
        ("abs(eigh(x @ x.T)[1][0, 1])", np.abs(np.linalg.eigh(X @ X.T)[1][0, 1])),
    ],
)
def test_what_a_text_means(text: str, expected: Any) -> None:
    np.testing.assert_allclose(run(text, x=X, y=Y), expected, rtol=1e-12)


def test_values_inputs_and_outputs() -> None:
    function = parse("w = [[1, 2], [3, 4]]\ni = [0, 1]\nloss = sum(gather(w, i) * x)\nother = w + 1")
    assert function.inputs == ["w", "i", "x"]
    assert function.values == {
        "w": {"dtype": "float32", "shape": [2, 2], "data": [1.0, 2.0, 3.0, 4.0]},
        "i": {"dtype": "int32", "shape": [2], "data": [0, 1]},
    }
    assert function.outputs == ["loss", "other"]
    assert function.steps[0]["where"] == "line 3, columns 12-23"


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "there is no expression"),
        ("y = sni(x)", 1, 5, "there is no function sni; did you mean 'sin'?"),
        ("x = 1\ny = sum(x, axsi=0)", 2, 12, "reduce_sum has no axsi; did you mean 'axis'?"),
        ("y = sum(x, axis=1.5)", 1, 5, "attribute 'axis' of op 'reduce_sum' must be an integer, found 1.5"),
        ("y = sum(x, axis=x)", 1, 5, "axis of reduce_sum must be written as a number, a list or a text"),
        ("y = sum(x, 0, axis=1)", 1, 15, "axis has two values"),
        ("y = sin(x, x)", 1, 5, "too many arguments: sin takes x"),
        ("y = add(x)", 1, 5, "add takes a, b; found 1 of 2"),
        ("y = (sin(x)", 1, 5, "this ( is never closed"),
        ("y = x)", 1, 6, "found ')'"),
        ("y = 3 +", 1, 8, "expected a name, a number, ( or [; found the end of the text"),
        ("y = x ^ 2", 1, 7, "powers are written with **"),
        ("y = x | z", 1, 7, "the words and, or, not"),
        ("y = 2x", 1, 6, "products are written with *"),
        ("y = (a + b)(a - b)", 1, 12, "products are written with *"),
        ("y = z = x", 1, 7, "two values are compared with =="),
        ("y = sin * x", 1, 5, "sin is a function: write sin(…)"),
        ("y = [1, [2]] * x", 1, 5, "the members of a list have different shapes: [] and [1]"),
        ("y = x[z]", 1, 7, "an index is a whole number"),
        ("y = x.t", 1, 7, "there is no .t; .T transposes a matrix"),
        ("y = x.mean", 1, 7, "there is no .mean; write .mean()"),
        ("y = x if x > 0 else -x", 1, 5, "write where(x > 0, x, -x)"),
        ("if x > 0: y = 2", 1, 4, "a choice is written where(condition, a, b)"),
        ("def f(x):", 1, 5, "a text has no functions of its own"),
        ("y = lambda x: x", 1, 12, "a text has no functions of its own"),
        ("for i in x", 1, 5, "there are no loops"),
        ("y = [a for a in x]", 1, 8, "there are no loops"),
        ("import numpy as np", 1, 8, "every function is there without an import"),
        ("y = x\nreturn y", 2, 8, "leave out return"),
        ("x += 1", 1, 4, "write name = name + …"),
        ("y = 'text'", 1, 1, "a tensor is expected here, found a text"),
        ("y = 9**9**9 * x", 1, 5, "the number is too large"),
        ("y = 1 / 0 * x", 1, 5, "division by zero"),
        ("_y = x", 1, 1, "a name begins with a letter"),
        ("x" * (MOST_CHARACTERS + 1), 1, MOST_CHARACTERS + 1, "the limit is 4,000"),
        ("(" * (MOST_DEPTH + 1) + "x" + ")" * (MOST_DEPTH + 1), 1, MOST_DEPTH + 1, "nested more than 50 deep"),
    ],
)
def test_a_fault_says_where_it_is_and_what_would_be_right(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(Problem) as caught:
        parse(text)
    assert (caught.value.details["line"], caught.value.details["column"]) == (line, column), caught.value.detail
    assert message in caught.value.detail


@pytest.mark.parametrize(("name", "formula"), FORMULAS.items())
def test_a_function_that_is_no_op_is_written_as_a_formula(name: str, formula: str) -> None:
    with pytest.raises(Problem, match=f"there is no function {name}; write ") as caught:
        parse(f"y = {name}(x)")
    assert formula in caught.value.detail
    assert parse(formula).outputs == ["result"]


def test_constants_have_no_dtype_and_random_numbers_and_integers_stay_steps() -> None:
    [product, _] = parse("s = sqrt(2) / 3\ny = s * x + e").steps
    assert product["inputs"] == [np.sqrt(2) / 3, "x"]
    assert [step["op"] for step in parse("y = one_hot([1, 0], 2) * x").steps] == ["one_hot", "mul"]
    assert [step["op"] for step in parse('y = cast(2, "int64") + x').steps] == ["cast", "add"]
    assert [step["op"] for step in parse("y = fill(2, [9, 99])").steps] == ["fill"]
    assert [step["op"] for step in parse("y = random_normal([1, 2], 3, [4])").steps] == ["random_normal"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_that_meet_no_array_have_the_texts_dtype(dtype: str) -> None:
    function = parse("w = 2\na = eye(2)\nb = sqrt(2)\nc = det([[w, 1], [1, 3]])\nd = inv([[1, 2], [3, 4]])", dtype)
    assert function.values["w"]["dtype"] == dtype
    dtypes = {(step.get("attrs") or {}).get("dtype", dtype) for step in function.steps}
    constants = {operand["dtype"] for step in function.steps for operand in step["inputs"] if isinstance(operand, dict)}
    assert (dtypes, constants) == ({dtype}, {dtype})


@pytest.mark.parametrize("text", ["-" * 3990 + "x", "x**" * 1300 + "x", "not " * 900 + "x", "+".join("x" * 1990)])
def test_long_chains_need_no_deep_stack(text: str) -> None:
    assert parse(text).inputs == ["x"]


# ------------------------------------------------------------------------------------------------------------ over HTTP
def test_a_parsed_function_can_be_created_and_called(http: httpx.Client) -> None:
    function = ok(http.post("/v1/expressions", json={"text": "c = 3\ny = sin(x) * x + c"})).json()
    session = ok(http.post("/v1/sessions", json={})).json()["id"]
    try:
        body = {name: function[name] for name in ("inputs", "steps", "outputs")}
        ok(http.post(f"/v1/sessions/{session}/functions", json={"id": "f", **body}))
        inputs = [2.0 if name == "x" else function["values"][name] for name in function["inputs"]]
        answer = ok(http.post(f"/v1/sessions/{session}/functions/f/value_and_gradient", json={"inputs": inputs})).json()
        assert answer["values"]["y"]["data"] == pytest.approx(np.sin(2) * 2 + 3)
        by_source = {derivative["source"]: derivative["value"]["data"] for derivative in answer["derivatives"]}
        assert by_source["x"] == pytest.approx(np.cos(2) * 2 + np.sin(2))
    finally:
        http.delete(f"/v1/sessions/{session}")


def test_doubles_work_with_functions_of_constants(http: httpx.Client) -> None:
    text = "d = (log(s / k) + (r + v ** 2 / 2) * t) / (v * sqrt(t))\n" + (
        "price = s * norm(d) - k * exp(-r * t) * norm(d - v * sqrt(t))"
    ).replace("norm(", "0.5 * erfc(-1 / sqrt(2) * (").replace("d) -", "d)) -").replace("sqrt(t))", "sqrt(t)))")
    text = text.replace("(v * sqrt(t)))\n", "(v * sqrt(t))\n")
    function = ok(http.post("/v1/expressions", json={"text": text, "dtype": "float64"})).json()
    session = ok(http.post("/v1/sessions", json={})).json()["id"]
    try:
        body = {name: function[name] for name in ("inputs", "steps", "outputs")}
        ok(http.post(f"/v1/sessions/{session}/functions", json={"id": "f", **body}))
        values = {"s": 100.0, "k": 95.0, "r": 0.03, "v": 0.2, "t": 0.75}
        inputs = {name: {"dtype": "float64", "data": value} for name, value in values.items()}
        answer = ok(http.post(f"/v1/sessions/{session}/functions/f/value_and_gradient", json={"inputs": inputs})).json()
    finally:
        http.delete(f"/v1/sessions/{session}")
    s, k, r, v, t = values.values()
    d = (math.log(s / k) + (r + v**2 / 2) * t) / (v * math.sqrt(t))

    def normal(x: float) -> float:
        return 0.5 * math.erfc(-x / math.sqrt(2))

    price = s * normal(d) - k * math.exp(-r * t) * normal(d - v * math.sqrt(t))
    assert answer["values"]["price"]["dtype"] == "float64"
    assert answer["values"]["price"]["data"] == pytest.approx(price, rel=1e-14)
    delta = next(each["value"]["data"] for each in answer["derivatives"] if each["source"] == "s")
    assert delta == pytest.approx(normal(d), rel=1e-14)


def test_a_session_parses_the_text_of_a_function_within_the_same_limits(http: httpx.Client) -> None:
    session = ok(http.post("/v1/sessions", json={})).json()["id"]
    try:
        for text, limit in (
            ("x" * (MOST_CHARACTERS + 1), "the limit is 4,000"),
            ("(" * 51 + "x" + ")" * 51, "50 deep"),
        ):
            refusal = http.post(f"/v1/sessions/{session}/functions", json={"text": text})
            assert limit in problem(refusal, 422, "invalid_expression")["detail"]
    finally:
        http.delete(f"/v1/sessions/{session}")


def test_refusals(http: httpx.Client) -> None:
    fault = problem(http.post("/v1/expressions", json={"text": "y = sni(x)"}), 422, "invalid_expression")
    assert fault["details"]["suggestions"] == ["sin"]
    problem(http.post("/v1/expressions", json={"text": 5}), 422, "invalid_request")
    problem(http.post("/v1/expressions", json={"txt": "x"}), 422, "invalid_request")
    problem(http.get("/v1/expressions"), 405, "method_not_allowed")


class SlowParser:
    """Parses nothing, and waits inside each text for `going_on`.

    Attributes:
        texts: In the order in which they were parsed.
        going_on: When a text may be finished.
        at_once: The most texts at a time.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.going_on = threading.Event()
        self.at_once = 0
        self._now = 0

    def __call__(self, text: str, dtype: str) -> Compiled:
        self._now += 1
        self.at_once = max(self.at_once, self._now)
        self.texts.append(text)
        assert self.going_on.wait(60)
        self._now -= 1
        return parse("x", dtype)


def test_texts_are_parsed_one_at_a_time_and_short_ones_first() -> None:
    parser = SlowParser()
    long, short = "x" * MOST_CHARACTERS, "y"

    async def whole() -> None:
        queue = ParseQueue(parser)
        tasks = [asyncio.create_task(queue.parse("ann", "first", "float32"))]
        while not parser.texts:  # noqa: ASYNC110  # no event says that a thread has begun
            await asyncio.sleep(0)
        tasks += [asyncio.create_task(queue.parse("ann", text, "float32")) for text in (long, short, "left")]
        await asyncio.sleep(0)
        tasks[3].cancel()
        await asyncio.wait([tasks[3]])
        parser.going_on.set()
        await asyncio.gather(*tasks[:3])
        await queue.parse("ann", "again", "float32")

    asyncio.run(whole())
    assert parser.texts == ["first", short, long, "again"]
    assert parser.at_once == 1


def test_the_texts_that_wait_are_limited_by_key_and_in_all() -> None:
    parser = SlowParser()

    async def whole() -> None:
        queue = ParseQueue(parser)
        tasks = []
        for number in range(MOST // MOST_PER_KEY):
            tasks += [asyncio.create_task(queue.parse(f"key {number}", "x", "float32")) for _ in range(MOST_PER_KEY)]
            await asyncio.sleep(0)
            if not number:
                with pytest.raises(Problem, match=f"{MOST_PER_KEY} expressions of your key wait") as busy:
                    await queue.parse("key 0", "x", "float32")
                assert (busy.value.code, busy.value.kind.status, busy.value.details["limit"]) == (
                    "busy",
                    429,
                    MOST_PER_KEY,
                )
        with pytest.raises(Problem, match=f"{MOST} expressions of all keys wait"):
            await queue.parse("another", "x", "float32")
        parser.going_on.set()
        await asyncio.gather(*tasks)
        await queue.parse("another", "x", "float32")

    asyncio.run(whole())
    assert len(parser.texts) == MOST + 1
