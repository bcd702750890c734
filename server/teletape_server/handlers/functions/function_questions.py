"""Derivatives of a function at given inputs, explanations, checks: each question is one batch, of which nothing stays.

A tape answers all questions but jvp, which the forward mode answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from teletape_engine.commands import CheckGradients, Explain
from teletape_engine.commands.results import Facts
from teletape_engine.session.session import Session
from teletape_server.handlers.bodies import new_id, path_id
from teletape_server.handlers.endpoints import WORK, Handler, endpoint
from teletape_server.handlers.execution import described
from teletape_server.handlers.functions.asking import ask, ask_sparse, places
from teletape_server.handlers.functions.bound_calls import bound_call, in_order
from teletape_server.handlers.functions.gradients.accumulators import ask_accumulated
from teletape_server.handlers.functions.gradients.numeric import ask_numeric
from teletape_server.handlers.functions.gradients.parts import ask_part
from teletape_server.handlers.functions.gradients.per_example import ask_per_example
from teletape_server.handlers.functions.question_commands import chosen_targets, question_batch, recorded, run_question
from teletape_server.handlers.methods import Request, Result, json_result
from teletape_server.handlers.tapes.checks import check_report
from teletape_server.models.explanations import Explanations
from teletape_server.models.functions.function_questions import (
    FunctionAnswer,
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


def _question(name: str, answer: type[FunctionAnswer], summary: str) -> Callable[[Handler], Handler]:
    """Returns the decorator of a question that is answered with tensors; see `endpoint`."""
    path, problems = f"/functions/{{function}}/{name}", (*_PROBLEMS, "id_in_use")
    return endpoint("POST", path, answer, summary, problems=problems, query=Elements, places=places)


def _gradients(
    session: Session,
    request: Request,
    body: FunctionGradientQuestion,
    *,
    fetches_all: bool = False,
    answers_derivatives: bool = True,
) -> Result:
    if body.accumulate is not None or body.part is not None or body.numeric or body.per_example is not None:
        request = replace(request, noting=None)  # what follows asks something else
    if body.accumulate is not None:
        return ask_accumulated(session, request, body, _gradients, fetches_all=fetches_all)
    if body.part is not None:
        return ask_part(session, request, body, fetches_all=fetches_all)
    shown: dict[str, Any] = {"fetches_all": fetches_all, "answers_derivatives": answers_derivatives}
    if body.numeric:
        return ask_numeric(session, request, body, **shown)
    if body.per_example is not None:
        return ask_per_example(session, request, body, **shown)
    return ask(session, request, "gradient", body, **shown)


@_question("gradient", FunctionDerivatives, "Compute a function's gradients")
def gradient(session: Session, request: Request, body: FunctionGradientQuestion) -> Result:
    """Computes the gradient of the targets' sum with respect to each source, for these inputs.

    This question and those below keep nothing in the session, except the derivatives that `outputs` names and what the
    function's steps assign to variables.
    """
    return _gradients(session, request, body)


@_question("value_and_gradient", FunctionDerivatives, "Compute a function's outputs and gradients")
def value_and_gradient(session: Session, request: Request, body: ValueAndGradientQuestion) -> Result:
    """Computes the outputs, and the gradient of the targets' sum with respect to each source, in one pass."""
    return _gradients(session, request, body, fetches_all=True)


@_question("jacobian", FunctionDerivatives, "Compute a function's Jacobians")
def jacobian(session: Session, request: Request, body: FunctionJacobianQuestion) -> Result:
    """Computes the Jacobian of one output with respect to each source, in one batched backward pass."""
    return ask(session, request, "jacobian", body)


@_question("hessian", FunctionHessian, "Compute a function's Hessian")
def hessian(session: Session, request: Request, body: FunctionHessianQuestion) -> Result:
    """Computes the second derivatives of the targets' sum, a block for each pair of sources."""
    return ask(session, request, "hessian", body)


@_question("hvp", FunctionDerivatives, "Compute a function's Hessian-vector products")
def hvp(session: Session, request: Request, body: FunctionHvpQuestion) -> Result:
    """Computes the Hessian of the targets' sum times a vector at the cost of two gradients."""
    return ask(session, request, "hvp", body)


@_question("sparse_jacobian", FunctionSparseDerivative, "Compute a function's sparse Jacobian")
def sparse_jacobian(session: Session, request: Request, body: FunctionSparseJacobianQuestion) -> Result:
    """Computes the elements of a Jacobian that may differ from zero, as COO or CSR, in few products with vectors."""
    return ask_sparse(session, request, "sparse_jacobian", body)


@_question("sparse_hessian", FunctionSparseDerivative, "Compute a function's sparse Hessian")
def sparse_hessian(session: Session, request: Request, body: FunctionSparseHessianQuestion) -> Result:
    """Computes the second derivatives that may differ from zero, as COO or CSR, in few Hessian-vector products."""
    return ask_sparse(session, request, "sparse_hessian", body)


@_question("vjp", FunctionDerivatives, "Compute a function's vector-Jacobian products")
def vjp(session: Session, request: Request, body: FunctionVjpQuestion) -> Result:
    """Computes the output gradients times the Jacobian, with respect to each source, in one backward pass."""
    return _gradients(session, request, body)


@_question("jvp", FunctionTangents, "Compute a function's Jacobian-vector products")
def jvp(session: Session, request: Request, body: FunctionJvpQuestion) -> Result:
    """Computes the derivative of each target along the tangents, in forward mode: in one pass, without a tape."""
    return ask(session, request, "jvp", body)


@endpoint("POST", "/functions/{function}/explain", Explanations, "Explain a function's gradients", problems=_PROBLEMS)
def explain(session: Session, request: Request, body: FunctionExplainQuestion) -> Result:
    """Explains why a gradient is null, zero or not finite for these inputs: the reason, the op, and what to do."""
    call = bound_call(session, path_id(request.params["id"]), body.inputs, body.sources, floats=False)
    targets = chosen_targets(call.function, list(call.outputs), body.targets)
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
