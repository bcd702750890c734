"""Values and variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from teletape_engine.commands.command import Command, Id, Input, Tensor
from teletape_engine.recording.values import Literal


@dataclass(frozen=True, slots=True)
class Constant(Command):
    """The caller's tensor becomes the value `id`."""

    verb = "constant"
    id: Id
    value: Tensor | Literal


@dataclass(frozen=True, slots=True)
class MakeVariable(Command):
    """A variable `id` with an initial value. `name` is a label for people."""

    verb = "variable"
    id: Id
    value: Input
    trainable: bool = True
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Assign(Command):
    """Gives a variable its next version; shape and dtype stay. `mode` is set, add or sub.

    With `indices` a part of it is changed, and only that travels: scatter_update, _add, _sub, _mul, _div, _min, _max
    (rows), scatter_nd_update, _add, _sub, _min, _max (places), slice. See `teletape_engine.ops.assign`.
    """

    verb = "assign"
    step = True
    variable: Id
    value: Input
    mode: str = "set"
    indices: Input | None = None


@dataclass(frozen=True, slots=True)
class Call(Command):
    """One op. A variable among the inputs is read. `where` is the caller's line, opaque."""

    verb = "op"
    step = True
    op: str
    inputs: tuple[Input, ...]
    outputs: tuple[Id, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    where: str | None = None


@dataclass(frozen=True, slots=True)
class SlicesComponent(Command):
    """Names a part of a slices value: `part` is values or indices; `output` becomes its id."""

    verb = "slices.component"
    id: Id
    component: str
    output: Id


@dataclass(frozen=True, slots=True)
class MakeSlices(Command):
    """Slices `id` of two values: row `values[k]` belongs at row `indices[k]` of an array of `rows` rows."""

    verb = "slices"
    id: Id
    values: Id
    indices: Id
    rows: int


@dataclass(frozen=True, slots=True)
class Fetch(Command):
    """The value's numbers into the answer: all of them, or at most `elements` as a preview."""

    verb = "fetch"
    id: Id
    elements: int | None = None
