"""`tf.random`: numbers drawn from a key and a counter that the program holds. The engine keeps no hidden state."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from teletape.ops import arguments as to
from teletape.ops.dispatch import call, convert_to_tensor
from teletape.sessions.current import current
from teletape.tensors import dtypes
from teletape.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import InvalidArgumentError

__all__ = ["normal", "set_seed", "truncated_normal", "uniform"]

_BITS: Final = 31  #: Keys and counters travel as int32 literals.
_MASK: Final = (1 << _BITS) - 1
_lock: Final = threading.Lock()


class _State:
    """The program's key, and how many draws it has made with it."""

    def __init__(self) -> None:
        self.seed = secrets.randbits(_BITS)
        self.drawn = 0
        self.by_seed: dict[int, int] = {}

    def next(self, seed: int | None) -> tuple[int, int]:
        """(key, counter) of the next draw; each seed of an op has a count of its own."""
        with _lock:
            if seed is None:
                self.drawn += 1
                return self.seed, self.drawn
            count = self.by_seed.get(seed, 0) + 1
            self.by_seed[seed] = count
            return (self.seed * 1_000_003 + seed + 1) & _MASK, count


_state = _State()


def next_draw(seed: int | None = None) -> tuple[Any, Any]:
    """The key and counter of the program's next draw, which `set_seed` makes repeatable.

    Args:
        seed: Of the op: each seed has a key and a count of its own.

    Returns:
        Two int32 numbers, not negative: the inputs of the engine's random ops. While a function is traced, two tensors;
        each call of the function gives them new numbers.
    """
    return current().draw(partial(_next, seed))


def _next(seed: int | None) -> tuple[int, int]:
    return _state.next(seed)


def set_seed(seed: int) -> None:
    """Makes the draws that follow repeatable: the same seed, the same numbers, on any host of one kind."""
    global _state
    fresh = _State()
    fresh.seed = int(seed) & _MASK
    _state = fresh


def _dims(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, int):
        raise InvalidArgumentError(f"shape must be a vector of {{int32,int64}}, got shape []; write [{shape}]")
    return to.lengths(shape, "RandomStandardNormal")


def normal(
    shape: to.IntsInput,
    mean: to.TensorInput = 0.0,
    stddev: to.TensorInput = 1.0,
    dtype: to.DTypeInput = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers."""
    return scaled("random_normal", shape, mean, stddev, dtype, lambda: next_draw(seed))


def truncated_normal(
    shape: to.IntsInput,
    mean: to.TensorInput = 0.0,
    stddev: to.TensorInput = 1.0,
    dtype: to.DTypeInput = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers, none further than two standard deviations from the mean."""
    return scaled("truncated_normal", shape, mean, stddev, dtype, lambda: next_draw(seed))


def scaled(op: str, shape: Any, mean: Any, stddev: Any, dtype: Any, keys: Callable[[], tuple[Any, Any]]) -> Tensor:
    """Numbers that an op draws around 0 with deviation 1, scaled; `keys` gives the op's key and counter."""
    wanted = dtypes.as_dtype(dtype)
    centre, spread = convert_to_tensor(mean, wanted), convert_to_tensor(stddev, wanted)
    dims, (key, counter) = _dims(shape), keys()
    drawn = call(CATALOGUE[op], (key, counter), shape=dims, dtype=wanted.np)
    scaled = drawn if _is(stddev, 1.0) else call(ops.mul, (drawn, spread))
    return scaled if _is(mean, 0.0) else call(ops.add, (scaled, centre))


def _is(value: Any, number: float) -> bool:
    return isinstance(value, int | float) and value == number


def uniform(
    shape: to.IntsInput,
    minval: to.TensorInput = 0,
    maxval: to.TensorInput | None = None,
    dtype: to.DTypeInput = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Numbers evenly distributed in [minval, maxval); integers need `maxval`."""
    return uniform_between(shape, minval, maxval, dtype, lambda: next_draw(seed))


def uniform_between(shape: Any, minval: Any, maxval: Any, dtype: Any, keys: Callable[[], tuple[Any, Any]]) -> Tensor:
    """Numbers in [minval, maxval); `keys` gives the key and counter of the draw."""
    wanted = dtypes.as_dtype(dtype)
    if maxval is None:
        if wanted.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {wanted!r}")
        maxval = 1
    dims, (key, counter) = _dims(shape), keys()
    if wanted.is_integer:
        bounds = [convert_to_tensor(bound, wanted) for bound in (minval, maxval)]
        return call(ops.random_uniform_int, (key, counter, *bounds), shape=dims)
    drawn = call(ops.random_uniform, (key, counter), shape=dims, dtype=wanted.np)
    if _is(minval, 0) and _is(maxval, 1):
        return drawn
    low, high = convert_to_tensor(minval, wanted), convert_to_tensor(maxval, wanted)
    scaled: Tensor = drawn * (high - low) + low
    return scaled
