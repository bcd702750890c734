"""`tf.nn`'s pooling. By hand: what its lengths and borders mean depends on the rank and the data format."""

from __future__ import annotations

from typing import Any

from teletape.ops import arguments as to
from teletape.ops.dispatch import call, convert_to_tensor
from teletape.ops.windows import border, channels_first, lengths, word
from teletape.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op

__all__ = [
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "pool",
]


def _pooled(images: Op, others: Op, n: int, x: Any, ksize: Any, strides: Any, padding: Any, data_format: Any) -> Tensor:
    """Pooling by the op for images [n, height, width, channels], or by that for other ranks and formats."""
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
    """The largest element of each window, over the one, two or three axes between the batch and the channels."""
    tensor, n = _axes(input)
    return _pooled(ops.max_pool, ops.max_pooling, n, tensor, ksize, strides, padding, data_format)


def max_pool1d(
    input: to.TensorInput,
    ksize: to.IntsInput,
    strides: to.IntsInput,
    padding: to.PaddingInput,
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """The largest element of each window of lines [n, width, channels]."""
    return _pooled(ops.max_pool, ops.max_pooling, 1, input, ksize, strides, padding, data_format)


def max_pool2d(
    input: to.TensorInput,
    ksize: to.IntsInput,
    strides: to.IntsInput,
    padding: to.PaddingInput,
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The largest element of each window of images [n, height, width, channels]; NaN is never the largest."""
    return _pooled(ops.max_pool, ops.max_pooling, 2, input, ksize, strides, padding, data_format)


def max_pool3d(
    input: to.TensorInput,
    ksize: to.IntsInput,
    strides: to.IntsInput,
    padding: to.PaddingInput,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """The largest element of each window of volumes [n, depth, height, width, channels]."""
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
    """The mean of each window's elements inside, over the axes between the batch and the channels."""
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
    """The mean of each window of lines [n, width, channels], over its elements inside."""
    return _pooled(ops.avg_pool, ops.avg_pooling, 1, input, ksize, strides, word(padding), data_format)


def avg_pool2d(
    input: to.TensorInput,
    ksize: to.IntsInput,
    strides: to.IntsInput,
    padding: str,
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The mean of each window of images [n, height, width, channels], over its elements inside."""
    return _pooled(ops.avg_pool, ops.avg_pooling, 2, input, ksize, strides, word(padding), data_format)


def avg_pool3d(
    input: to.TensorInput,
    ksize: to.IntsInput,
    strides: to.IntsInput,
    padding: str,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """The mean of each window of volumes [n, depth, height, width, channels], over its elements inside."""
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

    Raises:
        ValueError: Another type.
        InvalidArgumentError: Dilations other than 1, which are not offered.
    """
    tensor, n = _axes(input)
    if dilations is not None and set(to.ints(dilations, "dilations")) - {1}:
        to.not_offered(dilations, "pool", "dilations")
    if pooling_type == "MAX":
        return _pooled(ops.max_pool, ops.max_pooling, n, tensor, window_shape, strides, padding, data_format)
    if pooling_type == "AVG":
        return _pooled(ops.avg_pool, ops.avg_pooling, n, tensor, window_shape, strides, word(padding), data_format)
    raise ValueError(f"Value passed for `pooling_type` must be 'MAX' or 'AVG', found {pooling_type!r}")
