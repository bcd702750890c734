"""`tf.linalg` functions that are more than one call of an op: tensordot, slogdet and norms."""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple

import numpy as np

from teletape._generated.shapes.shape import reshape, squeeze, transpose
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import CATALOGUE


# --------------------------------------------------------------------------------------------------------- tensordot
def tensordot(a: to.TensorInput, b: to.TensorInput, axes: Any, name: str | None = None) -> Tensor:
    """Sums products over axes of two tensors; the result has the other axes, those of `a` first.

    By hand: both become matrices, which depends on the axes.

    Args:
        a: A tensor.
        b: A tensor of its dtype.
        axes: The number of last axes of `a` and first axes of `b`; or two lists of axes, one for each tensor.
        name: Accepted, without effect.

    Raises:
        ValueError: Axes that do not exist, or another count for `a` than for `b`.
        InvalidArgumentError: Axes of other lengths.

    Example:
        tf.linalg.tensordot([[1.0, 2.0]], [[3.0, 4.0]], axes=[[1], [1]])
    """
    left = to.value(a)
    right = to.hinted(b, left)
    over_a, over_b = _contracted(left, right, axes)
    first, lengths_a = _as_matrix(left, over_a, last=True)
    second, lengths_b = _as_matrix(right, over_b, last=False)
    return reshape(call(ops.matmul, (first, second)), [*lengths_a, *lengths_b])


def _contracted(a: Any, b: Any, axes: Any) -> tuple[list[int], list[int]]:
    if isinstance(axes, int | np.integer) or (isinstance(axes, TensorLike) and not axes.shape.rank):
        count = int(axes)
        if count < 0:
            raise ValueError(f"`axes` must be at least 0. Received: {count}.")
        if count > a.shape.rank:
            raise ValueError(
                f"`axes` must not be larger than the number of dimensions of tensor {a}.  Received {count}, vs tensor "
                f"dimensions {a.shape.rank}."
            )
        return list(range(a.shape.rank - count, a.shape.rank)), list(range(count))
    if isinstance(axes, TensorLike):
        axes = axes.numpy().tolist()
    if not isinstance(axes, list | tuple | np.ndarray):
        raise TypeError(f"Cannot convert {axes!r} to EagerTensor of dtype int32")
    if len(axes) != 2:
        raise ValueError(f"`axes` must be an integer or have length 2. Received {axes}.")
    over_a, over_b = (list(to.ints(entry, "axes")) for entry in axes)
    if len(over_a) != len(over_b):
        raise ValueError(f"Different number of contraction axes `a` and `b`, {len(over_a)} != {len(over_b)}.")
    return over_a, over_b


def _as_matrix(tensor: Any, over: list[int], *, last: bool) -> tuple[Tensor, list[int]]:
    """The tensor as a matrix with the axes in `over` as its columns or its rows; and the lengths of the other axes."""
    shape = tensor.shape.as_list()
    over = [to.axis_within(axis, len(shape)) for axis in over]
    others = [axis for axis in builtins.range(len(shape)) if axis not in over]
    order = [*others, *over] if last else [*over, *others]
    moved = tensor if order == list(range(len(shape))) else transpose(tensor, order)
    lengths, inner = [shape[axis] for axis in others], int(np.prod([shape[axis] for axis in over], dtype=np.int64))
    outer = int(np.prod(lengths, dtype=np.int64))
    return reshape(moved, [outer, inner] if last else [inner, outer]), lengths


# ------------------------------------------------------------------------------------------------------- determinants
class LogMatrixDeterminant(NamedTuple):
    """The result of slogdet: the determinants are sign * exp(log_abs_determinant)."""

    sign: Tensor
    log_abs_determinant: Tensor


def slogdet(input: to.TensorInput, name: str | None = None) -> LogMatrixDeterminant:
    """Signs and logarithms of the absolute values of the determinants of matrices [..., n, n].

    By hand: several ops. For complex matrices both are complex, and the sign has a gradient, which it has not
    in TensorFlow.

    Example:
        tf.linalg.slogdet([[2.0, 0.0], [0.0, 3.0]])
    """
    tensor = convert_to_tensor(input)
    return LogMatrixDeterminant(call(ops.det_sign, (tensor,)), call(ops.log_abs_det, (tensor,)))


