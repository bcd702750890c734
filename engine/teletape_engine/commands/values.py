"""Commands on tensors, variables and sparse gradients: create, assign, run an op, fetch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from teletape_engine.commands.base import Command, Id, Input, NewId, TensorOrNumber
from teletape_engine.records import record


@record(frozen=True, slots=True)
class Constant(Command):
    """Creates a tensor from the caller's numbers."""

    verb = "constant"
    id: NewId
    value: TensorOrNumber


@record(frozen=True, slots=True)
class MakeVariable(Command):
    """Creates a variable with an initial value. `name` is a label for people."""

    verb = "variable"
    creates = "variable"
    id: NewId
    value: Input
    trainable: bool = True
    name: str | None = None


@record(frozen=True, slots=True)
class Assign(Command):
    """Gives a variable its next version; shape and dtype stay. `mode` is set, add or sub.

    With `indices` only a part changes, and only that part travels: scatter_update, _add, _sub, _mul, _div, _min, _max
    (rows), scatter_nd_update, _add, _sub, _min, _max (positions), slice. See `teletape_engine.ops.assign`.
    """

    verb = "assign"
    step = True
    variable: Id
    value: Input
    mode: str = "set"
    indices: Input | None = None


@record(frozen=True, slots=True)
class Call(Command):
    """Runs one op. A variable among the inputs is read. `where` is the caller's call site, any text."""

    verb = "op"
    step = True
    op: str
    inputs: tuple[Input, ...]
    outputs: tuple[NewId, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    where: str | None = None


@record(frozen=True, slots=True)
class SlicesComponent(Command):
    """Creates a tensor from one array of a sparse gradient: `component` is values or indices."""

    verb = "slices.component"
    id: Id
    component: str
    output: NewId


@record(frozen=True, slots=True)
class MakeSlices(Command):
    """Creates a sparse gradient: row `values[k]` belongs to row `indices[k]` of a tensor of `rows` rows."""

    verb = "slices"
    id: NewId
    values: Id
    indices: Id
    rows: int


@record(frozen=True, slots=True)
class Fetch(Command):
    """Answers a tensor's numbers: all of them, or at most `elements` as a preview.

    `optional`: an id that names nothing is no failure, and has no result. For gradients that may be none.
    """

    verb = "fetch"
    id: Id
    elements: int | None = None
    optional: bool = False
