"""TensorFlow's functions of several tensors or of a scalar that are more than one call of an op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from teletape._generated.elementwise.arithmetic import add_n
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.tensors.indexed_slices import IndexedSlices
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops


def scalar_mul(scalar: to.TensorInput, x: Any, name: str | None = None) -> Any:
    """A scalar times a tensor. By hand: IndexedSlices stay IndexedSlices, and the scalar takes the dtype of `x`.

    Raises:
        ValueError: `scalar` has an axis.

    Example:
        tf.math.scalar_mul(2.0, tf.constant([1.0, 3.0]))
    """
    values = x.values if isinstance(x, IndexedSlices) else convert_to_tensor(x)
    factor = to.like(scalar, values)
    if factor.shape.rank:
        raise ValueError("The input scalar must be a 0-D value.")
    product = call(ops.mul, (factor, values))
    return IndexedSlices(product, x.indices, x.dense_shape) if isinstance(x, IndexedSlices) else product


def accumulate_n(
    inputs: Sequence[to.TensorInput], shape: Any = None, tensor_dtype: Any = None, name: str | None = None
) -> Tensor:
    """The sum of tensors of one shape and dtype. By hand: it is add_n; `shape` and `tensor_dtype` have no effect.

    Example:
        tf.math.accumulate_n([tf.constant([1.0]), tf.constant([2.0])])
    """
    return add_n(inputs)


def polyval(coeffs: Sequence[to.TensorInput], x: to.TensorInput, name: str | None = None) -> Tensor:
    """The polynomial with these coefficients at `x`, that of the highest power first; 0 without any.

    By hand: an addition and a product for each (Horner's scheme).

    Raises:
        ValueError: `coeffs` is no list.

    Example:
        tf.math.polyval([1.0, 2.0, 3.0], 2.0)
    """
    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type. Received type {type(coeffs)}.")
    point = convert_to_tensor(x)
    if not coeffs:
        return call(ops.zeros_like, (point,))
    result = to.like(coeffs[0], point)
    for coefficient in coeffs[1:]:
        result = call(ops.add, (coefficient, call(ops.mul, (result, point))))
    return convert_to_tensor(result)
