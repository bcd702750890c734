"""Gives a session that has nothing what a snapshot has."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from teletape_engine.commands.results import Answer, Fetched, Result, SlicesArrays
from teletape_engine.functions.compile import compile_function
from teletape_engine.functions.function import Function
from teletape_engine.recording.context import Context
from teletape_engine.recording.values import Uid
from teletape_engine.session.entries import Poison, TapeEntry
from teletape_engine.session.handlers.accumulators import AccumulatorEntry
from teletape_engine.session.handlers.questions import CustomGradientEntry
from teletape_engine.session.snapshot.plain import Snapshot
from teletape_engine.session.snapshot.recordings import RecordingReader
from teletape_engine.session.state import State, read_only
from teletape_engine.spec import dtype_of


def put(state: State, snapshot: Snapshot) -> None:
    """Gives a session that has nothing what a snapshot has, whose arrays the caller gives up.

    Raises:
        TeletapeError: This version cannot go on from it.
    """
    facts = snapshot.facts
    state.declarations.no_gradient.update(facts["no_gradient"])
    state.declarations.gradients.update(dict.fromkeys(facts["gradients"]))
    reader = _Reader(state, snapshot.buffers, facts, _functions(snapshot))
    for name, *row in facts["contexts"]:
        reader.context(state.context(name), row)
    state.switch(facts["current"])
    for name, kind, *row in facts["entries"]:
        state.entries[name] = reader.entry(kind, row)
    reader.value_reads(state.value_reads, facts["value_reads"])
    state.variables_made = facts["variables_made"]
    state.read_names(facts["names"])
    arrays = facts["answer_arrays"]
    answers = {client: reader.answer(answer, arrays[client]) for client, answer in snapshot.answers.items()}
    state.clients.read(facts["clients"], answers)
    state.memory.count()


def _functions(snapshot: Snapshot) -> dict[str, Function]:
    functions: dict[str, Function] = {}
    for command in snapshot.functions:
        dtype = None if command.dtype is None else dtype_of(command.dtype)
        functions[str(command.id)] = compile_function(
            command.inputs, command.steps, command.outputs, functions.__getitem__, dtype
        )
    return functions


class _Reader(RecordingReader):
    """Makes the things of a snapshot, each once."""

    def _context_of(self, name: Any) -> Context:
        """The context of that id; without one it is one that has ended."""
        return (self._state.executor() if name is None else self._state.context(name)).context

    def entry(self, kind: str, row: Sequence[Any]) -> Any:
        """What an id names."""
        if kind == "tensor":
            return self.values[row[0]]
        if kind == "function":
            return self.functions[row[0]]
        if kind == "poison":
            return Poison(row[0])
        if kind == "tape":
            return self._tape_entry(*row)
        if kind == "accumulator":
            accumulator, context, failure = row
            return AccumulatorEntry(self.accumulators[accumulator], self._context_of(context), failure)
        if kind == "gradient":
            tag, gradient, others = row
            return CustomGradientEntry(tag, self.operand(gradient), [self.operand(other) for other in others])
        return self.operand([kind, *row])

    def _tape_entry(
        self, tape: int, context: Any, parents: Sequence[Any], outputs: Sequence[tuple[Any, Uid]]
    ) -> TapeEntry:
        return TapeEntry(self.tapes[tape], self._context_of(context), tuple(parents), dict(outputs))

    def answer(self, answer: Answer, arrays: Sequence[tuple[int, Sequence[Any]]]) -> Answer:
        """An answer with its arrays."""
        results: list[Result] = list(answer.results)
        for at, rows in arrays:
            result = results[at]
            assert isinstance(result, Fetched)
            array, *indices = [read_only(self.host_array(row)) for row in rows]
            slices = SlicesArrays(array, indices[0], result.spec) if indices else array
            results[at] = dataclasses.replace(result, array=slices)
        return dataclasses.replace(answer, results=tuple(results))
