"""How a question about a function is put to a session: the function runs on a tape, and the question follows.

All of it is one batch, of which nothing stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from teletape_engine.commands import Id
from teletape_engine.commands.results import Answer, Kinds
from teletape_engine.explain.explanation import Explanation
from teletape_engine.explain.reasons import Reason
from teletape_engine.session.session import Session
from teletape_server.handlers.answers import derivative_entry, fetched_values
from teletape_server.handlers.bodies import InvalidRequestError, new_id, path_id
from teletape_server.handlers.execution import command
from teletape_server.handlers.forms.skeletons import Place
from teletape_server.handlers.functions.bound_calls import BoundCall, bound_call
from teletape_server.handlers.functions.question_commands import (
    chosen_outputs,
    chosen_targets,
    kinds_of,
    question_batch,
    recorded,
    run_question,
)
from teletape_server.handlers.functions.question_parts import MEMBERS, NOT_FIELDS, Parts, Question, flat, members_of
from teletape_server.handlers.methods import Request, Result, json_result
from teletape_server.handlers.tapes.questions import PARTS, blocks, kept_outputs, sparse_entry

#: Why a target that has a tangent has no second one.
_NO_SECOND: Final = Explanation(Reason.UNCONNECTED, "the first derivative does not depend on the sources").brief()


def ask(
    session: Session,
    request: Request,
    verb: str,
    body: Any,
    *,
    fetches_all: bool = False,
    answers_derivatives: bool = True,
) -> Result:
    """Runs a function on a tape, or in forward mode, and answers one question to it.

    Args:
        session: The session.
        request: The request.
        verb: The command that answers it.
        body: The question.
        fetches_all: Whether all outputs are returned if none is chosen.
        answers_derivatives: Whether the answer has their elements; else they stay under the ids in `outputs` alone.
    """
    function = path_id(request.params["id"])
    parts = Parts(session, function, verb, body, fetches_all)
    if len(parts.chunks) > 1:
        part, answer, kinds = parts.run_all(request)
        return _answer(session, request, answer, verb, part.question, kinds)
    part = parts.part(0)
    question = part.question
    ids_to_fetch = [question.outputs[name] for name in question.fetched]
    ids_to_fetch += question.ids if answers_derivatives else []
    batch = question_batch(request, part.commands, question.names, ids_to_fetch, replace=body.replace)
    answer = run_question(session, request, batch)
    if verb == "jvp":
        question.why.update(_reasons(session, part.call, question, kinds_of(answer)))
    if request.noting is not None and body.outputs is None and not body.replace:
        inputs = [*_values(body.inputs), *flat(members_of(body))]
        typed = [*_in_order_of(body.inputs, part.call), *part.members]
        answering = partial(_answer, verb=verb, question=question, nothing_stays=True)
        request.noting.note(session, batch, inputs, typed, answering, function)
    return _answer(session, request, answer, verb, question)


def places(fields: Any) -> list[Place]:
    """Returns the places of inputs in the fields of a question's body."""
    if not isinstance(fields, dict):
        return []
    lists = [fields.get(name) for name in ("inputs", *MEMBERS)]
    return [
        (container, key)
        for container in lists
        if isinstance(container, dict | list)
        for key in (container if isinstance(container, dict) else range(len(container)))
    ]


