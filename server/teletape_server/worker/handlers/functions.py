"""Functions: programs saved under an id, called with values and variables, and differentiated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from teletape_engine import commands
from teletape_engine.commands import Command, Id
from teletape_engine.commands.results import Kinds
from teletape_engine.recording.values import Literal
from teletape_engine.session.session import Session
from teletape_engine.spec import DIFFERENTIABLE, dtype_of
from teletape_server.worker.bodies import (
    InvalidRequestError,
    command_of,
    described,
    execute,
    facts_result,
    ids_of,
    new_id,
    path_id,
    read,
    release,
    shown,
)
from teletape_server.worker.handlers.ops import call_json, recorded
from teletape_server.worker.handlers.tapes import CONTEXT
from teletape_server.worker.methods import Request, Result, json_result, method
from teletape_server.worker.models import functions

_HERE = ("function",), "functions"


@method("function.create")
def define(session: Session, request: Request) -> Result:
    """A new function, its names and ops checked."""
    given = read(request, functions.NewFunction)
    name = given.id or new_id()
    calls = [call_json(one) if one.do == "op" else one.model_dump(exclude_unset=True) for one in given.steps]
    command = command_of("function", id=name, inputs=given.inputs, steps=calls, outputs=given.outputs)
    execute(session, request, [command])
    return facts_result(session, request, session.describe(name), collection=request.params["collection"])


@method("function.list")
def listing(session: Session, request: Request) -> Result:
    """All functions."""
    return json_result({"functions": session.listing("function")})


@method("function.get")
def get(session: Session, request: Request) -> Result:
    """One function."""
    return json_result(described(session, path_id(request.params["id"]), *_HERE))


@method("function.call")
def call(session: Session, request: Request) -> Result:
    """Runs the function on values; a tape records its ops as if they stood there."""
    given = read(request, functions.FunctionCall)
    name = path_id(request.params["id"])
    facts = described(session, name, *_HERE)
    outputs = given.outputs if given.outputs is not None else [new_id() for _ in facts["outputs"]]
    if len(outputs) != len(facts["outputs"]):
        raise InvalidRequestError(f"outputs: function {name!r} has {len(facts['outputs'])}, found {len(outputs)} ids")
    return recorded(
        session,
        request,
        [_call(name, given.inputs, outputs)],
        outputs,
        tape=None if given.tape is None else ids_of([given.tape])[0],
        fetch=outputs if given.fetch is None else ids_of(given.fetch),
    )


def _call(name: Id, inputs: Sequence[Any], outputs: Sequence[Id]) -> Command:
    return command_of("call", function={"id": name} if isinstance(name, int) else name, inputs=inputs, outputs=outputs)


@method("function.gradient")
def gradient(session: Session, request: Request) -> Result:
    """The function's results and the derivatives of their sum; what was made for that is released."""
    given = read(request, functions.FunctionGradient)
    name = path_id(request.params["id"])
    facts = described(session, name, *_HERE)
    if len(given.inputs) != len(facts["inputs"]):
        raise InvalidRequestError(
            f"inputs: function {name!r} takes {len(facts['inputs'])} ({', '.join(facts['inputs'])}), found "
            f"{len(given.inputs)}"
        )
    temporary: list[Id] = []

    def made() -> str:
        temporary.append(new_id())
        return str(temporary[-1])

    call = _call(name, given.inputs, [])
    assert isinstance(call, commands.CallFunction)
    asked = dict.fromkeys(facts["inputs"] if given.sources is None else given.sources)
    puts = {
        i: commands.Constant(made(), one)
        for i, (one, name) in enumerate(zip(call.inputs, facts["inputs"], strict=True))
        if isinstance(one, np.ndarray) or (isinstance(one, Literal) and name in asked and type(one.array) is float)
    }
    inputs: list[Any] = [puts[i].id if i in puts else one for i, one in enumerate(call.inputs)]
    try:
        execute(session, request, list(puts.values()))
        wanted = _wanted(session, facts["inputs"], inputs, given.sources)
        literal = [one for one in wanted if isinstance(inputs[facts["inputs"].index(one)], Literal)]
        if literal:
            raise InvalidRequestError(f"sources: {', '.join(literal)} is given a whole number, which has no gradient")
        targets = _named(facts["outputs"], given.targets, "targets")
        outputs = {one: made() for one in facts["outputs"]}
        tape, found = made(), {one: made() for one in wanted}
        sources = [inputs[facts["inputs"].index(one)] for one in wanted]
        todo: list[Command] = [
            commands.ContextSwitch(CONTEXT),
            commands.TapeOpen(tape),
            commands.TapeWatch(tape, tuple(sources)),
            commands.CallFunction(name, tuple(inputs), tuple(outputs.values())),
            commands.TapePause(tape),
            commands.Gradient(
                tape,
                tuple([outputs[one] for one in targets]),
                tuple(sources),
                tuple(found.values()),
                unconnected=given.unconnected,
            ),
        ]
        kinds = next(one.kinds for one in execute(session, request, todo).results if isinstance(one, Kinds))
        named = [found[one] for one, how in zip(wanted, kinds, strict=True) if how != "none"]
        values = shown(session, request, [*outputs.values(), *named])
    finally:
        session.take_back(temporary)
    numbers = iter(values)
    results = {one: next(numbers) for one in facts["outputs"]}
    gradients = [
        {"source": one, "kind": how, "id": None, "value": None if how == "none" else next(numbers)}
        for one, how in zip(wanted, kinds, strict=True)
    ]
    used = session.bytes_in_use()
    return json_result({"values": results, "derivatives": gradients, "bytes_in_use": used}, bytes_in_use=used)


def _wanted(
    session: Session, names: Sequence[str], inputs: Sequence[Any], sources: Sequence[str] | None
) -> Sequence[str]:
    """The inputs whose derivatives are asked for."""
    if sources is not None:
        return _named(names, sources, "sources")
    dtypes = [None if isinstance(one, Literal) else session.describe(one).get("dtype") for one in inputs]
    return [name for name, dtype in zip(names, dtypes, strict=True) if dtype and dtype_of(dtype) in DIFFERENTIABLE]


def _named(known: Sequence[str], asked: Sequence[str] | None, field: str) -> Sequence[str]:
    unknown = [one for one in asked or () if one not in known]
    if unknown:
        raise InvalidRequestError(f"{field}: the function has {', '.join(known)}, and no {', '.join(unknown)}")
    return known if asked is None else list(dict.fromkeys(asked))


@method("function.delete")
def end(session: Session, request: Request) -> Result:
    """Ends the function."""
    return release(session, request, *_HERE)
