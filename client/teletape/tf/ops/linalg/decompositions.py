"""`tf.linalg` functions that take several ops: factors, eigenvalues, singular values, systems, inverses."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from teletape._generated.linalg.diagonal import band_part
from teletape._generated.linalg.matrix import cholesky, cholesky_solve, triangular_solve
from teletape._generated.linalg.products import matmul
from teletape._generated.shapes.cast import cast
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.tf.ops.linalg.diagonals import set_diag
from teletape_engine.catalogue.namespace import ops
from teletape_engine.spec import finfo


# ---------------------------------------------------------------------------------------------------------- QR and LU
class Qr(NamedTuple):
    """The result of qr: q @ r is the matrix."""

    q: Tensor
    r: Tensor


def qr(input: to.TensorInput, full_matrices: bool = False, name: str | None = None) -> Qr:
    """Orthonormal columns q [..., m, k] and upper triangular r [..., k, n] of matrices, k = min(m, n).

    By hand: float16 is computed in float32, and so are its derivatives. With `full_matrices` k is m; if m > n, a
    gradient raises UnimplementedError.

    Example:
        tf.linalg.qr(np.ones([4, 4], np.float32))
    """
    x = convert_to_tensor(input)
    if x.dtype is dtypes.float16:
        return Qr(*(cast(factor, dtypes.float16) for factor in qr(cast(x, dtypes.float32), full_matrices)))
    return Qr(*call(ops.qr, (x,), full_matrices=bool(full_matrices)))


def _lu_arguments(lower_upper: Any, perm: Any) -> tuple[Tensor, Tensor]:
    factors, order = convert_to_tensor(lower_upper), convert_to_tensor(perm)
    if factors.ndim < 2:
        raise ValueError("Input `lower_upper` must have at least 2 dimensions.")
    if order.ndim < 1:
        raise ValueError("Input `perm` must have at least 1 dimension.")
    if factors.shape[-1] != factors.shape[-2]:
        raise ValueError("`lower_upper` must be square.")
    if factors.ndim != order.ndim + 1:
        raise ValueError("`rank(lower_upper)` must equal `rank(perm) + 1`")
    return factors, order


def _unit_lower(factors: Tensor) -> Tensor:
    ones = call(ops.ones_like, (call(ops.diag_part, (factors,)),))
    return set_diag(band_part(factors, -1, 0), ones)


def lu_solve(
    lower_upper: to.TensorInput,
    perm: to.TensorInput,
    rhs: to.TensorInput,
    validate_args: bool = False,
    name: str | None = None,
) -> Tensor:
    """Solves A x = rhs with the factors and the permutation of `lu`; leading axes broadcast.

    By hand: several ops. The factors have the gradient.

    Raises:
        ValueError: Shapes that do not fit.

    Example:
        tf.linalg.lu_solve([[4.0, 4.0], [0.25, 1.0]], [1, 0], [[3.0], [8.0]])
    """
    factors, order = _lu_arguments(lower_upper, perm)
    right = convert_to_tensor(to.like(rhs, factors))
    if right.ndim < 2:
        raise ValueError("Input `rhs` must have at least 2 dimensions.")
    if factors.shape[-1] != right.shape[-2]:
        raise ValueError("`lower_upper.shape[-1]` must equal `rhs.shape[-1]`.")
    lengths = right.shape.as_list()
    lead = list(np.broadcast_shapes(tuple(lengths[:-2]), tuple(order.shape.as_list()[:-1])))
    right = call(ops.broadcast_to, (right,), shape=(*lead, *lengths[-2:]))
    order = call(ops.broadcast_to, (order,), shape=(*lead, lengths[-2]))
    permuted = call(ops.permute_rows, (right, order))
    return triangular_solve(factors, triangular_solve(_unit_lower(factors), permuted), lower=False)


def lu_reconstruct(
    lower_upper: to.TensorInput, perm: to.TensorInput, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The matrices from the factors and the permutation of `lu`. By hand: several ops.

    Raises:
        ValueError: Shapes that do not fit.

    Example:
        tf.linalg.lu_reconstruct([[4.0, 4.0], [0.25, 1.0]], [1, 0])
    """
    factors, order = _lu_arguments(lower_upper, perm)
    product = matmul(_unit_lower(factors), band_part(factors, 0, -1))
    return call(ops.permute_rows, (product, order), inverse=True)


