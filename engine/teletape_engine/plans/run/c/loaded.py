"""The library of plans, loaded and checked: it is used if it gives what NumPy gives here."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np

from teletape_engine.plans.ir.buffers import Buffer, View, address
from teletape_engine.plans.ir.instructions import Choice, Copy, MatrixProduct, Reduction, UfuncCall
from teletape_engine.plans.ir.rows import Uncompiled
from teletape_engine.plans.run.c.native import LIBRARY, Library
from teletape_engine.plans.run.c.records import HEAD, PATCH, PROGRAM, ROW, STAGE, fill

TESTED: Final = frozenset(("2.1", "2.2", "2.3", "2.4", "2.5"))  #: Every test of plans has passed with them.


def _load() -> tuple[Library | None, str]:
    """The library, if it does what NumPy does here; else why it does not, and what to do."""
    if ".".join(np.__version__.split(".")[:2]) not in TESTED:
        first, *_, last = sorted(TESTED)
        return None, f"NumPy is {np.__version__}, and compiled plans need {first} to {last}: install one of these"
    if not LIBRARY.exists():
        return None, f"{LIBRARY.name} was not built, because there was no C compiler: install one, and Teletape again"
    try:
        library = Library()
        if _works(library) and _begins(library):
            return library, ""
    except (OSError, ValueError, AttributeError, TypeError, Uncompiled) as error:
        return None, f"{LIBRARY.name} cannot be used ({error}): install Teletape again"
    return None, f"{LIBRARY.name} gives other numbers than NumPy {np.__version__}: install another version of NumPy"


def _works(library: Library) -> bool:
    """Whether rows of each kind give NumPy's bytes."""
    x = np.linspace(-2, 3, 35, dtype=np.float32).reshape(5, 7)
    a, b = np.ascontiguousarray(x[:, :5]), np.ascontiguousarray(x.T[:5])
    cases: list[Any] = [
        (UfuncCall, np.multiply, (x, x[:, ::2][:, :1]), np.multiply(x, x[:, ::2][:, :1]), None),
        (UfuncCall, np.tanh, (x[:, 1:],), np.tanh(x[:, 1:]), None),
        (Reduction, np.add, (x,), np.add.reduce(x, (1,)), ((1,), None)),
        (Reduction, np.maximum, (x,), np.maximum.reduce(x, (0,)), ((0,), None)),
        (MatrixProduct, np.matmul, (a, b), np.matmul(a, b), None),
        (Copy, None, (x.T,), np.ascontiguousarray(x.T), None),
        (Choice, None, (x > 0, x, x * 2), np.where(x > 0, x, x * 2), None),
    ]
    for kind, function, inputs, expected, extra in cases:
        views = tuple([View(Buffer(array, constant=array), array) for array in inputs])
        output = np.full_like(expected, 7, subok=False)
        instruction = kind(views, View(Buffer(output), output), function, extra)
        for _ in range(2):  # a loop that moves its pointers goes wrong at the second call
            rows = library.rows(instruction)
            table = np.zeros(len(rows), ROW)
            for number, row in enumerate(rows):
                data = [
                    address(output if view.buffer.layout is output else view.layout) + start
                    for view, start in row.operands
                ]
                fill(table, number, row, data)
            output.fill(7)
            if library.run(address(table), len(table)) or output.tobytes() != expected.tobytes():
                return False
    return True


def _begins(library: Library) -> bool:
    """Whether arguments are found where a program looks for them: arrays, and scalars of each dtype."""
    for char in "?bBhHiIlLqQefdFD":
        number = np.full(2, 113 if char != "?" else 1, char)
        for argument in (number[1:], number[1]):
            target = np.zeros(1, char)
            stage, where = np.zeros(1, STAGE), np.zeros(1, "u8")
            is_array = argument.__class__ is np.ndarray
            stage[0] = (0, not is_array, number.itemsize, address(target))
            patch, program = np.zeros(1, PATCH), np.zeros(1, PROGRAM)
            patch[0] = (0, 3, number.itemsize, address(where))
            program[0] = (0, 0, 1, is_array, HEAD, address(stage), address(patch))
            objects = (ctypes.c_void_p * 1)(id(argument))
            if library.call(address(program), objects) or target[0] != number[1]:
                return False
            if is_array and where[0] != address(argument) + 3:
                return False
    return True


#: The library, and why there is none: functions then run step by step in Python, several times slower.
LIBRARY_LOADED, WHY_NOT = _load()
