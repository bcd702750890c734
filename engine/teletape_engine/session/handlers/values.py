"""Tensors and variables: create, assign, run an op, fetch."""

from __future__ import annotations

from sys import getsizeof
from typing import Any

import numpy as np

from teletape_engine import commands, object_bytes
from teletape_engine.catalogue.attributes import NO_ATTRS
from teletape_engine.catalogue.binding import check_results
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.commands import Id
from teletape_engine.commands.results import Fetched, SlicesArrays, Specs
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.assign import ROWS
from teletape_engine.recording.values import Literal, Value, Variable
from teletape_engine.session import operations
from teletape_engine.session.handlers.registry import handles
from teletape_engine.session.objects import FEW, RULE
from teletape_engine.session.state import State, read_only


@handles(commands.Constant)
def constant(state: State, command: commands.Constant) -> None:
    """Creates a tensor from the caller's numbers."""
    if isinstance(command.value, Literal):
        value = operations.number(state.current, command.value)
    else:
        value = operations.constant(state.current, command.value)
    state.name(command.id, value)


@handles(commands.MakeVariable)
def variable(state: State, command: commands.MakeVariable) -> None:
    """Creates a variable."""
    if isinstance(command.value, np.ndarray):
        value = operations.constant(state.current, command.value)
    elif isinstance(command.value, Literal) and command.value.spec.shape:
        value = operations.number(state.current, command.value)
    else:
        value = state.value(command.value)
    name = command.name if command.name is not None else str(command.id)
    state.memory.note(object_bytes.VARIABLE + getsizeof(name), "a variable")
    created = operations.variable(state.current, value, trainable=command.trainable, name=name)
    state.variables_made += 1
    created.serial = state.variables_made
    state.name(command.id, created)


@handles(commands.Assign)
def assign(state: State, command: commands.Assign) -> None:
    """Gives a variable its next version."""
    variable = state.find(command.variable, Variable)
    if command.indices is None and command.mode in ROWS and isinstance(command.value, int | str):
        slices = state.find(command.value, (SlicesValue, Value, Variable))
        if isinstance(slices, SlicesValue):  # a sparse gradient has its own indices
            state.current.assign(variable, slices.values, command.mode, slices.indices)
            return
    indices = None if command.indices is None else state.input(command.indices)
    state.current.assign(variable, state.value(command.value, like=variable.spec), command.mode, indices)


@handles(commands.Call)
def call(state: State, command: commands.Call) -> None:
    """Runs one op in the current context; answers the result's spec if only the values determine it."""
    op = CATALOGUE.get(command.op) or CATALOGUE.named(command.op)
    entries = state.entries
    inputs: list[Any] = []
    for operand in command.inputs:
        value: Any = operand
        if operand.__class__ is int or operand.__class__ is str:
            value = entries.get(operand)
        if value.__class__ is Value or value.__class__ is Literal:
            inputs.append(value)
        else:
            inputs.append(state.input(operand))
    if len(command.outputs) != len(op.results):
        check_results(op, len(command.outputs))
    attrs, where = NO_ATTRS, command.where
    if command.attrs or op.schema.attrs:
        attrs = op.attrs(command.attrs)
        if attrs.nbytes:
            state.memory.note(attrs.nbytes, "an op's attributes")
    if where is not None:
        state.memory.note(getsizeof(where), "an op's call site")
    result = state.current.apply(op, inputs, attrs, where)
    if len(inputs) > FEW:
        state.memory.noted += RULE * len(inputs)
    if result.__class__ is tuple:
        for name, each in zip(command.outputs, result, strict=True):
            state.name(name, each)
            if state.numbers:
                state.current.provenance.note_numbers(inputs, each.uid)
        if op.dynamic:
            state.results.append(Specs(state.index, tuple([each.spec for each in result])))
        return
    if state.numbers:
        state.current.provenance.note_numbers(inputs, result.uid)
    (name,) = command.outputs
    if name in entries or name in state.released:
        state.name(name, result)  # which refuses it
    entries[name] = result
    if name.__class__ is str:
        state.memory.noted += getsizeof(name)
    elif name > state.latest:  # type: ignore[operator]  # an integer
        state.latest = name  # type: ignore[assignment]  # the same
    if op.dynamic:
        state.results.append(Specs(state.index, (result.spec,)))


@handles(commands.SlicesComponent)
def component(state: State, command: commands.SlicesComponent) -> None:
    """Names one array of a sparse gradient."""
    slices = state.find(command.id, SlicesValue)
    if command.component not in ("values", "indices"):
        raise InvalidArgumentError(
            f"a sparse gradient has the components values and indices, found {command.component!r}"
        )
    state.name(command.output, slices.values if command.component == "values" else slices.indices)


@handles(commands.Fetch)
def fetch(state: State, command: commands.Fetch) -> None:
    """Answers the numbers."""
    if command.optional and command.id not in state.entries:
        return
    entry = state.find(command.id, (Value, Variable, SlicesValue))
    result = fetched(state, command.id, entry, command.elements)
    if state.fetches is not None and not isinstance(entry, SlicesValue):
        state.fetches.append(entry.value if isinstance(entry, Variable) else entry)
    note_fetch(state, entry, result)
    state.results.append(result)


def fetched(state: State, name: Id, entry: Any, elements: int | None) -> Fetched:
    """The answer with the numbers of what an id names; nothing is noted.

    Args:
        state: Of the session.
        name: The id.
        entry: What it names.
        elements: Of a fetch.
    """
    if isinstance(entry, SlicesValue):
        arrays = SlicesArrays(state.host(entry.values), state.host(entry.indices), entry.dense)
        return Fetched(state.index, name, arrays, entry.dense, True)
    value: Value = entry.value if isinstance(entry, Variable) else entry
    if elements is None or elements >= value.spec.size:
        return Fetched(state.index, name, state.host(value), value.spec, True)
    first = value.array.reshape(-1)[:elements]
    return Fetched(state.index, name, read_only(state.backend.get(first)), value.spec, False)


def note_fetch(state: State, entry: Any, result: Fetched) -> None:
    """Notes, for explanations, that the program has read a tensor or variable."""
    if result.complete and not isinstance(result.array, SlicesArrays):
        value = entry.value if isinstance(entry, Variable) else entry
        state.value_reads.note(value.uid, result.array, None)
