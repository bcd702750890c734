"""Stacked matrices [..., n, n]: Cholesky's factorisation and triangular systems."""

from __future__ import annotations

import numpy as np

from teletape_engine.arrays import Array, ArrayModule, HostArray, linalg
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.elementwise import align, sum_to
from teletape_engine.catalogue.families import batch_all, composite
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Reach, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.complex import conj
from teletape_engine.ops.linalg.diagonal import band_part, diag_part, set_diag, stacked
from teletape_engine.ops.linalg.products import matmul
from teletape_engine.ops.shapes.shape import transpose
from teletape_engine.spec import COMPLEX, DTYPES, Spec, broadcast, shape_text

SOLVABLE = frozenset(DTYPES[name] for name in ("float32", "float64", "complex64", "complex128"))
_LOWER = {"num_lower": -1, "num_upper": 0}
_UPPER = {"num_lower": 0, "num_upper": -1}


def adjoint_of(x: Operand) -> Operand:
    """The last two axes swapped, conjugated."""
    n = len(x.shape)
    turned = transpose(x, perm=(*range(n - 2), n - 1, n - 2))
    return conj(turned) if x.dtype in COMPLEX else turned


# ---------------------------------------------------------------------------------------------------------- cholesky
def _cholesky_spec(x: Spec) -> Spec:
    check_dtypes("Cholesky", (x,), SOLVABLE)
    if x.ndim < 2:
        raise InvalidArgumentError(f"Input tensor 0 must have rank >= 2, got {x.ndim}")
    if x.shape[-1] != x.shape[-2]:
        raise InvalidArgumentError("Input matrix must be square.")
    return x


def _half_lower(x: Operand) -> Operand:
    """Φ(x): the lower triangle, half of the diagonal (Murray 2016, Differentiation of the Cholesky decomposition)."""
    lower = band_part(x, **_LOWER)
    return set_diag(lower, diag_part(lower) * 0.5)


def _hermitian(x: Operand) -> Operand:
    return (x + adjoint_of(x)) * 0.5


def _within(chol: Operand, x: Operand, *, adjoint: bool = False) -> Operand:
    """L⁻¹ x L⁻ᴴ, or L⁻ᴴ x L⁻¹ if `adjoint`."""
    left = ops.triangular_solve(chol, x, lower=True, adjoint=adjoint)
    return adjoint_of(ops.triangular_solve(chol, adjoint_of(left), lower=True, adjoint=adjoint))


def _cholesky_jvp(t: Operand, y: Operand) -> Operand:
    # L Φ(L⁻¹ t L⁻ᴴ)
    return matmul(band_part(y, **_LOWER), _half_lower(_within(y, _hermitian(t))))


# The gradient is S = L⁻ᴴ Φ(Lᴴ C) L⁻¹ made Hermitian, C the cotangent's lower triangle. Its own derivatives, with
# dL⁻¹ = -L⁻¹ dL L⁻¹ on both sides of Φ:
#   dS = L⁻ᴴ (Φ(dLᴴ C) - 2 Lᴴ S dL) L⁻¹ made Hermitian, and by C it is linear;
#   by L, with U = L⁻¹ ct L⁻ᴴ: the lower triangle of C Φ(U)ᴴ - 2 S L U.
def _cholesky_grad_vjp(ct: Operand, chol: Operand, grad: Operand, y: Operand) -> Operand:
    lower, within = band_part(chol, **_LOWER), _within(chol, _hermitian(ct))
    straight = matmul(band_part(grad, **_LOWER), _half_lower(within), adjoint_b=True)
    return band_part(straight - 2 * matmul(y, matmul(lower, within)), **_LOWER)


def _cholesky_grad_jvp(t: Operand, chol: Operand, grad: Operand, y: Operand) -> Operand:
    lower, t = band_part(chol, **_LOWER), band_part(t, **_LOWER)
    straight = _half_lower(matmul(t, band_part(grad, **_LOWER), adjoint_a=True))
    through = matmul(lower, matmul(y, t), adjoint_a=True)
    return _hermitian(_within(chol, straight - 2 * through, adjoint=True))


