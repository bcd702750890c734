"""What `tf.errors` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.core.errors import AbortedError as AbortedError
from teletape.core.errors import AlreadyExistsError as AlreadyExistsError
from teletape.core.errors import AuthenticationError as AuthenticationError
from teletape.core.errors import ConnectionFailed as ConnectionFailed
from teletape.core.errors import DataLossError as DataLossError
from teletape.core.errors import FailedPreconditionError as FailedPreconditionError
from teletape.core.errors import GradientMismatch as GradientMismatch
from teletape.core.errors import NotFoundError as NotFoundError
from teletape.core.errors import OperatorNotAllowedInGraphError as OperatorNotAllowedInGraphError
from teletape.core.errors import OutOfRangeError as OutOfRangeError
from teletape.core.errors import PermissionDeniedError as PermissionDeniedError
from teletape.core.errors import RequestError as RequestError
from teletape.core.errors import SessionEndedError as SessionEndedError
from teletape.core.errors import UnauthenticatedError as UnauthenticatedError
from teletape.core.errors import UnavailableError as UnavailableError
from teletape.core.errors import UnknownError as UnknownError
from teletape_engine.errors import CancelledError as CancelledError
from teletape_engine.errors import DeadlineExceededError as DeadlineExceededError
from teletape_engine.errors import InternalError as InternalError
from teletape_engine.errors import InvalidArgumentError as InvalidArgumentError
from teletape_engine.errors import PoisonedError as PoisonedError
from teletape_engine.errors import ResourceExhaustedError as ResourceExhaustedError
from teletape_engine.errors import TeletapeError as OpError
from teletape_engine.errors import TeletapeError as TeletapeError
from teletape_engine.errors import UnimplementedError as UnimplementedError

ABORTED: int
ALREADY_EXISTS: int
CANCELLED: int
DATA_LOSS: int
DEADLINE_EXCEEDED: int
FAILED_PRECONDITION: int
INTERNAL: int
INVALID_ARGUMENT: int
NOT_FOUND: int
OK: int
OUT_OF_RANGE: int
PERMISSION_DENIED: int
RESOURCE_EXHAUSTED: int
UNAUTHENTICATED: int
UNAVAILABLE: int
UNIMPLEMENTED: int
UNKNOWN: int
__all__ = [
    "ABORTED",
    "ALREADY_EXISTS",
    "CANCELLED",
    "DATA_LOSS",
    "DEADLINE_EXCEEDED",
    "FAILED_PRECONDITION",
    "INTERNAL",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "OK",
    "OUT_OF_RANGE",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "UNAUTHENTICATED",
    "UNAVAILABLE",
    "UNIMPLEMENTED",
    "UNKNOWN",
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
