"""Values and variables: put, make, assign, run an op, name a part, fetch."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape_engine import commands
from teletape_engine.catalogue.attributes import NO_ATTRS
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.commands import Id
from teletape_engine.commands.results import Fetched, SlicesArrays, Specs
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.assign import ROWS
from teletape_engine.recording.values import Literal, Value, Variable, new_uid
from teletape_engine.session.handlers.registry import handles
from teletape_engine.session.state import State, read_only


@handles(commands.Constant)
def put(state: State, command: commands.Constant) -> None:
    """The tensor or number becomes a value."""
    value = state.value(command.value)
    state.name(command.id, value)
    if not isinstance(command.value, Literal):
        state.current.arrived(value, command.value)
    else:
        state.current.took_numbers((command.value,), value.uid)


@handles(commands.MakeVariable)
def variable(state: State, command: commands.MakeVariable) -> None:
    """A variable that begins with that value."""
    value = state.value(command.value)
    name = command.name if command.name is not None else str(command.id)
    made = Variable(value.alias(new_uid()), trainable=command.trainable, name=name)
    state.name(command.id, made)
    if isinstance(command.value, np.ndarray):
        state.current.arrived(value, command.value)
    state.current.assigned(made, value.uid, "set")


@handles(commands.Assign)
def assign(state: State, command: commands.Assign) -> None:
    """The variable's next version; its shape and dtype stay."""
    variable = state.find(command.variable, Variable)
    if command.indices is None and command.mode in ROWS and isinstance(command.value, int | str):
        slices = state.find(command.value, (SlicesValue, Value, Variable))
        if isinstance(slices, SlicesValue):  # a sparse gradient says itself where its rows belong
            state.current.assign(variable, slices.values, command.mode, slices.indices)
            return
    indices = None if command.indices is None else state.value(command.indices)
    state.current.assign(variable, state.value(command.value, like=variable.spec), command.mode, indices)


@handles(commands.Call)
def call(state: State, command: commands.Call) -> None:
    """Runs one op in the current context; where only values tell the result's spec, answers it."""
    op = CATALOGUE.get(command.op) or CATALOGUE.named(command.op)
    names = state.entries
    inputs: list[Any] = []
    for one in command.inputs:
        thing: Any = one
        if one.__class__ is int:
            thing = names.get(one)
        if thing.__class__ is Value or thing.__class__ is Literal:
            inputs.append(thing)
        else:
            inputs.append(state.input(one))
    if len(command.outputs) != 1:
        raise InvalidArgumentError(f"op {op.name!r} has 1 output, found {len(command.outputs)} ids")
    attrs = op.attrs(command.attrs) if command.attrs or op.schema.attrs else NO_ATTRS
    result = state.current.apply(op, inputs, attrs, command.where)
    if state.numbers:
        state.current.took_numbers(inputs, result.uid)
    (name,) = command.outputs
    if name.__class__ is int and name not in names and name not in state.released:
        names[name] = result
        if name > state.latest:
            state.latest = name
    else:
        state.name(name, result)
    if op.dynamic:
        state.results.append(Specs(state.index, (result.spec,)))


@handles(commands.SlicesComponent)
def component(state: State, command: commands.SlicesComponent) -> None:
    """One array of slices under an id of its own."""
    slices = state.find(command.id, SlicesValue)
    if command.component not in ("values", "indices"):
        raise InvalidArgumentError(f"slices have the parts values and indices, found {command.component!r}")
    state.name(command.output, slices.values if command.component == "values" else slices.indices)


@handles(commands.Fetch)
def fetch(state: State, command: commands.Fetch) -> None:
    """Answers the numbers."""
    if command.optional and not state.knows(command.id):
        return
    entry = state.find(command.id, (Value, Variable, SlicesValue))
    state.results.append(_fetched(state, command.id, entry, command.elements))


def _fetched(state: State, name: Id, thing: Any, elements: int | None) -> Fetched:
    if isinstance(thing, SlicesValue):
        parts = SlicesArrays(state.host(thing.values), state.host(thing.indices), thing.dense)
        return Fetched(state.index, name, parts, thing.dense, True)
    value: Value = thing.value if isinstance(thing, Variable) else thing
    if elements is None or elements >= value.spec.size:
        array = state.host(value)
        state.departures.note(value.uid, array, None)
        return Fetched(state.index, name, array, value.spec, True)
    head = value.array.reshape(-1)[:elements]
    return Fetched(state.index, name, read_only(state.backend.get(head)), value.spec, False)
