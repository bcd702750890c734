"""Checks and special cases that some derived functions have, by the names in the catalogue's records.

A check raises TensorFlow's error for inputs that the op itself would refuse in other words. A shortcut returns the
result where TensorFlow's function calls no op or another one, and None elsewhere.
"""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.errors import FailedPreconditionError
from teletape.core.sessions.current import current
from teletape.core.tensors import dtypes
from teletape.core.tensors.indexed_slices import IndexedSlices, SparseValue
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape.core.tensors.tensor_shape import TensorShape, as_shape
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError, UnimplementedError
from teletape_engine.ops.linalg.einsum import terms
from teletape_engine.spec import KERNEL_NAMES, shape_text


# ------------------------------------------------------------------------------------------------------------- checks
def same_numeric_dtype(x: TensorLike, y: TensorLike) -> None:
    """Raises TypeError unless both have the same dtype, of numbers."""
    if x.dtype is not y.dtype:
        raise TypeError(f"`x` and `y` must have the same dtype, got {x.dtype!r} != {y.dtype!r}.")
    if not x.dtype.is_numeric:
        raise TypeError(
            f"Invalid dtype {x.dtype!r} in __truediv__. Expected one of {{tf.uint8, tf.int8, tf.uint16, tf.int16, "
            "tf.uint32, tf.int32, tf.uint64, tf.int64, tf.bfloat16, tf.float16, tf.float32, tf.float64, tf.complex64, "
            "tf.complex128}."
        )


def real_or_complex(x: TensorLike) -> None:
    """Raises TypeError for integers, of which a mean would not be an integer."""
    if x.dtype.is_integer:
        raise TypeError(f"Input must be either real or complex. Received integer type {x.dtype}.")


def has_bounds(x: TensorLike, dtype: Any) -> None:
    """Raises TypeError for bools and strings, which have no bounds."""
    if not x.dtype.is_numeric:
        raise TypeError(f"Cannot find minimum value of {x.dtype} with type {x.dtype}.")


def complex_parts(real: TensorLike, imag: TensorLike) -> None:
    """Raises TypeError unless both are float32, or both float64."""
    first, second = real.dtype, imag.dtype
    if first is not second or first not in (dtypes.float32, dtypes.float64):
        raise TypeError(
            f"The `real` and `imag` components have incorrect types: {first.name} {second.name}. They must be "
            "consistent, and one of [tf.float32, tf.float64]"
        )


def floating_features(features: TensorLike) -> None:
    """Raises ValueError unless the features are floating."""
    if not features.dtype.is_floating:
        raise ValueError(f"`features.dtype` must be a floating point tensor.Received:features.dtype={features.dtype!r}")


def three_elements(a: TensorLike, b: Any) -> None:
    """Raises FailedPreconditionError for vectors of another length than three; in a function the op refuses them."""
    if a.shape.rank and a.shape[-1] != 3 and not current().tracing:
        raise FailedPreconditionError("Cross-products are only defined for 3-element vectors.")


def three_channels(images: TensorLike) -> None:
    """Raises FailedPreconditionError unless images have three channels."""
    shape = tuple(images.shape)
    if not shape or shape[-1] != 3:
        only = f"only has {shape[-1]} channels" if shape else "is a scalar"
        raise FailedPreconditionError(f"input must have 3 channels but input {only}.")


def one_or_many_images(images: TensorLike) -> None:
    """Raises ValueError unless there are three axes, or four."""
    if len(images.shape) not in (3, 4):
        raise ValueError("'images' must be either 3 or 4-dimensional.")


def compatible_shape(x: TensorLike, shape: Any) -> None:
    """Raises InvalidArgumentError unless the shape of `x` is compatible with `shape`."""
    expected = as_shape(shape)
    if not x.shape.is_compatible_with(expected):
        text = "<unknown>"
        if expected.dims is not None:
            text = "[" + ",".join("?" if length is None else str(length) for length in expected) + "]"
        raise InvalidArgumentError(
            f"Shape of tensor input {shape_text(tuple(x.shape))} is not compatible with expected shape {text}. "
            "[Op:EnsureShape]"
        )


