"""Random numbers from a state of three integers of int64, as TensorFlow draws them: Philox 4x32 with 10 rounds.

`arrays/philox.py` says what a state is. The numbers are the host's; a GPU gets a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from teletape_engine.arrays import Array, ArrayModule, philox
from teletape_engine.arrays.cpu import on_host
from teletape_engine.catalogue.define import on_gpu, op, sample
from teletape_engine.catalogue.families import batch_loop
from teletape_engine.catalogue.op import Trait
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE, NOT_REGISTERED
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.random.seeded import allowed_dtype, dtype_of_bounds
from teletape_engine.spec import (
    DTYPES,
    FLOATING,
    INDEX,
    INTEGER,
    DType,
    Shape,
    Spec,
    shape_text,
)

_F32, _F64, _I64 = DTYPES["float32"], DTYPES["float64"], DTYPES["int64"]
_WHOLE: Final = tuple(DTYPES[name] for name in ("int32", "int64", "uint32", "uint64"))
_SCRAMBLER: Final = 0x02461E293EC8F720  #: The key under which a seed becomes a state.
_STATE: Final = np.array([1234, 0, 7])


def unsigned(values: Array) -> list[int]:
    """Returns the 64-bit integers of an array as integers that are not negative."""
    host = on_host(values)
    return [int(value) & (2**64 - 1) for value in host.reshape(-1)]


def _filled(
    xp: ArrayModule, state: Array, shape: Shape, dtype: DType, numbers: Callable[..., Sequence[philox.Array]]
) -> Array:
    drawn = philox.filled(unsigned(state), Spec.of(shape, dtype).size, dtype, numbers)
    return xp.asarray(drawn.reshape(shape))


# ---------------------------------------------------------------------------------------------------------------- ops
def check_state(state: Spec) -> None:
    """Raises InvalidArgumentError unless the spec is that of a state."""
    if state.shape != (3,) or state.dtype is not _I64:
        raise InvalidArgumentError(
            f"the state of Philox is three integers of int64, [counter, counter, key]; found {state!r}"
        )


def _float_spec(state: Spec, *, shape: Shape, dtype: DType) -> Spec:
    check_state(state)
    return Spec.of(shape, allowed_dtype(dtype, FLOATING))


def _bytes(state: Spec, *, shape: Shape, dtype: DType) -> int:
    return philox.WORDS * dtype.itemsize + philox.workspace(Spec.of(shape, dtype).size)


_FLOAT_SAMPLES: Final = [
    sample(_STATE, shape=(2, 3)),
    sample(_STATE, shape=(), dtype=_F64),
    sample(np.array([-1, -1, -7]), shape=(3,), dtype=DTYPES["float16"]),
    sample(_STATE, shape=(0, 2)),
]


@op(
    infer=_float_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_loop,
    samples=_FLOAT_SAMPLES,
    op_type="StatelessRandomUniformV2",
    workspace=_bytes,
    integers=("state",),
    traits=[Trait.RANDOM],
)
@on_gpu(down="the state", up="the numbers, which the host draws")
def philox_uniform(xp: ArrayModule, state: Array, *, shape: Shape, dtype: DType = _F32) -> Array:
    """Numbers uniform in [0, 1) from a state of Philox: int64 [3]."""
    return _filled(xp, state, shape, dtype, lambda *words: philox.uniforms(words, dtype))


@op(
    infer=_float_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_loop,
    samples=_FLOAT_SAMPLES,
    op_type="StatelessRandomNormalV2",
    workspace=_bytes,
    integers=("state",),
    traits=[Trait.RANDOM],
)
@on_gpu(down="the state", up="the numbers, which the host draws")
def philox_normal(xp: ArrayModule, state: Array, *, shape: Shape, dtype: DType = _F32) -> Array:
    """Normal numbers of mean 0 and deviation 1 from a state of Philox: int64 [3]."""
    return _filled(xp, state, shape, dtype, lambda *words: philox.normals(words, dtype))


@op(
    infer=_float_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_loop,
    samples=_FLOAT_SAMPLES,
    op_type="StatelessTruncatedNormalV2",
    workspace=_bytes,
    integers=("state",),
    traits=[Trait.RANDOM],
)
@on_gpu(down="the state", up="the numbers, which the host draws")
def philox_truncated_normal(xp: ArrayModule, state: Array, *, shape: Shape, dtype: DType = _F32) -> Array:
    """Normal numbers of mean 0 and deviation 1, each below 2 in size, from a state of Philox: int64 [3].

    Each group of numbers draws from blocks of its own until it has enough.
    """
    drawn = philox.truncated_normals(unsigned(state), Spec.of(shape, dtype).size, dtype)
    return xp.asarray(drawn.reshape(shape))


def _bits_spec(state: Spec, *, shape: Shape, dtype: DType) -> Spec:
    check_state(state)
    return Spec.of(shape, allowed_dtype(dtype, _WHOLE))


@op(
    infer=_bits_spec,
    vjp=NOT_REGISTERED,
    batch=batch_loop,
    samples=[
        sample(_STATE, shape=(2, 3)),
        sample(_STATE, shape=(), dtype=DTYPES["int32"]),
        sample(_STATE, shape=(3,), dtype=DTYPES["uint64"]),
    ],
    op_type="StatelessRandomUniformFullIntV2",
    workspace=_bytes,
    integers=("state",),
    traits=[Trait.RANDOM],
)
@on_gpu(down="the state", up="the numbers, which the host draws")
def philox_bits(xp: ArrayModule, state: Array, *, shape: Shape, dtype: DType = _I64) -> Array:
    """Integers uniform in the whole range of int32, int64, uint32 or uint64, from a state of Philox: int64 [3]."""

    def numbers(*words: philox.Array) -> list[philox.Array]:
        return [word.astype(dtype) for word in philox.whole_numbers(words, dtype)]

    return _filled(xp, state, shape, dtype, numbers)


def _integers_spec(state: Spec, minval: Spec, maxval: Spec, *, shape: Shape) -> Spec:
    check_state(state)
    return Spec.of(shape, dtype_of_bounds(minval, maxval))


@op(
    infer=_integers_spec,
    vjp=NOT_REGISTERED,
    batch=batch_loop,
    samples=[
        sample(_STATE, np.array(-2), np.array(5), shape=(2, 3)),
        sample(_STATE, np.array(0, np.int32), np.array(1, np.int32), shape=()),
    ],
    op_type="StatelessRandomUniformIntV2",
    refuses=("minval", "maxval"),
    like=(0, 1, 1),
    workspace=lambda state, minval, maxval, *, shape: philox.workspace(minval.with_shape(shape).size),
    integers=("state", "minval", "maxval"),
    traits=[Trait.RANDOM],
)
@on_gpu(waits="the bounds", down="the state", up="the numbers, which the host draws")
def philox_integers(xp: ArrayModule, state: Array, minval: Array, maxval: Array, *, shape: Shape) -> Array:
    """Integers uniform in [minval, maxval), of their dtype, from a state of Philox: int64 [3].

    Raises:
        InvalidArgumentError: minval is not below maxval.
    """
    low, high, dtype = int(minval), int(maxval), minval.dtype
    if low >= high:
        raise InvalidArgumentError(f"Need minval < maxval, got {low} >= {high}")
    reach, offset = np.uint64(high - low), np.uint64(low & (2**64 - 1))

    def numbers(*words: philox.Array) -> list[philox.Array]:
        return [(word % reach + offset).astype(dtype) for word in philox.whole_numbers(words, dtype)]

    return _filled(xp, state, shape, dtype, numbers)


def _skip_spec(state: Spec, delta: Spec) -> Spec:
    check_state(state)
    if delta.shape or delta.dtype not in INTEGER:
        raise InvalidArgumentError(f"delta must be an integer scalar, found {delta!r}")
    return state


@op(
    infer=_skip_spec,
    vjp=NOT_REGISTERED,
    batch=batch_loop,
    samples=[sample(_STATE, np.array(3)), sample(np.array([-5, -1, 2]), np.array(2**60, np.int64))],
    op_type="RngReadAndSkip",
    integers=("state", "delta"),
)
@on_gpu(down="the state", up="the next one")
def philox_skip(xp: ArrayModule, state: Array, delta: Array) -> Array:
    """The state after `delta` numbers have been drawn from a state of Philox: int64 [3]."""
    low, high, key = unsigned(state)
    counter = ((high << 64) + low + philox.RESERVED * unsigned(delta)[0] % 2**64) % 2**128
    return xp.asarray(np.array([counter % 2**64, counter >> 64, key], np.uint64).view(_I64))


def _state_spec(seed: Spec) -> Spec:
    if seed.shape != (2,) or seed.dtype not in INDEX:
        raise InvalidArgumentError(
            f"seed must be two integers of int32 or int64, found {seed.dtype.name} of shape {shape_text(seed.shape)}"
        )
    return Spec.of((3,), _I64)


@op(
    infer=_state_spec,
    vjp=NOT_REGISTERED,
    batch=batch_loop,
    samples=[sample(np.array([3, -5])), sample(np.array([1, 2], np.int32))],
    op_type="StatelessRandomGetKeyCounter",
    integers=("seed",),
)
@on_gpu(down="the seed", up="the state")
def philox_state(xp: ArrayModule, seed: Array) -> Array:
    """The state of Philox that follows from a seed of two integers: a block of it under a fixed key."""
    first, second = unsigned(seed)
    with np.errstate(over="ignore"):
        words = [int(word[0]) for word in philox.blocks((first, second, _SCRAMBLER), np.zeros(1, np.uint64))]
    state = [0, words[2] | words[3] << 32, words[0] | words[1] << 32]
    return xp.asarray(np.array(state, np.uint64).view(_I64))
