"""Philox 4x32 with 10 rounds: numbers that follow from a state, bit by bit those that TensorFlow draws on a CPU.

A state is three integers of 64 bits, [counter, counter, key]: the low and the high half of the counter of blocks, and
the key. A block is four words of 32 bits. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011. All of it
runs on the host.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from teletape_engine.spec import DType

WORDS: Final = 4  #: 32-bit words of a block.
RESERVED: Final = 256  #: Blocks by which a state advances for each number, whatever the distribution takes.
_AT_ONCE: Final = 8192  #: Blocks that are computed together: their words stay in the cache.
_OF_A_BLOCK: Final = 192  #: Bytes that the computation of a block takes at its peak.
_LOW: Final = np.uint64(0xFFFFFFFF)
_32: Final = np.uint64(32)
_MULTIPLIERS: Final = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_RAISES: Final = (0x9E3779B9, 0xBB67AE85)
_F64: Final = np.dtype(np.float64)

_WORDS_AHEAD: Final = 256  #: Words that are computed together if it is not known how many are needed.

Array = np.ndarray[Any, Any]
State = Sequence[int]


def blocks(state: State, offsets: Array) -> tuple[Array, Array, Array, Array]:
    """Returns the four words, as uint64, of the blocks at these distances (uint64) from the counter."""
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


# ------------------------------------------------------------------------------------------------- numbers of a block
def width(dtype: DType) -> int:
    """Returns how many numbers of a dtype a block gives."""
    return WORDS // 2 if dtype.itemsize == 8 else WORDS


def uniforms(words: Sequence[Array], dtype: DType) -> list[Array]:
    """Returns the numbers of blocks in [0, 1), from the lowest bits of their words."""
    if dtype == _F64:
        return [_double(words[0], words[1]), _double(words[2], words[3])]
    if dtype.itemsize == 2:
        return [_short(word, dtype) for word in words]
    return [_single(word) for word in words]


def _single(word: Array) -> Array:
    """Returns the lowest 23 bits of words as float32."""
    return ((word & np.uint64(0x7FFFFF)) | np.uint64(0x3F800000)).astype(np.uint32).view(np.float32) - np.float32(1)


def _double(high: Array, low: Array) -> Array:
    """Returns 20 bits of words and those of the next words as float64."""
    return ((((high & np.uint64(0xFFFFF)) | np.uint64(0x3FF00000)) << _32) | low).view(_F64) - 1


def _short(word: Array, dtype: DType) -> Array:
    """Returns the lowest bits of words, as many as the dtype of 16 bits has in its significand."""
    bits, exponent = (10, 15) if dtype == np.float16 else (7, 127)
    whole = (word & np.uint64(2**bits - 1)) | np.uint64(exponent << bits)
    fraction: Array = whole.astype(np.uint16).view(dtype) - dtype.type(1)
    return fraction


def normals(words: Sequence[Array], dtype: DType) -> list[Array]:
    """Returns the normal numbers of blocks, by the Box-Muller transform: four float32 or two float64 of a block.

    The functions are those of float64 also for float32: their rounded results are what a C library gives for float32,
    on any host.
    """
    numbers = []
    if dtype == _F64:
        pairs = [(_double(words[0], words[1]), _double(words[2], words[3]))]
    else:
        pairs = [(_single(words[0]), _single(words[1])), (_single(words[2]), _single(words[3]))]
    for first, second in pairs:
        kind = first.dtype.type
        above = np.maximum(first, kind(1e-7))
        angle = (2 * np.pi * second.astype(_F64)).astype(kind).astype(_F64)
        logarithm = np.log(above.astype(_F64)).astype(kind)
        length = np.sqrt(kind(-2) * logarithm)
        numbers += [np.sin(angle).astype(kind) * length, np.cos(angle).astype(kind) * length]
    return numbers


def whole_numbers(words: Sequence[Array], dtype: DType) -> list[Array]:
    """Returns the words, or pairs of them, as unsigned integers of the dtype's size, in uint64."""
    if dtype.itemsize == 4:
        return list(words)
    return [words[0] | (words[1] << _32), words[2] | (words[3] << _32)]


# ------------------------------------------------------------------------------------------------------ whole arrays
def workspace(size: int) -> int:
    """Returns the bytes that `size` numbers take while they are drawn, in addition to the result."""
    return _OF_A_BLOCK * min(size + WORDS, _AT_ONCE)


def filled(state: State, size: int, dtype: DType, numbers: Callable[..., Sequence[Array]]) -> Array:
    """Returns `size` numbers, as many of each block as it gives, by `numbers` of its four words."""
    drawn = np.empty((-(-size // width(dtype)), width(dtype)), dtype)
    with np.errstate(over="ignore"):
        for begin in range(0, len(drawn), _AT_ONCE):
            part = drawn[begin : begin + _AT_ONCE]
            words = blocks(state, np.arange(begin, begin + len(part), dtype=np.uint64))
            for column, values in enumerate(numbers(*words)):
                part[:, column] = values
    return drawn.reshape(-1)[:size]


def truncated_normals(state: State, size: int, dtype: DType) -> Array:
    """Returns `size` normal numbers below 2 in size. Each group of a block's numbers has blocks of its own."""
    drawn = np.empty((-(-size // width(dtype)), width(dtype)), dtype)
    with np.errstate(over="ignore"):
        for begin in range(0, len(drawn), _AT_ONCE):
            part = drawn[begin : begin + _AT_ONCE]
            _fill_truncated(part, state, np.arange(begin, begin + len(part), dtype=np.uint64))
    return drawn.reshape(-1)[:size]


def _fill_truncated(part: Array, state: State, groups: Array) -> None:
    """Writes the groups of these numbers into the rows of `part`."""
    each = part.shape[1]
    unfinished, counts = np.arange(len(part)), np.zeros(len(part), np.int64)
    offsets = groups * np.uint64(each * RESERVED // WORDS)
    while unfinished.size:
        numbers = np.stack(normals(blocks(state, offsets[unfinished]), part.dtype), 1)
        offsets += np.uint64(1)
        fits = np.abs(numbers) < 2
        places = counts[unfinished, None] + np.cumsum(fits, 1) - 1
        rows, columns = np.nonzero(fits & (places < each))
        part[unfinished[rows], places[rows, columns]] = numbers[rows, columns]
        counts[unfinished] += fits.sum(1)
        unfinished = unfinished[counts[unfinished] < each]


def words(state: State, count: int) -> Array:
    """Returns the first `count` words, as uint32."""
    return filled(state, count, np.dtype(np.uint32), lambda *each: each)


def endless_words(state: State) -> Iterator[int]:
    """Yields the words of the blocks from a state on, one after the other."""
    for begin in itertools.count(0, _WORDS_AHEAD // WORDS):
        yield from words((state[0] + begin, state[1], state[2]), _WORDS_AHEAD).tolist()


def permutation(state: State, n: int) -> Array:
    """Returns the numbers 0 to n - 1 in the order of Fisher and Yates, int64: position i changes with one from i up."""
    order = list(range(n))
    steps = words(state, max(n - 1, 0)).astype(np.int64) % np.arange(n, 1, -1)
    for place, step in enumerate(steps.tolist()):
        other = place + step
        order[place], order[other] = order[other], order[place]
    return np.array(order, np.int64)
