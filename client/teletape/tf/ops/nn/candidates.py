"""Candidate sampling: `tf.random.…_candidate_sampler`, `tf.nn.nce_loss` and `tf.nn.sampled_softmax_loss`.

By hand: they take several ops. Jean, Cho, Memisevic, Bengio, "On Using Very Large Target Vocabulary for Neural Machine
Translation", 2014; Mnih and Teh, "A fast and simple algorithm for training neural probabilistic language models", 2012.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from teletape._generated.nn.loss import sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.sessions.current import current
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.tf.ops.nn.embeddings import embedding_lookup
from teletape.tf.ops.random.stateful import next_state
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError

_LOWEST: Final = float(np.finfo(np.float32).min)
_WORDS_OF_A_CANDIDATE: Final = 2048  #: The name that TensorFlow reserves.


class Candidates(NamedTuple):
    """The result of a sampler.

    Attributes:
        sampled_candidates: The classes, int64 [num_sampled].
        true_expected_count: The expected count of each true class among them: float32 [batch, num_true].
        sampled_expected_count: The expected count of each sampled class.
    """

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


def uniform_candidate_sampler(
    true_classes: to.TensorInput,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Classes in [0, range_max), equally probable.

    Example:
        tf.random.uniform_candidate_sampler(
            np.array([[0]]), num_true=1, num_sampled=2, unique=True, range_max=2, seed=1
        )
    """
    return _sampled("uniform", true_classes, num_true, num_sampled, unique, range_max, seed)


