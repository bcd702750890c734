"""Values as rows: buffers once, arrays as views of them, values and variables by identity; and the same read again.

A uid is written as how far it lies before the snapshot. So uids keep their order, and those of a session that was
restored are below zero, before all that its process makes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from teletape_engine.arrays import HostArray
from teletape_engine.arrays.cpu import CPU
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.functions.compile import Definitions
from teletape_engine.functions.function import Function
from teletape_engine.recording.custom import FunctionGradient
from teletape_engine.recording.values import Literal, Uid, Value, Variable, new_uid
from teletape_engine.session.state import State
from teletape_engine.spec import Spec, Weak, dtype_of

_KINDS: Final = {kind.__name__: kind for kind in (int, float, complex)}


class ValueWriter:
    """Gives values their positions. It keeps what it has met, so that no identity is used twice.

    Args:
        state: Of the session.

    Attributes:
        buffers: Arrays on the host, row-major.
        functions: The definitions of the functions met.
        rows: The tables of everything else that was met.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._now = new_uid()
        self.buffers: list[HostArray] = []
        self.functions = Definitions(call_sites=True)
        self.rows: dict[str, list[Any]] = {"arrays": [], "values": [], "variables": []}
        self._met: dict[tuple[int, str], tuple[int, Any]] = {}  # by identity, and what it is met as

    def uid(self, uid: Uid) -> Uid:
        """How far a uid lies before the snapshot, below zero."""
        return uid - self._now

    def uids(self, uids: Iterable[Uid | None]) -> list[Uid | None]:
        """The same of several; None stays."""
        now = self._now
        return [None if uid is None else uid - now for uid in uids]

    def variable(self, variable: Variable) -> int:
        """The position of a variable."""
        position = self.position(variable, "variables")
        if position is None:
            position = self.meet(variable, "variables")
            row = [variable.name, self.uid(variable.uid), variable.version, variable.trainable]
            self.rows["variables"][position] = [*row, self.value(variable.value), variable.serial]
        return position

    def value(self, value: Value) -> int:
        """The position of a value."""
        position = self.position(value, "values")
        if position is None:
            position = self.meet(value, "values")
            self.rows["values"][position] = [self.array(value.array), self.uid(value.uid)]
        return position

    def operand(self, operand: Any) -> Any:
        """What takes the place of a value in commands and on tapes: its position, or a row that begins with its kind.

        None stays.
        """
        if operand.__class__ is Value:
            return self.value(operand)
        if isinstance(operand, Literal):
            return ["number", *number_row(operand.array), *_untyped(operand.spec)]
        if isinstance(operand, Variable):
            return ["variable", self.variable(operand)]
        if isinstance(operand, SlicesValue):
            dense = operand.dense
            return ["slices", self.value(operand.values), self.value(operand.indices), spec_row(dense)]
        if isinstance(operand, FunctionGradient):
            return ["function", self.functions.id_of(operand.function), [*operand.has_gradient]]
        assert operand is None, f"{operand!r} cannot be written down"
        return None

    def array(self, array: Any) -> int:
        """The position of an array, which is one of the device's, or a scalar."""
        position = self.position(array, "arrays")
        if position is None:
            position = self.meet(array, "arrays")
            host = self._state.backend.get(array)
            is_scalar = self._state.backend is CPU and not isinstance(array, np.ndarray)
            self.rows["arrays"][position] = [*self._place(host), is_scalar]
        return position

    def host_array(self, array: HostArray) -> list[Any]:
        """The row of an array on the host."""
        return self._place(array)

    def _place(self, array: HostArray) -> list[Any]:
        buffer, offset = self._buffer(array)
        return [buffer, offset, array.dtype.name, [*array.shape], [*array.strides]]

    def _buffer(self, array: HostArray) -> tuple[int, int]:
        """The position of the buffer that an array is a view of, and where in it the array begins, in bytes."""
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        position = self.position(owner, "buffers")
        if owner.flags.c_contiguous or owner.flags.f_contiguous:
            buffer, begin = owner if owner.flags.c_contiguous else owner.T, owner.ctypes.data
        else:
            begin, end = np.lib.array_utils.byte_bounds(owner)
            buffer = np.ctypeslib.as_array((ctypes.c_uint8 * (end - begin)).from_address(begin))
        if position is None:
            position = len(self.buffers)
            self.buffers.append(buffer)
            self._met[id(owner), "buffers"] = position, owner
        return position, array.ctypes.data - begin if array.size else 0

    def position(self, item: Any, table: str) -> int | None:
        """The position of what was met in a table before."""
        met = self._met.get((id(item), table))
        return None if met is None else met[0]

    def meet(self, item: Any, table: str) -> int:
        """The position of what is met for the first time; its row is still to be written."""
        rows = self.rows.setdefault(table, [])
        rows.append(None)
        self._met[id(item), table] = len(rows) - 1, item
        return len(rows) - 1


