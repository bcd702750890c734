"""Checks of values inside forward functions. Where a function is traced, a check becomes an instruction of the plan.

Nothing removes such an instruction; if it fails, the plan fails, and the interpreter raises the error.
"""

from __future__ import annotations

from typing import Any


def holds(xp: Any, condition: Any) -> bool:
    """Returns whether a condition, an array of bool, holds everywhere; True if that is checked when a plan runs."""
    noted = getattr(condition, "noted_check", None)
    if noted is not None:
        noted()
        return True
    return bool(xp.all(condition))


def within(x: Any, length: int) -> bool:
    """Returns whether all integers are in [0, length); True if that is checked when a plan runs."""
    if hasattr(x, "noted_check"):
        ((x >= 0) & (x < length)).noted_check()
        return True
    return x.size == 0 or (int(x.min()) >= 0 and int(x.max()) < length)
