"""Functions of stacked square matrices [..., n, n]: exponential, logarithm and square root.

The derivative of f at A along E is the upper right block of f of the block matrix [[A, E], [0, A]] (Higham 2008,
Functions of Matrices, theorem 3.6); the gradient is the derivative at Aᴴ along the cotangent. It is linear in E, which
is divided by its largest element first: f of the block matrix has errors as large as the block matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from teletape_engine.arrays import Array, ArrayModule, HostArray, matrix_functions
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import OnGpu, Op, Reach
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.complex import abs_
from teletape_engine.ops.elementwise.logic import equal, where
from teletape_engine.ops.linalg.diagonal import stacked
from teletape_engine.ops.linalg.matrix import SOLVABLE, adjoint_of
from teletape_engine.ops.reduce import reduce_max
from teletape_engine.ops.shapes.cast import cast, stop_gradient
from teletape_engine.ops.shapes.create import ones_like, zeros_like
from teletape_engine.ops.shapes.shape import concat
from teletape_engine.spec import COMPLEX, DType, Spec


def _derivative(function: Op, x: Operand, direction: Operand) -> Operand:
    n, size = x.shape[-1], _largest(direction)
    above, below = concat(x, direction / size, axis=-1), concat(zeros_like(x), x, axis=-1)
    whole = function(concat(above, below, axis=-2))
    return ops.strided_slice(whole, index=("...", (None, n, None), (n, None, None))) * size


def _largest(x: Operand) -> Operand:
    """The largest magnitude of each matrix [..., 1, 1], 1 of zeros; a constant to derivatives, in the dtype of x."""
    size = reduce_max(abs_(x), axis=(-2, -1), keepdims=True)
    size = stop_gradient(where(equal(size, 0.0), ones_like(size), size))
    return cast(size, dtype=x.dtype) if x.dtype in COMPLEX else size


_NO_SCHUR: Final = OnGpu(
    missing="its library has no Schur decomposition",
    instead="take eigh of Hermitian matrices and apply the function to the eigenvalues, or use a session on the CPU",
)


def _matrix_function(
    name: str,
    op_type: str,
    tf: Any,
    samples: Any,
    doc: str,
    device: OnGpu,
    dtypes: frozenset[DType] = SOLVABLE,
    work: int = 20,
) -> Op:
    """An op of square matrices, by the function of its name in arrays.matrix_functions."""
    kernel: Callable[..., Any] = getattr(matrix_functions, name)

    def infer(x: Spec) -> Spec:
        check_dtypes(op_type, (x,), dtypes)
        if x.ndim < 2:
            raise InvalidArgumentError(f"Input tensor 0 must have rank >= 2, got {x.ndim}")
        if x.shape[-1] != x.shape[-2]:
            raise InvalidArgumentError("Input matrix must be square.")
        return x

    def forward(xp: ArrayModule, x: Array) -> Array:
        return kernel(xp, x)

    forward.__name__, forward.__doc__ = name, doc
    forward.__dict__["on_gpu"] = device
    return op(
        infer=infer,
        vjp=lambda ct, x: _derivative(getattr(ops, name), adjoint_of(x), ct),
        jvp=lambda t, x: _derivative(getattr(ops, name), x, t),
        batch=stacked,
        samples=samples,
        op_type=op_type,
        tf=tf,
        args="input",
        workspace=lambda x: 8 * x.nbytes,
        work=lambda x: work * x.size * x.shape[-1],
        reach=Reach.MATRICES,
    )(forward)


def _near_identity(*lead: int) -> HostArray:
    """Matrices without symmetry, whose eigenvalues are away from the negative numbers."""
    return np.random.default_rng(5).uniform(-0.4, 0.4, (*lead, 2, 2)) + np.diag([1.5, 2.5])


expm = _matrix_function(
    "expm",
    "MatrixExponential",
    (by_hand("linalg.expm", "another dtype is a ValueError"),),
    lambda: [sample(_near_identity()), sample(3 * _near_identity(2)), sample(np.zeros((0, 0)))],
    """The exponentials of matrices, by scaling, Padé approximants and squaring (Higham 2005); NaN if not finite.""",
    OnGpu(waits="which matrices need how many squarings"),
    work=8,
)

sqrtm = _matrix_function(
    "sqrtm",
    "MatrixSquareRoot",
    "linalg.sqrtm matrix_square_root",
    lambda: [sample(_near_identity()), sample(_near_identity(2)), sample(np.zeros((0, 0)))],
    """The principal square roots of matrices: products with themselves give the matrices.

    NaN for real matrices with negative eigenvalues, and for matrices of which several eigenvalues are 0.

    Raises:
        UnimplementedError: The matrices are on a GPU.
    """,
    _NO_SCHUR,
)

logm = _matrix_function(
    "logm",
    "MatrixLogarithm",
    "linalg.logm",
    lambda: [sample(_near_identity() * (1 + 0.2j)), sample(np.zeros((0, 0), np.complex128))],
    """The principal logarithms of complex matrices; NaN for singular ones.

    Raises:
        UnimplementedError: The matrices are on a GPU.
    """,
    _NO_SCHUR,
    dtypes=COMPLEX,
)
