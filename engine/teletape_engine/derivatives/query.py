"""Questions to a tape: one as a record, and what a session has declared about op types without a gradient.

Both are made once and passed whole through every function of this folder, the sessions' handlers and the SDK.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple, TypeAlias

from teletape_engine.catalogue.binding import CallPlan, TapeCall
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import GradientRegisteredError, InvalidArgumentError, UnimplementedError
from teletape_engine.recording.cotangents import Ct
from teletape_engine.recording.custom import CustomTapeCall
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Recorded, Uid
from teletape_engine.spec import Spec


class Stop(NamedTuple):
    """A node whose gradient is the caller's own function: a custom call, or an op type that the caller registered.

    Attributes:
        bound: The call: a `CustomTapeCall`, or an op's.
        inputs: Uids of its inputs.
        cts: The cotangent of each result; None if none reached it.
        residuals: The inputs and the results of an op; of a custom call its `Function`, if that is in this process.
        where: The call site.
        pending: The cotangents that the pass has not used yet, by uid.
    """

    bound: TapeCall
    inputs: tuple[Uid | None, ...]
    cts: list[Ct | None]
    residuals: tuple[Any, ...]
    where: Any
    pending: Mapping[Uid | None, Ct]

    @property
    def results(self) -> tuple[Spec, ...]:
        """Specs of the results, one for each ct."""
        return self.bound.outputs

    @property
    def label(self) -> str:
        """The name of the call in messages."""
        return f"{self.bound.label!r}" if isinstance(self.bound, CustomTapeCall) else f"op {self.bound.name!r}"

    def unanswered(self, *, replaceable: bool = False) -> UnimplementedError:
        """The error of a pass that is not continued here; `replaceable`: a custom.function would continue it."""
        advice = "compute gradients with backward.begin, .cotangents, .resume and .end"
        return UnimplementedError(
            f"the target comes from a custom call ({self.label}), whose gradient is a function of its caller's: "
            + (f"create a custom.function for it, or {advice}" if replaceable else advice)
        )


#: A cotangent, or None, for each input of the call at a stop.
InputCotangents: TypeAlias = Sequence[Ct | None]

#: The caller's own gradient function: from a stop to the cotangents of the call's inputs.
GradientFunction: TypeAlias = Callable[[Stop], InputCotangents]


class Declarations:
    """What a program has declared about op types that have no gradient of their own. One object for each session.

    Attributes:
        no_gradient: Op types whose gradient is None.
        gradients: Op types whose gradient is the caller's own function; None if the function is in another process.
    """

    def __init__(self) -> None:
        self.no_gradient: set[str] = set()
        self.gradients: dict[str, GradientFunction | None] = {}

    def __bool__(self) -> bool:
        return bool(self.no_gradient or self.gradients)

    def declare_no_gradient(self, op_type: str) -> None:
        """Declares that ops of TensorFlow's type `op_type` have no gradient.

        Raises:
            GradientRegisteredError: The type has a gradient, or was declared before.
        """
        self._check_new(op_type)
        self.no_gradient.add(op_type)

    def register(self, op_type: str, function: GradientFunction | None = None) -> None:
        """Declares that the gradient of ops of TensorFlow's type `op_type` is the caller's function.

        Raises:
            GradientRegisteredError: The type has a gradient, or was declared before.
        """
        self._check_new(op_type)
        self.gradients[op_type] = function

    def _check_new(self, op_type: str) -> None:
        registered = any(op.op_type == op_type and op.registered for op in CATALOGUE.values())
        if registered or op_type in self.no_gradient or op_type in self.gradients:
            raise GradientRegisteredError(f"Registering two gradient with name '{op_type}'!", op_type=op_type)

    def stops_at(self, plan: CallPlan) -> bool:
        """Whether the gradient of a recorded call is the caller's own function."""
        return plan.bound.__class__ is CustomTapeCall or (plan.unregistered and plan.bound.op_type in self.gradients)

    def gradient_at(self, stop: Stop) -> InputCotangents:
        """Calls the caller's own function.

        Raises:
            UnimplementedError: The function is in another process.
        """
        if isinstance(stop.bound, CustomTapeCall):
            if stop.residuals:
                return stop.residuals[0].function(stop.cts)  # type: ignore[no-any-return]  # the caller's
        elif (function := self.gradients[stop.bound.op_type]) is not None:
            return function(stop)
        raise stop.unanswered()


