"""`tf.nn`'s convolutions. By hand: what their lengths and borders mean depends on the rank and the data format."""

from __future__ import annotations

from typing import Any

from teletape.ops import arguments as to
from teletape.ops.dispatch import call
from teletape.ops.windows import border, channels_first, lengths
from teletape.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

__all__ = [
    "atrous_conv2d",
    "atrous_conv2d_transpose",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "conv_transpose",
    "convolution",
    "depthwise_conv2d",
    "separable_conv2d",
]


def _axes(filters: Any) -> tuple[Any, int]:
    """Filters as a tensor or variable, and the number of axes that they slide over."""
    value = to.value(filters)
    n = len(value.shape) - 2
    if n not in (1, 2, 3):
        raise ValueError(f"`filters` must be of rank 3, 4 or 5, with 1, 2 or 3 spatial dimensions. Received: {n + 2}")
    return value, n


def _attrs(n: int, strides: Any, padding: Any, data_format: Any, dilations: Any) -> dict[str, Any]:
    first = channels_first(data_format, n)
    attrs = {"strides": lengths(strides, n, "strides", first), **border(padding, n, first)}
    if dilations is not None:
        attrs["dilations"] = lengths(dilations, n, "dilations", first)
    if first:
        attrs["channels_first"] = True
    return attrs


def _convolved(n: int, input: Any, filters: Any, attrs: dict[str, Any]) -> Tensor:
    if n == 2 and "channels_first" not in attrs:
        return call(ops.conv2d, (input, filters), **attrs)
    return call(ops.convolution, (input, filters), **attrs)


def _transposed(n: int, input: Any, filters: Any, output_shape: Any, attrs: dict[str, Any]) -> Tensor:
    op = ops.conv2d_backprop_input if n == 2 and "channels_first" not in attrs else ops.convolution_transpose
    return call(op, (input, filters), shape=to.ints(output_shape, "output_shape"), **attrs)


# -------------------------------------------------------------------------------------------------------- convolution
def convolution(
    input: to.TensorInput,
    filters: to.TensorInput,
    strides: to.IntsInput | None = None,
    padding: to.PaddingInput = "VALID",
    data_format: str | None = None,
    dilations: to.IntsInput | None = None,
    name: str | None = None,
) -> Tensor:
    """Slides filters over the one, two or three axes that lie between the batch and the channels."""
    value, n = _axes(filters)
    return _convolved(n, input, value, _attrs(n, strides, padding, data_format, dilations))


def conv1d(
    input: to.TensorInput,
    filters: to.TensorInput,
    stride: to.IntsInput,
    padding: to.PaddingInput,
    data_format: str | None = "NWC",
    dilations: to.IntsInput | None = None,
    name: str | None = None,
) -> Tensor:
    """Slides filters [width, channels, out] over lines [n, width, channels]."""
    return _convolved(1, input, filters, _attrs(1, stride, padding, data_format, dilations))


def conv2d(
    input: to.TensorInput,
    filters: to.TensorInput,
    strides: to.IntsInput,
    padding: to.PaddingInput,
    data_format: str | None = "NHWC",
    dilations: to.IntsInput | None = None,
    name: str | None = None,
) -> Tensor:
    """Slides filters [height, width, channels / groups, out] over images [..., height, width, channels]."""
    return _convolved(2, input, filters, _attrs(2, strides, padding, data_format, dilations))


def conv3d(
    input: to.TensorInput,
    filters: to.TensorInput,
    strides: to.IntsInput,
    padding: to.PaddingInput,
    data_format: str | None = "NDHWC",
    dilations: to.IntsInput | None = None,
    name: str | None = None,
) -> Tensor:
    """Slides filters [depth, height, width, channels, out] over volumes [n, depth, height, width, channels]."""
    return _convolved(3, input, filters, _attrs(3, strides, padding, data_format, dilations))


def atrous_conv2d(
    value: to.TensorInput, filters: to.TensorInput, rate: to.IntInput, padding: str, name: str | None = None
) -> Tensor:
    """conv2d whose filters take every `rate`-th row and column."""
    return conv2d(value, filters, 1, padding, dilations=to.whole(rate))


# ------------------------------------------------------------------------------------------------ apart for channels
def depthwise_conv2d(
    input: to.TensorInput,
    filter: to.TensorInput,
    strides: to.IntsInput,
    padding: to.PaddingInput,
    data_format: str | None = None,
    dilations: to.IntsInput | None = None,
    name: str | None = None,
) -> Tensor:
    """Slides filters of its own over each channel: filters [height, width, channels, m] give channels · m."""
    return call(ops.depthwise_conv2d, (input, filter), **_attrs(2, strides, padding, data_format, dilations))


def separable_conv2d(
    input: to.TensorInput,
    depthwise_filter: to.TensorInput,
    pointwise_filter: to.TensorInput,
    strides: to.IntsInput,
    padding: to.PaddingInput,
    data_format: str | None = None,
    dilations: to.IntsInput | None = None,
    name: str | None = None,
) -> Tensor:
    """depthwise_conv2d, and then a convolution with filters of one row and one column."""
    apart = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return conv2d(apart, pointwise_filter, 1, "VALID", data_format)


# ---------------------------------------------------------------------------------------------------------- transpose
def conv_transpose(
    input: to.TensorInput,
    filters: to.TensorInput,
    output_shape: to.IntsInput,
    strides: to.IntsInput,
    padding: to.PaddingInput = "SAME",
    data_format: str | None = None,
    dilations: to.IntsInput | None = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of `convolution`, whose input had `output_shape`."""
    value, n = _axes(filters)
    return _transposed(n, input, value, output_shape, _attrs(n, strides, padding, data_format, dilations))


def conv1d_transpose(
    input: to.TensorInput,
    filters: to.TensorInput,
    output_shape: to.IntsInput,
    strides: to.IntsInput,
    padding: to.PaddingInput = "SAME",
    data_format: str | None = "NWC",
    dilations: to.IntsInput | None = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of conv1d with respect to its lines, which had `output_shape`."""
    return _transposed(1, input, filters, output_shape, _attrs(1, strides, padding, data_format, dilations))


def conv2d_transpose(
    input: to.TensorInput,
    filters: to.TensorInput,
    output_shape: to.IntsInput,
    strides: to.IntsInput,
    padding: to.PaddingInput = "SAME",
    data_format: str | None = "NHWC",
    dilations: to.IntsInput | None = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of conv2d with respect to its images, which had `output_shape`."""
    return _transposed(2, input, filters, output_shape, _attrs(2, strides, padding, data_format, dilations))


def conv3d_transpose(
    input: to.TensorInput,
    filters: to.TensorInput,
    output_shape: to.IntsInput,
    strides: to.IntsInput,
    padding: to.PaddingInput = "SAME",
    data_format: str | None = "NDHWC",
    dilations: to.IntsInput | None = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of conv3d with respect to its volumes, which had `output_shape`."""
    return _transposed(3, input, filters, output_shape, _attrs(3, strides, padding, data_format, dilations))


def atrous_conv2d_transpose(
    value: to.TensorInput,
    filters: to.TensorInput,
    output_shape: to.IntsInput,
    rate: to.IntInput,
    padding: str,
    name: str | None = None,
) -> Tensor:
    """The transpose of atrous_conv2d with respect to its images, which had `output_shape`."""
    return conv2d_transpose(value, filters, output_shape, 1, padding, dilations=to.whole(rate))
