"""Values of ops, compared with NumPy's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from teletape.conformity.checks import CHECKS, Server, expect, expect_close

_X: Final = [[0.5, -1.5, 2.0], [1.0, 0.25, -0.75]]
_Y: Final = [[2.0, 0.5, -1.0], [3.0, 1.5, 0.5]]
_POSITIVE: Final = [[0.5, 1.5, 2.0], [1.0, 0.25, 4.0]]


def _softmax(x: Any) -> Any:
    shifted = np.exp(x - np.max(x, -1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


#: Op, its inputs and attributes, and NumPy's function of the inputs.
_OPS: Final[tuple[tuple[str, list[Any], dict[str, Any], Callable[..., Any]], ...]] = (
    ("add", [_X, _Y], {}, np.add),
    ("sub", [_X, _Y], {}, np.subtract),
    ("mul", [_X, _Y], {}, np.multiply),
    ("div", [_X, _Y], {}, np.divide),
    ("pow", [_POSITIVE, _Y], {}, np.power),
    ("maximum", [_X, _Y], {}, np.maximum),
    ("minimum", [_X, _Y], {}, np.minimum),
    ("neg", [_X], {}, np.negative),
    ("abs", [_X], {}, np.abs),
    ("square", [_X], {}, np.square),
    ("sqrt", [_POSITIVE], {}, np.sqrt),
    ("exp", [_X], {}, np.exp),
    ("log", [_POSITIVE], {}, np.log),
    ("log1p", [_POSITIVE], {}, np.log1p),
    ("expm1", [_X], {}, np.expm1),
    ("sin", [_X], {}, np.sin),
    ("cos", [_X], {}, np.cos),
    ("tan", [_X], {}, np.tan),
    ("tanh", [_X], {}, np.tanh),
    ("sinh", [_X], {}, np.sinh),
    ("cosh", [_X], {}, np.cosh),
    ("atan", [_X], {}, np.arctan),
    ("atan2", [_X, _Y], {}, np.arctan2),
    ("sigmoid", [_X], {}, lambda x: 1 / (1 + np.exp(-x))),
    ("softplus", [_X], {}, lambda x: np.log1p(np.exp(x))),
    ("relu", [_X], {}, lambda x: np.maximum(x, 0)),
    ("softmax", [_X], {"axis": -1}, _softmax),
    ("reduce_sum", [_X], {"axis": [1]}, functools.partial(np.sum, axis=1)),
    ("reduce_mean", [_X], {}, np.mean),
    ("reduce_max", [_X], {"axis": [0]}, functools.partial(np.max, axis=0)),
    ("reduce_prod", [_X], {"axis": [1], "keepdims": True}, functools.partial(np.prod, axis=1, keepdims=True)),
    ("matmul", [_X, _Y], {"transpose_b": True}, lambda x, y: x @ y.T),
    ("transpose", [_X], {}, np.transpose),
    ("reshape", [_X], {"shape": [3, -1]}, lambda x: x.reshape(3, 2)),
    ("concat", [_X, _Y], {"axis": 0}, lambda x, y: np.concatenate([x, y])),
    ("stack", [_X, _Y], {"axis": 1}, lambda x, y: np.stack([x, y], 1)),
    ("cumsum", [_X], {"axis": 1}, functools.partial(np.cumsum, axis=1)),
    ("sign", [_X], {}, np.sign),
    ("floor", [_X], {}, np.floor),
    ("squared_difference", [_X, _Y], {}, lambda x, y: (x - y) ** 2),
)


def _value(op: str, inputs: list[Any], attrs: dict[str, Any], function: Callable[..., Any], server: Server) -> None:
    tensors = [{"dtype": "float32", "shape": list(np.shape(value)), "data": value} for value in inputs]
    command = {"do": "op", "op": op, "inputs": tensors, "attrs": attrs, "outputs": ["y"]}
    answer = server.json("POST", "/run", {"commands": [command], "fetch": ["y"]})
    expect(answer["values"]["y"]["dtype"], "float32", f"the dtype of {op}")
    with np.errstate(all="ignore"):
        expect_close(answer["values"]["y"], function(*map(np.asarray, inputs)), op)


for _op, _inputs, _attrs, _function in _OPS:
    CHECKS[f"the value of {_op}"] = functools.partial(_value, _op, _inputs, _attrs, _function)
