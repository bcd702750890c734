"""Random numbers of distributions with parameters, and permutations, from a state of Philox; see `philox`.

Parameters broadcast to the result's shape. TensorFlow numbers what it draws parameter by parameter: all draws of the
first one come before those of the second.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from teletape_engine.arrays import Array, ArrayModule, philox, philox_streams
from teletape_engine.arrays.cpu import on_host
from teletape_engine.catalogue.define import check_dtypes, on_gpu, op, sample
from teletape_engine.catalogue.families import batch_loop
from teletape_engine.catalogue.op import Trait
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.random.philox import check_state, unsigned
from teletape_engine.spec import DTYPES, FLOATING, INDEX, REAL, DType, Shape, Spec, broadcast, shape_text

_F32, _F64, _I64 = DTYPES["float32"], DTYPES["float64"], DTYPES["int64"]
_STATE: Final = np.array([1234, 0, 7])
_TOO_LARGE: Final = 2.0**63  #: Counts from there on do not fit int64.


def check_fits(op_type: str, parameter: Spec, shape: Shape) -> None:
    """Raises InvalidArgumentError unless a parameter broadcasts to the result's shape."""
    if broadcast(parameter.shape, shape) != shape:
        raise InvalidArgumentError(
            f"{op_type}: the parameters of shape {shape_text(parameter.shape)} do not broadcast to the result's shape "
            f"{shape_text(shape)}"
        )


def counts_of(shape: Shape, parameters: Shape) -> tuple[int, int]:
    """Returns the numbers of draws of each parameter, and of parameters, of a shape that ends with theirs."""
    count = math.prod(parameters)
    return math.prod(shape) // count if count else 0, count


def listed(parameter: Array, full: Shape, draws: int) -> Array:
    """Returns parameters of that shape, each as often as it is drawn, one after the other."""
    return np.repeat(np.broadcast_to(parameter, full).reshape(-1), draws)


def arranged(numbers: Array, shape: Shape, draws: int, parameters: int) -> Array:
    """Returns numbers that were drawn parameter by parameter in the result's shape."""
    return numbers.reshape(parameters, draws).T.reshape(shape)


def common_shape(shape: Shape, *parameters: Shape) -> Shape:
    """Returns the trailing part of the result's shape that the parameters' common axes cover."""
    ndim = max((len(each) for each in parameters), default=0)
    return shape[len(shape) - ndim :]


def stream_bytes(*specs: Spec) -> int:
    """Bytes of the parameters and the numbers in float64, and of the streams of a part."""
    return sum(24 * spec.size for spec in specs) + 128 * min(max(spec.size for spec in specs), 1 << 15)


# ------------------------------------------------------------------------------------------------- Poisson, binomial
def _poisson_spec(state: Spec, lam: Spec, *, shape: Shape, dtype: DType) -> Spec:
    check_state(state)
    check_dtypes("RandomPoissonV2", (lam,), FLOATING | INDEX)
    check_fits("RandomPoissonV2", lam, shape)
    if dtype not in REAL:
        raise InvalidArgumentError(f"RandomPoissonV2 gives integers or floating-point numbers, not {dtype.name}")
    return Spec.of(shape, dtype)


@op(
    infer=_poisson_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_loop,
    samples=[
        sample(_STATE, np.array([0.5, 14.0]), shape=(3, 2)),
        sample(_STATE, np.array(2.5), shape=(), dtype=_F32),
    ],
    op_type="RandomPoissonV2",
    like=(0, 1),
    workspace=lambda state, lam, *, shape, dtype: stream_bytes(lam, Spec.of(shape, dtype)),
    integers=("state",),
    traits=[Trait.RANDOM],
)
@on_gpu(down="the state and the parameters", up="the numbers, which the host draws")
def philox_poisson(xp: ArrayModule, state: Array, lam: Array, *, shape: Shape, dtype: DType = _I64) -> Array:
    """Counts of Poisson distributions of mean lam, which broadcasts to `shape`, from a state of Philox: int64 [3].

    Raises:
        InvalidArgumentError: A mean is negative, NaN, or too large to count.
    """
    rates = on_host(lam).astype(_F64)
    if not ((rates >= 0) & (rates < _TOO_LARGE)).all():
        raise InvalidArgumentError("RandomPoissonV2: lam < 0, lam is NaN, or lam value too large")
    full = common_shape(shape, rates.shape)
    draws, count = counts_of(shape, full)
    numbers = philox_streams.poissons(unsigned(state), listed(rates, full, draws))
    return xp.asarray(arranged(numbers, shape, draws, count).astype(dtype))


def _binomial_spec(state: Spec, counts: Spec, probs: Spec, *, shape: Shape, dtype: DType) -> Spec:
    check_state(state)
    check_dtypes("StatelessRandomBinomial", (counts, probs), FLOATING)
    check_fits("StatelessRandomBinomial", counts, shape)
    check_fits("StatelessRandomBinomial", probs, shape)
    if dtype not in REAL:
        raise InvalidArgumentError(f"StatelessRandomBinomial gives integers or floats, not {dtype.name}")
    return Spec.of(shape, dtype)


