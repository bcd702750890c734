"""Ops that check values and raise: the assertions of a program that runs without its caller."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape_engine.arrays.checks import holds
from teletape_engine.catalogue.define import check_dtypes, on_gpu, op, sample
from teletape_engine.catalogue.elementwise import batch_elementwise
from teletape_engine.catalogue.op import Reach, Sample, Trait
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import BOOL, FLOATING, Spec


def _condition_spec(condition: Spec, *, message: str) -> Spec:
    check_dtypes("Assert", [condition], frozenset({BOOL}))
    return condition


@op(
    infer=_condition_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_elementwise,
    samples=[Sample((np.array([True, True]),), {"message": "x > 0"})],
    op_type="Assert",
    views=True,
    traits=[Trait.ASSERTS],
)
@on_gpu(waits="whether the condition holds")
def ensure(xp: Any, condition: Any, *, message: str) -> Any:
    """The condition itself, if it holds everywhere; else an error with the message."""
    if not holds(xp, condition):
        raise InvalidArgumentError(message or "the condition does not hold everywhere")
    return condition


def _floating_spec(x: Spec, *, message: str) -> Spec:
    check_dtypes("CheckNumerics", [x], FLOATING)
    return x


@op(
    infer=_floating_spec,
    vjp=lambda ct: ct,
    jvp=lambda t: t,
    batch=batch_elementwise,
    samples=[sample((2, 3), message="x"), sample((), message="x")],
    views=True,
    traits=[Trait.ASSERTS],
    reach=Reach.ELEMENTS,
)
@on_gpu(waits="whether every number is finite")
def check_numerics(xp: Any, x: Any, *, message: str) -> Any:
    """x itself, if none of its numbers is NaN or infinite; else an error that begins with the message."""
    if not holds(xp, xp.isfinite(x)):
        kinds = [kind for test, kind in ((xp.isinf, "Inf"), (xp.isnan, "NaN")) if test(x).any()]
        raise InvalidArgumentError(f"{message} : Tensor had {' and '.join(kinds)} values")
    return x
