"""Ops on stacked matrices written on other ops: traces, log-determinants, transposes, products, tensors' diagonals."""

from __future__ import annotations

import math

import numpy as np

from teletape_engine.catalogue.define import sample
from teletape_engine.catalogue.families import composite
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.signature import Conversion, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.complex import conj, real
from teletape_engine.ops.elementwise.math import log
from teletape_engine.ops.linalg.diagonal import diag, diag_part
from teletape_engine.ops.linalg.matrix import cholesky
from teletape_engine.ops.linalg.products import matmul
from teletape_engine.ops.reduce import reduce_sum
from teletape_engine.ops.shapes.rearrange import roll
from teletape_engine.ops.shapes.shape import expand_dims, reshape, squeeze, transpose
from teletape_engine.spec import COMPLEX, REAL, shape_text

_DEFINITE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.5, -0.5, 2.0]])


@composite(
    samples=[
        sample((2, 3), (3,)),
        sample((3, 2), (3,), transpose_a=True),
        sample((3, 2), (3,), adjoint_a=True),
        sample((2, 2, 3), (2, 3), seed=1),
    ],
    tf=(
        function(
            "linalg.matvec",
            Conversion.VALUE("a"),
            Conversion.HINTED("b", of="a"),
            Conversion.FLAG("transpose_a", False),
            Conversion.FLAG("adjoint_a", False),
            Conversion.IGNORED("a_is_sparse", False),
            Conversion.IGNORED("b_is_sparse", False),
        ),
    ),
)
def matvec(a: Operand, b: Operand, *, transpose_a: bool = False, adjoint_a: bool = False) -> Operand:
    """The products of matrices [..., n, k] and vectors [..., k]: [..., n]; leading axes broadcast.

    `transpose_a` swaps the last two axes of `a` first; `adjoint_a` conjugates it too.
    """
    column = expand_dims(b, axis=-1)
    return squeeze(matmul(a, column, transpose_a=transpose_a, adjoint_a=adjoint_a), axis=-1)


@composite(
    samples=[
        sample((3,), (3,)),
        sample((2, 3), (3,)),
        sample((3,), (3, 2)),
        sample((2, 3), (3, 4), seed=1),
        sample((2, 2, 3), (3,)),
        sample((3,), (2, 3, 2)),
        sample((2, 1, 2, 3), (4, 3, 2), seed=2),
    ],
)
def numpy_matmul(a: Operand, b: Operand) -> Operand:
    """NumPy's a @ b: of two vectors a number, of a matrix and a vector a vector, of two matrices their product.

    Leading axes broadcast: [..., m, k] and [..., k, n] give [..., m, n]. A vector [k] is a row on the left and a column
    on the right, and its axis is not in the result.
    """
    if not a.shape or not b.shape:
        raise InvalidArgumentError(
            f"a @ b multiplies vectors and matrices; found {shape_text(a.shape)} and {shape_text(b.shape)}: a number "
            "is multiplied with *"
        )
    row, column = len(a.shape) == 1, len(b.shape) == 1
    if a.shape[-1] != b.shape[-1 if column else -2]:
        raise InvalidArgumentError(
            f"a @ b sums over the last axis of a and the {'only' if column else 'last but one'} axis of b, which must "
            f"have the same length; found {shape_text(a.shape)} and {shape_text(b.shape)}"
        )
    product = matmul(expand_dims(a, axis=0) if row else a, expand_dims(b, axis=-1) if column else b)
    return squeeze(product, axis=((-2,) if row else ()) + ((-1,) if column else ())) if row or column else product


@composite(
    samples=[
        sample((3,), (3,)),
        sample((2, 3), (3,)),
        sample((3,), (3, 2)),
        sample((), (2, 3)),
        sample((2, 3), ()),
        sample((2, 3), (2, 3, 4), seed=1),
        sample((2, 2, 3), (3, 4), seed=2),
    ],
)
def dot(a: Operand, b: Operand) -> Operand:
    """NumPy's dot: sums of products over the last axis of a and the last but one of b, or its only one.

    Of two vectors a number, of matrices their product, with a number the product of the elements; [*m, k] and
    [*l, k, n] give [*m, *l, n].
    """
    if not a.shape or not b.shape:
        return a * b
    if a.shape[-1] != b.shape[-2 if len(b.shape) > 1 else -1]:
        raise InvalidArgumentError(
            "dot sums over the last axis of a and the last but one of b, or its only one, which must have the same "
            f"length; found {shape_text(a.shape)} and {shape_text(b.shape)}"
        )
    if len(b.shape) < 3 or len(a.shape) < 2:
        return numpy_matmul(a, b)
    *lead, k, n = b.shape
    rows = math.prod(a.shape[:-1])
    columns = reshape(transpose(b, perm=(len(lead), *range(len(lead)), len(lead) + 1)), shape=(k, math.prod(lead) * n))
    return reshape(matmul(reshape(a, shape=(rows, k)), columns), shape=(*a.shape[:-1], *lead, n))


