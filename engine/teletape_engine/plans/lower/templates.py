"""Templates: bound calls as instructions, kept with the bound call for each layout of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from teletape_engine.catalogue.binding import Bound
from teletape_engine.plans.ir.buffers import Buffer, View
from teletape_engine.plans.ir.instructions import Instruction
from teletape_engine.plans.lower import taking  # noqa: F401  # adds functions
from teletape_engine.plans.lower.numpy_functions import Namespace
from teletape_engine.plans.lower.tracer import Tracer, constant

_MOST_TEMPLATES: Final = 16  #: Of one bound call: layouts of its inputs, and numbers among them.
_NEW: Final = object()


class Template(NamedTuple):
    """A bound call on inputs of certain layouts as instructions.

    Attributes:
        inputs: The buffers of the array inputs.
        instructions: In order.
        result: What they compute: a view of an input, or of a buffer of their own.
        scalar: Whether it is a NumPy scalar.
    """

    inputs: tuple[Buffer, ...]
    instructions: tuple[Instruction, ...]
    result: View
    scalar: bool


def template_of(bound: Bound, arguments: Sequence[Any], namespace: type[Namespace] = Namespace) -> Template | None:
    """The template of a bound call on inputs of these layouts; None: it stays one Python instruction.

    Args:
        bound: The call.
        arguments: Tracers of the arrays, and Python numbers.
        namespace: What the forward function gets in the place of NumPy.
    """
    key = (
        namespace,
        *[
            (argument.layout.strides, argument.scalar) if argument.__class__ is Tracer else _number_key(argument)
            for argument in arguments
        ],
    )
    templates = bound.lowered
    if templates is None:
        templates = bound.lowered = {}
    template: Template | None = templates.get(key, _NEW)
    if template is _NEW:
        if len(templates) >= _MOST_TEMPLATES:
            templates.clear()
        template = templates[key] = _traced(bound, arguments, namespace)
    return template


def _traced(bound: Bound, arguments: Sequence[Any], namespace: type[Namespace]) -> Template | None:
    """As `template_of`, without remembering it."""
    trace: list[Instruction] = []
    own: list[Any] = []
    buffers: list[Buffer] = []
    for argument in arguments:
        if argument.__class__ is Tracer:
            buffer = Buffer(argument.layout, argument=len(buffers))
            buffers.append(buffer)
            argument = Tracer(trace, View(buffer, argument.layout), argument.scalar)
        own.append(argument)
    try:
        with np.errstate(all="ignore"):
            result = bound.forward(namespace(trace), *own)
    except Exception:  # a tracer goes through code that was not written for it: whatever fails there is no template
        return None
    if result.__class__ is not Tracer:
        result = constant(trace, result)
    if result.shape != bound.spec.shape or result.dtype != bound.spec.dtype:
        return None
    return Template(tuple(buffers), tuple(trace), result.view, result.scalar)


def _number_key(number: Any) -> Any:
    return number.__class__, repr(number)  # 0.0 and -0.0, 1 and True are equal, and not the same
