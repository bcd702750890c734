"""From seconds of a call to what a table shows, and ratios of what was measured in turn."""

import statistics
from typing import Any

from suite.rows import Goal, Row


def amount(row: Row, seconds: float) -> float:
    """Seconds of a call in the row's unit."""
    if row.unit == "GB/s":
        return row.per / seconds / 1e9
    return seconds / row.per * {"ms": 1e3, "µs": 1e6}[row.unit]


def digits(number: float) -> str:
    """A number with three digits."""
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.{1 if number >= 10 else 2 if number >= 1 else 3 if number >= 0.1 else 4}f}"


def median(systems: dict[str, Any], name: str) -> float | None:
    """The median seconds of a call, or None if the system was not measured."""
    samples = systems.get(name, {}).get("samples")
    return statistics.median(samples) if samples else None


def ratio(systems: dict[str, Any], goal: Goal) -> tuple[float, str] | None:
    """Ours over the best peer's, and that peer; None if either was not measured.

    Times were measured in turn, so the ratio is the median of the rounds' ratios. Peak memory is counted from 1 MB on.
    """
    if goal.memory:
        sizes = {name: max(systems[name]["memory"], 1) for name in goal.peers if "memory" in systems.get(name, {})}
        if not sizes or "memory" not in systems.get(goal.system, {}):
            return None
        best = min(sizes, key=sizes.__getitem__)
        return max(systems[goal.system]["memory"], 1) / sizes[best], best
    medians = {name: number for name in goal.peers if (number := median(systems, name)) is not None}
    if not medians or median(systems, goal.system) is None:
        return None
    best = min(medians, key=medians.__getitem__)
    pairs = zip(systems[goal.system]["samples"], systems[best]["samples"], strict=True)
    return statistics.median(ours / peer for ours, peer in pairs), best
