"""`tf.math` functions whose arguments TensorFlow checks or converts in a way of its own; the rest is derived."""

from __future__ import annotations

from math import pi
from typing import Any

from teletape.ops.cast import cast
from teletape.ops.create import zeros_like
from teletape.ops.dispatch import call, convert_to_tensor
from teletape.ops.operators import truediv
from teletape.tensors import dtypes
from teletape.tensors.dtypes import DType
from teletape.tensors.indexed_slices import IndexedSlices
from teletape.tensors.tensor import EagerTensor, TensorLike
from teletape_engine.catalogue.op import CATALOGUE

__all__ = ["add_n", "angle", "complex", "conj", "divide", "imag", "logical_xor", "matmul", "real", "truediv"]


def divide(x: Any, y: Any, name: str | None = None) -> Any:
    """x / y, as the operator does; an x that is no tensor takes the dtype of y."""
    first = x if isinstance(x, TensorLike) else convert_to_tensor(x, y.dtype if isinstance(y, TensorLike) else None)
    return first / y


def add_n(inputs: Any, name: str | None = None) -> EagerTensor:
    """The sum of tensors, variables and IndexedSlices of one shape and dtype.

    Raises:
        ValueError: There are none.
        InvalidArgumentError: Shapes or dtypes differ.
    """
    given = list(inputs)
    if not given:
        raise ValueError(
            "Inputs must be an iterable of at least one Tensor/IndexedSlices with the same dtype and shape."
        )
    terms = [one if isinstance(one, TensorLike | IndexedSlices) else convert_to_tensor(one) for one in given]
    return call(CATALOGUE["add_n"], terms)


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: Any = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> EagerTensor:
    """The matrix product over the last two axes; leading axes broadcast.

    Args:
        a: Tensor [..., n, k].
        b: Tensor [..., k, m]; what is no tensor takes the dtype of `a` where it fits.
        transpose_a: Swap the last two axes of `a` first.
        transpose_b: The same for `b`.
        adjoint_a: Swap and conjugate.
        adjoint_b: The same for `b`.
        a_is_sparse: Accepted, without effect.
        b_is_sparse: Accepted, without effect.
        output_type: None, or the dtype of `a`.
        grad_a: Accepted, without effect.
        grad_b: Accepted, without effect.
        name: Accepted, without effect.
    """
    left = a if isinstance(a, TensorLike) else convert_to_tensor(a)
    right = b if isinstance(b, TensorLike) else convert_to_tensor(b, dtype_hint=left.dtype)
    if output_type is not None and dtypes.as_dtype(output_type) is not left.dtype:
        raise ValueError(
            f"matmul: output_type {output_type!r} is not offered for inputs of {left.dtype!r}; cast the result"
        )
    flags = {
        "transpose_a": bool(transpose_a),
        "transpose_b": bool(transpose_b),
        "adjoint_a": bool(adjoint_a),
        "adjoint_b": bool(adjoint_b),
    }
    return call(CATALOGUE["matmul"], (left, right), **{flag: True for flag, on in flags.items() if on})


def logical_xor(x: Any, y: Any, name: str = "LogicalXor") -> EagerTensor:
    """True where one of two bool tensors is and the other is not.

    Raises:
        TypeError: A value that is no bool.
        ValueError: A tensor of another dtype.
    """
    return call(CATALOGUE["not_equal"], (convert_to_tensor(x, dtypes.bool), convert_to_tensor(y, dtypes.bool)))


def complex(real: Any, imag: Any, name: str | None = None) -> EagerTensor:  # TensorFlow's name
    """real + 1j * imag: complex64 of float32 parts, complex128 of float64.

    Raises:
        TypeError: Other dtypes, or two different ones.
    """
    parts = [one if isinstance(one, TensorLike) else convert_to_tensor(one) for one in (real, imag)]
    first, second = (one.dtype for one in parts)
    if first is not second or first not in (dtypes.float32, dtypes.float64):
        raise TypeError(
            f"The `real` and `imag` components have incorrect types: {first.name} {second.name}. They must be "
            "consistent, and one of [tf.float32, tf.float64]"
        )
    return call(CATALOGUE["complex"], parts)


def real(input: Any, name: str | None = None) -> EagerTensor:
    """The real part; a real tensor comes back as it is.

    Raises:
        TypeError: bool or strings.
    """
    tensor = convert_to_tensor(input)
    return call(CATALOGUE["real"], (tensor,)) if _numeric(tensor).is_complex else tensor


def imag(input: Any, name: str | None = None) -> EagerTensor:
    """The imaginary part; zeros, connected to nothing, of a real tensor."""
    tensor = convert_to_tensor(input)
    return call(CATALOGUE["imag"], (tensor,)) if tensor.dtype.is_complex else zeros_like(tensor)


def conj(x: Any, name: str | None = None) -> EagerTensor:
    """The complex conjugate; a real tensor comes back as it is.

    Raises:
        TypeError: bool or strings.
    """
    tensor = convert_to_tensor(x)
    return call(CATALOGUE["conj"], (tensor,)) if _numeric(tensor).is_complex else tensor


def angle(input: Any, name: str | None = None) -> EagerTensor:
    """The angle in the complex plane, in radians: of real numbers 0, or pi below zero.

    Raises:
        TypeError: Integers.
    """
    tensor = convert_to_tensor(input)
    if tensor.dtype.is_complex:
        return call(CATALOGUE["angle"], (tensor,))
    made: EagerTensor = cast(call(CATALOGUE["less"], (tensor, 0)), tensor.dtype) * pi
    return made


def _numeric(tensor: EagerTensor) -> DType:
    if not tensor.dtype.is_numeric:
        raise TypeError(f"input must be a numeric tensor, but got tensor with dtype {tensor.dtype}")
    return tensor.dtype