# ------------------------------------------------------------------------------------------------------------- norms
_MATRIX_NORMS = ["euclidean", "fro", 1, 2, np.inf]


def norm(
    tensor: to.TensorInput, ord: Any = "euclidean", axis: Any = None, keepdims: Any = None, name: str | None = None
) -> Tensor:
    """The norm of vectors, of matrices, or of all elements together. The gradient at 0 is NaN.

    By hand: `ord` and `axis` decide which ops are called.

    Args:
        tensor: Floating or complex.
        ord: "euclidean", 1, 2, np.inf or a positive number; of matrices "euclidean", "fro", 1 or np.inf.
        axis: One axis: vectors; two: matrices; None: all elements as one vector.
        keepdims: Whether the axes stay, with length 1.
        name: Accepted, without effect.

    Raises:
        ValueError: Another norm or axis.

    Example:
        tf.linalg.norm([3.0, 4.0])
    """
    of_matrices = isinstance(axis, list | tuple) and len(axis) == 2
    if of_matrices:
        axis = tuple(axis)
        if not all(isinstance(entry, int) for entry in axis) or axis[0] == axis[1]:
            raise ValueError(f"'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}")
        if ord not in _MATRIX_NORMS:
            raise ValueError(f"'ord' must be a supported matrix norm in {_MATRIX_NORMS}, got {ord}")
    else:
        if not (axis is None or isinstance(axis, int)):
            raise ValueError(f"'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}")
        if ord != "euclidean" and (isinstance(ord, str) or not np.isreal(ord) or ord <= 0):
            raise ValueError(f"'ord' must be a supported vector norm, got {ord}")
    result = _norm(convert_to_tensor(tensor), ord, axis, of_matrices)
    return result if keepdims else squeeze(result, axis)


def _norm(x: Tensor, ord: Any, axis: Any, of_matrices: bool) -> Tensor:
    if of_matrices and ord == 2:
        return _spectral(x, axis)
    if ord in ("euclidean", "fro", 2):
        squares = x * (call(ops.conj, (x,)) if x.dtype.is_complex else x)
        return call(ops.sqrt, (_reduced("reduce_sum", squares, axis),))
    size = call(ops.abs, (x,))
    if ord == 1 or ord == np.inf:
        if not of_matrices:
            return _reduced("reduce_sum" if ord == 1 else "reduce_max", size, axis)
        first, second = axis if ord == 1 else (axis[1], axis[0])
        return _reduced("reduce_max", _reduced("reduce_sum", size, first), second)
    return call(ops.pow, (_reduced("reduce_sum", call(ops.pow, (size, ord)), axis), 1.0 / ord))


def _spectral(x: Tensor, axis: tuple[int, int]) -> Tensor:
    """The largest singular values, with both axes of length 1."""
    rows, columns = (number % x.ndim for number in axis)
    others = [number for number in range(x.ndim) if number not in (rows, columns)]
    largest = _reduced("reduce_max", call(ops.svdvals, (transpose(x, [*others, rows, columns]),)), -1)
    return reshape(largest, [1 if i in (rows, columns) else n for i, n in enumerate(x.shape.as_list())])


def normalize(
    tensor: to.TensorInput, ord: Any = "euclidean", axis: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The tensor divided by its norm, and the norm, with the axes of length 1; the arguments are those of `norm`.

    By hand: several ops.

    Example:
        tf.linalg.normalize([3.0, 4.0])
    """
    x = convert_to_tensor(tensor)
    size = norm(x, ord=ord, axis=axis, keepdims=True)
    if x.dtype.is_complex and not size.dtype.is_complex:
        size = call(ops.cast, (size,), dtype=x.dtype.as_numpy_dtype)
    return x / size, size


def _reduced(name: str, x: Tensor, axis: Any) -> Tensor:
    return call(CATALOGUE[name], (x,), axis=axis, keepdims=True)
