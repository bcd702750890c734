"""Constants: computed in float64 when a text is compiled, so that the result has no dtype either."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from teletape_engine.catalogue.op import Op, Reach, Trait
from teletape_engine.errors import TeletapeError
from teletape_engine.spec import Spec
from teletape_server.expressions.faults import Place, fault
from teletape_server.expressions.functions import takes_integers
from teletape_server.expressions.operands import Computed, Number, Operand, array, of_array

#: Signs between numbers that are computed at once.
SIGNS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": lambda a, b: float(a) ** float(b),
}
_LARGEST: Final = 1e300  # a larger whole number is refused before Python computes with it
_MOST_ELEMENTS: Final = 256  #: Of an input or a result.
_COSTLY: Final = frozenset((Reach.MATRICES, Reach.PRODUCTS, Reach.IMAGES, Reach.WINDOWS))
_APART: Final = frozenset((Trait.RANDOM, Trait.ASSERTS, Trait.CONVERTS))


def folded(op: Op, operands: Sequence[Operand], attributes: Mapping[str, Any]) -> Computed | None:
    """Returns what an op makes of constants; None: that is left to the function.

    Left to it are random numbers, integers and dtypes that the text asks for, and what is more than a moment's work.

    Args:
        op: Which op.
        operands: Its inputs, constants.
        attributes: As JSON has them, valid.
    """
    if (
        not operands
        or len(op.results) > 1
        or op.dynamic
        or op.work is not None
        or op.reach in _COSTLY
        or op.traits & _APART
    ):
        return None
    if "dtype" in attributes or any(takes_integers(op, i) for i in range(len(operands))):
        return None
    try:
        arrays = [array(operand) for operand in operands]
        attrs = op.attrs(attributes)
        spec = op.infer(*[Spec.of(each.shape, each.dtype) for each in arrays], **attrs)
        assert isinstance(spec, Spec)  # of one result
        if max(spec.size, *[each.size for each in arrays]) > _MOST_ELEMENTS:
            return None
        with np.errstate(all="ignore"):
            result = np.asarray(op.forward(np, *arrays, **attrs))
    except (TeletapeError, ValueError):
        return None  # the function's call says what is wrong
    return of_array(result) if result.dtype in (np.float64, np.bool_) else None


def folded_numbers(place: Place, sign: str, left: Number, right: Number) -> Number:
    """Returns the result of two numbers, with one of `SIGNS` between them.

    Raises:
        Problem: invalid_expression: there is none; `place` says where.
    """
    try:
        number: Number = SIGNS[sign](left, right)
    except ZeroDivisionError:
        raise fault(place, "division by zero") from None
    except OverflowError:
        raise fault(place, "the number is too large") from None
    if isinstance(number, complex):
        raise fault(place, "the root of a negative number is not real")
    if isinstance(number, int):
        check_size(place, number)
    return number


def check_size(place: Place, number: Number) -> None:
    """Refuses a number with which nothing should be computed."""
    if abs(number) > _LARGEST:
        raise fault(place, "the number is too large")
