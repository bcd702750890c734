"""ONNX's operators on each element, and on pairs of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from teletape._generated.elementwise.arithmetic import (
    divide,
    floormod,
    maximum,
    minimum,
    multiply,
    pow,
    subtract,
)
from teletape._generated.elementwise.complex import abs, sign
from teletape._generated.elementwise.logic import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    equal,
    greater,
    greater_equal,
    invert,
    is_nan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
)
from teletape._generated.elementwise.math import (
    acos,
    asin,
    atan,
    ceil,
    cos,
    cosh,
    erf,
    exp,
    floor,
    log,
    negative,
    reciprocal,
    round,
    sigmoid,
    sin,
    sinh,
    softplus,
    sqrt,
    tan,
    tanh,
)
from teletape._generated.elementwise.special import acosh, asinh, atanh
from teletape._generated.nn.activations import relu
from teletape._generated.nn.gelu import gelu
from teletape._generated.nn.normalization import softsign
from teletape._generated.shapes.cast import cast
from teletape.core.calls.dispatch import constant
from teletape.extras.onnx.operators import operator
from teletape.tf.ops.arrays.create import zeros_like
from teletape.tf.ops.arrays.rearrange import where


def _unary(name: str, function: Callable[..., Any], since: int = 13) -> None:
    @operator(name, since=since)
    def compute(x: Any) -> Any:
        return function(x)


def _binary(name: str, function: Callable[..., Any], since: int = 13) -> None:
    @operator(name, since=since)
    def compute(a: Any, b: Any) -> Any:
        return function(a, b)


_unary("Abs", abs)
_unary("Acos", acos)
_unary("Acosh", acosh)
_unary("Asin", asin)
_unary("Asinh", asinh)
_unary("Atan", atan)
_unary("Atanh", atanh)
_unary("BitwiseNot", invert, 18)
_unary("Ceil", ceil)
_unary("Cos", cos)
_unary("Cosh", cosh)
_unary("Erf", erf)
_unary("Exp", exp)
_unary("Floor", floor)
_unary("HardSwish", lambda x: x * _hard_sigmoid(x, 1 / 6, 0.5), 14)
_unary("Identity", lambda x: x)
_unary("IsNaN", is_nan)
_unary("Log", log)
_unary("Mish", lambda x: x * tanh(softplus(x)), 18)
_unary("Neg", negative)
_unary("Not", logical_not)
_unary("Reciprocal", reciprocal)
_unary("Relu", relu)
_unary("Round", round)
_unary("Sigmoid", sigmoid)
_unary("Sign", sign)
_unary("Sin", sin)
_unary("Sinh", sinh)
_unary("Softplus", softplus)
_unary("Softsign", softsign)
_unary("Sqrt", sqrt)
_unary("Tan", tan)
_unary("Tanh", tanh)

_binary("Add", lambda a, b: a + b)
_binary("And", logical_and)
_binary("BitwiseAnd", bitwise_and, 18)
_binary("BitwiseOr", bitwise_or, 18)
_binary("BitwiseXor", bitwise_xor, 18)
_binary("Equal", equal)
_binary("Greater", greater)
_binary("GreaterOrEqual", greater_equal)
_binary("Less", less)
_binary("LessOrEqual", less_equal)
_binary("Mul", multiply)
_binary("Or", logical_or)
_binary("PRelu", lambda x, slope: where(x < 0, slope * x, x))
_binary("Sub", subtract)
_binary("Xor", not_equal)


@operator("Div")
def _quotient(a: Any, b: Any) -> Any:
    if a.dtype.is_floating:
        return divide(a, b)
    whole = a // b  # towards minus infinity
    return whole + cast(logical_and(not_equal(whole * b, a), less(a, 0) != less(b, 0)), a.dtype)


@operator("Mod")
def _remainder(a: Any, b: Any, *, fmod: int = 0) -> Any:
    if not fmod:
        return floormod(a, b)
    return sign(a) * floormod(abs(a), abs(b))


@operator("Pow")
def _power(x: Any, exponent: Any) -> Any:
    return pow(x, exponent if x.dtype == exponent.dtype else cast(exponent, x.dtype))


@operator("Max")
def _largest(*values: Any) -> Any:
    return functools.reduce(maximum, values)


@operator("Min")
def _smallest(*values: Any) -> Any:
    return functools.reduce(minimum, values)


@operator("Sum")
def _sum(*values: Any) -> Any:
    return functools.reduce(lambda a, b: a + b, values)


@operator("Mean")
def _mean(*values: Any) -> Any:
    return _sum(*values) / len(values)


@operator("Where")
def _where(condition: Any, x: Any, y: Any) -> Any:
    return where(condition, x, y)


@operator("Clip")
def _clipped(x: Any, low: Any = None, high: Any = None) -> Any:
    x = x if low is None else maximum(x, low)
    return x if high is None else minimum(x, high)


@operator("Cast", "CastLike")
def _as_type(x: Any, like: Any = None, *, to: str = "", saturate: int = 1) -> Any:
    return cast(x, to or like.dtype)


@operator("IsInf")
def _is_infinite(x: Any, *, detect_negative: int = 1, detect_positive: int = 1) -> Any:
    above, below = equal(x, constant(np.inf, x.dtype)), equal(x, constant(-np.inf, x.dtype))
    if detect_negative and detect_positive:
        return logical_or(above, below)
    return above if detect_positive else below if detect_negative else cast(zeros_like(x), "bool")


@operator("Elu")
def _elu(x: Any, *, alpha: float = 1.0) -> Any:
    return where(x < 0, alpha * (exp(minimum(x, 0)) - 1), x)


@operator("Celu")
def _celu(x: Any, *, alpha: float = 1.0) -> Any:
    return maximum(x, 0) + minimum(alpha * (exp(minimum(x, 0) / alpha) - 1), 0)


@operator("Selu")
def _selu(x: Any, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> Any:
    return gamma * _elu(x, alpha=alpha)


@operator("LeakyRelu")
def _leaky(x: Any, *, alpha: float = 0.01) -> Any:
    return where(x < 0, alpha * x, x)


@operator("ThresholdedRelu")
def _thresholded(x: Any, *, alpha: float = 1.0) -> Any:
    return where(x > alpha, x, zeros_like(x))


@operator("Shrink")
def _shrunk(x: Any, *, bias: float = 0.0, lambd: float = 0.5) -> Any:
    return where(x < -lambd, x + bias, where(x > lambd, x - bias, zeros_like(x)))


@operator("HardSigmoid")
def _hard_sigmoid_of(x: Any, *, alpha: float = 0.2, beta: float = 0.5) -> Any:
    return _hard_sigmoid(x, alpha, beta)


def _hard_sigmoid(x: Any, alpha: float, beta: float) -> Any:
    return minimum(maximum(alpha * x + beta, 0), 1)


@operator("Gelu", since=20, values={"approximate": ("none", "tanh")})
def _gelu(x: Any, *, approximate: str = "none") -> Any:
    return gelu(x, approximate=approximate == "tanh")
