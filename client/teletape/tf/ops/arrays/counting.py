"""TensorFlow's functions that count, and masks. By hand: the size of the result is by default read from values."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape._generated.shapes.cast import cast
from teletape._generated.shapes.shape import squeeze
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError

__all__ = ["bincount", "confusion_matrix"]  # and sequence_mask, which is not below `tf.math`


def sequence_mask(
    lengths: to.TensorInput,
    maxlen: to.IntInput | None = None,
    dtype: to.DTypeInput = dtypes.bool,
    name: str | None = None,
) -> Tensor:
    """Masks: for each length a row whose first elements, as many, are true.

    Args:
        lengths: [...] whole numbers.
        maxlen: The width of the rows; None: the largest length, which is read.
        dtype: Of the result.
        name: Accepted, without effect.

    Raises:
        ValueError: `maxlen` is not one number.

    Example:
        tf.sequence_mask([1, 3], maxlen=3)
    """
    tensor = convert_to_tensor(lengths)
    width: Any = maxlen
    if np.ndim(width):
        raise ValueError(f"Argument `maxlen` must be scalar for sequence_mask, received `maxlen` = {maxlen}")
    if not tensor.dtype.is_integer:  # a fraction counts as a whole element, unless there is a width
        tensor = cast(call(ops.ceil, (tensor,)) if maxlen is None else tensor, dtypes.int32)
    if maxlen is None:
        maxlen = max(int(call(ops.reduce_max, (tensor,))), 0) if tensor.shape.num_elements() else 0
    return call(ops.sequence_mask, (tensor,), maxlen=to.whole(maxlen), dtype=to.dtype(dtype))


def bincount(
    arr: to.TensorInput,
    weights: to.TensorInput | None = None,
    minlength: to.IntInput | None = None,
    maxlength: to.IntInput | None = None,
    dtype: to.DTypeInput = dtypes.int32,
    name: str | None = None,
    axis: to.IntInput | None = None,
    binary_output: bool = False,
) -> Tensor:
    """Counts the numbers 0, 1, … in `arr`, or sums the weights of each number.

    Args:
        arr: Whole numbers, none negative. The largest is read, unless `minlength` and `maxlength` are equal.
        weights: A number for each; None: 1.
        minlength: The result has at least this length.
        maxlength: The result has at most this length; larger numbers are left out.
        dtype: Of the result without weights.
        name: Accepted, without effect.
        axis: None or 0: all of `arr`; -1: each row of a matrix.
        binary_output: Whether the result is 1 for each number that occurs.

    Raises:
        InvalidArgumentError: A negative number; weights of another shape.
        ValueError: Another axis, or weights for a binary output.

    Example:
        tf.math.bincount([1, 1, 3], weights=[0.5, 0.5, 2.0])
    """
    if axis not in (None, 0, -1):
        raise ValueError(f"Unsupported value for argument axis={axis}. Only 0 and -1 are currently supported.")
    if weights is not None and binary_output:
        raise ValueError("Arguments `binary_output` and `weights` are mutually exclusive. Please specify only one.")
    numbers = convert_to_tensor(arr)
    if numbers.dtype is not dtypes.int64:
        numbers = cast(numbers, dtypes.int32)
    least, most = (None if bound is None else to.whole(bound) for bound in (minlength, maxlength))
    if least is None or least != most:
        size = max(_largest(numbers) + 1, least or 0)
        most = size if most is None else min(size, most)
    amounts = call(ops.ones_like, (numbers,)) if weights is None else convert_to_tensor(weights)
    if weights is None and amounts.dtype is not dtypes.as_dtype(dtype):
        amounts = cast(amounts, dtype)
    counts = call(ops.bincount, (numbers, amounts), size=most, rows=axis == -1 and numbers.ndim > 1)
    return cast(call(ops.greater, (counts, 0)), counts.dtype) if binary_output else counts


def _largest(numbers: Tensor) -> int:
    """The largest of the numbers, -1 if there are none; InvalidArgumentError if one is negative."""
    if not numbers.shape.num_elements():
        return -1
    extremes = call(ops.stack, (call(ops.reduce_min, (numbers,)), call(ops.reduce_max, (numbers,)))).numpy()
    if extremes[0] < 0:
        raise InvalidArgumentError("Input arr must be non-negative!")
    return int(extremes[1])


def confusion_matrix(
    labels: to.TensorInput,
    predictions: to.TensorInput,
    num_classes: to.IntInput | None = None,
    weights: to.TensorInput | None = None,
    dtype: to.DTypeInput = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Counts each pair of label and prediction: [classes, classes], a row for each label.

    Args:
        labels: [n] classes; also [n, 1], if the predictions are [n].
        predictions: [n] classes; also [n, 1], if the labels are [n].
        num_classes: The number of classes; None: the largest label or prediction plus 1, which is read.
        weights: A number for each prediction; None: 1.
        dtype: Of the result.
        name: Accepted, without effect.

    Raises:
        InvalidArgumentError: A class that does not exist.

    Example:
        tf.math.confusion_matrix([0, 1, 1], [0, 1, 0])
    """
    rows, columns = (cast(convert_to_tensor(entry), dtypes.int64) for entry in (labels, predictions))
    if rows.ndim == columns.ndim + 1:
        rows = squeeze(rows, -1)
    elif columns.ndim == rows.ndim + 1:
        columns = squeeze(columns, -1)
    count = max(_largest(rows), _largest(columns)) + 1 if num_classes is None else to.whole(num_classes)
    amounts = call(ops.ones_like, (columns,)) if weights is None else convert_to_tensor(weights)
    places = call(ops.stack, (rows, columns), axis=1)
    return call(ops.scatter_nd, (places, cast(amounts, dtype)), shape=(count, count))
