"""`tf.nn`'s convolutions. By hand: the meaning of lengths and borders depends on the rank and the data format.

Long because fifteen functions document their arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from teletape._generated.nn.blocks import batch_to_space, space_to_batch
from teletape._generated.shapes.shape import reshape, transpose
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.tensors.tensor import Tensor
from teletape.tf.ops.nn.windows import border, channels_first, lengths
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError

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
    "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input",
    "separable_conv2d",
    "with_space_to_batch",
]

_LAST: Final = [0, 2, 3, 1]  #: The axes of images with channels first, in the order of those with channels last.
_FIRST: Final = [0, 3, 1, 2]


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
    value = to.like(input, filters)
    shape = to.ints(output_shape, "output_shape")
    if n == 2 and len(shape) == 2 and value.shape.rank == 4:  # TensorFlow's op for images takes these alone too
        channels = to.value(filters).shape[2]
        batch = value.shape[0]
        shape = (batch, channels, *shape) if attrs.get("channels_first") else (batch, *shape, channels)
    return call(op, (value, filters), shape=shape, **attrs)


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
    """Slides filters over the one, two or three axes that lie between the batch and the channels.

    Example:
        tf.nn.convolution([[[1.0], [2.0], [3.0]]], [[[1.0]], [[1.0]]])
    """
    value, n = _axes(filters)
    return _convolved(n, input, value, _attrs(n, strides, padding, data_format, dilations))


def conv(
    input: to.TensorInput,
    filter: to.TensorInput,
    strides: to.IntsInput,
    padding: str,
    explicit_paddings: to.IntsInput = (),
    data_format: str = "CHANNELS_LAST",
    dilations: to.IntsInput = (),
    batch_dims: to.IntInput = 1,
    groups: to.IntInput = 1,
    name: str | None = None,
) -> Tensor:
    """Slides filters over two or three axes: `convolution` with the arguments of TensorFlow's op Conv.

    Args:
        input: [*batch, *lengths, channels], or with the channels before the lengths.
        filter: [*lengths, channels / groups, out].
        strides: One for each axis of an example with one batch axis: that of the batch and of the channels is 1.
        padding: "SAME", "VALID" or "EXPLICIT".
        explicit_paddings: With "EXPLICIT" two numbers for each of those axes.
        data_format: "CHANNELS_LAST" or "CHANNELS_FIRST".
        dilations: One for each of those axes; none: 1.
        batch_dims: The number of batch axes of `input`.
        groups: The number of groups of channels.
        name: Accepted, without effect.

    Raises:
        InvalidArgumentError: The shapes and the arguments do not fit each other.

    Example:
        tf.conv(np.ones([1, 3, 3, 1], np.float32), np.ones([2, 2, 1, 1], np.float32), [1, 1, 1, 1], "VALID")
    """
    images, (filters, n) = to.value(input), _axes(filter)
    sizes, count = images.shape.as_list(), to.whole(batch_dims)
    if data_format not in ("CHANNELS_LAST", "CHANNELS_FIRST"):
        raise InvalidArgumentError(f"Invalid data format: {data_format}")
    if len(sizes) != count + n + 1:
        raise InvalidArgumentError(f"Input tensor must have rank {count + n + 1}, found {len(sizes)}")
    first = data_format == "CHANNELS_FIRST"
    channels = sizes[count if first else -1]
    if channels != filters.shape.as_list()[-2] * to.whole(groups):
        raise InvalidArgumentError(
            f"input and filter must have the same depth: {channels} vs {filters.shape.as_list()[-2]} in {groups} groups"
        )
    flat = list(to.ints(explicit_paddings, "explicit_paddings"))
    attrs = _attrs(
        n,
        strides,
        list(zip(flat[::2], flat[1::2], strict=True)) if padding == "EXPLICIT" else padding,
        {1: "NCW", 2: "NCHW", 3: "NCDHW"}[n] if first else None,
        to.ints(dilations, "dilations") or None,
    )
    if count == 1:
        return _convolved(n, images, filters, attrs)
    result = _convolved(n, reshape(images, [-1, *sizes[count:]]), filters, attrs)
    return reshape(result, [*sizes[:count], *result.shape.as_list()[1:]])


def conv1d(
    input: to.TensorInput,
    filters: to.TensorInput,
    stride: to.IntsInput,
    padding: to.PaddingInput,
    data_format: str | None = "NWC",
    dilations: to.IntsInput | None = None,
    name: str | None = None,
) -> Tensor:
    """Slides filters [width, channels, out] over lines [n, width, channels].

    Example:
        tf.nn.conv1d([[[1.0], [2.0], [3.0]]], [[[1.0]], [[1.0]]], stride=1, padding="VALID")
    """
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
    """Slides filters [height, width, channels / groups, out] over images [..., height, width, channels].

    Example:
        tf.nn.conv2d([[[[1.0], [2.0]], [[3.0], [4.0]]]], [[[[1.0]], [[1.0]]]], strides=1, padding="VALID")
    """
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
    """Slides filters [depth, height, width, channels, out] over volumes [n, depth, height, width, channels].

    Example:
        tf.nn.conv3d(
            np.ones([1, 2, 2, 2, 1], np.float32),
            np.ones([2, 2, 2, 1, 1], np.float32),
            strides=[1, 1, 1, 1, 1],
            padding="VALID",
        )
    """
    return _convolved(3, input, filters, _attrs(3, strides, padding, data_format, dilations))


def atrous_conv2d(
    value: to.TensorInput, filters: to.TensorInput, rate: to.IntInput, padding: str, name: str | None = None
) -> Tensor:
    """conv2d with dilated filters, which take every `rate`-th row and column.

    Example:
        tf.nn.atrous_conv2d(
            np.ones([1, 3, 3, 1], np.float32), np.ones([2, 2, 1, 1], np.float32), rate=2, padding="VALID"
        )
    """
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
    """Slides m filters over each channel by itself: filters [height, width, channels, m] give channels · m channels.

    Example:
        tf.nn.depthwise_conv2d([[[[1.0, 2.0]]]], [[[[1.0, 10.0], [1.0, 10.0]]]], strides=[1, 1, 1, 1], padding="VALID")
    """
    return call(ops.depthwise_conv2d, (input, filter), **_attrs(2, strides, padding, data_format, dilations))


def _grouped(filters: Any) -> Any:
    """Filters [height, width, channels, m] as those of groups of one channel, [height, width, 1, channels · m]."""
    height, width, channels, m = filters
    return height, width, 1, channels * m


def depthwise_conv2d_backprop_input(
    input_sizes: to.IntsInput,
    filter: to.TensorInput,
    out_backprop: to.TensorInput,
    strides: to.IntsInput,
    padding: to.PaddingInput,
    data_format: str = "NHWC",
    dilations: to.IntsInput = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of depthwise_conv2d by its images, of shape `input_sizes`, from the gradient of its result.

    Example:
        tf.nn.depthwise_conv2d_backprop_input(
            [1, 1, 1, 2], [[[[3.0], [4.0]]]], [[[[1.0, 1.0]]]], strides=[1, 1, 1, 1], padding="VALID"
        )
    """
    attrs = _attrs(2, strides, padding, data_format, dilations)
    images_last, sizes = not attrs.pop("channels_first", False), to.ints(input_sizes, "input_sizes")
    weights, grads = to.tensor(filter), to.tensor(out_backprop)
    if not images_last:
        grads, sizes = transpose(grads, _LAST), (sizes[0], *sizes[2:], sizes[1])
    shape = weights.shape.as_list()
    if sizes[-1] != shape[2]:
        raise InvalidArgumentError(f"input depth must be evenly divisible by filter depth: {sizes[-1]} vs {shape[2]}")
    kernel = reshape(weights, _grouped(shape))
    images = call(ops.conv2d_backprop_input, (grads, kernel), shape=sizes, **attrs)
    return images if images_last else transpose(images, _FIRST)


