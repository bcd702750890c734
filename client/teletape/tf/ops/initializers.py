"""TensorFlow's own initializers, such as `tf.zeros_initializer`: callables from a shape to an initial value.

Those of Keras are `tf.initializers`.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from teletape.core.calls.dispatch import constant
from teletape.core.tensors import dtypes
from teletape.core.tensors.dtypes import DType, as_dtype
from teletape.core.tensors.tensor import Tensor
from teletape.tf.ops.arrays import create
from teletape.tf.ops.random.stateful import normal, uniform
from teletape.tf.ops.random.stateless import stateless_normal, stateless_uniform

_PARTITION = ("partition_shape", "partition_offset")


class Initializer:
    """The base class of initializers: `get_config` returns the arguments of the constructor."""

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Returns an initializer from the result of `get_config`."""
        return cls(**{name: value for name, value in config.items() if name != "dtype"})


def _shape_of(shape: Any, options: dict[str, Any]) -> Any:
    """Returns the shape to fill, or that of the partition if one is passed.

    Raises:
        TypeError: An unknown keyword argument.
    """
    for name in options:
        if name not in _PARTITION:
            raise TypeError(f"Keyword argument should be one of {list(_PARTITION)}. Received: {name}")
    return options.get("partition_shape", shape)


def _numeric(dtype: Any) -> DType:
    """Returns the dtype; ValueError if it has neither numbers nor bools."""
    wanted = as_dtype(dtype)
    if not (wanted.is_numeric or wanted.is_bool):
        raise ValueError(f"Argument `dtype` expected to be numeric or boolean. Received {wanted}.")
    return wanted


class zeros_initializer(Initializer):  # TensorFlow's name
    """Zeros."""

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Tensor:
        return create.zeros(_shape_of(shape, kwargs), _numeric(dtype))


class ones_initializer(Initializer):  # TensorFlow's name
    """Ones."""

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Tensor:
        return create.ones(_shape_of(shape, kwargs), _numeric(dtype))


class constant_initializer(Initializer):  # TensorFlow's name
    """A number everywhere, or as many numbers as the shape has elements.

    Args:
        value: A Python number, a list of them, or an array.
        support_partition: Accepted, without effect.

    Raises:
        TypeError: Another value.
    """

    def __init__(self, value: Any = 0, support_partition: bool = False) -> None:
        if not (np.isscalar(value) or isinstance(value, list | tuple | np.ndarray)):
            raise TypeError(
                f"Invalid type for initial value: {type(value).__name__}. Expected Python scalar, list or tuple of "
                "values, or numpy.ndarray."
            )
        self.value = value

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Tensor:
        return constant(self.value, None if dtype is None else as_dtype(dtype), shape=_shape_of(shape, kwargs))

    def get_config(self) -> dict[str, Any]:
        return {"value": self.value}


class random_normal_initializer(Initializer):  # TensorFlow's name
    """Normally distributed numbers; with a seed the same ones at each call.

    Args:
        mean: Their mean.
        stddev: Their standard deviation.
        seed: An integer, or None.
    """

    def __init__(self, mean: Any = 0.0, stddev: Any = 0.05, seed: int | None = None) -> None:
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Tensor:
        sizes, wanted = _shape_of(shape, kwargs), as_dtype(dtype)
        if not wanted.is_floating:
            raise ValueError(f"Argument `dtype` is expected to be floating point. Received: {wanted}.")
        if self.seed is None:
            return normal(sizes, self.mean, self.stddev, wanted)
        return stateless_normal(sizes, [self.seed, 0], self.mean, self.stddev, wanted)

    def get_config(self) -> dict[str, Any]:
        return {"mean": self.mean, "stddev": self.stddev, "seed": self.seed}


class random_uniform_initializer(Initializer):  # TensorFlow's name
    """Numbers evenly distributed in [minval, maxval); with a seed the same ones at each call.

    Args:
        minval: The smallest.
        maxval: The bound; None: 1.
        seed: An integer, or None.
    """

    def __init__(self, minval: Any = -0.05, maxval: Any = 0.05, seed: int | None = None) -> None:
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Tensor:
        sizes, wanted = _shape_of(shape, kwargs), as_dtype(dtype)
        if not (wanted.is_floating or wanted.is_integer):
            raise ValueError(f"Argument `dtype` is expected to be numeric. Received: {wanted}.")
        if self.seed is None:
            return uniform(sizes, self.minval, self.maxval, wanted)
        return stateless_uniform(sizes, [self.seed, 0], self.minval, self.maxval, wanted)

    def get_config(self) -> dict[str, Any]:
        return {"minval": self.minval, "maxval": self.maxval, "seed": self.seed}
