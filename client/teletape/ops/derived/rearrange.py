"""TensorFlow's functions of teletape_engine.ops.shapes.rearrange.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.ops import arguments as to
from teletape.ops.dispatch import call
from teletape.program.tracebacks import report
from teletape.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_REVERSE = ops.reverse
_ROLL = ops.roll
_INVERT_PERMUTATION = ops.invert_permutation


def reverse(tensor: to.TensorInput, axis: to.IntsInput, name: str | None = None) -> Tensor:
    """x with the elements along each of the axes in the opposite order."""
    try:
        return call(_REVERSE, (tensor,), axis=to.ints(axis, "axis"))
    except Exception as error:
        report(error)
        raise


def roll(input: to.TensorInput, shift: to.IntsInput, axis: to.IntsInput, name: str | None = None) -> Tensor:
    """x with its elements moved by `shift[i]` places along `axis[i]`; what leaves at one end enters at the other."""
    try:
        return call(_ROLL, (input,), shift=to.ints(shift, "shift"), axis=to.ints(axis, "axis"))
    except Exception as error:
        report(error)
        raise


def invert_permutation(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The permutation y with y[x[i]] = i, of the numbers 0 to n - 1.

    Raises:
        InvalidArgumentError: A number is missing.
    """
    try:
        return call(_INVERT_PERMUTATION, (x,))
    except Exception as error:
        report(error)
        raise