@dataclass(slots=True)  # not frozen: that would cost each gradient 1.5 µs. It is passed whole, never assigned to
class GradientQuery:
    """One question to a tape.

    Attributes:
        tape: The tape; one that is not persistent stops recording and answers once.
        targets: Recorded values or variables, whose sum is differentiated; those of a dtype without gradients are
            ignored. A Jacobian has exactly one.
        sources: Recorded values or variables.
        output_gradients: Of a gradient and of `hvp` a cotangent [*target.shape] for each target, None for ones; of
            `vjps` a stack [k, *target.shape]. None: ones for all.
        vectors: Of `hvp` a vector for each source, of its shape and dtype.
        zeros: Whether a source that is not connected gets zeros instead of None.
        retain_tape: Whether another question follows: a tape that is not persistent can then still answer.
        declarations: Those of the session.
        at_stop: Computes the cotangents at a stop, whose cts are recorded values, or SlicesValues; None: the
            declarations do.
        at_stacked_stop: The same on operands of `Rows` for stacks of cotangents.
        max_bytes: Bytes that the cotangents of one chunk of rows may take; None: `jacobian.BOUND`, or what is left of
            the session's memory. Without effect under an outer tape, which keeps what every row computes.
        chunk_size: Rows of cotangents in one chunk at most; None: as many as fit.
        examples: Whether axis 0 of targets and sources numbers examples, each of which a Jacobian or Hessian
            differentiates by itself.
        observer: Of second derivatives: called with the first derivatives and the answers, None where there is none,
            while the tape still has the record of how the first derivatives were computed.
    """

    tape: Tape
    targets: Sequence[Any]
    sources: Sequence[Any]
    _: KW_ONLY
    output_gradients: Sequence[Recorded | None] | None = None
    vectors: Sequence[Recorded] = ()
    zeros: bool = False
    retain_tape: bool = False
    declarations: Declarations = field(default_factory=Declarations)
    at_stop: GradientFunction | None = None
    at_stacked_stop: GradientFunction | None = None
    max_bytes: int | None = None
    chunk_size: int | None = None
    examples: bool = False
    observer: Callable[[Sequence[Recorded | None], Sequence[Recorded | None]], None] | None = None

    @property
    def release(self) -> bool:
        """Whether nodes can be freed as the pass goes over them: the tape does not answer again."""
        return not (self.tape.persistent or self.retain_tape)

    @property
    def source_uids(self) -> set[Uid]:
        """Uids of the sources."""
        return {source.uid for source in self.sources}

    def gradient_of(
        self,
        targets: Sequence[Any],
        output_gradients: Sequence[Recorded | None] | None = None,
        *,
        zeros: bool = False,
        retain_tape: bool = False,
    ) -> GradientQuery:
        """The gradient of other targets by the same sources. `dataclasses.replace` costs three times as much."""
        return GradientQuery(
            self.tape,
            targets,
            self.sources,
            output_gradients=output_gradients,
            zeros=zeros,
            retain_tape=retain_tape,
            declarations=self.declarations,
            at_stop=self.at_stop,
            at_stacked_stop=self.at_stacked_stop,
            max_bytes=self.max_bytes,
            chunk_size=self.chunk_size,
            examples=self.examples,
        )


def wants_zeros(unconnected: str) -> bool:
    """Whether sources that are not connected get zeros.

    Raises:
        InvalidArgumentError: `unconnected` is neither "none" nor "zero".
    """
    if unconnected not in ("none", "zero"):
        raise InvalidArgumentError(f"Unknown value for unconnected_gradients: {unconnected!r}")
    return unconnected == "zero"