def equation(equation: str, inputs: tuple[Any, ...]) -> None:
    """Raises ValueError unless the equation has the right number of inputs."""
    try:
        terms(equation, len(inputs))
    except InvalidArgumentError as error:
        raise ValueError(error.message) from None


def matrices(a: Tensor) -> None:
    """Raises ValueError unless there are two axes or more."""
    if a.ndim < 2:
        raise ValueError(
            f"Argument `a` should be a (batch) matrix with rank >= 2.  Received `a` = {a.numpy()} with shape: {a.shape}"
        )


def a_class_per_row(labels: Tensor, logits: Tensor) -> None:
    """Raises ValueError unless the labels have the shape of the logits without its last axis."""
    if logits.ndim != labels.ndim + 1:
        raise ValueError(
            "`labels.shape.rank` must equal `logits.shape.rank - 1`. Received: labels.shape="
            f"{labels.shape} of rank {labels.ndim} and logits.shape={logits.shape} of rank {logits.ndim}"
        )
    if labels.shape.as_list() != logits.shape.as_list()[:-1]:
        raise ValueError(
            "`labels.shape` must equal `logits.shape` except for the last dimension. Received: labels.shape="
            f"{labels.shape} and logits.shape={logits.shape}"
        )


def same_shape(labels: TensorLike, logits: TensorLike, *_: Any) -> None:
    """Raises ValueError unless labels and logits have the same shape."""
    if labels.shape.as_list() != logits.shape.as_list():
        raise ValueError(
            f"`logits` and `labels` must have the same shape, received ({logits.shape} vs {labels.shape})."
        )


def bounds_fit(t: Any, clip_value_min: Any, clip_value_max: Any) -> None:
    """Raises ValueError if a bound broadcasts `t` to another shape; if it does not broadcast, the op refuses it."""
    t = t.values if isinstance(t, IndexedSlices) else t
    own = _shape_of(t)
    for bound in (clip_value_min, clip_value_max):
        shape = _shape_of(bound)
        if None in own or None in shape:  # rows of several lengths, which the op broadcasts itself
            return
        try:
            widened = np.broadcast_shapes(own, shape)
        except ValueError:
            return
        if widened != own:
            raise ValueError(f"Shapes {TensorShape(own)} and {TensorShape(shape)} are incompatible")


def _shape_of(x: Any) -> tuple[Any, ...]:
    return tuple(x.shape) if hasattr(x, "shape") else np.shape(x)


def known_direction(values: Tensor, direction: Any) -> None:
    """Raises ValueError unless it is a direction to sort in."""
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"Unknown direction: {direction}, expected one of ASCENDING, DESCENDING")


def known_side(sorted_sequence: Tensor, values: TensorLike, side: Any, out_type: Any) -> None:
    """Raises ValueError unless it is a side to search from."""
    if side not in ("left", "right"):
        raise ValueError(f"side must be either 'right' or 'left'.  Saw: {side}.")


# ---------------------------------------------------------------------------------------------------------- shortcuts
def itself_if_dtype(x: Tensor, dtype: Any) -> Tensor | None:
    """Returns `x` if it has the dtype; UnimplementedError for a cast from or to strings."""
    wanted = dtypes.as_dtype(dtype)
    if x.dtype is wanted:
        return x
    if dtypes.string in (x.dtype, wanted):
        raise UnimplementedError(
            f"Cast {KERNEL_NAMES[x.dtype.np]} to {KERNEL_NAMES[wanted.np]} is not supported [Op:Cast]"
        )
    return None


