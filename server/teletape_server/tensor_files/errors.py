"""The errors of bodies: wrong fields, bytes that are no safetensors, and tensors that the format has no name for."""

from __future__ import annotations

from teletape_engine.errors import TeletapeError


class InvalidRequestError(TeletapeError):
    """Raised for a body or header with a field missing, unknown or of the wrong type."""

    code = "invalid_request"


class MalformedSafetensorsError(TeletapeError):
    """Raised for bytes that are not in the safetensors format."""

    code = "malformed_safetensors"


class NotInSafetensorsError(TeletapeError):
    """Raised for an answer with a tensor whose dtype the format has no name for."""

    code = "not_acceptable"
