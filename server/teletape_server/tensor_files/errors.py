"""The errors of bodies: wrong fields, too many numbers."""

from __future__ import annotations

from teletape_engine.errors import TeletapeError


class InvalidRequestError(TeletapeError):
    """Raised for a body or header with a field missing, unknown or of the wrong type."""

    code = "invalid_request"


class BodyTooLargeError(TeletapeError):
    """Raised for a body in JSON with more values than can be read in two seconds."""

    code = "body_too_large"
