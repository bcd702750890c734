"""Decompositions of stacked matrices [..., m, n] into several factors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from teletape_engine.arrays import Array, ArrayModule, HostArray, decompositions
from teletape_engine.catalogue.attributes import Attrs
from teletape_engine.catalogue.define import check_dtypes, on_gpu, op, sample
from teletape_engine.catalogue.families import batch_all
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op, Reach
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.catalogue.signature import Conversion, by_hand, function
from teletape_engine.errors import InvalidArgumentError, UnimplementedError
from teletape_engine.ops.linalg.diagonal import band_part, diag, diag_part, set_diag, stacked
from teletape_engine.ops.linalg.eigen import check_square, real_part
from teletape_engine.ops.linalg.matrix import SOLVABLE, adjoint_of
from teletape_engine.ops.linalg.products import matmul
from teletape_engine.ops.shapes.create import ones_like, zeros_like
from teletape_engine.ops.shapes.shape import concat
from teletape_engine.spec import COMPLEX, DTYPES, INDEX, DType, Spec, shape_text

_UPPER = {"num_lower": 0, "num_upper": -1}


def _qr_spec(x: Spec, *, full_matrices: bool) -> tuple[Spec, Spec]:
    check_dtypes("Qr", (x,), SOLVABLE)
    if x.ndim < 2:
        raise InvalidArgumentError(f"Input tensor 0 must have rank >= 2, got {x.ndim}")
    m, n = x.shape[-2:]
    k = m if full_matrices else min(m, n)
    return x.with_shape((*x.shape[:-2], m, k)), x.with_shape((*x.shape[:-2], k, n))


def _columns(x: Operand, first: int | None, end: int | None = None) -> Operand:
    return ops.strided_slice(x, index=("...", (first, end, None)))


def _strictly_lower(x: Operand) -> Operand:
    return x - band_part(x, **_UPPER)


def _divided(x: Operand, r: Operand, *, adjoint: bool = False) -> Operand:
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
# strictly lower triangle minus its adjoint, with X's imaginary diagonal: dQ = dA R⁻¹ + Q (Ω - X), dR = (X - Ω) R. Of
# a wide matrix [A, B] these are the factors of A, and R goes on with Qᴴ B.
def _qr_vjp(ct: tuple[Operand | None, ...], x_spec: Spec, q: Operand, r: Operand, full_matrices: bool) -> Operand:
    _check_unique(x_spec, full_matrices)
    q_ct, r_ct = (zeros_like(factor) if each is None else each for each, factor in zip(ct, (q, r), strict=True))
    m, n = x_spec.shape[-2:]
    if m < n:
        left, right = _columns(r_ct, None, m), _columns(r_ct, m)
        q_ct = q_ct + matmul(q, matmul(_columns(r, m), right, adjoint_b=True))
        return concat(_tall_qr_vjp(q_ct, left, q, _columns(r, None, m)), matmul(q, right), axis=-1)
    return _tall_qr_vjp(q_ct, r_ct, q, r)


def _tall_qr_vjp(q_ct: Operand, r_ct: Operand, q: Operand, r: Operand) -> Operand:
    inner = matmul(r, band_part(r_ct, **_UPPER), adjoint_b=True) - matmul(q_ct, q, adjoint_a=True)
    lower = _strictly_lower(inner)
    filled = lower + adjoint_of(lower) + diag(real_part(diag_part(inner)))
    return _divided(q_ct + matmul(q, filled), r, adjoint=True)


def _qr_jvp(t: Operand, x_spec: Spec, q: Operand, r: Operand, full_matrices: bool) -> tuple[Operand, Operand]:
    _check_unique(x_spec, full_matrices)
    m, n = x_spec.shape[-2:]
    if m < n:
        q_t, r_t = _tall_qr_jvp(_columns(t, None, m), q, _columns(r, None, m))
        others = matmul(matmul(q_t, q, adjoint_a=True), _columns(r, m)) + matmul(q, _columns(t, m), adjoint_a=True)
        return q_t, concat(r_t, others, axis=-1)
    return _tall_qr_jvp(t, q, r)


def _tall_qr_jvp(t: Operand, q: Operand, r: Operand) -> tuple[Operand, Operand]:
    scaled = _divided(t, r)
    within = matmul(q, scaled, adjoint_a=True)
    lower = _strictly_lower(within)
    upper = within - lower + adjoint_of(lower)
    if t.dtype in COMPLEX:  # R's diagonal is real
        upper = set_diag(upper, real_part(diag_part(within)))
    return scaled - matmul(q, upper), matmul(upper, r)


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
        sample((2, 2, 4), seed=3),
    ],
    op_type="Qr",
    results="q r",
    tf=(by_hand("linalg.qr", "float16 is computed in float32, and so are its derivatives"),),
    workspace=lambda x, *, full_matrices: 4 * x.nbytes * (x.shape[-2] // max(x.shape[-1], 1) if full_matrices else 1),
    work=lambda x, *, full_matrices: x.size * (x.shape[-2] if full_matrices else x.shape[-1]),
    reach=Reach.MATRICES,
)
def qr(xp: ArrayModule, x: Array, *, full_matrices: bool = False) -> tuple[Array, Array]:
    """Orthonormal columns Q [..., m, k] and upper triangular R [..., k, n] of matrices [..., m, n]: Q R = x.

    k is the smaller of m and n; with `full_matrices` it is m, and there is no derivative if m > n.
    """
    m, n = x.shape[-2:]
    q, r = xp.linalg.qr(x[..., :m] if m < n else x, mode="complete" if full_matrices else "reduced")
    if m < n:
        r = xp.concatenate([r, xp.matmul(xp.swapaxes(q, -1, -2).conj(), x[..., m:])], axis=-1)
    return q, r


# --------------------------------------------------------------------------------------------------- LU factorisation
def _lu_spec(x: Spec, *, index_type: DType) -> tuple[Spec, Spec]:
    if index_type not in INDEX:
        raise InvalidArgumentError(
            f"Value for attr 'output_idx_type' of {index_type.name} is not in the list of allowed values: int32, int64"
        )
    check_square("Lu", x)
    return x, Spec.of(x.shape[:-1], index_type)


def _factors(x: Operand) -> tuple[Operand, Operand]:
    """L with ones on its diagonal, and U, from the matrix that holds both."""
    upper = band_part(x, **_UPPER)
    lower = x - upper
    return set_diag(lower, ones_like(diag_part(x))), upper


# With X = L⁻¹ P dA U⁻¹: dL = L times X's strictly lower triangle, dU = X's upper triangle times U.
def _lu_vjp(ct: tuple[Operand, None], lu: Operand, p: Operand) -> Operand:
    lower, upper = _factors(lu)
    lu_ct, _ = ct
    of_lower = _strictly_lower(matmul(lower, _strictly_lower(lu_ct), adjoint_a=True))
    of_upper = band_part(matmul(band_part(lu_ct, **_UPPER), upper, adjoint_b=True), **_UPPER)
    left = ops.triangular_solve(lower, of_lower + of_upper, lower=True, adjoint=True)
    permuted = adjoint_of(ops.triangular_solve(upper, adjoint_of(left), lower=False))
    return ops.permute_rows(permuted, p, inverse=True)


def _lu_jvp(t: Operand, lu: Operand, p: Operand) -> tuple[Operand, None]:
    lower, upper = _factors(lu)
    left = ops.triangular_solve(lower, ops.permute_rows(t, p), lower=True)
    within = adjoint_of(ops.triangular_solve(upper, adjoint_of(left), lower=False, adjoint=True))
    strict = _strictly_lower(within)
    return matmul(lower, strict) + matmul(within - strict, upper), None


def _pivoted(*lead: int) -> HostArray:
    """Matrices whose largest elements in the first columns are not in the first rows."""
    random = np.random.default_rng(7)
    return random.uniform(-0.4, 0.4, (*lead, 3, 3)) + np.eye(3)[[1, 2, 0]] * 2


@op(
    infer=_lu_spec,
    vjp=_lu_vjp,
    jvp=_lu_jvp,
    batch=stacked,
    samples=lambda: [sample(_pivoted()), sample(_pivoted(2)), sample(np.zeros((0, 0)))],
    results="lu p",
    tf=(
        function(
            "linalg.lu",
            Conversion.TENSOR("input"),
            Conversion.DTYPE("output_idx_type", DTYPES["int32"], to="index_type"),
            named="Lu",
        ),
    ),
    workspace=lambda x, **_: 2 * x.nbytes,
    work=lambda x, **_: x.size * x.shape[-1] // 3,
    reach=Reach.MATRICES,
)
@on_gpu(waits="whether a matrix is singular", down="the exchanges of rows", up="them as permutations")
def lu(xp: ArrayModule, x: Array, *, index_type: DType = DTYPES["int32"]) -> tuple[Array, Array]:
    """The LU factors [..., n, n] of matrices with rows exchanged (partial pivoting), and the permutations p [..., n].

    U is in the upper triangle and L below the diagonal; L has ones on its diagonal. Row i of L U is row p[i] of x.

    Raises:
        InvalidArgumentError: A matrix is singular.
    """
    factors, order = decompositions.lu(xp, x)
    return factors, order.astype(index_type)


def _permute_spec(x: Spec, order: Spec, *, inverse: bool) -> Spec:
    check_dtypes("GatherNd", (order,), INDEX)
    if x.ndim < 2 or order.shape != x.shape[:-1]:
        raise InvalidArgumentError(
            f"the order of the rows of {shape_text(x.shape)} must have shape {shape_text(x.shape[:-1])}, found "
            f"{shape_text(order.shape)}"
        )
    return x


def _batch_permute(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
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
def permute_rows(xp: ArrayModule, x: Array, order: Array, *, inverse: bool = False) -> Array:
    """The rows of matrices [..., n, m] in the order [..., n] of a permutation, or put back from it if `inverse`.

    Raises:
        InvalidArgumentError: An order is not a permutation of 0 to n - 1.
    """
    n = x.shape[-2]
    if not bool(xp.all(xp.sort(order, axis=-1) == xp.arange(n))):
        raise InvalidArgumentError(f"the order must be a permutation of 0 to {n - 1}")
    places = xp.argsort(order, axis=-1) if inverse else order
    return xp.take_along_axis(x, places[..., None], axis=-2)
