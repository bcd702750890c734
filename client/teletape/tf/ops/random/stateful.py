"""`tf.random`: numbers drawn from a state that follows from the program's seed and the op's.

The engine keeps no hidden state: the program counts the draws of its ops (`sessions/draws.py`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, Final, NamedTuple

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.sessions.current import current
from teletape.core.sessions.draws import whole_seed
from teletape.core.tensors import dtypes
from teletape.core.tensors.dtypes import DType
from teletape.core.tensors.tensor import EagerTensor, Tensor
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import broadcast, finfo

__all__ = ["categorical", "gamma", "normal", "poisson", "set_seed", "shuffle", "truncated_normal", "uniform"]

_RESERVED: Final = 256  #: Blocks of Philox that a draw takes for each number.


class OpSeed(NamedTuple):
    """The seeds of a draw: the program's, and that of the op, which may be None."""

    seed: int | None


Draw = Tensor | OpSeed  #: A state of Philox, or the seeds of one.


def state_of(draw: Draw, kernel: Hashable, numbers: int) -> Tensor:
    """Returns the state for a draw of `count` numbers by an op with these attributes."""
    return draw if isinstance(draw, Tensor) else next_state(kernel, numbers * _RESERVED, draw.seed)


def next_state(kernel: Hashable, blocks: int, seed: int | None) -> Tensor:
    """Returns the state of the next draw of an op with these attributes, which takes `blocks` blocks.

    While a function is traced each call of it gives the draw a new state.
    """
    owner = current()
    return EagerTensor(owner.draw(owner.draws(kernel, seed), blocks), owner)


def set_seed(seed: int | None) -> None:
    """Sets the program's seed: random numbers are then those of TensorFlow after the same calls.

    Example:
        tf.random.set_seed(1)
    """
    current().set_random_seed(whole_seed(seed))


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
    """Normally distributed numbers.

    Example:
        tf.random.normal([4, 4])
    """
    return scaled(ops.philox_normal, dims_of(shape), mean, stddev, dtype, OpSeed(seed))


