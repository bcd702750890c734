"""The walk in C: NumPy's own inner loops, called one after the other by the library that `rows.c` becomes.

NumPy hands these loops out (`_resolve_dtypes_and_context`, `_get_strided_loop`: made for Numba). The names are private:
they are used as `loaded.py` says: for versions of NumPy that were tested, after a self-check, if the library was built.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any, Final

import numpy as np

from teletape_engine.c_library import PREFIX, load
from teletape_engine.plans.ir.buffers import View
from teletape_engine.plans.ir.instructions import Instruction
from teletape_engine.plans.ir.rows import InnerLoop, LoopRow, Uncompiled
from teletape_engine.plans.run.c.records import POINTER, RECORDS, Info

LIBRARY: Final = Path(__file__).with_name("librows.so.1")
_MOST_LOOPS: Final = 4096  #: Loops that are remembered.


class Library:
    """The library, loaded.

    Raises:
        OSError: There is none, or it is of another machine.
        AttributeError, ValueError: It is of another version of `rows.c`, or of its records.
    """

    def __init__(self) -> None:
        self._library = library = load(LIBRARY, RECORDS)
        # The same without giving the GIL up: to get it back takes longer than a short run.
        with_gil = ctypes.PyDLL(str(LIBRARY))
        self.run, self.run_with_gil = library.teletape_run, with_gil.teletape_run
        self.call, self.call_with_gil = library.teletape_call, with_gil.teletape_call
        self.begin, self.loop_of = library.teletape_begin, library.teletape_loop_of
        self.run.argtypes = self.run_with_gil.argtypes = (POINTER, ctypes.c_long)
        self.call.argtypes = self.call_with_gil.argtypes = self.begin.argtypes = (POINTER, POINTER)
        self.loop_of.argtypes = (POINTER, ctypes.c_ssize_t, POINTER)
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = POINTER, (ctypes.py_object, ctypes.c_char_p)
        self._pointer = get
        self._loops: dict[Any, InnerLoop] = {}

    # ------------------------------------------------------------------------------------------------------------ rows
    def rows(self, instruction: Instruction) -> list[LoopRow]:
        """The rows that do an instruction. Copies of one instruction differ in their operands alone.

        Raises:
            Uncompiled: There are none.
        """
        origin = instruction.origin
        if origin is None:
            return self._rows(instruction)
        views = instruction.views
        if origin.row_places is not None and instruction.output.buffer not in [
            view.buffer for view in instruction.inputs
        ]:
            return [
                row._replace(operands=tuple([(view if at is None else views[at], start) for at, view, start in where]))
                for row, where in origin.row_places
            ]
        rows = self._rows(instruction)
        if len({id(view) for view in views}) == len(views):  # else it is not known which of them an operand is
            places = [(row, [(_position(view, views), view, start) for view, start in row.operands]) for row in rows]
            if all(at is not None or view.buffer.constant is not None for _, where in places for at, view, _ in where):
                origin.row_places = places
        return rows

    def _rows(self, instruction: Instruction) -> list[LoopRow]:
        output = instruction.output
        if instruction.is_empty:
            return []
        if any(view.buffer is output.buffer and not _same(view, output) for view in instruction.inputs):
            raise Uncompiled  # where memory overlaps NumPy copies first
        if any(stride < 0 for view in instruction.views for stride in view.layout.strides):
            raise Uncompiled  # NumPy copies such inputs to a buffer: by another loop exp and log round differently
        return instruction.rows(self)

    # ----------------------------------------------------------------------------------------------------------- loops
    def symbol(self, name: str) -> int:
        """The address of a function of the library."""
        try:
            function = getattr(self._library, f"{PREFIX}{name}")
        except AttributeError:
            raise Uncompiled from None
        return ctypes.cast(function, POINTER).value or 0

    def loop(self, ufunc: Any, dtypes: tuple[Any, ...], strides: tuple[int, ...] | None) -> InnerLoop:
        """NumPy's loop of a ufunc for these dtypes; see `Loops.loop`."""
        key = (ufunc, dtypes, strides)
        loop = self._loops.get(key)
        if loop is None:
            _, capsule = ufunc._resolve_dtypes_and_context(dtypes)
            if strides is None:
                ufunc._get_strided_loop(capsule)
            else:
                ufunc._get_strided_loop(capsule, fixed_strides=strides)
            info = Info.from_address(self._pointer(capsule, b"numpy_1.24_ufunc_call_info"))
            if info.needs_python:
                raise Uncompiled
            if len(self._loops) >= _MOST_LOOPS:
                self._loops.clear()
            loop = self._loops[key] = InnerLoop(info.loop, info.context or 0, info.auxiliary or 0, capsule)
        return loop

    def record(self, name: str, **fields: Any) -> Any:
        """A record of `rows.c`; see `Loops.record`."""
        record = np.zeros(1, RECORDS.dtypes[name])
        for field, value in fields.items():
            record[field] = value
        return record


def _position(view: View, views: tuple[View, ...]) -> int | None:
    return next((at for at, other in enumerate(views) if other is view), None)


def _same(a: View, b: View) -> bool:
    return a.offset == b.offset and a.layout.shape == b.layout.shape and a.layout.strides == b.layout.strides
