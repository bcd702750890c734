"""Calls of a published function that come again: a plan answers them as the first one was answered."""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from teletape_engine.session.session import Session
from teletape_server import handlers  # noqa: F401  # it registers the methods
from teletape_server.handlers.methods import METHODS, Request
from teletape_server.handlers.published.planned import Planned
from teletape_server.handlers.published.versions import Version, read_weights, versions_of
from teletape_server.models.published.contract import Published
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE
from teletape_wire.safetensors.reader import read_file

NETWORK: dict[str, Any] = {
    "function": {"text": "h = tanh(x @ w + b)\nrows = sum(h * h, axis=1)\ntotal = sum(exp(-rows) * y)"},
    "inputs": {"x": {"shape": ["n", 3]}, "y": {"shape": ["n"]}},
    "weights": {"w": [[0.5, -1.0], [2.0, 0.25], [-0.5, 1.5]], "b": [0.5, -0.25]},
}
PICK: dict[str, Any] = {
    "function": {
        "inputs": ["table", "at"],
        "steps": [{"op": "gather", "inputs": ["table", "at"], "outputs": ["y"]}],
        "outputs": ["y"],
    },
    "inputs": {"table": {"shape": [4, 2]}, "at": {"shape": ["n"], "dtype": "int32"}},
}
APART: dict[str, Any] = {
    "function": {"text": "y = sum(x * x) + 0 * sum(round(z))"},
    "inputs": {"x": {"shape": [2]}, "z": {"shape": [2]}},
}


def ask(session: Session, method: str, params: Mapping[str, Any], body: bytes) -> Any:
    content = memoryview(body)
    now = time.monotonic()
    return METHODS[method](
        session, Request(params, "application/json", content, sys.maxsize, lambda: False, lambda *_, **__: None, now)
    )


def loaded(publication: Mapping[str, Any]) -> tuple[Session, Version]:
    """A process that has loaded a version."""
    process = Session()
    result = ask(process, "published-prepare", {"accept": None}, json.dumps(publication).encode())
    content, end = b"".join(result.buffers), result.facts["record_bytes"]
    weights = read_weights(memoryview(content)[end:]) if len(content) > end else {}
    version = Version.loaded(process, Published.from_json(json.loads(content[:end])), weights)
    versions_of(process).put(version)
    return process, version


def answers(
    process: Session, version: Version, question: str, bodies: Sequence[Any], accept: str = "application/json"
) -> list[Any]:
    """The answers to calls that go together."""
    texts = [json.dumps(body).encode() for body in bodies]
    calls = [(len(text), "application/json", {"full": True, "accept": accept}, 7) for text in texts]
    params = {"version": version.published.version, "question": question, "calls": calls}
    result = ask(process, "published-ask", params, b"".join(texts))
    content, position, parts = b"".join(result.buffers), 0, []
    for length, _, problem in result.facts["parts"]:
        part = content[position : position + length]
        is_file = problem is None and accept == SAFETENSORS_TYPE
        parts.append(problem or (read_file(memoryview(part), copy_below=0) if is_file else json.loads(part)))
        position += length
    return parts


def is_planned(version: Version, *, is_rows: bool) -> bool:
    """Whether a function answers calls, and has a plan."""
    functions = [planned for planned in version.planned._functions.values() if planned.form.is_rows == is_rows]
    return any(_has_plan(version, planned) for planned in functions)


def _has_plan(version: Version, planned: Planned) -> bool:
    function: Any = version.session._state.find(planned.id, object)
    return bool(function.plans.instructions)


def network_bodies(seed: int, count: int, fields: Mapping[str, Any]) -> list[Any]:
    random = np.random.default_rng(seed)
    return [
        {"inputs": {"x": random.normal(size=(2, 3)).tolist(), "y": random.normal(size=2).tolist()}, **fields}
        for _ in range(count)
    ]


QUESTIONS: Sequence[tuple[str, dict[str, Any]]] = (
    ("call", {}),
    ("call", {"fetch": ["rows"]}),
    ("value_and_gradient", {}),
    ("value_and_gradient", {"sources": ["y"], "fetch": [], "targets": ["total"]}),
    ("gradient", {"targets": ["rows", "total"], "sources": ["x"]}),
    ("vjp", {"output_gradients": [[[0.5, -1.0], [2.0, 0.5]], [1.0, -2.0], 3.0]}),
    ("vjp", {"output_gradients": [None, [1.0, -2.0], None]}),
)


