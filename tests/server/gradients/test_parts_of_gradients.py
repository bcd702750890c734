"""Parts of gradients, whose rest is answered later: in the end nothing is lost and nothing is counted twice."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from function_rows import answer_to, ask, numbers

import teletape as tf
from teletape_engine.session.session import Session
from teletape_engine.spec import dtype_of

SHAPE = (5, 3)
PARTS: list[dict[str, Any]] = [{"top": 4}, {"top": 100}, {"rows": [3, 0]}, {"dtype": "bfloat16"}, {"dtype": "float16"}]


def session_with_function() -> Session:
    session = Session()
    assert isinstance(answer_to(session, "functions-create", {"id": "f", "text": "y = sum(w * x**2) + sum(v)"}), dict)
    return session


def question(seed: int, **fields: Any) -> dict[str, Any]:
    """The gradient by w is x**2, and that by v is ones."""
    inputs = {"w": numbers(0, *SHAPE).tolist(), "x": numbers(seed, *SHAPE).tolist(), "v": [1.0, 2.0]}
    return {"inputs": inputs, "sources": ["w"], **fields}


def gradient(seed: int) -> Any:
    return numbers(seed, *SHAPE).astype(np.float32) ** 2


def whole(entry: Mapping[str, Any]) -> Any:
    """A part of a gradient with zeros for the rest."""
    if "part" not in entry:
        return np.array(entry["value"]["data"]).astype(dtype_of(entry["value"]["dtype"])).astype(np.float64)
    assert entry["value"] is None
    part = entry["part"]
    indices, values = part["indices"]["data"], np.array(part["values"]["data"])
    shape = part["shape"]
    dense = np.zeros(shape if values.ndim > 1 else np.prod(shape))
    dense[indices] = values
    return dense.reshape(shape)


# ------------------------------------------------------------------------------------------------------------ the parts
def test_the_largest_elements() -> None:
    [entry] = ask(session_with_function(), "gradient", "f", question(1, part={"top": 4}))["derivatives"]
    expected = gradient(1).reshape(-1)
    largest = np.argsort(-expected, kind="stable")[:4]
    assert entry["part"]["indices"]["data"] == largest.tolist()
    np.testing.assert_allclose(entry["part"]["values"]["data"], expected[largest], rtol=1e-6)
    assert entry["part"]["shape"] == list(SHAPE)


def test_some_rows() -> None:
    body = question(1, part={"rows": [3, 0]})
    answer = ask(session_with_function(), "value_and_gradient", "f", body)
    [entry] = answer["derivatives"]
    np.testing.assert_allclose(entry["part"]["values"]["data"], gradient(1)[[3, 0]], rtol=1e-6)
    assert set(answer["values"]) == {"y"}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_fewer_bits(dtype: str) -> None:
    [entry] = ask(session_with_function(), "gradient", "f", question(1, part={"dtype": dtype}))["derivatives"]
    assert (entry["value"]["dtype"], entry["value"]["shape"]) == (dtype, list(SHAPE))
    np.testing.assert_allclose(entry["value"]["data"], gradient(1), rtol=1 / 128)


# -------------------------------------------------------------------------------------------------------- the remainder
@pytest.mark.parametrize("part", PARTS, ids=str)
def test_what_is_answered_and_what_is_left_are_all_gradients(part: Mapping[str, Any]) -> None:
    session, answered = session_with_function(), np.zeros(SHAPE)
    for seed in range(1, 6):
        body = question(seed, part=part, remainder="rest")
        [entry] = ask(session, "gradient", "f", body)["derivatives"]
        answered += whole(entry)
    left = answer_to(session, "variables-get", {}, id="rest.w", full=True)["value"]["data"]
    np.testing.assert_allclose(answered + left, sum(gradient(seed) for seed in range(1, 6)), rtol=1e-5, atol=1e-6)
    assert [facts["id"] for facts in session.listing("variable", "tensor", "tape")] == ["rest.w"]
    assert not session.describe("rest.w")["trainable"]


def test_each_source_has_a_remainder_of_its_own() -> None:
    session = session_with_function()
    body = question(1, part={"top": 1}, remainder="rest") | {"sources": ["w", "v"]}
    for _ in range(2):
        [_, v] = ask(session, "gradient", "f", body)["derivatives"]
    assert v["part"]["indices"]["data"] == [1]  # of the second element two are left, and of the first one
    assert v["part"]["values"]["data"] == [2.0]
    assert [facts["id"] for facts in session.listing("variable")] == ["rest.w", "rest.v"]


def test_a_question_that_fails_leaves_the_remainder_as_it_was() -> None:
    session = session_with_function()
    ask(session, "gradient", "f", question(1, part={"top": 4}, remainder="rest"))
    before = answer_to(session, "variables-get", {}, id="rest.w", full=True)["value"]
    wrong = question(2, part={"top": 4}, remainder="rest", output_gradients=[[1.0, 2.0]])
    assert answer_to(session, "functions-gradient", wrong, id="f")[0] == "invalid_argument"
    assert answer_to(session, "variables-get", {}, id="rest.w", full=True)["value"] == before


def test_a_remainder_that_was_deleted_begins_anew() -> None:
    session = session_with_function()
    first, second = question(1, part={"top": 4}, remainder="rest"), question(2, part={"top": 100}, remainder="rest")
    ask(session, "gradient", "f", first)
    assert answer_to(session, "variables-delete", {}, id="rest.w") == {}
    [entry] = ask(session, "gradient", "f", second)["derivatives"]
    np.testing.assert_allclose(whole(entry), gradient(2), rtol=1e-6)


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_the_sdk_takes_the_same_parts(part: Mapping[str, Any]) -> None:
    session, parts = session_with_function(), tf.GradientParts(tf.zeros(SHAPE))
    for seed in range(1, 4):
        [entry] = ask(session, "gradient", "f", question(seed, part=part, remainder="rest"))["derivatives"]
        taken = parts.take(tf.constant(gradient(seed)), **part)
        answered = entry.get("part") or {"value": entry["value"]}
        for name in answered.keys() - {"shape"}:
            expected, own = answered[name], taken if name == "value" else getattr(taken, name)
            assert (own.dtype.name, own.shape) == (expected["dtype"], expected["shape"])
            np.testing.assert_array_equal(own, np.array(expected["data"]).astype(own.dtype.np))
        assert taken.shape == answered.get("shape", SHAPE)
    left = answer_to(session, "variables-get", {}, id="rest.w", full=True)["value"]["data"]
    np.testing.assert_array_equal(parts.remainder, np.array(left, np.float32))


# ------------------------------------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"part": {}}, "found none"),
        ({"part": {"top": 2, "dtype": "bfloat16"}}, "found top, dtype"),
        ({"part": {"rows": [1, 1]}}, "each is there once"),
        ({"part": {"rows": [5]}}, "has no rows [5]"),
        ({"part": {"top": 2}, "outputs": ["d"]}, "leave outputs out"),
        ({"part": {"top": 2}, "map": {"x": 0}}, "leave map out"),
        ({"remainder": "rest"}, "give part too"),
        ({"part": {"top": 2}, "remainder": "other"}, "needed a variable of float32[5, 3]"),
    ],
)
def test_a_part_that_cannot_be_says_why(fields: Mapping[str, Any], says: str) -> None:
    session = session_with_function()
    assert isinstance(answer_to(session, "tensors-create", {"id": "other.w", "value": [1.0]}), dict)
    code, message = answer_to(session, "functions-gradient", question(1, **fields), id="f")
    assert (code, says in message) == ("invalid_request", True), message
