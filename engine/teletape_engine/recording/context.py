"""Where tapes and accumulators are active: opening and closing them, and reading variables under them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from teletape_engine.catalogue.binding import bind
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import TapeStateError
from teletape_engine.recording.provenance import Departures, Event, Witness
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Trackable, Uid, Variable, new_uid

if TYPE_CHECKING:
    from teletape_engine.recording.accumulators import Accumulator


class Context(Witness):
    """Where tapes and accumulators are active: one per thread or async task of an SDK, one per REST request.

    Attributes:
        tapes: The active ones, in the order they became so. They may leave in any order.
        accumulators: The active ones, likewise.
    """

    def __init__(self) -> None:
        super().__init__(Departures())
        self.tapes: list[Tape] = []
        self.accumulators: list[Accumulator] = []
        self._opened: list[Tape | Accumulator] = []  # both, in one order
        self._outside: dict[Accumulator, tuple[list[Tape], list[Accumulator]]] = {}  # `outside` of each
        self._reads: dict[Uid, tuple[int, Any]] = {}

    @property
    def recorded(self) -> bool:
        """Whether anything here follows what runs."""
        return bool(self.tapes or self.accumulators)

    def open(self, tape: Tape) -> None:
        """Makes `tape` active, the first time or again.

        Raises:
            TapeStateError: It is active here already.
        """
        if tape in self.tapes:
            raise TapeStateError(
                "Tape is still recording, This can happen if you try to re-enter an already-active tape."
            )
        self.tapes.append(tape)
        self._opened.append(tape)
        tape.turned("open")
        if all(one is not self.trail for one in tape.trails):
            tape.trails.append(self.trail)
        self.turn()

    def pause(self, tape: Tape) -> None:
        """Ends the recording; what was recorded stays.

        Raises:
            TapeStateError: It is not active here.
        """
        if tape not in self.tapes:
            raise TapeStateError("Tape is not recording.")
        self.tapes.remove(tape)
        self._opened.remove(tape)
        tape.turned("pause")
        self.turn()

    def accumulate(self, accumulator: Accumulator) -> None:
        """Makes an accumulator active, the first time or again.

        Raises:
            TapeStateError: It is active here already.
        """
        if accumulator in self.accumulators:
            raise TapeStateError("Accumulator is already recording.")
        self.accumulators.append(accumulator)
        self._opened.append(accumulator)
        self.turn()

    def leave(self, accumulator: Accumulator) -> None:
        """Ends its following; the tangents stay.

        Raises:
            TapeStateError: It is not active here.
        """
        if accumulator not in self.accumulators:
            raise TapeStateError("Accumulator is not recording.")
        self.accumulators.remove(accumulator)
        self._opened.remove(accumulator)
        self.turn()

    def opened(self) -> list[Tape | Accumulator]:
        """What is active, in the order in which it became so."""
        return list(self._opened)

    def outside(self, accumulator: Accumulator) -> tuple[list[Tape], list[Accumulator]]:
        """Those that became active before an active accumulator: they see how its tangents are computed."""
        found = self._outside.get(accumulator)
        if found is None:
            outer = self._opened[: self._opened.index(accumulator)]
            tapes = [one for one in outer if isinstance(one, Tape)]
            found = self._outside[accumulator] = tapes, [one for one in outer if not isinstance(one, Tape)]
        return found

    def reset(self, tape: Tape) -> None:
        """Forgets all that the active tape recorded and watched, and goes on.

        Raises:
            TapeStateError: It is not active here.
        """
        self.pause(tape)
        tape.turned("reset")
        for plan, inputs, output, _, where in tape.nodes:
            read = None if inputs[0] is None else tape.variables.get(inputs[0])
            self.trail.append(
                (plan.bound, inputs, output, where) if read is None else (Event.READ, inputs, output, read.name)
            )
        tape.clear()
        self.open(tape)

    def watch(self, tape: Tape, values: Sequence[Trackable | Variable]) -> None:
        """Has `tape` follow `values`; reads of a variable from now on are recorded anew."""
        for value in values:
            tape.watch(value)
        self.turn()

    def turn(self) -> None:
        """Begins a new epoch: the next read of each variable is a node of its own."""
        self._reads.clear()
        self._outside.clear()

    def reads(self) -> list[Any]:
        """The variables' values read in this epoch: what a tape records of them next would be these."""
        return [value for _, value in self._reads.values()]

    def read(self, variable: Variable) -> Any:
        """The variable's value as an op's input: inside tapes a node of its own, one per epoch and version."""
        if not self.tapes and not self.accumulators:
            self.trail.append((Event.READ, (variable.uid,), variable.value.uid, variable.name))
            return variable.value
        known = self._reads.get(variable.uid)
        if known is not None and known[0] == variable.version:
            return known[1]
        value = variable.value.alias(new_uid())
        plan = None
        for tape in self.tapes:
            if tape.watches(variable) and value.spec.differentiable:
                plan = plan or bind(ops.identity, (value.spec,)).plan(1)
                kept = (value,) if tape.replayable else ()
                tape.note(plan, (variable.uid,), value.uid, kept, self.here())
        if plan is None:
            self.trail.append((Event.READ, (variable.uid,), value.uid, variable.name))
        for accumulator in self.accumulators:
            accumulator.read(variable, value)
        self._reads[variable.uid] = (variable.version, value)
        return value
