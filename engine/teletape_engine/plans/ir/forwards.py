"""Forward functions in Python as instructions: each leaves its results in memory that exists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from teletape_engine.plans.ir.buffers import same_layout, span
from teletape_engine.plans.ir.fitting import ALIGNMENT
from teletape_engine.recording.values import Literal


class Diverged(Exception):
    """A forward function gave another layout than when the plan was built."""


def python_step(
    forward: Callable[..., Any], pattern: tuple[Any, ...], layout: Any, *, foreseen: bool = False
) -> Callable[..., None]:
    """A call of a forward function that leaves its result in memory that exists.

    Args:
        forward: `forward(np, *arrays)`.
        pattern: For each argument a Literal, or whether the array is given as a scalar.
        layout: Of the result; raises `Diverged` if the forward gives another.
        foreseen: Whether the layout is what is expected, and has not been seen.
    """
    plain = not any(isinstance(entry, Literal) or entry for entry in pattern)
    strides, several = layout.strides, isinstance(forward, SideBySide)

    def run(*arrays: Any) -> None:
        output = arrays[-1]
        if plain:
            result = forward(np, *arrays[:-1])
        else:
            remaining = iter(arrays)
            result = forward(
                np,
                *[
                    entry.array if entry.__class__ is Literal else next(remaining)[()] if entry else next(remaining)
                    for entry in pattern
                ],
            )
        if several:
            forward.put(result, output)  # type: ignore[attr-defined]  # a SideBySide
            return
        if result.strides != strides and not same_layout(result, layout):
            raise Diverged
        if foreseen and (not strides or not _is_own(result)):
            raise Diverged
        np.copyto(output, result)

    return run


class SideBySide:
    """A forward function of several results, which lie in one array of bytes.

    Args:
        forward: `forward(np, *arrays)`.
        layouts: Of the results.

    Attributes:
        places: Of each result the layout, and where in the array it begins.
        nbytes: Of the array.
    """

    def __init__(self, forward: Callable[..., Any], layouts: Sequence[Any]) -> None:
        self._forward = forward
        self.places: list[tuple[Any, int]] = []
        self.nbytes = 0
        for layout in layouts:
            self.places.append((layout, self.nbytes))
            self.nbytes += -(-max(span(layout), 1) // ALIGNMENT) * ALIGNMENT

    def __call__(self, xp: Any, *arrays: Any) -> Any:
        """The results."""
        return self._forward(xp, *arrays)

    def put(self, results: Sequence[Any], output: Any) -> None:
        """Leaves the results in the array; raises `Diverged` if one has another layout."""
        for result, (layout, offset) in zip(results, self.places, strict=True):
            if result.strides != layout.strides and not same_layout(result, layout):
                raise Diverged
            np.ndarray(layout.shape, layout.dtype, output, offset, layout.strides)[...] = result


def _is_own(array: Any) -> bool:
    """Whether an array is all of its memory."""
    base = array
    while isinstance(below := base.base, np.ndarray):
        base = below
    return bool(base.nbytes == array.nbytes)
