"""/tapes/{tape}/gradient and the other derivatives; many of them in one request; explanations."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import Response

from teletape_server.http.access import LiveSession
from teletape_server.http.declarations import BODY, NAMED, SESSION, WORK, answers, takes
from teletape_server.http.dispatch import dispatch
from teletape_server.http.parameters import Full, IdempotencyKey, path_id_of
from teletape_server.models.explanations import ExplainQuestion, Explanations
from teletape_server.models.tapes.questions import (
    BatchJacobianQuestion,
    DerivativeEstimate,
    Derivatives,
    EstimateQuestion,
    GradientQuestion,
    GradientsNumbers,
    GradientStatisticsQuestion,
    HessianBlocks,
    HessianQuestion,
    HvpQuestion,
    JacobianQuestion,
    QuestionResults,
    Questions,
    SparseAnswer,
    SparseHessianQuestion,
    SparseJacobianQuestion,
    VjpsQuestion,
)

router = APIRouter()  # `routes.tapes` includes it among the tapes' operations

TapeId = Annotated[str, path_id_of("tape", "tape")]
STATE: Final = ("tape_consumed", "tape_state")
_PROBLEMS = (*SESSION, *BODY, *NAMED, "id_in_use", *STATE, "no_gradient_registered", *WORK)


def _operation(body: type[BaseModel], answer: type[BaseModel], summary: str) -> dict[str, Any]:
    return {
        "summary": summary,
        "response_class": Response,
        "openapi_extra": takes(body),
        "responses": answers(answer, *_PROBLEMS),
    }


@router.post("/{tape}/gradient", **_operation(GradientQuestion, Derivatives, "Compute gradients"))
async def gradient(
    request: Request, session: LiveSession, tape: TapeId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Computes the gradient of the targets' sum with respect to each source.

    The tape's parents record the computation, so that they can differentiate it again.
    """
    return await dispatch(request, session, "tape.gradient", id=tape, full=full)


@router.post("/{tape}/estimate", **_operation(EstimateQuestion, DerivativeEstimate, "Estimate a derivative"))
async def estimate(request: Request, session: LiveSession, tape: TapeId, key: IdempotencyKey = None) -> Response:
    """Returns what a derivative would take: bytes, ops, multiply-adds, about how many seconds.

    The backward pass is followed by shapes alone. The tape stays, also one that is not persistent.
    """
    return await dispatch(request, session, "tape.estimate", id=tape)


@router.post(
    "/{tape}/gradient_statistics",
    **_operation(GradientStatisticsQuestion, GradientsNumbers, "Compute statistics of gradients"),
)
async def gradient_statistics(
    request: Request, session: LiveSession, tape: TapeId, key: IdempotencyKey = None
) -> Response:
    """Computes norm, largest magnitude, mean and the shares of non-finite and zero elements of each gradient.

    The elements stay here. The tape stays too, also one that is not persistent.
    """
    return await dispatch(request, session, "tape.gradient_statistics", id=tape)


@router.post("/{tape}/jacobian", **_operation(JacobianQuestion, Derivatives, "Compute Jacobians"))
async def jacobian(
    request: Request, session: LiveSession, tape: TapeId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Computes the Jacobian of one target with respect to each source, in one batched backward pass."""
    return await dispatch(request, session, "tape.jacobian", id=tape, full=full)


@router.post(
    "/{tape}/batch_jacobian",
    **_operation(BatchJacobianQuestion, Derivatives, "Compute the Jacobian of each example"),
)
async def batch_jacobian(
    request: Request, session: LiveSession, tape: TapeId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Computes d target[i] / d source[i] for each example i, for a target[i] that depends on source[i] alone."""
    return await dispatch(request, session, "tape.batch_jacobian", id=tape, full=full)


@router.post(
    "/{tape}/vjps",
    **_operation(VjpsQuestion, Derivatives, "Compute gradients for many output gradients"),
)
async def vjps(
    request: Request, session: LiveSession, tape: TapeId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Computes one gradient for each of k output gradients, in one batched backward pass."""
    return await dispatch(request, session, "tape.vjps", id=tape, full=full)


@router.post("/{tape}/hessian", **_operation(HessianQuestion, HessianBlocks, "Compute a Hessian"))
async def hessian(
    request: Request, session: LiveSession, tape: TapeId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Computes the second derivatives of the targets' sum, a block for each pair of sources. Needs no parent tape."""
    return await dispatch(request, session, "tape.hessian", id=tape, full=full)


@router.post(
    "/{tape}/hvp",
    **_operation(HvpQuestion, Derivatives, "Compute Hessian-vector products"),
)
async def hvp(
    request: Request, session: LiveSession, tape: TapeId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Computes the Hessian times a vector at the cost of two gradients. Needs no parent tape."""
    return await dispatch(request, session, "tape.hvp", id=tape, full=full)


@router.post("/{tape}/sparse_jacobian", **_operation(SparseJacobianQuestion, SparseAnswer, "Compute a sparse Jacobian"))
async def sparse_jacobian(
    request: Request, session: LiveSession, tape: TapeId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Computes the elements of a Jacobian that may differ from zero, as COO or CSR, in few products with vectors.

    Where they are is read off the recorded ops. The tape's parents cannot record it.
    """
    return await dispatch(request, session, "tape.sparse_jacobian", id=tape, full=full)


@router.post("/{tape}/sparse_hessian", **_operation(SparseHessianQuestion, SparseAnswer, "Compute a sparse Hessian"))
async def sparse_hessian(
    request: Request, session: LiveSession, tape: TapeId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Computes the second derivatives that may differ from zero, as COO or CSR, in few Hessian-vector products."""
    return await dispatch(request, session, "tape.sparse_hessian", id=tape, full=full)


@router.post(
    "/{tape}/questions",
    **_operation(Questions, QuestionResults, "Compute many derivatives in one request"),
)
async def questions(
    request: Request, session: LiveSession, tape: TapeId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Answers several questions, also from a tape that is not persistent. If a question fails, nothing is kept."""
    return await dispatch(request, session, "tape.questions", id=tape, full=full)


@router.post(
    "/{tape}/explain",
    summary="Explain a gradient",
    response_class=Response,
    openapi_extra=takes(ExplainQuestion),
    responses=answers(Explanations, *SESSION, *BODY, *NAMED, "bad_command", "invalid_argument"),
)
async def explain(request: Request, session: LiveSession, tape: TapeId, key: IdempotencyKey = None) -> Response:
    """Explains why a gradient is null, zero or not finite: the reason, the op, your line of it, and what to do.

    The tape stays unchanged. A consumed tape still explains null gradients, but not zeros and NaN, since it has no
    numbers any more.
    """
    return await dispatch(request, session, "tape.explain", id=tape)
