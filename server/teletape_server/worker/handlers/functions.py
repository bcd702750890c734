"""Functions: create, list, get, call, differentiate, delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from teletape_engine.commands import (
    CallFunction,
    Command,
    Constant,
    ContextSwitch,
    Gradient,
    Id,
    Input,
    TapeOpen,
    TapePause,
    TapeWatch,
)
from teletape_engine.commands import outputs as created_ids
from teletape_engine.commands.results import Kinds
from teletape_engine.recording.values import Literal
from teletape_engine.session.session import Session
from teletape_engine.spec import DIFFERENTIABLE, dtype_of
from teletape_server.worker.answers import created_result, deleted_result, derivative_entry, fetched_values, fetches
from teletape_server.worker.bodies import InvalidRequestError, new_id, path_id, read
from teletape_server.worker.execution import command, described, execute
from teletape_server.worker.handlers.ops import run_recorded
from teletape_server.worker.handlers.tapes import CONTEXT
from teletape_server.worker.methods import Request, Result, json_result, method
from teletape_server.worker.models.functions import (
    FunctionCall,
    FunctionGradientQuestion,
    InlineFunction,
    NewFunction,
)


@method("function.create")
def create(session: Session, request: Request) -> Result:
    """Creates a function; checks its names and ops."""
    body = read(request, NewFunction)
    id = body.id or new_id()
    execute(session, request, [definition(id, body)])
    return created_result(session, request, session.describe(id))


def definition(id: Id, body: NewFunction | InlineFunction) -> Command:
    """Returns the command that defines a function under an id."""
    return command("function", id=id, inputs=body.inputs, steps=body.steps, outputs=body.outputs)


@method("function.list")
def list_(session: Session, request: Request) -> Result:
    """Lists all functions."""
    return json_result({"functions": session.listing("function")})


@method("function.get")
def get(session: Session, request: Request) -> Result:
    """Returns a function."""
    return json_result(described(session, path_id(request.params["id"]), "functions"))


@method("function.call")
def call(session: Session, request: Request) -> Result:
    """Calls a function; a tape records its ops."""
    body = read(request, FunctionCall)
    function = path_id(request.params["id"])
    count = len(described(session, function, "functions")["outputs"])
    outputs: list[Id] = [new_id() for _ in range(count)] if body.outputs is None else list(body.outputs)
    if len(outputs) != count:
        raise InvalidRequestError(f"outputs: function {function!r} has {count}, found {len(outputs)} ids")
    return run_recorded(
        session,
        request,
        [CallFunction(function, tuple(body.inputs), tuple(outputs))],
        outputs,
        tape=body.tape,
        fetch=outputs if body.fetch is None else body.fetch,
    )


@method("function.delete")
def delete(session: Session, request: Request) -> Result:
    """Releases a function."""
    return deleted_result(session, request, "functions")


# ------------------------------------------------------------------------------------------------------------- gradient
class _Differentiation(NamedTuple):
    """A function to differentiate.

    Attributes:
        function: Its id.
        constants: By name of an input: the command that gives its number or tensor a temporary id.
        inputs: By name: ids, or numbers without a gradient.
        outputs: By name: temporary ids of its results.
        targets: Names of the outputs whose sum is differentiated.
        derivatives: By name of an input: the temporary id of its derivative.
        unconnected: none or zero.
    """

    function: Id
    constants: dict[str, Constant]
    inputs: dict[str, Input]
    outputs: dict[str, str]
    targets: Sequence[str]
    derivatives: dict[str, str]
    unconnected: str


@method("function.gradient")
def gradient(session: Session, request: Request) -> Result:
    """Returns a function's outputs and the derivatives of their sum; releases everything that it created."""
    body = read(request, FunctionGradientQuestion)
    function = path_id(request.params["id"])
    facts = described(session, function, "functions")
    names = facts["inputs"]
    if len(body.inputs) != len(names):
        raise InvalidRequestError(
            f"inputs: function {function!r} takes {len(names)} ({', '.join(names)}), found {len(body.inputs)}"
        )
    constants = {
        name: Constant(new_id(), value)
        for name, value in zip(names, body.inputs, strict=True)
        if _needs_id(value, is_source=body.sources is None or name in body.sources)
    }
    inputs = dict(zip(names, body.inputs, strict=True)) | {name: constant.id for name, constant in constants.items()}
    differentiation = _Differentiation(
        function,
        constants,
        inputs,
        outputs={name: new_id() for name in facts["outputs"]},
        targets=_chosen(facts["outputs"], body.targets, "targets"),
        derivatives={name: new_id() for name in _sources(session, inputs, constants, body.sources)},
        unconnected=body.unconnected,
    )
    answer = _differentiate(session, request, differentiation)
    bytes_in_use = session.bytes_in_use()
    return json_result(answer | {"bytes_in_use": bytes_in_use}, bytes_in_use=bytes_in_use)


