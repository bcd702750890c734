"""How the wire says no: bytes or JSON that cannot be a batch, a tensor or an answer.

TeletapeError
└─ WireError                     malformed_frame
   ├─ FrameTooLargeError         frame_too_large
   ├─ UnsupportedVersionError    unsupported_version
   ├─ CorruptFrameError          corrupt_frame
   └─ MalformedJsonError         malformed_json
"""

from __future__ import annotations

from teletape_engine.errors import TeletapeError


class WireError(TeletapeError, ValueError):
    """Bytes that are no frame, or a frame whose parts do not fit each other."""

    code = "malformed_frame"


class FrameTooLargeError(WireError):
    """A declared length over the receiver's limit; nothing of that size was allocated."""

    code = "frame_too_large"


class UnsupportedVersionError(WireError):
    """A frame of a version that this side does not speak."""

    code = "unsupported_version"


class CorruptFrameError(WireError):
    """A checksum that does not match: the bytes changed on their way. Sending them again is safe."""

    code = "corrupt_frame"


class MalformedJsonError(WireError):
    """Text that is no JSON, or JSON that is no batch or tensor."""

    code = "malformed_json"