@op(
    infer=_binomial_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_loop,
    samples=[
        sample(_STATE, np.array([5.0, 90.0]), np.array([[0.2], [0.9]]), shape=(2, 2)),
        sample(_STATE, np.array(10.0), np.array(0.5), shape=(), dtype=_F32),
    ],
    op_type="StatelessRandomBinomial",
    like=(0, 1, 1),
    workspace=lambda state, counts, probs, *, shape, dtype: stream_bytes(counts, probs, Spec.of(shape, dtype)),
    integers=("state",),
    traits=[Trait.RANDOM],
)
@on_gpu(down="the state and the parameters", up="the numbers, which the host draws")
def philox_binomial(
    xp: ArrayModule, state: Array, counts: Array, probs: Array, *, shape: Shape, dtype: DType = _I64
) -> Array:
    """Numbers of successes among `counts` trials, each of probability `probs`, from a state of Philox: int64 [3].

    Both broadcast to `shape`.

    Raises:
        InvalidArgumentError: A count is negative, or a probability is outside [0, 1].
    """
    trials, chances = on_host(counts), on_host(probs)
    if not ((trials >= 0) & (trials.astype(_F64) < _TOO_LARGE)).all():
        raise InvalidArgumentError("StatelessRandomBinomial: counts < 0, or counts contains NaNs")
    if not ((chances >= 0) & (chances <= 1)).all():
        raise InvalidArgumentError("StatelessRandomBinomial: probs < 0, probs > 1 or probs contains NaNs")
    full = common_shape(shape, trials.shape, chances.shape)
    draws, count = counts_of(shape, full)
    parameters = [listed(each, full, draws) for each in (trials, chances)]
    numbers = philox_streams.binomials(unsigned(state), *parameters)
    return xp.asarray(arranged(numbers, shape, draws, count).astype(dtype))


# ------------------------------------------------------------------------------------------------ classes and orders
def _categorical_spec(state: Spec, logits: Spec, *, num_samples: int, dtype: DType) -> Spec:
    check_state(state)
    check_dtypes("Multinomial", (logits,), REAL)
    if logits.ndim != 2:
        raise InvalidArgumentError(f"logits should be a matrix, got shape {shape_text(logits.shape)}")
    if num_samples < 0:
        raise InvalidArgumentError(f"num_samples should be nonnegative, got {num_samples}")
    if not logits.shape[1]:
        raise InvalidArgumentError("num_classes should be positive, got 0")
    if dtype not in INDEX:
        raise InvalidArgumentError(f"the result must be int32 or int64, found {dtype.name}")
    return Spec.of((logits.shape[0], num_samples), dtype)


def _categorical_bytes(state: Spec, logits: Spec, *, num_samples: int, dtype: DType) -> int:
    return 24 * (logits.size + logits.shape[0] * num_samples) + 64


@op(
    infer=_categorical_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_loop,
    samples=[
        sample(_STATE, (2, 3), num_samples=4),
        sample(_STATE, (1, 2), num_samples=0, dtype=DTYPES["int32"]),
    ],
    op_type="Multinomial",
    like=(0, 1),
    workspace=_categorical_bytes,
    integers=("state",),
    traits=[Trait.RANDOM],
)
@on_gpu(down="the state", up="the numbers to compare with, which the host draws")
def philox_categorical(xp: ArrayModule, state: Array, logits: Array, *, num_samples: int, dtype: DType = _I64) -> Array:
    """For each row of logits [rows, classes] that many classes, each with probability softmax(logits): [rows, samples].

    From a state of Philox: int64 [3]. Classes of logits that are not finite are not chosen.
    """
    rows = on_host(logits).astype(_F64)
    chosen = np.empty((len(rows), num_samples), dtype)
    even = philox.filled(unsigned(state), chosen.size, _F64, lambda *words: philox.uniforms(words, _F64))
    with np.errstate(all="ignore"):
        for row, (each, points) in enumerate(zip(rows, even.reshape(chosen.shape), strict=True)):
            finite = np.isfinite(each)
            weights = np.where(finite, np.exp(each - each[finite].max(initial=-np.inf)), 0)
            totals = np.cumsum(weights)
            chosen[row] = np.searchsorted(totals, points * totals[-1], side="right")
    return xp.asarray(chosen)


def _permutation_spec(state: Spec, *, n: int) -> Spec:
    check_state(state)
    if n < 0:
        raise InvalidArgumentError(f"a permutation needs a length that is not negative, found {n}")
    return Spec.of((n,), _I64)


@op(
    infer=_permutation_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_loop,
    samples=[sample(_STATE, n=5), sample(_STATE, n=0)],
    op_type="RandomShuffle",
    workspace=lambda state, *, n: 80 * n,
    integers=("state",),
    traits=[Trait.RANDOM],
)
@on_gpu(down="the state", up="the permutation, which the host draws")
def philox_permutation(xp: ArrayModule, state: Array, *, n: int) -> Array:
    """The numbers 0 to n - 1 in a random order, int64, from a state of Philox: int64 [3]."""
    return xp.asarray(philox.permutation(unsigned(state), n))
