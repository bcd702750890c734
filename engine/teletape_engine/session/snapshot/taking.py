"""Takes a snapshot: everything in a session gets a position, and rows name each other by those."""

from __future__ import annotations

import dataclasses
from typing import Any

from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.commands.results import Answer, Fetched, Result, SlicesArrays
from teletape_engine.functions.function import Function
from teletape_engine.recording.values import Value, Variable
from teletape_engine.session.entries import Poison, TapeEntry
from teletape_engine.session.handlers.accumulators import AccumulatorEntry
from teletape_engine.session.handlers.questions import CustomGradientEntry
from teletape_engine.session.snapshot.plain import Snapshot
from teletape_engine.session.snapshot.recordings import RecordingWriter
from teletape_engine.session.state import State


def take(state: State) -> Snapshot:
    """Returns what a session has; there is no `obstacle`."""
    writer = _Writer(state)
    contexts = [[name, *writer.context(executor)] for name, executor in state.contexts().items()]
    entries = [[name, *writer.entry(entry)] for name, entry in state.entries.items()]
    answers = {client: writer.answer(answer) for client, answer in state.clients.kept_answers().items()}
    facts = {
        "contexts": contexts,
        "entries": entries,
        "answer_arrays": {client: arrays for client, (_, arrays) in answers.items()},
        "value_reads": writer.value_reads(state.value_reads),
        "current": next(name for name, executor in state.contexts().items() if executor is state.current),
        "variables_made": state.variables_made,
        "names": state.written_names(),
        "clients": state.clients.written(),
        "no_gradient": sorted(state.declarations.no_gradient),
        "gradients": list(state.declarations.gradients),
    }
    return Snapshot(
        tuple(writer.buffers),
        tuple(writer.functions.commands),
        {client: answer for client, (answer, _) in answers.items()},
        facts | writer.rows,
    )


class _Writer(RecordingWriter):
    """Gives everything its position."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._contexts = {id(executor.context): name for name, executor in state.contexts().items()}

    def _context_of(self, context: Any) -> Any:
        """The id of a context; None: it has ended, and nothing is active there."""
        return self._contexts.get(id(context))

    def entry(self, entry: Any) -> list[Any]:
        """The row of what an id names."""
        if isinstance(entry, Value):
            return ["tensor", self.value(entry)]
        if isinstance(entry, Variable | SlicesValue):
            return self.operand(entry)  # type: ignore[no-any-return]  # a row
        if isinstance(entry, Function):
            return ["function", self.functions.id_of(entry)]
        if isinstance(entry, Poison):
            return ["poison", entry.cause]
        if isinstance(entry, TapeEntry):
            outputs = [[name, self.uid(uid)] for name, uid in entry.outputs.items()]
            return ["tape", self.tape(entry.tape), self._context_of(entry.context), [*entry.parents], outputs]
        if isinstance(entry, AccumulatorEntry):
            accumulator = self.accumulator(entry.accumulator)
            return ["accumulator", accumulator, self._context_of(entry.context), entry.failure]
        assert isinstance(entry, CustomGradientEntry)
        others = [self.operand(other) for other in entry.others]
        return ["gradient", entry.tag, self.operand(entry.gradient), others]

    def answer(self, answer: Answer) -> tuple[Answer, list[Any]]:
        """An answer without its arrays, and the rows of these, which tensors may share."""
        results: list[Result] = list(answer.results)
        arrays: list[Any] = []
        for at, result in enumerate(results):
            if isinstance(result, Fetched):
                array = result.array
                parts = array[:2] if isinstance(array, SlicesArrays) else (array,)
                arrays.append([at, [self.host_array(part) for part in parts]])
                empty, *indices = [part.reshape(-1)[:0] for part in parts]
                slices = SlicesArrays(empty, indices[0], result.spec) if indices else empty
                results[at] = dataclasses.replace(result, array=slices)
        return dataclasses.replace(answer, results=tuple(results)), arrays