def depthwise_conv2d_backprop_filter(
    input: to.TensorInput,
    filter_sizes: to.IntsInput,
    out_backprop: to.TensorInput,
    strides: to.IntsInput,
    padding: to.PaddingInput,
    data_format: str = "NHWC",
    dilations: to.IntsInput = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of depthwise_conv2d by its filters, of shape `filter_sizes`, from the gradient of its result.

    Example:
        tf.nn.depthwise_conv2d_backprop_filter(
            [[[[1.0, 2.0]]]], [1, 1, 2, 1], [[[[1.0, 1.0]]]], strides=[1, 1, 1, 1], padding="VALID"
        )
    """
    attrs = _attrs(2, strides, padding, data_format, dilations)
    images, grads, sizes = to.tensor(input), to.tensor(out_backprop), to.ints(filter_sizes, "filter_sizes")
    if attrs.pop("channels_first", False):
        images, grads = transpose(images, _LAST), transpose(grads, _LAST)
    filters = call(ops.conv2d_backprop_filter, (images, grads), shape=_grouped(sizes), **attrs)
    return reshape(filters, sizes)


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
    """depthwise_conv2d, followed by a convolution with filters of one row and one column.

    Example:
        tf.nn.separable_conv2d(
            [[[[1.0, 2.0]]]], [[[[1.0], [1.0]]]], [[[[1.0], [10.0]]]], strides=[1, 1, 1, 1], padding="VALID"
        )
    """
    apart = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return conv2d(apart, pointwise_filter, 1, "VALID", data_format)


# --------------------------------------------------------------------------------------------------- spaces as batches
def with_space_to_batch(
    input: to.TensorInput,
    dilation_rate: to.IntsInput,
    padding: Any,
    op: Callable[[Tensor, int, Any], Any],
    filter_shape: to.IntsInput | None = None,
    spatial_dims: Any = None,
    data_format: str | None = None,
) -> Any:
    """Runs `op` with dilated windows, on images of every `dilation_rate`-th row and column.

    Args:
        input: A tensor with a batch axis.
        dilation_rate: The distance of a window's elements along each axis that windows slide over.
        padding: "VALID" or "SAME".
        op: Called with the images, the number of those axes and a padding.
        filter_shape: The shape of a window; needed for "SAME".
        spatial_dims: Those axes, in rising order; by default the first after the batch, or after the channels.
        data_format: A name that begins with "NC" if the channels come first.

    Raises:
        ValueError: Axes or rates that do not fit, or "SAME" without a shape.

    Example:
        tf.nn.with_space_to_batch(
            np.ones([1, 4, 4, 1], np.float32),
            dilation_rate=[1, 1],
            padding="VALID",
            op=lambda x, spatial, padding: 2.0 * x,
        )
    """
    x, rates = to.tensor(input), to.ints(dilation_rate, "dilation_rate")
    first = 2 if data_format is not None and data_format.startswith("NC") else 1
    dims = list(range(first, first + len(rates)) if spatial_dims is None else spatial_dims)
    if dims != sorted(set(dims)) or any(dim < 1 for dim in dims):
        raise ValueError(
            f"`spatial_dims` must be a monotonically increasing sequence of positive integers. Received: "
            f"spatial_dims={dims}"
        )
    least = dims[-1] + (2 - first)
    if x.ndim < least:
        raise ValueError(f"`input.shape.rank` must be at least {least}. Received: input.shape={x.shape}")
    if min(rates) < 1:
        raise ValueError(f"`dilation_rate` must be positive. Received: dilation_rate={list(rates)}")
    if max(rates) == 1:
        return op(x, len(rates), padding)
    if padding not in ("SAME", "VALID"):
        raise ValueError(f"`padding` must be one of 'SAME' or 'VALID'. Received: padding={padding}")
    window = (1,) * len(rates)
    if padding == "SAME":
        if filter_shape is None:
            raise ValueError(
                "`filter_shape` must be specified for `padding='SAME'`. Received: filter_shape=None and padding=SAME"
            )
        window = to.ints(filter_shape, "filter_shape")
    blocks, paddings, crops = ([fill] * dims[-1] for fill in (1, (0, 0), (0, 0)))
    for dim, rate, length in zip(dims, rates, window, strict=False):
        more = (length - 1) * rate
        size = x.shape.as_list()[dim] + more
        rest = -size % rate
        blocks[dim - 1], paddings[dim - 1], crops[dim - 1] = rate, (more // 2, more - more // 2 + rest), (0, rest)
    return batch_to_space(op(space_to_batch(x, blocks, paddings), len(rates), "VALID"), blocks, crops)


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
    """The transpose of `convolution`, whose input had `output_shape`.

    Example:
        tf.nn.conv_transpose([[[1.0], [2.0]]], [[[1.0]], [[1.0]]], output_shape=[1, 3, 1], strides=1, padding="VALID")
    """
    value, n = _axes(filters)
    if isinstance(output_shape, int | float):
        raise ValueError(f"`output_shape` must be a tensor or sized collection. Received: output_shape={output_shape}")
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
    """The transpose of conv1d with respect to its lines, which had `output_shape`.

    Example:
        tf.nn.conv1d_transpose([[[1.0], [2.0]]], [[[1.0]], [[1.0]]], output_shape=[1, 3, 1], strides=1, padding="VALID")
    """
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
    """The transpose of conv2d with respect to its images, which had `output_shape`.

    Example:
        tf.nn.conv2d_transpose(
            [[[[1.0], [2.0]]]], [[[[1.0]], [[1.0]]]], output_shape=[1, 1, 3, 1], strides=1, padding="VALID"
        )
    """
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
    """The transpose of conv3d with respect to its volumes, which had `output_shape`.

    Example:
        tf.nn.conv3d_transpose(
            np.ones([1, 1, 1, 1, 1], np.float32),
            np.ones([1, 1, 2, 1, 1], np.float32),
            output_shape=[1, 1, 1, 2, 1],
            strides=1,
            padding="VALID",
        )
    """
    return _transposed(3, input, filters, output_shape, _attrs(3, strides, padding, data_format, dilations))


def atrous_conv2d_transpose(
    value: to.TensorInput,
    filters: to.TensorInput,
    output_shape: to.IntsInput,
    rate: to.IntInput,
    padding: str,
    name: str | None = None,
) -> Tensor:
    """The transpose of atrous_conv2d with respect to its images, which had `output_shape`.

    Example:
        tf.nn.atrous_conv2d_transpose(
            np.ones([1, 1, 1, 1], np.float32),
            np.ones([2, 2, 1, 1], np.float32),
            output_shape=[1, 3, 3, 1],
            rate=2,
            padding="VALID",
        )
    """
    return conv2d_transpose(value, filters, output_shape, 1, padding, dilations=to.whole(rate))
