"""`tf.nn`: grayscale morphology of images. By hand: lengths are for four axes."""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.tensors.tensor import Tensor
from teletape.tf.ops.nn.windows import word
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError, UnimplementedError


def _inner(x: Any, what: str) -> tuple[int, ...]:
    """The second and third of four lengths."""
    if not isinstance(x, list | tuple):
        raise TypeError(f"Expected list for '{what}' argument to 'dilation2d' Op, not {x}.")
    numbers = to.ints(x, what)
    if len(numbers) < 4:
        raise InvalidArgumentError(f"Length for attr '{what}' of {len(numbers)} must be at least minimum 4")
    if numbers[0] != 1 or numbers[3] != 1:
        raise UnimplementedError("Stride is only supported across spatial dimensions.")
    return numbers[1:3]


def _check_format(data_format: str) -> None:
    if data_format != "NHWC":
        raise ValueError(
            f"`data_format` values other  than 'NHWC' are not supported. Received: data_format={data_format}"
        )


def dilation2d(
    input: to.TensorInput,
    filters: to.TensorInput,
    strides: to.IntsInput,
    padding: str,
    data_format: str,
    dilations: to.IntsInput,
    name: str | None = None,
) -> Tensor:
    """The largest sum of an image and a filter in each window: light parts grow.

    Args:
        input: [n, height, width, channels] real numbers.
        filters: [rows, columns, channels].
        strides: [1, rows, columns, 1]: the distance between windows.
        padding: "SAME" or "VALID".
        data_format: "NHWC".
        dilations: [1, rows, columns, 1]: the distance between the elements of a window.
        name: Without effect.

    Raises:
        InvalidArgumentError: Shapes that do not fit, another padding.
        ValueError: Another data format.

    Example:
        tf.nn.dilation2d(
            [[[[1.0], [2.0]], [[3.0], [4.0]]]],
            [[[0.0], [0.0]]],
            strides=[1, 1, 1, 1],
            padding="VALID",
            data_format="NHWC",
            dilations=[1, 1, 1, 1],
        )
    """
    _check_format(data_format)
    tensor = convert_to_tensor(input)
    attrs = {"strides": _inner(strides, "strides"), "rates": _inner(dilations, "rates"), "padding": word(padding)}
    return call(ops.dilation2d, (tensor, convert_to_tensor(filters, tensor.dtype)), **attrs)


def erosion2d(
    value: to.TensorInput,
    filters: to.TensorInput,
    strides: to.IntsInput,
    padding: str,
    data_format: str,
    dilations: to.IntsInput,
    name: str | None = None,
) -> Tensor:
    """The smallest difference of an image and a filter in each window: dark parts grow. Arguments: see `dilation2d`.

    Example:
        tf.nn.erosion2d(
            [[[[1.0], [2.0]], [[3.0], [4.0]]]],
            [[[0.0], [0.0]]],
            strides=[1, 1, 1, 1],
            padding="VALID",
            data_format="NHWC",
            dilations=[1, 1, 1, 1],
        )
    """
    _check_format(data_format)
    tensor = convert_to_tensor(value)
    weights = convert_to_tensor(filters, tensor.dtype)
    back = (None, None, -1)
    turned = call(ops.strided_slice, (weights,), index=(back, back, "...")) if weights.ndim > 1 else weights
    negative = call(ops.neg, (tensor,))
    return call(ops.neg, (dilation2d(negative, turned, strides, padding, data_format, dilations),))
