"""Saved functions, and the commands that take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from teletape_engine.commands.command import Command, FunctionId, Id, Input, Step


@dataclass(frozen=True, slots=True)
class DefineFunction(Command):
    """A saved function `id`: named inputs, steps on them in order, named outputs.

    A step is a command (op, assign, call, …) whose values are named inside the program; programs that it takes are the
    session's. An input may stand for a variable: then a step that names it reads it, in order, and `assign` writes it.
    """

    verb = "function"
    id: Id
    inputs: tuple[str, ...]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CallFunction(Command):
    """Runs a program on values and variables; its ops are recorded as if they stood here."""

    verb = "call"
    step = True
    function: FunctionId
    inputs: tuple[Input, ...]
    outputs: tuple[Id, ...]
    report_decisions: bool = False


@dataclass(frozen=True, slots=True)
class CustomCall(Command):
    """As `custom`, where a program makes the cotangents: no pass stops at it.

    `inputs`: what tapes follow the call by, then its `results` as they were computed, then what else the program takes;
    `outputs`: those results. The program takes a cotangent of each result, then that; it gives a cotangent for each
    input of the call that is marked in `has_gradient`.
    """

    verb = "custom.call"
    step = True
    function: FunctionId
    inputs: tuple[Input, ...]
    outputs: tuple[Id, ...]
    has_gradient: tuple[bool, ...]
    results: int = 1
    label: str = "custom"


@dataclass(frozen=True, slots=True)
class While(Command):
    """Runs `body` on the loop's values as long as `cond` of them is true, at most `maximum_iterations` times.

    `inputs`: the values, then `captured` others that go with every iteration. Both programs take all of them; `cond`
    gives a scalar bool or integer, `body` the next values, of the same shapes and dtypes. `outputs`: the values at
    the end, and one more id, if given, for the number of iterations. `report_decisions`: answer what was decided.
    """

    verb = "while"
    step = True
    cond: FunctionId
    body: FunctionId
    inputs: tuple[Input, ...]
    outputs: tuple[Id, ...]
    captured: int = 0
    maximum_iterations: int | None = None
    report_decisions: bool = False


@dataclass(frozen=True, slots=True)
class Cond(Command):
    """Runs one of the `branches` on all `inputs` but the first, which chooses it.

    A scalar bool: true is the first branch, false the second. An integer: the branch of that number, the last where
    there is none. The results of all have the same shapes and dtypes. `report_decisions`: answer what was decided.
    """

    verb = "cond"
    step = True
    branches: tuple[FunctionId, ...]
    inputs: tuple[Input, ...]
    outputs: tuple[Id, ...]
    report_decisions: bool = False


@dataclass(frozen=True, slots=True)
class Scan(Command):
    """Runs `body` once for each element along axis 0, from the first to the last, or in `reverse`.

    `inputs`: the `carried` values, arrays of elements, then `captured` others. The body takes what is carried, an
    element of each array, and the others; it gives what is carried next, and any number of results. `outputs`: what is
    carried at the end, and each result stacked along a new axis 0. `length`: where there are no arrays of elements.
    `report_decisions`: answer what was decided. `vectorize`: all elements at once by the ops' batch rules, where
    nothing is carried and every step has one.
    """

    verb = "scan"
    step = True
    body: FunctionId
    inputs: tuple[Input, ...]
    outputs: tuple[Id, ...]
    carried: int = 0
    captured: int = 0
    reverse: bool = False
    length: int | None = None
    report_decisions: bool = False
    vectorize: bool = False


@dataclass(frozen=True, slots=True)
class CheckGradients(Command):
    """Answers how a program's derivatives at `inputs` compare with differences of it. `settings`: as of the tape's."""

    verb = "check_gradients"
    function: Id
    inputs: tuple[Input, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
