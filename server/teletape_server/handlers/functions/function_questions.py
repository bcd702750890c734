"""Derivatives of a function at given inputs, explanations, checks: each question is one batch, of which nothing stays.

A tape answers all questions but jvp, which the forward mode answers.
"""

from __future__ import annotations

from typing import Any, Final

from teletape_engine.commands import (
    AccumulatorClose,
    AccumulatorOpen,
    CheckGradients,
    ContextSwitch,
    Explain,
    Jvp,
)
from teletape_engine.commands.results import Facts, Kinds
from teletape_engine.session.session import Session
from teletape_server.handlers.answers import fetched_values
from teletape_server.handlers.bodies import new_id, path_id
from teletape_server.handlers.endpoints import WORK, endpoint
from teletape_server.handlers.execution import described
from teletape_server.handlers.functions.asking import (
    ask,
    ask_sparse,
    check_length,
    chosen_outputs,
    chosen_targets,
    question_batch,
    question_result,
    recorded,
    run_question,
)
from teletape_server.handlers.functions.bound_calls import BoundCall, bound_call, in_order
from teletape_server.handlers.methods import Request, Result, json_result
from teletape_server.handlers.recording import CONTEXT
from teletape_server.handlers.tapes.checks import check_report
from teletape_server.handlers.tapes.questions import kept_outputs
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


@endpoint("POST", "/functions/{function}/gradient", FunctionDerivatives, "Compute a function's gradients", **_ASKS)
def gradient(session: Session, request: Request, body: FunctionGradientQuestion) -> Result:
    """Computes the gradient of the targets' sum with respect to each source, for these inputs.

    This question and those below keep nothing in the session, except the derivatives that `outputs` names and what the
    function's steps assign to variables.
    """
    return ask(session, request, "gradient", body, per_target="output_gradients")


@endpoint(
    "POST",
    "/functions/{function}/value_and_gradient",
    FunctionDerivatives,
    "Compute a function's outputs and gradients",
    **_ASKS,
)
def value_and_gradient(session: Session, request: Request, body: ValueAndGradientQuestion) -> Result:
    """Computes the outputs, and the gradient of the targets' sum with respect to each source, in one pass."""
    return ask(session, request, "gradient", body, per_target="output_gradients", fetches_all=True)


@endpoint("POST", "/functions/{function}/jacobian", FunctionDerivatives, "Compute a function's Jacobians", **_ASKS)
def jacobian(session: Session, request: Request, body: FunctionJacobianQuestion) -> Result:
    """Computes the Jacobian of one output with respect to each source, in one batched backward pass."""
    return ask(session, request, "jacobian", body)


@endpoint("POST", "/functions/{function}/hessian", FunctionHessian, "Compute a function's Hessian", **_ASKS)
def hessian(session: Session, request: Request, body: FunctionHessianQuestion) -> Result:
    """Computes the second derivatives of the targets' sum, a block for each pair of sources."""
    return ask(session, request, "hessian", body)


@endpoint(
    "POST", "/functions/{function}/hvp", FunctionDerivatives, "Compute a function's Hessian-vector products", **_ASKS
)
def hvp(session: Session, request: Request, body: FunctionHvpQuestion) -> Result:
    """Computes the Hessian of the targets' sum times a vector at the cost of two gradients."""
    return ask(session, request, "hvp", body, per_source="vectors")


@endpoint(
    "POST",
    "/functions/{function}/sparse_jacobian",
    FunctionSparseDerivative,
    "Compute a function's sparse Jacobian",
    **_ASKS,
)
def sparse_jacobian(session: Session, request: Request, body: FunctionSparseJacobianQuestion) -> Result:
    """Computes the elements of a Jacobian that may differ from zero, as COO or CSR, in few products with vectors."""
    return ask_sparse(session, request, "sparse_jacobian", body)


@endpoint(
    "POST",
    "/functions/{function}/sparse_hessian",
    FunctionSparseDerivative,
    "Compute a function's sparse Hessian",
    **_ASKS,
)
def sparse_hessian(session: Session, request: Request, body: FunctionSparseHessianQuestion) -> Result:
    """Computes the second derivatives that may differ from zero, as COO or CSR, in few Hessian-vector products."""
    return ask_sparse(session, request, "sparse_hessian", body)


@endpoint(
    "POST", "/functions/{function}/vjp", FunctionDerivatives, "Compute a function's vector-Jacobian products", **_ASKS
)
def vjp(session: Session, request: Request, body: FunctionVjpQuestion) -> Result:
    """Computes the output gradients times the Jacobian, with respect to each source, in one backward pass."""
    return ask(session, request, "gradient", body, per_target="output_gradients")


@endpoint(
    "POST", "/functions/{function}/jvp", FunctionTangents, "Compute a function's Jacobian-vector products", **_ASKS
)
def jvp(session: Session, request: Request, body: FunctionJvpQuestion) -> Result:
    """Computes the derivative of each target along the tangents, in forward mode: in one pass, without a tape."""
    call = bound_call(session, path_id(request.params["id"]), body.inputs, body.sources)
    targets = chosen_targets(call, body.targets)
    fetched = chosen_outputs(call, body.fetch)
    check_length("tangents", body, "source", [source.name for source in call.sources])
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
    answer = run_question(
        session, request, question_batch(request, commands, names, ids_to_fetch, replace=body.replace)
    )
    values = fetched_values(request, answer)
    [kinds] = [result.kinds for result in answer.results if isinstance(result, Kinds)]
    tangents: list[dict[str, Any]] = []
    for target, kind, name, id in zip(targets, kinds, names, ids, strict=True):
        why = _why_no_tangent(session, call, target) if kind == "none" else {}
        tangent = {"name": target, "kind": kind, "id": name if id in values else None, "value": values.get(id)}
        tangents.append(tangent | why)
    return question_result(session, call.outputs, fetched, values, derivatives=tangents)


def _why_no_tangent(session: Session, call: BoundCall, target: str) -> dict[str, Any]:
    """Returns why a target has no tangent, as a member of its entry: its first source without a gradient says so."""
    reasons = session.explain_call(call.function, call.inputs, [target], [source.number for source in call.sources])
    why = next((reason for reason in reasons if reason is not None), None)
    return {} if why is None else {"why": why}


@endpoint("POST", "/functions/{function}/explain", Explanations, "Explain a function's gradients", problems=_PROBLEMS)
def explain(session: Session, request: Request, body: FunctionExplainQuestion) -> Result:
    """Explains why a gradient is null, zero or not finite for these inputs: the reason, the op, and what to do."""
    call = bound_call(session, path_id(request.params["id"]), body.inputs, body.sources, floats=False)
    targets = chosen_targets(call, body.targets)
    tape = new_id()
    question = Explain(tape, tuple([call.outputs[name] for name in targets]), call.source_ids)
    answer = run_question(session, request, question_batch(request, recorded(call, tape, question), (), ())).results[-1]
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
