"""How a question about a function is put to a session: the function runs on a tape, and the question follows.

All of it is one batch, of which nothing stays.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final

from teletape_engine.commands import (
    Batch,
    Command,
    ContextSwitch,
    Id,
    OnFailure,
    Repetition,
    TapeOpen,
    TapePause,
    TapeWatch,
)
from teletape_engine.commands import outputs as created_ids
from teletape_engine.commands.results import Answer, Kinds
from teletape_engine.errors import TeletapeError
from teletape_engine.session.session import Session
from teletape_server.handlers.answers import derivative_entry, fetched_values, fetches
from teletape_server.handlers.bodies import InvalidRequestError, new_id, path_id
from teletape_server.handlers.execution import command, error_of, executed
from teletape_server.handlers.functions.bound_calls import BoundCall, bound_call, check_names
from teletape_server.handlers.functions.forms import Question, forms_of, key_of
from teletape_server.handlers.methods import Request, Result, json_result
from teletape_server.handlers.recording import CONTEXT
from teletape_server.handlers.tapes.questions import PARTS, blocks, hessian_outputs, kept_outputs, sparse_entry

_NOT_FIELDS: Final = ("inputs", "targets", "sources", "outputs", "replace", "fetch")  # of a command


def ask(
    session: Session,
    request: Request,
    verb: str,
    body: Any,
    *,
    per_source: str | None = None,
    per_target: str | None = None,
    fetches_all: bool = False,
) -> Result:
    """Runs a function on a tape, and answers one question to it.

    Args:
        session: The session.
        request: The request.
        verb: The command that answers it.
        body: The question.
        per_source: The field that has a member for each source, if there is one.
        per_target: The field that has a member for each target, if there is one.
        fetches_all: Whether all outputs are returned if none is chosen.
    """
    per_each = per_source or per_target
    members = getattr(body, per_each) if per_each else None
    operands = [*_values(body.inputs), *(members or ())]
    forms, key = forms_of(session), _form_key(session, request, verb, body, operands, per_each, fetches_all)
    form = forms.find(key)
    if form is None:
        call = bound_call(session, path_id(request.params["id"]), body.inputs, body.sources)
        question, commands = _question(call, verb, body, per_source, per_target, fetches_all=fetches_all)
        ids_to_fetch = [*[question.outputs[name] for name in question.fetched], *question.ids]
        batch = question_batch(request, commands, question.names, ids_to_fetch, replace=body.replace)
        answer = run_question(session, request, batch)
        if key is not None:
            forms.note(
                key, question, batch, operands, [*_in_order_of(body.inputs, call), *operands[len(call.inputs) :]]
            )
    else:
        question, repetition = form.question, form.repetition(operands)
        try:
            answer = run_question(session, request, repetition)
        except TeletapeError:
            forms.forget(key)
            raise
    values = fetched_values(request, answer)
    [kinds] = [result for result in answer.results if isinstance(result, Kinds)]
    sources, is_hessian = question.sources, verb == "hessian"
    rows = [source for source in sources for _ in sources] if is_hessian else sources
    derivatives = [
        derivative_entry(kinds, position, source, values.get(id), id=name if id in values else None)
        for position, (source, name, id) in enumerate(zip(rows, question.names, question.ids, strict=True))
    ]
    answered = blocks(derivatives, sources) if is_hessian else derivatives
    is_known = form is not None  # then it has no outputs of the caller's
    return question_result(
        session, question.outputs, question.fetched, values, nothing_stays=is_known, derivatives=answered
    )


def _form_key(
    session: Session,
    request: Request,
    verb: str,
    body: Any,
    operands: Sequence[Any],
    per_each: str | None,
    fetches_all: bool,
) -> Hashable | None:
    """Returns what two questions of one form have in common; None: what it makes stays under ids of the caller's."""
    if body.outputs is not None or body.replace:
        return None
    fields = [
        tuple(value) if isinstance(value, list) else value for name, value in body if name not in ("inputs", per_each)
    ]
    inputs = tuple(body.inputs) if isinstance(body.inputs, Mapping) else len(body.inputs)
    has_members = per_each is not None and getattr(body, per_each) is not None  # an empty list is refused
    parts = (verb, fetches_all, request.params["full"], request.params["accept"], inputs, has_members, *fields)
    return key_of(session, *parts, function=path_id(request.params["id"]), operands=operands)


def _values(inputs: Iterable[Any] | Mapping[str, Any]) -> Iterable[Any]:
    """Returns a function's inputs as the caller has them, by name or not."""
    return inputs.values() if isinstance(inputs, Mapping) else inputs


def _in_order_of(inputs: Sequence[Any] | Mapping[str, Any], call: BoundCall) -> Sequence[Any]:
    """Returns the inputs of a call in the order in which the caller has them."""
    if not isinstance(inputs, Mapping):
        return call.inputs
    by_name = dict(zip(call.input_names, call.inputs, strict=True))
    return [by_name[name] for name in inputs]