@composite(
    samples=[sample((3, 3)), sample((2, 2, 3))],
    tf=(function("linalg.trace", Conversion.TENSOR("x")),),
)
def trace(x: Operand) -> Operand:
    """The sum of the main diagonal of matrices [..., n, m]."""
    return reduce_sum(diag_part(x), axis=-1)


@composite(
    samples=[sample(_DEFINITE), sample(np.stack([_DEFINITE, 2 * _DEFINITE]))],
    tf=(function("linalg.logdet", Conversion.TENSOR("matrix")),),
    symmetric=(0,),
)
def logdet(x: Operand) -> Operand:
    """The logarithm of the determinant of Hermitian, positive definite matrices [..., n, n]; NaN of others."""
    roots = diag_part(cholesky(x))
    return reduce_sum(log(real(roots) if roots.dtype in COMPLEX else roots), axis=-1) * 2.0


@composite(
    samples=[sample((2, 3)), sample((2, 3, 4), conjugate=True)],
    tf=(
        function(
            "linalg.matrix_transpose",
            Conversion.TENSOR("a"),
            Conversion.IGNORED("name", "matrix_transpose"),
            Conversion.FLAG("conjugate", False),
            check="matrices",
        ),
    ),
)
def matrix_transpose(x: Operand, *, conjugate: bool = False) -> Operand:
    """The last two axes swapped, and the elements conjugated if `conjugate`."""
    n = len(x.shape)
    if n < 2:
        raise InvalidArgumentError(f"the input must have at least two axes, found {n}")
    turned = transpose(x, perm=(*range(n - 2), n - 1, n - 2))
    return conj(turned) if conjugate and x.dtype in COMPLEX else turned


@composite(
    samples=[sample((2, 3)), sample((2, 3, 4))],
    tf=(function("linalg.adjoint", Conversion.TENSOR("matrix"), check="matrices"),),
)
def adjoint(x: Operand) -> Operand:
    """The last two axes swapped, and the elements conjugated."""
    return matrix_transpose(x, conjugate=True)


# ------------------------------------------------------------------------------------------- tensors and their diagonal
@composite(samples=[sample((3,)), sample((2, 2))], args="diagonal", op_type="Diag", tf="linalg.tensor_diag")
def tensor_diag(x: Operand) -> Operand:
    """Zeros [*shape, *shape] with x [*shape] where both halves of the index are equal."""
    if not x.shape:
        raise InvalidArgumentError("Input must be at least rank 1, got 0")
    return reshape(diag(reshape(x, shape=(math.prod(x.shape),))), shape=(*x.shape, *x.shape))


@composite(
    samples=[sample((3, 3)), sample((2, 3, 2, 3))],
    args="input",
    op_type="DiagPart",
    tf=(function("linalg.tensor_diag_part", Conversion.TENSOR("input")),),
)
def tensor_diag_part(x: Operand) -> Operand:
    """The elements [*shape] of x [*shape, *shape] where both halves of the index are equal."""
    n = len(x.shape) // 2
    if len(x.shape) % 2 or not n:
        raise InvalidArgumentError(
            f"The rank of the tensor should be even and positive, got shape {shape_text(x.shape)}"
        )
    half = x.shape[:n]
    if half != x.shape[n:]:
        at = next(i for i in range(n) if x.shape[i] != x.shape[n + i])
        raise InvalidArgumentError(f"Invalid shape {shape_text(x.shape)}: dimensions {at} and {n + at} do not match.")
    length = math.prod(half)
    return reshape(diag_part(reshape(x, shape=(length, length))), shape=half)


@composite(
    samples=[sample((3,), (3,)), sample((2, 3), (2, 3), seed=1)],
    args="a b",
    tf=(function("linalg.cross", Conversion.TENSOR("a"), "b", check="three_elements"),),
)
def cross(a: Operand, b: Operand) -> Operand:
    """The cross products of vectors [..., 3] of three elements."""
    if a.shape != b.shape:
        raise InvalidArgumentError(
            f"Both inputs must be of same shape: {shape_text(a.shape)} vs. {shape_text(b.shape)}"
        )
    if a.dtype not in REAL:
        raise InvalidArgumentError(f"cross products are not defined for dtype {a.dtype.name}")
    if not a.shape or a.shape[-1] != 3:
        raise InvalidArgumentError("Cross-products are only defined for 3-element vectors.")

    def turned(x: Operand, by: int) -> Operand:
        return roll(x, shift=(by,), axis=(-1,))

    return turned(a, -1) * turned(b, -2) - turned(a, -2) * turned(b, -1)
