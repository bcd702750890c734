"""Batches, tensors and answers as bytes: binary frames for programs, JSON for people. docs/protocol.md is its page.

The only part of the SDK that the server imports. `encode` and `decode` speak the binary form, `json` the readable twin.
"""

from teletape_wire.decode import decode_answer, decode_batch
from teletape_wire.encode import encode_answer, encode_batch
from teletape_wire.errors import (
    CorruptFrameError,
    FrameTooLargeError,
    MalformedJsonError,
    UnsupportedVersionError,
    WireError,
)
from teletape_wire.frame import (
    FRAME_TYPE,
    MAX_HEADER,
    PREFIX_LENGTH,
    VERSION,
    Frame,
    FrameKind,
    Prefix,
    Served,
    decode_prefix,
)
from teletape_wire.json import (
    JSON_TYPE,
    PREVIEW,
    answer_to_json,
    attributes_from_json,
    batch_from_json,
    batch_to_json,
    id_from_json,
    input_from_json,
    parse_json,
    step_from_json,
    timestamp,
)
from teletape_wire.tensor_json import tensor_from_json, tensor_to_json

__all__ = [
    "FRAME_TYPE",
    "JSON_TYPE",
    "MAX_HEADER",
    "PREFIX_LENGTH",
    "PREVIEW",
    "VERSION",
    "CorruptFrameError",
    "Frame",
    "FrameKind",
    "FrameTooLargeError",
    "MalformedJsonError",
    "Prefix",
    "Served",
    "UnsupportedVersionError",
    "WireError",
    "answer_to_json",
    "attributes_from_json",
    "batch_from_json",
    "batch_to_json",
    "decode_answer",
    "decode_batch",
    "decode_prefix",
    "encode_answer",
    "encode_batch",
    "id_from_json",
    "input_from_json",
    "parse_json",
    "step_from_json",
    "tensor_from_json",
    "tensor_to_json",
    "timestamp",
]
