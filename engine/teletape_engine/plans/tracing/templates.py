"""Templates: bound calls as instructions, kept with the bound call for each layout of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from teletape_engine.catalogue.binding import Bound
from teletape_engine.plans.fitting import ALIGNMENT
from teletape_engine.plans.instructions import Buffer, Instruction, View, same_layout, span
from teletape_engine.plans.tracing import taking  # noqa: F401  # adds functions
from teletape_engine.plans.tracing.numpy_functions import Namespace
from teletape_engine.plans.tracing.tracer import Tracer, constant
from teletape_engine.recording.values import Literal

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
        template = templates[key] = traced(bound, arguments, namespace)
    return template


def traced(bound: Bound, arguments: Sequence[Any], namespace: type[Namespace] = Namespace) -> Template | None:
    """The template of a bound call on inputs of these layouts; None: it stays one Python instruction.

    Args:
        bound: The call.
        arguments: Tracers of the arrays, and Python numbers.
        namespace: See `template_of`.
    """
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


def python_step(
    forward: Callable[..., Any], pattern: tuple[Any, ...], layout: Any, *, foreseen: bool = False
) -> Callable[..., None]:
    """A call of a forward function that leaves its result in memory that exists.

    Args:
        forward: `forward(np, *arrays)`.
        pattern: For each argument a Literal, or whether the array is given as a scalar.
        layout: Of the result; raises `Diverged` if the forward gives another.
        foreseen: Whether the layout is what is expected, and has not been seen.
    """
    plain = not any(isinstance(entry, Literal) or entry for entry in pattern)
    strides, several = layout.strides, isinstance(forward, SideBySide)

    def run(*arrays: Any) -> None:
        output = arrays[-1]
        if plain:
            result = forward(np, *arrays[:-1])
        else:
            remaining = iter(arrays)
            result = forward(
                np,
                *[
                    entry.array if entry.__class__ is Literal else next(remaining)[()] if entry else next(remaining)
                    for entry in pattern
                ],
            )
        if several:
            forward.put(result, output)  # type: ignore[attr-defined]  # a SideBySide
            return
        if result.strides != strides and not same_layout(result, layout):
            raise Diverged
        if foreseen and (not strides or not _is_own(result)):
            raise Diverged
        np.copyto(output, result)

    return run


class SideBySide:
    """A forward function of several results, which lie in one array of bytes.

    Args:
        forward: `forward(np, *arrays)`.
        layouts: Of the results.

    Attributes:
        places: Of each result the layout, and where in the array it begins.
        nbytes: Of the array.
    """

    def __init__(self, forward: Callable[..., Any], layouts: Sequence[Any]) -> None:
        self._forward = forward
        self.places: list[tuple[Any, int]] = []
        self.nbytes = 0
        for layout in layouts:
            self.places.append((layout, self.nbytes))
            self.nbytes += -(-max(span(layout), 1) // ALIGNMENT) * ALIGNMENT

    def __call__(self, xp: Any, *arrays: Any) -> Any:
        """The results."""
        return self._forward(xp, *arrays)

    def put(self, results: Sequence[Any], output: Any) -> None:
        """Leaves the results in the array; raises `Diverged` if one has another layout."""
        for result, (layout, offset) in zip(results, self.places, strict=True):
            if result.strides != layout.strides and not same_layout(result, layout):
                raise Diverged
            np.ndarray(layout.shape, layout.dtype, output, offset, layout.strides)[...] = result


def _is_own(array: Any) -> bool:
    """Whether an array is all of its memory."""
    base = array
    while isinstance(below := base.base, np.ndarray):
        base = below
    return bool(base.nbytes == array.nbytes)


class Diverged(Exception):
    """A forward function gave another layout than when the plan was built."""


def _number_key(number: Any) -> Any:
    return number.__class__, repr(number)  # 0.0 and -0.0, 1 and True are equal, and not the same
