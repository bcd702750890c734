"""The problems that the server reports: one table from code to HTTP status and title (RFC 9457).

The codes above the line belong to exceptions of the engine and the wire; those below it exist in HTTP only.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from teletape_engine.errors import TeletapeError

PROBLEM_TYPE: Final = "application/problem+json"

#: The page of a problem on the server itself: what it means, an example, what to do.
PAGE: Final = "/problems/{code}"

_REPLAYED: Final = "Idempotent-Replayed"  # the header of an answer that was given before

_DEFECT: Final = "this request met a defect of the server; the server's log has the details under the request's id"

log = logging.getLogger("teletape")


class Kind(NamedTuple):
    """The HTTP status and the title of a problem."""

    status: int
    title: str


#: 400: the body cannot be read. 422: it can be read, but never executed. 409: not in the current state.
PROBLEMS: Final[dict[str, Kind]] = {
    "invalid_argument": Kind(422, "Invalid argument"),
    "unknown_op": Kind(422, "Unknown op"),
    "bad_attribute": Kind(422, "Bad attribute"),
    "bad_command": Kind(422, "Bad command"),
    "unimplemented": Kind(422, "Unimplemented"),
    "unknown_id": Kind(404, "Unknown id"),
    "released_id": Kind(410, "Released id"),
    "id_in_use": Kind(409, "Id in use"),
    "poisoned": Kind(409, "Poisoned value"),
    "tape_consumed": Kind(409, "Consumed tape"),
    "tape_state": Kind(409, "Wrong tape state"),
    "no_gradient_registered": Kind(422, "No gradient registered"),
    "gradient_registered": Kind(409, "Gradient already registered"),
    "structure_mismatch": Kind(409, "Structure mismatch"),
    "resource_exhausted": Kind(507, "Out of memory or disk space"),
    "sequence_conflict": Kind(409, "Sequence conflict"),
    "out_of_turn": Kind(409, "Out of turn"),
    "precondition_failed": Kind(412, "Precondition failed"),
    "answer_dropped": Kind(410, "Answer no longer stored"),
    "unknown_structure": Kind(409, "Unknown structure"),
    "cancelled": Kind(409, "Cancelled"),
    "layout_unavailable": Kind(501, "Graph layout unavailable"),
    "layout_failed": Kind(422, "Graph layout failed"),
    "deadline_exceeded": Kind(422, "Deadline exceeded"),
    "internal": Kind(500, "Internal error"),
    "malformed_frame": Kind(400, "Malformed frame"),
    "frame_too_large": Kind(413, "Frame too large"),
    "unsupported_version": Kind(400, "Unsupported frame version"),
    "corrupt_frame": Kind(400, "Corrupt frame"),
    "malformed_json": Kind(400, "Malformed JSON"),
    "malformed_safetensors": Kind(400, "Malformed safetensors"),
    # -----------------------------------------------------------------------------------------------------------------
    "malformed_http": Kind(400, "Malformed HTTP"),
    "unauthenticated": Kind(401, "Not authenticated"),
    "forbidden": Kind(403, "Forbidden"),
    "foreign_host": Kind(403, "Foreign host"),
    "foreign_origin": Kind(403, "Foreign origin"),
    "not_found": Kind(404, "Not found"),
    "unknown_session": Kind(404, "Unknown session"),
    "request_not_found": Kind(404, "Unknown request"),
    "method_not_allowed": Kind(405, "Method not allowed"),
    "not_acceptable": Kind(406, "Not acceptable"),
    "too_many_sessions": Kind(409, "Too many sessions"),
    "request_timeout": Kind(408, "Request timeout"),
    "session_ended": Kind(410, "Session ended"),
    "session_damaged": Kind(409, "Session damaged"),
    "length_required": Kind(411, "Length required"),
    "body_too_large": Kind(413, "Body too large"),
    "unsupported_media_type": Kind(415, "Unsupported media type"),
    "invalid_request": Kind(422, "Invalid request"),
    "invalid_expression": Kind(422, "Invalid expression"),
    "unknown_device": Kind(422, "Unknown device"),
    "idempotency_conflict": Kind(422, "Idempotency key used for another request"),
    "incomplete_body": Kind(400, "Incomplete body"),
    "busy": Kind(429, "Busy"),
    "over_budget": Kind(429, "Over budget"),
    "headers_too_large": Kind(431, "Headers too large"),
    "overloaded": Kind(503, "Server overloaded"),
    "recovering": Kind(503, "Session recovering"),
    "shutting_down": Kind(503, "Server shutting down"),
}


class Problem(Exception):  # the term of RFC 9457
    """Raised by the front to refuse a request.

    Args:
        code: A key of `PROBLEMS`.
        detail: What was wrong, and what to do.
        headers: HTTP headers of the response.
        **details: JSON-able facts that a program may act on.
    """

    def __init__(self, code: str, detail: str, *, headers: Mapping[str, str] | None = None, **details: Any) -> None:
        super().__init__(detail)
        self.kind = PROBLEMS[code]
        self.code = code
        self.detail = detail
        self.headers = dict(headers or {})
        self.details = details


def shutting_down() -> Problem:
    """Returns the problem of a request that comes while the server stops."""
    return Problem(
        "shutting_down",
        "this server is shutting down: what came now is not executed, only an earlier try of the request may be. Send "
        "it again when a server answers; the sessions of this one end",
        headers={"Retry-After": "1"},
    )


def problem_response(
    code: str,
    detail: str,
    *,
    request_id: str,
    details: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Returns the problem as a response; a code that is not in the table is a defect, reported as `internal`."""
    kind = PROBLEMS.get(code, PROBLEMS["internal"])
    headers = {**_retry_after(details or {}), **(headers or {})}
    if _REPLAYED in headers:  # another try gets the same
        headers.pop("Retry-After", None)
    body = {
        "type": PAGE.format(code=code),
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "code": code,
        "details": dict(details or {}),
        "instance": f"urn:teletape:request:{request_id}",
    }
    content = json.dumps(body, default=str, ensure_ascii=False).encode()
    return Response(content, kind.status, {**headers, "x-request-id": request_id}, media_type=PROBLEM_TYPE)


