"""Gradients of examples, clipped and summed: what a loop over them computes, without all gradients at a time."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from function_rows import answer_to, ask, numbers

import teletape as tf
from teletape_engine.session.session import Session

LOSS = {"id": "loss", "text": "error = mean((tanh(x @ w + b) - y)**2)"}
ROWS, WIDTH = 7, 3


def session_with_loss(width: int = WIDTH, **limits: Any) -> Session:
    session = Session(**limits)
    rng = np.random.default_rng(1)
    makes: list[tuple[str, Mapping[str, Any]]] = [
        ("functions-create", LOSS),
        ("variables-create", {"id": "w", "value": rng.uniform(-1, 1, (width, width)).round(3).tolist()}),
        ("variables-create", {"id": "b", "value": rng.uniform(-1, 1, width).round(3).tolist()}),
    ]
    for method, body in makes:
        assert isinstance(answer_to(session, method, body), dict)
    return session


def batch(width: int = WIDTH, rows: int = ROWS) -> dict[str, Any]:
    return {"x": numbers(3, rows, width), "y": numbers(4, rows, width)}


def question(examples: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    inputs = {name: each.tolist() for name, each in examples.items()}
    return {"inputs": {**inputs, "w": "w", "b": "b"}, "sources": ["w", "b"], **fields}


def gradients_of_examples(session: Session, examples: Mapping[str, Any]) -> tuple[list[Any], list[float]]:
    """The loop: for each example its gradients by w and b, and its loss."""
    gradients, losses = [], []
    for at in range(len(examples["x"])):
        body = question({name: each[at : at + 1] for name, each in examples.items()})
        answer = ask(session, "value_and_gradient", "loss", body)
        gradients.append([np.array(each["value"]["data"]) for each in answer["derivatives"]])
        losses.append(answer["values"]["error"]["data"])
    return gradients, losses


def norm(gradients: Any) -> float:
    return float(np.sqrt(sum(np.sum(each**2) for each in gradients)))


@pytest.mark.parametrize("examples_by", ["axis", "map"])
@pytest.mark.parametrize("clip", [None, 0.4, 100.0])
def test_the_sum_of_clipped_gradients_is_that_of_the_loop(examples_by: str, clip: float | None) -> None:
    session, examples = session_with_loss(), batch()
    gradients, losses = gradients_of_examples(session, examples)
    norms = [norm(each) for each in gradients]
    bound = np.inf if clip is None else clip
    expected = [sum(g[at] * min(1.0, bound / n) for g, n in zip(gradients, norms, strict=True)) for at in (0, 1)]
    how: dict[str, Any] = {"per_example": {"clip": clip}} if clip is not None else {"per_example": {}}
    how |= {"map": {"x": 0, "y": 0}} if examples_by == "map" else {}
    whole = {name: each[:, None] for name, each in examples.items()} if examples_by == "map" else examples
    answer = ask(session, "value_and_gradient", "loss", question(whole, outputs=["dw", None], **how))
    for entry, value in zip(answer["derivatives"], expected, strict=True):
        np.testing.assert_allclose(entry["value"]["data"], value, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(answer["values"]["error"]["data"], losses, rtol=1e-5)
    assert answer["per_example"]["size"] == ROWS
    assert answer["per_example"]["clipped"] == sum(n > bound for n in norms)
    assert [facts["id"] for facts in session.listing("tensor")] == ["dw"]
    assert session.listing("tape") == []


def test_norms_and_statistics_come_without_gradients() -> None:
    session, examples = session_with_loss(), batch()
    norms = [norm(each) for each in gradients_of_examples(session, examples)[0]]
    body = question(examples, per_example={"axis": 0, "clip": 0.4, "return": "norms"})
    answer = ask(session, "gradient", "loss", body)
    np.testing.assert_allclose(answer["per_example"]["norms"], norms, rtol=1e-5)
    assert answer["derivatives"] == []
    statistics = ask(session, "gradient", "loss", body | {"per_example": {"axis": 0, "return": "statistics"}})
    facts = statistics["per_example"]
    expected = (np.mean(norms), np.median(norms), min(norms), max(norms))
    assert [facts[name] for name in ("mean", "median", "smallest", "largest")] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("width", "rows"), [(3, 7), (400, 5)], ids=["one chunk", "an example at a time"])
def test_the_sdk_computes_the_same_bits(width: int, rows: int) -> None:
    session, examples = session_with_loss(width), batch(width, rows)
    body = question(examples, per_example={"axis": 0, "clip": 0.1})
    clipped = ask(session, "gradient", "loss", body)
    norms = ask(session, "gradient", "loss", body | {"per_example": {"axis": 0, "return": "norms"}})
    statistics = ask(session, "gradient", "loss", body | {"per_example": {"axis": 0, "return": "statistics"}})
    w, b = (tf.constant(answer_to(session, "variables-get", {}, id=id, full=True)["value"]["data"]) for id in "wb")

    def loss(example: tuple[Any, Any]) -> Any:
        x, y = example
        return tf.reduce_mean((tf.tanh(x @ w + b) - y) ** 2)

    columns = tuple([each.astype(np.float32) for each in (examples["x"], examples["y"])])
    sdk = tf.PerExampleGradients(loss, columns, [w, b], batches_of_one=True)
    assert sdk.norms.numpy().tolist() == norms["per_example"]["norms"]
    assert int(sdk.clipped(0.1)) == clipped["per_example"]["clipped"] > 0
    for value, entry in zip(sdk.sum(clip=0.1), clipped["derivatives"], strict=True):
        np.testing.assert_array_equal(value, np.array(entry["value"]["data"], np.float32))
    for name, value in sdk.statistics()._asdict().items():
        assert float(value) == statistics["per_example"][name]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64"])
def test_norms_in_other_dtypes(dtype: str) -> None:
    """The squares of the narrow ones would be infinite; those of imaginary numbers are negative."""
    session, is_complex = Session(), dtype == "complex64"
    text = "y = real(sum(x * w))" if is_complex else "y = sum(x * w)"
    assert isinstance(answer_to(session, "functions-create", {"id": "f", "text": text}), dict)
    data: Any = [[300.0, 400.0], [0.0, 0.5]]
    if is_complex:
        data = [[[0.0, each] for each in row] for row in data]
    w = {"dtype": dtype, "shape": [2], "data": [[1.0, 0.0], [1.0, 0.0]] if is_complex else [1.0, 1.0]}
    body = {
        "inputs": {"x": {"dtype": dtype, "shape": [2, 2], "data": data}, "w": w},
        "sources": ["w"],
        "per_example": {"axis": 0, "return": "norms"},
    }
    np.testing.assert_allclose(ask(session, "gradient", "f", body)["per_example"]["norms"], [500.0, 0.5], rtol=1e-6)


def test_memory_is_that_of_two_gradients_and_not_of_one_for_each_example() -> None:
    """By the engine's own count: with less it refuses, and the stack of all gradients is refused with it."""
    width, rows = 400, 40
    gradient = 4 * (width * width + width)
    activations = 4 * 12 * rows * width
    examples = batch(width, rows)
    body = question(examples, per_example={"axis": 0, "clip": 0.01})
    expected = ask(session_with_loss(width), "gradient", "loss", body)
    session = session_with_loss(width, memory_limit=3 * gradient + activations)  # the variables are one of the three
    answer = ask(session, "gradient", "loss", body)
    assert answer["per_example"]["clipped"] == rows
    for entry, other in zip(answer["derivatives"], expected["derivatives"], strict=True):
        np.testing.assert_allclose(entry["value"]["data"], other["value"]["data"], rtol=1e-4, atol=1e-7)
    whole = {name: each[:, None] for name, each in examples.items()}
    code, _ = answer_to(session, "functions-gradient", question(whole, map={"x": 0, "y": 0}), id="loss")
    assert code == "resource_exhausted"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"per_example": {"axis": 3}}, "no input but the sources has an axis 3"),
        ({"per_example": {"axis": 0}, "map": {"x": 0}}, "leave one out"),
        ({"per_example": {}, "sources": None}, "name the inputs"),
        ({"per_example": {}, "map": {"x": 0, "y": 0}, "sources": ["x"]}, "differ from example to example"),
        ({"per_example": {}, "output_gradients": [1.0]}, "leave it out"),
        ({"per_example": {"clip": 0}}, "per_example.clip"),
    ],
)
def test_what_cannot_be_asked_of_examples_says_why(fields: Mapping[str, Any], says: str) -> None:
    body = question(batch()) | dict(fields)
    code, message = answer_to(session_with_loss(), "functions-gradient", body, id="loss")
    assert (code, says in message) == ("invalid_request", True), message
