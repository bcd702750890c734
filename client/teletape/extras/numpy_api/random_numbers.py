"""`tf.experimental.numpy.random`: random numbers in float64, from the program's own seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape._generated.shapes import cast
from teletape.core.tensors.tensor import Tensor
from teletape.extras.numpy_api.promotion import Preference, array, dtype_of
from teletape.tf.ops.random import stateful


def seed(s: int) -> None:
    """Sets the program's seed, as `tf.random.set_seed` does."""
    stateful.set_seed(int(s))


def randn(*args: int) -> Tensor:
    """Returns normal numbers in a shape."""
    return standard_normal(args)


def standard_normal(size: Any = None) -> Tensor:
    """Returns normal numbers in a shape; None: one."""
    return stateful.normal(_shape(size), dtype=Preference.floats)


def rand(*size: int) -> Tensor:
    """Returns uniform numbers from 0 to 1 in a shape."""
    return uniform(0.0, 1.0, size)


def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Tensor:
    """Returns uniform numbers from `low` up to `high`, in a shape that both broadcast to."""
    first, last = array(low, Preference.floats), array(high, Preference.floats)
    shape = (
        np.broadcast_shapes(tuple(first.shape.as_list()), tuple(last.shape.as_list())) if size is None else _shape(size)
    )
    return stateful.uniform(shape, dtype=Preference.floats) * (last - first) + first


def randint(low: int, high: int | None = None, size: Any = None, dtype: Any = np.int64) -> Tensor:
    """Returns whole numbers from `low` up to and without `high`; with one bound from 0 up to it."""
    first, last = (0, low) if high is None else (low, high)
    kind = dtype_of(dtype)
    return cast.cast(stateful.uniform(_shape(size), int(first), int(last), dtype="int64"), kind)


def poisson(lam: Any = 1.0, size: Any = None) -> Tensor:
    """Returns Poisson numbers of a rate, as int64."""
    return cast.cast(stateful.poisson(_shape(size), array(lam, Preference.floats)), "int64")


def _shape(size: Any) -> list[int]:
    if size is None:
        return []
    return [int(size)] if isinstance(size, int | np.integer) else [int(length) for length in size]