def log_uniform_candidate_sampler(
    true_classes: to.TensorInput,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Classes in [0, range_max), small ones more probable, as in a vocabulary sorted by frequency.

    Example:
        tf.random.log_uniform_candidate_sampler(
            np.array([[0]]), num_true=1, num_sampled=2, unique=True, range_max=2, seed=1
        )
    """
    return _sampled("log_uniform", true_classes, num_true, num_sampled, unique, range_max, seed)


def fixed_unigram_candidate_sampler(
    true_classes: to.TensorInput,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Any = (),
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Classes in [0, range_max), each with a probability proportional to its weight to the power of `distortion`.

    Args:
        true_classes: int64 [batch, num_true].
        num_true: True classes of an example.
        num_sampled: The number of classes to draw.
        unique: Whether they differ.
        range_max: The number of classes, reserved ones among them.
        vocab_file: A file with a line for each class that is not reserved, whose weight follows the last comma.
        distortion: 1: proportional to the weights; 0: equally probable.
        num_reserved_ids: Classes before those that have weights; they are not drawn.
        num_shards: With `shard`: only every num_shards-th class counts, beginning with class `shard`.
        shard: See num_shards.
        unigrams: The weights, if there is no `vocab_file`.
        seed: The op's seed.
        name: Accepted, without effect.

    Raises:
        InvalidArgumentError: Neither weights nor a file, or both; or another number of them than range_max.

    Example:
        tf.nn.fixed_unigram_candidate_sampler(
            np.array([[0]]), num_true=1, num_sampled=2, unique=True, range_max=2, unigrams=[1.0, 1.0], seed=1
        )
    """
    true = _classes(true_classes, num_true)
    listed = [float(weight) for weight in unigrams]
    if bool(vocab_file) == bool(listed):
        which = "Must provide either vocab_file or unigrams." if not listed else "Must only provide one of the two."
        raise InvalidArgumentError(which)
    if vocab_file:
        listed = _weights_of(vocab_file)
    own = listed[(shard - num_reserved_ids) % num_shards :: num_shards]
    weights = np.array([0.0] * num_reserved_ids + own, np.float32)
    weights[num_reserved_ids:] **= np.float32(distortion)
    if len(weights) != range_max:
        raise InvalidArgumentError(f"range is {range_max} must be equal to weights size  {len(weights)}")
    kernel = ("fixed_unigram", num_true, num_sampled, unique, range_max, distortion, num_reserved_ids, tuple(listed))
    state = next_state((*kernel, num_shards, shard), num_sampled * _WORDS_OF_A_CANDIDATE // 4, seed)
    drawn = call(ops.philox_unigrams, (state, constant(weights)), num_sampled=num_sampled, unique=bool(unique))
    classes, tries = drawn[:num_sampled], drawn[num_sampled]
    shares = (weights / weights.sum(dtype=np.float64)).astype(np.float32)
    table = constant(np.append(shares, np.float32(0)))
    nothing = call(ops.zeros_like, (true,)) + range_max
    known = call(ops.logical_and, (true >= 0, true < range_max))
    places = call(ops.where, (known, true, nothing))
    counts = [_expected_of(call(ops.gather, (table, each)), num_sampled, tries) for each in (places, classes)]
    return Candidates(classes, *counts)


def _weights_of(vocab_file: str) -> list[float]:
    with open(vocab_file, encoding="utf-8") as lines:
        try:
            return [float(line.rpartition(",")[2]) for line in lines]
        except ValueError as error:
            raise InvalidArgumentError(f"Wrong vocabulary format in {vocab_file}: {error}") from None


def all_candidate_sampler(
    true_classes: to.TensorInput,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """All classes from 0 to num_sampled - 1, for tests of losses.

    Example:
        tf.nn.all_candidate_sampler(np.array([[0]]), num_true=1, num_sampled=3, unique=True)
    """
    true = _classes(true_classes, num_true)
    ones = call(ops.ones_like, (call(ops.cast, (true,), dtype=dtypes.float32.np),))
    return Candidates(constant(np.arange(num_sampled)), ones, constant(np.ones(num_sampled, np.float32)))


def _classes(true_classes: Any, num_true: int) -> Tensor:
    true = convert_to_tensor(true_classes, dtypes.int64)
    if true.shape.rank != 2 or true.shape.as_list()[1] != num_true:
        raise InvalidArgumentError(
            f"true_classes must be a matrix of num_true={num_true} columns, found shape {true.shape}"
        )
    return true


def _sampled(
    distribution: str, true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: Any
) -> Candidates:
    true = _classes(true_classes, num_true)
    kernel = (distribution, num_true, num_sampled, unique, range_max)
    state = next_state(kernel, num_sampled * _WORDS_OF_A_CANDIDATE // 4, seed)
    drawn = call(
        ops.philox_candidates,
        (state,),
        num_sampled=num_sampled,
        range_max=range_max,
        unique=bool(unique),
        distribution=distribution,
    )
    classes, tries = drawn[:num_sampled], drawn[num_sampled]
    counts = [_expected(distribution, each, num_sampled, tries, range_max) for each in (true, classes)]
    return Candidates(classes, *counts)


def _expected(distribution: str, classes: Tensor, count: int, tries: Tensor, range_max: int) -> Tensor:
    """The expected count of each class among `count` distinct ones that took that many draws."""
    exact = call(ops.cast, (classes,), dtype=dtypes.float64.np)
    if distribution == "uniform":
        exact = call(ops.zeros_like, (exact,)) + 1.0 / range_max
    else:
        exact = call(ops.log, ((exact + 2.0) / (exact + 1.0),)) / math.log1p(range_max)
    return _expected_of(call(ops.cast, (exact,), dtype=dtypes.float32.np), count, tries)


def _expected_of(chance: Tensor, count: int, tries: Tensor) -> Tensor:
    """The expected counts of classes with these probabilities."""
    number = call(ops.cast, (tries,), dtype=dtypes.float32.np)
    several = -call(ops.expm1, (number * call(ops.log1p, (-chance,)),))
    return call(ops.where, (call(ops.equal, (tries, count)), chance * float(count), several))


def compute_accidental_hits(
    true_classes: to.TensorInput,
    sampled_candidates: to.TensorInput,
    num_true: int,
    seed: int | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The candidates, all distinct, that are true classes: (rows, positions of the candidates, weights).

    The weights are the lowest float32: added to the logits of these candidates they remove them.

    Example:
        tf.nn.compute_accidental_hits(np.array([[1], [2]]), np.array([2, 5]), num_true=1)
    """
    true = _classes(true_classes, num_true)
    _take_seed(seed)
    sampled = convert_to_tensor(sampled_candidates, dtypes.int64)
    places = call(ops.nonzero, (call(ops.equal, (true[:, :, None], sampled)),))
    rows, positions = call(ops.cast, (places[:, 0],), dtype=dtypes.int32.np), places[:, 2]
    lowest = call(ops.cast, (call(ops.zeros_like, (rows,)),), dtype=dtypes.float32.np) + _LOWEST
    return rows, positions, lowest


def _take_seed(seed: int | None) -> None:
    """Takes an op's seed without a draw, as TensorFlow does: later draws depend on it."""
    current().draws("accidental_hits", seed)


# -------------------------------------------------------------------------------------------------------------- losses
def nce_loss(
    weights: Any,
    biases: to.TensorInput,
    labels: to.TensorInput,
    inputs: to.TensorInput,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    name: str | None = None,
) -> Tensor:
    """Noise-contrastive estimation: [batch], the losses of distinguishing true classes from candidates.

    Args:
        weights: [num_classes, dim], or a list of parts of it.
        biases: [num_classes].
        labels: The true classes, [batch, num_true].
        inputs: [batch, dim].
        num_sampled: The number of candidates of the batch.
        num_classes: The number of classes.
        num_true: True classes of an example.
        sampled_values: The result of a sampler; None: that of log_uniform_candidate_sampler.
        remove_accidental_hits: Whether candidates that are true classes do not count.
        name: Accepted, without effect.

    Example:
        tf.nn.nce_loss(
            tf.zeros([4, 2]),
            tf.zeros([4]),
            np.array([[1]]),
            [[1.0, 2.0]],
            num_sampled=2,
            num_classes=4,
            sampled_values=([0, 2], [[0.5]], [0.5, 0.5]),
        )
    """
    logits, targets = _logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
        None,
    )
    return call(ops.reduce_sum, (sigmoid_cross_entropy_with_logits(targets, logits),), axis=1)


def sampled_softmax_loss(
    weights: Any,
    biases: to.TensorInput,
    labels: to.TensorInput,
    inputs: to.TensorInput,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """The softmax cross entropy over the true classes and candidates only, [batch].

    The arguments are those of `nce_loss`; `seed` is that of the sampler.

    Example:
        tf.nn.sampled_softmax_loss(
            tf.zeros([4, 2]),
            tf.zeros([4]),
            np.array([[1]]),
            [[1.0, 2.0]],
            num_sampled=2,
            num_classes=4,
            sampled_values=([0, 2], [[0.5]], [0.5, 0.5]),
        )
    """
    logits, targets = _logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
        seed,
    )
    return softmax_cross_entropy_with_logits(call(ops.stop_gradient, (targets,)), logits)


def _logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    without_hits: bool,
    seed: Any,
) -> tuple[Tensor, Tensor]:
    """The logits of true classes and candidates, [batch, num_true + num_sampled], and their labels."""
    true, x = call(ops.cast, (convert_to_tensor(labels),), dtype=dtypes.int64.np), convert_to_tensor(inputs)
    if sampled_values is None:
        sampled_values = log_uniform_candidate_sampler(true, num_true, num_sampled, True, num_classes, seed)
    sampled, true_count, sampled_count = [call(ops.stop_gradient, (each,)) for each in sampled_values]
    sampled = call(ops.cast, (sampled,), dtype=dtypes.int64.np)
    flat = call(ops.reshape, (true,), shape=(-1,))
    count = flat.shape.as_list()[0]
    ids = call(ops.concat, (flat, sampled), axis=0)
    rows, offsets = (_looked_up(each, ids, x) for each in (weights, biases))
    true_rows = call(ops.reshape, (rows[:count],), shape=(-1, num_true, rows.shape.as_list()[1]))
    true_logits = call(ops.reduce_sum, (x[:, None] * true_rows,), axis=2)
    true_logits = true_logits + call(ops.reshape, (offsets[:count],), shape=(-1, num_true))
    sampled_logits = call(ops.matmul, (x, rows[count:]), adjoint_b=True) + offsets[count:]
    if without_hits:
        _take_seed(None)
        hits = call(ops.reduce_any, (call(ops.equal, (true[:, :, None], sampled)),), axis=1)
        lowest = call(ops.zeros_like, (sampled_logits,)) + _LOWEST
        sampled_logits = sampled_logits + call(ops.where, (hits, lowest, call(ops.zeros_like, (sampled_logits,))))
    true_logits = true_logits - call(ops.log, (true_count,))
    sampled_logits = sampled_logits - call(ops.log, (sampled_count,))
    targets = call(ops.ones_like, (true_logits,)) / float(num_true), call(ops.zeros_like, (sampled_logits,))
    return call(ops.concat, (true_logits, sampled_logits), axis=1), call(ops.concat, targets, axis=1)


def _looked_up(parameters: Any, ids: Tensor, like: Tensor) -> Tensor:
    """The rows of a tensor, or of its parts, in the dtype of another one."""
    return to.cast(embedding_lookup(parameters, ids), like)