def _definite(*lead: int) -> HostArray:
    """Well-conditioned symmetric matrices."""
    random = np.random.default_rng(0)
    a = random.uniform(-0.5, 0.5, (*lead, 3, 3))
    return a @ np.swapaxes(a, -1, -2) + 2 * np.eye(3)


@op(
    infer=_cholesky_spec,
    vjp=lambda ct, y: ops.cholesky_grad(y, ct),
    jvp=_cholesky_jvp,
    batch=stacked,
    samples=lambda: [sample(_definite()), sample(_definite(2)), sample(np.zeros((0, 0)))],
    args="input",
    tf="linalg.cholesky",
    symmetric=(0,),
    workspace=lambda x: x.nbytes,
    work=lambda x: x.size * x.shape[-1] // 6,
    reach=Reach.MATRICES,
)
def cholesky(xp: ArrayModule, x: Array) -> Array:
    """The lower triangular L with L Lᴴ = x for Hermitian, positive definite matrices [..., n, n]; else NaN.

    Only the lower triangle of x is read; the gradient is Hermitian.
    """
    return linalg.cholesky(xp, x)


def _cholesky_grad_spec(chol: Spec, grad: Spec) -> Spec:
    check_dtypes("CholeskyGrad", (chol, grad), SOLVABLE)
    if chol.ndim < 2 or chol.shape[-1] != chol.shape[-2] or grad.shape != chol.shape:
        raise InvalidArgumentError(
            "CholeskyGrad: a factor of square matrices and a gradient of the same shape, found "
            f"{shape_text(chol.shape)}, {shape_text(grad.shape)}"
        )
    return chol


@op(
    infer=_cholesky_grad_spec,
    vjp=[_cholesky_grad_vjp, lambda ct, chol: _cholesky_jvp(ct, chol)],
    jvp=[_cholesky_grad_jvp, lambda t, chol: ops.cholesky_grad(chol, t)],
    batch=lambda record, args, batched, attrs: record(*batch_all(args, batched)),
    samples=lambda: [
        sample(np.linalg.cholesky(_definite()), (3, 3)),
        sample(np.linalg.cholesky(_definite(2)), (2, 3, 3), seed=1),
        sample(_triangle(), (3, 3), seed=2),
        sample(np.zeros((0, 0)), np.zeros((0, 0))),
    ],
    op_type="CholeskyGrad",
    like=(0, 0),
    workspace=lambda chol, grad: 3 * chol.nbytes,
    work=lambda chol, grad: chol.size * chol.shape[-1] // 3,
    traits=[Trait.SELECTS],
    reach=Reach.MATRICES,
)
def cholesky_grad(xp: ArrayModule, chol: Array, grad: Array) -> Array:
    """The vjp of cholesky, Hermitian matrices, from its result L and the cotangent: only lower triangles are read."""
    return linalg.cholesky_grad(xp, chol, grad)


# ------------------------------------------------------------------------------------------------- triangular systems
def _solve_spec(matrix: Spec, rhs: Spec, *, lower: bool, adjoint: bool) -> Spec:
    check_dtypes("MatrixTriangularSolve", (matrix, rhs), SOLVABLE)
    for i, spec in enumerate((matrix, rhs)):
        if spec.ndim < 2:
            raise InvalidArgumentError(f"In[{i}] ndims must be >= 2: {spec.ndim}")
    n, m = matrix.shape[-2:]
    if n != m:
        raise InvalidArgumentError(f"In[0] matrices in the last dimensions must be square ({m} =/= {n})")
    shapes = (shape_text(matrix.shape), shape_text(rhs.shape))
    if rhs.shape[-2] != n:
        raise InvalidArgumentError(f"In[0] mismatch In[1] shape: {n} vs. {rhs.shape[-2]}: {' '.join(shapes)}")
    try:
        lead = broadcast(matrix.shape[:-2], rhs.shape[:-2])
    except InvalidArgumentError:
        raise InvalidArgumentError(
            f"In[0] and In[1] must have compatible batch dimensions: {' vs. '.join(shapes)}"
        ) from None
    return rhs.with_shape((*lead, *rhs.shape[-2:]))


