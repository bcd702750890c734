"""Decompositions of stacked matrices [..., m, n] into several factors, which one result holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape_engine.arrays import decompositions
from teletape_engine.catalogue.define import check_dtypes, on_gpu, op, sample
from teletape_engine.catalogue.families import batch_all
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Reach
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.errors import InvalidArgumentError, UnimplementedError
from teletape_engine.ops.elementwise.complex import real
from teletape_engine.ops.linalg.diagonal import band_part, diag, diag_part, set_diag, stacked
from teletape_engine.ops.linalg.eigen import check_square, real_part
from teletape_engine.ops.linalg.matrix import SOLVABLE, adjoint_of
from teletape_engine.ops.linalg.products import matmul
from teletape_engine.ops.shapes.cast import cast
from teletape_engine.ops.shapes.create import ones_like, zeros_like
from teletape_engine.ops.shapes.shape import concat, squeeze
from teletape_engine.spec import COMPLEX, DTYPES, INDEX, Spec, shape_text

_UPPER = {"num_lower": 0, "num_upper": -1}


def _qr_spec(x: Spec, *, full_matrices: bool) -> Spec:
    check_dtypes("Qr", (x,), SOLVABLE)
    if x.ndim < 2:
        raise InvalidArgumentError(f"Input tensor 0 must have rank >= 2, got {x.ndim}")
    m, n = x.shape[-2:]
    if m < n:
        raise InvalidArgumentError(
            f"a matrix with at least as many rows as columns is needed, found {shape_text(x.shape)}"
        )
    return x.with_shape((*x.shape[:-2], m + n, m if full_matrices else n))


def _parts(x: Any, rows: int) -> tuple[Any, Any]:
    """The upper rows, and the lower ones transposed: Q and R, or their cotangents."""
    upper = ops.strided_slice(x, index=("...", (None, rows, None), (None, None, None)))
    return upper, adjoint_of(ops.strided_slice(x, index=("...", (rows, None, None), (None, None, None))))


def _strictly_lower(x: Any) -> Any:
    return x - band_part(x, **_UPPER)


def _divided(x: Any, r: Any, *, adjoint: bool = False) -> Any:
    """x R⁻¹, or x R⁻ᵀ if `adjoint`."""
    return adjoint_of(ops.triangular_solve(r, adjoint_of(x), lower=False, adjoint=not adjoint))


def _check_unique(x_spec: Spec, full_matrices: bool) -> None:
    """The columns that complete Q to a square matrix do not follow from x: they have no derivative."""
    m, n = x_spec.shape[-2:]
    if full_matrices and m > n:
        raise UnimplementedError(
            f"qr: no derivative exists with full_matrices of more rows than columns, found {m} and {n}"
        )


# Walter and Lehmann 2018, Algorithmic differentiation of linear algebra functions. With X = Qᵀ dA R⁻¹ and Ω its
# strictly lower triangle minus its adjoint, with X's imaginary diagonal: dQ = dA R⁻¹ + Q (Ω - X), dR = (X - Ω) R.
def _qr_vjp(ct: Any, x_spec: Spec, y: Any, full_matrices: bool) -> Any:
    _check_unique(x_spec, full_matrices)
    (q, r), (q_ct, r_ct) = (_parts(each, x_spec.shape[-2]) for each in (y, ct))
    inner = matmul(r, band_part(r_ct, **_UPPER), adjoint_b=True) - matmul(q_ct, q, adjoint_a=True)
    lower = _strictly_lower(inner)
    filled = lower + adjoint_of(lower) + diag(real_part(diag_part(inner)))
    return _divided(q_ct + matmul(q, filled), r, adjoint=True)


def _qr_jvp(t: Any, x_spec: Spec, y: Any, full_matrices: bool) -> Any:
    _check_unique(x_spec, full_matrices)
    q, r = _parts(y, x_spec.shape[-2])
    scaled = _divided(t, r)
    within = matmul(q, scaled, adjoint_a=True)
    lower = _strictly_lower(within)
    upper = within - lower + adjoint_of(lower)
    if t.dtype in COMPLEX:  # R's diagonal is real
        upper = set_diag(upper, real_part(diag_part(within)))
    return concat(scaled - matmul(q, upper), adjoint_of(matmul(upper, r)), axis=-2)


@op(
    infer=_qr_spec,
    vjp=_qr_vjp,
    jvp=_qr_jvp,
    batch=stacked,
    samples=[
        sample((3, 3)),
        sample((4, 2)),
        sample((2, 3, 2), seed=1),
        sample((3, 3), full_matrices=True, seed=2),
    ],
    op_type="Qr",
    tf=(by_hand("linalg.qr", "an op has one result"),),
    workspace=lambda x, *, full_matrices: 4 * x.nbytes * (x.shape[-2] // max(x.shape[-1], 1) if full_matrices else 1),
    work=lambda x, *, full_matrices: x.size * (x.shape[-2] if full_matrices else x.shape[-1]),
    reach=Reach.MATRICES,
)
def qr(xp: Any, x: Any, *, full_matrices: bool = False) -> Any:
    """Q R = x with orthonormal columns Q and upper triangular R, for matrices [..., m, n] with m >= n.

    The result [..., m + n, n] has the rows of Q above those of Rᴴ. With `full_matrices` Q is [m, m] and R [m, n]: the
    result is [..., m + n, m], and has no derivative if m > n.
    """
    q, r = xp.linalg.qr(x, mode="complete" if full_matrices else "reduced")
    r = xp.swapaxes(r, -1, -2)
    return xp.concatenate([q, r.conj() if x.dtype in COMPLEX else r], axis=-2)


# --------------------------------------------------------------------------------------------------- LU factorisation
def _lu_spec(x: Spec) -> Spec:
    check_square("Lu", x)
    n = x.shape[-1]
    return x.with_shape((*x.shape[:-2], n + 1, n))


def _factors(x: Any) -> tuple[Any, Any]:
    """L with ones on its diagonal, and U, from the matrix that holds both."""
    upper = band_part(x, **_UPPER)
    lower = x - upper
    return set_diag(lower, ones_like(diag_part(x))), upper


def _order(y: Any) -> Any:
    """The permutations [..., n] of the first row."""
    whole = (None, None, None)
    first = squeeze(ops.strided_slice(y, index=("...", (None, 1, None), whole)), axis=-2)
    return cast(real(first) if y.dtype in COMPLEX else first, dtype=DTYPES["int32"])


def _lower_and_rest(y: Any) -> Any:
    return ops.strided_slice(y, index=("...", (1, None, None), (None, None, None)))


# With X = L⁻¹ P dA U⁻¹: dL = L times X's strictly lower triangle, dU = X's upper triangle times U.
def _lu_vjp(ct: Any, y: Any) -> Any:
    lower, upper = _factors(_lower_and_rest(y))
    ct = _lower_and_rest(ct)
    of_lower = _strictly_lower(matmul(lower, _strictly_lower(ct), adjoint_a=True))
    of_upper = band_part(matmul(band_part(ct, **_UPPER), upper, adjoint_b=True), **_UPPER)
    left = ops.triangular_solve(lower, of_lower + of_upper, lower=True, adjoint=True)
    permuted = adjoint_of(ops.triangular_solve(upper, adjoint_of(left), lower=False))
    return ops.permute_rows(permuted, _order(y), inverse=True)


def _lu_jvp(t: Any, y: Any) -> Any:
    lower, upper = _factors(_lower_and_rest(y))
    left = ops.triangular_solve(lower, ops.permute_rows(t, _order(y)), lower=True)
    within = adjoint_of(ops.triangular_solve(upper, adjoint_of(left), lower=False, adjoint=True))
    strict = _strictly_lower(within)
    zeros = zeros_like(ops.strided_slice(y, index=("...", (None, 1, None), (None, None, None))))
    return concat(zeros, matmul(lower, strict) + matmul(within - strict, upper), axis=-2)


def _pivoted(*lead: int) -> Any:
    """Matrices whose largest elements in the first columns are not in the first rows."""
    random = np.random.default_rng(7)
    return random.uniform(-0.4, 0.4, (*lead, 3, 3)) + np.eye(3)[[1, 2, 0]] * 2


@op(
    infer=_lu_spec,
    vjp=_lu_vjp,
    jvp=_lu_jvp,
    batch=stacked,
    samples=lambda: [sample(_pivoted()), sample(_pivoted(2)), sample(np.zeros((0, 0)))],
    tf=(by_hand("linalg.lu", "an op has one result"),),
    workspace=lambda x: 2 * x.nbytes,
    work=lambda x: x.size * x.shape[-1] // 3,
    reach=Reach.MATRICES,
)
@on_gpu(waits="whether a matrix is singular", down="the exchanges of rows", up="them as permutations")
def lu(xp: Any, x: Any) -> Any:
    """The LU factors of matrices [..., n, n] with rows exchanged (partial pivoting).

    The result [..., 1 + n, n] has the permutation p as its first row, and below it a matrix with U in its upper
    triangle and L below the diagonal; L has ones on its diagonal. Row i of L U is row p[i] of x.

    Raises:
        InvalidArgumentError: A matrix is singular.
    """
    factors, order = decompositions.lu(xp, x)
    return xp.concatenate([order[..., None, :].astype(x.dtype), factors], axis=-2)


def _permute_spec(x: Spec, order: Spec, *, inverse: bool) -> Spec:
    check_dtypes("GatherNd", (order,), INDEX)
    if x.ndim < 2 or order.shape != x.shape[:-1]:
        raise InvalidArgumentError(
            f"the order of the rows of {shape_text(x.shape)} must have shape {shape_text(x.shape[:-1])}, found "
            f"{shape_text(order.shape)}"
        )
    return x


def _batch_permute(record: Any, args: Any, batched: Any, attrs: Any) -> Any:
    return record(*batch_all(args, batched), **attrs)


@op(
    infer=_permute_spec,
    vjp=[lambda ct, order, inverse: ops.permute_rows(ct, order, inverse=not inverse), NON_DIFFERENTIABLE],
    jvp=[lambda t, order, inverse: ops.permute_rows(t, order, inverse=inverse), NON_DIFFERENTIABLE],
    batch=_batch_permute,
    samples=lambda: [
        sample((3, 2), np.array([2, 0, 1], np.int32)),
        sample((1, 3, 1), np.array([[2, 0, 1]], np.int64), inverse=True, seed=1),
    ],
    refuses=["order"],
    integers=["order"],
    reach=Reach.MOVES,
)
@on_gpu(waits="whether they are permutations")
def permute_rows(xp: Any, x: Any, order: Any, *, inverse: bool = False) -> Any:
    """The rows of matrices [..., n, m] in the order [..., n] of a permutation, or put back from it if `inverse`.

    Raises:
        InvalidArgumentError: An order is not a permutation of 0 to n - 1.
    """
    n = x.shape[-2]
    if not bool(xp.all(xp.sort(order, axis=-1) == xp.arange(n))):
        raise InvalidArgumentError(f"the order must be a permutation of 0 to {n - 1}")
    places = xp.argsort(order, axis=-1) if inverse else order
    return xp.take_along_axis(x, places[..., None], axis=-2)
