"""Checks of values inside forward functions, and the bounds of integers that make some of them cheap.

Where a function is traced, a check becomes an instruction of the plan. Nothing removes such an instruction; if it
fails, the plan fails, and the interpreter raises the error.

A check of numbers on a GPU waits for them. Labels and indices mostly come from the host, which reads their bounds
before it copies them; whatever only moves their elements has them too.

The refusal of a dtype is worded here as well, for the binding of a call and for the copy to a GPU.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

MOST_READ: Final = 1 << 20  #: Elements of an array whose bounds are read before it is copied: a millisecond.


def holds(xp: Any, condition: Any) -> bool:
    """Returns whether a condition, an array of bool, holds everywhere; True if that is checked when a plan runs."""
    noted = getattr(condition, "noted_check", None)
    if noted is not None:
        noted()
        return True
    return bool(xp.all(condition))


def condition_of(xp: Any, condition: Any) -> Any:
    """A condition for `xp.where`, of which CuPy's takes no Python bool: a comparison of two numbers gives one."""
    return xp.full((), condition) if condition.__class__ is bool else condition


def within(x: Any, length: int) -> bool:
    """Returns whether all integers are in [0, length); True if that is checked when a plan runs.

    On a GPU this waits for a truth value, unless the host knows the bounds of the integers.
    """
    if hasattr(x, "noted_check"):
        ((x >= 0) & (x < length)).noted_check()
        return True
    if isinstance(x, np.ndarray | np.generic):
        return x.size == 0 or (int(x.min()) >= 0 and int(x.max()) < length)
    known = known_bounds(x)
    if known is not None and known.low >= 0 and known.high < length:
        return True  # if the bounds are wider, the elements may still be in range
    if x.size == 0:
        return True
    inside = bool(((x >= 0) & (x < length)).all())
    if inside:  # the gradient checks them again
        note_bounds(x, Bounds(0, length - 1))
    return inside


def refusal_of(dtype: str) -> str:
    """Why a GPU has no arrays of a dtype, and what to use instead."""
    return f"{dtype} is not available on device gpu; use float16 or float32"


# --------------------------------------------------------------------------------------------------------------- bounds
class Bounds(NamedTuple):
    """That no element is less than `low`, and none is larger than `high`."""

    low: int
    high: int


_bounds: dict[int, tuple[weakref.ref[Any], Bounds]] = {}  # by the array's id


def note_bounds(array: Any, bounds: Bounds) -> None:
    """Notes the bounds of an array of a GPU, until it is freed or `forget_bounds` is called."""
    key = id(array)
    _bounds[key] = weakref.ref(array, lambda _: _bounds.pop(key, None)), bounds


def known_bounds(array: Any) -> Bounds | None:
    """The bounds of an array, or None if the host does not know them."""
    entry = _bounds.get(id(array))
    return None if entry is None or entry[0]() is not array else entry[1]


def forget_bounds(array: Any) -> None:
    """To be called before an array is written into."""
    _bounds.pop(id(array), None)


def read_bounds(array: np.ndarray[Any, Any]) -> Bounds | None:
    """The bounds of an array of the host; None if it is not of integers, empty or too large."""
    if array.dtype.kind not in "iu" or not 0 < array.size <= MOST_READ:
        return None
    return Bounds(int(array.min()), int(array.max()))


def move_bounds(result: Any, arrays: Sequence[Any]) -> None:
    """Notes the bounds of a result that has elements of these arrays and no others, if all their bounds are known."""
    parts = [known_bounds(array) for array in arrays]
    if all(parts):
        bounds = Bounds(min(part.low for part in parts if part), max(part.high for part in parts if part))
        limits = np.iinfo(result.dtype)
        if limits.min <= bounds.low and bounds.high <= limits.max:
            note_bounds(result, bounds)
