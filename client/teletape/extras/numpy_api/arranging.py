"""Functions that rearrange elements: join, cut, turn, choose, sort.

Long because NumPy has this many of these functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from teletape._generated import sorting as ordered
from teletape._generated.elementwise import arithmetic, logic
from teletape._generated.shapes import cast, index, rearrange
from teletape._generated.shapes import shape as shapes
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import constant
from teletape.core.errors import InvalidArgumentError
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.extras.numpy_api import elementwise
from teletape.extras.numpy_api.promotion import array, promoted
from teletape.tf.ops.arrays import create, paddings, sorting
from teletape.tf.ops.arrays import rearrange as tf_arrays
from teletape.tf.ops.linalg import diagonals

_reshape, _transpose, _cast, _reverse = shapes.reshape, shapes.transpose, cast.cast, rearrange.reverse
_expand, _gather = shapes.expand_dims, index.gather


# -------------------------------------------------------------------------------------------------------------- shapes
def shape(a: Any) -> tuple[int, ...]:
    """Returns the shape."""
    return tuple(array(a).shape.as_list())


def ndim(a: Any) -> int:
    """Returns the number of axes."""
    return len(shape(a))


def reshape(a: Any, newshape: Any, order: str = "C") -> Tensor:
    """Returns the elements in another shape.

    Args:
        a: The array.
        newshape: The shape; -1: the size that follows from the others.
        order: "C": the last axis changes fastest; "F": the first.

    Raises:
        ValueError: Another order.
    """
    a = array(a)
    sizes = [newshape] if isinstance(newshape, int | np.integer) else newshape
    if order == "F":
        return _transpose(_reshape(_transpose(a), list(sizes)[::-1]))
    if order not in ("C", "A"):
        raise ValueError(f"Unsupported order argument {order}. Only C, F and A are supported.")
    return _reshape(a, sizes)


def ravel(a: Any) -> Tensor:
    """Returns the elements along one axis."""
    return _reshape(array(a), [-1])


def flatten(a: Any, order: str = "C") -> Tensor:
    """Returns the elements along one axis, in one of `reshape`'s orders."""
    return reshape(a, [-1], order)


def expand_dims(a: Any, axis: Any) -> Tensor:
    """Returns an array with a new axis of size 1 at `axis`."""
    return _expand(array(a), axis)


def squeeze(a: Any, axis: Any = None) -> Tensor:
    """Returns an array without its axes of size 1, or without some of these."""
    return shapes.squeeze(array(a), axis)


def transpose(a: Any, axes: Any = None) -> Tensor:
    """Returns an array with its axes in another order; None: in reverse order."""
    return _transpose(array(a), axes)


def swapaxes(a: Any, axis1: int, axis2: int) -> Tensor:
    """Returns an array with two axes swapped."""
    a = array(a)
    order = list(range(len(a.shape)))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return _transpose(a, order)


