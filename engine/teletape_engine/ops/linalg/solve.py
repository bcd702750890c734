"""Square matrices [..., n, n] without structure: inverses, linear systems and determinants, by LU factorisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape_engine.arrays import Array, ArrayModule, linalg
from teletape_engine.catalogue.binding import by_name
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.families import batch_all
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Reach
from teletape_engine.catalogue.operand import Operand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.complex import conj
from teletape_engine.ops.linalg.diagonal import diag_part, stacked
from teletape_engine.ops.linalg.eigen import real_part
from teletape_engine.ops.linalg.matrix import SOLVABLE
from teletape_engine.ops.linalg.products import matmul
from teletape_engine.ops.reduce import reduce_sum
from teletape_engine.ops.shapes.create import zeros_like
from teletape_engine.ops.shapes.shape import expand_dims
from teletape_engine.spec import COMPLEX, DTYPES, DType, Spec, half_bytes, shape_text, wide


def _check_square(op_type: str, x: Spec, dtypes: frozenset[DType] = SOLVABLE) -> None:
    check_dtypes(op_type, (x,), dtypes)
    if x.ndim < 2:
        raise InvalidArgumentError(f"Input tensor 0 must have rank >= 2, got {x.ndim}")
    if x.shape[-1] != x.shape[-2]:
        raise InvalidArgumentError("Input matrix must be square.")


def _inv_spec(x: Spec, *, adjoint: bool) -> Spec:
    _check_square("MatrixInverse", x, SOLVABLE | {DTYPES["float16"]})
    return x


def _matrices(*lead: int) -> Array:
    """Well-conditioned matrices without symmetry."""
    random = np.random.default_rng(2)
    return random.uniform(-1, 1, (*lead, 3, 3)) + 2 * np.eye(3)


# ----------------------------------------------------------------------------------------------------------- inverse
def _inv_vjp(ct: Operand, y: Operand, adjoint: bool) -> Operand:
    # d(A⁻¹) = -A⁻¹ dA A⁻¹; where y is A⁻ᴴ, the same of Aᴴ.
    if adjoint:
        return -matmul(y, matmul(ct, y, adjoint_a=True))
    return -matmul(matmul(y, ct, adjoint_a=True), y, adjoint_b=True)


@op(
    infer=_inv_spec,
    vjp=_inv_vjp,
    jvp=lambda t, y, adjoint: -matmul(y, matmul(t, y, adjoint_a=adjoint)),
    batch=stacked,
    samples=lambda: [sample(_matrices()), sample(_matrices(2), adjoint=True), sample(np.zeros((0, 0)))],
    op_type="MatrixInverse",
    args="input adjoint",
    tf="linalg.inv",
    workspace=lambda x, **_: 2 * x.nbytes + half_bytes(x, 3),
    work=lambda x, **_: x.size * x.shape[-1],
    reach=Reach.MATRICES,
)
def inv(xp: ArrayModule, x: Array, *, adjoint: bool = False) -> Array:
    """The inverses of matrices, or of their adjoints; of float16 computed in float32.

    Raises:
        InvalidArgumentError: A matrix has no inverse.
    """
    matrices = x.astype(wide(x.dtype), copy=False)
    result = linalg.inv(xp, xp.conj(xp.swapaxes(matrices, -1, -2)) if adjoint else matrices)
    return result.astype(x.dtype, copy=False)


# ------------------------------------------------------------------------------------------------------------ systems
def _solve_spec(matrix: Spec, rhs: Spec, *, adjoint: bool) -> Spec:
    check_dtypes("MatrixSolve", (matrix, rhs), SOLVABLE)
    if matrix.ndim != rhs.ndim:
        raise InvalidArgumentError("All input tensors must have the same rank.")
    _check_square("MatrixSolve", matrix)
    if matrix.shape[:-1] != rhs.shape[:-1]:
        what = "outer dimensions" if matrix.shape[:-2] != rhs.shape[:-2] else "number of rows"
        raise InvalidArgumentError(
            f"All input tensors must have the same {what}: {shape_text(matrix.shape)} vs. {shape_text(rhs.shape)}"
        )
    return rhs


def _solve_vjp_matrix(ct: Operand, matrix: Operand, y: Operand, adjoint: bool) -> Operand:
    back = ops.solve(matrix, ct, adjoint=not adjoint)
    return -(matmul(y, back, adjoint_b=True) if adjoint else matmul(back, y, adjoint_b=True))


@op(
    infer=_solve_spec,
    vjp=[_solve_vjp_matrix, lambda ct, matrix, adjoint: ops.solve(matrix, ct, adjoint=not adjoint)],
    jvp=[
        lambda t, matrix, y, adjoint: -ops.solve(matrix, matmul(t, y, adjoint_a=adjoint), adjoint=adjoint),
        lambda t, matrix, adjoint: ops.solve(matrix, t, adjoint=adjoint),
    ],
    batch=lambda record, args, batched, attrs: record(*batch_all(args, batched), **attrs),
    samples=lambda: [
        sample(_matrices(), (3, 2)),
        sample(_matrices(), (3, 1), adjoint=True),
        sample(_matrices(2), (2, 3, 2)),
        sample(_matrices(), (3, 0)),
    ],
    op_type="MatrixSolve",
    tf="linalg.solve",
    like=(0, 0),
    workspace=lambda matrix, rhs, **_: 2 * matrix.nbytes + rhs.nbytes,
    work=lambda matrix, rhs, **_: (matrix.size // 3 + rhs.size) * matrix.shape[-1],
    reach=Reach.MATRICES,
)
def solve(xp: ArrayModule, matrix: Array, rhs: Array, *, adjoint: bool = False) -> Array:
    """The x with matrix x = rhs, or matrixᴴ x = rhs if `adjoint`; matrix [..., n, n], rhs [..., n, k].

    Raises:
        InvalidArgumentError: A matrix is singular.
    """
    return linalg.solve(xp, xp.conj(xp.swapaxes(matrix, -1, -2)) if adjoint else matrix, rhs)


# ------------------------------------------------------------------------------------------------------- determinants
def _det_spec(x: Spec) -> Spec:
    _check_square("MatrixDeterminant", x)
    return x.with_shape(x.shape[:-2])


def _log_det_spec(x: Spec) -> Spec:
    check_dtypes("LogMatrixDeterminant", (x,), SOLVABLE)
    return _det_spec(x)


def _factorised(x: Spec) -> int:
    """Multiply-adds of an LU factorisation."""
    return x.size * x.shape[-1] // 3


def _scaled(number: Any, matrices: Operand) -> Operand:
    """Each matrix times its number [...]."""
    return expand_dims(expand_dims(number, axis=-1), axis=-1) * matrices


def _traced(t: Operand, x: Operand) -> Operand:
    """tr(x⁻¹ t), the slope of log det along t (Jacobi's formula)."""
    return reduce_sum(diag_part(solve(x, t)), axis=-1)


@op(
    infer=_det_spec,
    vjp=lambda ct, x, y: _scaled(ct * (conj(y) if y.dtype in COMPLEX else y), inv(x, adjoint=True)),
    jvp=lambda t, x, y: y * _traced(t, x),
    batch=stacked,
    samples=lambda: [sample(_matrices()), sample(_matrices(2))],
    op_type="MatrixDeterminant",
    args="input",
    tf="linalg.det",
    workspace=lambda x: x.nbytes,
    work=_factorised,
    reach=Reach.MATRICES,
)
def det(xp: ArrayModule, x: Array) -> Array:
    """The determinants [...]. The gradient goes through the inverse: of a singular matrix it is an error."""
    return xp.linalg.det(x)


@op(
    infer=_log_det_spec,
    vjp=lambda ct, x: _scaled(real_part(ct), inv(x, adjoint=True)),
    jvp=lambda t, x: real_part(_traced(t, x)),
    batch=stacked,
    samples=lambda: [sample(_matrices()), sample(-_matrices(2))],
    op_type="LogMatrixDeterminant",
    workspace=lambda x: 2 * x.nbytes,
    work=_factorised,
    reach=Reach.MATRICES,
)
def log_abs_det(xp: ArrayModule, x: Array) -> Array:
    """The logarithms of the absolute values of the determinants [...], in the dtype of x; -inf of singular ones."""
    return xp.linalg.slogdet(x)[1].astype(x.dtype, copy=False)


def _sign_vjp(ct: Operand, x: Operand, y: Operand) -> Operand:
    """Zero of real matrices, as TensorFlow's: not None. A complex sign y turns by i Im tr(x⁻¹ t) y."""
    factor = (ct * conj(y) - conj(ct) * y) * 0.5 if y.dtype in COMPLEX else zeros_like(ct)
    return _scaled(factor, inv(x, adjoint=True))


def _sign_jvp(t: Operand, x: Operand, y: Operand) -> Operand:
    if y.dtype not in COMPLEX:
        return zeros_like(y)
    slope = _traced(t, x)
    return y * (slope - conj(slope)) * 0.5


@op(
    infer=_log_det_spec,
    vjp=by_name(_sign_vjp, zero=lambda spec: spec.dtype not in COMPLEX),
    jvp=_sign_jvp,
    batch=stacked,
    samples=lambda: [sample(_matrices()), sample(-_matrices(2))],
    op_type="LogMatrixDeterminant",
    workspace=lambda x: 2 * x.nbytes,
    work=_factorised,
    reach=Reach.MATRICES,
)
def det_sign(xp: ArrayModule, x: Array) -> Array:
    """The determinants [...] divided by their absolute values, 0 of singular matrices: of real ones 1, -1 or 0.

    The gradient of real matrices is zero, not None.
    """
    return xp.linalg.slogdet(x)[0]
