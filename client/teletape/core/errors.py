"""`tf.errors`: the engine's exceptions under TensorFlow's names, and the errors of using a server.

TeletapeError                  (the engine's tree, teletape_engine.errors)
├─ ConnectionFailed            no answer from the server
├─ OutOfRangeError             a loop over no elements, or past the last of them
├─ AbortedError, AlreadyExistsError, DataLossError, FailedPreconditionError, NotFoundError, PermissionDeniedError,
│  UnavailableError             TensorFlow's others: of files and of data
├─ UnknownError                a function of the program's own, run as an op, has failed
├─ AuthenticationError         unauthenticated
├─ SessionEndedError           session_ended: it is gone, with the reason; connect again
└─ RequestError                any other refusal; `code` and `status` say which
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from teletape_engine.derivatives.reports.check_report import Report
from teletape_engine.errors import (
    CancelledError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    PoisonedError,
    ResourceExhaustedError,
    TeletapeError,
    UnimplementedError,
    tree,
)

OpError = TeletapeError

_REQUEST: Final = "urn:teletape:request:"  #: Begins the URN of a request.
_OWN: Final = frozenset(("code", "message", "self", "status"))  #: Names of an error's own among its details.


class ConnectionFailed(TeletapeError, OSError):
    """No answer from the server."""

    code = "connection_failed"


class OutOfRangeError(TeletapeError):
    """A loop over no elements without an initial value, or past the last element of one of its inputs."""

    code = "out_of_range"
    error_code = 11


class AbortedError(TeletapeError):
    """The work was aborted, usually because of a conflict with other work."""

    code = "aborted"
    error_code = 10


class AlreadyExistsError(TeletapeError):
    """The file or folder to be made exists already."""

    code = "already_exists"
    error_code = 6


class DataLossError(TeletapeError):
    """A file is truncated, damaged, or of another format."""

    code = "data_loss"
    error_code = 15


class FailedPreconditionError(TeletapeError):
    """The state does not allow the operation: a folder to remove is not empty, or a table has no values yet."""

    code = "failed_precondition"
    error_code = 9


class NotFoundError(TeletapeError):
    """There is no file, folder or value of this name."""

    code = "no_such_entry"
    error_code = 5


class PermissionDeniedError(TeletapeError):
    """The program has no permission to read or write the file."""

    code = "permission_denied"
    error_code = 7


class UnavailableError(TeletapeError):
    """The service cannot be reached now; a later attempt may succeed."""

    code = "unavailable"
    error_code = 14


class UnknownError(TeletapeError):
    """A Python function that a program runs as an op (`tf.py_function`) raised an exception of another class."""

    code = "unknown"
    error_code = 2


class AuthenticationError(TeletapeError):
    """The API key is missing or wrong."""

    code = "unauthenticated"
    error_code = 16


UnauthenticatedError = AuthenticationError


class OperatorNotAllowedInGraphError(TypeError):
    """TensorFlow's error for a Python `if`, `for` or `bool()` on a tensor of a graph. Teletape never raises it.

    Such a function runs op by op here. The class exists so that programs can name it in `except`.
    """


class SessionEndedError(TeletapeError):
    """The session has ended, and its values are lost; the message says why and when."""

    code = "session_ended"


class RequestError(TeletapeError):
    """The server refused the request.

    Attributes:
        code: The problem's code (docs/protocol.md lists them).
        status: The HTTP status.
    """

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message, **details)
        self.code = details.get("code", "internal")  # type: ignore[misc]  # of this refusal, not of the class
        self.status = details.get("status", 0)


class GradientMismatch(AssertionError):
    """Automatic and numerical derivatives differ.

    Attributes:
        report: The entry, both values, and the tolerance.
    """

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


def error_of(status: int, body: bytes, retry_after: float | None = None) -> TeletapeError:
    """Returns a problem+json answer as an exception. Any other answer (a proxy's page) becomes a RequestError."""
    try:
        problem = json.loads(body)
        code, text = problem["code"], problem.get("detail") or problem["title"]
    except (ValueError, KeyError, TypeError):
        error: TeletapeError = RequestError(f"HTTP {status}: {_words(body)}", status=status)
        error.retry_after = retry_after
        return error
    request = str(problem.get("request_id") or problem.get("instance") or "").removeprefix(_REQUEST)
    more = problem.get("details")
    details = {str(name): more[name] for name in more if name not in _OWN} if isinstance(more, dict) else {}
    error = error_for(code, f"{text} (request {request})" if request else text, **details, status=status)
    error.request_id = request or None
    error.retry_after = retry_after
    return error


def _words(body: bytes) -> str:
    """Returns the first words of an answer that is no problem, without the markup of a page."""
    text = body[:10_000].decode(errors="replace")
    text = re.sub(r"(?is)<(script|style|title)\b.*?</\1>|<[^>]*>", " ", text)
    return " ".join(text.split())[:200]


def error_for(code: str, message: str, **details: Any) -> TeletapeError:
    """Returns the exception class for a code; RequestError for codes without a class of their own."""
    error = tree().get(code)
    # A server in this process adds errors of its own.
    if error is None or error is RequestError or error.__module__.startswith("teletape_server."):
        return RequestError(message, code=code, **details)
    return error(message, **details)


#: TensorFlow's numbers, which errors have as `error_code`.
_NAMES: Final = """
    Aborted AlreadyExists Cancelled DataLoss DeadlineExceeded FailedPrecondition Internal InvalidArgument NotFound
    OutOfRange PermissionDenied ResourceExhausted Unauthenticated Unavailable Unimplemented Unknown
    """.split()
NUMBERS: Final[dict[str, int]] = {"OK": 0} | {
    re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper(): globals()[f"{name}Error"].error_code for name in _NAMES
}

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "AuthenticationError",
    "CancelledError",
    "ConnectionFailed",
    "DataLossError",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "GradientMismatch",
    "InternalError",
    "InvalidArgumentError",
    "NotFoundError",
    "OpError",
    "OperatorNotAllowedInGraphError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "PoisonedError",
    "RequestError",
    "ResourceExhaustedError",
    "SessionEndedError",
    "TeletapeError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
]

PUBLIC: Final = "teletape.errors"
for _error in [value for value in globals().values() if isinstance(value, type) and value.__module__ == __name__]:
    _error.__module__ = PUBLIC  # as programs and tracebacks name them