def lu_matrix_inverse(
    lower_upper: to.TensorInput, perm: to.TensorInput, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The inverses of the matrices, from the factors and the permutation of `lu`. By hand: several ops.

    Raises:
        ValueError: Shapes that do not fit.

    Example:
        tf.linalg.lu_matrix_inverse([[2.0, 0.0], [0.0, 4.0]], [0, 1])
    """
    factors, order = _lu_arguments(lower_upper, perm)
    shape = tuple(factors.shape.as_list())
    identity = convert_to_tensor(np.broadcast_to(np.eye(shape[-1]), shape).astype(factors.dtype.as_numpy_dtype))
    return lu_solve(factors, order, identity)


# ------------------------------------------------------------------------------------- eigenvalues and singular values
def eigvals(tensor: to.TensorInput, name: str | None = None) -> Tensor:
    """Complex eigenvalues [..., n] of matrices without symmetry, in the order of `eig`. By hand, as `eig`.

    Raises:
        InvalidArgumentError: Matrices that are not square, or with NaN.

    Example:
        tf.linalg.eigvals([[2.0, 0.0], [0.0, 3.0]])
    """
    return call(ops.eigvals, (convert_to_tensor(tensor),))


def svd(tensor: to.TensorInput, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """Singular values s [..., k] in descending order and vectors u [..., m, k], v [..., n, k]: u diag(s) vᴴ.

    By hand: `compute_uv` chooses between two ops.

    Args:
        tensor: Matrices [..., m, n]; k is the smaller of m and n.
        full_matrices: Whether u has m columns and v has n.
        compute_uv: Whether to return (s, u, v), or s alone.
        name: Accepted, without effect.

    Raises:
        InvalidArgumentError: No matrices, or another dtype.

    Example:
        tf.linalg.svd([[3.0, 0.0], [0.0, 2.0]], compute_uv=False)
    """
    x = convert_to_tensor(tensor)
    if not compute_uv:
        return call(ops.svdvals, (x,))
    s, u, v = call(ops.svd, (x,), full_matrices=bool(full_matrices))
    return s, u, v


# --------------------------------------------------------------------------------------------- inverses and functions
def _check_matrices(x: Tensor) -> None:
    if not x.dtype.is_floating:
        raise TypeError(f"Input `a` must have `float`-like `dtype` (saw {x.dtype.name}).")
    if x.ndim < 2:
        raise ValueError(f"Input `a` must have at least 2 dimensions (saw: {x.ndim}).")


def pinv(a: to.TensorInput, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The Moore-Penrose inverses [..., n, m] of real matrices [..., m, n].

    By hand: the default of rcond, 10 times the larger of m and n times the machine precision, depends on the matrices.

    Raises:
        TypeError: Another dtype.
        ValueError: No matrices.

    Example:
        tf.linalg.pinv([[2.0, 0.0], [0.0, 4.0]])
    """
    x = convert_to_tensor(a)
    _check_matrices(x)
    dtype = x.dtype.as_numpy_dtype
    if rcond is None:
        rcond = 10.0 * max(x.shape.as_list()[-2:]) * float(finfo(np.dtype(dtype)).eps)
    return call(ops.pinv, (x, convert_to_tensor(rcond, dtype=x.dtype)))


def matrix_rank(a: to.TensorInput, tol: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The number of singular values above tol, int32 [...]. By hand: tol may be a tensor.

    Raises:
        ValueError: No matrices.

    Example:
        tf.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]])
    """
    x = convert_to_tensor(a)
    if x.dtype.is_integer:
        x = call(ops.cast, (x,), dtype=np.dtype(np.float32))
    if x.ndim < 2:
        raise ValueError(f"Input `a` must have at least 2 dimensions (saw: {x.ndim}).")
    if tol is None:
        return call(ops.matrix_rank, (x,))
    above = call(ops.greater, (call(ops.svdvals, (x,)), tol))
    return call(ops.reduce_sum, (call(ops.cast, (above,), dtype=np.dtype(np.int32)),), axis=-1)


def expm(input: to.TensorInput, name: str | None = None) -> Tensor:
    """The exponentials of matrices [..., n, n]; NaN for matrices that are not finite. By hand: the error of dtypes.

    Raises:
        ValueError: Integers or bfloat16.
        InvalidArgumentError: Matrices that are not square.

    Example:
        tf.linalg.expm([[0.0, 1.0], [0.0, 0.0]])
    """
    x = convert_to_tensor(input)
    if x.dtype is dtypes.bfloat16 or not (x.dtype.is_floating or x.dtype.is_complex):
        raise ValueError(f"tf.linalg.expm does not support matrices of type {x.dtype!r}")
    return call(ops.expm, (x,))


# --------------------------------------------------------------------------------------------------- least squares
def lstsq(
    matrix: to.TensorInput, rhs: to.TensorInput, l2_regularizer: Any = 0.0, fast: bool = True, name: str | None = None
) -> Tensor:
    """The x [..., n, k] with the least ‖matrix x - rhs‖² + l2_regularizer ‖x‖², for matrices [..., m, n].

    By hand: several ops. Of wide matrices the solution with the least norm.

    Args:
        matrix: Floating or complex matrices.
        rhs: [..., m, k].
        l2_regularizer: A number; zero for complex matrices.
        fast: True: by the normal equations; NaN or inaccurate if the columns are nearly dependent. False: by the
            pseudo-inverse, without the regularizer.
        name: Accepted, without effect.

    Raises:
        NotImplementedError: Complex matrices with a regularizer.
        InvalidArgumentError: Shapes or dtypes that do not fit.

    Example:
        tf.linalg.lstsq([[1.0], [1.0]], [[1.0], [3.0]])
    """
    a = convert_to_tensor(matrix)
    b = to.like(rhs, a)
    if a.dtype.is_complex and not (isinstance(l2_regularizer, int | float) and l2_regularizer == 0):
        raise NotImplementedError(
            f"matrix_solve_ls is currently disabled for {a.dtype.name} and l2_regularizer != 0 due to poor accuracy."
        )
    rows, columns = a.shape.as_list()[-2:] if a.ndim > 1 else (0, 0)
    if not fast and a.ndim > 1:
        real = np.finfo(a.dtype.as_numpy_dtype).dtype
        rcond = convert_to_tensor(max(rows, columns) * np.finfo(real).eps, dtype=a.dtype.real_dtype)
        return matmul(call(ops.pinv, (a, rcond)), b)
    tall = rows >= columns
    gram = matmul(a, a, adjoint_a=tall, adjoint_b=not tall)
    if not (isinstance(l2_regularizer, int | float) and l2_regularizer == 0):
        diagonal = call(ops.diag_part, (gram,))
        gram = set_diag(gram, diagonal + to.like(l2_regularizer, a))
    chol = cholesky(gram)
    if tall:
        return cholesky_solve(chol, matmul(a, b, adjoint_a=True))
    return matmul(a, cholesky_solve(chol, b), adjoint_a=True)
