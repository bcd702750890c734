"""Contexts: which tapes and accumulators are active, and how variables are read under them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from teletape_engine.catalogue.binding import bind
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import TapeStateError
from teletape_engine.recording.provenance import Event, ProvenanceLog
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Trackable, Uid, Variable, new_uid

if TYPE_CHECKING:
    from teletape_engine.recording.accumulators import Accumulator


class Context:
    """Where tapes and accumulators are active: one for each thread or async task of an SDK, one for each REST request.

    Args:
        provenance: The log of what no tape here follows.

    Attributes:
        tapes: The active ones, in the order in which they became active. They may leave in any order.
        accumulators: The active ones, likewise.
        by_variable: The version and the value that each variable was read as in this epoch, by its uid.
    """

    def __init__(self, provenance: ProvenanceLog | None = None) -> None:
        self.provenance = ProvenanceLog() if provenance is None else provenance
        self.tapes: list[Tape] = []
        self.accumulators: list[Accumulator] = []
        self._opened: list[Tape | Accumulator] = []  # both, in one order
        self._outside: dict[Accumulator, tuple[list[Tape], list[Accumulator]]] = {}  # `outside` of each
        self.by_variable: dict[Uid, tuple[int, Any]] = {}

    @property
    def active(self) -> bool:
        """Whether a tape or an accumulator is active."""
        return bool(self.tapes or self.accumulators)

    # ---------------------------------------------------------------------------------------------------------- tapes
    def open(self, tape: Tape) -> None:
        """Makes a tape active, the first time or again.

        Raises:
            TapeStateError: It is active here already.
        """
        if tape in self.tapes:
            raise TapeStateError(
                "Tape is still recording, This can happen if you try to re-enter an already-active tape."
            )
        self.tapes.append(tape)
        self._opened.append(tape)
        tape.note_turn("open")
        if all(log is not self.provenance.records for log in tape.logs):
            tape.logs.append(self.provenance.records)
        self.begin_epoch()

    def pause(self, tape: Tape) -> None:
        """Ends the recording; what was recorded stays.

        Raises:
            TapeStateError: It is not active here.
        """
        if tape not in self.tapes:
            raise TapeStateError("Tape is not recording.")
        self.tapes.remove(tape)
        self._opened.remove(tape)
        tape.note_turn("pause")
        self.begin_epoch()

    def reset(self, tape: Tape) -> None:
        """Forgets all that the active tape recorded and watched; it goes on recording.

        Raises:
            TapeStateError: It is not active here.
        """
        self.pause(tape)
        tape.note_turn("reset")
        records = self.provenance.records
        for plan, inputs, output, _, where in tape.nodes:
            variable = None if inputs[0] is None else tape.variables.get(inputs[0])
            if variable is None:
                records.append((plan.bound, inputs, output, where))
            else:
                records.append((Event.READ, inputs, output, variable.name))
        tape.clear()
        self.open(tape)

    def watch(self, tape: Tape, values: Sequence[Trackable | Variable]) -> None:
        """Makes `tape` track `values`; reads of a variable from now on are recorded anew."""
        for value in values:
            tape.watch(value)
        self.begin_epoch()

    # --------------------------------------------------------------------------------------------------- accumulators
    def open_accumulator(self, accumulator: Accumulator) -> None:
        """Makes an accumulator active, the first time or again.

        Raises:
            TapeStateError: It is active here already.
        """
        if accumulator in self.accumulators:
            raise TapeStateError("Accumulator is already recording.")
        self.accumulators.append(accumulator)
        self._opened.append(accumulator)
        self.begin_epoch()

    def close_accumulator(self, accumulator: Accumulator) -> None:
        """Ends the recording; the tangents stay.

        Raises:
            TapeStateError: It is not active here.
        """
        if accumulator not in self.accumulators:
            raise TapeStateError("Accumulator is not recording.")
        self.accumulators.remove(accumulator)
        self._opened.remove(accumulator)
        self.begin_epoch()

    # ---------------------------------------------------------------------------------------------------------- order
    def opened(self) -> list[Tape | Accumulator]:
        """The active tapes and accumulators, in the order in which they became active."""
        return list(self._opened)

    def restore(self, opened: Sequence[Tape | Accumulator], reads: Iterable[tuple[Uid, int, Any]]) -> None:
        """Makes a context that has nothing as another one was.

        Args:
            opened: What was active, in the order in which it became active.
            reads: The variables' uids, versions and values that were read in its epoch.
        """
        self._opened = list(opened)
        self.tapes = [entry for entry in opened if isinstance(entry, Tape)]
        self.accumulators = [entry for entry in opened if not isinstance(entry, Tape)]
        self.by_variable = {uid: (version, value) for uid, version, value in reads}

    def outside(self, accumulator: Accumulator) -> tuple[list[Tape], list[Accumulator]]:
        """The tapes and accumulators that became active before it: they record how its tangents are computed."""
        outside = self._outside.get(accumulator)
        if outside is None:
            outer = self._opened[: self._opened.index(accumulator)]
            tapes = [entry for entry in outer if isinstance(entry, Tape)]
            accumulators = [entry for entry in outer if not isinstance(entry, Tape)]
            outside = self._outside[accumulator] = tapes, accumulators
        return outside

    @contextmanager
    def only(self, tapes: list[Tape], accumulators: list[Accumulator]) -> Iterator[None]:
        """A block in which only these are active."""
        before = self.tapes, self.accumulators
        self.tapes, self.accumulators = tapes, accumulators
        try:
            yield
        finally:
            self.tapes, self.accumulators = before

    # ------------------------------------------------------------------------------------------------------ variables
    def begin_epoch(self) -> None:
        """From now on the next read of each variable is a node of its own."""
        self.by_variable.clear()
        self._outside.clear()

    def reads(self) -> list[Any]:
        """The variables' values read in this epoch: another read in it gives the same values."""
        return [value for _, value in self.by_variable.values()]

    def read(self, variable: Variable) -> Any:
        """The variable's value as an op's input: under tapes a node of its own, one for each epoch and version."""
        records = self.provenance.records
        if not self.tapes and not self.accumulators:
            records.append((Event.READ, (variable.uid,), variable.value.uid, variable.name))
            return variable.value
        earlier = self.by_variable.get(variable.uid)
        if earlier is not None and earlier[0] == variable.version:
            return earlier[1]
        value = variable.value.alias(new_uid())
        plan = None
        for tape in self.tapes:
            if tape.watches(variable) and value.spec.differentiable:
                plan = plan or bind(ops.identity, (value.spec,)).plan(1)
                residuals = (value,) if tape.replayable else ()
                tape.note(plan, (variable.uid,), value.uid, residuals, self.provenance.here())
        if plan is None:
            records.append((Event.READ, (variable.uid,), value.uid, variable.name))
        for accumulator in self.accumulators:
            accumulator.read(variable, value)
        self.by_variable[variable.uid] = (variable.version, value)
        return value
