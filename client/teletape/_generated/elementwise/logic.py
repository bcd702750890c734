"""TensorFlow's functions of teletape_engine.ops.elementwise.logic.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_EQUAL = ops.equal
_NOT_EQUAL = ops.not_equal
_LESS = ops.less
_LESS_EQUAL = ops.less_equal
_GREATER = ops.greater
_GREATER_EQUAL = ops.greater_equal
_LOGICAL_AND = ops.logical_and
_LOGICAL_OR = ops.logical_or
_LOGICAL_NOT = ops.logical_not
_BITWISE_AND = ops.bitwise_and
_BITWISE_OR = ops.bitwise_or
_BITWISE_XOR = ops.bitwise_xor
_LEFT_SHIFT = ops.left_shift
_RIGHT_SHIFT = ops.right_shift
_INVERT = ops.invert
_ISNAN = ops.isnan
_ISINF = ops.isinf
_ISFINITE = ops.isfinite


def equal(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """a == b, elementwise, as bool; nan equals nothing."""
    try:
        return call(_EQUAL, (x, y))
    except BaseException as error:
        report(error)
        raise


def not_equal(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """a != b, elementwise, as bool."""
    try:
        return call(_NOT_EQUAL, (x, y))
    except BaseException as error:
        report(error)
        raise


def logical_xor(x: to.TensorInput, y: to.TensorInput, name: str | None = "LogicalXor") -> Tensor:
    """True where exactly one of two bool tensors is. A value that is no bool is a TypeError, a tensor a ValueError."""
    try:
        x = to.bool_tensor(x)
        y = to.bool_tensor(y)
        return call(_NOT_EQUAL, (x, y))
    except BaseException as error:
        report(error)
        raise


def less(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """a < b, elementwise, as bool."""
    try:
        return call(_LESS, (x, y))
    except BaseException as error:
        report(error)
        raise


def less_equal(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """a <= b, elementwise, as bool."""
    try:
        return call(_LESS_EQUAL, (x, y))
    except BaseException as error:
        report(error)
        raise


def greater(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """a > b, elementwise, as bool."""
    try:
        return call(_GREATER, (x, y))
    except BaseException as error:
        report(error)
        raise


def greater_equal(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """a >= b, elementwise, as bool."""
    try:
        return call(_GREATER_EQUAL, (x, y))
    except BaseException as error:
        report(error)
        raise


def logical_and(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """Whether both are true, elementwise."""
    try:
        return call(_LOGICAL_AND, (x, y))
    except BaseException as error:
        report(error)
        raise


def logical_or(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """Whether one or both are true, elementwise."""
    try:
        return call(_LOGICAL_OR, (x, y))
    except BaseException as error:
        report(error)
        raise


def logical_not(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The opposite truth value, elementwise."""
    try:
        return call(_LOGICAL_NOT, (x,))
    except BaseException as error:
        report(error)
        raise


def bitwise_and(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """The bits set in both, elementwise, of integers."""
    try:
        return call(_BITWISE_AND, (x, y))
    except BaseException as error:
        report(error)
        raise


def bitwise_or(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """The bits set in one or both, elementwise, of integers."""
    try:
        return call(_BITWISE_OR, (x, y))
    except BaseException as error:
        report(error)
        raise


def bitwise_xor(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """The bits set in one but not both, elementwise, of integers."""
    try:
        return call(_BITWISE_XOR, (x, y))
    except BaseException as error:
        report(error)
        raise


def left_shift(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """The bits of a moved b places to the higher ones, elementwise, of integers."""
    try:
        return call(_LEFT_SHIFT, (x, y))
    except BaseException as error:
        report(error)
        raise


def right_shift(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """The bits of a moved b places to the lower ones, elementwise, of integers; the sign stays."""
    try:
        return call(_RIGHT_SHIFT, (x, y))
    except BaseException as error:
        report(error)
        raise


def invert(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Every bit flipped, elementwise, of integers."""
    try:
        return call(_INVERT, (x,))
    except BaseException as error:
        report(error)
        raise


def is_nan(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Whether x is not a number, elementwise, as bool."""
    try:
        return call(_ISNAN, (x,))
    except BaseException as error:
        report(error)
        raise


def is_inf(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Whether x is inf or -inf, elementwise, as bool."""
    try:
        return call(_ISINF, (x,))
    except BaseException as error:
        report(error)
        raise


def is_finite(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Whether x is neither nan nor infinite, elementwise, as bool."""
    try:
        return call(_ISFINITE, (x,))
    except BaseException as error:
        report(error)
        raise
