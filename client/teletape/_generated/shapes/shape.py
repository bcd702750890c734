"""TensorFlow's functions of teletape_engine.ops.shapes.shape.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_RESHAPE = ops.reshape
_EXPAND_DIMS = ops.expand_dims
_SQUEEZE = ops.squeeze
_TRANSPOSE = ops.transpose
_BROADCAST_TO = ops.broadcast_to
_TILE = ops.tile


def reshape(tensor: to.TensorInput, shape: to.IntsInput, name: str | None = None) -> Tensor:
    """The same elements, in row-major order, in another shape; one length may be -1: it follows from the others."""
    try:
        return call(_RESHAPE, (tensor,), shape=to.ints(shape, "shape"))
    except BaseException as error:
        report(error)
        raise


def expand_dims(input: to.TensorInput, axis: to.IntsInput, name: str | None = None) -> Tensor:
    """x with a new axis of length 1 at `axis` of the result."""
    try:
        return call(_EXPAND_DIMS, (input,), axis=to.one_int(axis, "axis", "ExpandDims"))
    except BaseException as error:
        report(error)
        raise


def squeeze(input: to.TensorInput, axis: to.IntsInput | None = None, name: str | None = None) -> Tensor:
    """x without the axes of `axis`, which must have length 1; without every such axis if none is named."""
    try:
        attrs: dict[str, Any] = {}
        if axis is not None:
            attrs["axis"] = to.axes(axis)
        return call(_SQUEEZE, (input,), **attrs)
    except BaseException as error:
        report(error)
        raise


def transpose(
    a: to.TensorInput, perm: to.IntsInput | None = None, conjugate: bool = False, name: str | None = None
) -> Tensor:
    """Reorders the axes: axis i of the result is axis `perm[i]` of x. Without `perm` the order is reversed."""
    try:
        attrs: dict[str, Any] = {}
        if perm is not None:
            attrs["perm"] = to.ints(perm, "perm")
        result = call(_TRANSPOSE, (a,), **attrs)
        return to.conjugate(result) if conjugate else result
    except BaseException as error:
        report(error)
        raise


def broadcast_to(input: to.TensorInput, shape: to.IntsInput, name: str | None = None) -> Tensor:
    """x repeated along new leading axes and along its axes of length 1."""
    try:
        return call(_BROADCAST_TO, (input,), shape=to.lengths(shape, "BroadcastTo"))
    except BaseException as error:
        report(error)
        raise


def tile(input: to.TensorInput, multiples: to.IntsInput, name: str | None = None) -> Tensor:
    """x repeated `multiples[i]` times along axis i."""
    try:
        return call(_TILE, (input,), multiples=to.ints(multiples, "multiples"))
    except BaseException as error:
        report(error)
        raise
