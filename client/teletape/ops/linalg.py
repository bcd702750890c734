"""`tf.linalg` functions whose arguments TensorFlow checks or converts in a way of its own; the rest is derived."""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple

import numpy as np

from teletape.ops.arguments import ints
from teletape.ops.arrays import reshape, squeeze, transpose
from teletape.ops.dispatch import call, convert_to_tensor
from teletape.tensors.tensor import EagerTensor, TensorLike
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import InvalidArgumentError, UnimplementedError
from teletape_engine.ops.linalg.einsum import terms

__all__ = [
    "adjoint",
    "diag",
    "diag_part",
    "einsum",
    "logdet",
    "matrix_transpose",
    "matvec",
    "norm",
    "set_diag",
    "slogdet",
    "tensordot",
    "trace",
]


# ---------------------------------------------------------------------------------------------------------- products
def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> EagerTensor:
    """The products of matrices [..., n, k] and vectors [..., k]; leading axes broadcast."""
    left = a if isinstance(a, TensorLike) else convert_to_tensor(a)
    right = b if isinstance(b, TensorLike) else convert_to_tensor(b, dtype_hint=left.dtype)
    column = call(CATALOGUE["expand_dims"], (right,), axis=-1)
    flags = {name: True for name, on in (("transpose_a", transpose_a), ("adjoint_a", adjoint_a)) if on}
    return squeeze(call(CATALOGUE["matmul"], (left, column), **flags), -1)


def einsum(equation: str, *inputs: Any, **kwargs: Any) -> EagerTensor:
    """Sums of products over labelled axes, as "bij,bjk->bik"; keywords `optimize` and `name` have no effect.

    Raises:
        ValueError: The equation is none, or does not fit the number of inputs.
        InvalidArgumentError: It does not fit their shapes.
    """
    unknown = sorted(set(kwargs) - {"optimize", "name"})
    if unknown:
        raise TypeError(f"Invalid keyword arguments for this function: {', '.join(unknown)}")
    if len(inputs) == 1 and isinstance(inputs[0], list | tuple):
        inputs = tuple(inputs[0])
    try:
        terms(equation, len(inputs))
    except InvalidArgumentError as error:
        raise ValueError(error.message) from None
    return call(CATALOGUE["einsum"], inputs, equation=equation)


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> EagerTensor:
    """The sum of products over axes of both, which the result has not: those of `a` first, then those of `b`.

    Args:
        a: A tensor.
        b: A tensor of its dtype.
        axes: How many of the last axes of `a` and the first of `b`; or two lists of axes, one of each.
        name: Accepted, without effect.

    Raises:
        ValueError: Axes that do not exist, or not as many of each.
        InvalidArgumentError: Axes of other lengths.
    """
    left = a if isinstance(a, TensorLike) else convert_to_tensor(a)
    right = b if isinstance(b, TensorLike) else convert_to_tensor(b, dtype_hint=left.dtype)
    over_a, over_b = _contracted(left, right, axes)
    first, kept_a = _as_matrix(left, over_a, last=True)
    second, kept_b = _as_matrix(right, over_b, last=False)
    return reshape(call(CATALOGUE["matmul"], (first, second)), [*kept_a, *kept_b])


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
    over_a, over_b = (list(ints(one, "axes")) for one in axes)
    if len(over_a) != len(over_b):
        raise ValueError(f"Different number of contraction axes `a` and `b`, {len(over_a)} != {len(over_b)}.")
    return over_a, over_b


def _as_matrix(tensor: Any, over: list[int], *, last: bool) -> tuple[EagerTensor, list[int]]:
    """The tensor as a matrix, the axes in `over` as its columns or its rows; and the lengths of the others."""
    shape = tensor.shape.as_list()
    for axis in over:
        if not -len(shape) <= axis < len(shape):
            raise ValueError(f"axis {axis} is out of range for a tensor of {len(shape)} dimensions")
    over = [axis % len(shape) for axis in over]
    kept = [axis for axis in builtins.range(len(shape)) if axis not in over]
    order = [*kept, *over] if last else [*over, *kept]
    moved = tensor if order == list(range(len(shape))) else transpose(tensor, order)
    lengths, inner = [shape[axis] for axis in kept], int(np.prod([shape[axis] for axis in over], dtype=np.int64))
    outer = int(np.prod(lengths, dtype=np.int64))
    return reshape(moved, [outer, inner] if last else [inner, outer]), lengths


