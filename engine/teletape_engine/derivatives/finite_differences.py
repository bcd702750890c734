"""Compares automatic derivatives with finite differences; the gradient check and the laws of ops use it.

Each result is multiplied by a random cotangent and summed. A check computes one gradient of this sum and compares its
entries with central differences, which take two calls of the function for each entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from teletape_engine.derivatives.reports.check_report import CheckedElement, Report
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import COMPLEX, DIFFERENTIABLE, DType

ENTRIES: Final = 64  #: Of each input that are compared; a smaller input is compared whole.
_TOGETHER: Final = 256  #: Calls before their results are read.
#: Steps of entries that do not agree, as multiples of the first step: a longer one suffers less from rounding.
_LARGER: Final = (1, 16, 256)
#: By bytes of a real part: relative and absolute tolerance.
_TOLERANCES: Final = {8: (1e-5, 1e-7), 4: (1e-2, 1e-3), 2: (1e-1, 2e-2)}


def slope(f: Callable[[Any], float], x: Any, *, step: float) -> Any:
    """The gradient of a real f by central differences: ∂f/∂Re + i ∂f/∂Im for a complex x."""
    return slopes(lambda moved: [f(moved)], x, 1, step=step)[0]


def slopes(f: Callable[[Any], Sequence[float]], x: Any, count: int, *, step: float) -> Any:
    """The gradients of `count` real functions, all of which one call of f computes; see `slope`."""
    out = np.zeros((count, *x.shape), x.dtype)
    for at in np.ndindex(x.shape):
        for unit in units(x.dtype):
            moved = np.zeros(x.shape, x.dtype)
            moved[at] = step * unit
            out[:, *at] += unit * (np.asarray(f(x + moved)) - np.asarray(f(x - moved))) / (2 * step)
    return out


def units(dtype: DType) -> tuple[complex, ...]:
    """The directions in which an entry of that dtype can be moved."""
    return (1.0, 1j) if dtype in COMPLEX else (1.0,)


def precision(dtype: DType) -> float:
    """The distance from 1 to the next number of the dtype, or of its parts."""
    return {8: 2.0**-52, 4: 2.0**-23}.get(_width(dtype), 2.0**-7 if dtype.name == "bfloat16" else 2.0**-10)


def _width(dtype: DType) -> int:
    return int(dtype.itemsize) // (2 if dtype in COMPLEX else 1)


class Subject(Protocol):
    """A function at a point, wherever it runs."""

    @property
    def values(self) -> Sequence[np.ndarray[Any, Any]]:
        """The arguments."""

    @property
    def outputs(self) -> Sequence[np.ndarray[Any, Any]]:
        """The results there."""

    def gradients(self, cts: Sequence[np.ndarray[Any, Any]]) -> list[list[np.ndarray[Any, Any] | None]]:
        """For each result, weighted by its cotangent, the gradient of each argument."""

    def weighted(self, points: Sequence[tuple[int, np.ndarray[Any, Any]]]) -> np.ndarray[Any, Any]:
        """⟨ct, result⟩, real, in float64: [points, results]. A point is another value for one argument."""


class Settings(NamedTuple):
    """How a check is made.

    Attributes:
        entries: Of each input that are compared, at most.
        seed: Of the choice of entries and of the cotangents.
        step: Of the differences, times the entry's size where that is above 1; None: by the dtype.
        rtol, atol: Tolerances; None: by the dtype.
    """

    entries: int = ENTRIES
    seed: int = 0
    step: float | None = None
    rtol: float | None = None
    atol: float | None = None

    def check(self) -> None:
        """InvalidArgumentError for a setting that makes no sense."""
        for name, value in zip(self._fields, self, strict=True):
            least = 0.0 if name in ("seed", "rtol", "atol") else 1e-300
            if value is not None and not least <= value < math.inf:
                raise InvalidArgumentError(
                    f"check_gradients: {name} must be a number {'from' if not least else 'above'} 0, found {value!r}"
                )


def weights(subject: Subject, seed: int) -> list[np.ndarray[Any, Any]]:
    """A cotangent for each result, of its dtype: away from zero, of either sign."""
    draw = np.random.default_rng(seed)
    out = []
    for result in subject.outputs:
        ct = draw.uniform(0.5, 1.5, result.shape) * draw.choice((-1.0, 1.0), result.shape)
        if result.dtype in COMPLEX:
            ct = ct + 1j * draw.uniform(-1.0, 1.0, result.shape)
        out.append(np.asarray(ct).astype(result.dtype))
    return out


def check(subject: Subject, settings: Settings, cts: Sequence[np.ndarray[Any, Any]]) -> Report:
    """Compares the subject's gradients with differences.

    Args:
        subject: What is checked.
        settings: How.
        cts: As `weights` draws them.

    Raises:
        InvalidArgumentError: The function returns a different result at each call.
    """
    errors = np.geterr()  # the caller's function runs in the caller's error state
    with np.errstate(all="ignore"):
        return _Check(subject, settings, cts, errors).report()


class _Check:
    def __init__(self, subject: Subject, settings: Settings, cts: Sequence[np.ndarray[Any, Any]], errors: Any) -> None:
        self.subject, self.settings, self.cts, self.errors = subject, settings, cts, errors
        self.free = [i for i, value in enumerate(subject.values) if value.dtype in DIFFERENTIABLE]
        dtypes = [subject.values[i].dtype for i in self.free] + [result.dtype for result in subject.outputs]
        self.coarsest = max(dtypes, key=precision) if dtypes else np.dtype("float64")
        self.eps = precision(self.coarsest)
        #: What rounding can make of each weighted result.
        self.rounding = [
            4 * self.eps * float(np.sum(np.abs(ct.astype(np.complex128)) * np.abs(result.astype(np.complex128))))
            for ct, result in zip(cts, subject.outputs, strict=True)
        ]

    def report(self) -> Report:
        subject, settings = self.subject, self.settings
        draw = np.random.default_rng(settings.seed)
        places: list[tuple[int, int]] = []
        for i in self.free:
            size = subject.values[i].size
            chosen: Iterable[Any] = range(size)
            if size > settings.entries:
                chosen = np.sort(draw.choice(size, settings.entries, replace=False)).tolist()
            places += [(i, at) for at in chosen]
        entries = sum(subject.values[i].size for i in self.free)
        worst: CheckedElement | None = None
        if places and self.cts:
            with np.errstate(**self.errors):
                automatic = subject.gradients(self.cts)
            base = self._base()
            todo, compared = places, dict[tuple[int, int, int], CheckedElement]()
            for times in _LARGER:
                for key, entry in self._compared(todo, automatic, base, times):
                    if key not in compared or _share(entry) < _share(compared[key]):
                        compared[key] = entry
                todo = list(dict.fromkeys((i, at) for (_, i, at), entry in compared.items() if not entry.agrees))
                if not todo:
                    break
            worst = max(compared.values(), key=_share)
        return Report(self.coarsest.name, len(places), entries, settings.seed, worst)

    def _weighted(self, points: Sequence[tuple[int, np.ndarray[Any, Any]]]) -> np.ndarray[Any, Any]:
        with np.errstate(**self.errors):
            return self.subject.weighted(points)

    def _base(self) -> np.ndarray[Any, Any]:
        i = self.free[0]
        same = (i, self.subject.values[i])
        first, second = self._weighted([same, same])
        for k, (a, b) in enumerate(zip(first, second, strict=True)):
            if abs(a - b) > self.rounding[k] and not (a != a and b != b):
                raise InvalidArgumentError(
                    f"check_gradients: the function returns a different result at each call ({a:.8g}, then {b:.8g}): "
                    "it draws random numbers or keeps a state; pass them as arguments, or set the seed inside"
                )
        return np.asarray(first)

    def _compared(
        self, places: Sequence[tuple[int, int]], automatic: Sequence[Sequence[Any]], base: Any, times: int
    ) -> list[tuple[tuple[int, int, int], CheckedElement]]:
        points, moves = [], []
        for i, at in places:
            value = self.subject.values[i]
            x = value.reshape(-1)[at]
            size = float(abs(x))
            scale = max(1.0, size) if math.isfinite(size) else 1.0
            step = (self.settings.step or self.eps ** (1 / 3)) * scale * times
            for unit in units(value.dtype):
                for sign in (1, -1):
                    moved = np.array(value)
                    moved.reshape(-1)[at] = x + value.dtype.type(sign * step * unit)
                    points.append((i, moved))
                up, down = points[-2][1].reshape(-1)[at], points[-1][1].reshape(-1)[at]
                moves.append((float(abs(up.astype(np.complex128) - down.astype(np.complex128))) / 2, unit))
                if not moves[-1][0]:
                    raise InvalidArgumentError(
                        f"check_gradients: step {step:.3g} is too small: in {value.dtype.name} it does not "
                        f"change an entry of {x:.6g}; take a larger step, or leave it out"
                    )
        rows = [self._weighted(points[k : k + _TOGETHER]) for k in range(0, len(points), _TOGETHER)]
        values = np.concatenate(rows).reshape(len(moves), 2, -1)
        out, k = [], 0
        for i, at in places:
            count = len(units(self.subject.values[i].dtype))
            for output in range(len(self.cts)):
                pairs = values[k : k + count, :, output]
                entry = self._entry(output, i, at, automatic[output][i], base[output], pairs, moves[k : k + count])
                out.append(((output, i, at), entry))
            k += count
        return out

    def _entry(
        self,
        output: int,
        i: int,
        at: int,
        gradient: Any,
        base: float,
        values: Any,
        moves: Sequence[tuple[float, complex]],
    ) -> CheckedElement:
        value = self.subject.values[i]
        kind = complex if value.dtype in COMPLEX else float
        numerical, sides, noise = kind(0), [kind(0), kind(0)], 0.0
        for (up, down), (step, unit) in zip(values, moves, strict=True):
            numerical += unit * float((up - down) / (2 * step))
            sides[0] += unit * float((base - down) / step)
            sides[1] += unit * float((up - base) / step)
            noise += self.rounding[output] / step
        rtol, atol = _TOLERANCES[_width(self.coarsest)]
        rtol = rtol if self.settings.rtol is None else self.settings.rtol
        atol = atol if self.settings.atol is None else self.settings.atol
        automatic = None if gradient is None else kind(gradient.reshape(-1)[at])
        size = max(abs(numerical), abs(automatic or 0))
        tolerance = atol + noise + (rtol * size if math.isfinite(size) else 0.0)
        entry = CheckedElement(
            output, i, tuple(int(k) for k in np.unravel_index(at, value.shape)), automatic, numerical, tolerance
        )
        bent = abs(sides[0] - sides[1])
        if not entry.agrees and bent > max(tolerance, 0.1 * size):
            entry = replace(entry, sides=(sides[0], sides[1]))
        return entry


def _share(entry: CheckedElement) -> float:
    """How much of its tolerance an entry uses up."""
    return entry.error / entry.tolerance if entry.tolerance else (math.inf if entry.error else 0.0)


def widened(dtype: DType) -> DType:
    """The dtype in which a check is made where the function takes it."""
    return np.dtype("complex128") if dtype in COMPLEX else np.dtype("float64") if dtype in DIFFERENTIABLE else dtype
