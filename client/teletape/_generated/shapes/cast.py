"""TensorFlow's functions of teletape_engine.ops.shapes.cast.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls import checks
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_CAST = ops.cast
_IDENTITY = ops.identity
_STOP_GRADIENT = ops.stop_gradient
_NO_GRADIENT = ops.no_gradient
_BITCAST = ops.bitcast


def cast(x: to.TensorInput, dtype: to.DTypeInput, name: str | None = None) -> Tensor:
    """The elements of x converted to another dtype.

    To integers: toward zero; to bool: whether it is not 0; of complex numbers the real part. The gradient passes
    between floating and complex dtypes, and is None through integers and bool.
    """
    try:
        x = to.slices_or_tensor(x)
        result = checks.itself_or_slices(x, dtype)
        if result is not None:
            return result
        return call(_CAST, (x,), dtype=to.dtype(dtype))
    except BaseException as error:
        report(error)
        raise


def ensure_shape(x: to.TensorInput, shape: Any, name: str | None = None) -> Tensor:
    """`x`, if its shape is compatible with `shape`, which may hold None for any length."""
    try:
        x = to.tensor(x)
        checks.compatible_shape(x, shape)
        return call(_IDENTITY, (x,))
    except BaseException as error:
        report(error)
        raise


def stop_gradient(input: to.TensorInput, name: str | None = None) -> Tensor:
    """x itself, as a constant: no gradient passes through it."""
    try:
        return call(_STOP_GRADIENT, (input,))
    except BaseException as error:
        report(error)
        raise


def no_gradient(input: to.TensorInput, T: Any = None, name: str | None = None) -> Tensor:
    """x itself, declared non-differentiable: the gradient through it is None."""
    try:
        return call(_NO_GRADIENT, (input,))
    except BaseException as error:
        report(error)
        raise


def bitcast(input: to.TensorInput, type: to.DTypeInput, name: str | None = None) -> Tensor:
    """The bits of x as elements of another dtype; elements of another size add a last axis, or join along it."""
    try:
        input = to.tensor(input)
        return call(_BITCAST, (input,), dtype=to.dtype(type))
    except BaseException as error:
        report(error)
        raise
