"""Random numbers from a state of three integers, as TensorFlow draws them: Philox 4x32 with 10 rounds.

A state is [counter, counter, key], int64: the low and the high half of the counter of blocks, and the key. A block is
four words of 32 bits. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011. The numbers are the host's; a
GPU gets a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from teletape_engine.catalogue.define import op, sample
from teletape_engine.catalogue.families import batch_loop
from teletape_engine.catalogue.op import Trait
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE, NOT_REGISTERED
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.random import allowed_dtype, dtype_of_bounds
from teletape_engine.spec import (
    DTYPES,
    FLOATING,
    HALF,
    INDEX,
    INTEGER,
    DType,
    Shape,
    Spec,
    shape_text,
)

_F32, _F64, _I64 = DTYPES["float32"], DTYPES["float64"], DTYPES["int64"]
_WHOLE: Final = tuple(DTYPES[name] for name in ("int32", "int64", "uint32", "uint64"))
_WORDS: Final = 4  #: 32-bit words of a block.
_RESERVED: Final = 256  #: Blocks by which a state advances for each number, whatever the distribution takes.
_AT_ONCE: Final = 8192  #: Blocks that are computed together: their words stay in the cache.
_LOW: Final = np.uint64(0xFFFFFFFF)
_32: Final = np.uint64(32)
_MULTIPLIERS: Final = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_RAISES: Final = (0x9E3779B9, 0xBB67AE85)
_SCRAMBLER: Final = 0x02461E293EC8F720  #: The key under which a seed becomes a state.
_STATE: Final = np.array([1234, 0, 7])

_Words = np.ndarray[Any, Any]


# ------------------------------------------------------------------------------------------------------------- blocks
def _blocks(state: Sequence[int], offsets: _Words) -> tuple[_Words, _Words, _Words, _Words]:
    """The four words, as uint64, of the blocks at these distances (uint64) from the counter."""
    low = offsets + np.uint64(state[0])
    high = np.uint64(state[1]) + (low < offsets).astype(np.uint64)
    first, second, third, fourth = low & _LOW, low >> _32, high & _LOW, high >> _32
    keys = [state[2] & 0xFFFFFFFF, state[2] >> 32]
    for _ in range(10):
        one_product, other_product = first * _MULTIPLIERS[0], third * _MULTIPLIERS[1]
        first, second, third, fourth = (
            (other_product >> _32) ^ second ^ np.uint64(keys[0]),
            other_product & _LOW,
            (one_product >> _32) ^ fourth ^ np.uint64(keys[1]),
            one_product & _LOW,
        )
        keys = [(key + step) & 0xFFFFFFFF for key, step in zip(keys, _RAISES, strict=True)]
    return first, second, third, fourth


def _unsigned(values: Any) -> list[int]:
    """The 64-bit integers of an array as integers that are not negative."""
    host = np.asarray(values.get() if hasattr(values, "get") else values)
    return [int(value) & (2**64 - 1) for value in host.reshape(-1)]


def _filled(
    xp: Any, state: Any, shape: Shape, dtype: DType, width: int, numbers: Callable[..., Sequence[_Words]]
) -> Any:
    """An array whose groups of `width` numbers come from one block each, by `numbers` of its four words."""
    size = Spec.of(shape, dtype).size
    drawn = np.empty((-(-size // width), width), dtype)
    start = _unsigned(state)
    with np.errstate(over="ignore"):
        for begin in range(0, len(drawn), _AT_ONCE):
            part = drawn[begin : begin + _AT_ONCE]
            words = _blocks(start, np.arange(begin, begin + len(part), dtype=np.uint64))
            for column, values in enumerate(numbers(*words)):
                part[:, column] = values
    return xp.asarray(drawn.reshape(-1)[:size].reshape(shape))


# ------------------------------------------------------------------------------------------------------ distributions
def _fraction(word: _Words) -> _Words:
    """The lowest 23 bits of a word as a float32 in [0, 1)."""
    return ((word & np.uint64(0x7FFFFF)) | np.uint64(0x3F800000)).astype(np.uint32).view(_F32) - np.float32(1)


def _long_fraction(high: _Words, low: _Words) -> _Words:
    """20 bits of a word and those of the next as a float64 in [0, 1)."""
    return ((((high & np.uint64(0xFFFFF)) | np.uint64(0x3FF00000)) << _32) | low).view(_F64) - 1


def _short_fraction(word: _Words, dtype: DType) -> _Words:
    """The lowest bits of a word, as many as the dtype of 16 bits has in its significand, in [0, 1)."""
    bits, exponent = (10, 15) if dtype == np.float16 else (7, 127)
    whole = (word & np.uint64(2**bits - 1)) | np.uint64(exponent << bits)
    fraction: _Words = whole.astype(np.uint16).view(dtype) - dtype.type(1)
    return fraction


def _uniform(words: Sequence[_Words], dtype: DType) -> list[_Words]:
    if dtype == _F64:
        return [_long_fraction(words[0], words[1]), _long_fraction(words[2], words[3])]
    if dtype in HALF:
        return [_short_fraction(word, dtype) for word in words]
    return [_fraction(word) for word in words]


def _normal(words: Sequence[_Words], dtype: DType) -> list[_Words]:
    """The Box-Muller transform of pairs of fractions: of a block four float32 or two float64.

    The functions are those of float64 also for float32: their rounded results are what a C library gives for float32,
    on any host.
    """
    numbers = []
    if dtype == _F64:
        pairs = [(_long_fraction(words[0], words[1]), _long_fraction(words[2], words[3]))]
    else:
        pairs = [(_fraction(words[0]), _fraction(words[1])), (_fraction(words[2]), _fraction(words[3]))]
    for first, second in pairs:
        kind = first.dtype.type
        above = np.maximum(first, kind(1e-7))
        angle = (2 * np.pi * second.astype(_F64)).astype(kind).astype(_F64)
        logarithm = np.log(above.astype(_F64)).astype(kind)
        length = np.sqrt(kind(-2) * logarithm)
        numbers += [np.sin(angle).astype(kind) * length, np.cos(angle).astype(kind) * length]
    return numbers


def _width(dtype: DType) -> int:
    """Numbers of a block."""
    return _WORDS // 2 if dtype.itemsize == 8 else _WORDS


# ---------------------------------------------------------------------------------------------------------------- ops
def _check_state(state: Spec) -> None:
    if state.shape != (3,) or state.dtype is not _I64:
        raise InvalidArgumentError(
            f"the state of Philox is three integers of int64, [counter, counter, key]; found {state!r}"
        )


def _float_spec(state: Spec, *, shape: Shape, dtype: DType) -> Spec:
    _check_state(state)
    return Spec.of(shape, allowed_dtype(dtype, FLOATING))


def _bytes(state: Spec, *, shape: Shape, dtype: DType) -> int:
    return Spec.of(shape, dtype).size * dtype.itemsize + _WORDS * dtype.itemsize


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
def philox_uniform(xp: Any, state: Any, *, shape: Shape, dtype: DType = _F32) -> Any:
    """Numbers uniform in [0, 1) from a state of Philox: int64 [3]."""
    return _filled(xp, state, shape, dtype, _width(dtype), lambda *words: _uniform(words, dtype))


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
def philox_normal(xp: Any, state: Any, *, shape: Shape, dtype: DType = _F32) -> Any:
    """Normal numbers of mean 0 and deviation 1 from a state of Philox: int64 [3]."""
    return _filled(xp, state, shape, dtype, _width(dtype), lambda *words: _normal(words, dtype))


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
def philox_truncated_normal(xp: Any, state: Any, *, shape: Shape, dtype: DType = _F32) -> Any:
    """Normal numbers of mean 0 and deviation 1, each below 2 in size, from a state of Philox: int64 [3].

    Each group of numbers draws from blocks of its own until it has enough.
    """
    size, width, start = Spec.of(shape, dtype).size, _width(dtype), _unsigned(state)
    drawn = np.empty((-(-size // width), width), dtype)
    with np.errstate(over="ignore"):
        for begin in range(0, len(drawn), _AT_ONCE):
            part = drawn[begin : begin + _AT_ONCE]
            _fill_truncated(part, start, np.arange(begin, begin + len(part), dtype=np.uint64))
    return xp.asarray(drawn.reshape(-1)[:size].reshape(shape))


def _fill_truncated(part: _Words, start: Sequence[int], groups: _Words) -> None:
    """Writes the groups of these numbers into the rows of `part`."""
    width = part.shape[1]
    unfinished, counts = np.arange(len(part)), np.zeros(len(part), np.int64)
    offsets = groups * np.uint64(width * _RESERVED // _WORDS)
    while unfinished.size:
        numbers = np.stack(_normal(_blocks(start, offsets[unfinished]), part.dtype), 1)
        offsets += np.uint64(1)
        fits = np.abs(numbers) < 2
        places = counts[unfinished, None] + np.cumsum(fits, 1) - 1
        rows, columns = np.nonzero(fits & (places < width))
        part[unfinished[rows], places[rows, columns]] = numbers[rows, columns]
        counts[unfinished] += fits.sum(1)
        unfinished = unfinished[counts[unfinished] < width]


def _whole_numbers(words: Sequence[_Words], dtype: DType) -> list[_Words]:
    """The words, or pairs of them, as unsigned integers of the dtype's size, in uint64."""
    if dtype.itemsize == 4:
        return list(words)
    return [words[0] | (words[1] << _32), words[2] | (words[3] << _32)]


