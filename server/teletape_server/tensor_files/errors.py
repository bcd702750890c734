"""The error of a body with wrong fields."""

from __future__ import annotations

from teletape_engine.errors import TeletapeError


class InvalidRequestError(TeletapeError):
    """Raised for a body or header with a field missing, unknown or of the wrong type."""

    code = "invalid_request"
