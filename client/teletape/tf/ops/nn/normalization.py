"""`tf.nn`: moments, and normalization by them. By hand: each is several ops."""

from __future__ import annotations

import math
from typing import Any

from teletape._generated.shapes.cast import cast
from teletape._generated.shapes.shape import squeeze
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops


def moments(
    x: to.TensorInput, axes: to.IntsInput, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance over `axes`; `shift` has no effect. 16-bit floats are computed in float32.

    By hand: several ops.

    Example:
        tf.nn.moments([1.0, 3.0], axes=[0])
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


def weighted_moments(
    x: to.TensorInput,
    axes: to.IntsInput,
    frequency_weights: to.TensorInput,
    keepdims: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean and variance over `axes` of elements that count `frequency_weights` times; those broadcast with x.

    By hand: several ops. 16-bit floats are computed in float32.

    Example:
        tf.nn.weighted_moments([1.0, 3.0], axes=[0], frequency_weights=[3.0, 1.0])
    """
    source = convert_to_tensor(x)
    tensor = cast(source, dtypes.float32) if source.dtype in (dtypes.float16, dtypes.bfloat16) else source
    weights, over = cast(convert_to_tensor(frequency_weights), tensor.dtype), to.axes(axes)
    each = weights + call(ops.zeros_like, (tensor,))
    share = call(ops.reciprocal, (call(ops.reduce_sum, (each,), axis=over, keepdims=True),))
    mean = call(ops.reduce_sum, (weights * tensor,), axis=over, keepdims=True) * share
    squares = weights * call(ops.squared_difference, (tensor, mean))
    variance = call(ops.reduce_sum, (squares,), axis=over, keepdims=True) * share
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

    Example:
        tf.nn.bias_add([[1.0, 2.0]], [10.0, 20.0])
    """
    if data_format is None or (data_format.startswith("N") and data_format.endswith("C")):
        tensor = to.value(value)
        return call(ops.bias_add, (tensor, to.like(bias, tensor)))
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

    Example:
        tf.nn.batch_normalization(
            [[1.0], [3.0]], mean=[2.0], variance=[1.0], offset=[0.0], scale=[2.0], variance_epsilon=0.0
        )
    """
    tensor = convert_to_tensor(x)
    average = to.value(mean)
    factor: Any = call(ops.rsqrt, (convert_to_tensor(variance) + variance_epsilon,))
    if scale is not None:
        factor = factor * scale
    shift: Any = -average * factor if offset is None else offset - average * factor
    result: Tensor = tensor * cast(factor, tensor.dtype) + cast(shift, tensor.dtype)
    return result


def batch_norm_with_global_normalization(
    input: to.TensorInput,
    mean: to.TensorInput,
    variance: to.TensorInput,
    beta: to.TensorInput,
    gamma: to.TensorInput,
    variance_epsilon: Any,
    scale_after_normalization: bool,
    name: str | None = None,
) -> Tensor:
    """batch_normalization with the offset beta, and with the scale gamma if `scale_after_normalization`.

    By hand: another order of arguments.

    Example:
        tf.nn.batch_norm_with_global_normalization(
            [[[[1.0], [3.0]]]],
            mean=[2.0],
            variance=[1.0],
            beta=[0.0],
            gamma=[1.0],
            variance_epsilon=0.0,
            scale_after_normalization=True,
        )
    """
    scale = gamma if scale_after_normalization else None
    return batch_normalization(input, mean, variance, beta, scale, variance_epsilon)


def sufficient_statistics(
    x: to.TensorInput, axes: to.IntsInput, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The count, the sum and the sum of squares of x - shift over `axes`, and the shift. By hand: several results.

    Example:
        tf.nn.sufficient_statistics([1.0, 3.0], axes=[0])
    """
    tensor, over = convert_to_tensor(x), to.axes(axes)
    each = tuple(tensor.shape)
    chosen = range(len(each)) if over is None else (over,) if isinstance(over, int) else over
    count = convert_to_tensor(math.prod(each[axis] for axis in chosen), tensor.dtype)
    moved = tensor if shift is None else tensor - shift
    sums = call(ops.reduce_sum, (moved,), axis=over, keepdims=keepdims)
    squares = call(ops.reduce_sum, (call(ops.square, (moved,)),), axis=over, keepdims=keepdims)
    return count, sums, squares, None if shift is None else convert_to_tensor(shift, tensor.dtype)


def normalize_moments(
    counts: to.TensorInput, mean_ss: to.TensorInput, variance_ss: to.TensorInput, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance from the results of `sufficient_statistics`. By hand: two results.

    Example:
        tf.nn.normalize_moments(2.0, 4.0, 10.0, shift=None)
    """
    divisor: Any = call(ops.reciprocal, (convert_to_tensor(counts),))
    shifted = convert_to_tensor(mean_ss) * divisor
    mean = shifted if shift is None else shifted + shift
    return mean, convert_to_tensor(variance_ss) * divisor - call(ops.square, (shifted,))
