"""Random arrays from two numbers, a seed and a counter: the same two give the same result.

Composites on the ops that draw from a state of Philox: their state is [0, counter, seed], which is also that of
TensorFlow's kernels with the attributes seed and seed2. Distributions with parameters take a state: `distributions`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np

from teletape_engine.catalogue.define import sample
from teletape_engine.catalogue.families import composite
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.operand import Operand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import DTYPES, INDEX, INTEGER, KERNEL_NAMES, DType, Shape, Spec, shape_text

_F32: Final = DTYPES["float32"]
_I64: Final = DTYPES["int64"]
_KEYS: Final = (np.array(7), np.array(1))
_BOTH: Final = ("seed", "counter")


def dtype_of_bounds(minval: Spec, maxval: Spec) -> DType:
    """Returns the dtype of whole numbers between two bounds.

    Raises:
        InvalidArgumentError: The bounds are not two int32 or two int64 scalars.
    """
    if minval.dtype is not maxval.dtype or minval.dtype not in INDEX or minval.shape or maxval.shape:
        raise InvalidArgumentError(
            f"minval and maxval must be two int32 or two int64 scalars, found {minval!r} and {maxval!r}"
        )
    return minval.dtype


def allowed_dtype(dtype: DType, dtypes: Collection[DType]) -> DType:
    """Returns the dtype of an attribute.

    Raises:
        InvalidArgumentError: It is not one of `dtypes`.
    """
    if dtype not in dtypes:
        takes = ", ".join(name for kind, name in KERNEL_NAMES.items() if kind in dtypes)
        raise InvalidArgumentError(
            f"Value for attr 'dtype' of {KERNEL_NAMES[dtype]} is not in the list of allowed values: {takes}"
        )
    return dtype


def _state(seed: Operand, counter: Operand) -> Operand:
    """Returns the state of Philox of a seed and a counter.

    Raises:
        InvalidArgumentError: They are not integer scalars.
    """
    for name, key in zip(_BOTH, (seed, counter), strict=True):
        if tuple(key.shape) or key.dtype not in INTEGER:
            raise InvalidArgumentError(
                f"{name} must be an integer scalar, found {key.dtype.name} of shape {shape_text(tuple(key.shape))}"
            )
    whole = ops.cast(seed, dtype=_I64)
    return ops.stack(ops.zeros_like(whole), ops.cast(counter, dtype=_I64), whole)


_SAMPLES: Final = [
    sample(*_KEYS, shape=(2, 3)),
    sample(*_KEYS, shape=(), dtype=DTYPES["float64"]),
    sample(np.array(-7), np.array(2**40), shape=(0, 2)),
]


@composite(samples=_SAMPLES, like=(0, 1), integers=_BOTH, op_type="RandomStandardNormal")
def random_normal(seed: Operand, counter: Operand, *, shape: Shape, dtype: DType = _F32) -> Operand:
    """Normal numbers of mean 0 and deviation 1. seed, counter: integer scalars."""
    return ops.philox_normal(_state(seed, counter), shape=shape, dtype=dtype)


@composite(samples=_SAMPLES, like=(0, 1), integers=_BOTH, op_type="TruncatedNormal")
def truncated_normal(seed: Operand, counter: Operand, *, shape: Shape, dtype: DType = _F32) -> Operand:
    """Normal numbers of mean 0 and deviation 1, all below 2 in size. seed, counter: integer scalars."""
    return ops.philox_truncated_normal(_state(seed, counter), shape=shape, dtype=dtype)


@composite(samples=_SAMPLES, like=(0, 1), integers=_BOTH, op_type="RandomUniform")
def random_uniform(seed: Operand, counter: Operand, *, shape: Shape, dtype: DType = _F32) -> Operand:
    """Numbers uniform in [0, 1). seed, counter: integer scalars."""
    return ops.philox_uniform(_state(seed, counter), shape=shape, dtype=dtype)


@composite(
    samples=[
        sample(*_KEYS, np.array(-2), np.array(5), shape=(2, 3)),
        sample(*_KEYS, np.array(0, np.int32), np.array(1, np.int32), shape=()),
    ],
    like=(0, 1, 2, 2),
    integers=(*_BOTH, "minval", "maxval"),
    op_type="RandomUniformInt",
)
def random_uniform_int(seed: Operand, counter: Operand, minval: Operand, maxval: Operand, *, shape: Shape) -> Operand:
    """Integers uniform in [minval, maxval), of their dtype. seed, counter: integer scalars.

    Raises:
        InvalidArgumentError: minval is not below maxval.
    """
    return ops.philox_integers(_state(seed, counter), minval, maxval, shape=shape)
