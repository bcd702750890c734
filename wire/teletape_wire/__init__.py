"""The wire: batches, tensors and answers as binary frames for programs and as JSON for people; see docs/protocol.md.

`encode` and `decode` are the binary form, `json` the readable one. The server and the SDK both import this package.
"""

from teletape_wire.decode import decode_answer, decode_batch, decode_request
from teletape_wire.encode import encode_answer, encode_batch, encode_repeated
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
    large_tensors,
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
    step_from_json,
    timestamp,
)
from teletape_wire.json_text import parse_json, parse_numbers
from teletape_wire.repeats import REPEATED_BATCHES, STRANDS, Repeats
from teletape_wire.structures import Structures
from teletape_wire.tensor_json import (
    array_as_json,
    json_around_arrays,
    numbers_alone,
    specs_in_place_of_tensors,
    tensor_from_data,
    tensor_from_json,
    tensor_from_numbers,
    tensor_to_json,
    write_json,
)

__all__ = [
    "FRAME_TYPE",
    "JSON_TYPE",
    "MAX_HEADER",
    "PREFIX_LENGTH",
    "PREVIEW",
    "REPEATED_BATCHES",
    "STRANDS",
    "VERSION",
    "CorruptFrameError",
    "Frame",
    "FrameKind",
    "FrameTooLargeError",
    "MalformedJsonError",
    "Prefix",
    "Repeats",
    "Served",
    "Structures",
    "UnsupportedVersionError",
    "WireError",
    "answer_to_json",
    "array_as_json",
    "attributes_from_json",
    "batch_from_json",
    "batch_to_json",
    "decode_answer",
    "decode_batch",
    "decode_prefix",
    "decode_request",
    "encode_answer",
    "encode_batch",
    "encode_repeated",
    "id_from_json",
    "input_from_json",
    "json_around_arrays",
    "large_tensors",
    "numbers_alone",
    "parse_json",
    "parse_numbers",
    "specs_in_place_of_tensors",
    "step_from_json",
    "tensor_from_data",
    "tensor_from_json",
    "tensor_from_numbers",
    "tensor_to_json",
    "timestamp",
    "write_json",
]
