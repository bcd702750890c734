"""Derivative rules: how a cotangent or a tangent passes through one input of an op.

A rule is a record: the names of what it takes, and how it is bound to one call. Most are written as an ordinary
function; `catalogue.binding.by_name` makes the record from its parameter names.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from teletape_engine.spec import DType, Spec

#: A rule bound to a call: `(cotangent or tangent, what the tape kept) -> cotangent or tangent`.
BoundRule: TypeAlias = Callable[[Any, Sequence[Any]], Any]


class NoGradient(enum.Enum):
    """What an op has in place of a rule."""

    NOT_REGISTERED = "not_registered"  #: a gradient through it is a LookupError
    DECLARED = "none"  #: declared non-differentiable: the gradient is None


NOT_REGISTERED: Final = NoGradient.NOT_REGISTERED
NON_DIFFERENTIABLE: Final = NoGradient.DECLARED


@dataclass(frozen=True, eq=False, slots=True)
class Rule:
    """The vjp or jvp of one input of an op.

    Attributes:
        needs: Names of what it takes in addition to the cotangent or the tangent: inputs, `y`, specs, attributes. The
            inputs and `y` among them are the residuals that a tape keeps.
        bind: `bind(bound, i, slots)` gives the rule of input `i` of a bound call. `slots` maps a position among
            (*inputs, result) to its position in what is kept.
        vanishes: Whether inputs of a spec have no tangent at all (None, not zero), as TensorFlow has none for the sign
            of a real number. For jvp rules.
        zero: Whether the derivative by inputs of a spec is zero everywhere (zero, not None). For vjp rules.
        of: Rules for inputs of certain dtypes, in place of this one.
    """

    needs: tuple[str, ...]
    bind: Callable[[Any, int, Mapping[int, int]], BoundRule]
    vanishes: Callable[[Spec], bool] | None = None
    zero: Callable[[Spec], bool] | None = None
    of: Mapping[DType, Rule] = field(default_factory=dict)


def always(spec: Spec) -> bool:
    """True: what a rule says of `zero` if the derivative is zero for inputs of any spec."""
    return True
