"""Adding rows at indices, which NumPy and CuPy do in different ways, and the check of indices that both need."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.arrays.checks import known_bounds, within
from teletape_engine.arrays.cpu import on_host
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import finfo, wide

#: Rows that come up to 8 times are changed one after the other, as in TensorFlow; others are summed first.
_TURNS: Final = 8

#: The dtypes that are too small for CUDA's atomic functions.
_WIDER: Final = {"int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32", "float16": "float32"}
#: What CuPy adds instead: two's complement numbers add up as unsigned ones do, complex numbers as two real ones.
_ATOMIC: Final = {
    **_WIDER,
    "int64": "uint64",
    "complex64": "float32",
    "complex128": "float64",
}
_SIGN: Final = np.uint64(1 << 63)


def check_indices(xp: ArrayModule, indices: Array, length: int, *, what: str = "indices", end: str = "not in") -> None:
    """Checks that every index is in [0, length). On a GPU this waits for the indices.

    Raises:
        InvalidArgumentError: `indices[0] = 5 is not in [0, 3)`, for the first that is not.
    """
    if within(indices, length):
        return
    bad = (indices < 0) | (indices >= length)
    where = tuple(int(axis[0]) for axis in xp.nonzero(bad)) if indices.ndim else ()
    place = "[" + ",".join(map(str, where)) + "]" if where else ""
    raise InvalidArgumentError(f"{what}{place} = {int(indices[where])} is {end} [0, {length})")


def check_ids(xp: ArrayModule, ids: Array, segments: int) -> bool:
    """Checks that no id of a segment is too large, and returns whether none is negative. Waits as `check_indices`.

    Raises:
        InvalidArgumentError: `segment_ids[0] = 5 is out of range [0, 3)`, for the first that is.
    """
    known = known_bounds(ids)
    if known is not None and known.low >= 0 and known.high < segments:
        return True
    check_indices(xp, xp.maximum(ids, 0), segments, what="segment_ids", end="out of range")
    return bool((ids >= 0).all())


def add_rows(xp: ArrayModule, rows: Array, ids: Array, length: int) -> Array:
    """Zeros [length, d] plus `rows[k]` at row `ids[k]`; rows of equal id add up.

    In the order of the rows on the CPU; in no certain order on a GPU, so that the last bit of a sum may differ from
    run to run there. 16-bit floats add up in float32.

    Args:
        xp: The array namespace.
        rows: [n, d].
        ids: [n] integers in [0, length).
        length: Number of rows of the result.
    """
    dtype = rows.dtype
    out = xp.zeros((length, rows.shape[1]), wide(dtype))
    if rows.size == 0:
        return out.astype(dtype, copy=False)
    if xp is np:
        # Sorting and summing runs of equal ids: ten times faster than add.at, which takes rows one number at a time.
        order = np.argsort(ids, kind="stable")
        ordered = ids[order]
        starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        out[ordered[starts]] = np.add.reduceat(rows[order].astype(out.dtype, copy=False), starts, axis=0)
    else:
        atomic = np.dtype(_ATOMIC.get(out.dtype.name, out.dtype))
        if out.dtype.itemsize < 4:  # too small for an atomic addition
            total = xp.zeros(out.shape, atomic)
            xp.add.at(total, ids, rows.astype(atomic))
            return total.astype(dtype)
        rows = xp.ascontiguousarray(rows.astype(out.dtype, copy=False))
        xp.add.at(out.view(atomic), ids, rows.view(atomic))
    return out.astype(dtype, copy=False)


def check_inside(xp: ArrayModule, indices: Array, shape: tuple[int, ...], *, what: str = "shape") -> Array:
    """Checks that all `indices` [..., depth] are inside an array of `shape`; returns them as int64 [n, depth].

    Raises:
        InvalidArgumentError: `indices[0] = [3] does not index into shape [3,2]`, for the first that is not.
    """
    depth = indices.shape[-1]
    places = indices.reshape((math.prod(indices.shape[:-1]), depth)).astype(np.int64)
    known = known_bounds(indices)
    if known is not None and known.low >= 0 and all(known.high < length for length in shape[:depth]):
        return places
    outside = xp.zeros(len(places), bool)
    for axis, length in enumerate(shape[:depth]):
        outside |= (places[:, axis] < 0) | (places[:, axis] >= length)
    if bool(outside.any()):
        k = int(outside.argmax())
        at = np.unravel_index(k, indices.shape[:-1]) if indices.ndim > 1 else ()
        where = f"[{','.join(str(int(position)) for position in at)}]" if at else ""
        outside_index = ", ".join(str(int(position)) for position in places[k])
        whole = ",".join(map(str, shape))
        raise InvalidArgumentError(f"indices{where} = [{outside_index}] does not index into {what} [{whole}]")
    return places


def flat_indices(xp: ArrayModule, indices: Array, shape: tuple[int, ...]) -> Array:
    """`indices` [..., depth] along the first axes of an array of that shape, as flat ones [n] into those together.

    Raises:
        InvalidArgumentError: See `check_inside`.
    """
    depth = indices.shape[-1]
    places = check_inside(xp, indices, shape)
    flat = xp.zeros(len(places), np.int64)
    for axis, length in enumerate(shape[:depth]):
        flat = flat * length + places[:, axis]
    return flat


def change_rows(xp: ArrayModule, array: Array, ids: Array, rows: Array, how: str) -> None:
    """Changes rows of `array` in place: the new row is made of `array[ids[k]]` and `rows[k]`, for each k in turn.

    Args:
        xp: The array namespace.
        array: [length, d], written into.
        ids: [n] integers in [0, length).
        rows: [n, d], or of a shape that broadcasts to it.
        how: update, add, sub, mul, div, min or max. Integers are divided towards zero.
    """
    host = on_host(ids)
    rows = xp.broadcast_to(rows, (host.size, array.shape[1]))
    order = np.argsort(host, kind="stable")
    ordered = host[order]
    first = np.concatenate(([True], ordered[1:] != ordered[:-1]))[: host.size]
    if first.all():
        _change(xp, array, ids, rows, how)
        return
    if how == "update":
        last = order[np.append(first[1:], True)]
        _change(xp, array, xp.asarray(host[last]), rows[xp.asarray(last)], how)
        return
    starts = np.flatnonzero(first)
    turn = np.arange(host.size) - np.repeat(starts, np.diff(np.append(starts, host.size)))
    if xp is np and how != "div" and turn.max() >= _TURNS:
        ufunc = {"add": np.add, "sub": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}[how]
        _change(xp, array, ordered[starts], ufunc.reduceat(rows[order], starts, axis=0), how)
        return
    for k in range(int(turn.max()) + 1):  # every row once a turn
        now = order[turn == k]
        _change(xp, array, xp.asarray(host[now]), rows[xp.asarray(now)], how)


def _change(xp: ArrayModule, array: Array, ids: Array, rows: Array, how: str) -> None:
    """As `change_rows`, no row twice."""
    if how == "update":
        array[ids] = rows
    elif how == "add":
        array[ids] += rows
    elif how == "sub":
        array[ids] -= rows
    elif how == "mul":
        array[ids] *= rows
    elif how == "div":
        old = array[ids]
        array[ids] = _towards_zero(xp, old, rows) if old.dtype.kind in "iu" else old / rows
    else:
        array[ids] = (xp.minimum if how == "min" else xp.maximum)(array[ids], rows)


def _towards_zero(xp: ArrayModule, a: Array, b: Array) -> Array:
    quotient = a // b
    return quotient + ((quotient < 0) & (quotient * b != a)).astype(a.dtype)


def extreme_rows(xp: ArrayModule, rows: Array, ids: Array, length: int, *, largest: bool) -> Array:
    """[length, d]: for each id the largest, or else the smallest, elements of the `rows` [n, d] with it.

    For an id that no row has: the dtype's lowest, or highest, finite number.
    """
    if rows.dtype.kind in "iu":
        limits = np.iinfo(rows.dtype)
    else:
        limits = finfo(rows.dtype)
    dtype = rows.dtype
    out = xp.full((length, rows.shape[1]), limits.min if largest else limits.max, dtype)
    if rows.size == 0:
        return out
    scatter = (xp.maximum if largest else xp.minimum).at
    if xp is np:
        scatter(out, ids, rows)
        return out
    if dtype == np.int64:  # not among the dtypes of CUDA's atomics; with the sign bit flipped the order is uint64's
        keys, rows = out.view(np.uint64) ^ _SIGN, xp.ascontiguousarray(rows).view(np.uint64) ^ _SIGN
        scatter(keys, ids, rows)
        return (keys ^ _SIGN).view(dtype)
    atomic = _WIDER.get(dtype.name, dtype)
    out = out.astype(atomic, copy=False)
    scatter(out, ids, rows.astype(atomic, copy=False))
    return out.astype(dtype, copy=False)
