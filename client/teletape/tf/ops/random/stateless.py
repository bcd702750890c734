"""`tf.random.stateless_…`: random numbers that follow from a seed of two integers, which may be a tensor.

By hand: they take several ops. The values of a seed are not read: they are inputs of the ops.
The numbers are TensorFlow's.
"""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.tf.ops.random import algorithms, stateful
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import shape_text

_FIRST_WORD = 498247692  #: The dtypes of index_shuffle's seeds, as in TensorFlow.


def _pair(seed: Any) -> Tensor:
    pair = convert_to_tensor(seed)
    if tuple(pair.shape) != (2,):
        raise InvalidArgumentError(f"seed must have shape [2], not {shape_text(tuple(pair.shape))}")
    return pair


def state(seed: Any) -> Tensor:
    """The state of Philox that follows from a seed; InvalidArgumentError unless it has shape [2]."""
    return call(ops.philox_state, (_pair(seed),))


def _state(seed: Any, alg: Any) -> Tensor:
    """The state of Philox that follows from a seed.

    Raises:
        TypeError, ValueError: As `algorithms.draws`.
        InvalidArgumentError: Another algorithm than Philox; as `state`.
    """
    if not algorithms.draws(alg):
        raise InvalidArgumentError("Non-XLA devices don't support the ThreeFry algorithm: draw with alg='philox'")
    return state(seed)


