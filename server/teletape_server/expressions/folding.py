"""Functions of constants: computed in float64 when a text is compiled, so that the result has no dtype either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from teletape_engine.catalogue.op import Op, Reach, Trait
from teletape_engine.errors import TeletapeError
from teletape_engine.spec import Spec
from teletape_server.expressions.functions import takes_integers
from teletape_server.expressions.operands import Computed, Operand, array, of_array

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
    if not operands or op.dynamic or op.work is not None or op.reach in _COSTLY or op.traits & _APART:
        return None
    if "dtype" in attributes or any(takes_integers(op, i) for i in range(len(operands))):
        return None
    try:
        arrays = [array(operand) for operand in operands]
        attrs = op.attrs(attributes)
        spec = op.infer(*[Spec.of(each.shape, each.dtype) for each in arrays], **attrs)
        if max(spec.size, *[each.size for each in arrays]) > _MOST_ELEMENTS:
            return None
        with np.errstate(all="ignore"):
            result = np.asarray(op.forward(np, *arrays, **attrs))
    except (TeletapeError, ValueError):
        return None  # the function's call says what is wrong
    return of_array(result) if result.dtype in (np.float64, np.bool_) else None
