"""Random numbers of distributions with parameters, from a seed and a counter as in `random`; permutations too."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.families import batch_loop
from teletape_engine.catalogue.op import Trait
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE, NOT_REGISTERED
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.random import check_keys, generator
from teletape_engine.spec import DTYPES, FLOATING, INDEX, INTEGER, DType, Shape, Spec, broadcast, shape_text

_I64: Final = DTYPES["int64"]
_KEYS: Final = (np.array(7), np.array(1))


def _host(array: Any) -> Any:
    """The values of an array in the host's memory."""
    return np.asarray(array.get() if hasattr(array, "get") else array)


def _fits(op_type: str, parameter: Spec, shape: Shape) -> None:
    if broadcast(parameter.shape, shape) != shape:
        raise InvalidArgumentError(
            f"{op_type}: the parameters of shape {shape_text(parameter.shape)} do not broadcast to the result's shape "
            f"{shape_text(shape)}"
        )


def _doubles(*specs: Spec) -> int:
    """Bytes of the parameters and the numbers in float64."""
    return sum(24 * spec.size for spec in specs)


# ------------------------------------------------------------------------------------------------------ distributions
def _gamma_spec(seed: Spec, counter: Spec, alpha: Spec, *, shape: Shape) -> Spec:
    check_keys(seed, counter)
    check_dtypes("RandomGamma", (alpha,), FLOATING)
    _fits("RandomGamma", alpha, shape)
    return alpha.with_shape(shape)


@op(
    infer=_gamma_spec,
    vjp=NOT_REGISTERED,
    batch=batch_loop,
    samples=[
        sample(*_KEYS, np.array([0.5, 2.0]), shape=(3, 2)),
        sample(*_KEYS, np.array(1.5), shape=()),
    ],
    like=(0, 1, 2),
    workspace=lambda seed, counter, alpha, *, shape: _doubles(alpha, alpha.with_shape(shape)),
    integers=("seed", "counter"),
    traits=[Trait.RANDOM],
)
def random_gamma(xp: Any, seed: Any, counter: Any, alpha: Any, *, shape: Shape) -> Any:
    """Numbers of gamma distributions of shape parameter alpha, which broadcasts to `shape`, and scale 1."""
    alphas = _host(alpha).astype(np.float64)
    if not (alphas >= 0).all():
        raise InvalidArgumentError("RandomGamma: alpha < 0 or alpha contains NaNs")
    numbers = generator(seed, counter).standard_gamma(alphas, shape)
    return xp.asarray(np.asarray(numbers).astype(alpha.dtype))


def _poisson_spec(seed: Spec, counter: Spec, lam: Spec, *, shape: Shape, dtype: DType) -> Spec:
    check_keys(seed, counter)
    check_dtypes("RandomPoisson", (lam,), FLOATING | INDEX)
    _fits("RandomPoisson", lam, shape)
    if dtype not in FLOATING | INTEGER:
        raise InvalidArgumentError(f"RandomPoisson gives integers or floating-point numbers, not {dtype.name}")
    return Spec.of(shape, dtype)


@op(
    infer=_poisson_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_loop,
    samples=[
        sample(*_KEYS, np.array([0.5, 4.0]), shape=(3, 2)),
        sample(*_KEYS, np.array(2.5), shape=(), dtype=DTYPES["float32"]),
    ],
    like=(0, 1, 2),
    workspace=lambda seed, counter, lam, *, shape, dtype: _doubles(lam, Spec.of(shape, dtype)),
    integers=("seed", "counter"),
    traits=[Trait.RANDOM],
)
def random_poisson(xp: Any, seed: Any, counter: Any, lam: Any, *, shape: Shape, dtype: DType = _I64) -> Any:
    """Counts of Poisson distributions of mean lam, which broadcasts to `shape`; of a negative mean: an error.

    Raises:
        InvalidArgumentError: A mean is negative, NaN, or too large to count.
    """
    try:
        numbers = generator(seed, counter).poisson(_host(lam).astype(np.float64), shape)
    except ValueError as error:
        raise InvalidArgumentError(f"RandomPoisson: {error}") from None
    return xp.asarray(np.asarray(numbers).astype(dtype))


def _binomial_spec(seed: Spec, counter: Spec, counts: Spec, probs: Spec, *, shape: Shape, dtype: DType) -> Spec:
    check_keys(seed, counter)
    check_dtypes("StatelessRandomBinomial", (counts, probs), FLOATING)
    _fits("StatelessRandomBinomial", counts, shape)
    _fits("StatelessRandomBinomial", probs, shape)
    if dtype not in FLOATING | INTEGER:
        raise InvalidArgumentError(f"StatelessRandomBinomial gives integers or floats, not {dtype.name}")
    return Spec.of(shape, dtype)