def _needs_id(value: Input, *, is_source: bool) -> bool:
    """Returns whether an input needs an id to be differentiated by: a tensor, or a fraction among the sources."""
    return isinstance(value, np.ndarray) or (isinstance(value, Literal) and is_source and type(value.array) is float)


def _sources(
    session: Session, inputs: dict[str, Input], constants: dict[str, Constant], chosen: Sequence[str] | None
) -> Sequence[str]:
    """Returns the names of the inputs to differentiate by; without a choice all that can have a gradient.

    Raises:
        InvalidRequestError: A chosen name is unknown, or its input is an integer.
    """
    if chosen is None:
        values = inputs | {name: constant.value for name, constant in constants.items()}
        return [name for name, value in values.items() if _has_gradient(session, value)]
    sources = _chosen(list(inputs), chosen, "sources")
    integers = [name for name in sources if isinstance(inputs[name], Literal)]
    if integers:
        raise InvalidRequestError(f"sources: {', '.join(integers)} is an integer here, which has no gradient")
    return sources


def _has_gradient(session: Session, value: Any) -> bool:
    if isinstance(value, Literal):
        return type(value.array) is float
    if isinstance(value, np.ndarray):
        return value.dtype in DIFFERENTIABLE
    dtype = session.describe(value).get("dtype")
    return dtype is not None and dtype_of(dtype) in DIFFERENTIABLE


def _chosen(names: Sequence[str], chosen: Sequence[str] | None, field: str) -> Sequence[str]:
    """Returns the chosen names without repetitions; without a choice all.

    Raises:
        InvalidRequestError: A name is unknown.
    """
    unknown = [name for name in chosen or () if name not in names]
    if unknown:
        raise InvalidRequestError(f"{field}: the function has {', '.join(names)}, not {', '.join(unknown)}")
    return names if chosen is None else list(dict.fromkeys(chosen))


def _differentiate(session: Session, request: Request, call: _Differentiation) -> dict[str, Any]:
    """Runs a function on a tape, and returns its outputs and derivatives as JSON; all ids are temporary."""
    sources = tuple([call.inputs[name] for name in call.derivatives])
    targets = tuple([call.outputs[name] for name in call.targets])
    tape = new_id()
    commands: list[Command] = [
        *call.constants.values(),
        ContextSwitch(CONTEXT),
        TapeOpen(tape),
        TapeWatch(tape, sources),  # type: ignore[arg-type]  # sources are no numbers
        CallFunction(call.function, tuple(call.inputs.values()), tuple(call.outputs.values())),
        TapePause(tape),
        Gradient(tape, targets, sources, tuple(call.derivatives.values()), unconnected=call.unconnected),  # type: ignore[arg-type]
        *fetches(request, call.outputs.values()),
        *fetches(request, call.derivatives.values(), optional=True),
    ]
    temporaries = [id for command in commands for id in created_ids(command)]
    answer = execute(session, request, commands, temporaries=temporaries, rollback=True)
    kinds = next(result for result in answer.results if isinstance(result, Kinds))
    values = fetched_values(request, answer)
    derivatives = [
        derivative_entry(kinds, position, name, values.get(id))
        for position, (name, id) in enumerate(call.derivatives.items())
    ]
    return {"values": {name: values[id] for name, id in call.outputs.items()}, "derivatives": derivatives}