def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    """Returns an array with axes moved to other places; the others keep their order."""
    a = array(a)
    count = len(a.shape)
    sources, targets = (
        [to.axis_within(at, count) for at in np.atleast_1d(np.asarray(axes)).tolist()] for axes in (source, destination)
    )
    order = [axis for axis in range(count) if axis not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return _transpose(a, order)


def broadcast_to(array: Any, shape: Any) -> Tensor:
    """Returns an array with its elements repeated to a shape."""
    return shapes.broadcast_to(_tensor(array), shape)


def broadcast_arrays(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Returns arrays in the shape that all of them broadcast to."""
    tensors = [_tensor(arg) for arg in args]
    sizes = np.broadcast_shapes(*[tuple(tensor.shape.as_list()) for tensor in tensors])
    return [shapes.broadcast_to(tensor, sizes) for tensor in tensors]


def _tensor(value: Any) -> Tensor:
    return array(value)


def atleast_1d(*arys: Any) -> Any:
    """Returns arrays with one axis at least; one array alone, several as a list."""
    return _each(arys, lambda a: _reshape(a, [1]) if not len(a.shape) else a)


def atleast_2d(*arys: Any) -> Any:
    """Returns arrays with two axes at least; new ones come first."""

    def wide(a: Tensor) -> Tensor:
        return a if len(a.shape) > 1 else _reshape(a, [1, -1])

    return _each(arys, wide)


def atleast_3d(*arys: Any) -> Any:
    """Returns arrays with three axes at least: [n] becomes [1, n, 1], [m, n] becomes [m, n, 1]."""

    def deep(a: Tensor) -> Tensor:
        count = len(a.shape)
        return a if count > 2 else _expand(a, 2) if count == 2 else _reshape(a, [1, -1, 1])

    return _each(arys, deep)


def _each(arys: Sequence[Any], function: Any) -> Any:
    results = [function(array(a)) for a in arys]
    return results[0] if len(results) == 1 else results


# ---------------------------------------------------------------------------------------------------- joining, cutting
def concatenate(arys: Any, axis: int | None = 0) -> Tensor:
    """Returns arrays one after the other along an axis; None: flat."""
    tensors = promoted(*arys)
    if axis is None:
        return tf_arrays.concat([_reshape(tensor, [-1]) for tensor in tensors], 0)
    return tf_arrays.concat(tensors, axis)


def append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    """Returns an array with values after its elements along an axis; None: both flat."""
    return concatenate([arr, values], axis)


def stack(arrays: Any, axis: int = 0) -> Tensor:
    """Returns arrays along a new axis."""
    return tf_arrays.stack(promoted(*arrays), axis)


def vstack(tup: Any) -> Tensor:
    """Returns arrays one under the other; those of one axis are rows."""
    return concatenate([atleast_2d(a) for a in tup], 0)


def hstack(tup: Any) -> Tensor:
    """Returns arrays side by side: along the second axis, or the only one."""
    tensors = [atleast_1d(a) for a in tup]
    return concatenate(tensors, 0 if len(tensors[0].shape) == 1 else 1)


def dstack(tup: Any) -> Tensor:
    """Returns arrays along the third axis."""
    return concatenate([atleast_3d(a) for a in tup], 2)


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Returns parts of an array along an axis.

    Args:
        ary: The array.
        indices_or_sections: The number of equal parts, or the beginnings of the parts after the first.
        axis: The axis.
    """
    a = array(ary)
    if isinstance(indices_or_sections, int | np.integer):
        return tf_arrays.split(a, int(indices_or_sections), axis)
    length = a.shape[axis]
    borders = [0, *[min(at if at >= 0 else at + length, length) for at in map(int, indices_or_sections)], length]
    return tf_arrays.split(a, [max(borders[i + 1] - borders[i], 0) for i in range(len(borders) - 1)], axis)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Returns parts of an array along the first axis."""
    return split(ary, indices_or_sections, 0)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Returns parts of an array along the second axis, or the only one."""
    return split(ary, indices_or_sections, 0 if ndim(ary) == 1 else 1)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Returns parts of an array along the third axis."""
    return split(ary, indices_or_sections, 2)


def tile(a: Any, reps: Any) -> Tensor:
    """Returns an array repeated as a whole along each axis."""
    a = array(a)
    counts = np.atleast_1d(np.asarray(reps)).tolist()
    missing = len(counts) - len(a.shape)
    if missing > 0:
        a = _reshape(a, [1] * missing + a.shape.as_list())
    return shapes.tile(a, [1] * -min(missing, 0) + counts)


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Returns each element repeated along an axis; None: of the flat array."""
    return sorting.repeat(array(a), repeats, axis)


def pad(array: Any, pad_width: Any, mode: str, **kwargs: Any) -> Tensor:
    """Returns an array with elements before and after.

    Args:
        array: The array.
        pad_width: (before, after) for each axis, or for all.
        mode: "constant", "reflect" or "symmetric".
        **kwargs: `constant_values`, of the mode "constant".

    Raises:
        ValueError: Another mode.
    """
    a = _tensor(array)
    if mode.lower() not in ("constant", "reflect", "symmetric"):
        raise ValueError(f"Unsupported padding mode: {mode}")
    widths = np.broadcast_to(np.asarray(pad_width), (len(a.shape), 2)).tolist()
    return paddings.pad(a, widths, mode, constant_values=kwargs.get("constant_values", 0))


def meshgrid(*xi: Any, **kwargs: Any) -> list[Tensor]:
    """Returns the coordinates of the points of a grid.

    Args:
        *xi: The coordinates along each axis.
        **kwargs: `indexing`: "xy" or "ij".

    Raises:
        ValueError: `sparse=True` or `copy=False`, which TensorFlow refuses too.
    """
    if kwargs.get("sparse") or not kwargs.get("copy", True):
        raise ValueError("meshgrid supports neither sparse=True nor copy=False")
    return create.meshgrid(*[array(x) for x in xi], indexing=kwargs.get("indexing", "xy"))


# --------------------------------------------------------------------------------------------------------------- turns
def flip(m: Any, axis: Any = None) -> Tensor:
    """Returns the elements in reverse order along axes; None: along all."""
    m = array(m)
    axes = list(range(len(m.shape))) if axis is None else np.atleast_1d(np.asarray(axis)).tolist()
    return _reverse(m, axes)


def flipud(m: Any) -> Tensor:
    """Returns the elements in reverse order along the first axis."""
    return flip(m, 0)


def fliplr(m: Any) -> Tensor:
    """Returns the elements in reverse order along the second axis."""
    return flip(m, 1)


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    """Returns an array turned `k` times by 90 degrees in the plane of two axes."""
    first, second = axes
    match k % 4:
        case 0:
            return array(m)
        case 1:
            return swapaxes(flip(m, second), first, second)
        case 2:
            return flip(m, [first, second])
    return flip(swapaxes(m, first, second), second)


def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    """Returns the elements moved along axes, those past the end to the beginning; None: of the flat array."""
    a = array(a)
    if axis is not None:
        return rearrange.roll(a, shift, axis)
    return _reshape(rearrange.roll(_reshape(a, [-1]), shift, 0), a.shape)


# ------------------------------------------------------------------------------------------------------------- choices
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Returns elements of `x` where the condition is true, else of `y`; without `x` and `y` the result of `nonzero`.

    Raises:
        ValueError: Only one of `x` and `y`.
    """
    if (x is None) != (y is None):
        raise ValueError("Both x and y must be specified, or neither")
    if x is None:
        return nonzero(condition)
    a, b = promoted(x, y)
    return tf_arrays.where(array(condition, bool), a, b)


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    """Returns each element from the first choice whose condition is true there.

    Raises:
        ValueError: There are not as many conditions as choices.
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(f"{len(condlist)} conditions and {len(choicelist)} choices: as many of both are needed")
    *choices, result = promoted(*choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        result = tf_arrays.where(array(condition, bool), choice, result)
    return result


def nonzero(a: Any) -> list[Tensor]:
    """Returns the indices of the elements that are not zero, an array for each axis."""
    a = array(a, bool)
    positions = tf_arrays.where(a if len(a.shape) else _reshape(a, [1]))
    return tf_arrays.unstack(positions, len(a.shape) or 1, axis=1)


def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "clip") -> Tensor:
    """Returns the elements at indices along an axis; None: of the flat array.

    Args:
        a: The array.
        indices: The positions.
        axis: The axis.
        out: Not supported, as in TensorFlow.
        mode: The treatment of indices out of range: "clip" or "wrap"; "raise" is refused, as in TensorFlow.

    Raises:
        ValueError: Another mode.
    """
    if mode not in ("raise", "clip", "wrap"):
        raise ValueError(f"Invalid mode '{mode}' for take")
    if mode == "raise":
        raise InvalidArgumentError("take does not support mode='raise'")
    a, positions = array(a), array(indices)
    if axis is None:
        a, axis = _reshape(a, [-1]), 0
    length = array(a.shape[axis], positions.dtype)
    if mode == "wrap":
        positions = arithmetic.floormod(positions, length)
    else:
        positions = arithmetic.clip_by_value(positions, array(0, positions.dtype), length - array(1, positions.dtype))
    return _gather(a, positions, axis=axis)


def take_along_axis(arr: Any, indices: Any, axis: int | None) -> Tensor:
    """Returns elements along an axis, at separate indices for each position along the other axes."""
    a, positions = array(arr), array(indices)
    if axis is None:
        return take_along_axis(_reshape(a, [-1]), positions, 0)
    count = len(a.shape)
    at = to.axis_within(axis, count)
    length = array(a.shape[at], positions.dtype)
    positions = tf_arrays.where(logic.less(positions, array(0, positions.dtype)), positions + length, positions)
    common = [
        here if i == at else max(here, there)
        for i, (here, there) in enumerate(zip(positions.shape.as_list(), a.shape.as_list(), strict=True))
    ]
    positions = shapes.broadcast_to(positions, common)
    a = shapes.broadcast_to(a, [a.shape[at] if i == at else size for i, size in enumerate(common)])
    last = [i for i in range(count) if i != at] + [at]
    picked = _gather(_transpose(a, last), _transpose(positions, last), batch_dims=count - 1, axis=count - 1)
    back = sorted(range(count), key=last.__getitem__)
    return _transpose(picked, back)


def compress(condition: Any, a: Any, axis: int | None = None) -> Tensor:
    """Returns the slices of an array along an axis for which a condition is true; None: of the flat array."""
    a, flags = array(a), array(condition, bool).numpy()
    if axis is None:
        a, axis = _reshape(a, [-1]), 0
    return _gather(a, np.flatnonzero(flags), axis=axis)


def sort(a: Any, axis: int | None = -1, kind: str = "quicksort", order: Any = None) -> Tensor:
    """Returns the elements in rising order along an axis; None: of the flat array.

    Args:
        a: The array.
        axis: The axis.
        kind: "quicksort" or "stable", both of which keep the order of equal elements.
        order: Not supported, as in TensorFlow.

    Raises:
        ValueError: Another kind, or an order.
    """
    flat = _sortable(a, axis, kind, order)
    return ordered.sort(flat, -1 if axis is None else axis)


def argsort(a: Any, axis: int | None = -1, kind: str = "quicksort", order: Any = None) -> Tensor:
    """Returns the positions of the elements in rising order; the arguments are those of `sort`."""
    flat = _sortable(a, axis, kind, order)
    return _cast(ordered.argsort(flat, -1 if axis is None else axis, stable=True), dtypes.int64)


def _sortable(a: Any, axis: int | None, kind: str, order: Any) -> Tensor:
    if kind not in ("quicksort", "stable"):
        raise ValueError(f"Only 'quicksort' and 'stable' are supported as kinds of sorting: got {kind!r}")
    if order is not None:
        raise ValueError("'order' argument to sort is not supported.")
    a = array(a)
    return _reshape(a, [-1]) if axis is None else a


def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    """Returns the differences of neighbours along an axis, `n` times over."""
    values = array(a)
    length = values.shape[axis]
    for _ in range(n):
        after, before = (
            tf_arrays.split(values, sizes, axis)[which] for sizes, which in (([1, length - 1], 1), ([length - 1, 1], 0))
        )
        values = (elementwise.not_equal if values.dtype is dtypes.bool else elementwise.subtract)(after, before)
        length -= 1
    return values


# ----------------------------------------------------------------------------------------------------------- diagonals
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Returns a diagonal of the matrices in two axes, along a new last axis."""
    a = moveaxis(array(a), [axis1, axis2], [-2, -1])
    return diagonals.diag_part(a, k=offset)


def diag(v: Any, k: int = 0) -> Tensor:
    """Returns a matrix with a diagonal, or the diagonal of a matrix.

    Raises:
        ValueError: More than two axes.
    """
    v = array(v)
    if len(v.shape) not in (1, 2):
        raise ValueError("Input must be 1- or 2-d.")
    return diagonal(v, k) if len(v.shape) == 2 else diagonals.diag(v, k=k)


def diagflat(v: Any, k: int = 0) -> Tensor:
    """Returns a matrix with the flat elements on a diagonal."""
    return diag(ravel(v), k)


def tril(m: Any, k: int = 0) -> Tensor:
    """Returns matrices with zeros above the diagonal `k`."""
    return _triangle(m, np.tri, k, under=True)


def triu(m: Any, k: int = 0) -> Tensor:
    """Returns matrices with zeros under the diagonal `k`."""
    return _triangle(m, np.tri, k - 1, under=False)


def _triangle(m: Any, pattern: Any, k: int, *, under: bool) -> Tensor:
    m = array(m)
    if len(m.shape) < 2:
        raise ValueError("Argument to triangle must have rank at least 2")
    flags = constant(pattern(m.shape[-2], m.shape[-1], k, bool) == under)
    return tf_arrays.where(flags, m, array(0, m.dtype) if m.dtype is not dtypes.bool else array(False))
