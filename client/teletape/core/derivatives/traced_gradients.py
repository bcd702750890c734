"""The program's own gradient functions inside a Jacobian: each is traced once, and the engine runs it over all rows.

If one cannot be traced (it reads a value), there is one backward pass for each row instead: see questions.py.
"""

from __future__ import annotations

from typing import Any

from teletape.core.calls import dispatch
from teletape.core.functions.trace import NotTraceable, trace_gradient
from teletape.core.sessions.session import Session
from teletape_engine.catalogue.slices import GradientKind
from teletape_engine.derivatives.backward import backward
from teletape_engine.derivatives.query import GradientQuery, InputCotangents, Stop
from teletape_engine.derivatives.walks import has_stops
from teletape_engine.errors import UnimplementedError
from teletape_engine.functions.batched import check_vectorizes, over_rows, over_values
from teletape_engine.recording.cotangents import Presence
from teletape_engine.recording.custom import CustomTapeCall, FunctionGradient
from teletape_engine.recording.values import Literal


class NotBatchable(Exception):
    """A gradient function cannot run over rows; the message says why. Without a message: the program wants none."""


class TracedGradients:
    """Functions, traced, for the calls between a tape's targets and sources whose gradient is the program's own.

    Args:
        owner: The tape's session.
        query: The question.

    Attributes:
        any: Whether there are such calls.

    Raises:
        NotBatchable: A gradient function cannot be traced, or has an op or a loop that cannot run over rows.
    """

    def __init__(self, owner: Session, query: GradientQuery) -> None:
        self._owner = owner
        self._traced: dict[int, tuple[FunctionGradient, list[Any]]] = {}
        self._names: list[Any] = []
        self.any = has_stops(query.tape, owner.declarations)
        if not self.any:
            return
        backward(
            query.tape,
            [(target.uid, GradientKind.DENSE) for target in query.targets if target.spec.differentiable],
            query.source_uids,
            Presence(),
            declarations=owner.declarations,
            at_stop=self._trace,
        )
        _check_functions(query, recorded=owner.recorder().recorded)

    @property
    def names(self) -> tuple[Any, ...]:
        """The ids of the traced functions on a server."""
        return tuple([name.id for name in self._names if name is not None])

    def over_rows(self, stop: Stop) -> InputCotangents:
        """Returns the cotangents of the inputs of a call at which a pass over rows stops."""
        return over_rows(self._owner.recorder(), self._of, stop)

    def over_values(self, stop: Stop) -> InputCotangents:
        """Returns the cotangents of the inputs of a call at which a pass without rows stops."""
        return over_values(self._owner.recorder(), self._of, stop)

    def _of(self, stop: Stop) -> tuple[FunctionGradient, list[Any]] | None:
        return self._traced.get(id(stop.bound))

    def _trace(self, stop: Stop) -> InputCotangents:
        if not isinstance(stop.bound, CustomTapeCall):
            raise NotBatchable(f"the gradient registered for op type {stop.bound.op_type!r} runs op by op")
        traced = self._traced.get(id(stop.bound))
        if traced is None:
            traced = self._traced[id(stop.bound)] = self._traced_gradient(stop, stop.bound)
        return [GradientKind.DENSE if present else None for present in traced[0].has_gradient]

    def _traced_gradient(self, stop: Stop, bound: CustomTapeCall) -> tuple[FunctionGradient, list[Any]]:
        name = stop.label
        try:
            traced, has_gradient = trace_gradient(stop.residuals[0].function, bound.outputs, bound.specs)
            check_vectorizes(traced.function, recorded=self._owner.recorder().recorded)
        except NotTraceable as stopped:
            stopped.withdraw()
            raise NotBatchable(
                f"the gradient function of {name} {stopped.why} ({stopped.where}), which one row at a time has and all "
                f"together have not; use {stopped.advice}"
            ) from None
        except UnimplementedError as error:
            raise NotBatchable(f"the gradient function of {name}: {error.message}") from None
        others = [_value(capture) for capture in traced.bound()]
        gradient = FunctionGradient(traced.function, has_gradient)
        self._names.append(self._owner.replace_gradient(bound.tag, gradient, others))
        return gradient, others


def _check_functions(query: GradientQuery, *, recorded: bool) -> None:
    """Raises NotBatchable if the gradient of a call is a function with a loop in it, which cannot run over rows."""
    for _, _, _, residuals, _ in query.tape.nodes:
        first = residuals[0] if residuals else None
        if isinstance(first, FunctionGradient):
            try:
                check_vectorizes(first.function, recorded=recorded)
            except UnimplementedError as error:
                raise NotBatchable(f"a call inside a function: {error.message}") from None


def _value(bound: Any) -> Any:
    """Returns a capture of a traced function as a recorded value; a variable is read when the function runs."""
    return dispatch.constant(bound.array).operand() if isinstance(bound, Literal) else bound
