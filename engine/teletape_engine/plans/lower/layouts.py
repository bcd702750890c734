"""What NumPy allocates for results: their layouts."""

from __future__ import annotations

from typing import Any

import numpy as np


def allocated(layouts: list[Any], dtype: Any) -> Any:
    """What NumPy allocates for the result of an elementwise call."""
    if len({layout.shape for layout in layouts}) == 1 and all(layout.flags.c_contiguous for layout in layouts):
        return np.empty(layouts[0].shape, dtype)
    nditer: Any = np.nditer
    iterator = nditer(
        [*layouts, None],
        flags=["external_loop", "zerosize_ok", "refs_ok"],
        op_flags=[["readonly"]] * len(layouts) + [["writeonly", "allocate"]],
        op_dtypes=[layout.dtype for layout in layouts] + [dtype],
    )
    return iterator.operands[-1]


def of_reduction(x: Any, axes: tuple[int, ...], dtype: Any) -> Any:
    """What NumPy allocates for a reduction.

    Args:
        x: The layout that is reduced.
        axes: Over which axes, none negative.
        dtype: Of the result.
    """
    remaining = [a for a in range(x.ndim) if a not in axes]
    if not remaining:
        return np.empty((), dtype)
    if not axes:
        return np.empty_like(x, dtype=dtype)
    iterator = np.nditer(
        [None, x],
        flags=["external_loop", "reduce_ok"],
        op_flags=[["readwrite", "allocate"], ["readonly"]],
        op_axes=[[remaining.index(a) if a in remaining else -1 for a in range(x.ndim)], list(range(x.ndim))],
        op_dtypes=[dtype, x.dtype],
    )
    return np.empty_like(iterator.operands[0])
