"""Adding rows at indices, which NumPy and CuPy do in different ways, and the check of indices that both need."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import wide


def check_indices(xp: Any, indices: Any, length: int, *, what: str = "indices", end: str = "not in") -> None:
    """Every index is in [0, length). On a GPU this waits for the indices.

    Raises:
        InvalidArgumentError: `indices[0] = 5 is not in [0, 3)`, for the first that is not.
    """
    if indices.size == 0 or (int(indices.min()) >= 0 and int(indices.max()) < length):
        return
    bad = (indices < 0) | (indices >= length)
    where = tuple(int(axis[0]) for axis in xp.nonzero(bad)) if indices.ndim else ()
    place = "[" + ",".join(map(str, where)) + "]" if where else ""
    raise InvalidArgumentError(f"{what}{place} = {int(indices[where])} is {end} [0, {length})")


def add_rows(xp: Any, rows: Any, ids: Any, length: int) -> Any:
    """Zeros [length, d] plus `rows[k]` at row `ids[k]`; rows of equal id add up.

    In the order of the rows on the CPU; in no certain order on a GPU, so that the last bit of a sum may differ from
    run to run there. 16-bit floats add up in float32.

    Args:
        xp: The array namespace.
        rows: [n, d].
        ids: [n] integers in [0, length).
        length: Number of rows of the result.
    """
    out = xp.zeros((length, rows.shape[1]), wide(rows.dtype))
    if rows.size == 0:
        return out.astype(rows.dtype, copy=False)
    if xp is np:
        # Sorting and summing runs of equal ids: ten times faster than add.at, which takes rows one number at a time.
        order = np.argsort(ids, kind="stable")
        ordered = ids[order]
        starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        out[ordered[starts]] = np.add.reduceat(rows[order].astype(out.dtype, copy=False), starts, axis=0)
    else:
        import cupyx

        cupyx.scatter_add(out, ids, rows.astype(out.dtype, copy=False))
    return out.astype(rows.dtype, copy=False)
