"""Candidates: classes that are drawn in the place of all other classes, for losses over many classes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from teletape_engine.arrays import philox
from teletape_engine.catalogue.define import op, sample
from teletape_engine.catalogue.families import batch_loop
from teletape_engine.catalogue.op import Trait
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.philox import check_state, unsigned
from teletape_engine.spec import DTYPES, Spec

_F64, _I64 = DTYPES["float64"], DTYPES["int64"]
_STATE: Final = np.array([0, 1, 7])
_AT_ONCE: Final = 1024  #: Draws that are computed together.
_DISTRIBUTIONS: Final = ("uniform", "log_uniform")


def _candidates_spec(state: Spec, *, num_sampled: int, range_max: int, unique: bool, distribution: str) -> Spec:
    check_state(state)
    if range_max <= 0 or num_sampled <= 0:
        raise InvalidArgumentError(f"range_max and num_sampled must be positive, found {range_max} and {num_sampled}")
    if unique and num_sampled > range_max:
        raise InvalidArgumentError(f"Sampler's range is too small: {num_sampled} different ones of {range_max}")
    if distribution not in _DISTRIBUTIONS:
        raise InvalidArgumentError(f"distribution must be one of {', '.join(_DISTRIBUTIONS)}, found {distribution!r}")
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
def philox_candidates(
    xp: Any, state: Any, *, num_sampled: int, range_max: int, unique: bool = True, distribution: str = "log_uniform"
) -> Any:
    """Classes in [0, range_max), int64 [num_sampled + 1], from a state of Philox: int64 [3]; the last one counts draws.

    Uniform classes are equally probable. A log-uniform class k has the probability log((k + 2) / (k + 1)) / log(1 +
    range_max): the classes are sorted by frequency. Unique ones are drawn again until they differ.
    """
    drawn = _uniform(unsigned(state), range_max) if distribution == "uniform" else _skewed(unsigned(state), range_max)
    chosen: dict[int, None] = {}
    many: list[int] = []
    tries = 0
    while len(chosen if unique else many) < num_sampled:
        tries += 1
        if unique:
            chosen[next(drawn)] = None
        else:
            many.append(next(drawn))
    return xp.asarray(np.array([*(chosen if unique else many), tries], np.int64))


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


def _parts(state: philox.State, dtype: Any) -> Iterator[Any]:
    """Yields numbers of 64 bits without end, in parts."""
    numbers = philox.uniforms if dtype == _F64 else philox.whole_numbers
    for begin in range(0, 2**62, _AT_ONCE // 2):
        counter = (state[0] + state[1] * 2**64 + begin) % 2**128
        here = [counter % 2**64, counter // 2**64, state[2]]
        yield philox.filled(here, _AT_ONCE, dtype, lambda *words: numbers(words, dtype))
