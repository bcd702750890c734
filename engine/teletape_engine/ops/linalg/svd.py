"""Singular values and vectors of stacked matrices [..., m, n], and what follows from them: pseudo-inverses, ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from teletape_engine.arrays import Array, ArrayModule, HostArray, decompositions
from teletape_engine.catalogue.attributes import Attrs
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.families import batch_all, composite
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op, Reach, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.errors import InvalidArgumentError, UnimplementedError
from teletape_engine.ops.elementwise.complex import conj, real
from teletape_engine.ops.elementwise.math import square
from teletape_engine.ops.linalg.diagonal import diag, diag_part, stacked
from teletape_engine.ops.linalg.eigen import reciprocal_differences, safe_reciprocal
from teletape_engine.ops.linalg.matrix import SOLVABLE, adjoint_of
from teletape_engine.ops.linalg.products import matmul
from teletape_engine.ops.reduce import reduce_max, reduce_sum
from teletape_engine.ops.shapes.cast import cast
from teletape_engine.ops.shapes.create import zeros_like
from teletape_engine.ops.shapes.shape import concat, expand_dims, reshape
from teletape_engine.spec import COMPLEX, DTYPES, REAL_OF, Shape, Spec, broadcast, finfo, shape_text


def _check_matrices(x: Spec) -> None:
    check_dtypes("Svd", (x,), SOLVABLE)
    if x.ndim < 2:
        raise InvalidArgumentError(f"Input tensor 0 must have rank >= 2, got {x.ndim}")


def _lengths(shape: Shape, full_matrices: bool) -> tuple[int, int, int]:
    """How many singular values, columns of U and columns of V there are."""
    m, n = shape[-2:]
    k = min(m, n)
    return (k, m, n) if full_matrices else (k, k, k)


def _svd_spec(x: Spec, *, full_matrices: bool) -> tuple[Spec, Spec, Spec]:
    _check_matrices(x)
    *lead, m, n = x.shape
    _, of_u, of_v = _lengths(x.shape, full_matrices)
    return _svdvals_spec(x), x.with_shape((*lead, m, of_u)), x.with_shape((*lead, n, of_v))


def _check_differentiable(shape: Shape, full_matrices: bool) -> None:
    m, n = shape[-2:]
    if full_matrices and abs(m - n) > 1:
        raise UnimplementedError(
            f"svd: with full_matrices a derivative exists if rows and columns differ by 1 at most, found {m} and {n}"
        )


def _columns(x: Operand, start: int | None, end: int | None) -> Operand:
    return ops.strided_slice(x, index=("...", (start, end, None)))


# Giles 2008 (see eigen.py), section 3.2; Townsend 2016, Differentiating the singular value decomposition; of complex
# matrices Wan and Zhang 2019, Automatic differentiation for complex valued SVD. For m <= n, with P = Uᴴ dA V and
# F = 1 / (s[j]² - s[i]²):
#   ds = diag P;  Uᴴ dU = F ∘ (P S + S Pᴴ);  Vᴴ dV = F ∘ (S P + Pᴴ S);  dV has S⁻¹ Uᴴ dA outside V's columns too.
# Of the phases, which only the products of U and V have together, U's are fixed. m > n: of the adjoint.
def _svd_vjp(
    ct: tuple[Operand | None, ...], x_spec: Spec, s: Operand, u: Operand, v: Operand, full_matrices: bool
) -> Operand:
    _check_differentiable(x_spec.shape, full_matrices)
    s_ct, u_ct, v_ct = ct
    if s_ct is not None and u_ct is None and v_ct is None:
        return _svdvals_vjp(s_ct, u, v)
    s_ct, u_ct, v_ct = [zeros_like(y) if each is None else each for each, y in zip(ct, (s, u, v), strict=True)]
    s, s_ct = _like(s, u), _like(s_ct, u)
    m, n = x_spec.shape[-2:]
    if m > n:
        return adjoint_of(_wide_vjp(s, v, u, s_ct, v_ct, u_ct))
    return _wide_vjp(s, u, v, s_ct, u_ct, v_ct)


def _like(s: Operand, u: Operand) -> Operand:
    """Singular values, which are real, in the dtype of vectors."""
    return cast(s, dtype=u.dtype) if u.dtype in COMPLEX else s


def _wide_vjp(s: Operand, u: Operand, v: Operand, s_ct: Operand, u_ct: Operand, v_ct: Operand) -> Operand:
    k, n = s.shape[-1], v.shape[-2]
    first, first_ct = _columns(v, None, k), _columns(v_ct, None, k)
    differences, inverse = reciprocal_differences(square(s)), expand_dims(safe_reciprocal(s), axis=-2)
    of_u = differences * matmul(u, u_ct, adjoint_a=True)
    within_v = matmul(first, first_ct, adjoint_a=True)
    of_v = differences * within_v
    of_u, of_v = of_u + adjoint_of(of_u), of_v + adjoint_of(of_v)
    inner = diag(s_ct) + of_u * expand_dims(s, axis=-2) + expand_dims(s, axis=-1) * of_v
    if u.dtype in COMPLEX:
        phases = diag_part(within_v)
        inner = inner + diag((conj(phases) - phases) * safe_reciprocal(s) * 0.5)
    gradient = matmul(u, matmul(inner, first, adjoint_b=True))
    if k == n:
        return gradient
    outside = first_ct - matmul(first, within_v)
    if v.shape[-1] > k:
        second, second_ct = _columns(v, k, None), _columns(v_ct, k, None)
        outside = outside - matmul(second, matmul(second_ct, first, adjoint_a=True))
    return gradient + matmul(u * inverse, outside, adjoint_b=True)


def _svd_jvp(
    t: Operand, x_spec: Spec, s: Operand, u: Operand, v: Operand, full_matrices: bool
) -> tuple[Operand, Operand, Operand]:
    _check_differentiable(x_spec.shape, full_matrices)
    m, n = x_spec.shape[-2:]
    if m > n:
        moved_s, moved_v, moved_u = _wide_jvp(adjoint_of(t), _like(s, u), v, u)
        return moved_s, moved_u, moved_v
    return _wide_jvp(t, _like(s, u), u, v)


def _wide_jvp(t: Operand, s: Operand, u: Operand, v: Operand) -> tuple[Operand, Operand, Operand]:
    k, n = s.shape[-1], v.shape[-2]
    first = _columns(v, None, k)
    within = matmul(u, matmul(t, first), adjoint_a=True)
    differences, inverse = reciprocal_differences(square(s)), safe_reciprocal(s)
    scaled = within * expand_dims(s, axis=-2)
    of_u = differences * (scaled + adjoint_of(scaled))
    scaled = expand_dims(s, axis=-1) * within
    of_v = differences * (scaled + adjoint_of(scaled))
    diagonal = diag_part(within)
    if u.dtype in COMPLEX:
        of_v = of_v + diag((conj(diagonal) - diagonal) * inverse * 0.5)
    moved = matmul(first, of_v)
    if k < n:
        leaving = matmul(t, u, adjoint_a=True)
        leaving = leaving - matmul(first, matmul(first, leaving, adjoint_a=True))
        moved = moved + leaving * expand_dims(inverse, axis=-2)
        if v.shape[-1] > k:
            second = _columns(v, k, None)
            turned = -matmul(first, matmul(moved, second, adjoint_a=True))
            moved = concat(moved, turned, axis=-1)
    return real(diagonal) if u.dtype in COMPLEX else diagonal, matmul(u, of_u), moved


def _separated(m: int, n: int, *lead: int) -> HostArray:
    """Matrices with singular values near 3, 2 and 1."""
    random = np.random.default_rng(m + n)
    return random.uniform(-0.3, 0.3, (*lead, m, n)) + np.eye(m, n) * np.arange(3.0, 3.0 - n, -1.0)


@op(
    infer=_svd_spec,
    vjp=_svd_vjp,
    jvp=_svd_jvp,
    batch=stacked,
    samples=lambda: [
        sample(_separated(2, 2)),
        sample(_separated(2, 3, 2)),
        sample(_separated(3, 2)),
        sample(_separated(1, 2), full_matrices=True),
        sample(_separated(3, 2), full_matrices=True),
        sample(np.zeros((0, 2))),
    ],
    results="s u v",
    tf=(by_hand("linalg.svd", "compute_uv chooses between two ops"),),
    workspace=lambda x, full_matrices: 6 * x.nbytes + sum(y.nbytes for y in _svd_spec(x, full_matrices=full_matrices)),
    work=lambda x, **_: 6 * x.size * min(x.shape[-2:]),
    traits=[Trait.PHASES],
    reach=Reach.MATRICES,
)
def svd(xp: ArrayModule, x: Array, *, full_matrices: bool = False) -> tuple[Array, Array, Array]:
    """Singular values s [..., k] in descending order and vectors U [..., m, k], V [..., n, k]: U diag(s) Vᴴ = x.

    x are matrices [..., m, n], and k is the smaller of m and n. `full_matrices`: U has m columns and V n. The gradient
    of complex vectors takes U's phases for fixed (V's if m > n). Values are NaN for matrices with NaN.

    Raises:
        UnimplementedError: A derivative with `full_matrices` of matrices with |m - n| > 1.
    """
    u, s, adjoint = decompositions.svd(xp, x, full_matrices=full_matrices)
    v = xp.swapaxes(adjoint, -1, -2)
    return s, u, v.conj() if x.dtype in COMPLEX else v


# ------------------------------------------------------------------------------------------------------- values alone
def _svdvals_spec(x: Spec) -> Spec:
    _check_matrices(x)
    return Spec.of((*x.shape[:-2], min(x.shape[-2:])), REAL_OF.get(x.dtype, x.dtype))


def _svdvals_vjp(ct: Operand, u: Operand, v: Operand) -> Operand:
    k = ct.shape[-1]
    return matmul(_columns(u, None, k) * expand_dims(_like(ct, u), axis=-2), _columns(v, None, k), adjoint_b=True)


def _svdvals_jvp(t: Operand, x: Operand, x_spec: Spec) -> Operand:
    _, u, v = ops.svd(x)
    diagonal = reduce_sum((conj(u) if x_spec.dtype in COMPLEX else u) * matmul(t, v), axis=-2)
    return real(diagonal) if x_spec.dtype in COMPLEX else diagonal


@op(
    infer=_svdvals_spec,
    vjp=lambda ct, x: _svdvals_vjp(ct, *ops.svd(x)[1:]),
    jvp=_svdvals_jvp,
    batch=stacked,
    samples=lambda: [sample(_separated(2, 2)), sample(_separated(2, 3, 2)), sample(np.zeros((0, 2)))],
    op_type="Svd",
    workspace=lambda x: 3 * x.nbytes,
    work=lambda x: 2 * x.size * min(x.shape[-2:]),
    reach=Reach.MATRICES,
)
def svdvals(xp: ArrayModule, x: Array) -> Array:
    """The singular values [..., min(m, n)] of matrices [..., m, n] in descending order, real.

    The gradient computes the singular vectors too. Values are NaN for matrices with NaN.
    """
    return decompositions.svdvals(xp, x)


# ----------------------------------------------------------------------------------------------------- pseudo-inverses
def _pinv_spec(x: Spec, rcond: Spec) -> Spec:
    _check_matrices(x)
    check_dtypes("Pinv", (rcond,), frozenset((REAL_OF.get(x.dtype, x.dtype),)))
    if broadcast(x.shape[:-2], rcond.shape) != x.shape[:-2]:
        raise InvalidArgumentError(
            f"rcond must have a shape that broadcasts to {shape_text(x.shape[:-2])}, found {shape_text(rcond.shape)}"
        )
    return x.with_shape((*x.shape[:-2], x.shape[-1], x.shape[-2]))


# Golub and Pereyra 1973, The differentiation of pseudo-inverses and nonlinear least squares problems whose variables
# separate, equation 4.12: dY = -Y dA Y + Y Yᴴ dAᴴ (1 - A Y) + (1 - Y A) dAᴴ Yᴴ Y.
def _pinv_vjp(ct: Operand, x: Operand, y: Operand) -> Operand:
    left = ct - matmul(matmul(ct, x), y)
    right = ct - matmul(y, matmul(x, ct))
    outer = matmul(matmul(y, y, adjoint_b=True), left) + matmul(right, matmul(y, y, adjoint_a=True))
    return adjoint_of(outer) - matmul(matmul(y, ct, adjoint_a=True), y, adjoint_b=True)


def _pinv_jvp(t: Operand, x: Operand, y: Operand) -> Operand:
    turned = adjoint_of(t)
    left = turned - matmul(matmul(turned, x), y)
    right = turned - matmul(y, matmul(x, turned))
    outer = matmul(matmul(y, y, adjoint_b=True), left) + matmul(right, matmul(y, y, adjoint_a=True))
    return outer - matmul(matmul(y, t), y)


def _batch_pinv(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    x, rcond = batch_all(args, batched)
    missing = len(x.shape) - 2 - len(rcond.shape)
    return record(x, reshape(rcond, shape=(rcond.shape[0], *(1,) * missing, *rcond.shape[1:])))


@op(
    infer=_pinv_spec,
    vjp=[_pinv_vjp, NON_DIFFERENTIABLE],
    jvp=[_pinv_jvp, NON_DIFFERENTIABLE],
    batch=_batch_pinv,
    samples=lambda: [
        sample(_separated(2, 3), np.array(1e-10)),
        sample(_separated(3, 2, 2), np.array([1e-10, 1e-6])),
        sample(np.eye(2), np.array(1e-10)),
        sample(np.zeros((0, 2)), np.array(1e-10)),
    ],
    like=(0, 0),
    tf=(by_hand("linalg.pinv", "the default of rcond depends on the shape and dtype"),),
    workspace=lambda x, rcond: 6 * x.nbytes,
    work=lambda x, rcond: 6 * x.size * min(x.shape[-2:]),
    reach=Reach.MATRICES,
)
def pinv(xp: ArrayModule, x: Array, rcond: Array) -> Array:
    """The Moore-Penrose inverses [..., n, m] of matrices [..., m, n].

    Singular values up to rcond [...] times the largest count as zero, in the gradient too: it is that of matrices of
    this rank, and exists also if singular values are equal.
    """
    if x.size == 0:
        return xp.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)
    u, s, adjoint = decompositions.svd(xp, x)
    cutoff = rcond[..., None] * s[..., :1]
    inverse = xp.where(s > cutoff, 1 / xp.where(s > cutoff, s, 1), xp.where(xp.isnan(s), s, 0)).astype(s.dtype)
    v = xp.swapaxes(adjoint, -1, -2)
    u = xp.swapaxes(u, -1, -2)
    return xp.matmul((v.conj() if x.dtype in COMPLEX else v) * inverse[..., None, :], u.conj())


@composite(
    samples=lambda: [
        sample(np.array([[1.0, 2.0], [2.0, 4.0]])),
        sample(_separated(2, 3, 2), tol=2.5),
    ],
    tf=(by_hand("linalg.matrix_rank", "tol may be a tensor"),),
)
def matrix_rank(x: Operand, *, tol: float = -1.0) -> Operand:
    """How many singular values of matrices [..., m, n] are above tol, int32 [...].

    A negative tol stands for the larger of m and n times the machine precision times the largest singular value.
    """
    s = svdvals(x)
    limit = reduce_max(s, axis=-1, keepdims=True) * (float(finfo(s.dtype).eps) * max(x.shape[-2:]))
    above = ops.greater(s, limit if tol < 0 else tol)
    return reduce_sum(cast(above, dtype=DTYPES["int32"]), axis=-1)
