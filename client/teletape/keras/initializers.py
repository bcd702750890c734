"""`tf.keras.initializers`: what new weights start from, by name or as they are.

The values of random ones are not Keras's. One without a seed draws it when it is made, from Python's `random`, as Keras
does: `random.seed(0)` makes a program repeatable.
"""

from __future__ import annotations

import inspect
import math
import random
from typing import Any, Final

import numpy as np

from teletape.ops import create
from teletape.ops.derived.cast import cast
from teletape.ops.derived.shape import broadcast_to
from teletape.ops.dispatch import call
from teletape.tensors.dtypes import DType, as_dtype
from teletape.tensors.tensor import TensorLike
from teletape.tensors.tensor_shape import as_shape
from teletape_engine.catalogue.op import CATALOGUE

__all__ = [
    "Constant",
    "GlorotUniform",
    "HeNormal",
    "Initializer",
    "Ones",
    "RandomNormal",
    "RandomUniform",
    "Zeros",
    "constant",
    "get",
    "glorot_uniform",
    "he_normal",
    "ones",
    "random_normal",
    "random_uniform",
    "zeros",
]

_KEY_BITS: Final = (1 << 31) - 1  # a key is an int32, not negative
# The standard deviation of a standard normal cut off at ±2.
_CUT_OFF_STDDEV: Final = 0.87962566103423978


class Initializer:
    """Gives the first value of a weight. A subclass of a program's own overrides `__call__`."""

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        """A tensor of that shape and dtype, float32 if None."""
        return self._values(tuple(as_shape(shape)), as_dtype("float32" if dtype is None else dtype))

    def _values(self, shape: tuple[int, ...], dtype: DType) -> Any:
        raise NotImplementedError("Initializer subclasses must implement the `__call__()` method.")


class Zeros(Initializer):
    """Zeros."""

    def _values(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return create.zeros(shape, dtype)


class Ones(Initializer):
    """Ones."""

    def _values(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return create.ones(shape, dtype)


class Constant(Initializer):
    """One value everywhere.

    Args:
        value: A number, or an array that broadcasts to the shape.
    """

    def __init__(self, value: Any = 0.0) -> None:
        self.value = value

    def _values(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return broadcast_to(cast(self.value, dtype), shape)


class _Random(Initializer):
    """One that gives the same values whenever it is called with the same shape."""

    def __init__(self, seed: int | None = None) -> None:
        if seed is None:
            seed = random.randint(1, 10**9)
        elif not isinstance(seed, int):
            raise ValueError(
                "`seed` argument should be an instance of `keras.random.SeedGenerator()` or an integer. "
                f"Received: seed={seed}"
            )
        self.seed = seed

    def _drawn(self, op: str, shape: tuple[int, ...], dtype: DType) -> Any:
        return call(CATALOGUE[op], (self.seed & _KEY_BITS, 0), shape=shape, dtype=dtype.np)

    def _uniform(self, shape: tuple[int, ...], dtype: DType, low: float, high: float) -> Any:
        return self._drawn("random_uniform", shape, dtype) * float(high - low) + float(low)


class RandomUniform(_Random):
    """Even between `minval` and `maxval`."""

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: int | None = None) -> None:
        super().__init__(seed)
        self.minval = minval
        self.maxval = maxval

    def _values(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return self._uniform(shape, dtype, self.minval, self.maxval)


class RandomNormal(_Random):
    """Normal, with that mean and standard deviation."""

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> None:
        super().__init__(seed)
        self.mean = mean
        self.stddev = stddev

    def _values(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return self._drawn("random_normal", shape, dtype) * self.stddev + self.mean


class GlorotUniform(_Random):
    """Even within ±sqrt(6 / (fan_in + fan_out)). Glorot and Bengio, 2010."""

    def _values(self, shape: tuple[int, ...], dtype: DType) -> Any:
        limit = math.sqrt(6 / max(2, sum(_fans(shape))))
        return self._uniform(shape, dtype, -limit, limit)


class HeNormal(_Random):
    """Normal with variance 2 / fan_in, without what lies beyond two standard deviations. He et al., 2015."""

    def _values(self, shape: tuple[int, ...], dtype: DType) -> Any:
        stddev = math.sqrt(2 / max(1, _fans(shape)[0])) / _CUT_OFF_STDDEV
        return self._drawn("truncated_normal", shape, dtype) * stddev


def _fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """How many units a weight of this shape reads, and feeds; its last two axes are in and out."""
    if len(shape) < 2:
        return (shape[0], shape[0]) if shape else (1, 1)
    field = math.prod(shape[:-2])
    return shape[-2] * field, shape[-1] * field


zeros = Zeros
ones = Ones
constant = Constant
random_uniform = RandomUniform
random_normal = RandomNormal
glorot_uniform = GlorotUniform
he_normal = HeNormal

_CLASSES: Final[tuple[type[Initializer], ...]] = (
    *(Zeros, Ones, Constant, RandomUniform, RandomNormal, GlorotUniform, HeNormal),
)
_BY_NAME: Final[dict[str, type[Initializer]]] = {
    **{name: cls for name, cls in globals().items() if inspect.isclass(cls) and cls in _CLASSES},
    "zero": Zeros,
    "one": Ones,
    "uniform": RandomUniform,
    "normal": RandomNormal,
}


def get(identifier: Any) -> Any:
    """The initializer of that name, or of that class; a callable or None as it is; an array as its values.

    Raises:
        ValueError: No initializer has the name, or it is none of these.
    """
    if isinstance(identifier, np.ndarray | TensorLike):
        return Constant(identifier)
    initializer = _BY_NAME.get(identifier) if isinstance(identifier, str) else identifier
    if inspect.isclass(initializer) and issubclass(initializer, Initializer):
        return initializer()
    if identifier is None or callable(initializer):
        return initializer
    raise ValueError(
        f"Could not interpret initializer identifier: {identifier}"
        + (f" (there are: {', '.join(sorted(_BY_NAME))})" if isinstance(identifier, str) else "")
    )
