"""Gives a session that has nothing what a snapshot has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.functions.compile import compile_function
from teletape_engine.functions.function import Function
from teletape_engine.recording.custom import FunctionGradient
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Uid, Value, Variable, new_uid
from teletape_engine.session.entries import Poison, TapeEntry
from teletape_engine.session.handlers.questions import CustomGradientEntry
from teletape_engine.session.snapshot.plain import Snapshot
from teletape_engine.session.state import MAIN, State
from teletape_engine.spec import Spec, dtype_of


def put(state: State, snapshot: Snapshot) -> None:
    """Gives a session that has nothing what a snapshot has. Arrays are copied out of it."""
    facts = snapshot.facts
    reader = _Reader(state, snapshot)
    for name, kind, *row in facts["entries"]:
        state.entries[name] = reader.entry(kind, row)
    state.variables_made = facts["variables_made"]
    state.read_names(facts["names"])
    state.clients.read(facts["clients"], snapshot.answers)
    state.declarations.no_gradient.update(facts["no_gradient"])
    state.declarations.gradients.update(dict.fromkeys(facts["gradients"]))
    state.memory.count()


class _Reader:
    """Makes the things of a snapshot, each once."""

    def __init__(self, state: State, snapshot: Snapshot) -> None:
        facts = snapshot.facts
        self._state = state
        self._uids: dict[int, Uid] = {}
        buffers = [buffer.copy() for buffer in snapshot.buffers]
        arrays = [_array_of(buffers, *row) for row in facts["arrays"]]
        on_device = [state.backend.put(array) for array in arrays]
        self._values = [
            Value(on_device[array], Spec.of(arrays[array].shape, arrays[array].dtype), self._uid(uid))
            for array, uid in facts["values"]
        ]
        self._variables = [self._variable(*row) for row in facts["variables"]]
        self._functions: dict[str, Function] = {}
        for command in snapshot.functions:
            dtype = None if command.dtype is None else dtype_of(command.dtype)
            self._functions[str(command.id)] = compile_function(
                command.inputs, command.steps, command.outputs, self._functions.__getitem__, dtype
            )

    def _uid(self, number: int) -> Uid:
        if number not in self._uids:
            self._uids[number] = new_uid()
        return self._uids[number]

    def _variable(self, name: str, uid: int, version: int, trainable: bool, value: int, serial: int) -> Variable:
        variable = Variable(self._values[value], trainable=trainable, name=name, uid=self._uid(uid))
        variable.version, variable.serial = version, serial
        return variable

    def entry(self, kind: str, row: Sequence[Any]) -> Any:
        """What an id names."""
        if kind == "tensor":
            return self._values[row[0]]
        if kind == "variable":
            return self._variables[row[0]]
        if kind == "slices":
            values, indices, dtype, shape = row
            return SlicesValue(self._values[values], self._values[indices], Spec.of(tuple(shape), dtype_of(dtype)))
        if kind == "function":
            return self._functions[row[0]]
        if kind == "poison":
            return Poison(row[0])
        if kind == "tape":
            return self._tape(row[0])
        tag, function, has_gradient, others = row
        gradient = FunctionGradient(self._functions[function], has_gradient)
        values = [self._variables[at] if is_variable else self._values[at] for is_variable, at in others]
        return CustomGradientEntry(tag, gradient, values)

    def _tape(self, facts: Mapping[str, Any]) -> TapeEntry:
        tape = Tape(watch_accessed=facts["watch_accessed"], replayable=facts["replayable"])
        for variable in facts["variables"]:
            tape.watch(self._variables[variable])
        tape.consume()
        tape.free()
        tape.forgotten = facts["length"]
        outputs = {name: self._uid(uid) for name, uid in facts["outputs"]}
        return TapeEntry(tape, self._state.context(MAIN).context, tuple(facts["parents"]), outputs)


def _array_of(
    buffers: Sequence[HostArray],
    buffer: int,
    offset: int,
    dtype: str,
    shape: Sequence[int],
    strides: Sequence[int],
    is_scalar: bool,
) -> Any:
    """The array of a row."""
    owner, kind, lengths = buffers[buffer], dtype_of(dtype), tuple(shape)
    array = owner
    if (owner.dtype, owner.shape, owner.strides, offset) != (kind, lengths, tuple(strides), 0):
        memory = owner.reshape(-1).view(np.uint8)
        array = np.empty(lengths, kind)
        if array.size:
            array = np.ndarray(lengths, kind, memory, offset, tuple(strides))
    return array[()] if is_scalar else array
