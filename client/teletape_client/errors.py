"""The errors of the client: one class for each thing that a caller can do.

ServiceError
├─ NoAnswerError             nothing, or no Teletape server, has answered: check the address, try later
├─ DeadlineExceededError     the time has passed, the caller's or the server's: allow more, or ask for less
├─ BusyError                 the server takes nothing more now: try again after `retry_after` seconds
├─ AuthenticationError       the API key is missing or wrong, or it may not be used from here
├─ InvalidRequestError       the request can never succeed: change the program
├─ NotFoundError             nothing has this id or address: create it, or correct the name
├─ ConflictError             the state does not allow it: look at the state, then choose another way
├─ SessionEndedError         the session is gone with all its values: create another one
├─ ResourceExhaustedError    too much memory, too many sessions, or a body that is too large: free some, or send less
├─ RequestCancelledError     somebody has cancelled the request
├─ AnswerDroppedError        the request was executed, and its answer is not stored any more: do not repeat it
└─ ServerError               a defect of the server: report it with `request_id`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final


class ServiceError(Exception):
    """The base of all errors of the client.

    Attributes:
        message: The reason, and what to do.
        code: The code of the problem; docs/problems.md lists those of the server.
        status: The HTTP status; 0: there was no answer.
        request_id: Names the request in the server's log; None: there was no answer.
        retry_after: Seconds after which the server may take the request; None: not known.
        problem: The server's unchanged refusal (RFC 9457), with `details`; None: it is no refusal of the server.
    """

    codes: ClassVar[frozenset[str]] = frozenset()  #: The server's codes of this class.

    def __init__(
        self,
        message: str,
        *,
        code: str = "unknown",
        status: int = 0,
        request_id: str | None = None,
        retry_after: float | None = None,
        problem: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.code, self.status = message, code, status
        self.request_id, self.retry_after, self.problem = request_id, retry_after, problem

    @property
    def details(self) -> Mapping[str, Any]:
        """The numbers and names of the refusal that a program may act on."""
        details: Mapping[str, Any] | None = (self.problem or {}).get("details")
        return details or {}

    def __str__(self) -> str:
        request = "" if self.request_id is None else f", request {self.request_id}"
        return f"{self.message} ({self.code}{request})"


class NoAnswerError(ServiceError, ConnectionError):
    """No Teletape server has answered: check the address, or try later."""


class DeadlineExceededError(ServiceError, TimeoutError):
    """The time has passed, the caller's `timeout` or the server's limit: allow more, or ask for less."""

    codes = frozenset(("deadline_exceeded",))


class BusyError(ServiceError):
    """The server takes nothing more now: try again after `retry_after` seconds."""

    codes = frozenset("busy overloaded recovering shutting_down request_timeout out_of_turn".split())


class AuthenticationError(ServiceError, PermissionError):
    """The API key is missing or wrong, or is not for this, or not from here."""

    codes = frozenset("unauthenticated forbidden foreign_host foreign_origin".split())


class InvalidRequestError(ServiceError, ValueError):
    """The request can never succeed: change the program."""

    codes = frozenset(
        "invalid_request invalid_argument invalid_expression unknown_op bad_attribute bad_command unimplemented "
        "no_gradient_registered unknown_device layout_failed layout_unavailable not_acceptable unsupported_media_type "
        "method_not_allowed length_required malformed_json malformed_safetensors malformed_http malformed_frame "
        "corrupt_frame incomplete_body unsupported_version headers_too_large".split()
    )


class NotFoundError(ServiceError, LookupError):
    """Nothing has this id or address: create it, or correct the name."""

    codes = frozenset("unknown_id released_id not_found request_not_found".split())


class ConflictError(ServiceError):
    """The state does not allow it: look at the state, then choose another way."""

    codes = frozenset(
        "id_in_use poisoned tape_consumed tape_state gradient_registered structure_mismatch sequence_conflict "
        "unknown_structure precondition_failed idempotency_conflict session_damaged".split()
    )


class SessionEndedError(ServiceError):
    """The session is gone with all its values: create another one."""

    codes = frozenset("session_ended unknown_session".split())


class ResourceExhaustedError(ServiceError):
    """Too much memory, too many sessions, a budget that is used, or too large a body: free some, wait, or send less."""

    codes = frozenset("resource_exhausted too_many_sessions over_budget body_too_large frame_too_large".split())


class RequestCancelledError(ServiceError):
    """The request was cancelled."""

    codes = frozenset(("cancelled",))


class AnswerDroppedError(ServiceError):
    """The request was executed, and its answer is not stored any more: do not repeat it."""

    codes = frozenset(("answer_dropped",))


class ServerError(ServiceError):
    """A defect of the server, or a code that this client does not know: report it with `request_id`."""

    codes = frozenset(("internal",))


#: The class of each code of the server.
CLASSES: Final[Mapping[str, type[ServiceError]]] = {
    code: error for error in ServiceError.__subclasses__() for code in error.codes
}


def error_class(code: str, status: int) -> type[ServiceError]:
    """Returns the class of a refusal; for a code that this client does not know, by its status."""
    if code in CLASSES:
        return CLASSES[code]
    by_status = {401: AuthenticationError, 403: AuthenticationError, 404: NotFoundError, 409: ConflictError}
    by_status |= {410: NotFoundError, 412: ConflictError, 413: ResourceExhaustedError, 507: ResourceExhaustedError}
    by_status |= {429: BusyError, 503: BusyError}
    return by_status.get(status, InvalidRequestError if 400 <= status < 500 else ServerError)
