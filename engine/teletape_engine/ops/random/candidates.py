"""Candidates: classes that are drawn in the place of all other classes, for losses over many classes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from teletape_engine.arrays import Array, ArrayModule, philox
from teletape_engine.arrays.cpu import on_host
from teletape_engine.catalogue.define import on_gpu, op, sample
from teletape_engine.catalogue.families import batch_loop
from teletape_engine.catalogue.op import Trait
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.random.philox import check_state, unsigned
from teletape_engine.spec import DTYPES, DType, Spec
from teletape_engine.suggestions import with_nearest

_F32, _F64, _I64 = DTYPES["float32"], DTYPES["float64"], DTYPES["int64"]
_STATE: Final = np.array([0, 1, 7])
_AT_ONCE: Final = 1024  #: Draws that are computed together.
_MOST_DRAWS: Final = 10_000_000
_DISTRIBUTIONS: Final = ("uniform", "log_uniform")


def _candidates_spec(state: Spec, *, num_sampled: int, range_max: int, unique: bool, distribution: str) -> Spec:
    check_state(state)
    if range_max <= 0 or num_sampled <= 0:
        raise InvalidArgumentError(f"range_max and num_sampled must be positive, found {range_max} and {num_sampled}")
    if unique and num_sampled > range_max:
        raise InvalidArgumentError(f"Sampler's range is too small: {num_sampled} different ones of {range_max}")
    if distribution not in _DISTRIBUTIONS:
        refusal = f"distribution must be one of {', '.join(_DISTRIBUTIONS)}, found {distribution!r}"
        raise InvalidArgumentError(with_nearest(refusal, distribution, _DISTRIBUTIONS))
    return Spec.of((num_sampled + 1,), _I64)


@op(
    infer=_candidates_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_loop,
    samples=[
        sample(_STATE, num_sampled=4, range_max=9, unique=True, distribution="log_uniform"),
        sample(_STATE, num_sampled=3, range_max=2, unique=False, distribution="uniform"),
    ],
    op_type="LogUniformCandidateSampler",
    workspace=lambda state, *, num_sampled, range_max, unique, distribution: 100 * (num_sampled + _AT_ONCE),
    integers=("state",),
    traits=[Trait.RANDOM],
)
@on_gpu(down="the state", up="the classes, which the host draws")
def philox_candidates(
    xp: ArrayModule,
    state: Array,
    *,
    num_sampled: int,
    range_max: int,
    unique: bool = True,
    distribution: str = "log_uniform",
) -> Array:
    """Classes in [0, range_max), int64 [num_sampled + 1], from a state of Philox: int64 [3]; the last one counts draws.

    Uniform classes are equally probable. A log-uniform class k has the probability log((k + 2) / (k + 1)) / log(1 +
    range_max): the classes are sorted by frequency. Unique ones are drawn again until they differ.
    """
    drawn = _uniform(unsigned(state), range_max) if distribution == "uniform" else _skewed(unsigned(state), range_max)
    return xp.asarray(_collected(drawn, num_sampled, unique))


def _collected(drawn: Iterator[int], num_sampled: int, unique: bool) -> Array:
    """The classes, int64, and how many were drawn.

    Raises:
        InvalidArgumentError: Different ones do not come.
    """
    chosen: dict[int, None] = {}
    many: list[int] = []
    tries = 0
    while len(chosen if unique else many) < num_sampled:
        tries += 1
        if unique:
            chosen[next(drawn)] = None
            if tries > _MOST_DRAWS:
                raise InvalidArgumentError(
                    f"{tries - 1} draws gave {len(chosen)} different classes of {num_sampled}: the rest is improbable"
                )
        else:
            many.append(next(drawn))
    return np.array([*(chosen if unique else many), tries], np.int64)


def _unigrams_spec(state: Spec, weights: Spec, *, num_sampled: int, unique: bool) -> Spec:
    check_state(state)
    if weights.dtype != _F32 or weights.ndim != 1:
        raise InvalidArgumentError(f"weights must be a float32 vector, found {weights!r}")
    if not weights.size or num_sampled <= 0:
        raise InvalidArgumentError(
            f"range_max and num_sampled must be positive, found {weights.size} and {num_sampled}"
        )
    if unique and num_sampled > weights.size:
        raise InvalidArgumentError(f"Sampler's range is too small: {num_sampled} different ones of {weights.size}")
    return Spec.of((num_sampled + 1,), _I64)


@op(
    infer=_unigrams_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_loop,
    samples=[
        sample(_STATE, np.array([1, 2, 3, 4], np.float32), num_sampled=3),
        sample(_STATE, np.array([0, 2.5, 1], np.float32), num_sampled=5, unique=False),
    ],
    op_type="FixedUnigramCandidateSampler",
    like=(0, 1),
    workspace=lambda state, weights, *, num_sampled, unique: 100 * (num_sampled + weights.size + _AT_ONCE),
    integers=("state",),
    refuses=("state", "weights"),
    traits=[Trait.RANDOM],
)
@on_gpu(down="the state and the weights", up="the classes, which the host draws")
def philox_unigrams(xp: ArrayModule, state: Array, weights: Array, *, num_sampled: int, unique: bool = True) -> Array:
    """Classes whose probabilities are as `weights`, int64 [num_sampled + 1], from a state of Philox: int64 [3].

    The last one counts draws. Unique ones are drawn again until they differ.

    Raises:
        InvalidArgumentError: Weights that are negative, not finite or all zero, or too few above zero.
    """
    host = on_host(weights)
    if not np.isfinite(host).all() or (host < 0).any() or not host.any():
        raise InvalidArgumentError("weights must be finite, none negative, and some above zero")
    if unique and np.count_nonzero(host) < num_sampled:
        raise InvalidArgumentError(
            f"{num_sampled} different classes are wanted, and {np.count_nonzero(host)} have a weight above zero"
        )
    return xp.asarray(_collected(_weighted(unsigned(state), host), num_sampled, unique))


def _uniform(state: philox.State, range_max: int) -> Iterator[int]:
    """Yields integers in [0, range_max): those of 64 bits that would favour the lowest are left out."""
    power = range_max & (range_max - 1) == 0
    lowest = 0 if power else (2**64 - 1) % range_max + 1
    for part in _parts(state, DTYPES["uint64"]):
        for number in part.tolist():
            if number >= lowest:
                yield number % range_max


def _skewed(state: philox.State, range_max: int) -> Iterator[int]:
    """Yields log-uniform integers in [0, range_max)."""
    scale = math.log1p(range_max)
    for part in _parts(state, _F64):
        yield from ((np.exp(part * scale).astype(np.int64) - 1) % range_max).tolist()


def _weighted(state: philox.State, weights: Array) -> Iterator[int]:
    """Yields classes by their weights: a place at random, and there one of two classes (Walker's alias method)."""
    shares, others = _aliases(weights)
    count = len(shares)
    lowest = 0 if count & (count - 1) == 0 else (2**32 - 1) % count + 1
    words = (word for part in _parts(state, DTYPES["uint32"]) for word in part.tolist())
    for word in words:
        share, number = (word & 0x7FFFFF) / 2**23, next(words)
        while number < lowest:
            number = next(words)
        place = number % count
        yield place if share < shares[place] else others[place]


def _aliases(weights: Array) -> tuple[list[float], list[int]]:
    """For each place how often its own class is drawn there, and the other class; paired in TensorFlow's order."""
    count, total = len(weights), float(np.add.accumulate(weights.astype(_F64))[-1])
    parts = ((weights * np.float32(count)).astype(_F64) / total).tolist()
    others = list(range(count))
    low = [place for place, part in enumerate(parts) if part < 1.0]
    high = [place for place, part in enumerate(parts) if not part < 1.0]
    while high and low:
        small, large = low.pop(), high.pop()
        others[small] = large
        parts[large] -= 1.0 - parts[small]
        (low if parts[large] < 1.0 else high).append(large)
    for place in (*low, *high):  # by rounding; all of the place is its own
        parts[place], others[place] = 1.0, place
    return np.array(parts, _F32).tolist(), others


def _parts(state: philox.State, dtype: DType) -> Iterator[Any]:
    """Yields numbers without end, in parts."""
    numbers = philox.uniforms if dtype == _F64 else philox.whole_numbers
    for begin in range(0, 2**62, _AT_ONCE // philox.width(dtype)):
        counter = (state[0] + state[1] * 2**64 + begin) % 2**128
        here = [counter % 2**64, counter // 2**64, state[2]]
        yield philox.filled(here, _AT_ONCE, dtype, lambda *words: numbers(words, dtype))
