"""Elementwise functions of several steps, tile by tile: what lies between two steps stays in a CPU's cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from teletape_engine.arrays import Array, ArrayModule

TILE: Final = 1 << 15  #: Elements of a tile.


def in_tiles(xp: ArrayModule, function: Callable[..., Any], *arrays: Array) -> Array:
    """`function(xp, *arrays)`, which gives an array of the shape and dtype of the first; each element by itself.

    Tiles are for arrays of one shape in the CPU's memory; another input may be broadcast, or a number. While a plan is
    traced, the plan itself decides on tiles.
    """
    first = arrays[0]
    alike = all(hasattr(array, "shape") and array.shape == np.shape(first) for array in arrays)
    if xp is not np or not alike or first.size <= TILE:
        return function(xp, *arrays)
    out = np.empty(first.shape, first.dtype)
    sources, target = [np.ascontiguousarray(array).reshape(-1) for array in arrays], out.reshape(-1)
    for start in range(0, first.size, TILE):
        target[start : start + TILE] = function(np, *[source[start : start + TILE] for source in sources])
    return out
