"""`tf.nn`'s pooling. By hand: the meaning of lengths and borders depends on the rank and the data format.

Long because twelve functions document their arguments.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.tf.ops.nn.convolutions import with_space_to_batch
from teletape.tf.ops.nn.windows import border, channels_first, lengths, word
from teletape.tf.ops.random.stateful import next_state
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op
from teletape_engine.errors import InvalidArgumentError, UnimplementedError


class MaxPoolWithArgmax(NamedTuple):
    """The result of max_pool_with_argmax."""

    output: Tensor
    argmax: Tensor


class FractionalMaxPool(NamedTuple):
    """The result of fractional_max_pool."""

    output: Tensor
    row_pooling_sequence: Tensor
    col_pooling_sequence: Tensor


class FractionalAvgPool(NamedTuple):
    """The result of fractional_avg_pool."""

    output: Tensor
    row_pooling_sequence: Tensor
    col_pooling_sequence: Tensor


def _pooled(images: Op, others: Op, n: int, x: Any, ksize: Any, strides: Any, padding: Any, data_format: Any) -> Tensor:
    """Pooling by the op for images [n, height, width, channels], or by the op for other ranks and formats."""
    first = channels_first(data_format, n)
    attrs = {
        "ksize": lengths(ksize, n, "ksize", first),
        "strides": lengths(strides, n, "strides", first),
        **border(padding, n, first),
    }
    tensor = convert_to_tensor(x)
    if n == 2 and not first:
        return call(images, (tensor,), **attrs)
    return call(others, (tensor,), channels_first=first, **attrs)


def _largest(n: int, x: Any, ksize: Any, strides: Any, padding: Any, data_format: Any) -> Tensor:
    if n == 2:
        x = to.by_default(x, dtypes.float32, "iuf")
    if n == 2 and not channels_first(data_format, n):
        size = _whole(ksize, "ksize")
        if size[3] != 1:
            return _largest_of_channels(x, size, _whole(strides, "strides"), padding)
    return _pooled(ops.max_pool, ops.max_pooling, n, x, ksize, strides, padding, data_format)


def _whole(x: Any, what: str) -> tuple[int, ...]:
    """Lengths for the four axes of images; if there are not four, those of the batch and the channels are 1."""
    numbers = () if x is None or isinstance(x, int | float) else to.ints(x, what)
    return numbers if len(numbers) == 4 else (1, 1, 1, 1)


def _largest_of_channels(x: Any, ksize: tuple[int, ...], strides: tuple[int, ...], padding: Any) -> Tensor:
    """The largest of every `ksize[3]` channels of images: each pixel's channels become an image of one column."""
    size = ksize[3]
    tensor = convert_to_tensor(x)
    if ksize[0] != 1 or strides[0] != 1:
        raise UnimplementedError("Pooling is not yet supported on the batch dimension.")
    if ksize[1:3] != (1, 1):
        raise UnimplementedError(
            "MaxPooling supports exactly one of pooling across depth or pooling across width/height."
        )
    if strides[3] != size:
        raise UnimplementedError("Depthwise max pooling requires the depth window to equal the depth stride")
    if word(padding) not in ("SAME", "VALID"):
        raise InvalidArgumentError(f"padding must be 'SAME' or 'VALID' for windows of channels, found {padding!r}")
    if tensor.ndim != 4 or size < 1 or tensor.shape[3] % size:
        raise UnimplementedError("Depthwise max pooling requires the depth window to evenly divide the input depth")
    outer = tuple(tensor.shape)[:3]  # every pixel, whatever the strides of rows and columns, as in TensorFlow
    columns = call(ops.reshape, (tensor,), shape=(math.prod(outer), tensor.shape[3], 1, 1))
    largest = call(ops.max_pool, (columns,), ksize=(size, 1), strides=(size, 1), padding="VALID")
    return call(ops.reshape, (largest,), shape=(*outer, tensor.shape[3] // size))


def _axes(x: Any) -> tuple[Tensor, int]:
    """x as a tensor, and the number of axes between its batch and its channels."""
    tensor = convert_to_tensor(x)
    n = tensor.ndim - 2
    if n not in (1, 2, 3):
        raise ValueError(f"Input tensor must be of rank 3, 4 or 5 but was {tensor.ndim}.")
    return tensor, n


# -------------------------------------------------------------------------------------------------------------- largest
def max_pool(
    input: to.TensorInput,
    ksize: to.IntsInput,
    strides: to.IntsInput,
    padding: to.PaddingInput,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The largest element of each window, over the one, two or three axes between the batch and the channels.

    Example:
        tf.nn.max_pool([[[[1.0], [2.0]], [[3.0], [4.0]]]], ksize=2, strides=1, padding="VALID")
    """
    tensor, n = _axes(input)
    return _largest(n, tensor if n != 2 else input, ksize, strides, padding, data_format)


def max_pool1d(
    input: to.TensorInput,
    ksize: to.IntsInput,
    strides: to.IntsInput,
    padding: to.PaddingInput,
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """The largest element of each window of lines [n, width, channels].

    Example:
        tf.nn.max_pool1d([[[1.0], [3.0], [2.0]]], ksize=2, strides=1, padding="VALID")
    """
    return _pooled(ops.max_pool, ops.max_pooling, 1, input, ksize, strides, padding, data_format)


def max_pool2d(
    input: to.TensorInput,
    ksize: to.IntsInput,
    strides: to.IntsInput,
    padding: to.PaddingInput,
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The largest element of each window of images [n, height, width, channels]; NaN is never the largest.

    A window [1, 1, 1, k] with the same strides pools k channels; k must divide their number.

    Example:
        tf.nn.max_pool2d([[[[1.0], [2.0]], [[3.0], [4.0]]]], ksize=2, strides=1, padding="VALID")
    """
    return _largest(2, input, ksize, strides, padding, data_format)


def max_pool3d(
    input: to.TensorInput,
    ksize: to.IntsInput,
    strides: to.IntsInput,
    padding: to.PaddingInput,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """The largest element of each window of volumes [n, depth, height, width, channels].

    Example:
        tf.nn.max_pool3d(np.ones([1, 2, 2, 2, 1], np.float32), ksize=2, strides=1, padding="VALID")
    """
    return _pooled(ops.max_pool, ops.max_pooling, 3, input, ksize, strides, padding, data_format)


# ----------------------------------------------------------------------------------------------------------------- mean
def avg_pool(
    input: to.TensorInput,
    ksize: to.IntsInput,
    strides: to.IntsInput,
    padding: str,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The mean of each window, over its elements inside, along the axes between the batch and the channels.

    Example:
        tf.nn.avg_pool([[[[1.0], [2.0]], [[3.0], [4.0]]]], ksize=2, strides=1, padding="VALID")
    """
    tensor, n = _axes(input)
    return _pooled(ops.avg_pool, ops.avg_pooling, n, tensor, ksize, strides, word(padding), data_format)


def avg_pool1d(
    input: to.TensorInput,
    ksize: to.IntsInput,
    strides: to.IntsInput,
    padding: str,
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """The mean of each window of lines [n, width, channels], over its elements inside.

    Example:
        tf.nn.avg_pool1d([[[1.0], [2.0], [3.0]]], ksize=2, strides=1, padding="VALID")
    """
    return _pooled(ops.avg_pool, ops.avg_pooling, 1, input, ksize, strides, word(padding), data_format)


def avg_pool2d(
    input: to.TensorInput,
    ksize: to.IntsInput,
    strides: to.IntsInput,
    padding: str,
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The mean of each window of images [n, height, width, channels], over its elements inside.

    Example:
        tf.nn.avg_pool2d([[[[1.0], [2.0]], [[3.0], [4.0]]]], ksize=2, strides=1, padding="VALID")
    """
    return _pooled(ops.avg_pool, ops.avg_pooling, 2, input, ksize, strides, word(padding), data_format)


def avg_pool3d(
    input: to.TensorInput,
    ksize: to.IntsInput,
    strides: to.IntsInput,
    padding: str,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """The mean of each window of volumes [n, depth, height, width, channels], over its elements inside.

    Example:
        tf.nn.avg_pool3d(np.ones([1, 2, 2, 2, 1], np.float32), ksize=2, strides=1, padding="VALID")
    """
    return _pooled(ops.avg_pool, ops.avg_pooling, 3, input, ksize, strides, word(padding), data_format)


def pool(
    input: to.TensorInput,
    window_shape: to.IntsInput,
    pooling_type: str,
    strides: to.IntsInput | None = None,
    padding: to.PaddingInput = "VALID",
    data_format: str | None = None,
    dilations: to.IntsInput | None = None,
    name: str | None = None,
) -> Tensor:
    """Pooling of one type, "MAX" or "AVG", over the axes between the batch and the channels.

    `dilations` has the distance of a window's elements along each of these axes.

    Raises:
        ValueError: Another type; dilations above 1 with strides above 1, or with padding; dilations below 1.

    Example:
        tf.nn.pool([[[1.0], [3.0], [2.0]]], window_shape=[2], pooling_type="MAX", strides=[1])
    """
    tensor, n = _axes(input)
    if pooling_type not in ("MAX", "AVG"):
        raise ValueError(f"Value passed for `pooling_type` must be 'MAX' or 'AVG', found {pooling_type!r}")
    images, others = (ops.max_pool, ops.max_pooling) if pooling_type == "MAX" else (ops.avg_pool, ops.avg_pooling)
    rates = (1,) * n if dilations is None else _rates(dilations, n, strides, padding)

    def pooled(x: Tensor, count: int, border: Any) -> Tensor:
        return _pooled(images, others, n, x, window_shape, strides, border, data_format)

    padding = padding if pooling_type == "MAX" else word(padding)
    result: Tensor = with_space_to_batch(tensor, rates, padding, pooled, data_format=data_format)
    return result


def _rates(dilations: Any, n: int, strides: Any, padding: Any) -> tuple[int, ...]:
    """One dilation for each of n axes."""
    rates = to.ints(dilations, "dilations")
    if len(rates) != n:
        raise ValueError(f"dilations should be of length {n}. Received: dilations={rates} of length {len(rates)}")
    if min(rates) < 1:
        raise ValueError(f"all dilations must be positive. Received: dilations={rates}")
    if max(rates) > 1:
        if strides is not None and set(to.ints(strides, "strides")) - {1}:
            raise ValueError(
                f"`strides > 1` not supported in conjunction with dilations > 1. Received: strides={strides} and "
                f"dilations={rates}"
            )
        if padding != "VALID":
            raise ValueError(f"dilations > 1 need padding 'VALID'. Received: padding={padding} and dilations={rates}")
    return rates


# -------------------------------------------------------------------------------------------------------------- places
def max_pool_with_argmax(
    input: to.TensorInput,
    ksize: to.IntsInput,
    strides: to.IntsInput,
    padding: str,
    data_format: str = "NHWC",
    output_dtype: to.DTypeInput = dtypes.int64,
    include_batch_in_index: bool = False,
    name: str | None = None,
) -> MaxPoolWithArgmax:
    """The largest element of each window of images [n, height, width, channels], and its flat index.

    Args:
        input: Real numbers.
        ksize: Height and width of the windows.
        strides: The distance between windows.
        padding: "SAME" or "VALID".
        data_format: "NHWC".
        output_dtype: The dtype of the indices: int64 or int32.
        include_batch_in_index: Whether indices count through all images, not through each one.
        name: Without effect.

    Raises:
        InvalidArgumentError: Another padding, rank or dtype of indices.
        ValueError: Another data format.

    Example:
        tf.nn.max_pool_with_argmax([[[[1.0], [2.0]], [[3.0], [4.0]]]], ksize=2, strides=1, padding="VALID")
    """
    if data_format != "NHWC":
        raise ValueError(
            f"`data_format` values other  than 'NHWC' are not supported. Received: data_format={data_format}"
        )
    results = call(
        ops.max_pool_with_argmax,
        (convert_to_tensor(input),),
        ksize=lengths(ksize, 2, "ksize"),
        strides=lengths(strides, 2, "strides"),
        padding=word(padding),
        include_batch_in_index=bool(include_batch_in_index),
        index_type=to.dtype(output_dtype),
    )
    return MaxPoolWithArgmax(*results)


# ---------------------------------------------------------------------------------------------------------- fractional
def fractional_max_pool(
    value: to.TensorInput,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> FractionalMaxPool:
    """The largest element of windows on images; the windows have two lengths, which differ by 1, in random order.

    Args:
        value: [n, height, width, channels].
        pooling_ratio: The old height and width over the new ones, at least 1: one number, or [1, rows, columns, 1].
        pseudo_random: Whether windows are evenly spaced before they are rounded; else their order is random.
        overlapping: Whether a window also has the first row and column of the next.
        seed: The windows follow from it and from the program's seed; 0: other windows at each call.
        name: Without effect.

    Returns:
        The elements, and the bounds of windows along rows and along columns, int64.

    Raises:
        ValueError: Ratios below 1, or along the batch or the channels.

    Example:
        tf.nn.fractional_max_pool(np.ones([1, 4, 4, 1], np.float32), [1.0, 2.0, 2.0, 1.0], seed=1)
    """
    ratios = list(pooling_ratio) if isinstance(pooling_ratio, list | tuple) else [pooling_ratio]
    if len(ratios) not in (1, 4) or (len(ratios) == 4 and (ratios[0] != 1.0 or ratios[-1] != 1.0)):
        raise ValueError(
            f"`pooling_ratio` should have first and last elements with value 1.0. Received: "
            f"pooling_ratio={pooling_ratio}"
        )
    if min(ratios) < 1.0:
        raise ValueError(f"`pooling_ratio` elements should be >= 1.0. Received: pooling_ratio={pooling_ratio}")
    sides = ratios * 2 if len(ratios) == 1 else ratios[1:3]
    tensor, rows, columns = _fractional("max", value, sides, pseudo_random, seed)
    output = call(ops.fractional_max_pool, (tensor, rows, columns), overlapping=bool(overlapping))
    return FractionalMaxPool(output, rows, columns)


def fractional_avg_pool(
    value: to.TensorInput,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> FractionalAvgPool:
    """The mean of windows like those of fractional_max_pool; `pooling_ratio` is [1, rows, columns, 1].

    Raises:
        InvalidArgumentError: Ratios below 1, or another number of them.
        TypeError: No list of ratios.
        UnimplementedError: Ratios along the batch or the channels.

    Example:
        tf.nn.fractional_avg_pool(np.ones([1, 4, 4, 1], np.float32), [1.0, 2.0, 2.0, 1.0], seed=1)
    """
    if not isinstance(pooling_ratio, list | tuple):
        raise TypeError(f"Expected list for 'pooling_ratio' argument to 'fractional_avg_pool' Op, not {pooling_ratio}.")
    if len(pooling_ratio) != 4:
        raise InvalidArgumentError(f"'pooling_ratio' must have 4 numbers, found {pooling_ratio}")
    if min(pooling_ratio) < 1:
        raise InvalidArgumentError(f"pooling_ratio cannot be smaller than 1, got: {min(pooling_ratio)}")
    if pooling_ratio[0] != 1 or pooling_ratio[3] != 1:
        raise UnimplementedError("Fractional average pooling is not yet supported on the batch nor channel dimension.")
    tensor, rows, columns = _fractional("avg", value, pooling_ratio[1:3], pseudo_random, seed)
    output = call(ops.fractional_avg_pool, (tensor, rows, columns), overlapping=bool(overlapping))
    return FractionalAvgPool(output, rows, columns)


def _fractional(kind: str, value: Any, ratios: Any, pseudo_random: bool, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Images, and the bounds of windows on them: the same at each call with the same seed, as in TensorFlow."""
    tensor = convert_to_tensor(value)
    if tensor.ndim != 4:
        raise InvalidArgumentError(f"value must be 4-dimensional, found shape {tensor.shape}")
    sides = tuple(tensor.shape)[1:3]
    counts = tuple(int(side / float(ratio)) for side, ratio in zip(sides, ratios, strict=True))
    state = next_state(("fractional_pool", kind), 0 if seed else sum(counts), seed or None)
    attrs = {"lengths": sides, "counts": counts, "pseudo_random": bool(pseudo_random)}
    borders = call(ops.philox_borders, (state,), **attrs)
    rows = call(ops.strided_slice, (borders,), index=((0, counts[0] + 1, None),))
    columns = call(ops.strided_slice, (borders,), index=((counts[0] + 1, None, None),))
    return tensor, rows, columns
