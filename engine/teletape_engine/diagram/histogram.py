"""What a tensor's elements are like: counts, extremes, mean, and a histogram. It is read in pieces, never copied.

Complex numbers count by their magnitude, bool as 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from teletape_engine.arrays.cpu import on_host
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import COMPLEX, FLOATING, Spec

MAX_BINS: Final = 512
_PIECE: Final = 1 << 17  #: Elements that are converted at once: 1 MiB, which stays in the CPU's cache.


def histogram(
    array: Any, spec: Spec, bins: int, *, xp: Any = np, check_cancelled: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Returns statistics of an array as JSON-able facts.

    Args:
        array: Of `xp`.
        spec: Its spec.
        bins: Bins of the histogram, 1 to `MAX_BINS`. Integers of a narrow range get a bin each, and so fewer.
        xp: NumPy or CuPy.
        check_cancelled: Called before each piece; what it raises ends the count.

    Returns:
        elements, finite, zeros, nan, positive_infinity, negative_infinity: Numbers of elements.
        minimum, maximum, mean, std: Of the finite elements (null: there are none, or it exceeds float64).
        of: value, or magnitude for complex numbers.
        edges: Ascending, one more than counts; empty if no element is finite. If all are equal, both edges are.
        counts: Finite elements from each edge (inclusive) to the next; the last includes its upper edge.

    Raises:
        InvalidArgumentError: A number of bins that is not allowed.
    """
    if not 1 <= bins <= MAX_BINS:
        raise InvalidArgumentError(f"bins: from 1 to {MAX_BINS}, found {bins}")
    count = dict.fromkeys(("finite", "zeros", "nan", "positive_infinity", "negative_infinity"), 0)
    low, high, total = math.inf, -math.inf, 0.0
    floating = spec.dtype in FLOATING | COMPLEX

    def finite_pieces() -> Iterator[Any]:
        for piece in _pieces(array, spec, xp):
            check_cancelled()
            yield piece[xp.isfinite(piece)] if floating else piece

    with np.errstate(all="ignore"):
        for piece in _pieces(array, spec, xp):
            check_cancelled()
            if floating:
                count["nan"] += int(xp.isnan(piece).sum())
                count["positive_infinity"] += int((piece == math.inf).sum())
                count["negative_infinity"] += int((piece == -math.inf).sum())
                piece = piece[xp.isfinite(piece)]
            count["finite"] += piece.size
            if piece.size:
                count["zeros"] += int((piece == 0).sum())
                low, high = min(low, float(piece.min())), max(high, float(piece.max()))
                total += float(piece.sum())
        facts: dict[str, Any] = {"elements": math.prod(spec.shape), **count}
        facts["of"] = "magnitude" if spec.dtype in COMPLEX else "value"
        if not count["finite"]:
            return facts | dict.fromkeys(("minimum", "maximum", "mean", "std")) | {"edges": [], "counts": []}
        mean = total / count["finite"]
        edges = _edges(low, high, bins, whole=not floating)
        counts = np.zeros(len(edges) - 1, np.int64)
        squares = 0.0
        for piece in finite_pieces():
            squares += float(((piece - mean) ** 2).sum())
            counts += _counts(piece, edges, xp)
    std = math.sqrt(squares / count["finite"]) if squares < math.inf else math.inf
    numbers = {"minimum": low, "maximum": high, "mean": mean, "std": std}
    facts |= {name: number if math.isfinite(number) else None for name, number in numbers.items()}
    return facts | {"edges": edges.tolist(), "counts": counts.tolist()}


def _pieces(array: Any, spec: Spec, xp: Any) -> Iterator[Any]:
    """The elements as float64, in any order."""
    is_complex = spec.dtype in COMPLEX
    if xp is np:
        flags: Any = ["external_loop", "buffered", "zerosize_ok"]
        kind = np.complex128 if is_complex else np.float64
        array = np.asarray(array)
        with np.nditer(array, flags, ["readonly"], [kind], order="K", casting="unsafe", buffersize=_PIECE) as pieces:
            for piece in pieces:
                yield np.abs(piece) if is_complex else piece
        return
    flat = array.ravel(order="K")
    for start in range(0, flat.size, _PIECE):
        piece = flat[start : start + _PIECE]
        yield xp.abs(piece).astype(np.float64) if is_complex else piece.astype(np.float64)


def _edges(low: float, high: float, bins: int, *, whole: bool) -> np.ndarray[Any, Any]:
    if low == high:
        return np.array([low, high])
    if whole and high - low < bins:
        return np.arange(low, high + 2) - 0.5
    edges = np.linspace(low / 2, high / 2, bins + 1) * 2  # halves: the range of float64 may exceed float64
    edges[0], edges[-1] = low, high
    return edges


def _counts(piece: Any, edges: np.ndarray[Any, Any], xp: Any) -> np.ndarray[Any, Any]:
    """The number of elements in each bin; all are inside the edges."""
    bins = len(edges) - 1
    if bins == 1:
        return np.array([piece.size])
    places = xp.searchsorted(xp.asarray(edges), piece, side="right") - 1
    counted: Any = xp.bincount(xp.minimum(places, bins - 1), minlength=bins)
    return on_host(counted)
