"""Derivatives of a function at given inputs, explanations, checks: each question is one batch, of which nothing stays.

A tape answers all questions but jvp, which the forward mode answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from teletape_engine.commands import (
    AccumulatorClose,
    AccumulatorOpen,
    CheckGradients,
    Command,
    ContextSwitch,
    Explain,
    Id,
    Jvp,
    TapeOpen,
    TapePause,
    TapeWatch,
)
from teletape_engine.commands import outputs as created_ids
from teletape_engine.commands.results import Answer, Facts, Kinds
from teletape_engine.session.session import Session
from teletape_server.handlers.answers import derivative_entry, fetched_values, fetches
from teletape_server.handlers.bodies import InvalidRequestError, new_id, path_id
from teletape_server.handlers.endpoints import WORK, endpoint
from teletape_server.handlers.execution import command, described, execute
from teletape_server.handlers.functions.bound_calls import BoundCall, bound_call, check_names, in_order
from teletape_server.handlers.methods import Request, Result, json_result
from teletape_server.handlers.recording import CONTEXT
from teletape_server.handlers.tapes.checks import check_report
from teletape_server.handlers.tapes.questions import PARTS, blocks, hessian_outputs, kept_outputs, sparse_entry
from teletape_server.models.explanations import Explanations
from teletape_server.models.functions.function_questions import (
    FunctionCheck,
    FunctionDerivatives,
    FunctionExplainQuestion,
    FunctionGradientQuestion,
    FunctionHessian,
    FunctionHessianQuestion,
    FunctionHvpQuestion,
    FunctionJacobianQuestion,
    FunctionJvpQuestion,
    FunctionSparseDerivative,
    FunctionSparseHessianQuestion,
    FunctionSparseJacobianQuestion,
    FunctionTangents,
    FunctionVjpQuestion,
    ValueAndGradientQuestion,
)
from teletape_server.models.parameters import Elements
from teletape_server.models.tapes.checks import CheckReport

_PROBLEMS: Final = ("no_gradient_registered", *WORK)
#: What the endpoints share that answer with tensors.
_ASKS: Final[dict[str, Any]] = {"problems": (*_PROBLEMS, "id_in_use"), "query": Elements}

_NOT_FIELDS: Final = ("inputs", "targets", "sources", "outputs", "replace", "fetch")  # of a command


@endpoint("POST", "/functions/{function}/gradient", FunctionDerivatives, "Compute a function's gradients", **_ASKS)
def gradient(session: Session, request: Request, body: FunctionGradientQuestion) -> Result:
    """Computes the gradient of the targets' sum with respect to each source, for these inputs.

    This question and those below keep nothing in the session, except the derivatives that `outputs` names and what the
    function's steps assign to variables.
    """
    return _ask(session, request, "gradient", body, per_target="output_gradients")


@endpoint(
    "POST",
    "/functions/{function}/value_and_gradient",
    FunctionDerivatives,
    "Compute a function's outputs and gradients",
    **_ASKS,
)
def value_and_gradient(session: Session, request: Request, body: ValueAndGradientQuestion) -> Result:
    """Computes the outputs, and the gradient of the targets' sum with respect to each source, in one pass."""
    return _ask(session, request, "gradient", body, per_target="output_gradients", fetches_all=True)


@endpoint("POST", "/functions/{function}/jacobian", FunctionDerivatives, "Compute a function's Jacobians", **_ASKS)
def jacobian(session: Session, request: Request, body: FunctionJacobianQuestion) -> Result:
    """Computes the Jacobian of one output with respect to each source, in one batched backward pass."""
    return _ask(session, request, "jacobian", body)


@endpoint("POST", "/functions/{function}/hessian", FunctionHessian, "Compute a function's Hessian", **_ASKS)
def hessian(session: Session, request: Request, body: FunctionHessianQuestion) -> Result:
    """Computes the second derivatives of the targets' sum, a block for each pair of sources."""
    return _ask(session, request, "hessian", body)


@endpoint(
    "POST", "/functions/{function}/hvp", FunctionDerivatives, "Compute a function's Hessian-vector products", **_ASKS
)
def hvp(session: Session, request: Request, body: FunctionHvpQuestion) -> Result:
    """Computes the Hessian of the targets' sum times a vector at the cost of two gradients."""
    return _ask(session, request, "hvp", body, per_source="vectors")


@endpoint(
    "POST",
    "/functions/{function}/sparse_jacobian",
    FunctionSparseDerivative,
    "Compute a function's sparse Jacobian",
    **_ASKS,
)
def sparse_jacobian(session: Session, request: Request, body: FunctionSparseJacobianQuestion) -> Result:
    """Computes the elements of a Jacobian that may differ from zero, as COO or CSR, in few products with vectors."""
    return _ask_sparse(session, request, "sparse_jacobian", body)


