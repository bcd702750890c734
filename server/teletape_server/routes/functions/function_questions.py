"""/functions/{function}/gradient and the other derivatives; explanations; gradient checks."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import Response

from teletape_server.http.access import LiveSession
from teletape_server.http.declarations import BODY, NAMED, SESSION, WORK, answers, takes
from teletape_server.http.dispatch import dispatch
from teletape_server.http.parameters import Full, IdempotencyKey
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
from teletape_server.models.tapes.checks import CheckReport
from teletape_server.routes.functions.functions import FunctionId

router = APIRouter(prefix="/sessions/{session}/functions", tags=["functions"])

_PROBLEMS = (*SESSION, *BODY, *NAMED, "no_gradient_registered", *WORK)


def _operation(body: type[BaseModel], answer: type[BaseModel], summary: str, *problems: str) -> dict[str, Any]:
    return {
        "summary": summary,
        "response_class": Response,
        "openapi_extra": takes(body),
        "responses": answers(answer, *_PROBLEMS, *problems),
    }


def _derivatives(body: type[BaseModel], answer: type[BaseModel], summary: str) -> dict[str, Any]:
    return _operation(body, answer, summary, "id_in_use")


@router.post(
    "/{function}/gradient",
    **_derivatives(FunctionGradientQuestion, FunctionDerivatives, "Compute a function's gradients"),
)
async def gradient(
    request: Request, session: LiveSession, function: FunctionId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Computes the gradient of the targets' sum with respect to each source, for these inputs.

    This question and those below keep nothing in the session, except the derivatives that `outputs` names and what the
    function's steps assign to variables.
    """
    return await dispatch(request, session, "function.gradient", id=function, full=full)


@router.post(
    "/{function}/value_and_gradient",
    **_derivatives(ValueAndGradientQuestion, FunctionDerivatives, "Compute a function's outputs and gradients"),
)
async def value_and_gradient(
    request: Request, session: LiveSession, function: FunctionId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Computes the outputs, and the gradient of the targets' sum with respect to each source, in one pass."""
    return await dispatch(request, session, "function.value_and_gradient", id=function, full=full)


@router.post(
    "/{function}/jacobian",
    **_derivatives(FunctionJacobianQuestion, FunctionDerivatives, "Compute a function's Jacobians"),
)
async def jacobian(
    request: Request, session: LiveSession, function: FunctionId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Computes the Jacobian of one output with respect to each source, in one batched backward pass."""
    return await dispatch(request, session, "function.jacobian", id=function, full=full)


@router.post(
    "/{function}/hessian",
    **_derivatives(FunctionHessianQuestion, FunctionHessian, "Compute a function's Hessian"),
)
async def hessian(
    request: Request, session: LiveSession, function: FunctionId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Computes the second derivatives of the targets' sum, a block for each pair of sources."""
    return await dispatch(request, session, "function.hessian", id=function, full=full)


@router.post(
    "/{function}/hvp",
    **_derivatives(FunctionHvpQuestion, FunctionDerivatives, "Compute a function's Hessian-vector products"),
)
async def hvp(
    request: Request, session: LiveSession, function: FunctionId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Computes the Hessian of the targets' sum times a vector at the cost of two gradients."""
    return await dispatch(request, session, "function.hvp", id=function, full=full)


@router.post(
    "/{function}/sparse_jacobian",
    **_derivatives(FunctionSparseJacobianQuestion, FunctionSparseDerivative, "Compute a function's sparse Jacobian"),
)
async def sparse_jacobian(
    request: Request, session: LiveSession, function: FunctionId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Computes the elements of a Jacobian that may differ from zero, as COO or CSR, in few products with vectors."""
    return await dispatch(request, session, "function.sparse_jacobian", id=function, full=full)


@router.post(
    "/{function}/sparse_hessian",
    **_derivatives(FunctionSparseHessianQuestion, FunctionSparseDerivative, "Compute a function's sparse Hessian"),
)
async def sparse_hessian(
    request: Request, session: LiveSession, function: FunctionId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Computes the second derivatives that may differ from zero, as COO or CSR, in few Hessian-vector products."""
    return await dispatch(request, session, "function.sparse_hessian", id=function, full=full)


@router.post(
    "/{function}/vjp",
    **_derivatives(FunctionVjpQuestion, FunctionDerivatives, "Compute a function's vector-Jacobian products"),
)
async def vjp(
    request: Request, session: LiveSession, function: FunctionId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Computes the output gradients times the Jacobian, with respect to each source, in one backward pass."""
    return await dispatch(request, session, "function.vjp", id=function, full=full)


@router.post(
    "/{function}/jvp",
    **_derivatives(FunctionJvpQuestion, FunctionTangents, "Compute a function's Jacobian-vector products"),
)
async def jvp(
    request: Request, session: LiveSession, function: FunctionId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Computes the derivative of each target along the tangents, in forward mode: in one pass, without a tape."""
    return await dispatch(request, session, "function.jvp", id=function, full=full)


@router.post(
    "/{function}/explain",
    **_operation(FunctionExplainQuestion, Explanations, "Explain a function's gradients"),
)
async def explain(request: Request, session: LiveSession, function: FunctionId, key: IdempotencyKey = None) -> Response:
    """Explains why a gradient is null, zero or not finite for these inputs: the reason, the op, and what to do."""
    return await dispatch(request, session, "function.explain", id=function)


_CHECK = _operation(FunctionCheck, CheckReport, "Check a function's gradients")


@router.post("/{function}/check", include_in_schema=False, **_CHECK)  # the same under a short name
@router.post("/{function}/check_gradients", **_CHECK)
async def check_gradients(
    request: Request, session: LiveSession, function: FunctionId, key: IdempotencyKey = None
) -> Response:
    """Compares the gradients with finite differences. The status is 200 in both cases: read `agrees` and `worst`."""
    return await dispatch(request, session, "function.check_gradients", id=function)
