"""Distributions that reject: each number has a stream of blocks of its own, and takes as many as it needs.

The numbers of a block are taken from the last one to the first. The algorithms are those of TensorFlow's kernels: for
gamma numbers Marsaglia and Tsang, "A Simple Method for Generating Gamma Variables", 2000; for Poisson numbers of a mean
below 10 Knuth's products, and above it Hörmann, "The transformed rejection method for generating Poisson random
variables", 1993; for binomial numbers of a mean below 10 sums of geometric numbers, and above it Hörmann, "The
generation of binomial random variates", 1993.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from teletape_engine.arrays import special
from teletape_engine.arrays.philox import RESERVED, Array, State, blocks, normals, uniforms, width

_AT_ONCE: Final = 1 << 15  #: Numbers that are drawn together.
_FROM_REJECTION: Final = 10  #: The mean from which on Poisson and binomial numbers come from rejection.
_OF_AN_INVERSION: Final = 42  #: Blocks reserved for a binomial number that is a sum of geometric numbers.
_F64: Final = np.dtype(np.float64)
#: log(k!) less Stirling's approximation of it, for k below 10.
_TAILS: Final = np.array(
    [
        *(0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211),
        *(0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287),
    ]
)


class Streams:
    """Blocks for each of many numbers, and what is left of the last one.

    Args:
        state: The state from which the offsets count.
        offsets: The first block of each number, uint64.
    """

    def __init__(self, state: State, offsets: Array) -> None:
        self._state, self._offsets = state, offsets.copy()
        self._buffers: dict[Callable[..., Any], tuple[Array, Array]] = {}

    def take(self, numbers: Callable[..., Any], which: Array) -> Array:
        """Returns the next number of each of these streams: `uniforms` or `normals` of a block."""
        buffer = self._buffers.get(numbers)
        if buffer is None:
            count = len(self._offsets)
            buffer = np.empty((count, width(_F64)), _F64), np.zeros(count, np.int64)
            self._buffers[numbers] = buffer
        values, left = buffer
        empty = which[left[which] == 0]
        if empty.size:
            fresh = numbers(blocks(self._state, self._offsets[empty]), _F64)
            values[empty] = np.stack(fresh, 1)
            left[empty] = len(fresh)
            self._offsets[empty] += np.uint64(1)
        left[which] -= 1
        taken: Array = values[which, left[which]]
        return taken


def _parts(size: int) -> Iterator[slice]:
    for begin in range(0, size, _AT_ONCE):
        yield slice(begin, min(begin + _AT_ONCE, size))


def _drawn(draw: Callable[..., Array], state: State, *parameters: Array) -> Array:
    """Returns one number for each row of parameters, part by part."""
    numbers = np.empty(parameters[0].shape, parameters[0].dtype)
    with np.errstate(all="ignore"):
        for part in _parts(len(numbers)):
            places = np.arange(part.start, part.stop, dtype=np.uint64)
            numbers[part] = draw(state, places, *[parameter[part] for parameter in parameters])
    return numbers


# --------------------------------------------------------------------------------------------------------------- gamma
def gammas(state: State, alpha: Array) -> Array:
    """Returns numbers of gamma distributions of these shape parameters (float64) and scale 1."""
    return _drawn(_gammas, state, alpha)


def _gammas(state: State, places: Array, alpha: Array) -> Array:
    streams = Streams(state, places * np.uint64(RESERVED))
    numbers = np.empty_like(alpha)
    single = np.flatnonzero(alpha == 1)  # exponential
    numbers[single] = -np.log1p(-streams.take(uniforms, single))
    small = alpha < 1
    d = alpha + np.where(small, 2.0 / 3, -1.0 / 3)
    c = 1.0 / 3 / np.sqrt(d)
    unfinished = np.flatnonzero(alpha != 1)
    while unfinished.size:
        x = streams.take(normals, unfinished)
        v = 1 + c[unfinished] * x
        positive = v > 0
        trial, x, v = unfinished[positive], x[positive], v[positive]
        v = v * v * v
        u = streams.take(uniforms, trial)
        squares = x * x
        accepted = (u < 1 - 0.0331 * squares * squares) | (np.log(u) < 0.5 * squares + d[trial] * (1 - v + np.log(v)))
        done = trial[accepted]
        numbers[done] = d[done] * v[accepted]
        below = done[small[done]]
        numbers[below] *= streams.take(uniforms, below) ** (1 / alpha[below])
        unfinished = np.setdiff1d(unfinished, done, assume_unique=True)
    return numbers


# ------------------------------------------------------------------------------------------------------------- Poisson
def poissons(state: State, rates: Array) -> Array:
    """Returns counts of Poisson distributions of these means, float64."""
    return _drawn(_poissons, state, rates)


def _poissons(state: State, places: Array, rates: Array) -> Array:
    streams = Streams(state, places * np.uint64(RESERVED))
    numbers = np.zeros_like(rates)
    small = np.flatnonzero(rates < _FROM_REJECTION)
    least, products = np.exp(-rates), np.ones_like(rates)
    while small.size:
        products[small] *= streams.take(uniforms, small)
        small = small[products[small] > least[small]]
        numbers[small] += 1

    logs, b = np.log(rates), 0.931 + 2.53 * np.sqrt(rates)
    a, inverse_alpha = -0.059 + 0.02483 * b, 1.1239 + 1.1328 / (b - 3.4)
    bound = 0.9277 - 3.6224 / (b - 2)
    large = np.flatnonzero(rates >= _FROM_REJECTION)
    while large.size:
        u = streams.take(uniforms, large) - 0.5
        v = streams.take(uniforms, large)
        rate, high, low = rates[large], a[large], b[large]
        shifted = 0.5 - np.abs(u)
        k = np.floor((2 * high / shifted + low) * u + rate + 0.43)
        inside = (shifted >= 0.07) & (v <= bound[large])
        outside = (k < 0) | ((shifted < 0.013) & (v > shifted))
        s = np.log(v * inverse_alpha[large] / (high / (shifted * shifted) + low))
        t = -rate + k * logs[large] - special.function(np, "gammaln", k + 1)
        accepted = inside | (~outside & (s <= t))
        numbers[large[accepted]] = k[accepted]
        large = large[~accepted]
    return numbers


# ------------------------------------------------------------------------------------------------------------ binomial
def binomials(state: State, counts: Array, probs: Array) -> Array:
    """Returns numbers of successes, float64, among `counts` trials of probability `probs` in [0, 1], of one dtype."""
    numbers = np.empty(counts.shape, _F64)
    with np.errstate(all="ignore"):
        for part in _parts(len(numbers)):
            places = np.arange(part.start, part.stop, dtype=np.uint64)
            numbers[part] = _binomials(state, places, counts[part], probs[part])
    return numbers


def _binomials(state: State, places: Array, counts: Array, probs: Array) -> Array:
    mirrored = probs > 0.5
    chances = np.where(mirrored, probs.dtype.type(1) - probs, probs)
    rejected = counts * chances >= _FROM_REJECTION
    many, p = counts.astype(_F64), chances.astype(_F64)
    sure = (many <= 0) | (p <= 0)
    numbers = np.zeros(counts.shape, _F64)
    offsets = places * np.where(rejected, RESERVED, _OF_AN_INVERSION).astype(np.uint64)
    streams = Streams(state, offsets)
    _invert(streams, np.flatnonzero(~rejected & ~sure), many, p, numbers)
    _reject(streams, np.flatnonzero(rejected & ~sure), many, p, numbers)
    return np.where(mirrored, many - numbers, numbers)


def _invert(streams: Streams, unfinished: Array, counts: Array, p: Array, numbers: Array) -> None:
    """Writes how many geometric numbers fit into the counts."""
    sums, denominators = np.zeros_like(numbers), np.log1p(-p)
    while unfinished.size:
        sums[unfinished] += np.ceil(np.log(streams.take(uniforms, unfinished)) / denominators[unfinished])
        unfinished = unfinished[~(sums[unfinished] > counts[unfinished])]
        numbers[unfinished] += 1


def _reject(streams: Streams, unfinished: Array, counts: Array, p: Array, numbers: Array) -> None:
    """Writes binomial numbers by transformed rejection."""
    while unfinished.size:
        count, prob = counts[unfinished], p[unfinished]
        deviation = np.sqrt(count * prob * (1 - prob))
        b = 1.15 + 2.53 * deviation
        a = -0.0873 + 0.0248 * b + 0.01 * prob
        r, m = prob / (1 - prob), np.floor((count + 1) * prob)
        u = streams.take(uniforms, unfinished)
        v = streams.take(uniforms, unfinished)
        u = u - 0.5
        shifted = 0.5 - np.abs(u)
        k = np.floor((2 * a / shifted + b) * u + (count * prob + 0.5))
        inside = (shifted >= 0.07) & (v <= 0.92 - 4.2 / b)
        possible = (k >= 0) & (k <= count)
        height = np.log(v * ((2.83 + 5.1 / b) * deviation) / (a / (shifted * shifted) + b))
        bound = (
            (m + 0.5) * np.log((m + 1) / (r * (count - m + 1)))
            + (count + 1) * np.log((count - m + 1) / (count - k + 1))
            + (k + 0.5) * np.log(r * (count - k + 1) / (k + 1))
            + _tail(m)
            + _tail(count - m)
            - _tail(k)
            - _tail(count - k)
        )
        accepted = inside | (possible & (height <= bound))
        numbers[unfinished[accepted]] = k[accepted]
        unfinished = unfinished[~accepted]


def _tail(k: Array) -> Array:
    """Returns log(k!) less Stirling's approximation of it."""
    squares = (k + 1) * (k + 1)
    series = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / squares) / squares) / (k + 1)
    return np.where(k <= 9, _TAILS[np.clip(k, 0, 9).astype(np.int64)], series)
