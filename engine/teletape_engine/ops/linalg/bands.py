"""Matrices of a few diagonals: products and systems of tridiagonal ones, systems of triangular ones with bands."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape_engine.arrays import Array, ArrayModule, HostArray, linalg
from teletape_engine.catalogue.define import check_dtypes, on_gpu, op, sample
from teletape_engine.catalogue.families import batch_all, composite
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Reach, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.complex import conj
from teletape_engine.ops.linalg.matrix import SOLVABLE
from teletape_engine.ops.reduce import reduce_sum
from teletape_engine.ops.shapes.create import zeros_like
from teletape_engine.ops.shapes.pad import pad
from teletape_engine.ops.shapes.shape import broadcast_to, expand_dims, squeeze, stack
from teletape_engine.spec import COMPLEX, Spec, broadcast, shape_text


def _row(x: Operand, i: int) -> Operand:
    """Row i of matrices [..., n, m], as [..., m]."""
    return squeeze(ops.strided_slice(x, index=("...", (i, i + 1, None), (None, None, None))), axis=-2)


def _moved(x: Operand, step: int, axis: int) -> Operand:
    """x moved along an axis, -1 or -2: element i is the one that was at i + step; zero where there was none."""
    if abs(step) >= x.shape[axis]:
        return zeros_like(x)
    if not step:
        return x
    part = (step, None, None) if step > 0 else (None, step, None)
    index = ("...", part) if axis == -1 else ("...", part, (None, None, None))
    paddings = [(0, 0)] * len(x.shape)
    paddings[axis] = (0, step) if step > 0 else (-step, 0)
    return pad(ops.strided_slice(x, index=index), paddings=tuple(paddings))


def _check(op_type: str, diagonals: Spec, rhs: Spec) -> None:
    check_dtypes(op_type, (diagonals, rhs), SOLVABLE)
    fits = diagonals.ndim == rhs.ndim >= 2 and diagonals.shape[:-2] == rhs.shape[:-2]
    if not fits or diagonals.shape[-2] != 3 or diagonals.shape[-1] != rhs.shape[-2]:
        raise InvalidArgumentError(
            "diagonals [..., 3, n] and right sides [..., n, k] are needed, found "
            f"{shape_text(diagonals.shape)} and {shape_text(rhs.shape)}"
        )


def _diagonals(*lead: int) -> HostArray:
    random = np.random.default_rng(8)
    return random.uniform(-0.5, 0.5, (*lead, 3, 4)) + np.array([0.0, 2.0, 0.0])[:, None]


@composite(
    samples=lambda: [sample(_diagonals(), (4, 2)), sample(_diagonals(2), (2, 4, 1), seed=1)],
    op_type="TridiagonalMatMul",
    tf=(by_hand("linalg.tridiagonal_matmul", "the diagonals have three formats"),),
)
def tridiagonal_matmul(diagonals: Operand, rhs: Operand) -> Operand:
    """The products of tridiagonal matrices and matrices [..., n, k].

    diagonals [..., 3, n]: above the main one (the last element is ignored), the main one, below it (the first is
    ignored).
    """
    if diagonals.shape[-2:-1] != (3,) or len(rhs.shape) < 2 or diagonals.shape[-1] != rhs.shape[-2]:
        raise InvalidArgumentError(
            "diagonals [..., 3, n] and a matrix [..., n, k] are needed, found "
            f"{shape_text(diagonals.shape)} and {shape_text(rhs.shape)}"
        )
    above, main, below = (expand_dims(_row(diagonals, i), axis=-1) for i in range(3))
    return above * _moved(rhs, 1, -2) + main * rhs + below * _moved(rhs, -1, -2)


def _solve_spec(diagonals: Spec, rhs: Spec) -> Spec:
    _check("TridiagonalSolve", diagonals, rhs)
    return rhs


def _adjoint(diagonals: Operand) -> Operand:
    """The diagonals of the adjoint matrices."""
    above, main, below = (_row(diagonals, i) for i in range(3))
    turned = stack(_moved(below, 1, -1), main, _moved(above, -1, -1), axis=-2)
    return conj(turned) if turned.dtype in COMPLEX else turned


def _solve_vjp_diagonals(ct: Operand, diagonals: Operand, y: Operand) -> Operand:
    back = ops.tridiagonal_solve(_adjoint(diagonals), ct)
    y = conj(y) if y.dtype in COMPLEX else y
    columns = [_moved(y, 1, -2), y, _moved(y, -1, -2)]
    return -stack(*[reduce_sum(back * column, axis=-1) for column in columns], axis=-2)


@op(
    infer=_solve_spec,
    vjp=[_solve_vjp_diagonals, lambda ct, diagonals: ops.tridiagonal_solve(_adjoint(diagonals), ct)],
    jvp=[
        lambda t, diagonals, y: -ops.tridiagonal_solve(diagonals, tridiagonal_matmul(t, y)),
        lambda t, diagonals: ops.tridiagonal_solve(diagonals, t),
    ],
    batch=lambda record, args, batched, attrs: record(*batch_all(args, batched)),
    samples=lambda: [
        sample(_diagonals(), (4, 2)),
        sample(_diagonals(2), (2, 4, 1), seed=1),
        sample(np.array([[1.0], [2.0], [1.5]]), (1, 2)),
        sample(np.zeros((3, 0)), np.zeros((0, 2))),
    ],
    like=(0, 0),
    tf=(by_hand("linalg.tridiagonal_solve", "the diagonals have three formats"),),
    workspace=lambda diagonals, rhs: 2 * diagonals.nbytes + rhs.nbytes,
    traits=[Trait.SELECTS],
    reach=Reach.MATRICES,
)
def tridiagonal_solve(xp: ArrayModule, diagonals: Array, rhs: Array) -> Array:
    """The x with T x = rhs for tridiagonal matrices T and rhs [..., n, k], by elimination with row exchanges.

    diagonals [..., 3, n]: above the main one (the last element is ignored), the main one, below it (the first is
    ignored). NaN for singular matrices.
    """
    return linalg.tridiagonal_solve(xp, diagonals, rhs)


# ------------------------------------------------------------------------------------------ triangular with some bands
def _offsets(count: int, lower: bool) -> list[int]:
    """How far right of the main diagonal each of the bands is."""
    return [-i if lower else count - 1 - i for i in range(count)]


def _banded_spec(bands: Spec, rhs: Spec, *, lower: bool, adjoint: bool) -> Spec:
    check_dtypes("BandedTriangularSolve", (bands, rhs), SOLVABLE)
    fits = bands.ndim == rhs.ndim >= 2 and bands.shape[:-2] == rhs.shape[:-2]
    if not fits or bands.shape[-1] != rhs.shape[-2] or not 1 <= bands.shape[-2] <= max(bands.shape[-1], 1):
        raise InvalidArgumentError(
            "bands [..., b, n] with 1 <= b <= n and right sides [..., n, k] are needed, found "
            f"{shape_text(bands.shape)} and {shape_text(rhs.shape)}"
        )
    return rhs


def _banded_matmul(bands: Operand, x: Operand, lower: bool, adjoint: bool) -> Operand:
    """The products of the matrices, or their adjoints, and x [..., n, k]."""
    total: Any = None
    for i, offset in enumerate(_offsets(bands.shape[-2], lower)):
        band = expand_dims(_row(bands, i), axis=-1)
        if adjoint:
            part = _moved((conj(band) if band.dtype in COMPLEX else band) * x, -offset, -2)
        else:
            part = band * _moved(x, offset, -2)
        total = part if total is None else total + part
    return total


def _banded_vjp_bands(ct: Operand, bands: Operand, y: Operand, lower: bool, adjoint: bool) -> Operand:
    back = ops.banded_solve(bands, ct, lower=lower, adjoint=not adjoint)
    rows, columns = (y, back) if adjoint else (back, y)
    columns = conj(columns) if columns.dtype in COMPLEX else columns
    offsets = _offsets(bands.shape[-2], lower)
    return -stack(*[reduce_sum(rows * _moved(columns, offset, -2), axis=-1) for offset in offsets], axis=-2)


def _banded_jvp_bands(t: Operand, bands: Operand, y: Operand, lower: bool, adjoint: bool) -> Operand:
    return -ops.banded_solve(bands, _banded_matmul(t, y, lower, adjoint), lower=lower, adjoint=adjoint)


@op(
    infer=_banded_spec,
    vjp=[
        _banded_vjp_bands,
        lambda ct, bands, lower, adjoint: ops.banded_solve(bands, ct, lower=lower, adjoint=not adjoint),
    ],
    jvp=[
        _banded_jvp_bands,
        lambda t, bands, lower, adjoint: ops.banded_solve(bands, t, lower=lower, adjoint=adjoint),
    ],
    batch=lambda record, args, batched, attrs: record(*batch_all(args, batched), **attrs),
    samples=lambda: [
        sample(_diagonals()[1:], (4, 2)),
        sample(_diagonals(2)[:, :2], (2, 4, 1), lower=False, seed=1),
        sample(_diagonals()[1:], (4, 1), adjoint=True, seed=2),
        sample(_diagonals()[:2], (4, 2), lower=False, adjoint=True, seed=3),
        sample(np.array([[2.0]]), (1, 2), seed=4),
        sample(np.zeros((1, 0)), np.zeros((0, 2))),
    ],
    like=(0, 0),
    workspace=lambda bands, rhs, **_: 2 * bands.nbytes + rhs.nbytes,
    work=lambda bands, rhs, **_: rhs.size * bands.shape[-2],
    traits=[Trait.SELECTS],
    reach=Reach.MATRICES,
)
@on_gpu(down="bands and right sides", up="the solutions, which the host computes")
def banded_solve(xp: ArrayModule, bands: Array, rhs: Array, *, lower: bool = True, adjoint: bool = False) -> Array:
    """banded_triangular_solve with equal leading axes and no more than n bands.

    Raises:
        InvalidArgumentError: A matrix is singular.
    """
    return linalg.banded_solve(xp, bands, rhs, lower=lower, adjoint=adjoint)


@composite(
    samples=lambda: [
        sample(_diagonals()[1:], (4, 2)),
        sample(_diagonals(2)[:, :2], (4, 1), lower=False, seed=1),
        sample(_diagonals()[1:], (3, 4, 1), adjoint=True, seed=2),
    ],
    op_type="BandedTriangularSolve",
    tf="linalg.banded_triangular_solve",
)
def banded_triangular_solve(bands: Operand, rhs: Operand, *, lower: bool = True, adjoint: bool = False) -> Operand:
    """The x with matrix x = rhs, or matrixᴴ x = rhs if `adjoint`, for triangular matrices of b diagonals.

    bands [..., b, n]: the main diagonal first and each lower one below it, or if not `lower` the highest first and the
    main one last. Element i of a band is that of row i of the matrix; those outside of it are ignored. rhs [..., n, k];
    leading axes broadcast. The matrices are not written out, and the host computes the result of a GPU too. NaN in a
    band goes into the result.

    Raises:
        InvalidArgumentError: A matrix is singular.
    """
    if len(bands.shape) < 2 or len(rhs.shape) < 2 or not bands.shape[-2]:
        raise InvalidArgumentError(
            "bands [..., b, n] with 1 <= b and right sides [..., n, k] are needed, found "
            f"{shape_text(bands.shape)} and {shape_text(rhs.shape)}"
        )
    surplus = bands.shape[-2] - max(bands.shape[-1], 1)
    if surplus > 0:
        within = (None, -surplus, None) if lower else (surplus, None, None)
        bands = ops.strided_slice(bands, index=("...", within, (None, None, None)))
    lead = broadcast(bands.shape[:-2], rhs.shape[:-2])
    bands, rhs = (x if x.shape[:-2] == lead else broadcast_to(x, shape=(*lead, *x.shape[-2:])) for x in (bands, rhs))
    return banded_solve(bands, rhs, lower=lower, adjoint=adjoint)