def itself_or_slices(x: Any, dtype: Any) -> Tensor | None:
    """Returns `x` if it has the dtype; IndexedSlices and sparse tensors with their values cast."""
    if isinstance(x, SparseValue):
        rows = x.values
        result = itself_if_dtype(rows, dtype)
        if result is None:
            result = call(ops.cast, (rows,), dtype=dtypes.as_dtype(dtype).np)
        if not isinstance(x, IndexedSlices):
            return x.of_parts(result, x.indices, x.shape)  # type: ignore[return-value]  # as if it were a tensor
        return IndexedSlices(result, x.indices, x.dense_shape)  # type: ignore[return-value]  # as if it were a tensor
    return itself_if_dtype(x, dtype)


def clipped_slices(t: Any, low: Any, high: Any) -> Tensor | None:
    """Returns IndexedSlices with clipped rows if `t` is IndexedSlices; None for a tensor."""
    if not isinstance(t, IndexedSlices):
        return None
    rows = call(ops.clip_by_value, (t.values, low, high))
    return IndexedSlices(rows, t.indices, t.dense_shape)  # type: ignore[return-value]  # what slices alone give


def itself_if_real(x: Tensor) -> Tensor | None:
    """Returns `x` if it is real; TypeError if it has no numbers."""
    if not x.dtype.is_numeric:
        raise TypeError(f"input must be a numeric tensor, but got tensor with dtype {x.dtype}")
    return None if x.dtype.is_complex else x


def zeros_if_real(x: Tensor) -> Tensor | None:
    """Returns zeros without a gradient if `x` is real."""
    return None if x.dtype.is_complex else call(ops.zeros_like, (x,))


def angle_if_real(x: Tensor) -> Tensor | None:
    """Returns 0, or pi for negative numbers, if `x` is real."""
    if x.dtype.is_complex:
        return None
    negative = call(ops.less, (x, 0))
    return call(ops.mul, (call(ops.cast, (negative,), dtype=x.dtype.np), pi))


def silu_of_tensor_beta(features: Tensor, beta: Any) -> Tensor | None:
    """Returns features·sigmoid(beta·features) if `beta` is no Python number, so that it has a gradient too."""
    if isinstance(beta, (int, float)):
        return None
    return call(ops.mul, (features, call(ops.sigmoid, (call(ops.mul, (features, to.like(beta, features))),))))


def polygamma_of_tensor_order(a: Any, x: Any) -> Tensor | None:
    """Returns polygamma with an order for each element if `a` is no Python integer; `a` gets no gradient."""
    known = isinstance(x, (TensorLike, np.ndarray, np.generic))
    if isinstance(a, (int, float)) and known and float(a).is_integer():
        return None
    x = to.tensor(x) if known else to.like(x, convert_to_tensor(a))  # numbers take the dtype of the order
    order = call(ops.stop_gradient, (to.like(a, x),))
    whole = call(ops.equal, (order, call(ops.floor, (call(ops.abs, (order,)),))))
    order = call(ops.where, (whole, order, float("nan")))
    following = call(ops.add, (order, 1.0))
    even = call(ops.equal, (call(ops.floormod, (order, 2.0)), 0.0))
    factorial = call(ops.exp, (call(ops.lgamma, (following,)),))
    signed = call(ops.where, (even, call(ops.neg, (factorial,)), factorial))
    zeros = call(ops.equal, (order, 0.0))
    return call(ops.where, (zeros, call(ops.digamma, (x,)), call(ops.mul, (signed, call(ops.zeta, (following, x))))))


def fractions_no_nan(x: TensorLike, y: TensorLike) -> Tensor | None:
    """Returns the quotients of integers, as truediv: float32 for up to 16 bits, else float64; 0 where `y` is 0."""
    if not x.dtype.is_integer or x.dtype is not y.dtype:
        return None
    dtype = (dtypes.float32 if x.dtype.size < 4 else dtypes.float64).np
    return call(ops.div_no_nan, tuple(call(ops.cast, (value,), dtype=dtype) for value in (x, y)))