@endpoint(
    "POST",
    "/functions/{function}/sparse_hessian",
    FunctionSparseDerivative,
    "Compute a function's sparse Hessian",
    **_ASKS,
)
def sparse_hessian(session: Session, request: Request, body: FunctionSparseHessianQuestion) -> Result:
    """Computes the second derivatives that may differ from zero, as COO or CSR, in few Hessian-vector products."""
    return _ask_sparse(session, request, "sparse_hessian", body)


@endpoint(
    "POST", "/functions/{function}/vjp", FunctionDerivatives, "Compute a function's vector-Jacobian products", **_ASKS
)
def vjp(session: Session, request: Request, body: FunctionVjpQuestion) -> Result:
    """Computes the output gradients times the Jacobian, with respect to each source, in one backward pass."""
    return _ask(session, request, "gradient", body, per_target="output_gradients")


@endpoint(
    "POST", "/functions/{function}/jvp", FunctionTangents, "Compute a function's Jacobian-vector products", **_ASKS
)
def jvp(session: Session, request: Request, body: FunctionJvpQuestion) -> Result:
    """Computes the derivative of each target along the tangents, in forward mode: in one pass, without a tape."""
    call = bound_call(session, path_id(request.params["id"]), body.inputs, body.sources)
    targets = _targets(call, body.targets)
    fetched = _fetched(call, body.fetch)
    _check_length("tangents", body, "source", [source.name for source in call.sources])
    names = kept_outputs(body.outputs, "target", len(targets))
    ids = [name or new_id() for name in names]
    accumulator = new_id()
    commands = [
        *call.constants,
        ContextSwitch(CONTEXT),
        *call.copies,
        AccumulatorOpen(accumulator, call.source_ids, tuple(body.tangents)),
        call.command,
        AccumulatorClose(accumulator),
        Jvp(accumulator, tuple([call.outputs[name] for name in targets]), tuple(ids), body.unconnected),
    ]
    ids_to_fetch = [*[call.outputs[name] for name in fetched], *ids]
    answer = _execute(session, request, commands, names, ids_to_fetch, replace=body.replace)
    values = fetched_values(request, answer)
    [kinds] = [result.kinds for result in answer.results if isinstance(result, Kinds)]
    tangents: list[dict[str, Any]] = []
    for target, kind, name, id in zip(targets, kinds, names, ids, strict=True):
        why = _why_no_tangent(session, call, target) if kind == "none" else {}
        tangent = {"name": target, "kind": kind, "id": name if id in values else None, "value": values.get(id)}
        tangents.append(tangent | why)
    return _result(session, call, fetched, values, derivatives=tangents)


def _why_no_tangent(session: Session, call: BoundCall, target: str) -> dict[str, Any]:
    """Returns why a target has no tangent, as a member of its entry: its first source without a gradient says so."""
    reasons = session.explain_call(call.function, call.inputs, [target], [source.number for source in call.sources])
    why = next((reason for reason in reasons if reason is not None), None)
    return {} if why is None else {"why": why}


@endpoint("POST", "/functions/{function}/explain", Explanations, "Explain a function's gradients", problems=_PROBLEMS)
def explain(session: Session, request: Request, body: FunctionExplainQuestion) -> Result:
    """Explains why a gradient is null, zero or not finite for these inputs: the reason, the op, and what to do."""
    call = bound_call(session, path_id(request.params["id"]), body.inputs, body.sources, floats=False)
    targets = _targets(call, body.targets)
    tape = new_id()
    question = Explain(tape, tuple([call.outputs[name] for name in targets]), call.source_ids)
    answer = _execute(session, request, _recorded(call, tape, question), (), ()).results[-1]
    assert isinstance(answer, Facts)
    explanations = zip(call.sources, answer.facts["explanations"], strict=True)
    return json_result({"explanations": [{"source": source.name} | facts for source, facts in explanations]})


@endpoint(
    "POST",
    "/functions/{function}/check_gradients",
    CheckReport,
    "Check a function's gradients",
    problems=_PROBLEMS,
    other_path="/functions/{function}/check",
)
def check_gradients(session: Session, request: Request, body: FunctionCheck) -> Result:
    """Compares the gradients with finite differences. The status is 200 in both cases: read `agrees` and `worst`."""
    function = path_id(request.params["id"])
    inputs = in_order(function, described(session, function, "functions"), body.inputs)
    settings = body.settings.model_dump(exclude_none=True)
    return check_report(session, request, CheckGradients(function, tuple(inputs), settings))


