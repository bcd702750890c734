"""The errors of the safetensors format: bytes that are no safetensors, and tensors that it has no name for."""

from __future__ import annotations

from teletape_engine.errors import TeletapeError


class MalformedSafetensorsError(TeletapeError):
    """Raised for bytes that are not in the safetensors format."""

    code = "malformed_safetensors"


class NotInSafetensorsError(TeletapeError):
    """Raised for a tensor whose dtype the format has no name for."""

    code = "not_acceptable"
