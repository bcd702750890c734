"""The safetensors format: its media type, dtypes and limits.

Eight bytes (the header's length, little-endian), the header (JSON, padded with spaces), the elements of all tensors
without gaps. The format is described at https://github.com/huggingface/safetensors#format.
"""

from __future__ import annotations

from typing import Final

from teletape_engine.spec import DTYPES

SAFETENSORS_TYPE: Final = "application/vnd.safetensors"
#: Bytes of the largest header that is read: that of a request, with the JSON that travels in it.
MAX_HEADER: Final = 16 << 20
#: Tensors of one body.
MAX_TENSORS: Final = 16_384
LENGTH_WIDTH: Final = 8
#: The header's member that holds texts by name.
METADATA: Final = "__metadata__"

_NAMES: Final = {
    "BOOL": "bool",
    **{f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "BF16": "bfloat16",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
}
#: The dtypes by the format's names.
DTYPE_OF: Final = {name: DTYPES[dtype] for name, dtype in _NAMES.items() if dtype in DTYPES}
#: The format's names by dtype.
NAME_OF: Final = {dtype: name for name, dtype in DTYPE_OF.items()}
