"""`tf.sparse`: products with dense matrices, sums and extremes of two, and functions of the values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.tensors import nest
from teletape.core.tensors.tensor import Tensor
from teletape.extras.sparse_tensors.places import places_of, positions, strides
from teletape.extras.sparse_tensors.tensor import SparseTensor, sparse
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError


def sparse_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """The product [m, n] of a sparse matrix [m, k] and a dense one [k, n], or of a dense and a sparse one.

    The dense form of the sparse matrix is never built: the product takes [values, n] numbers. Gradients reach the
    values and the dense matrix.

    Args:
        sp_a: SparseTensor, or a dense matrix.
        b: A dense matrix, or SparseTensor.
        adjoint_a: Whether sp_a is transposed and conjugated first.
        adjoint_b: Whether b is.
        name: Accepted, without effect.

    Raises:
        InvalidArgumentError: They are no matrices; the lengths of the axes that are multiplied differ.
        TypeError: Both are sparse, or both dense.

    Example:
        tf.sparse.sparse_dense_matmul(tf.sparse.from_dense([[1.0, 0.0], [0.0, 2.0]]), tf.constant([[1.0], [2.0]]))
    """
    if isinstance(b, SparseTensor):
        if isinstance(sp_a, SparseTensor):
            raise TypeError("sparse_dense_matmul: one of the two must be dense; tf.sparse.to_dense makes it so")
        product = sparse_dense_matmul(b, sp_a, not adjoint_b, not adjoint_a)
        return call(ops.adjoint, (product,))
    matrix = sparse(sp_a)
    dense = to.like(b, matrix.values)
    for shape in (matrix.shape, dense.shape):
        if len(shape) != 2:
            raise InvalidArgumentError(f"Shape {shape} must have rank 2")
    dense = call(ops.adjoint, (dense,)) if adjoint_b else dense
    (m, k), values = matrix.shape.as_list(), matrix.values
    rows, columns = matrix.indices[:, 0], matrix.indices[:, 1]
    if adjoint_a:
        m, k, rows, columns = k, m, columns, rows
        values = call(ops.conj, (values,)) if values.dtype.is_complex else values
    if dense.shape.as_list()[0] != k:
        raise InvalidArgumentError(
            f"Dimensions {k} and {dense.shape.as_list()[0]} are not compatible: [{m}, {k}] @ {dense.shape}"
        )
    factors = call(ops.reshape, (dense,), shape=tuple(dense.shape.as_list()))  # so that its gradient is dense
    factors = call(ops.gather, (factors, columns))
    products = call(ops.mul, (call(ops.reshape, (values,), shape=(*values.shape.as_list(), 1)), factors))
    return call(ops.unsorted_segment_sum, (products, rows), num_segments=m)


def add(a: Any, b: Any, threshold: to.NumberInput = 0) -> Any:
    """The sum of two tensors of which one or both are sparse; sparse if both are.

    Args:
        a: SparseTensor or a tensor.
        b: The same.
        threshold: For two sparse tensors: sums with a smaller magnitude are left out. Above 0 the sums are read.

    Raises:
        TypeError: Neither is sparse.
        ValueError: The shapes differ.

    Example:
        tf.sparse.add(tf.sparse.from_dense([[1.0, 0.0]]), tf.sparse.from_dense([[2.0, 3.0]]))
    """
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        united, (first, second) = _united(a, b)
        total = united.rebuilt(call(ops.add, (first, second)))
        least = to.real_number(threshold)
        if least <= 0:
            return total
        alone = np.setxor1d(a.places() @ strides(a.shape.as_list()), b.places() @ strides(a.shape.as_list()))
        large = np.abs(np.asarray(total.values.numpy())) >= least
        retained = np.flatnonzero(large | np.isin(total.places() @ strides(a.shape.as_list()), alone))
        return SparseTensor(
            constant(total.places()[retained]), call(ops.gather, (total.values, constant(retained))), a.shape
        )
    if isinstance(b, SparseTensor):
        a, b = b, a
    matrix = sparse(a)
    dense = to.like(b, matrix.values)
    if dense.shape.as_list() != matrix.shape.as_list():
        raise ValueError(f"the shapes {matrix.shape} and {dense.shape} of a sum with a dense tensor must be equal")
    return call(ops.tensor_scatter_nd_add, (dense, matrix.indices, matrix.values))


def maximum(sp_a: SparseTensor, sp_b: SparseTensor, name: str | None = None) -> SparseTensor:
    """The larger element of two sparse tensors, at the indices of both; a missing value is 0.

    Raises:
        TypeError: One is not sparse, or the dtypes differ.
        InvalidArgumentError: The shapes differ.

    Example:
        tf.sparse.maximum(tf.sparse.from_dense([1.0, 0.0]), tf.sparse.from_dense([2.0, 3.0]))
    """
    united, pair = _united(sparse(sp_a), sparse(sp_b))
    return united.rebuilt(call(ops.maximum, pair))


def minimum(sp_a: SparseTensor, sp_b: SparseTensor, name: str | None = None) -> SparseTensor:
    """The smaller element of two sparse tensors; otherwise like maximum.

    Example:
        tf.sparse.minimum(tf.sparse.from_dense([1.0, 0.0]), tf.sparse.from_dense([2.0, 3.0]))
    """
    united, pair = _united(sparse(sp_a), sparse(sp_b))
    return united.rebuilt(call(ops.minimum, pair))


def _united(a: SparseTensor, b: SparseTensor) -> tuple[SparseTensor, tuple[Tensor, Tensor]]:
    """Returns a sparse tensor at the indices of both (its values are those of `a`), and the values of each there."""
    lengths = a.shape.as_list()
    if lengths != b.shape.as_list():
        raise InvalidArgumentError(f"Operands' shapes do not match: {a.shape} and {b.shape} must be equal")
    if a.dtype is not b.dtype:
        raise TypeError(f"the dtypes {a.dtype.name} and {b.dtype.name} must be the same")
    numbers = [value.places() @ strides(lengths) for value in (a, b)]
    union = np.unique(np.concatenate(numbers))
    first, second = (
        call(ops.unsorted_segment_sum, (value.values, constant(np.searchsorted(union, own))), num_segments=union.size)
        for value, own in zip((a, b), numbers, strict=True)
    )
    return SparseTensor(places_of(constant(union), lengths), first, lengths), (first, second)


def softmax(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """The softmax of the values of each row, along the last axis; missing values count as minus infinity.

    Raises:
        ValueError: The sparse tensor has fewer than two axes.

    Example:
        tf.sparse.softmax(tf.sparse.from_dense([[1.0, 1.0, 0.0]]))
    """
    value = sparse(sp_input)
    lengths = value.shape.as_list()
    if len(lengths) < 2:
        raise ValueError(f"Shape {value.shape} must have rank at least 2")
    rows = positions(value.indices[:, :-1], lengths[:-1])
    count = int(np.prod(lengths[:-1], dtype=np.int64))
    largest = call(ops.unsorted_segment_max, (call(ops.stop_gradient, (value.values,)), rows), num_segments=count)
    powers = call(ops.exp, (call(ops.sub, (value.values, call(ops.gather, (largest, rows)))),))
    sums = call(ops.unsorted_segment_sum, (powers, rows), num_segments=count)
    return value.rebuilt(call(ops.div, (powers, call(ops.gather, (sums, rows)))))


def map_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> SparseTensor:
    """Applies `op` to the values of sparse tensors among its arguments, which must have the same indices.

    Raises:
        ValueError: None of the arguments is sparse, or the result has another number of values.
        InvalidArgumentError: Their indices differ.

    Example:
        tf.sparse.map_values(tf.square, tf.sparse.from_dense([[3.0, 0.0]]))
    """
    tensors = [leaf for leaf in nest.flatten([args, kwargs]) if isinstance(leaf, SparseTensor)]
    if not tensors:
        raise ValueError("No SparseTensor in argument list of map_values")
    first = tensors[0]
    for other in tensors[1:]:
        if other.shape.as_list() != first.shape.as_list() or not np.array_equal(other.places(), first.places()):
            raise InvalidArgumentError("map_values: the sparse tensors must have values at the same places")
    plain = nest.map_structure(lambda leaf: leaf.values if isinstance(leaf, SparseTensor) else leaf, [args, kwargs])
    return first.with_values(convert_to_tensor(op(*plain[0], **plain[1])))
