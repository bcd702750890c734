"""Takes a snapshot: everything in a session gets a position, and rows name each other by those."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from teletape_engine.arrays import HostArray
from teletape_engine.arrays.cpu import CPU
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.functions.compile import Definitions
from teletape_engine.functions.function import Function
from teletape_engine.recording.values import Uid, Value, Variable
from teletape_engine.session.entries import Poison, TapeEntry
from teletape_engine.session.snapshot.plain import Snapshot
from teletape_engine.session.state import State


def take(state: State) -> Snapshot:
    """Returns what a session has; there is no `obstacle`."""
    writer = _Writer(state)
    entries = [[name, *writer.entry(entry)] for name, entry in state.entries.items()]
    return Snapshot(
        tuple(writer.buffers),
        tuple(writer.functions.commands),
        state.clients.kept_answers(),
        {
            "entries": entries,
            "arrays": writer.arrays,
            "values": writer.values,
            "variables": writer.variables,
            "variables_made": state.variables_made,
            "names": state.written_names(),
            "clients": state.clients.written(),
            "no_gradient": sorted(state.declarations.no_gradient),
            "gradients": list(state.declarations.gradients),
        },
    )


class _Writer:
    """Gives everyitem its position. It keeps what it has met, so that no identity is used twice."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.buffers: list[HostArray] = []
        self.arrays: list[list[Any]] = []
        self.values: list[list[int]] = []
        self.variables: list[list[Any]] = []
        self.functions = Definitions(call_sites=True)
        self._met: dict[tuple[int, str], tuple[int, Any]] = {}  # by identity, and what it is met as
        self._uids: dict[Uid, int] = {}

    def entry(self, entry: Any) -> list[Any]:
        """The row of what an id names."""
        if isinstance(entry, Value):
            return ["tensor", self._value(entry)]
        if isinstance(entry, Variable):
            return ["variable", self._variable(entry)]
        if isinstance(entry, SlicesValue):
            dense = entry.dense
            return ["slices", self._value(entry.values), self._value(entry.indices), dense.dtype.name, [*dense.shape]]
        if isinstance(entry, Function):
            return ["function", self.functions.id_of(entry)]
        if isinstance(entry, Poison):
            return ["poison", entry.cause]
        if isinstance(entry, TapeEntry):
            return ["tape", self._tape(entry)]
        gradient = entry.gradient
        others = [
            [isinstance(other, Variable), self._variable(other) if isinstance(other, Variable) else self._value(other)]
            for other in entry.others
        ]
        return ["gradient", entry.tag, self.functions.id_of(gradient.function), [*gradient.has_gradient], others]

    def _tape(self, entry: TapeEntry) -> dict[str, Any]:
        """A tape that has answered: what is said of it; it answers no more."""
        tape = entry.tape
        return {
            "watch_accessed": tape.watch_accessed,
            "replayable": tape.replayable,
            "length": tape.length,
            "variables": [self._variable(variable) for variable in tape.variables.values()],
            "parents": [*entry.parents],
            "outputs": [[name, self._uid(uid)] for name, uid in entry.outputs.items()],
        }

    def _uid(self, uid: Uid) -> int:
        return self._uids.setdefault(uid, len(self._uids))

    def _variable(self, variable: Variable) -> int:
        position = self._position(variable)
        if position is None:
            position = self._meet(variable, self.variables)
            row = [variable.name, self._uid(variable.uid), variable.version, variable.trainable]
            self.variables[position] = [*row, self._value(variable.value), variable.serial]
        return position

    def _value(self, value: Value) -> int:
        position = self._position(value)
        if position is None:
            position = self._meet(value, self.values)
            self.values[position] = [self._array(value.array), self._uid(value.uid)]
        return position

    def _array(self, array: Any) -> int:
        position = self._position(array)
        if position is None:
            position = self._meet(array, self.arrays)
            host = self._state.backend.get(array)
            is_scalar = self._state.backend is CPU and not isinstance(array, np.ndarray)
            buffer, offset = self._buffer(host)
            self.arrays[position] = [buffer, offset, host.dtype.name, [*host.shape], [*host.strides], is_scalar]
        return position

    def _buffer(self, array: HostArray) -> tuple[int, int]:
        """The position of the buffer that an array is a view of, and where in it the array begins, in bytes."""
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        position = self._position(owner, "buffer")
        if owner.flags.c_contiguous or owner.flags.f_contiguous:
            buffer, begin = owner if owner.flags.c_contiguous else owner.T, owner.ctypes.data
        else:
            begin, end = np.lib.array_utils.byte_bounds(owner)
            buffer = np.ctypeslib.as_array((ctypes.c_uint8 * (end - begin)).from_address(begin))
        if position is None:
            position = self._meet(owner, self.buffers, "buffer")
            self.buffers[position] = buffer
        return position, array.ctypes.data - begin if array.size else 0

    def _position(self, item: Any, role: str = "") -> int | None:
        met = self._met.get((id(item), role))
        return None if met is None else met[0]

    def _meet(self, item: Any, rows: list[Any], role: str = "") -> int:
        rows.append(None)
        self._met[id(item), role] = len(rows) - 1, item
        return len(rows) - 1