def _outer(x: Operand, y: Operand, lower: bool, adjoint: bool) -> Operand:
    """-x yᴴ within the triangle, or its adjoint if the matrix is used as its adjoint."""
    product = matmul(y, -x, adjoint_b=True) if adjoint else matmul(-x, y, adjoint_b=True)
    return band_part(product, **(_LOWER if lower else _UPPER))


def _solve_vjp_matrix(
    ct: Operand, matrix: Operand, y: Operand, matrix_spec: Spec, lower: bool, adjoint: bool
) -> Operand:
    back = ops.triangular_solve(matrix, ct, lower=lower, adjoint=not adjoint)
    return sum_to(_outer(back, y, lower, adjoint), matrix_spec.shape)


def _solve_jvp_matrix(t: Operand, matrix: Operand, y: Operand, lower: bool, adjoint: bool) -> Operand:
    moved = matmul(band_part(t, **(_LOWER if lower else _UPPER)), y, adjoint_a=adjoint)
    return -ops.triangular_solve(matrix, moved, lower=lower, adjoint=adjoint)


def _triangle(*lead: int) -> HostArray:
    random = np.random.default_rng(1)
    return random.uniform(-1, 1, (*lead, 3, 3)) + 3 * np.eye(3)


@op(
    infer=_solve_spec,
    vjp=[
        _solve_vjp_matrix,
        lambda ct, matrix, rhs_spec, lower, adjoint: sum_to(
            ops.triangular_solve(matrix, ct, lower=lower, adjoint=not adjoint), rhs_spec.shape
        ),
    ],
    jvp=[
        _solve_jvp_matrix,
        lambda t, matrix, lower, adjoint: ops.triangular_solve(matrix, t, lower=lower, adjoint=adjoint),
    ],
    batch=lambda record, args, batched, attrs: record(*align(args, batched), **attrs),
    samples=lambda: [
        sample(_triangle(), (3, 2)),
        sample(_triangle(), (3, 2), lower=False),
        sample(_triangle(), (3, 1), adjoint=True),
        sample(_triangle(2), (3, 2), lower=False, adjoint=True),
        sample(_triangle(), (2, 3, 1)),
        sample(_triangle(), (3, 0)),
    ],
    op_type="MatrixTriangularSolve",
    tf="linalg.triangular_solve",
    like=(0, 0),
    workspace=lambda matrix, rhs, **attrs: 2 * matrix.nbytes + 3 * _solve_spec(matrix, rhs, **attrs).nbytes,
    work=lambda matrix, rhs, **_: rhs.size * matrix.shape[-1] // 2,
    traits=[Trait.SELECTS],
    reach=Reach.MATRICES,
)
def triangular_solve(xp: ArrayModule, matrix: Array, rhs: Array, *, lower: bool = True, adjoint: bool = False) -> Array:
    """The x with matrix x = rhs, or matrixᴴ x = rhs if `adjoint`; only one triangle of the matrix is read.

    matrix [..., n, n], rhs [..., n, k]; leading axes broadcast. A zero on the diagonal gives infinities and NaN.
    """
    lead = broadcast(matrix.shape[:-2], rhs.shape[:-2])
    matrix = xp.broadcast_to(matrix, (*lead, *matrix.shape[-2:]))
    rhs = xp.broadcast_to(rhs, (*lead, *rhs.shape[-2:]))
    return linalg.triangular_solve(xp, matrix, rhs, lower=lower, adjoint=adjoint)


@composite(
    samples=lambda: [sample(_triangle(), (3, 2)), sample(_triangle(2), (3, 1))],
    tf="linalg.cholesky_solve",
)
def cholesky_solve(chol: Operand, rhs: Operand) -> Operand:
    """The x with A x = rhs, from A's Cholesky factor: matrices [..., n, n], right sides [..., n, k]."""
    return triangular_solve(chol, triangular_solve(chol, rhs, lower=True), lower=True, adjoint=True)
