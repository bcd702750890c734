"""Assignment to a variable or a part of it: the modes, and what each needs of its value and its indices.

    set, add, sub                 the whole; no indices
    scatter_update, _add, …       rows `indices` along axis 0; one value of each, or one for all
    scatter_nd_update, _add, …    elements or slices at `indices` [..., depth], which count along the first axes
    slice                         the part that `indices` [rank, 3] cut out: start, step, count of each axis

Only the part is sent and computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.arrays.scatter import change_rows, check_indices, flat_indices
from teletape_engine.catalogue.attributes import Slices
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import INDEX, INTEGER, KERNEL_NAMES, NUMERIC, Shape, Spec, broadcast, shape_text
from teletape_engine.suggestions import with_nearest

WHOLE: Final = ("set", "add", "sub")
ROWS: Final = tuple(f"scatter_{how}" for how in ("update", "add", "sub", "mul", "div", "min", "max"))
PLACES: Final = tuple(f"scatter_nd_{how}" for how in ("update", "add", "sub", "min", "max"))
MODES: Final = (*WHOLE, *ROWS, *PLACES, "slice")


def how_of(mode: str) -> str:
    """What a mode does to each element: update, add, sub, mul, div, min, max."""
    return "update" if mode == "slice" else mode.rsplit("_", 1)[1]


def check_scatter(variable: Spec, value: Spec, indices: Spec | None, mode: str) -> None:
    """Checks that a mode can take this value and these indices for a variable of that spec.

    Raises:
        InvalidArgumentError: The mode is unknown or needs indices; another dtype; shapes that do not fit.
    """
    if mode not in MODES:
        raise InvalidArgumentError(
            with_nearest(f"assign: unknown mode {mode!r}; it must be one of {', '.join(MODES)}", mode, MODES)
        )
    if mode in WHOLE:
        raise InvalidArgumentError(f"assign: mode {mode!r} changes the whole and takes no indices")
    if indices is None:
        raise InvalidArgumentError(f"assign: mode {mode!r} needs indices")
    if indices.dtype not in INDEX:
        raise InvalidArgumentError(
            f"Value for attr 'Tindices' of {indices.dtype.name} is not in the list of allowed values: int32, int64"
        )
    if value.dtype is not variable.dtype:
        raise InvalidArgumentError(f"assign: a variable of dtype {variable.dtype.name}, found {value.dtype.name}")
    if how_of(mode) != "update" and variable.dtype not in NUMERIC:
        raise InvalidArgumentError(f"assign: mode {mode!r} does not take dtype {KERNEL_NAMES[variable.dtype]}")
    {"slice": _check_slice}.get(mode, _check_updates if mode in PLACES else _check_rows)(variable, value, indices)


def _check_rows(variable: Spec, value: Spec, indices: Spec) -> None:
    if value.shape == ():
        if variable.ndim:
            return
    elif value.shape[: indices.ndim] != indices.shape:
        raise InvalidArgumentError(
            f"The shape of indices ({shape_text(indices.shape)}) must be a prefix of the shape of updates "
            f"({shape_text(value.shape)})"
        )
    if not variable.ndim or value.shape != (*indices.shape, *variable.shape[1:]):
        raise InvalidArgumentError(
            "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got updates.shape "
            f"{shape_text(value.shape)}, indices.shape {shape_text(indices.shape)}, params.shape "
            f"{shape_text(variable.shape)}"
        )


def _check_updates(variable: Spec, value: Spec, indices: Spec) -> None:
    depth = indices.shape[-1] if indices.ndim else 0
    if not indices.ndim or depth > variable.ndim:
        raise InvalidArgumentError(
            f"indices of shape {shape_text(indices.shape)}: the last axis counts along the first axes of a variable of "
            f"shape {shape_text(variable.shape)}, so it has between 0 and {variable.ndim} entries"
        )
    expected = (*indices.shape[:-1], *variable.shape[depth:])
    if value.shape != expected:
        raise InvalidArgumentError(
            f"updates of shape {shape_text(value.shape)}: indices of shape {shape_text(indices.shape)} into a variable "
            f"of shape {shape_text(variable.shape)} take updates of shape {shape_text(expected)}"
        )


def _check_slice(variable: Spec, value: Spec, indices: Spec) -> None:
    if indices.shape != (variable.ndim, 3):
        raise InvalidArgumentError(
            f"assign: a slice of a variable of rank {variable.ndim} has indices of shape [{variable.ndim}, 3] (start, "
            f"step, count), found {shape_text(indices.shape)}"
        )
    if value.ndim > variable.ndim:
        raise InvalidArgumentError(
            f"assign: a value of rank {value.ndim} for a slice of a variable of rank {variable.ndim}"
        )


def check_positions(xp: ArrayModule, indices: Array, shape: Shape, mode: str) -> Array:
    """The rows, or the elements and slices counted flat, that `indices` name in a variable of `shape`.

    Raises:
        InvalidArgumentError: One is outside of it; it is in the message.
    """
    if mode in PLACES:
        return flat_indices(xp, indices, shape)
    if mode in ROWS:
        check_indices(xp, indices, shape[0])
    return indices


def change_of(xp: ArrayModule, shape: Shape, value: Any, indices: Array, mode: str) -> Callable[[Any], None]:
    """A function that changes an array of `shape` in place; everything is checked before anything is written.

    Raises:
        InvalidArgumentError: An index outside of the array; an integer divided by zero.
    """
    how = how_of(mode)
    if mode == "slice":
        part = check_cut(shape, value.shape, np.asarray(indices).tolist())
        return lambda array: array.__setitem__(part, value)
    if how == "div" and value.dtype in INTEGER and not bool((value != 0).all()):
        raise InvalidArgumentError("updates must not contain 0")
    depth = indices.shape[-1] if mode in PLACES else 1
    length, width = math.prod(shape[:depth]), math.prod(shape[depth:])
    ids = check_positions(xp, indices, shape, mode).reshape(-1)
    rows = value if value.shape == () else value.reshape((-1, width))
    return lambda array: change_rows(xp, array.reshape((length, width)), ids, rows, how)


def check_cut(shape: Shape, value: Shape, cut: list[list[int]]) -> tuple[slice, ...]:
    """The slices that `cut` (start, step, count for each axis) means, into which `value` broadcasts.

    Raises:
        InvalidArgumentError: It lies outside, or the value does not fit.
    """
    slices = []
    for axis, ((start, step, count), length) in enumerate(zip(cut, shape, strict=True)):
        last = start + step * (count - 1)
        if count < 0 or (count and not (0 <= start < length and 0 <= last < length)) or (count > 1 and not step):
            raise InvalidArgumentError(
                f"assign: axis {axis} has length {length}; {count} entries from {start} by {step} lie outside of it"
            )
        end = start + step * count
        slices.append(slice(start, None if end < 0 else end, step or 1) if count else slice(0, 0))
    check_broadcast(value, tuple(count for _, _, count in cut))
    return tuple(slices)


def check_broadcast(value: Shape, part: Shape) -> None:
    """Checks that a value broadcasts to the part that it is assigned to.

    Raises:
        InvalidArgumentError: It does not; the message has both shapes.
    """
    try:
        fits = broadcast(value, part) == part
    except InvalidArgumentError:
        fits = False
    if not fits:
        raise InvalidArgumentError(
            f"Cannot broadcast input shape {shape_text(value)} into final shape {shape_text(part)}"
        )


def cut_of(shape: Shape, index: Slices) -> list[tuple[int, int, int]]:
    """Start, step and count along each axis of what `x[index]` takes of an x of `shape`; `index` as strided_slice's."""
    used = sum(part is not None and part != "..." for part in index)
    cut: list[tuple[int, int, int]] = []
    for part in index:
        if isinstance(part, str):
            cut += [(0, 1, n) for n in shape[len(cut) : len(cut) + len(shape) - used]]
        elif isinstance(part, int):
            cut.append((part % shape[len(cut)], 1, 1))
        elif part is not None:
            positions = range(*slice(*part).indices(shape[len(cut)]))
            cut.append((positions.start, positions.step, len(positions)))
    return cut + [(0, 1, n) for n in shape[len(cut) :]]