def stateless_uniform(
    shape: to.IntsInput,
    seed: to.TensorInput,
    minval: to.TensorInput | None = 0,
    maxval: to.TensorInput | None = None,
    dtype: to.DTypeInput = dtypes.float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Numbers evenly distributed in [minval, maxval); integers without bounds are those of their whole dtype.

    Example:
        tf.random.stateless_uniform([3], seed=[1, 2], minval=0, maxval=10, dtype=tf.int32)
    """
    wanted = dtypes.as_dtype(dtype)
    if wanted.is_integer and (minval is None) != (maxval is None):
        raise ValueError(
            f"For integer `dtype` argument {wanted!r}, argument `minval` and `maxval` must be both None or not None. "
            f"Got `minval`={minval} and `maxval`={maxval}."
        )
    if wanted.is_integer and minval is None:
        return call(ops.philox_bits, (_state(seed, alg),), shape=stateful.dims_of(shape), dtype=wanted.np)
    bounds = (0 if minval is None else minval, 1 if maxval is None else maxval)
    return stateful.within(stateful.dims_of(shape), *bounds, wanted, _state(seed, alg))


def stateless_normal(
    shape: to.IntsInput,
    seed: to.TensorInput,
    mean: to.TensorInput = 0.0,
    stddev: to.TensorInput = 1.0,
    dtype: to.DTypeInput = dtypes.float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Normally distributed numbers.

    Example:
        tf.random.stateless_normal([3], seed=[1, 2])
    """
    return stateful.scaled(ops.philox_normal, stateful.dims_of(shape), mean, stddev, dtype, _state(seed, alg))


def stateless_truncated_normal(
    shape: to.IntsInput,
    seed: to.TensorInput,
    mean: to.TensorInput = 0.0,
    stddev: to.TensorInput = 1.0,
    dtype: to.DTypeInput = dtypes.float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Normally distributed numbers, none further than two standard deviations from the mean.

    Example:
        tf.random.stateless_truncated_normal([3], seed=[1, 2])
    """
    return stateful.scaled(ops.philox_truncated_normal, stateful.dims_of(shape), mean, stddev, dtype, _state(seed, alg))


def stateless_categorical(
    logits: to.TensorInput,
    num_samples: to.IntInput,
    seed: to.TensorInput,
    dtype: to.DTypeInput = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Draws `num_samples` classes for each row of logits, with probabilities softmax(logits).

    Example:
        tf.random.stateless_categorical([[0.0, 0.0]], num_samples=4, seed=[1, 2])
    """
    return stateful.classes(logits, num_samples, dtype, state(seed))


def stateless_gamma(
    shape: to.IntsInput,
    seed: to.TensorInput,
    alpha: to.TensorInput,
    beta: to.TensorInput | None = None,
    dtype: to.DTypeInput = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Numbers of gamma distributions of shape parameter alpha and rate beta, which broadcast to `shape`.

    Example:
        tf.random.stateless_gamma([2], seed=[1, 2], alpha=[2.0, 3.0])
    """
    wanted = dtypes.as_dtype(dtype)
    rate = None if beta is None else convert_to_tensor(beta, wanted)
    return stateful.gammas(stateful.dims_of(shape), convert_to_tensor(alpha, wanted), rate, state(seed))


def stateless_poisson(
    shape: to.IntsInput,
    seed: to.TensorInput,
    lam: to.TensorInput,
    dtype: to.DTypeInput = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Counts of Poisson distributions of mean lam, which broadcasts to `shape`.

    Example:
        tf.random.stateless_poisson([3], seed=[1, 2], lam=3.0)
    """
    means = convert_to_tensor(lam)
    return stateful.poissons(stateful.dims_of(shape), means, dtypes.as_dtype(dtype), state(seed))


def stateless_binomial(
    shape: to.IntsInput,
    seed: to.TensorInput,
    counts: to.TensorInput,
    probs: to.TensorInput,
    output_dtype: to.DTypeInput = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Numbers of successes among `counts` trials, each of probability `probs`; both broadcast to `shape`.

    Example:
        tf.random.stateless_binomial([4], seed=[1, 2], counts=10.0, probs=0.5)
    """
    chances = to.float_tensor(probs)
    inputs = (state(seed), to.cast(counts, chances), chances)
    return call(ops.philox_binomial, inputs, shape=stateful.dims_of(shape), dtype=dtypes.as_dtype(output_dtype).np)


# --------------------------------------------------------------------------------------------------- seeds and orders
def split(seed: to.TensorInput, num: to.IntInput = 2, alg: Any = "auto_select") -> Tensor:
    """`num` new seeds from one: [num, 2], of its dtype.

    Example:
        tf.random.split([1, 2], num=2)
    """
    pair = convert_to_tensor(seed)
    return stateless_uniform([to.whole(num), 2], pair, None, None, pair.dtype, alg=alg)


def fold_in(seed: to.TensorInput, data: to.TensorInput, alg: Any = "auto_select") -> Tensor:
    """A new seed from one and an integer, such as the number of a step.

    Example:
        tf.random.fold_in([1, 2], 3)
    """
    number = convert_to_tensor(data)
    drawn = stateless_uniform([], seed, None, None, number.dtype, alg=alg)
    return call(ops.stack, (drawn, number), axis=0)


def stateless_shuffle(
    value: to.TensorInput, seed: to.TensorInput, alg: Any = "auto_select", name: str | None = None
) -> Tensor:
    """The slices along the first axis in an order that follows from the seed.

    Example:
        tf.random.experimental.stateless_shuffle([1.0, 2.0, 3.0], seed=[1, 2])
    """
    return stateful.shuffled(value, _state(seed, alg))


def index_shuffle(index: to.TensorInput, seed: to.TensorInput, max_index: to.TensorInput) -> Tensor:
    """The position of `index` in the permutation of 0 to max_index that follows from a seed of two integers.

    index and max_index may be vectors; a seed for each is [n, 2].

    Example:
        tf.random.experimental.index_shuffle(tf.range(5), seed=[1, 2], max_index=4)
    """
    pair = convert_to_tensor(seed)
    first = call(ops.zeros_like, (pair[..., :1],)) + _FIRST_WORD
    return random_index_shuffle(index, call(ops.concat, (first, pair), axis=-1), max_index)


def random_index_shuffle(
    index: to.TensorInput, seed: to.TensorInput, max_index: to.TensorInput, rounds: int = 4, name: str | None = None
) -> Tensor:
    """Like index_shuffle, from a seed of three integers.

    Example:
        tf.random_index_shuffle(tf.range(5), seed=[1, 2, 3], max_index=4)
    """
    position = convert_to_tensor(index)
    last = convert_to_tensor(max_index, position.dtype)
    return call(ops.random_index_shuffle, (position, convert_to_tensor(seed), last), rounds=rounds)
