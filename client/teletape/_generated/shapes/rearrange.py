"""TensorFlow's functions of teletape_engine.ops.shapes.rearrange.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_REVERSE = ops.reverse
_ROLL = ops.roll
_INVERT_PERMUTATION = ops.invert_permutation
_REVERSE_SEQUENCE = ops.reverse_sequence
_UNRAVEL_INDEX = ops.unravel_index


def reverse(tensor: to.TensorInput, axis: to.IntsInput, name: str | None = None) -> Tensor:
    """x with the elements along each of the axes in the opposite order."""
    try:
        return call(_REVERSE, (tensor,), axis=to.ints(axis, "axis"))
    except BaseException as error:
        report(error)
        raise


def roll(input: to.TensorInput, shift: to.IntsInput, axis: to.IntsInput, name: str | None = None) -> Tensor:
    """x with its elements moved by `shift[i]` places along `axis[i]`; what leaves at one end enters at the other."""
    try:
        return call(_ROLL, (input,), shift=to.ints(shift, "shift"), axis=to.ints(axis, "axis"))
    except BaseException as error:
        report(error)
        raise


def invert_permutation(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The permutation y with y[x[i]] = i, of the numbers 0 to n - 1.

    Raises:
        InvalidArgumentError: A number is missing.
    """
    try:
        x = to.int32_tensor(x)
        return call(_INVERT_PERMUTATION, (x,))
    except BaseException as error:
        report(error)
        raise


def reverse_sequence(
    input: to.TensorInput,
    seq_lengths: to.TensorInput,
    seq_axis: to.IntInput | None = None,
    batch_axis: to.IntInput | None = None,
    name: str | None = None,
) -> Tensor:
    """x with the first `seq_lengths[i]` elements along `seq_axis` in the opposite order, at each i of `batch_axis`.

    Raises:
        InvalidArgumentError: A length is negative, or more than there are elements along the axis.
    """
    try:
        input = to.tensor(input)
        seq_lengths = to.tensor(seq_lengths)
        attrs: dict[str, Any] = {}
        if seq_axis is not None:
            attrs["seq_axis"] = to.whole(seq_axis)
        if batch_axis is not None:
            attrs["batch_axis"] = to.whole(batch_axis)
        return call(_REVERSE_SEQUENCE, (input, seq_lengths), **attrs)
    except BaseException as error:
        report(error)
        raise


def unravel_index(indices: to.TensorInput, dims: to.IntsInput, name: str | None = None) -> Tensor:
    """The coordinates [len(dims), *x.shape] of row-major positions x in an array of shape `dims`.

    Raises:
        InvalidArgumentError: A place outside that array.
    """
    try:
        return call(_UNRAVEL_INDEX, (indices,), dims=to.ints(dims, "dims"))
    except BaseException as error:
        report(error)
        raise
