"""The program's own gradient functions inside a Jacobian: each traced once, and run over all rows by the engine.

What cannot be traced (the function reads a value) leaves one backward pass a row, with the real values, and a notice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from teletape.derivatives.per_row import RowByRow
from teletape.functions.trace import NotTraceable, gradient_program
from teletape.ops import dispatch
from teletape.sessions import session
from teletape_engine.catalogue.slices import GradientKind
from teletape_engine.commands import Command
from teletape_engine.derivatives.backward import Shares, Stop, backward
from teletape_engine.derivatives.gradient import Answers, label
from teletape_engine.derivatives.jacobian import Options
from teletape_engine.errors import UnimplementedError
from teletape_engine.programs.batched import check_vectorizes, over_rows, over_values
from teletape_engine.recording.cotangents import Presence
from teletape_engine.recording.custom import Custom, ProgramGradient
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal


class StandIns:
    """Programs for the calls between a tape's targets and its sources whose gradient is a function.

    Args:
        owner: The session.
        tape: What is asked.
        targets: Recorded values or variables.
        sources: Likewise.

    Attributes:
        any: Whether there are any.

    Raises:
        RowByRow: One of the functions cannot be traced, or does what has no form over rows.
    """

    def __init__(self, owner: session.Session, tape: Tape, targets: Sequence[Any], sources: Sequence[Any]) -> None:
        self._owner = owner
        self._found: dict[int, tuple[ProgramGradient, list[Any]]] = {}
        self._held: list[Any] = []
        self._registered = frozenset(owner.gradients)
        self.any = _stops(tape, self._registered)
        if not self.any:
            return
        backward(
            tape,
            [(one.uid, GradientKind.DENSE) for one in targets if one.spec.differentiable],
            {one.uid for one in sources},
            Presence(),
            no_gradient=owner.no_gradient,
            registered=self._registered,
            custom=self._trace,
        )

    @property
    def names(self) -> tuple[Any, ...]:
        """What a server knows the programs by."""
        return tuple([one.id for one in self._held if one is not None])

    def over_rows(self, stop: Stop) -> Shares:
        """The cotangents where a pass over rows stops."""
        return over_rows(self._owner.recorder(), self._of, stop)

    def over_values(self, stop: Stop) -> Answers:
        """The cotangents where another pass stops."""
        return over_values(self._owner.recorder(), self._of, stop)

    def _of(self, stop: Stop) -> tuple[ProgramGradient, list[Any]] | None:
        return self._found.get(id(stop.bound))

    def _trace(self, stop: Stop) -> Shares:
        if not isinstance(stop.bound, Custom):
            raise RowByRow(f"the gradient registered for op type {stop.bound.op_type!r} runs op by op")
        known = self._found.get(id(stop.bound))
        if known is None:
            known = self._found[id(stop.bound)] = self._program(stop, stop.bound)
        return [GradientKind.DENSE if has_gradient else None for has_gradient in known[0].has_gradient]

    def _program(self, stop: Stop, bound: Custom) -> tuple[ProgramGradient, list[Any]]:
        name = label(bound)
        try:
            traced, has_gradient = gradient_program(stop.kept[0].array, bound.outputs, bound.specs)
            check_vectorizes(traced.program)
        except NotTraceable as stopped:
            raise RowByRow(
                f"the gradient function of {name} {stopped.why} ({stopped.where}), which one row at a time has and all "
                f"together have not; use {stopped.advice}"
            ) from None
        except UnimplementedError as error:
            raise RowByRow(f"the gradient function of {name}: {error.message}") from None
        others = [_value(one) for one in traced.bound()]
        gradient = ProgramGradient(traced.program, has_gradient)
        self._held.append(self._owner.stand_in(bound.tag, gradient, others))
        return gradient, others


def _value(bound: Any) -> Any:
    """A capture of a program; a variable stays one, to be read when the program runs."""
    return dispatch.constant(bound.array).operand() if isinstance(bound, Literal) else bound


def _stops(tape: Tape, registered: Collection[str]) -> bool:
    return any(
        plan.bound.__class__ is Custom or (plan.unregistered and plan.bound.op_type in registered)
        for plan, *_ in tape.nodes
    )


def ask(
    owner: session.Session,
    tape: Tape,
    targets: Sequence[Any],
    sources: Sequence[Any],
    options: Options,
    compute: Callable[[Recorder, Options], list[Any]],
    command: Callable[[Sequence[Any], Sequence[str]], Command],
    one_by_one: Callable[[RowByRow], list[Any]],
    *,
    vectorize: bool = True,
) -> list[Any]:
    """A question over rows, whatever functions of the program's lie between.

    Args:
        owner: The session.
        tape: What is asked.
        targets: Recorded values or variables.
        sources: Likewise.
        options: The question's.
        compute: Asks on a recorder.
        command: As for `Session.question`.
        one_by_one: Asks where there is no form over rows.
        vectorize: Whether a form over rows is wanted; otherwise the functions are called for each row, with values.
    """
    if not vectorize and _stops(tape, owner.gradients):
        return one_by_one(RowByRow())
    try:
        programs = StandIns(owner, tape, targets, sources)
    except RowByRow as why:
        return one_by_one(why)
    if programs.any:
        options = replace(
            options, registered=frozenset(owner.gradients), custom=programs.over_rows, answer=programs.over_values
        )

    def with_programs(outputs: Sequence[Any], kinds: Sequence[str]) -> Command:
        return replace(command(outputs, kinds), custom_gradients=programs.names)  # type: ignore[type-var]  # each is a dataclass

    return owner.question(lambda recorder: compute(recorder, options), with_programs)
