"""`tf.random.stateless_…`: numbers drawn from a seed that is an argument; the same seed gives the same numbers."""

from __future__ import annotations

from typing import Any

from teletape.ops import arguments as to
from teletape.ops.dispatch import convert_to_tensor
from teletape.ops.random import scaled, uniform_between
from teletape.tensors import dtypes
from teletape.tensors.tensor import Tensor
from teletape_engine.errors import InvalidArgumentError

__all__ = ["stateless_normal", "stateless_truncated_normal", "stateless_uniform"]


def keys(seed: Any) -> tuple[Tensor, Tensor]:
    """Returns the key and counter of a seed: a vector of two integers.

    Raises:
        InvalidArgumentError: Another shape or dtype.
    """
    numbers = convert_to_tensor(seed)
    if numbers.shape != [2]:
        raise InvalidArgumentError(f"seed must have shape [2], not {numbers.shape}")
    return numbers[0], numbers[1]


def stateless_normal(
    shape: to.IntsInput,
    seed: to.TensorInput,
    mean: to.TensorInput = 0.0,
    stddev: to.TensorInput = 1.0,
    dtype: to.DTypeInput = dtypes.float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> Tensor:
    """Normally distributed numbers; `seed` holds two integers."""
    return scaled("random_normal", shape, mean, stddev, dtype, lambda: keys(seed))


def stateless_truncated_normal(
    shape: to.IntsInput,
    seed: to.TensorInput,
    mean: to.TensorInput = 0.0,
    stddev: to.TensorInput = 1.0,
    dtype: to.DTypeInput = dtypes.float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> Tensor:
    """Normally distributed numbers, none further than two standard deviations from the mean; see `stateless_normal`."""
    return scaled("truncated_normal", shape, mean, stddev, dtype, lambda: keys(seed))


def stateless_uniform(
    shape: to.IntsInput,
    seed: to.TensorInput,
    minval: to.TensorInput = 0,
    maxval: to.TensorInput | None = None,
    dtype: to.DTypeInput = dtypes.float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> Tensor:
    """Numbers evenly distributed in [minval, maxval); integers need `maxval`. `seed` holds two integers."""
    return uniform_between(shape, minval, maxval, dtype, lambda: keys(seed))