@op(
    infer=_binomial_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_loop,
    samples=[
        sample(*_KEYS, np.array([5.0, 9.0]), np.array([[0.2], [0.9]]), shape=(2, 2)),
        sample(*_KEYS, np.array(10.0), np.array(0.5), shape=(), dtype=DTYPES["float32"]),
    ],
    op_type="StatelessRandomBinomial",
    like=(0, 1, 2, 2),
    workspace=lambda seed, counter, counts, probs, *, shape, dtype: _doubles(counts, probs, Spec.of(shape, dtype)),
    integers=("seed", "counter"),
    traits=[Trait.RANDOM],
)
def random_binomial(
    xp: Any, seed: Any, counter: Any, counts: Any, probs: Any, *, shape: Shape, dtype: DType = _I64
) -> Any:
    """Numbers of successes among `counts` trials, each of probability `probs`; both broadcast to `shape`.

    Raises:
        InvalidArgumentError: A count is negative, or a probability is outside [0, 1].
    """
    trials, chances = _host(counts).astype(np.int64), _host(probs).astype(np.float64)
    try:
        numbers = generator(seed, counter).binomial(trials, chances, shape)
    except ValueError as error:
        raise InvalidArgumentError(f"StatelessRandomBinomial: {error}") from None
    return xp.asarray(np.asarray(numbers).astype(dtype))


# ------------------------------------------------------------------------------------------------ classes and orders
def _categorical_spec(seed: Spec, counter: Spec, logits: Spec, *, num_samples: int, dtype: DType) -> Spec:
    check_keys(seed, counter)
    check_dtypes("Multinomial", (logits,), FLOATING | INTEGER)
    if logits.ndim != 2:
        raise InvalidArgumentError(f"logits should be a matrix, got shape {shape_text(logits.shape)}")
    if num_samples < 0:
        raise InvalidArgumentError(f"num_samples should be nonnegative, got {num_samples}")
    if not logits.shape[1]:
        raise InvalidArgumentError("num_classes should be positive, got 0")
    if dtype not in INDEX:
        raise InvalidArgumentError(f"the result must be int32 or int64, found {dtype.name}")
    return Spec.of((logits.shape[0], num_samples), dtype)


def _categorical_bytes(seed: Spec, counter: Spec, logits: Spec, *, num_samples: int, dtype: DType) -> int:
    return 24 * (logits.size + logits.shape[0] * num_samples)


@op(
    infer=_categorical_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_loop,
    samples=[
        sample(*_KEYS, (2, 3), num_samples=4),
        sample(*_KEYS, (1, 2), num_samples=0, dtype=DTYPES["int32"]),
    ],
    op_type="Multinomial",
    like=(0, 1, 2),
    workspace=_categorical_bytes,
    integers=("seed", "counter"),
    traits=[Trait.RANDOM],
)
def random_categorical(xp: Any, seed: Any, counter: Any, logits: Any, *, num_samples: int, dtype: DType = _I64) -> Any:
    """For each row of logits [rows, classes] that many classes, each with probability softmax(logits): [rows, samples].

    Classes of logits -inf are not chosen.
    """
    rows = _host(logits).astype(np.float64)
    chosen = np.empty((len(rows), num_samples), dtype)
    even = generator(seed, counter).random(chosen.shape)
    for row, (each, points) in enumerate(zip(rows, even, strict=True)):
        total = np.cumsum(np.exp(each - each.max()))
        chosen[row] = np.minimum(np.searchsorted(total / total[-1], points, side="right"), len(each) - 1)
    return xp.asarray(chosen)


def _permutation_spec(seed: Spec, counter: Spec, *, n: int) -> Spec:
    check_keys(seed, counter)
    if n < 0:
        raise InvalidArgumentError(f"a permutation needs a length that is not negative, found {n}")
    return Spec.of((n,), _I64)


@op(
    infer=_permutation_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_loop,
    samples=[sample(*_KEYS, n=5), sample(*_KEYS, n=0)],
    workspace=lambda seed, counter, *, n: 16 * n,
    integers=("seed", "counter"),
    traits=[Trait.RANDOM],
)
def random_permutation(xp: Any, seed: Any, counter: Any, *, n: int) -> Any:
    """The numbers 0 to n - 1 in a random order, int64."""
    return xp.asarray(generator(seed, counter).permutation(n).astype(np.int64, copy=False))
