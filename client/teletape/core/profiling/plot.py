"""A profile as a picture, by Matplotlib."""

from __future__ import annotations

from typing import Any, Final

_ROWS: Final = 10  #: The number of ops, and of lines, that are shown.


def draw(profile: Any, axes: Any = None) -> Any:
    """Draws bar charts of the split of the time, and of the ops and lines that took longest; returns the figure.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    charts = {
        "where the time goes": list(profile.parts.items()),
        "by op": [(row.name, row.seconds) for row in profile.by_op[:_ROWS]],
        "by line": [(row.name, row.seconds) for row in profile.by_line[:_ROWS]],
    }
    if axes is None:
        try:
            from matplotlib import pyplot  # imported when first needed, because that takes a second
        except ImportError as error:
            raise ImportError("profile.plot needs Matplotlib: pip install matplotlib") from error
        heights = [max(len(bars), 2) for bars in charts.values()]
        size = (8.0, 0.25 * sum(heights) + 2.5)
        _, axes = pyplot.subplots(3, 1, figsize=size, height_ratios=heights, layout="constrained")
    for each, (title, bars) in zip(axes, charts.items(), strict=True):
        names, seconds = [name for name, _ in bars][::-1], [length for _, length in bars][::-1]
        each.barh(names, seconds)
        each.set_xlabel("seconds")
        each.set_title(title)
    return axes[0].figure
