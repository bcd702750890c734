"""Statistics of gradients where they lie: a few numbers that tell whether they vanish, explode or are broken."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from teletape_engine.arrays import Backend
from teletape_engine.arrays.scatter import add_rows
from teletape_engine.catalogue.slices import GradientKind, SlicesValue, SparseGradient
from teletape_engine.derivatives.reports.json_numbers import as_json, from_json

_PART: Final = 1 << 18  #: Elements that are widened to 64 bits at once: 2 MB.


@dataclass(frozen=True)
class Statistics:
    """A gradient in a few numbers. All are computed in 64 bits, of all its elements.

    Attributes:
        kind: dense, or slices for a sparse gradient: the rows that it lacks count as zeros.
        dtype: The elements' dtype.
        shape: Of the gradient, which is its source's.
        norm: The square root of the sum of the squared magnitudes; it does not overflow on the way.
        max_abs: The largest magnitude; 0 without elements.
        mean: Of the elements; nan without elements. Complex for a complex dtype.
        non_finite: The share of elements that are nan or infinite, from 0 to 1. If there is one, `norm`, `max_abs` and
            `mean` are not finite either.
        zeros: The share of elements that are exactly 0.
    """

    kind: str
    dtype: str
    shape: tuple[int, ...]
    norm: float
    max_abs: float
    mean: complex
    non_finite: float
    zeros: float

    def facts(self) -> dict[str, Any]:
        """As JSON-able facts: what is no finite number as a word, a complex mean as a pair."""
        return {
            "kind": self.kind,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "norm": as_json(self.norm),
            "max_abs": as_json(self.max_abs),
            "mean": as_json(self.mean),
            "non_finite": self.non_finite,
            "zeros": self.zeros,
        }

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Statistics:
        """The statistics that gave these facts."""
        return cls(
            facts["kind"],
            facts["dtype"],
            tuple(facts["shape"]),
            float(facts["norm"]),
            float(facts["max_abs"]),
            from_json(facts["mean"]),
            facts["non_finite"],
            facts["zeros"],
        )

    def __str__(self) -> str:
        shape = "×".join(map(str, self.shape)) or "scalar"
        text = f"{self.dtype} {shape}: norm {self.norm:.4g}, largest {self.max_abs:.4g}, mean {self.mean:.4g}"
        if self.non_finite:
            text += f", {self.non_finite:.2%} not finite"
        return text + f", {self.zeros:.2%} zeros"


def statistics(xp: Any, gradient: Any) -> Statistics:
    """The statistics of a gradient of a floating-point or complex dtype.

    Args:
        xp: The array namespace.
        gradient: An array, or a `SparseGradient` of arrays, whose rows of equal index add up first.
    """
    sparse = isinstance(gradient, SparseGradient)
    array = _rows(xp, gradient) if sparse else gradient
    shape = gradient.dense.shape if sparse else gradient.shape
    size, array = math.prod(shape), xp.ascontiguousarray(array).reshape(-1)
    largest, total, infinite, zeros = 0.0, 0.0, 0, size - array.size
    for part in _parts(xp, array):
        largest = float(xp.maximum(largest, xp.abs(part).max()))  # a nan stays
        total += part.sum().item()
        infinite += part.size - int(xp.count_nonzero(xp.isfinite(part)))
        zeros += part.size - int(xp.count_nonzero(part))
    scale = largest if 0 < largest < math.inf else 1.0  # so that no square overflows or vanishes
    squares = sum(float(xp.sum(xp.square(xp.abs(part) / scale))) for part in _parts(xp, array))
    return Statistics(
        (GradientKind.SLICES if sparse else GradientKind.DENSE).value,
        array.dtype.name,
        tuple(shape),
        scale * math.sqrt(squares),
        largest,
        total / size if size else math.nan,
        infinite / size if size else 0.0,
        zeros / size if size else 0.0,
    )


def statistics_of_recorded(backend: Backend, gradients: Sequence[Any]) -> list[Statistics | None]:
    """The statistics of recorded gradients; None for those that do not exist."""
    with backend.quiet():
        return [None if gradient is None else statistics(backend.xp, _arrays(gradient)) for gradient in gradients]


def _arrays(gradient: Any) -> Any:
    if isinstance(gradient, SlicesValue):
        return SparseGradient(gradient.values.array, gradient.indices.array, gradient.dense)
    return gradient.array


def _parts(xp: Any, array: Any) -> Iterator[Any]:
    """The elements in 64 bits, some at a time."""
    wide = xp.complex128 if array.dtype.kind == "c" else xp.float64
    for start in range(0, array.size, _PART):
        yield array[start : start + _PART].astype(wide)


def _rows(xp: Any, gradient: SparseGradient) -> Any:
    """The rows that the gradient has, [rows, elements of a row]: those of equal index added up."""
    rows, indices = gradient.values, gradient.indices
    if not rows.size:
        return rows
    distinct, places = xp.unique(indices, return_inverse=True)
    return add_rows(xp, rows.reshape(indices.size, -1), places.reshape(-1), distinct.size)
