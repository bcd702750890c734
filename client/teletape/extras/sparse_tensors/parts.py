"""`tf.sparse`: slices, splits and joins of sparse tensors, and rows without a value. The indices are read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.tensors.indexed_slices import IndexedSlices
from teletape.core.tensors.tensor import Tensor
from teletape.extras.sparse_tensors.conversions import reorder
from teletape.extras.sparse_tensors.places import chosen
from teletape.extras.sparse_tensors.tensor import SparseTensor, sparse
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError


def slice(sp_input: SparseTensor, start: to.IntsInput, size: to.IntsInput, name: str | None = None) -> SparseTensor:
    """The part that begins at `start` and has at most `size` elements along each axis.

    Example:
        tf.sparse.slice(tf.sparse.from_dense([1.0, 2.0, 3.0]), [1], [2])
    """
    value = sparse(sp_input)
    first, count = np.array(to.ints(start, "start")), np.array(to.ints(size, "size"))
    lengths = np.array(value.shape.as_list())
    if first.shape != lengths.shape or count.shape != lengths.shape:
        raise InvalidArgumentError(f"start and size: {lengths.size} numbers each, found {first.size} and {count.size}")
    part = np.maximum(0, np.minimum(count, lengths - first))
    places = value.places() - first
    inside = np.flatnonzero(((places >= 0) & (places < part)).all(axis=1))
    return chosen(value, inside, places[inside], part.tolist())


def split(
    sp_input: SparseTensor, num_split: to.IntInput, axis: to.IntInput, name: str | None = None
) -> list[SparseTensor]:
    """Cuts a sparse tensor along an axis; the first parts are longer by 1 if the axis cannot be divided evenly.

    Raises:
        InvalidArgumentError: No such axis, or a number of parts outside [1, length].

    Example:
        tf.sparse.split(tf.sparse.from_dense([1.0, 2.0]), num_split=2, axis=0)
    """
    value, count, at = sparse(sp_input), to.whole(num_split), to.whole(axis)
    lengths = value.shape.as_list()
    if not -len(lengths) <= at < len(lengths):
        raise InvalidArgumentError(f"axis {at} is out of range for a tensor of rank {len(lengths)}")
    at %= len(lengths)
    if not 1 <= count <= lengths[at]:
        raise InvalidArgumentError(f"num_split must be in [1, {lengths[at]}], found {count}")
    parts, begin = [], 0
    for number in range(count):
        length = lengths[at] // count + (number < lengths[at] % count)
        start = [begin if axis == at else 0 for axis in range(len(lengths))]
        parts.append(slice(value, start, [length if axis == at else n for axis, n in enumerate(lengths)]))
        begin += length
    return parts


def concat(
    axis: to.IntInput,
    sp_inputs: Sequence[SparseTensor],
    expand_nonconcat_dims: bool = False,
    name: str | None = None,
) -> SparseTensor:
    """Joins sparse tensors along an axis, in row-major order.

    Args:
        axis: The axis.
        sp_inputs: Of equal rank and dtype.
        expand_nonconcat_dims: Whether the other axes are as long as the longest; otherwise they must be equal.
        name: Accepted, without effect.

    Raises:
        InvalidArgumentError: No such axis; ranks or other axes that differ.

    Example:
        tf.sparse.concat(axis=1, sp_inputs=[tf.sparse.from_dense([[1.0, 0.0]]), tf.sparse.from_dense([[2.0]])])
    """
    values, at = [sparse(value) for value in sp_inputs], to.whole(axis)
    if not values:
        raise InvalidArgumentError("concat: at least one sparse tensor")
    if len(values) == 1:
        return values[0]
    shapes = [value.shape.as_list() for value in values]
    rank = len(shapes[0])
    if any(len(shape) != rank for shape in shapes) or not -rank <= at < rank:
        raise InvalidArgumentError(f"concat along axis {at}: ranks must be equal and have it, found {shapes}")
    at %= rank
    lengths = [max(shape[i] for shape in shapes) for i in range(rank)]
    if not expand_nonconcat_dims and any(shape[i] != lengths[i] for shape in shapes for i in range(rank) if i != at):
        raise InvalidArgumentError(f"concat along axis {at}: all other axes must be equal, found {shapes}")
    lengths[at] = sum(shape[at] for shape in shapes)
    shifts = np.cumsum([0] + [shape[at] for shape in shapes])
    unit = (np.arange(rank) == at).astype(np.int64)
    moved = [
        call(ops.add, (value.indices, constant(unit * shift))) for value, shift in zip(values, shifts, strict=False)
    ]
    whole = SparseTensor(
        call(ops.concat, moved, axis=0), call(ops.concat, [value.values for value in values], axis=0), lengths
    )
    return whole if at == 0 else reorder(whole)


def retain(sp_input: SparseTensor, to_retain: to.TensorInput) -> SparseTensor:
    """Keeps the values for which `to_retain` is true; the shape stays.

    Raises:
        ValueError: There is not one bool for each value.

    Example:
        tf.sparse.retain(tf.sparse.from_dense([1.0, 2.0]), [True, False])
    """
    value, retained = sparse(sp_input), np.asarray(convert_to_tensor(to_retain).numpy(), bool)
    if retained.shape != (value.places().shape[0],):
        raise ValueError(
            f"to_retain: one bool for each of the {value.places().shape[0]} values, found {retained.shape}"
        )
    values = call(ops.gather, (value.values, constant(np.flatnonzero(retained))))  # a gradient of it is IndexedSlices
    return SparseTensor(constant(value.places()[retained]), values, value.shape.as_list())


def mask(a: IndexedSlices, mask_indices: to.TensorInput, name: str | None = None) -> IndexedSlices:
    """Returns IndexedSlices without the rows of these indices.

    Example:
        tf.sparse.mask(tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([0, 1])), [1])
    """
    indices = np.asarray(a.indices.numpy())
    retained = constant(np.flatnonzero(~np.isin(indices, np.asarray(convert_to_tensor(mask_indices).numpy()))))
    return IndexedSlices(call(ops.gather, (a.values, retained)), call(ops.gather, (a.indices, retained)), a.dense_shape)


def fill_empty_rows(
    sp_input: SparseTensor, default_value: to.TensorInput, name: str | None = None
) -> tuple[SparseTensor, Tensor]:
    """Adds a value at column 0 of each empty row; also returns whether each row was empty.

    Args:
        sp_input: A sparse tensor with rows.
        default_value: A number.
        name: Accepted, without effect.

    Example:
        tf.sparse.fill_empty_rows(tf.sparse.from_dense([[1.0], [0.0]]), default_value=9.0)
    """
    value = sparse(sp_input)
    lengths, places = value.shape.as_list(), value.places()
    empty = np.setdiff1d(np.arange(lengths[0]), places[:, 0])
    added = np.zeros([empty.size, len(lengths)], np.int64)
    added[:, 0] = empty
    filler = call(ops.broadcast_to, (to.like(default_value, value.values),), shape=(empty.size,))
    everywhere = np.concatenate([places, added])
    order = np.argsort(everywhere[:, 0], kind="stable")
    values = call(ops.gather, (call(ops.concat, (value.values, filler), axis=0), constant(order)))
    missing = np.zeros(lengths[0], bool)
    missing[empty] = True
    return SparseTensor(constant(everywhere[order]), values, lengths), constant(missing)
