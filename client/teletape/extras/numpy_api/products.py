"""Products of matrices and vectors, polynomials, number theory."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape._generated.elementwise import arithmetic
from teletape._generated.elementwise import complex as complex_numbers
from teletape._generated.linalg import einsum as sums_of_products
from teletape._generated.linalg import products
from teletape._generated.shapes import shape as shapes
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.extras.numpy_api.arranging import diagonal, moveaxis
from teletape.extras.numpy_api.promotion import array, promoted
from teletape.extras.numpy_api.reductions import sum as total
from teletape.tf.ops.arrays import rearrange as tf_arrays
from teletape.tf.ops.linalg import norms

_reshape, _expand, _conj = shapes.reshape, shapes.expand_dims, complex_numbers.conj


def matmul(x1: Any, x2: Any) -> Tensor:
    """Returns the product of matrices; an array of one axis is a row on the left and a column on the right.

    Raises:
        ValueError: A number instead of an array.
    """
    a, b = promoted(x1, x2)
    if not len(a.shape) or not len(b.shape):
        raise ValueError("matmul: Input operand does not have enough dimensions")
    if len(b.shape) == 1:
        return norms.tensordot(a, b, [[-1], [-1]]) if len(a.shape) > 1 else dot(a, b)
    if len(a.shape) == 1:
        return norms.tensordot(a, b, [[-1], [-2]])
    return products.matmul(a, b)


def dot(a: Any, b: Any) -> Tensor:
    """Returns the sum of products over the last axis of `a` and the second last of `b`, or its only one."""
    a, b = promoted(a, b)
    if not len(a.shape) or not len(b.shape):
        return arithmetic.multiply(a, b)
    return norms.tensordot(a, b, [[-1], [-1 if len(b.shape) == 1 else -2]])


def inner(a: Any, b: Any) -> Tensor:
    """Returns the sum of products over the last axes."""
    a, b = promoted(a, b)
    if not len(a.shape) or not len(b.shape):
        return arithmetic.multiply(a, b)
    return norms.tensordot(a, b, [[-1], [-1]])


def outer(a: Any, b: Any) -> Tensor:
    """Returns the products of each element of `a` with each of `b`, both flat."""
    a, b = promoted(a, b)
    return _reshape(a, [-1, 1]) * _reshape(b, [-1])


def vdot(a: Any, b: Any) -> Tensor:
    """Returns the sum of products of the flat arrays, those of `a` conjugated."""
    a, b = promoted(a, b)
    a = _conj(a) if a.dtype.is_complex else a
    return dot(_reshape(a, [-1]), _reshape(b, [-1]))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """Returns the sum of products over pairs of axes, or over the last of `a` and the first of `b`."""
    a, b = promoted(a, b)
    return norms.tensordot(a, b, axes)


def einsum(subscripts: str, *operands: Any, **kwargs: Any) -> Tensor:
    """Returns the sums of products that an equation names, such as "ij,jk->ik".

    Args:
        subscripts: The equation.
        *operands: The arrays.
        **kwargs: `optimize`; `casting="safe"`, `order` "C" or "A".
    """
    return sums_of_products.einsum(subscripts, *promoted(*operands))


def kron(a: Any, b: Any) -> Tensor:
    """Returns the Kronecker product: `b` times each element of `a`, as blocks."""
    a, b = promoted(a, b)
    count = max(len(a.shape), len(b.shape))
    sizes = [[1] * (count - len(x.shape)) + x.shape.as_list() for x in (a, b)]
    first = _reshape(a, [size for pair in zip(sizes[0], [1] * count, strict=True) for size in pair])
    second = _reshape(b, [size for pair in zip([1] * count, sizes[1], strict=True) for size in pair])
    return _reshape(first * second, [m * n for m, n in zip(*sizes, strict=True)])


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Tensor:
    """Returns the cross product of vectors of two or three elements.

    Args:
        a: Vectors.
        b: Vectors.
        axisa: The axis of the vectors in `a`.
        axisb: The axis of those in `b`.
        axisc: The axis of those in the result.
        axis: The same axis for all three.

    Raises:
        ValueError: Vectors of another size.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = promoted(a, b)
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    parts = [tf_arrays.unstack(x, axis=-1) for x in (a, b)]
    if any(len(part) not in (2, 3) for part in parts):
        raise ValueError("Incompatible dimensions for cross product: the vectors must have 2 or 3 elements")
    (a0, a1, *a2), (b0, b1, *b2) = parts
    last = a0 * b1 - a1 * b0
    if not a2 and not b2:
        return last
    c0 = a1 * b2[0] if b2 else 0
    c1 = -a0 * b2[0] if b2 else 0
    if a2:
        c0, c1 = c0 - a2[0] * b1, c1 + a2[0] * b0
    first, second = (shapes.broadcast_to(c, last.shape) for c in (c0, c1))
    return moveaxis(tf_arrays.stack([first, second, last], -1), -1, axisc)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    """Returns the sum of a diagonal of the matrices in two axes."""
    return total(diagonal(a, offset, axis1, axis2), -1, dtype)


def polyval(p: Any, x: Any) -> Tensor:
    """Returns the value of a polynomial with coefficients `p`, the highest power first."""
    p, x = promoted(p, x)
    result = shapes.broadcast_to(array(0, x.dtype), x.shape)
    for coefficient in tf_arrays.unstack(p):
        result = result * x + coefficient
    return result


def _whole(x1: Any, x2: Any) -> tuple[Any, Any, dtypes.DType]:
    a, b = promoted(x1, x2)
    if not a.dtype.is_integer:
        raise ValueError("Arguments to `gcd` and `lcm` must be integers.")
    return a.numpy(), b.numpy(), a.dtype


def gcd(x1: Any, x2: Any) -> Tensor:
    """Returns the greatest common divisors of integers, computed from their values.

    Raises:
        ValueError: Other numbers.
    """
    a, b, dtype = _whole(x1, x2)
    return array(np.gcd(a, b), dtype)


def lcm(x1: Any, x2: Any) -> Tensor:
    """Returns the least common multiples of integers, computed from their values.

    Raises:
        ValueError: Other numbers.
    """
    a, b, dtype = _whole(x1, x2)
    return array(np.lcm(a, b), dtype)
