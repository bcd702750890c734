"""Seeds and states of random ops: the same as TensorFlow's after the same calls in the same order.

TensorFlow has a kernel for each random op with its seeds and attributes, and the kernel has a counter, which each draw
advances. `tf.random.set_seed` resets all counters. The seeds of an op follow from the program's seed and the call's; if
neither is set, they come from the operating system.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Hashable
from typing import Any, Final

import numpy as np

from teletape_engine.arrays import HostArray
from teletape_engine.locks import ReentrantLock

Seeds = tuple[int, int] | None  #: The seeds of an op; None: from the operating system.

_WITHOUT_PROGRAM_SEED: Final = 87654321
_MODULUS: Final = 2**31 - 1
_WORD: Final = 2**64
_lock: Final = ReentrantLock()


class Draws:
    """The draws of one random op with its seeds; each continues after the one before.

    Args:
        seeds: The op's seeds.

    Attributes:
        seeds: The op's seeds.
    """

    __slots__ = ("_first", "_second", "_since", "_used", "seeds")

    def __init__(self, seeds: Seeds) -> None:
        self.seeds = seeds
        self._first, self._second = (secrets.randbits(64), secrets.randbits(64)) if seeds is None else seeds
        self._used, self._since = 0, PROGRAM.resets

    def state(self, blocks: int) -> HostArray:
        """Returns the state of the next draw, int64 [3], which takes `blocks` blocks."""
        with _lock:
            if self._since != PROGRAM.resets and self.seeds is not None:
                self._used, self._since = 0, PROGRAM.resets
            counter = self._used + self._second * _WORD
            self._used += blocks
        words = [counter % _WORD, counter // _WORD % _WORD, self._first % _WORD]
        return np.array(words, np.uint64).view(np.int64)

    def of_another_kernel(self) -> Draws:
        """Returns the draws of another op with the same seeds."""
        return Draws(self.seeds)


class _Program:
    """The seed of the program, and the draws of its ops outside of functions.

    Attributes:
        seed: The seed of `tf.random.set_seed`, or None.
        resets: The number of times it was set.
    """

    def __init__(self) -> None:
        self.seed: int | None = None
        self.resets = 0
        self._random = random.Random()
        self._kernels: dict[Hashable, Draws] = {}

    def set_seed(self, seed: int | None) -> None:
        """Sets the seed; all draws start again."""
        with _lock:
            self.seed = seed
            self._random = random.Random(seed)
            self._kernels = {key: draws for key, draws in self._kernels.items() if draws.seeds is None}
            self.resets += 1

    def next_op_seed(self) -> int:
        """Returns the seed of the next op without a seed."""
        with _lock:
            return self._random.randint(0, _MODULUS)

    def draws(self, kernel: Hashable, seeds: Seeds) -> Draws:
        """Returns the draws of an op with these attributes and seeds."""
        key = kernel, seeds
        draws = self._kernels.get(key)
        return self._kernels.setdefault(key, Draws(seeds)) if draws is None else draws


PROGRAM: Final = _Program()


def whole_seed(seed: Any) -> int | None:
    """Returns a seed as an integer, or None."""
    return None if seed is None else int(seed)


def seeds_of(program_seed: int | None, next_op_seed: Any, seed: Any) -> Seeds:
    """Returns the seeds of an op.

    Args:
        program_seed: The seed of the program, or of the function that is traced.
        next_op_seed: Returns the seed of an op without a seed.
        seed: The op's seed, or None.
    """
    own = whole_seed(seed)
    if program_seed is None:
        return None if own is None else (_WITHOUT_PROGRAM_SEED, own % _MODULUS)
    seeds = program_seed % _MODULUS, (next_op_seed() if own is None else own) % _MODULUS
    return (0, _MODULUS) if seeds == (0, 0) else seeds
