"""Values and derivatives of formulas, compared with some written by hand; why a gradient does not exist."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from teletape.conformity.checks import CHECKS, Deviation, Server, check, expect, expect_close

_AT: Final = np.array([0.5, -1.25, 2.0])
#: A formula of x, its value, and its derivative.
_FORMULAS: Final[tuple[tuple[str, Callable[[Any], Any], Callable[[Any], Any]], ...]] = (
    ("y = x * x", lambda x: x * x, lambda x: 2 * x),
    ("y = x**3", lambda x: x**3, lambda x: 3 * x**2),
    ("y = sin(x)", np.sin, np.cos),
    ("y = cos(2 * x)", lambda x: np.cos(2 * x), lambda x: -2 * np.sin(2 * x)),
    ("y = exp(-x)", lambda x: np.exp(-x), lambda x: -np.exp(-x)),
    ("y = log(x * x + 1)", lambda x: np.log(x * x + 1), lambda x: 2 * x / (x * x + 1)),
    ("y = sqrt(x * x + 1)", lambda x: np.sqrt(x * x + 1), lambda x: x / np.sqrt(x * x + 1)),
    ("y = tanh(x)", np.tanh, lambda x: 1 - np.tanh(x) ** 2),
    ("y = sigmoid(x)", lambda x: 1 / (1 + np.exp(-x)), lambda x: np.exp(-x) / (1 + np.exp(-x)) ** 2),
    ("y = relu(x)", lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0),
    ("y = abs(x)", np.abs, np.sign),
    ("y = 1 / (x + 3)", lambda x: 1 / (x + 3), lambda x: -1 / (x + 3) ** 2),
    ("y = sin(x) * x", lambda x: np.sin(x) * x, lambda x: np.cos(x) * x + np.sin(x)),
    ("y = sum(x * x)", lambda x: np.sum(x * x), lambda x: 2 * x),
    ("y = mean(x)", np.mean, lambda x: np.full(x.shape, 1 / x.size)),
    ("y = max(x)", np.max, lambda x: (x == np.max(x)) * 1.0),
)


def _formula(text: str, value: Callable[[Any], Any], derivative: Callable[[Any], Any], server: Server) -> None:
    with server.session() as path:
        server.ask("POST", f"{path}/functions", {"id": "f", "text": text})
        answer = server.json(
            "POST",
            f"{path}/functions/f/value_and_gradient",
            {"inputs": [_AT.tolist()], "targets": ["y"], "fetch": ["y"]},
        )
        expect_close(answer["values"]["y"], value(_AT), f"the value of {text}")
        expect_close(answer["derivatives"][0]["value"], derivative(_AT), f"the gradient of {text}")


for _text, _value, _derivative in _FORMULAS:
    CHECKS[f"value and gradient of {_text}"] = functools.partial(_formula, _text, _value, _derivative)


def _answer_of(server: Server, text: str, question: str, inputs: list[Any], **fields: Any) -> list[Any]:
    with server.session() as path:
        server.ask("POST", f"{path}/functions", {"id": "f", "text": text})
        body = {"inputs": inputs, "targets": ["y"], **fields}
        derivatives: list[Any] = server.json("POST", f"{path}/functions/f/{question}", body)["derivatives"]
        return derivatives


@check("the Jacobian of a product")
def _jacobian(server: Server) -> None:
    [row] = _answer_of(
        server,
        "y = a @ x\na = [[1.0, 2.0], [3.0, 4.0]]",
        "jacobian",
        [[[1.0, 2.0], [3.0, 4.0]], [0.5, 1.0]],
        sources=["x"],
    )
    expect_close(row["value"], [[1.0, 2.0], [3.0, 4.0]], "the Jacobian")


@check("the Hessian of a cubic")
def _hessian(server: Server) -> None:
    [[row]] = _answer_of(server, "y = sum(x**3)", "hessian", [[1.0, 2.0]])
    expect_close(row["value"], [[6.0, 0.0], [0.0, 12.0]], "the Hessian")


@check("a Hessian-vector product")
def _hvp(server: Server) -> None:
    [row] = _answer_of(server, "y = sum(x**3)", "hvp", [[1.0, 2.0]], vectors=[[1.0, 0.5]])
    expect_close(row["value"], [6.0, 6.0], "the product")


@check("a vector-Jacobian product")
def _vjp(server: Server) -> None:
    [row] = _answer_of(server, "y = x * x", "vjp", [[1.0, 2.0]], output_gradients=[[1.0, 10.0]])
    expect_close(row["value"], [2.0, 40.0], "the product")


@check("a Jacobian-vector product")
def _jvp(server: Server) -> None:
    [row] = _answer_of(server, "y = x * x", "jvp", [[1.0, 2.0]], tangents=[[1.0, 0.5]])
    expect_close(row["value"], [2.0, 2.0], "the product")


@check("gradients agree with finite differences")
def _agree(server: Server) -> None:
    with server.session() as path:
        server.ask("POST", f"{path}/functions", {"id": "f", "text": "y = sum(tanh(x) * x)"})
        report = server.json("POST", f"{path}/functions/f/check_gradients", {"inputs": [[0.5, -0.25]]})
        expect(report["agrees"], True, f"the report {report}")


@check("a gradient that does not exist is null, with the reason and what to do")
def _none(server: Server) -> None:
    program = [
        {"do": "variable", "id": "x", "value": 2.5},
        {"do": "tape.open", "id": "t"},
        {"do": "op", "op": "round", "inputs": ["x"], "outputs": ["y"]},
        {"do": "gradient", "tape": "t", "targets": ["y"], "sources": ["x"], "outputs": ["dx"]},
    ]
    answer = server.json("POST", "/run", {"commands": program, "fetch": ["dx"]})
    expect(answer["values"]["dx"], None, "the gradient through round")
    reason = answer["why"]["dx"]
    if not (reason.get("message") and reason.get("code")):
        raise Deviation(f"why: expected code and message, got {reason}")


@check("the gradient of a gradient is recorded by the outer tape")
def _second(server: Server) -> None:
    program = [
        {"do": "variable", "id": "x", "value": 3.0},
        {"do": "tape.open", "id": "outer"},
        {"do": "tape.open", "id": "inner"},
        {"do": "op", "op": "pow", "inputs": ["x", 3.0], "outputs": ["y"]},
        {"do": "gradient", "tape": "inner", "targets": ["y"], "sources": ["x"], "outputs": ["dy"]},
        {"do": "gradient", "tape": "outer", "targets": ["dy"], "sources": ["x"], "outputs": ["d2y"]},
    ]
    answer = server.json("POST", "/run", {"commands": program, "fetch": ["dy", "d2y"]})
    expect_close(answer["values"]["dy"], 27.0, "the first derivative")
    expect_close(answer["values"]["d2y"], 18.0, "the second derivative")
