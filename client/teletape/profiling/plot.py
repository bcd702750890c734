"""A profile as a picture, by Matplotlib."""

from __future__ import annotations

from typing import Any, Final

_OPS: Final = 10  #: Ops that are shown.


def draw(profile: Any, axes: Any = None) -> Any:
    """Draws two bar charts, the split of the time and the ops that took longest, and returns the figure.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    if axes is None:
        try:
            from matplotlib import pyplot  # when it is first needed: it takes a second to import
        except ImportError as error:
            raise ImportError("profile.plot needs Matplotlib: pip install matplotlib") from error
        _, axes = pyplot.subplots(1, 2, figsize=(10, 3), layout="constrained")
    parts, ops = list(profile.parts.items()), [(row.name, row.seconds) for row in profile.by_op[:_OPS]]
    for each, bars, title in zip(axes, (parts, ops), ("where the time goes", "by op"), strict=True):
        names, seconds = [name for name, _ in bars][::-1], [length for _, length in bars][::-1]
        each.barh(names, seconds)
        each.set_xlabel("seconds")
        each.set_title(title)
    return axes[0].figure