def _question(
    call: BoundCall,
    verb: str,
    body: Any,
    per_source: str | None,
    per_target: str | None,
    *,
    fetches_all: bool,
) -> tuple[Question, list[Command]]:
    """Returns what a question asks for, and its commands; see `ask`."""
    targets = chosen_targets(call, body.targets, is_single=verb == "jacobian")
    fetched = chosen_outputs(call, body.fetch, all_of_them=fetches_all)
    sources = [source.name for source in call.sources]
    check_length(per_source, body, "source", sources)
    check_length(per_target, body, "target", targets)
    is_hessian = verb == "hessian"
    names = hessian_outputs(body.outputs, sources) if is_hessian else kept_outputs(body.outputs, "source", len(sources))
    ids = [name or new_id() for name in names]
    return Question(sources, fetched, call.outputs, names, ids), _commands(call, verb, body, targets, ids)


def _commands(call: BoundCall, verb: str, body: Any, targets: Sequence[str], ids: Sequence[Id]) -> list[Command]:
    """Returns the commands that run a call on a tape, and then compute derivatives of some outputs by its sources."""
    fields = {name: getattr(body, name) for name in type(body).model_fields if name not in _NOT_FIELDS}
    tape = new_id()
    derivative = command(
        verb,
        tape=tape,
        targets=[call.outputs[name] for name in targets],
        sources=list(call.source_ids),
        outputs=ids,
        **fields,
    )
    return recorded(call, tape, derivative)


def ask_sparse(session: Session, request: Request, verb: str, body: Any) -> Result:
    """Runs a function on a tape, and answers a question for a sparse derivative."""
    call = bound_call(session, path_id(request.params["id"]), body.inputs, body.sources)
    targets = chosen_targets(call, body.targets, is_single=verb == "sparse_jacobian")
    fetched = chosen_outputs(call, body.fetch)
    if len(call.sources) != 1:
        inputs = ", ".join([source.name for source in call.sources])
        raise InvalidRequestError(f"sources: a sparse derivative has one, and the inputs of floats are {inputs}")
    names = kept_outputs(body.outputs, "part", len(PARTS["coo"]))
    ids = [name or new_id() for name in names]
    ids_to_fetch = [*[call.outputs[name] for name in fetched], *ids]
    commands = _commands(call, verb, body, targets, ids)
    batch = question_batch(request, commands, names, ids_to_fetch, replace=body.replace)
    answer = run_question(session, request, batch)
    values = fetched_values(request, answer)
    [source] = call.sources
    derivative = sparse_entry(answer, source.name, names, ids, values)
    return question_result(session, call.outputs, fetched, values, derivative=derivative)


def chosen_targets(call: BoundCall, chosen: Sequence[str] | None, *, is_single: bool = False) -> Sequence[str]:
    """Returns the names of the outputs to differentiate."""
    outputs = list(call.outputs)
    if chosen is None:
        if is_single and len(outputs) != 1:
            raise InvalidRequestError(
                f"targets: function {call.function!r} has the outputs {', '.join(outputs)}: name the one to "
                "differentiate"
            )
        return outputs
    check_names(call.function, outputs, chosen, "targets", outputs=True)
    return list(dict.fromkeys(chosen))


def chosen_outputs(call: BoundCall, chosen: Sequence[str] | None, *, all_of_them: bool = False) -> Sequence[str]:
    """Returns the names of the outputs to return."""
    if chosen is None:
        return list(call.outputs) if all_of_them else []
    check_names(call.function, list(call.outputs), chosen, "fetch", outputs=True)
    return list(dict.fromkeys(chosen))


def check_length(field: str | None, body: Any, kind: str, names: Sequence[str]) -> None:
    """Checks that a field has a member for each source or target."""
    members = None if field is None else getattr(body, field)
    if members is not None and len(members) != len(names):
        raise InvalidRequestError(
            f"{field}: one for each of the {len(names)} {kind}s ({', '.join(names)}); found {len(members)}"
        )


def recorded(call: BoundCall, tape: Id, question: Command) -> list[Command]:
    """Returns the commands that run a call on a new tape, and then a question on that tape."""
    return [
        ContextSwitch(CONTEXT),
        *call.constants,
        TapeOpen(tape),
        TapeWatch(tape, _watched(call)),
        *call.copies,
        call.command,
        TapePause(tape),
        question,
    ]


def _watched(call: BoundCall) -> tuple[Id, ...]:
    """Returns the ids that a tape watches: those of the sources, and those that sources are copies of."""
    copied: list[Any] = [id for copy in call.copies for id in copy.inputs]
    copies = {id for copy in call.copies for id in created_ids(copy)}
    return tuple(dict.fromkeys([*copied, *[id for id in call.source_ids if id not in copies]]))


def question_batch(
    request: Request,
    commands: Sequence[Command],
    names: Iterable[str | None],
    fetched: Iterable[Id],
    *,
    replace: bool = False,
) -> Batch:
    """Returns a question's commands as one batch; only the ids in `names` stay."""
    created = [id for command in commands for id in created_ids(command)]
    lasting = set(names)
    return Batch(
        (*commands, *fetches(request, fetched, optional=True)),
        temporaries=tuple([id for id in created if id not in lasting]),
        on_failure=OnFailure.ROLLBACK,
        replace=replace,
    )


def run_question(session: Session, request: Request, batch: Batch | Repetition) -> Answer:
    """Runs a question's commands.

    Raises:
        TeletapeError: One of them failed.
    """
    answer = executed(session, request, batch)
    if answer.failure is not None:
        whole = batch.batch() if isinstance(batch, Repetition) else batch
        raise error_of(session, answer.failure, whole.commands)
    return answer


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
