"""Adding rows at indices, which NumPy and CuPy do in different ways, and the check of indices that both need."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import wide

#: What CuPy adds instead: two's complement numbers add up as unsigned ones do, complex numbers as two real ones.
_ATOMIC: Final = {
    "int8": "int32",
    "int16": "int32",
    "uint8": "uint32",
    "uint16": "uint32",
    "int64": "uint64",
    "complex64": "float32",
    "complex128": "float64",
}


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

        atomic = _ATOMIC.get(out.dtype.name, out.dtype)
        if out.dtype.itemsize < 4:  # too small for an atomic addition
            total = xp.zeros(out.shape, atomic)
            cupyx.scatter_add(total, ids, rows.astype(atomic))
            return total.astype(rows.dtype)
        rows = xp.ascontiguousarray(rows.astype(out.dtype, copy=False))
        cupyx.scatter_add(out.view(atomic), ids, rows.view(atomic))
    return out.astype(rows.dtype, copy=False)
