"""Lowering: a recorder that runs a function as the interpreter does, and notes what it does as instructions.

Each op runs twice: on arrays, which gives the results of this call, and on tracers. A traced result whose layout is not
that of the real one is discarded, and the op stays one Python instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from teletape_engine.catalogue.attributes import NO_ATTRS, Attrs
from teletape_engine.catalogue.binding import Bound
from teletape_engine.catalogue.op import Op
from teletape_engine.plans.ir.buffers import Buffer, View, layout_of, same_layout, unbacked
from teletape_engine.plans.ir.forwards import SideBySide
from teletape_engine.plans.ir.instructions import Copy, Instruction, PythonCall
from teletape_engine.plans.lower.numpy_functions import Namespace
from teletape_engine.plans.lower.templates import Template, template_of
from teletape_engine.plans.lower.tracer import Tracer, constant
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.provenance import Record, Records
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.values import Literal, Value, Variable, new_uid

MOST_INSTRUCTIONS: Final = 20_000  #: Of a plan.


class Lowering(Executor):
    """Runs ops on arrays, and notes them as instructions.

    Args:
        recorder: Of the call; its memory, monitor and call sites are used.
        arguments: Of the call: values, Literals, and variables.
        into: The log that gets the provenance records too.

    Attributes:
        instructions: Those noted so far.
        tracers: The tracer of each value, by its uid; a value without one is a constant.
        assigned: How often each variable has been assigned to, by its uid.
        long_calls: Calls whose work is estimated before they run.
        obstacle: Why there can be no plan.
        guards: Values that decided what ran, each with its decision.
        iterations: Of loops that ran.
        first: A uid: values with a lower one were there before.
        layout_of: Gives the layout of an array.
        namespace: What forward functions are traced with.
    """

    layout_of: Callable[[Any], Any] = staticmethod(layout_of)
    namespace: type[Namespace] = Namespace

    def __init__(self, recorder: Executor, arguments: Sequence[Any], into: Records | None = None) -> None:
        super().__init__(recorder.backend, recorder.memory, recorder._monitor)
        self.plannable, self.kernel_call = False, recorder.kernel_call
        log = self.provenance
        log.value_reads, log.locate, log.where = (
            recorder.provenance.value_reads,
            recorder.provenance.locate,
            recorder.provenance.where,
        )
        log.records = Records() if into is None else _Copied(into)  # without a bound: the plan keeps all of it
        self.instructions: list[Instruction] = []
        self.tracers: dict[int, Tracer] = {}
        self.assigned: dict[int, int] = {}
        self.long_calls: list[Bound] = []
        self.obstacle: str | None = None
        self.guards: list[tuple[Value, int]] = []
        self.iterations = 0
        self.first = new_uid()
        for number, argument in enumerate(arguments):
            value = argument.value if argument.__class__ is Variable else argument
            if value.__class__ is not Literal and value.uid not in self.tracers:
                layout = self.layout_of(value.array)
                buffer = Buffer(layout, argument=number)
                self.tracers[value.uid] = self._tracer(View(buffer, layout), value.array)

    # ------------------------------------------------------------------------------------------------------ recorder
    def apply(self, op: Op, inputs: Sequence[Any], attrs: Attrs = NO_ATTRS, where: Any = None) -> Any:
        """As `Recorder.apply`: every call passes through `run`."""
        return Recorder.apply(self, op, inputs, attrs, where)

    def run(self, bound: Bound, inputs: Sequence[Any]) -> Any:
        """Computes the call, and notes it; a result without elements never changes."""
        result = super().run(bound, inputs)
        self._admit(bound)
        if self.obstacle is None:
            try:
                if bound.selects:
                    self._lower_several(bound, inputs, result)
                elif not result.spec.size:
                    self.tracers[result.uid] = self._constant(result)
                else:
                    self.tracers[result.uid] = self._lowered(bound, inputs, result.array)
            except Exception as error:  # the call goes on without a plan: no memory left, say
                self.obstacle = f"{bound.op.name!r}: {type(error).__name__}: {error}"
        return result

    def _admit(self, bound: Bound) -> None:
        """Notes what a call asks of a plan, or that there can be none."""
        if bound.work is not None:
            self.long_calls.append(bound)
        if self.obstacle is None:
            if len(self.instructions) > MOST_INSTRUCTIONS:
                self.obstacle = f"more than {MOST_INSTRUCTIONS:,} instructions"
            elif bound.blocks is not None:
                self.obstacle = f"{bound.op.name!r} takes so long that it is computed in blocks"
            elif bound.selects and hasattr(self.xp, "asnumpy"):
                self.obstacle = f"{bound.op.name!r} has several results"
            elif bound.op.dynamic:
                self.obstacle = f"the shape of {bound.op.name!r} depends on values"

    def read(self, variable: Variable) -> Any:
        """As `Recorder.read`: under a tape of the function's own the value has another uid, and is the same."""
        value = super().read(variable)
        if value.uid not in self.tracers:
            self.tracers[value.uid] = self.tracer(variable.value)
        return value

    def assign(self, variable: Variable, value: Any, mode: str = "set", indices: Any = None) -> None:
        if isinstance(value, Literal):
            value = self.as_value(value, variable.spec.dtype)
        super().assign(variable, value, mode, indices)
        self.assigned[variable.uid] = self.assigned.get(variable.uid, 0) + 1
        if mode == "set" and indices is None:
            self.tracers[variable.value.uid] = self.tracer(value)

    def changed(self, variable: Variable, value: Value, indices: Value, mode: str) -> Value:
        self.obstacle = "an assignment to a part of a variable"
        return super().changed(variable, value, indices, mode)

    def decide(self, value: Any) -> int:
        self.obstacle = "what runs depends on values"
        return super().decide(value)

    # ------------------------------------------------------------------------------------------------------- lowering
    def tracer(self, value: Value) -> Tracer:
        """The tracer of a value."""
        tracer = self.tracers.get(value.uid)
        if tracer is None:
            tracer = self.tracers[value.uid] = self._constant(value)
        return tracer

    def _constant(self, value: Value) -> Tracer:
        tracer = constant(self.instructions, value.array)
        tracer.scalar = isinstance(value.array, np.generic)
        return tracer

    def operand(self, bound: Bound, i: int, value: Any) -> Any:
        """Input `i` of a call: a tracer, or a Python number that never changes."""
        return value.array if value.__class__ is Literal else self.tracer(value)

    def records(self) -> tuple[Record, ...]:
        """The provenance records of the run."""
        return tuple(self.provenance.records)

    def _tracer(self, view: View, array: Any) -> Tracer:
        return Tracer(self.instructions, view, scalar=isinstance(array, np.generic))

    def _lowered(self, bound: Bound, inputs: Sequence[Any], array: Any) -> Tracer:
        arguments = [self.operand(bound, i, value) for i, value in enumerate(inputs)]
        tracers = [argument for argument in arguments if argument.__class__ is Tracer]
        template = template_of(bound, arguments, self.namespace)
        if template is not None:
            if same_layout(template.result.layout, array):
                view = self._placed(template, tracers)
                if view.buffer.fixed and not _shares(array, inputs):  # a small part of its base: copied
                    view = self._copied(view)
                return self._tracer(view, array)
            if _is_copy(bound, template, array):
                return self._tracer(self._copied(self._placed(template, tracers), self.layout_of(array)), array)
        return self._tracer(self._python(bound, arguments, self.layout_of(array)), array)

    def _lower_several(self, bound: Bound, inputs: Sequence[Any], results: Sequence[Value]) -> None:
        """Notes one call of the forward function, whose results lie side by side in one buffer."""
        arguments = [self.operand(bound, i, value) for i, value in enumerate(inputs)]
        forward = SideBySide(bound.forward, [self.layout_of(result.array) for result in results])
        whole = self._python(bound, arguments, unbacked(np.empty(forward.nbytes, np.uint8)), forward=forward)
        for result, (layout, offset) in zip(results, forward.places, strict=True):
            self.tracers[result.uid] = self._tracer(View(whole.buffer, layout, offset), result.array)

    def _python(
        self,
        bound: Bound,
        arguments: Sequence[Any],
        layout: Any,
        foreseen: bool = False,
        forward: Callable[..., Any] | None = None,
    ) -> View:
        """Notes a call of the forward function, or of what takes its place; returns its result."""
        pattern = tuple(
            [argument.scalar if argument.__class__ is Tracer else Literal(argument) for argument in arguments]
        )
        output = View(Buffer(layout), layout)
        views = tuple([argument.view for argument in arguments if argument.__class__ is Tracer])
        self.instructions.append(PythonCall(views, output, forward or bound.forward, (pattern, foreseen)))
        return output

    def _placed(self, template: Template, tracers: Sequence[Tracer]) -> View:
        """Notes a template's instructions on these inputs; returns its result."""
        buffers = {buffer: tracer.view for buffer, tracer in zip(template.inputs, tracers, strict=True)}

        def place(view: View) -> View:
            buffer = view.buffer
            target = buffers.get(buffer)
            if target is None:
                if buffer.constant is not None:
                    return view
                target = buffers[buffer] = View(Buffer(buffer.layout), buffer.layout)
            if view.layout is target.layout:
                return target
            return View(target.buffer, view.layout, target.offset + view.offset)

        note = self.instructions.append
        for each in template.instructions:
            note(each.on(tuple([place(view) for view in each.inputs]), place(each.output)))
        return place(template.result)

    def _copied(self, view: View, layout: Any = None) -> View:
        layout = unbacked(np.empty_like(view.layout, order="C")) if layout is None else layout
        output = View(Buffer(layout), layout)
        self.instructions.append(Copy((view,), output))
        return output


class _Copied(Records):
    """A log whose records another one gets too."""

    def __init__(self, other: Records) -> None:
        super().__init__()
        self._other = other

    def append(self, record: Any) -> None:
        """Notes it in both."""
        super().append(record)
        self._other.append(record)


def _shares(array: Any, inputs: Sequence[Any]) -> bool:
    """Whether an array is an input or a view of its memory."""
    for value in inputs:
        if value.__class__ is not Literal and (value.array is array or _base(value.array) is _base(array)):
            return True
    return False


def _base(array: Any) -> Any:
    while isinstance(base := getattr(array, "base", None), np.ndarray):
        array = base
    return array


def _is_copy(bound: Bound, template: Template, array: Any) -> bool:
    """Whether a view by a template has become a row-major copy, as views of a small part of their base do."""
    layout = template.result.layout
    return bound.op.views and layout.shape == array.shape and layout.dtype == array.dtype and array.flags.c_contiguous
