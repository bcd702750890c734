"""Random arrays without hidden state: seed and counter are inputs, and the same two give the same result.

NumPy's Philox keyed by (seed, counter), on the host; a GPU gets the host's numbers, so that both devices agree.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import numpy as np

from teletape_engine.catalogue.define import op, sample
from teletape_engine.catalogue.families import batch_loop
from teletape_engine.catalogue.op import Trait
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE, NOT_REGISTERED
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import (
    DTYPES,
    FLOATING,
    HALF,
    INDEX,
    INTEGER,
    KERNEL_NAMES,
    DType,
    Shape,
    Spec,
    half_bytes,
    shape_text,
)

_F32 = DTYPES["float32"]
_WORD: Final = 2**64 - 1
_KEYS = (np.array(7), np.array(1))


def generator(seed: Any, counter: Any) -> np.random.Generator:
    """The generator whose numbers follow from seed and counter."""
    return np.random.Generator(np.random.Philox(key=[int(seed) & _WORD, int(counter) & _WORD]))


def check_keys(*keys: Spec) -> None:
    """Raises InvalidArgumentError unless seed and counter are integer scalars."""
    for name, key in zip(("seed", "counter"), keys, strict=True):
        if key.shape != () or key.dtype not in INTEGER:
            raise InvalidArgumentError(
                f"{name} must be an integer scalar, found {key.dtype.name} of shape {shape_text(key.shape)}"
            )


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


def _spec(seed: Spec, counter: Spec, *, shape: Shape, dtype: DType) -> Spec:
    check_keys(seed, counter)
    return Spec.of(shape, allowed_dtype(dtype, FLOATING))


def _bytes(seed: Spec, counter: Spec, *, shape: Shape, dtype: DType) -> int:
    return half_bytes(Spec.of(shape, dtype), 2)


_SAMPLES = [
    sample(*_KEYS, shape=(2, 3)),
    sample(*_KEYS, shape=(), dtype=DTYPES["float64"]),
    sample(*_KEYS, shape=(3,), dtype=DTYPES["float16"]),
    sample(np.array(-7), np.array(2**40), shape=(0, 2)),
]


def _computed_in(dtype: DType) -> DType:
    return _F32 if dtype in HALF else dtype


@op(
    infer=_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_loop,
    samples=_SAMPLES,
    op_type="RandomStandardNormal",
    workspace=_bytes,
    integers=("seed", "counter"),
    traits=[Trait.RANDOM],
)
def random_normal(xp: Any, seed: Any, counter: Any, *, shape: Shape, dtype: DType = _F32) -> Any:
    """Normal numbers of mean 0 and deviation 1. seed, counter: integer scalars."""
    numbers = generator(seed, counter).standard_normal(shape, _computed_in(dtype))
    return xp.asarray(np.asarray(numbers).astype(dtype, copy=False))


@op(
    infer=_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_loop,
    samples=_SAMPLES,
    workspace=lambda seed, counter, *, shape, dtype: 9 * Spec.of(shape, dtype).size,
    integers=("seed", "counter"),
    traits=[Trait.RANDOM],
)
def truncated_normal(xp: Any, seed: Any, counter: Any, *, shape: Shape, dtype: DType = _F32) -> Any:
    """Normal numbers of mean 0 and deviation 1, those beyond 2 are drawn again. seed, counter: integer scalars."""
    source = generator(seed, counter)
    numbers = np.asarray(source.standard_normal(shape, _computed_in(dtype)))
    flat = numbers.reshape(-1)
    again = np.flatnonzero(np.abs(flat) > 2)
    while again.size:
        flat[again] = source.standard_normal(again.size, _computed_in(dtype))
        again = again[np.abs(flat[again]) > 2]
    return xp.asarray(numbers.astype(dtype, copy=False))


@op(
    infer=_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_loop,
    samples=_SAMPLES,
    workspace=_bytes,
    integers=("seed", "counter"),
    traits=[Trait.RANDOM],
)
def random_uniform(xp: Any, seed: Any, counter: Any, *, shape: Shape, dtype: DType = _F32) -> Any:
    """Numbers uniform in [0, 1). seed, counter: integer scalars."""
    numbers = np.asarray(generator(seed, counter).random(shape, _computed_in(dtype)))
    if dtype in HALF:  # rounding must not reach 1
        numbers = np.minimum(numbers, np.nextafter(dtype.type(1), dtype.type(0)).astype(_F32))
    return xp.asarray(numbers.astype(dtype, copy=False))


def _integers_spec(seed: Spec, counter: Spec, minval: Spec, maxval: Spec, *, shape: Shape) -> Spec:
    check_keys(seed, counter)
    return Spec.of(shape, dtype_of_bounds(minval, maxval))


@op(
    infer=_integers_spec,
    vjp=NOT_REGISTERED,
    batch=batch_loop,
    samples=[
        sample(*_KEYS, np.array(-2), np.array(5), shape=(2, 3)),
        sample(*_KEYS, np.array(0, np.int32), np.array(1, np.int32), shape=()),
    ],
    refuses=("minval", "maxval"),
    like=(0, 1, 2, 2),
    integers=("seed", "counter", "minval", "maxval"),
    traits=[Trait.RANDOM],
)
def random_uniform_int(xp: Any, seed: Any, counter: Any, minval: Any, maxval: Any, *, shape: Shape) -> Any:
    """Integers uniform in [minval, maxval), of their dtype. seed, counter: integer scalars.

    Raises:
        InvalidArgumentError: minval is not below maxval.
    """
    low, high = int(minval), int(maxval)
    if low >= high:
        raise InvalidArgumentError(f"Need minval < maxval, got {low} >= {high}")
    return xp.asarray(generator(seed, counter).integers(low, high, shape, minval.dtype))
