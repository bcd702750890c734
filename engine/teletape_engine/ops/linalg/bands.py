"""Matrices of a few diagonals: products and systems of tridiagonal ones, systems of triangular ones with bands."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape_engine.arrays import linalg
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.families import batch_all, composite
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Reach, Trait
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.complex import conj
from teletape_engine.ops.linalg.diagonal import diag
from teletape_engine.ops.linalg.matrix import SOLVABLE, triangular_solve
from teletape_engine.ops.reduce import reduce_sum
from teletape_engine.ops.shapes.pad import pad
from teletape_engine.ops.shapes.shape import expand_dims, squeeze, stack
from teletape_engine.spec import COMPLEX, Spec, shape_text


def _row(x: Any, i: int) -> Any:
    """Row i of matrices [..., n, m], as [..., m]."""
    return squeeze(ops.strided_slice(x, index=("...", (i, i + 1, None), (None, None, None))), axis=-2)


def _moved(x: Any, step: int, axis: int) -> Any:
    """x moved along an axis, -1 or -2: element i is the one that was at i + step, 1 or -1; zero at the end."""
    if not x.shape[axis]:
        return x
    part = (1, None, None) if step > 0 else (None, -1, None)
    index = ("...", part) if axis == -1 else ("...", part, (None, None, None))
    width = (0, 1) if step > 0 else (1, 0)
    paddings = [(0, 0)] * len(x.shape)
    paddings[axis] = width
    return pad(ops.strided_slice(x, index=index), paddings=tuple(paddings))


def _check(op_type: str, diagonals: Spec, rhs: Spec) -> None:
    check_dtypes(op_type, (diagonals, rhs), SOLVABLE)
    fits = diagonals.ndim == rhs.ndim >= 2 and diagonals.shape[:-2] == rhs.shape[:-2]
    if not fits or diagonals.shape[-2] != 3 or diagonals.shape[-1] != rhs.shape[-2]:
        raise InvalidArgumentError(
            "diagonals [..., 3, n] and right sides [..., n, k] are needed, found "
            f"{shape_text(diagonals.shape)} and {shape_text(rhs.shape)}"
        )


def _diagonals(*lead: int) -> Any:
    random = np.random.default_rng(8)
    return random.uniform(-0.5, 0.5, (*lead, 3, 4)) + np.array([0.0, 2.0, 0.0])[:, None]


@composite(
    samples=lambda: [sample(_diagonals(), (4, 2)), sample(_diagonals(2), (2, 4, 1), seed=1)],
    op_type="TridiagonalMatMul",
    tf=(by_hand("linalg.tridiagonal_matmul", "the diagonals have three formats"),),
)
def tridiagonal_matmul(diagonals: Any, rhs: Any) -> Any:
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


def _adjoint(diagonals: Any) -> Any:
    """The diagonals of the adjoint matrices."""
    above, main, below = (_row(diagonals, i) for i in range(3))
    turned = stack(_moved(below, 1, -1), main, _moved(above, -1, -1), axis=-2)
    return conj(turned) if turned.dtype in COMPLEX else turned


def _solve_vjp_diagonals(ct: Any, diagonals: Any, y: Any) -> Any:
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
def tridiagonal_solve(xp: Any, diagonals: Any, rhs: Any) -> Any:
    """The x with T x = rhs for tridiagonal matrices T and rhs [..., n, k], by elimination with row exchanges.

    diagonals [..., 3, n]: above the main one (the last element is ignored), the main one, below it (the first is
    ignored). NaN for singular matrices.
    """
    return linalg.tridiagonal_solve(xp, diagonals, rhs)


@composite(
    samples=lambda: [
        sample(_diagonals()[1:], (4, 2)),
        sample(_diagonals(2)[:, :2], (4, 1), lower=False, seed=1),
        sample(_diagonals()[1:], (4, 1), adjoint=True, seed=2),
    ],
    op_type="BandedTriangularSolve",
    tf="linalg.banded_triangular_solve",
)
def banded_triangular_solve(bands: Any, rhs: Any, *, lower: bool = True, adjoint: bool = False) -> Any:
    """The x with matrix x = rhs, or matrixᴴ x = rhs if `adjoint`, for triangular matrices of b diagonals.

    bands [..., b, n]: the main diagonal first and each lower one below it, or if not `lower` the highest first and the
    main one last. Element i of a band is that of row i of the matrix. rhs [..., n, k]; leading axes broadcast.
    """
    if len(bands.shape) < 2 or not 1 <= bands.shape[-2] <= max(bands.shape[-1], 1):
        raise InvalidArgumentError(
            f"bands must have shape [..., b, n] with 1 <= b <= n, found {shape_text(bands.shape)}"
        )
    count = bands.shape[-2]
    matrix = None
    for i in range(count):
        k = -i if lower else count - 1 - i
        within = (-k, None, None) if k < 0 else (None, bands.shape[-1] - k, None)
        band = diag(ops.strided_slice(_row(bands, i), index=("...", within)), k=k)
        matrix = band if matrix is None else matrix + band
    return triangular_solve(matrix, rhs, lower=lower, adjoint=adjoint)
