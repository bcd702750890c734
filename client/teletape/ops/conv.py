"""Convolution and pooling as `tf.nn` has them: channels last, strides and paddings in every form that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from teletape.ops.arguments import ints
from teletape.ops.dispatch import call, convert_to_tensor
from teletape.tensors.tensor import EagerTensor, TensorLike
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import InvalidArgumentError, UnimplementedError

__all__ = ["avg_pool", "avg_pool2d", "conv2d", "conv2d_transpose", "max_pool", "max_pool2d"]


def conv2d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> EagerTensor:
    """Slides filters over images.

    Args:
        input: Images [..., height, width, channels].
        filters: [height, width, channels / groups, out], of the same dtype.
        strides: One length, two (rows, columns), or four.
        padding: "SAME", "VALID", or four pairs [before, after].
        data_format: NHWC.
        dilations: As strides; None: 1.
        name: Accepted, without effect.

    Raises:
        InvalidArgumentError: Shapes or dtypes do not go together; the message says which.
    """
    return call(CATALOGUE["conv2d"], (input, filters), **_geometry(strides, padding, data_format, dilations))


def conv2d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> EagerTensor:
    """The transpose of conv2d: the gradient of its images, which have `output_shape`; filters [h, w, out, channels]."""
    at = _geometry(strides, padding, data_format, dilations)
    return call(CATALOGUE["conv2d_backprop_input"], (input, filters), shape=ints(output_shape, "output_shape"), **at)


def max_pool2d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None
) -> EagerTensor:
    """The largest element of each window; its gradient goes to the first of equal ones.

    Args:
        input: Images [n, height, width, channels].
        ksize: Lengths of the window: one, two (rows, columns), or four.
        strides: The same, from window to window.
        padding: "SAME", "VALID", or four pairs [before, after].
        data_format: NHWC.
        name: Accepted, without effect.
    """
    at = _window(ksize) | _geometry(strides, padding, data_format)
    return call(CATALOGUE["max_pool"], (convert_to_tensor(input),), **at)


def avg_pool2d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None
) -> EagerTensor:
    """The mean of each window over what it sees of the image; arguments as max_pool2d's, without padding by pairs."""
    if not isinstance(padding, str):
        raise TypeError(f"Expected string for argument 'padding' not {padding!r}.")
    at = _window(ksize) | _geometry(strides, padding, data_format)
    return call(CATALOGUE["avg_pool"], (convert_to_tensor(input),), **at)


def max_pool(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> EagerTensor:
    """As max_pool2d: images alone, neither sequences nor volumes."""
    return max_pool2d(input, ksize, strides, padding, data_format or "NHWC")


def avg_pool(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> EagerTensor:
    """As avg_pool2d: images alone, neither sequences nor volumes."""
    return avg_pool2d(input, ksize, strides, padding, data_format or "NHWC")


# --------------------------------------------------------------------------------------------------------- arguments
def _geometry(strides: Any, padding: Any, data_format: str, dilations: Any = None) -> dict[str, Any]:
    if data_format != "NHWC":
        raise UnimplementedError(
            f"data_format {data_format} is not offered, only NHWC: transpose the images so that channels come last"
        )
    found: dict[str, Any] = {"strides": _pair(strides, "strides")}
    if isinstance(padding, str):
        found["padding"] = padding
    else:
        found |= {"padding": "EXPLICIT", "paddings": _border(padding)}
    if dilations is not None:
        found["dilations"] = _pair(dilations, "dilations")
    return found


def _window(ksize: Any) -> dict[str, Any]:
    return {"ksize": _pair(ksize, "ksize")}


def _pair(value: Any, what: str) -> tuple[int, int]:
    """(rows, columns) out of one, two or four lengths."""
    lengths = (int(value),) if isinstance(value, int | float) else ints(value, what)
    match lengths:
        case (one,):
            return one, one
        case (rows, columns):
            return rows, columns
        case (1, rows, columns, 1):
            return rows, columns
        case (_, _, _, _):
            raise UnimplementedError(
                f"Current implementation does not yet support {what} in the batch and depth dimensions."
            )
    raise ValueError(f"{what} should be of length 1, 2 or 4. Received: {what}={value} of length {len(lengths)}")


def _border(padding: Any) -> tuple[tuple[int, int], ...]:
    if isinstance(padding, TensorLike):
        padding = padding.numpy().tolist()
    if not isinstance(padding, Sequence) or len(padding) != 4:
        raise ValueError(
            f"When padding is a list, it must be of size 4. Received: padding={padding} of size {len(padding)}"
        )
    pairs = tuple((int(before), int(after)) for before, after in padding)
    if pairs[0] != (0, 0) or pairs[3] != (0, 0):
        raise InvalidArgumentError("Nonzero explicit padding in the batch or depth dimensions is not supported")
    return pairs[1:3]
