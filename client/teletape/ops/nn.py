"""`tf.nn` functions that are more than one call of an op: moments, batch normalization."""

from __future__ import annotations

from typing import Any

from teletape.ops import arguments as to
from teletape.ops.derived.cast import cast
from teletape.ops.derived.shape import squeeze
from teletape.ops.dispatch import call, convert_to_tensor
from teletape.tensors import dtypes
from teletape.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

__all__ = ["batch_normalization", "bias_add", "moments"]


def moments(
    x: to.TensorInput, axes: to.IntsInput, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance over `axes`; `shift` has no effect. 16-bit floats are computed in float32.

    By hand: an op has one result.
    """
    source = convert_to_tensor(x)
    tensor = cast(source, dtypes.float32) if source.dtype in (dtypes.float16, dtypes.bfloat16) else source
    over = to.axes(axes)
    mean = call(ops.reduce_mean, (tensor,), axis=over, keepdims=True)
    squares = call(ops.squared_difference, (tensor, call(ops.stop_gradient, (mean,))))
    variance = call(ops.reduce_mean, (squares,), axis=over, keepdims=True)
    if not keepdims:
        mean, variance = squeeze(mean, over), squeeze(variance, over)
    return cast(mean, source.dtype), cast(variance, source.dtype)


def bias_add(
    value: to.TensorInput, bias: to.TensorInput, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """value + bias, one number of `bias` for each channel: the last axis, or axis 1 if `data_format` begins with "NC".

    By hand: channels first are added as another shape.

    Raises:
        ValueError: An unknown data format.
    """
    if data_format is None or (data_format.startswith("N") and data_format.endswith("C")):
        return call(ops.bias_add, (value, bias))
    if not data_format.startswith("NC"):
        raise ValueError("`data_format` must be of the form `N...C` or `NC...`")
    tensor = convert_to_tensor(value)
    offsets = convert_to_tensor(bias, tensor.dtype)
    shape = (1, -1, *(1,) * (tensor.ndim - 2))
    return call(ops.add, (tensor, call(ops.reshape, (offsets,), shape=shape)))


def batch_normalization(
    x: to.TensorInput,
    mean: to.TensorInput,
    variance: to.TensorInput,
    offset: to.TensorInput | None,
    scale: to.TensorInput | None,
    variance_epsilon: Any,
    name: str | None = None,
) -> Tensor:
    """scale * (x - mean) / sqrt(variance + variance_epsilon) + offset; None for no scale or no offset.

    By hand: two inputs may be absent, and it takes several ops.
    """
    tensor = convert_to_tensor(x)
    average = to.value(mean)
    factor: Any = call(ops.rsqrt, (convert_to_tensor(variance) + variance_epsilon,))
    if scale is not None:
        factor = factor * scale
    shift: Any = -average * factor if offset is None else offset - average * factor
    result: Tensor = tensor * cast(factor, tensor.dtype) + cast(shift, tensor.dtype)
    return result
