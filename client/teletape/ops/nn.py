"""`tf.nn` functions that are more than one call of an op: moments, batch normalization, isotonic regression, losses."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from teletape.ops import arguments as to
from teletape.ops.derived.cast import cast
from teletape.ops.derived.shape import squeeze, transpose
from teletape.ops.dispatch import call, convert_to_tensor
from teletape.tensors import dtypes
from teletape.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops
from teletape_engine.spec import axis_in

__all__ = [
    "batch_norm_with_global_normalization",
    "batch_normalization",
    "bias_add",
    "compute_average_loss",
    "isotonic_regression",
    "moments",
    "normalize_moments",
    "scale_regularization_loss",
    "scaled_dot_product_attention",
    "sufficient_statistics",
    "weighted_moments",
]


def moments(
    x: to.TensorInput, axes: to.IntsInput, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance over `axes`; `shift` has no effect. 16-bit floats are computed in float32.

    By hand: an op has one result.

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

    By hand: an op has one result. 16-bit floats are computed in float32.

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


class IsotonicRegression(NamedTuple):
    """The result of isotonic_regression."""

    output: Tensor
    segments: Tensor


def isotonic_regression(inputs: to.TensorInput, decreasing: bool = True, axis: to.IntInput = -1) -> IsotonicRegression:
    """The sequence that never rises (never falls) and is nearest to each along an axis, in the sum of squares.

    By hand: an op has one result. The gradient of an element is spread evenly over its segment.

    Args:
        inputs: Real numbers; int8 and int16 are computed in float32, other integers in float64.
        decreasing: Whether the results never rise; False: never fall.
        axis: The axis.

    Returns:
        The sequences, and for each element the number, int32, of the segment in which the result is constant.

    Example:
        tf.nn.isotonic_regression([3.0, 1.0, 2.0])
    """
    tensor = convert_to_tensor(inputs)
    if not tensor.dtype.is_floating:
        small = tensor.dtype in (dtypes.int8, dtypes.int16)
        tensor = cast(tensor, dtypes.float32 if small else dtypes.float64)
    if not tensor.ndim:
        return IsotonicRegression(tensor, cast(call(ops.zeros_like, (tensor,)), dtypes.int32))
    at, last = axis_in(to.whole(axis), tensor.ndim), tensor.ndim - 1
    order = [last if i == at else at if i == last else i for i in range(tensor.ndim)]
    rows = transpose(tensor, order) if at != last else tensor
    segments = call(ops.isotonic_segments, (rows if decreasing else -rows,))
    output = call(ops.isotonic_regression, (rows, segments))
    if at != last:
        output, segments = transpose(output, order), transpose(segments, order)
    return IsotonicRegression(output, segments)


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
    """Mean and variance from what `sufficient_statistics` gives. By hand: two results.

    Example:
        tf.nn.normalize_moments(2.0, 4.0, 10.0, shift=None)
    """
    divisor: Any = call(ops.reciprocal, (convert_to_tensor(counts),))
    shifted = convert_to_tensor(mean_ss) * divisor
    mean = shifted if shift is None else shifted + shift
    return mean, convert_to_tensor(variance_ss) * divisor - call(ops.square, (shifted,))


# ------------------------------------------------------------------------------------------------------------- losses
def compute_average_loss(
    per_example_loss: to.TensorInput, sample_weight: Any = None, global_batch_size: Any = None
) -> Tensor:
    """The sum of the losses of examples, each times its weight, over the size of the batch. By hand: several ops.

    Example:
        tf.nn.compute_average_loss([1.0, 3.0])
    """
    losses = convert_to_tensor(per_example_loss)
    if sample_weight is not None:
        losses = losses * cast(convert_to_tensor(sample_weight), losses.dtype)
    if global_batch_size is None:
        if not losses.ndim:
            raise ValueError("a loss without a batch axis needs `global_batch_size`")
        global_batch_size = losses.shape.as_list()[0]
    result: Tensor = call(ops.reduce_sum, (losses,)) / cast(convert_to_tensor(global_batch_size), losses.dtype)
    return result


def scale_regularization_loss(regularization_loss: to.TensorInput) -> Tensor:
    """The sum of the regularization losses; there is one replica to divide it by. By hand: TensorFlow divides it.

    Example:
        tf.nn.scale_regularization_loss(3.0)
    """
    return call(ops.reduce_sum, (convert_to_tensor(regularization_loss),))


def scaled_dot_product_attention(
    query: to.TensorInput,
    key: to.TensorInput,
    value: to.TensorInput,
    mask: to.TensorInput | None = None,
    bias: to.TensorInput | None = None,
    scale: float | None = None,
    is_causal: bool = False,
    name: str | None = None,
) -> Tensor:
    """softmax(scale · query keyᵀ + bias) value, which never keeps the weights if they are many: [..., T, V].

    Teletape's own: TensorFlow has no such function. Derivatives of every order save the memory too. A bias that is
    differentiated has a gradient of T × S elements. By hand: a mask becomes a bias.

    Args:
        query: [..., T, D]; floating-point. Leading axes broadcast.
        key: [..., S, D].
        value: [..., S, V].
        mask: Truth values that broadcast to [..., T, S]: False where a query has no weight on a key. A query that has
            none at all has equal weights, which depend on no score.
        bias: Added to the scores; it broadcasts to [..., T, S].
        scale: By default 1 / √D.
        is_causal: Whether query i has no weight on keys j > i.
        name: Without effect.

    Raises:
        InvalidArgumentError: Shapes or dtypes that do not fit.

    Example:
        tf.nn.scaled_dot_product_attention([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[1.0], [2.0]])
    """
    q, k, v = (convert_to_tensor(x) for x in (query, key, value))
    dtype = q.dtype
    if dtype in (dtypes.float16, dtypes.bfloat16):  # float16's range is too small for a score that hides all others
        q, k, v = (cast(x, dtypes.float32) for x in (q, k, v))
    addend = cast(convert_to_tensor(0 if bias is None else bias, dtype), q.dtype)
    visible = None if mask is None else convert_to_tensor(mask, dtypes.bool)
    if visible is not None:
        hidden = convert_to_tensor(-0.7 * float(np.finfo(np.float32).max), q.dtype)
        addend = call(ops.where, (visible, addend, hidden))
    if scale is None:
        scale = 1 / math.sqrt(max(q.shape[-1] or 1, 1)) if q.shape.rank else 1.0
    values = call(ops.attention, (q, k, v, addend), scale=float(scale), causal=bool(is_causal))
    if visible is not None:
        mean = call(ops.reduce_mean, (v,), axis=-2, keepdims=True)
        values = call(ops.where, (_sees_a_key(visible, values.shape[-2], bool(is_causal)), values, mean))
    return cast(values, dtype)


def _sees_a_key(visible: Tensor, queries: int, causal: bool) -> Tensor:
    """Whether each of the queries has weight on any key, [..., T or 1, 1], from truth values for [..., T, S]."""
    lengths = visible.shape.as_list()
    visible = call(ops.reshape, (visible,), shape=(*(1,) * (2 - len(lengths)), *lengths))
    sees = call(ops.reduce_any, (visible,), axis=-1, keepdims=True)
    if not causal:
        return sees
    first = call(ops.argmax, (call(ops.cast, (visible,), dtype=np.dtype(np.int32)),), axis=-1)
    last = np.arange(queries, dtype=np.int64)[:, None]  # the last key that each query may see
    return call(ops.logical_and, (sees, call(ops.less_equal, (call(ops.expand_dims, (first,), axis=-1), last))))