# ---------------------------------------------------------------------------------------------------------------- parts
def _ask(
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
    call = bound_call(session, path_id(request.params["id"]), body.inputs, body.sources)
    targets = _targets(call, body.targets, is_single=verb == "jacobian")
    fetched = _fetched(call, body.fetch, all_of_them=fetches_all)
    sources = [source.name for source in call.sources]
    _check_length(per_source, body, "source", sources)
    _check_length(per_target, body, "target", targets)
    is_hessian = verb == "hessian"
    names = hessian_outputs(body.outputs, sources) if is_hessian else kept_outputs(body.outputs, "source", len(sources))
    ids = [name or new_id() for name in names]
    fields = {name: getattr(body, name) for name in type(body).model_fields if name not in _NOT_FIELDS}
    tape = new_id()
    question = command(
        verb,
        tape=tape,
        targets=[call.outputs[name] for name in targets],
        sources=list(call.source_ids),
        outputs=ids,
        **fields,
    )
    commands = _recorded(call, tape, question)
    ids_to_fetch = [*[call.outputs[name] for name in fetched], *ids]
    answer = _execute(session, request, commands, names, ids_to_fetch, replace=body.replace)
    values = fetched_values(request, answer)
    [kinds] = [result for result in answer.results if isinstance(result, Kinds)]
    rows = [source for source in sources for _ in sources] if is_hessian else sources
    derivatives = [
        derivative_entry(kinds, position, source, values.get(id), id=name if id in values else None)
        for position, (source, name, id) in enumerate(zip(rows, names, ids, strict=True))
    ]
    answered = blocks(derivatives, sources) if is_hessian else derivatives
    return _result(session, call, fetched, values, derivatives=answered)


def _ask_sparse(session: Session, request: Request, verb: str, body: Any) -> Result:
    """Runs a function on a tape, and answers a question for a sparse derivative."""
    call = bound_call(session, path_id(request.params["id"]), body.inputs, body.sources)
    targets = _targets(call, body.targets, is_single=verb == "sparse_jacobian")
    fetched = _fetched(call, body.fetch)
    if len(call.sources) != 1:
        inputs = ", ".join([source.name for source in call.sources])
        raise InvalidRequestError(f"sources: a sparse derivative has one, and the inputs of floats are {inputs}")
    names = kept_outputs(body.outputs, "part", len(PARTS["coo"]))
    ids = [name or new_id() for name in names]
    fields = {name: getattr(body, name) for name in type(body).model_fields if name not in _NOT_FIELDS}
    tape = new_id()
    question = command(
        verb,
        tape=tape,
        targets=[call.outputs[name] for name in targets],
        sources=list(call.source_ids),
        outputs=ids,
        **fields,
    )
    ids_to_fetch = [*[call.outputs[name] for name in fetched], *ids]
    answer = _execute(session, request, _recorded(call, tape, question), names, ids_to_fetch, replace=body.replace)
    values = fetched_values(request, answer)
    [source] = call.sources
    derivative = sparse_entry(answer, source.name, names, ids, values)
    return _result(session, call, fetched, values, derivative=derivative)


def _targets(call: BoundCall, chosen: Sequence[str] | None, *, is_single: bool = False) -> Sequence[str]:
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


def _fetched(call: BoundCall, chosen: Sequence[str] | None, *, all_of_them: bool = False) -> Sequence[str]:
    """Returns the names of the outputs to return."""
    if chosen is None:
        return list(call.outputs) if all_of_them else []
    check_names(call.function, list(call.outputs), chosen, "fetch", outputs=True)
    return list(dict.fromkeys(chosen))


def _check_length(field: str | None, body: Any, each: str, names: Sequence[str]) -> None:
    """Checks that a field has a member for each source or target."""
    members = None if field is None else getattr(body, field)
    if members is not None and len(members) != len(names):
        raise InvalidRequestError(
            f"{field}: one for each of the {len(names)} {each}s ({', '.join(names)}); found {len(members)}"
        )


def _recorded(call: BoundCall, tape: Id, question: Command) -> list[Command]:
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


def _execute(
    session: Session,
    request: Request,
    commands: Sequence[Command],
    names: Iterable[str | None],
    fetched: Iterable[Id],
    *,
    replace: bool = False,
) -> Answer:
    """Runs a question's commands; only the ids in `names` stay."""
    created = [id for command in commands for id in created_ids(command)]
    lasting = set(names)
    return execute(
        session,
        request,
        commands,
        after=fetches(request, fetched, optional=True),
        temporaries=[id for id in created if id not in lasting],
        rollback=True,
        replace=replace,
    )


def _result(
    session: Session, call: BoundCall, fetched: Sequence[str], values: dict[Id, Any], **derivatives: Any
) -> Result:
    """Returns the answer to a question."""
    bytes_in_use = session.estimated_bytes()
    body = {
        "values": {name: values[call.outputs[name]] for name in fetched},
        **derivatives,
        "bytes_in_use": bytes_in_use,
    }
    return json_result(body, bytes_in_use=bytes_in_use)
