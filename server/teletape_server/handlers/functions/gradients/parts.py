"""Parts of gradients: the largest elements, some rows, or fewer bits. What is not answered may stay as error feedback.

The remainder is a variable of the session for each source. The next gradient is answered with it, so that over many
requests everything is answered once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from teletape_engine.commands import Assign, Call, Command, Constant, Gradient, Id, MakeVariable
from teletape_engine.session.session import Session
from teletape_engine.spec import Spec, dtype_of
from teletape_server.handlers.answers import fetched_values
from teletape_server.handlers.bodies import InvalidRequestError, new_id, path_id
from teletape_server.handlers.functions.bound_calls import bound_call, has_variable, spec_of
from teletape_server.handlers.functions.question_commands import (
    check_length,
    chosen_outputs,
    chosen_targets,
    question_batch,
    recorded,
    run_question,
)
from teletape_server.handlers.methods import Request, Result, json_result


def ask_part(session: Session, request: Request, body: Any, *, fetches_all: bool) -> Result:
    """Answers a part of each gradient, and keeps the remainders if they have a name.

    Args:
        session: The session.
        request: The request.
        body: A question for gradients, with `part`.
        fetches_all: Whether all outputs are returned if none is chosen.
    """
    for field in ("map", "per_example", "outputs", "numeric"):
        if getattr(body, field) not in (None, False):
            raise InvalidRequestError(f"{field}: a part is of a single gradient, and is not kept: leave {field} out")
    call = bound_call(session, path_id(request.params["id"]), body.inputs, body.sources)
    targets = chosen_targets(call.function, list(call.outputs), body.targets)
    fetched = chosen_outputs(call, body.fetch, all_of_them=fetches_all)
    check_length("output_gradients", body, "target", targets)
    typed = session.typed_inputs(call.function, call.inputs)
    specs = [spec_of(session, typed[source.number]) for source in call.sources]
    gradients = [new_id() for _ in call.sources]
    tape, weights = new_id(), body.output_gradients
    question = Gradient(
        tape,
        tuple([call.outputs[name] for name in targets]),
        call.source_ids,
        tuple(gradients),
        None if weights is None else tuple(weights),
        unconnected="zero",
    )
    commands = recorded(call, tape, question)
    parts = []
    lasting: list[Id] = []
    feedback: list[Command] = []  # after all that may fail
    for source, spec, gradient in zip(call.sources, specs, gradients, strict=True):
        remainder = None if body.remainder is None else f"{body.remainder}.{source.name}"
        is_there = remainder is not None and has_variable(
            session, remainder, spec, "remainder", "the rest of such a gradient"
        )
        total = gradient
        if remainder is not None and is_there:
            total = new_id()
            commands.append(Call("add", (gradient, remainder), (total,)))
        part = _part(body.part, spec, total, commands)
        if remainder is not None and is_there:
            feedback.append(Assign(remainder, part.rest))
        elif remainder is not None:
            feedback.append(MakeVariable(remainder, part.rest, trainable=False))
            lasting.append(remainder)
        parts.append(part)
    ids = [id for part in parts for id in part.answered.values()]
    read_names = [*[call.outputs[name] for name in fetched], *ids]
    # The id of a remainder that was deleted is one that was in use.
    batch = question_batch(request, [*commands, *feedback], lasting, read_names, replace=True)
    values = fetched_values(request, run_question(session, request, batch))
    derivatives = []
    for source, spec, part in zip(call.sources, specs, parts, strict=True):
        elements = {name: values[id] for name, id in part.answered.items()}
        entry = {"source": source.name, "kind": "dense", "id": None, "value": elements.pop("value", None)}
        derivatives.append(entry | ({"part": elements | {"shape": list(spec.shape)}} if elements else {}))
    bytes_in_use = session.estimated_bytes()
    answer = {
        "values": {name: values[call.outputs[name]] for name in fetched},
        "derivatives": derivatives,
        "bytes_in_use": bytes_in_use,
    }
    return json_result(answer, bytes_in_use=bytes_in_use)


@dataclass(frozen=True)
class _Part:
    """A part of a gradient.

    Attributes:
        answered: The ids of what is answered, by name.
        rest: The id of what is not answered, with the gradient's shape.
    """

    answered: dict[str, Id]
    rest: Id


def _part(chosen: Any, spec: Spec, gradient: Id, commands: list[Command]) -> _Part:
    """Adds the commands that take a part of a gradient.

    Raises:
        InvalidRequestError: A gradient without rows, or with fewer of them.
    """
    rest = new_id()

    def add(op: str, *inputs: Id, **attrs: Any) -> Id:
        id: Id = new_id()
        commands.append(Call(op, inputs, (id,), attrs))
        return id

    if chosen.dtype is not None:
        value = add("cast", gradient, dtype=dtype_of(chosen.dtype))
        commands.append(Call("sub", (gradient, add("cast", value, dtype=spec.dtype)), (rest,)))
        return _Part({"value": value}, rest)
    if chosen.top is not None:
        whole = add("reshape", gradient, shape=(-1,))
        magnitudes, indices = new_id(), new_id()
        top = {"k": min(chosen.top, spec.size)}
        commands.append(Call("top_k", (add("abs", whole),), (magnitudes, indices), top))
        zeros = np.zeros(min(chosen.top, spec.size), spec.dtype)
    else:
        if not spec.shape or any(not 0 <= row < spec.shape[0] for row in chosen.rows):
            raise InvalidRequestError(f"part.rows: a gradient of shape {list(spec.shape)} has no rows {chosen.rows}")
        whole, indices = gradient, new_id()
        commands.append(Constant(indices, np.array(chosen.rows, np.int32)))
        zeros = np.zeros((len(chosen.rows), *spec.shape[1:]), spec.dtype)
    values = add("gather", whole, indices)
    constant = new_id()
    commands.append(Constant(constant, zeros))
    left = add("tensor_scatter_nd_update", whole, add("expand_dims", indices, axis=1), constant)
    commands.append(Call("reshape", (left,), (rest,), {"shape": spec.shape}))
    return _Part({"indices": indices, "values": values}, rest)