def _answer(
    session: Session,
    request: Request,
    answer: Answer,
    verb: str,
    question: Question,
    kinds: Kinds | None = None,
    *,
    nothing_stays: bool = False,
) -> Result:
    """Returns the answer to a question whose commands have run; `kinds`: those of the parts, if there were several."""
    kinds = kinds or kinds_of(answer)
    values = fetched_values(request, answer)
    sources, is_hessian = question.sources, verb == "hessian"
    rows = [source for source in sources for _ in sources] if is_hessian else sources
    derivatives = [
        derivative_entry(kinds, position, source, values.get(id), id=name if id in values else None)
        for position, (source, name, id) in enumerate(zip(rows, question.names, question.ids, strict=True))
    ]
    if verb == "jvp":
        derivatives = [
            {
                "name": name,
                **{field: value for field, value in derivative.items() if field != "source"},
                **question.why.get(name, {}),
            }
            for name, derivative in zip(rows, derivatives, strict=True)
        ]
    more: dict[str, Any] = {"derivatives": blocks(derivatives, sources) if is_hessian else derivatives}
    if question.map is not None:
        more["map"] = question.map
    return question_result(session, question.outputs, question.fetched, values, nothing_stays=nothing_stays, **more)


def _reasons(session: Session, call: BoundCall, question: Question, kinds: Kinds) -> dict[str, Any]:
    """Returns why targets have no tangent, as members of their entries: their first source without a gradient says."""
    reasons: dict[str, Any] = {}
    inputs = call.inputs if call.entry is None else call.entry
    for target, kind in zip(question.sources, kinds.kinds, strict=True):
        if kind == "none":
            whys = session.explain_call(call.function, inputs, [target], [source.number for source in call.sources])
            why = next((why for why in whys if why is not None), _NO_SECOND)
            reasons |= {target: {"why": why}}
    return reasons


def _values(inputs: Iterable[Any] | Mapping[str, Any]) -> Iterable[Any]:
    """Returns a function's inputs as the caller has them, by name or not."""
    return inputs.values() if isinstance(inputs, Mapping) else inputs


def _in_order_of(inputs: Sequence[Any] | Mapping[str, Any], call: BoundCall) -> Sequence[Any]:
    """Returns the inputs of a call in the order in which the caller has them."""
    if not isinstance(inputs, Mapping):
        return call.inputs
    by_name = dict(zip(call.input_names, call.inputs, strict=True))
    return [by_name[name] for name in inputs]


def ask_sparse(session: Session, request: Request, verb: str, body: Any) -> Result:
    """Runs a function on a tape, and answers a question for a sparse derivative."""
    call = bound_call(session, path_id(request.params["id"]), body.inputs, body.sources)
    targets = chosen_targets(call.function, list(call.outputs), body.targets, is_single=verb == "sparse_jacobian")
    fetched = chosen_outputs(call, body.fetch)
    if len(call.sources) != 1:
        inputs = ", ".join([source.name for source in call.sources])
        raise InvalidRequestError(f"sources: a sparse derivative has one, and the inputs of floats are {inputs}")
    names = kept_outputs(body.outputs, "part", len(PARTS["coo"]))
    ids = [name or new_id() for name in names]
    ids_to_fetch = [*[call.outputs[name] for name in fetched], *ids]
    fields = {name: getattr(body, name) for name in type(body).model_fields if name not in NOT_FIELDS}
    tape, results = new_id(), [call.outputs[name] for name in targets]
    derivative = command(verb, tape=tape, targets=results, sources=list(call.source_ids), outputs=ids, **fields)
    batch = question_batch(request, recorded(call, tape, derivative), names, ids_to_fetch, replace=body.replace)
    answer = run_question(session, request, batch)
    values = fetched_values(request, answer)
    [source] = call.sources
    entry = sparse_entry(answer, source.name, names, ids, values)
    return question_result(session, call.outputs, fetched, values, derivative=entry)


def question_result(
    session: Session,
    outputs: Mapping[str, Id],
    fetched: Sequence[str],
    values: dict[Id, Any],
    *,
    nothing_stays: bool = False,
    **derivatives: Any,
) -> Result:
    """Returns the answer to a question."""
    bytes_in_use = session.estimated_bytes(nothing_stays=nothing_stays)
    body = {
        "values": {name: values[outputs[name]] for name in fetched},
        **derivatives,
        "bytes_in_use": bytes_in_use,
    }
    return json_result(body, bytes_in_use=bytes_in_use)
