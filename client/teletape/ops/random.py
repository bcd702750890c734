"""`tf.random`: numbers drawn from a key and a counter that the program holds. The engine keeps no hidden state."""

from __future__ import annotations

import secrets
import threading
from functools import partial
from typing import Any, Final

from teletape.ops import arguments as to
from teletape.ops.dispatch import call, convert_to_tensor
from teletape.sessions.current import current
from teletape.tensors import dtypes
from teletape.tensors.dtypes import DType
from teletape.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import broadcast, finfo

__all__ = ["categorical", "gamma", "normal", "poisson", "set_seed", "shuffle", "truncated_normal", "uniform"]

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


def dims_of(shape: Any) -> tuple[int, ...]:
    """The lengths that a shape names; InvalidArgumentError for a number in place of a list, or a negative length."""
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
    return scaled(ops.random_normal, dims_of(shape), mean, stddev, dtype, next_draw(seed))


def truncated_normal(
    shape: to.IntsInput,
    mean: to.TensorInput = 0.0,
    stddev: to.TensorInput = 1.0,
    dtype: to.DTypeInput = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers, none further than two standard deviations from the mean."""
    return scaled(ops.truncated_normal, dims_of(shape), mean, stddev, dtype, next_draw(seed))


def scaled(op: Op, shape: tuple[int, ...], mean: Any, stddev: Any, dtype: Any, keys: tuple[Any, ...]) -> Tensor:
    """What the op draws with these keys (of mean 0 and deviation 1), with that mean and deviation."""
    wanted = dtypes.as_dtype(dtype)
    centre, spread = convert_to_tensor(mean, wanted), convert_to_tensor(stddev, wanted)
    drawn = call(op, keys, shape=shape, dtype=wanted.np)
    spread_out = drawn if _is(stddev, 1.0) else call(ops.mul, (drawn, spread))
    return spread_out if _is(mean, 0.0) else call(ops.add, (spread_out, centre))


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
    wanted = dtypes.as_dtype(dtype)
    if maxval is None:
        if wanted.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {wanted!r}")
        maxval = 1
    return within(dims_of(shape), minval, maxval, wanted, next_draw(seed))


def within(shape: tuple[int, ...], minval: Any, maxval: Any, wanted: DType, keys: tuple[Any, ...]) -> Tensor:
    """Numbers of that dtype, evenly distributed in [minval, maxval), drawn with these keys, or from one state."""
    if wanted.is_integer:
        bounds = [convert_to_tensor(bound, wanted) for bound in (minval, maxval)]
        op = ops.philox_integers if len(keys) == 1 else ops.random_uniform_int
        return call(op, (*keys, *bounds), shape=shape)
    drawn = fractions(shape, keys, wanted)
    if _is(minval, 0) and _is(maxval, 1):
        return drawn
    low, high = convert_to_tensor(minval, drawn.dtype), convert_to_tensor(maxval, drawn.dtype)
    result: Tensor = drawn * (high - low) + low
    return result


def fractions(shape: tuple[int, ...], keys: tuple[Any, ...], dtype: DType = dtypes.float32) -> Tensor:
    """Numbers evenly distributed in [0, 1), drawn with a key and a counter, or from a state of Philox."""
    return call(ops.philox_uniform if len(keys) == 1 else ops.random_uniform, keys, shape=shape, dtype=dtype.np)


# --------------------------------------------------------------------------------------- distributions with parameters
def gamma(
    shape: to.IntsInput,
    alpha: to.TensorInput,
    beta: to.TensorInput | None = None,
    dtype: to.DTypeInput = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """`shape` draws of each gamma distribution of shape parameter alpha and rate beta, which broadcast."""
    wanted = dtypes.as_dtype(dtype)
    shapes, rate = convert_to_tensor(alpha, wanted), convert_to_tensor(1 if beta is None else beta, wanted)
    each = broadcast(tuple(shapes.shape), tuple(rate.shape))
    return gammas((*dims_of(shape), *each), shapes, None if beta is None else rate, next_draw(seed))


def gammas(shape: tuple[int, ...], alpha: Tensor, rate: Tensor | None, keys: tuple[Any, Any]) -> Tensor:
    """Numbers of gamma distributions whose parameters broadcast to `shape`, drawn with these keys; none is 0."""
    drawn = call(ops.random_gamma, (*keys, alpha), shape=shape)
    if rate is not None:
        drawn = drawn / rate
    return call(ops.maximum, (drawn, float(finfo(alpha.dtype.np).tiny)))


def poisson(
    shape: to.IntsInput,
    lam: to.TensorInput,
    dtype: to.DTypeInput = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """`shape` draws of each Poisson distribution of mean lam."""
    means = convert_to_tensor(lam)
    dims = (*dims_of(shape), *tuple(means.shape))
    return call(ops.random_poisson, (*next_draw(seed), means), shape=dims, dtype=dtypes.as_dtype(dtype).np)


def categorical(
    logits: to.TensorInput,
    num_samples: to.IntInput,
    dtype: to.DTypeInput | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """For each row of logits that many classes, each drawn with probability softmax(logits)."""
    return classes(logits, num_samples, dtype, next_draw(seed))


def classes(logits: Any, num_samples: Any, dtype: Any, keys: tuple[Any, Any]) -> Tensor:
    """For each row of logits that many classes of that dtype (None: int64), drawn with these keys."""
    wanted = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
    inputs = (*keys, convert_to_tensor(logits))
    return call(ops.random_categorical, inputs, num_samples=to.whole(num_samples), dtype=wanted.np)


def shuffle(value: to.TensorInput, seed: int | None = None, name: str | None = None) -> Tensor:
    """The slices along the first axis in a random order."""
    return shuffled(value, next_draw(seed))


def shuffled(value: Any, keys: tuple[Any, Any]) -> Tensor:
    """The slices along the first axis in the order that these keys give; a scalar as it is."""
    tensor = convert_to_tensor(value)
    if not tensor.shape.rank:
        return tensor
    order = call(ops.random_permutation, keys, n=tensor.shape.as_list()[0])
    return call(ops.gather, (tensor, order), axis=0)
