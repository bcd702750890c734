"""`tf.nn.isotonic_regression`. By hand: it has two results."""

from __future__ import annotations

from typing import NamedTuple

from teletape._generated.shapes.cast import cast
from teletape._generated.shapes.shape import transpose
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops
from teletape_engine.spec import axis_in


class IsotonicRegression(NamedTuple):
    """The result of isotonic_regression."""

    output: Tensor
    segments: Tensor


def isotonic_regression(inputs: to.TensorInput, decreasing: bool = True, axis: to.IntInput = -1) -> IsotonicRegression:
    """The sequences along an axis that never rise (never fall) and are nearest to the inputs, by the sum of squares.

    By hand: it returns the segments too. The gradient of an element is spread evenly over its segment.

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
