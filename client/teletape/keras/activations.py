"""`tf.keras.activations`: elementwise functions and softmax, by name or as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from teletape.ops import arrays
from teletape.ops.derived import activations
from teletape.ops.dispatch import call, convert_to_tensor
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import CATALOGUE

__all__ = [
    "elu",
    "exponential",
    "gelu",
    "get",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "leaky_relu",
    "linear",
    "log_softmax",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "softsign",
    "swish",
    "tanh",
]


def _op(name: str, x: Any, **attrs: Any) -> Any:
    return call(CATALOGUE[name], (convert_to_tensor(x),), **attrs)


def linear(x: Any) -> Any:
    """`x` itself."""
    return x


def relu(x: Any, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0) -> Any:
    """`x` above `threshold`, but at most `max_value`; `negative_slope * (x - threshold)` below."""
    x = convert_to_tensor(x)
    if negative_slope == 0.0 and threshold == 0.0:
        y = _op("relu", x)
    else:
        y = arrays.where(x > threshold, x, negative_slope * (x - threshold))
    return y if max_value is None else call(ops.minimum, (y, max_value))


def relu6(x: Any) -> Any:
    """`x` between 0 and 6, and those bounds outside."""
    return _op("relu6", x)


def leaky_relu(x: Any, negative_slope: float = 0.2) -> Any:
    """`x` above zero, `negative_slope * x` below."""
    return _op("leaky_relu", x, alpha=negative_slope)


def elu(x: Any, alpha: float = 1.0) -> Any:
    """`x` above zero, `alpha * (exp(x) - 1)` below. Clevert et al., 2016."""
    x = convert_to_tensor(x)
    return _op("elu", x) if alpha == 1.0 else arrays.where(x > 0, x, alpha * _op("elu", x))


def selu(x: Any) -> Any:
    """1.0507 * elu(x, 1.6733), which keeps mean 0 and variance 1. Klambauer et al., 2017."""
    return _op("selu", x)


def gelu(x: Any, approximate: bool = False) -> Any:
    """`x` times the normal distribution's share below `x`; by tanh if `approximate`. Hendrycks and Gimpel, 2016."""
    return _op("gelu", x, approximate=approximate)


def silu(x: Any) -> Any:
    """x * sigmoid(x), also called swish."""
    return _op("silu", x)


def mish(x: Any) -> Any:
    """x * tanh(softplus(x)). Misra, 2019."""
    x = convert_to_tensor(x)
    return x * _op("tanh", _op("softplus", x))


def exponential(x: Any) -> Any:
    """exp(x)."""
    return _op("exp", x)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return _op("sigmoid", x)


def hard_sigmoid(x: Any) -> Any:
    """x / 6 + 1 / 2, between 0 and 1."""
    return _op("relu6", convert_to_tensor(x) + 3.0) / 6.0


def hard_silu(x: Any) -> Any:
    """x * hard_sigmoid(x), also called hard_swish."""
    x = convert_to_tensor(x)
    return x * hard_sigmoid(x)


def softmax(x: Any, axis: int = -1) -> Any:
    """exp(x) / sum(exp(x)) along `axis`."""
    return activations.softmax(x, axis)


def log_softmax(x: Any, axis: int = -1) -> Any:
    """The logarithm of `softmax`, computed in a stable form."""
    return activations.log_softmax(x, axis)


def softplus(x: Any) -> Any:
    """log(1 + exp(x))."""
    return _op("softplus", x)


def softsign(x: Any) -> Any:
    """x / (1 + abs(x))."""
    x = convert_to_tensor(x)
    return x / (abs(x) + 1.0)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    return _op("tanh", x)


swish = silu
hard_swish = hard_silu

_BY_NAME: Final[dict[str, Callable[..., Any]]] = {name: globals()[name] for name in __all__ if name != "get"}


def get(identifier: Any) -> Callable[..., Any]:
    """The activation of that name; a callable as it is; `linear` for None.

    Raises:
        ValueError: No activation has the name, or it is neither.
    """
    function = linear if identifier is None else identifier
    if isinstance(function, str):
        function = _BY_NAME.get(function)
    if not callable(function):
        raise ValueError(
            f"Could not interpret activation function identifier: {identifier}"
            + (f" (there are: {', '.join(_BY_NAME)})" if isinstance(identifier, str) else "")
        )
    chosen: Callable[..., Any] = function
    return chosen