# --------------------------------------------------------------------------------------------------------- diagonals
def diag_part(
    input: Any, name: str = "diag_part", k: Any = 0, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> EagerTensor:
    """The k-th diagonals of matrices, counted upwards from the main one. One diagonal: no range of them."""
    return call(CATALOGUE["diag_part"], (convert_to_tensor(input),), k=_diagonal(k))


def diag(
    diagonal: Any,
    name: str = "diag",
    k: Any = 0,
    num_rows: Any = -1,
    num_cols: Any = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> EagerTensor:
    """Matrices with `diagonal` [..., n] on their k-th diagonal and `padding_value` elsewhere."""
    tensor = convert_to_tensor(diagonal)
    number = padding_value.numpy().item() if isinstance(padding_value, TensorLike) else padding_value
    return call(
        CATALOGUE["diag"],
        (tensor,),
        k=_diagonal(k),
        num_rows=int(num_rows),
        num_cols=int(num_cols),
        padding_value=number,
    )


def set_diag(input: Any, diagonal: Any, name: str = "set_diag", k: Any = 0, align: str = "RIGHT_LEFT") -> EagerTensor:
    """`input` with `diagonal` [..., n] in place of its k-th diagonal."""
    return call(CATALOGUE["set_diag"], (input, diagonal), k=_diagonal(k))


def _diagonal(k: Any) -> int:
    found = set(ints(k, "k"))
    if len(found) != 1:
        raise UnimplementedError(f"k must name one diagonal, found {k}: a range of diagonals is not offered")
    return found.pop()


def trace(x: Any, name: str | None = None) -> EagerTensor:
    """The sum of the main diagonal of matrices [..., n, m]."""
    return call(CATALOGUE["reduce_sum"], (diag_part(x),), axis=-1)


def logdet(matrix: Any, name: str | None = None) -> EagerTensor:
    """The logarithm of the determinant of Hermitian, positive definite matrices; NaN of others."""
    roots = diag_part(call(CATALOGUE["cholesky"], (convert_to_tensor(matrix),)))
    if roots.dtype.is_complex:
        roots = call(CATALOGUE["real"], (roots,))
    half = call(CATALOGUE["reduce_sum"], (call(CATALOGUE["log"], (roots,)),), axis=-1)
    return call(CATALOGUE["mul"], (half, 2.0))


class LogMatrixDeterminant(NamedTuple):
    """What slogdet gives: the determinants are sign * exp(log_abs_determinant)."""

    sign: EagerTensor
    log_abs_determinant: EagerTensor


def slogdet(input: Any, name: str | None = None) -> LogMatrixDeterminant:
    """Signs and logarithms of the absolute values of the determinants of real matrices [..., n, n]."""
    tensor = convert_to_tensor(input)
    return LogMatrixDeterminant(call(CATALOGUE["det_sign"], (tensor,)), call(CATALOGUE["log_abs_det"], (tensor,)))


# -------------------------------------------------------------------------------------------------------- transposes
def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> EagerTensor:
    """The last two axes swapped.

    Raises:
        ValueError: There are not two.
    """
    tensor = convert_to_tensor(a)
    rank = tensor.ndim
    if rank < 2:
        raise ValueError(
            f"Argument `a` should be a (batch) matrix with rank >= 2.  Received `a` = {tensor.numpy()} with shape: "
            f"{tensor.shape}"
        )
    return transpose(tensor, [*range(rank - 2), rank - 1, rank - 2], conjugate=conjugate)


def adjoint(matrix: Any, name: str | None = None) -> EagerTensor:
    """The last two axes swapped, conjugated."""
    return matrix_transpose(matrix, conjugate=True)


# ------------------------------------------------------------------------------------------------------------- norms
_MATRIX_NORMS = ["euclidean", "fro", 1, 2, np.inf]


def norm(tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: Any = None, name: Any = None) -> EagerTensor:
    """The norm of vectors, of matrices (two axes), or of all elements together. The gradient at 0 is NaN.

    Args:
        tensor: Floating or complex.
        ord: "euclidean", 1, 2, np.inf or a positive number; of matrices "euclidean", "fro", 1 or np.inf.
        axis: One axis: vectors; two: matrices; None: all elements as one vector.
        keepdims: Whether the axes stay, with length 1.
        name: Accepted, without effect.

    Raises:
        ValueError: Another norm or axis.
    """
    of_matrices = isinstance(axis, list | tuple) and len(axis) == 2
    if of_matrices:
        axis = tuple(axis)
        if not all(isinstance(one, int) for one in axis) or axis[0] == axis[1]:
            raise ValueError(f"'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}")
        if ord not in _MATRIX_NORMS:
            raise ValueError(f"'ord' must be a supported matrix norm in {_MATRIX_NORMS}, got {ord}.")
        if ord == 2:
            raise UnimplementedError("the spectral norm of matrices (ord=2 over two axes) is not offered")
    else:
        if not (axis is None or isinstance(axis, int)):
            raise ValueError(f"'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}")
        if ord != "euclidean" and (isinstance(ord, str) or not np.isreal(ord) or ord <= 0):
            raise ValueError(f"'ord' must be a supported vector norm, got {ord}.")
    x = convert_to_tensor(tensor)
    found = _norm(x, ord, axis, of_matrices)
    return found if keepdims else squeeze(found, axis)


def _norm(x: EagerTensor, ord: Any, axis: Any, of_matrices: bool) -> EagerTensor:
    if ord in ("euclidean", "fro", 2):
        squares = x * (call(CATALOGUE["conj"], (x,)) if x.dtype.is_complex else x)
        return call(CATALOGUE["sqrt"], (_reduced("reduce_sum", squares, axis),))
    size = call(CATALOGUE["abs"], (x,))
    if ord == 1 or ord == np.inf:
        if not of_matrices:
            return _reduced("reduce_sum" if ord == 1 else "reduce_max", size, axis)
        first, second = axis if ord == 1 else (axis[1], axis[0])
        return _reduced("reduce_max", _reduced("reduce_sum", size, first), second)
    return call(CATALOGUE["pow"], (_reduced("reduce_sum", call(CATALOGUE["pow"], (size, ord)), axis), 1.0 / ord))


def _reduced(name: str, x: EagerTensor, axis: Any) -> EagerTensor:
    return call(CATALOGUE[name], (x,), axis=axis, keepdims=True)
