"""`tf.keras.activations`: elementwise functions and softmax, by name or as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from teletape import nn, shapes
from teletape.calling import call, convert_to_tensor
from teletape_engine.op import CATALOGUE

__all__ = ["get", "linear", "relu", "sigmoid", "softmax", "softplus", "tanh"]


def linear(x: Any) -> Any:
    """`x` itself."""
    return x


def relu(x: Any, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0) -> Any:
    """`x` above `threshold`, but at most `max_value`; `negative_slope * (x - threshold)` below."""
    x = convert_to_tensor(x)
    if negative_slope == 0.0 and threshold == 0.0:
        y = call(CATALOGUE["relu"], (x,))
    else:
        y = shapes.where(x > threshold, x, negative_slope * (x - threshold))
    return y if max_value is None else call(CATALOGUE["minimum"], (y, max_value))


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return call(CATALOGUE["sigmoid"], (x,))


def softmax(x: Any, axis: int = -1) -> Any:
    """exp(x) / sum(exp(x)) along `axis`."""
    return nn.softmax(x, axis)


def softplus(x: Any) -> Any:
    """log(1 + exp(x))."""
    return call(CATALOGUE["softplus"], (x,))


def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    return call(CATALOGUE["tanh"], (x,))


_BY_NAME: Final[dict[str, Callable[..., Any]]] = {
    function.__name__: function for function in (linear, relu, sigmoid, softmax, softplus, tanh)
}


def get(identifier: Any) -> Callable[..., Any]:
    """The activation of that name; a callable as it is; `linear` for None.

    Raises:
        ValueError: No activation has the name, or it is neither.
    """
    found = linear if identifier is None else identifier
    if isinstance(found, str):
        found = _BY_NAME.get(found)
    if not callable(found):
        raise ValueError(
            f"Could not interpret activation function identifier: {identifier}"
            + (f" (there are: {', '.join(_BY_NAME)})" if isinstance(identifier, str) else "")
        )
    chosen: Callable[..., Any] = found
    return chosen
