"""The errors of the wire: bytes or JSON that are not a batch, a tensor or an answer.

TeletapeError
└─ WireError                     malformed_frame
   ├─ FrameTooLargeError         frame_too_large
   ├─ UnsupportedVersionError    unsupported_version
   ├─ CorruptFrameError          corrupt_frame
   └─ MalformedJsonError         malformed_json
NotInJsonError                   not_acceptable
"""

from __future__ import annotations

from teletape_engine.errors import TeletapeError


class NotInJsonError(TeletapeError):
    """Raised for tensors that are together too large for JSON."""

    code = "not_acceptable"


class WireError(TeletapeError, ValueError):
    """Raised for bytes that are not a frame, or a frame whose parts do not fit each other."""

    code = "malformed_frame"


class FrameTooLargeError(WireError):
    """Raised for a declared length over the receiver's limit; nothing of that size was allocated."""

    code = "frame_too_large"


class UnsupportedVersionError(WireError):
    """Raised for a frame of a version that this side does not know."""

    code = "unsupported_version"


class CorruptFrameError(WireError):
    """Raised for a checksum that does not match: the bytes changed in transit. Sending them again is safe."""

    code = "corrupt_frame"


class MalformedJsonError(WireError):
    """Raised for text that is not JSON."""

    code = "malformed_json"
