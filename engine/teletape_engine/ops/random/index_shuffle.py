"""Pseudorandom permutations of which one position is computed at a time, by a block cipher.

Four rounds of Simon (Beaulieu et al., "The Simon and Speck Families of Lightweight Block Ciphers", 2013) on the fewest
bits that hold the largest position, again and again until the result is a position: Black and Rogaway, "Ciphers with
Arbitrary Finite Domains", 2002. TensorFlow's permutations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.arrays.cpu import on_host
from teletape_engine.catalogue.define import on_gpu, op, sample
from teletape_engine.catalogue.families import batch_loop
from teletape_engine.catalogue.rule import NOT_REGISTERED
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import DTYPES, KERNEL_NAMES, Spec, broadcast, shape_text

_POSITIONS: Final = frozenset(DTYPES[name] for name in ("int32", "int64", "uint32", "uint64"))
_SHORTEST: Final = 16  #: Bits of a block at least.
_MOST_ROUNDS: Final = 128  #: Simon itself has 72 at most.
_TABLE: Final = 4 << 20  #: Of a seed's table of all short blocks, and of what makes it.
_CONSTANT: Final = 0xFFFFFFFC
_SEQUENCE: Final = 0x7369F885192C0EF5
_U64: Final = np.uint64


def _shuffle_spec(index: Spec, seed: Spec, max_index: Spec, *, rounds: int) -> Spec:
    for name, spec in (("index", index), ("seed", seed), ("max_index", max_index)):
        if spec.dtype not in _POSITIONS:
            raise InvalidArgumentError(f"{name} must be an integer of 32 or 64 bits, found {KERNEL_NAMES[spec.dtype]}")
    if index.dtype is not max_index.dtype:
        raise InvalidArgumentError(f"index and max_index must have one dtype, found {index!r} and {max_index!r}")
    if index.ndim > 1 or max_index.ndim > 1 or seed.ndim not in (1, 2) or seed.shape[-1] != 3:
        raise InvalidArgumentError(
            "index and max_index must be scalars or vectors and seed [3] or [n, 3], found shapes "
            f"{shape_text(index.shape)}, {shape_text(max_index.shape)} and {shape_text(seed.shape)}"
        )
    if not 4 <= rounds <= _MOST_ROUNDS or rounds % 2:
        raise InvalidArgumentError(f"rounds must be even and in [4, {_MOST_ROUNDS}], found {rounds}")
    return index.with_shape(broadcast(broadcast(index.shape, max_index.shape), seed.shape[:-1]))


@op(
    infer=_shuffle_spec,
    vjp=NOT_REGISTERED,
    batch=batch_loop,
    samples=[
        sample(np.arange(5), np.array([498247692, 5, 9]), np.array(4)),
        sample(np.array(3, np.int32), np.array([[1, 2, 3], [4, 5, 6]]), np.array([70000, 9], np.int32), rounds=8),
    ],
    op_type="RandomIndexShuffle",
    like=(0, 1, 0),
    refuses=("index", "max_index"),
    workspace=lambda index, seed, max_index, *, rounds: (
        200 * _shuffle_spec(index, seed, max_index, rounds=rounds).size + _TABLE * math.prod(seed.shape[:-1])
    ),
    integers=("index", "seed", "max_index"),
)
@on_gpu(down="its inputs", up="the places, which the host computes")
def random_index_shuffle(xp: ArrayModule, index: Array, seed: Array, max_index: Array, *, rounds: int = 4) -> Array:
    """The positions of `index` in permutations of 0 to max_index, one for each seed of three integers.

    index and max_index are scalars or vectors, seed is [3] or [n, 3]; they broadcast.

    Raises:
        InvalidArgumentError: An index is negative or above max_index.
    """
    position, last, keys = (on_host(each) for each in (index, max_index, seed))
    if ((position < 0) | (position > last)).any():
        raise InvalidArgumentError("each index must be in [0, max_index]")
    shape = np.broadcast_shapes(position.shape, last.shape, keys.shape[:-1])
    flat, ends = (np.broadcast_to(each.astype(_U64), shape).reshape(-1) for each in (position, last))
    words = [np.broadcast_to(keys[..., k].astype(np.uint32).astype(_U64), shape).reshape(-1) for k in range(3)]
    return xp.asarray(_shuffled(flat, ends, words, rounds).reshape(shape).astype(index.dtype))


def _shuffled(position: Array, last: Array, keys: Sequence[Array], rounds: int) -> Array:
    bits = np.ceil(np.log2(np.maximum(last, _U64(1)).astype(np.float64))).astype(np.int64)
    size = (np.clip(bits + bits % 2, _SHORTEST, 64) // 2).astype(_U64)  # of a word, half a block
    mask = (_U64(1) << size) - _U64(1)
    schedule = [key & mask for key in keys]
    sequence = _U64(_SEQUENCE) & mask
    for _ in range(3, rounds):
        before = schedule[-1]
        turned = _turned(before, size - _U64(3), size) ^ _turned(before, size - _U64(4), size)
        schedule.append((_U64(_CONSTANT) & mask) ^ (sequence & _U64(1)) ^ schedule[-3] ^ turned)
        sequence = sequence >> _U64(1)
    result = np.where(last == 0, _U64(0), position)
    short = (size == _SHORTEST // 2) & (last > 0)
    unfinished = np.flatnonzero(~short & (last > 0))  # each takes about four turns at most
    while unfinished.size:
        chosen = [key[unfinished] for key in schedule]
        result[unfinished] = _encrypted(result[unfinished], size[unfinished], chosen)
        unfinished = unfinished[result[unfinished] > last[unfinished]]
    tables: dict[tuple[int, ...], list[int]] = {}
    for place in np.flatnonzero(short).tolist():  # up to 2**16 turns: through a table of all blocks
        words = tuple([int(key[place]) for key in schedule])
        table = tables.get(words)
        if table is None:
            blocks = np.arange(2**_SHORTEST, dtype=_U64)
            table = tables[words] = _encrypted(blocks, size[place], [_U64(word) for word in words]).tolist()
        value, end = table[int(position[place])], int(last[place])
        while value > end:
            value = table[value]
        result[place] = value
    return result


def _encrypted(blocks: Array, width: Any, schedule: Sequence[Array | np.uint64]) -> Array:
    """Returns blocks of two words of `width` bits after all rounds, of which `schedule` has the keys."""
    ones = (_U64(1) << width) - _U64(1)
    left, right = (blocks >> width) & ones, blocks & ones
    for first, second in zip(schedule[::2], schedule[1::2], strict=True):
        left = left ^ _round(right, width) ^ first
        right = right ^ _round(left, width) ^ second
    return left << width | right


def _turned(word: Array, by: Array | np.uint64, width: Any) -> Array:
    """Returns words of `width` bits turned to the left."""
    return (word << by | word >> (width - by)) & ((_U64(1) << width) - _U64(1))


def _round(word: Array, width: Any) -> Array:
    return (_turned(word, _U64(1), width) & _turned(word, _U64(8), width)) ^ _turned(word, _U64(2), width)
