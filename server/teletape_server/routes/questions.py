"""Questions to a tape: gradients, Jacobians, second derivatives, and many of them in one request."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import Response

from teletape_server.http.admission import Found
from teletape_server.http.dispatch import Full, Once, exchange, named
from teletape_server.http.openapi import BODY, NAMED, SESSION, WORK, answers, takes
from teletape_server.worker.models import explanations, models
from teletape_server.worker.models import questions as question_models

router = APIRouter()  # among the tapes' operations: routes.tapes takes it in

TapeId = Annotated[str, named("tape", "tape")]
STATE: Final = ("tape_consumed", "tape_state")
_PROBLEMS = (*SESSION, *BODY, *NAMED, "id_in_use", *STATE, "no_gradient_registered", *WORK)


def _of(body: type[BaseModel], answer: type[BaseModel], summary: str) -> dict[str, Any]:
    return {
        "summary": summary,
        "response_class": Response,
        "openapi_extra": takes(body),
        "responses": answers(answer, *_PROBLEMS),
    }


@router.post("/{tape}/gradient", **_of(models.Question, models.Derivatives, "Ask a tape for gradients"))
async def gradient(request: Request, found: Found, tape: TapeId, full: Full = False, key: Once = None) -> Response:
    """Of the targets' sum, for each source. The parents record the computation, for second derivatives."""
    return await exchange(request, found, "tape.gradient", name=tape, full=full)


@router.post(
    "/{tape}/jacobian",
    **_of(question_models.JacobianQuestion, question_models.Jacobians, "Ask a tape for Jacobians"),
)
async def jacobian(request: Request, found: Found, tape: TapeId, full: Full = False, key: Once = None) -> Response:
    """Of one target, for each source: one backward pass over a stack of cotangents, not a pass for each element."""
    return await exchange(request, found, "tape.jacobian", name=tape, full=full)


@router.post(
    "/{tape}/batch_jacobian",
    **_of(
        question_models.BatchJacobianQuestion, question_models.Jacobians, "Ask a tape for the Jacobian of each example"
    ),
)
async def batch_jacobian(
    request: Request, found: Found, tape: TapeId, full: Full = False, key: Once = None
) -> Response:
    """Where target[i] depends on source[i] alone. Not connected: zeros."""
    return await exchange(request, found, "tape.batch_jacobian", name=tape, full=full)


@router.post(
    "/{tape}/vjps", **_of(question_models.VjpsQuestion, models.Derivatives, "Ask a tape for stacks of gradients")
)
async def vjps(request: Request, found: Found, tape: TapeId, full: Full = False, key: Once = None) -> Response:
    """One gradient for each of many output gradients, in one backward pass."""
    return await exchange(request, found, "tape.vjps", name=tape, full=full)


@router.post(
    "/{tape}/hessian", **_of(question_models.HessianQuestion, question_models.Blocks, "Ask a tape for its Hessian")
)
async def hessian(request: Request, found: Found, tape: TapeId, full: Full = False, key: Once = None) -> Response:
    """Of the targets' sum, by pairs of sources. It needs no parent tape."""
    return await exchange(request, found, "tape.hessian", name=tape, full=full)


@router.post(
    "/{tape}/hvp",
    **_of(question_models.HvpQuestion, question_models.Products, "Ask a tape for Hessian-vector products"),
)
async def hvp(request: Request, found: Found, tape: TapeId, full: Full = False, key: Once = None) -> Response:
    """For the price of two gradients; the Hessian is never made. It needs no parent tape."""
    return await exchange(request, found, "tape.hvp", name=tape, full=full)


@router.post(
    "/{tape}/questions",
    **_of(question_models.Questions, question_models.Answers, "Ask a tape many questions"),
)
async def questions(request: Request, found: Found, tape: TapeId, full: Full = False, key: Once = None) -> Response:
    """In one request, also of a tape that is not persistent. If one fails, none is answered."""
    return await exchange(request, found, "tape.questions", name=tape, full=full)


@router.post(
    "/{tape}/explain",
    summary="Ask a tape why",
    response_class=Response,
    openapi_extra=takes(explanations.Why),
    responses=answers(explanations.Explanations, *SESSION, *BODY, *NAMED, "bad_command", "invalid_argument"),
)
async def explain(request: Request, found: Found, tape: TapeId, key: Once = None) -> Response:
    """Why a gradient is null, zero or not finite: a reason, the op, your line, and what to do. The tape stays as it is.

    Ask before the gradient, or a persistent tape: another knows why a gradient is null, but has no numbers any more.
    """
    return await exchange(request, found, "tape.explain", name=tape)