def _bits_spec(state: Spec, *, shape: Shape, dtype: DType) -> Spec:
    _check_state(state)
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
def philox_bits(xp: Any, state: Any, *, shape: Shape, dtype: DType = _I64) -> Any:
    """Integers uniform in the whole range of int32, int64, uint32 or uint64, from a state of Philox: int64 [3]."""

    def numbers(*words: _Words) -> list[_Words]:
        return [word.astype(dtype) for word in _whole_numbers(words, dtype)]

    return _filled(xp, state, shape, dtype, _width(dtype), numbers)


def _integers_spec(state: Spec, minval: Spec, maxval: Spec, *, shape: Shape) -> Spec:
    _check_state(state)
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
    workspace=lambda state, minval, maxval, *, shape: 2 * minval.with_shape(shape).nbytes,
    integers=("state", "minval", "maxval"),
    traits=[Trait.RANDOM],
)
def philox_integers(xp: Any, state: Any, minval: Any, maxval: Any, *, shape: Shape) -> Any:
    """Integers uniform in [minval, maxval), of their dtype, from a state of Philox: int64 [3].

    Raises:
        InvalidArgumentError: minval is not below maxval.
    """
    low, high, dtype = int(minval), int(maxval), minval.dtype
    if low >= high:
        raise InvalidArgumentError(f"Need minval < maxval, got {low} >= {high}")
    reach, offset = np.uint64(high - low), np.uint64(low & (2**64 - 1))

    def numbers(*words: _Words) -> list[_Words]:
        return [(word % reach + offset).astype(dtype) for word in _whole_numbers(words, dtype)]

    return _filled(xp, state, shape, dtype, _width(dtype), numbers)


def _skip_spec(state: Spec, delta: Spec) -> Spec:
    _check_state(state)
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
def philox_skip(xp: Any, state: Any, delta: Any) -> Any:
    """The state after `delta` numbers have been drawn from a state of Philox: int64 [3]."""
    low, high, key = _unsigned(state)
    counter = ((high << 64) + low + _RESERVED * _unsigned(delta)[0] % 2**64) % 2**128
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
def philox_state(xp: Any, seed: Any) -> Any:
    """The state of Philox that follows from a seed of two integers: a block of it under a fixed key."""
    first, second = _unsigned(seed)
    with np.errstate(over="ignore"):
        words = [int(word[0]) for word in _blocks((first, second, _SCRAMBLER), np.zeros(1, np.uint64))]
    state = [0, words[2] | words[3] << 32, words[0] | words[1] << 32]
    return xp.asarray(np.array(state, np.uint64).view(_I64))
