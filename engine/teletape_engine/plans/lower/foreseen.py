"""Lowering before a function has run: from specs and layouts alone, so that a large one never runs step by step.

What tracing says of a layout is what NumPy does; the tests hold it so for every op. A call that is not traced is
expected to give a row-major array of its own: its step raises `Diverged` if it does not, before anything is assigned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from teletape_engine.catalogue.binding import Bound
from teletape_engine.plans.ir.buffers import Buffer, View, unbacked
from teletape_engine.plans.lower.lowering import Lowering
from teletape_engine.plans.lower.templates import template_of
from teletape_engine.plans.lower.tracer import Tracer
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.values import Literal, Value, Variable, new_uid


class Unforeseen(Exception):
    """A function must run before it has a plan."""


class Foreseen(Lowering):
    """Notes ops as instructions, and computes nothing: the arrays of its values are layouts.

    Args:
        recorder: Of the call.
        arguments: Of the call; variables are assigned to.
    """

    def __init__(self, recorder: Executor, arguments: Sequence[Any]) -> None:
        super().__init__(recorder, arguments)
        self._bases: dict[Buffer, int] = {}
        for argument in arguments:
            value = argument.value if argument.__class__ is Variable else argument
            if value.__class__ is not Literal:
                self._bases[self.tracers[value.uid].view.buffer] = recorder.backend.base(value.array)[1]

    def run(self, bound: Bound, inputs: Sequence[Any]) -> Value:
        """Notes the call.

        Raises:
            Unforeseen: There can be no plan, or its results are not known.
        """
        self._admit(bound)
        if self.obstacle is not None:
            raise Unforeseen(self.obstacle)
        arguments: list[Any] = [value.array if value.__class__ is Literal else self.tracer(value) for value in inputs]
        template = None if bound.selects else template_of(bound, arguments)
        if template is None:
            if bound.selects or not bound.spec.shape or bound.op.views:
                raise Unforeseen(bound.op.name)
            layout = unbacked(np.empty(bound.spec.shape, bound.spec.dtype))
            tracer = Tracer(self.instructions, self._python(bound, arguments, layout, foreseen=True))
        else:
            tracers = [argument for argument in arguments if argument.__class__ is Tracer]
            view = self._placed(template, tracers)
            if bound.op.views:
                view = self._compact_view(view)
            elif view.buffer.constant is not None and all(view.buffer is not each.view.buffer for each in tracers):
                view = self._copied(view, view.layout)
            tracer = Tracer(self.instructions, view, template.scalar)
        result = Value(tracer.layout, bound.spec, new_uid())
        self.tracers[result.uid] = tracer
        return result

    def _compact_view(self, view: View) -> View:
        """As the executor does: a view of a small part is copied."""
        buffer, layout = view.buffer, view.layout
        if buffer.constant is not None:
            nbytes = self.backend.base(buffer.constant)[1]
        else:
            nbytes = self._bases.get(buffer, buffer.layout.nbytes)
        if nbytes <= 8 * layout.nbytes or (layout.flags.c_contiguous and not buffer.fixed):
            return view
        return self._copied(view)

    def changed(self, variable: Variable, value: Value, indices: Value, mode: str) -> Value:
        """Raises Unforeseen."""
        raise Unforeseen("an assignment to a part of a variable")

    def decide(self, value: Any) -> int:
        """Raises Unforeseen."""
        raise Unforeseen("what runs depends on values")
