"""Values and variables: put, make, assign, run an op, name a part, fetch."""

from __future__ import annotations

from typing import Any

from teletape_engine import commands
from teletape_engine.answers import Fetched, Made, SlicesArrays
from teletape_engine.attrs import NO_ATTRS
from teletape_engine.commands import Id
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.executor import Value
from teletape_engine.graph import Literal, Variable, new_uid
from teletape_engine.op import CATALOGUE
from teletape_engine.state import State, read_only
from teletape_engine.tape import SlicesValue
from teletape_engine.verbs.registry import does


@does(commands.Put)
def put(state: State, command: commands.Put) -> None:
    """The tensor or number becomes a value."""
    state.name(command.id, state.value(command.value))


@does(commands.MakeVariable)
def variable(state: State, command: commands.MakeVariable) -> None:
    """A variable that begins with that value."""
    value = state.value(command.value)
    name = command.name if command.name is not None else str(command.id)
    state.name(command.id, Variable(value.alias(new_uid()), trainable=command.trainable, name=name))


@does(commands.Assign)
def assign(state: State, command: commands.Assign) -> None:
    """The variable's next version; its shape and dtype stay."""
    variable = state.find(command.variable, Variable)
    value = state.value(command.value, like=variable.spec)
    if value.spec is not variable.spec:
        raise InvalidArgumentError(
            f"variable {variable.name!r} holds {variable.spec!r}, found {value.spec!r}: an assignment keeps both "
            "shape and dtype"
        )
    if command.mode == "set":
        variable.assign(value.alias(new_uid()))
    elif command.mode in ("add", "sub"):
        # Outside every tape, as in TensorFlow: an update is no step of the function that is differentiated.
        bound = CATALOGUE[command.mode].call((variable.spec, value.spec))
        variable.assign(state.current.run(bound, (variable.value, value)))
    else:
        raise InvalidArgumentError(f"assign: unknown mode {command.mode!r}; it must be set, add or sub")


@does(commands.Call)
def call(state: State, command: commands.Call) -> None:
    """Runs one op in the current context; where only values tell the result's spec, answers it."""
    op = CATALOGUE.get(command.op) or CATALOGUE.named(command.op)
    names = state.names
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
    (name,) = command.outputs
    if name.__class__ is int and name not in names and name not in state.released:
        names[name] = result
        if name > state.latest:
            state.latest = name
    else:
        state.name(name, result)
    if op.dynamic:
        state.results.append(Made(state.index, (result.spec,)))


@does(commands.Part)
def part(state: State, command: commands.Part) -> None:
    """One array of slices under an id of its own."""
    slices = state.find(command.id, SlicesValue)
    if command.part not in ("values", "indices"):
        raise InvalidArgumentError(f"slices have the parts values and indices, found {command.part!r}")
    state.name(command.output, slices.values if command.part == "values" else slices.indices)


@does(commands.Fetch)
def fetch(state: State, command: commands.Fetch) -> None:
    """Answers the numbers."""
    thing = state.find(command.id, (Value, Variable, SlicesValue))
    state.results.append(_fetched(state, command.id, thing, command.elements))


def _fetched(state: State, name: Id, thing: Any, elements: int | None) -> Fetched:
    if isinstance(thing, SlicesValue):
        parts = SlicesArrays(state.host(thing.values), state.host(thing.indices), thing.dense)
        return Fetched(state.index, name, parts, thing.dense, True)
    value: Value = thing.value if isinstance(thing, Variable) else thing
    if elements is None or elements >= value.spec.size:
        return Fetched(state.index, name, state.host(value), value.spec, True)
    head = value.array.reshape(-1)[:elements]
    return Fetched(state.index, name, read_only(state.backend.get(head)), value.spec, False)