def _retry_after(details: Mapping[str, Any]) -> dict[str, str]:
    """Returns the header that says when what a request lacked is free, if its details do."""
    if "frees_at" not in details:
        return {}
    seconds = datetime.fromisoformat(details["frees_at"]).timestamp() - time.time()
    return {"Retry-After": str(max(math.ceil(seconds), 1))}


def error_response(error: Exception, request_id: str) -> Response:
    """Returns the answer to a request that raised the error; one that is no refusal is a defect, and is logged."""
    if isinstance(error, Problem):
        return problem_response(
            error.code, error.detail, request_id=request_id, details=error.details, headers=error.headers
        )
    if isinstance(error, TeletapeError):
        return problem_response(error.code, error.message, request_id=request_id, details=error.details)
    log.error("request %s failed", request_id, exc_info=error, extra={"request_id": request_id})
    return problem_response(
        "internal",
        _DEFECT,
        request_id=request_id,
    )


def refusal_of(error: BaseException, request_id: str) -> Problem:
    """Returns the problem of a request that has raised the error, for later: it keeps nothing of the request alive."""
    if isinstance(error, Problem):
        return Problem(error.code, error.detail, headers=error.headers, **error.details)
    if isinstance(error, TeletapeError) and error.code in PROBLEMS:
        return Problem(error.code, error.message, **error.details)
    if isinstance(error, asyncio.CancelledError):
        return shutting_down()
    log.error("request %s failed", request_id, exc_info=error, extra={"request_id": request_id})
    return Problem("internal", _DEFECT)


def overloaded(lack: str) -> Problem:
    """Returns the problem of a request for which the server lacks something now."""
    return Problem("overloaded", f"{lack}: try again later", headers={"Retry-After": "1"})
