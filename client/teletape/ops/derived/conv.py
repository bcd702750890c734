"""TensorFlow's functions of teletape_engine.ops.nn.conv.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any

from teletape.ops import arguments as to
from teletape.ops.dispatch import call
from teletape.program.tracebacks import report
from teletape.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_CONV2D = ops.conv2d
_CONV2D_BACKPROP_INPUT = ops.conv2d_backprop_input


def conv2d(
    input: to.TensorInput,
    filters: to.TensorInput,
    strides: to.IntsInput,
    padding: to.PaddingInput,
    data_format: str = "NHWC",
    dilations: to.IntsInput | None = None,
    name: str | None = None,
) -> Tensor:
    """Slides filters f over images: y[i, j, o] = Σ x[i·stride + k·dilation, j·stride + l·dilation, c] · f[k, l, c, o].

    x: [..., height, width, channels]; filters: [height, width, channels / groups, out]; the result: [..., rows,
    columns, out]. `padding` is SAME, VALID, or EXPLICIT with `paddings` [[top, bottom], [left, right]].
    """
    try:
        to.channels_last(data_format)
        attrs: dict[str, Any] = {"strides": to.window(strides, "strides"), **to.padding(padding)}
        if dilations is not None:
            attrs["dilations"] = to.window(dilations, "dilations")
        return call(_CONV2D, (input, filters), **attrs)
    except Exception as error:
        report(error)
        raise


def conv2d_transpose(
    input: to.TensorInput,
    filters: to.TensorInput,
    output_shape: to.IntsInput,
    strides: to.IntsInput,
    padding: to.PaddingInput = "SAME",
    data_format: str = "NHWC",
    dilations: to.IntsInput | None = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of conv2d with respect to its images, which have `shape`: grad is of the shape of its result."""
    try:
        to.channels_last(data_format)
        attrs: dict[str, Any] = {
            "shape": to.ints(output_shape, "output_shape"),
            "strides": to.window(strides, "strides"),
            **to.padding(padding),
        }
        if dilations is not None:
            attrs["dilations"] = to.window(dilations, "dilations")
        return call(_CONV2D_BACKPROP_INPUT, (input, filters), **attrs)
    except Exception as error:
        report(error)
        raise