def truncated_normal(
    shape: to.IntsInput,
    mean: to.TensorInput = 0.0,
    stddev: to.TensorInput = 1.0,
    dtype: to.DTypeInput = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers, none further than two standard deviations from the mean.

    Example:
        tf.random.truncated_normal([4, 4])
    """
    return scaled(ops.philox_truncated_normal, dims_of(shape), mean, stddev, dtype, OpSeed(seed))


def scaled(op: Op, shape: tuple[int, ...], mean: Any, stddev: Any, dtype: Any, draw: Draw) -> Tensor:
    """Numbers that the op draws, of mean 0 and deviation 1, scaled to this mean and deviation."""
    wanted = dtypes.as_dtype(dtype)
    centre, spread = convert_to_tensor(mean, wanted), convert_to_tensor(stddev, wanted)
    state = state_of(draw, (op.name, wanted), math.prod(shape))
    drawn = call(op, (state,), shape=shape, dtype=wanted.np)
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
    """Numbers evenly distributed in [minval, maxval); integers need `maxval`.

    Example:
        tf.random.uniform([4, 4])
    """
    wanted = dtypes.as_dtype(dtype)
    if maxval is None:
        if wanted.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {wanted!r}")
        maxval = 1
    return within(dims_of(shape), minval, maxval, wanted, OpSeed(seed))


def within(shape: tuple[int, ...], minval: Any, maxval: Any, wanted: DType, draw: Draw) -> Tensor:
    """Numbers of that dtype, evenly distributed in [minval, maxval)."""
    if wanted.is_integer:
        bounds = [convert_to_tensor(bound, wanted) for bound in (minval, maxval)]
        state = state_of(draw, ("philox_integers", wanted), math.prod(shape))
        return call(ops.philox_integers, (state, *bounds), shape=shape)
    drawn = fractions(shape, draw, wanted)
    if _is(minval, 0) and _is(maxval, 1):
        return drawn
    low, high = convert_to_tensor(minval, drawn.dtype), convert_to_tensor(maxval, drawn.dtype)
    result: Tensor = drawn * (high - low) + low
    return result


def fractions(shape: tuple[int, ...], draw: Draw, dtype: DType = dtypes.float32) -> Tensor:
    """Numbers evenly distributed in [0, 1)."""
    state = state_of(draw, ("philox_uniform", dtype), math.prod(shape))
    return call(ops.philox_uniform, (state,), shape=shape, dtype=dtype.np)


# --------------------------------------------------------------------------------------- distributions with parameters
def gamma(
    shape: to.IntsInput,
    alpha: to.TensorInput,
    beta: to.TensorInput | None = None,
    dtype: to.DTypeInput = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """`shape` numbers of each gamma distribution with shape parameter alpha and rate beta, which broadcast.

    Example:
        tf.random.gamma([16], alpha=2.0)
    """
    wanted = dtypes.as_dtype(dtype)
    shapes, rate = convert_to_tensor(alpha, wanted), convert_to_tensor(1 if beta is None else beta, wanted)
    each = broadcast(tuple(shapes.shape), tuple(rate.shape))
    return gammas((*dims_of(shape), *each), shapes, None if beta is None else rate, OpSeed(seed))


def gammas(shape: tuple[int, ...], alpha: Tensor, rate: Tensor | None, draw: Draw) -> Tensor:
    """Numbers of gamma distributions whose parameters broadcast to `shape`; none is 0."""
    if rate is not None:
        alpha = call(ops.broadcast_to, (alpha,), shape=broadcast(tuple(alpha.shape), tuple(rate.shape)))
    state = state_of(draw, ("philox_gamma", alpha.dtype), math.prod(shape))
    drawn = call(ops.philox_gamma, (state, alpha), shape=shape)
    if rate is not None:
        drawn = drawn / rate
    return call(ops.maximum, (float(finfo(alpha.dtype.np).tiny), drawn))


def poisson(
    shape: to.IntsInput,
    lam: to.TensorInput,
    dtype: to.DTypeInput = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """`shape` numbers of each Poisson distribution with mean lam.

    Example:
        tf.random.poisson([16], lam=3.0)
    """
    means = convert_to_tensor(lam)
    dims = (*dims_of(shape), *tuple(means.shape))
    return poissons(dims, means, dtypes.as_dtype(dtype), OpSeed(seed))


def poissons(shape: tuple[int, ...], means: Tensor, dtype: DType, draw: Draw) -> Tensor:
    """Counts of Poisson distributions whose means broadcast to `shape`."""
    state = state_of(draw, ("philox_poisson", means.dtype, dtype), math.prod(shape))
    return call(ops.philox_poisson, (state, means), shape=shape, dtype=dtype.np)


def categorical(
    logits: to.TensorInput,
    num_samples: to.IntInput,
    dtype: to.DTypeInput | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws `num_samples` classes for each row of logits, with probabilities softmax(logits).

    Example:
        tf.random.categorical([[0.0, 0.0]], num_samples=16)
    """
    return classes(logits, num_samples, dtype, OpSeed(seed))


def classes(logits: Any, num_samples: Any, dtype: Any, draw: Draw) -> Tensor:
    """Draws `count` classes for each row of logits, of that dtype (None: int64)."""
    wanted = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
    tensor, count = convert_to_tensor(logits), to.whole(num_samples)
    rows = tensor.shape.as_list()[0] if tensor.shape.rank else 1
    numbers = rows * ((count + 3) // 4 * 4) * 2  # in double precision
    state = state_of(draw, ("philox_categorical", tensor.dtype, wanted), numbers)
    return call(ops.philox_categorical, (state, tensor), num_samples=count, dtype=wanted.np)


def shuffle(value: to.TensorInput, seed: int | None = None, name: str | None = None) -> Tensor:
    """The slices along the first axis in a random order.

    Example:
        tf.random.shuffle(np.arange(16.0))
    """
    tensor = convert_to_tensor(value)
    length = tensor.shape.as_list()[0] if tensor.shape.rank else 1
    blocks = (length + 2) // 4 if math.prod(tensor.shape.as_list()) > 1 and length > 1 else 0
    return shuffled(tensor, next_state(("philox_permutation", tensor.dtype), blocks, seed))


def shuffled(value: Any, state: Tensor) -> Tensor:
    """The slices along the first axis in an order that follows from a state; a scalar is unchanged."""
    tensor = convert_to_tensor(value)
    if not tensor.shape.rank:
        return tensor
    order = call(ops.philox_permutation, (state,), n=tensor.shape.as_list()[0])
    return call(ops.gather, (tensor, order), axis=0)