class ValueReader:
    """Makes values of rows, each once.

    Args:
        state: Of the session, which has nothing.
        buffers: Of the snapshot, which the caller gives up.
        facts: Its tables.
        functions: Its functions, by the names that they have there.
    """

    def __init__(
        self,
        state: State,
        buffers: Sequence[HostArray],
        facts: Mapping[str, Any],
        functions: Mapping[str, Function],
    ) -> None:
        self._state, self.functions = state, functions
        self._buffers = buffers
        arrays = [self._array(*row) for row in facts["arrays"]]
        on_device = [state.backend.put(array) for array in arrays]
        self.values = [
            Value(on_device[array], Spec.of(arrays[array].shape, arrays[array].dtype), uid)
            for array, uid in facts["values"]
        ]
        self.variables = [self._variable(*row) for row in facts["variables"]]

    def _variable(self, name: str, uid: Uid, version: int, trainable: bool, value: int, serial: int) -> Variable:
        variable = Variable(self.values[value], trainable=trainable, name=name, uid=uid)
        variable.version, variable.serial = version, serial
        return variable

    def operand(self, row: Any) -> Any:
        """What `ValueWriter.operand` has written."""
        if row.__class__ is int:
            return self.values[row]
        if row is None:
            return None
        kind, *row = row
        if kind == "number":
            return _literal(*row)
        if kind == "variable":
            return self.variables[row[0]]
        if kind == "slices":
            values, indices, dense = row
            return SlicesValue(self.values[values], self.values[indices], spec_of(dense))
        function, has_gradient = row
        return FunctionGradient(self.functions[function], has_gradient)

    def host_array(self, row: Sequence[Any]) -> HostArray:
        """The array of `ValueWriter.host_array`."""
        array: HostArray = self._array(*row)
        return array

    def _array(
        self,
        buffer: int,
        offset: int,
        dtype: str,
        shape: Sequence[int],
        strides: Sequence[int],
        is_scalar: bool = False,
    ) -> Any:
        owner, kind, lengths = self._buffers[buffer], dtype_of(dtype), tuple(shape)
        array = owner
        if (owner.dtype, owner.shape, owner.strides, offset) != (kind, lengths, tuple(strides), 0):
            memory = owner.reshape(-1).view(np.uint8)
            array = np.empty(lengths, kind)
            if array.size:
                array = np.ndarray(lengths, kind, memory, offset, tuple(strides))
        return array[()] if is_scalar else array


def spec_row(spec: Spec) -> list[Any]:
    """A spec as a row."""
    return [spec.dtype.name, *spec.shape]


def spec_of(row: Sequence[Any]) -> Spec:
    """The spec of a row."""
    return Spec.of(tuple(row[1:]), dtype_of(row[0]))


def number_row(number: Any) -> list[str]:
    """A Python number as a row, exactly."""
    return [number.__class__.__name__, repr(number)]


def number_of(kind: str, text: str) -> Any:
    """The number of a row."""
    return text == "True" if kind == "bool" else _KINDS[kind](text)


def _untyped(weak: Weak) -> list[str]:
    return [weak.kind.__name__, weak.integer.name, weak.alone.name] if weak.untyped else []


def _literal(kind: str, text: str, *untyped: str) -> Literal:
    number = number_of(kind, text)
    if not untyped:
        return Literal(number)
    of, integer, alone = untyped
    literal = Literal.of(Weak.of_untyped(_KINDS[of], (), dtype_of(integer), dtype_of(alone)))
    literal.array = number
    return literal