@pytest.mark.parametrize("count", [1, 3, 21])
@pytest.mark.parametrize(("question", "fields"), QUESTIONS)
def test_calls_that_come_again_are_answered_as_by_themselves(question: str, fields: dict[str, Any], count: int) -> None:
    publication = {**NETWORK, "function": {**NETWORK["function"], "outputs": ["h", "rows", "total"]}}
    process, version = loaded(publication)
    for seed in range(5):
        bodies = network_bodies(seed, count, fields)
        together = answers(process, version, question, bodies)
        for body, answer in zip(bodies, together, strict=True):
            other = loaded_once(publication)
            [expected] = answers(*other, question, [body])
            assert answer.pop("batch")["size"] == count
            expected.pop("batch")
            compare(answer, expected)
    assert is_planned(version, is_rows=count > 1)


_FRESH: dict[str, tuple[Session, Version]] = {}


def loaded_once(publication: Mapping[str, Any]) -> tuple[Session, Version]:
    """The same version without functions for calls that come again."""
    key = json.dumps(publication)
    process, version = _FRESH.setdefault(key, loaded(publication))
    version.planned._forms.clear()
    return process, version


def compare(answer: Any, expected: Any) -> None:
    """Checks that two answers are the same, but for the last bits of numbers and what is said of memory."""
    if isinstance(expected, dict):
        assert answer.keys() == expected.keys()
        for name in expected:
            if name != "bytes_in_use":
                compare(answer[name], expected[name])
    elif isinstance(expected, list):
        assert len(answer) == len(expected)
        for pair in zip(answer, expected, strict=True):
            compare(*pair)
    elif isinstance(expected, float):
        assert answer == pytest.approx(expected, rel=1e-4, abs=1e-6)
    else:
        assert answer == expected


def test_an_exact_call_has_the_same_bits_every_time() -> None:
    process, version = loaded(NETWORK)
    [body] = network_bodies(1, 1, {"exact": True})
    first, *others = [answers(process, version, "value_and_gradient", [body])[0] for _ in range(5)]
    assert is_planned(version, is_rows=False)
    for other in others:
        assert other["values"] == first["values"]
        assert other["derivatives"] == first["derivatives"]
        assert other["batch"]["why"] == "exact"


def test_a_sparse_gradient_stays_so() -> None:
    process, version = loaded(PICK)
    body = {"inputs": {"table": [[1.0, 2.0]] * 4, "at": [1, 1, 3]}, "sources": ["table"]}
    for _ in range(4):
        [answer] = answers(process, version, "gradient", [body])
        assert answer["derivatives"][0]["kind"] == "slices"


@pytest.mark.parametrize("count", [1, 3])
def test_a_gradient_that_does_not_exist_stays_so(count: int) -> None:
    process, version = loaded(APART)
    body = {"inputs": {"x": [1.0, 2.0], "z": [0.5, 1.5]}}
    for _ in range(4):
        for answer in answers(process, version, "value_and_gradient", [body] * count):
            by_x, by_z = answer["derivatives"]
            assert (by_x["value"]["data"], by_z["kind"]) == ([2.0, 4.0], "none")


@pytest.mark.parametrize("count", [1, 3])
def test_files_differ_in_their_elements_alone(count: int) -> None:
    process, version = loaded(APART)
    for seed in range(4):
        points = np.random.default_rng(seed).normal(size=(count, 2)).astype(np.float32)
        bodies = [{"inputs": {"x": point.tolist(), "z": [0.5, 1.5]}} for point in points]
        for point, file in zip(
            points, answers(process, version, "value_and_gradient", bodies, SAFETENSORS_TYPE), strict=True
        ):
            np.testing.assert_allclose(file.tensors["values/y"], np.sum(point * point), rtol=1e-6)
            np.testing.assert_allclose(file.tensors["derivatives/x"], 2 * point)
            facts = json.loads(file.metadata["answer"])
            assert [entry["kind"] for entry in facts["derivatives"]] == ["dense", "none"]
            assert (facts["batch"]["size"], facts["batch"]["waited_us"]) == (count, 7)


def test_what_fails_in_a_plan_fails_with_its_problem() -> None:
    process, version = loaded(PICK)
    good, bad = ({"inputs": {"table": [[1.0, 2.0]] * 4, "at": [1, at]}} for at in (3, 4))
    for _ in range(4):
        [answer] = answers(process, version, "call", [good])
        assert answer["values"]["y"]["data"] == [[1.0, 2.0]] * 2
        answer, problem = answers(process, version, "call", [good, bad])
        assert answer["batch"] == {"size": 1, "waited_us": 7, "why": "unbatchable"}
        assert problem[0] == "invalid_argument"


def test_functions_for_forms_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teletape_server.handlers.published.planned._MOST_FUNCTIONS", 2)
    process, version = loaded(NETWORK)
    for fields in ({}, {"sources": ["x"]}, {"sources": ["y"]}, {"sources": ["y", "x"]}):
        for seed in range(3):
            [answer] = answers(process, version, "gradient", network_bodies(seed, 1, fields))
            assert all(entry["kind"] == "dense" for entry in answer["derivatives"])
    assert len(version.planned._functions) == 2
