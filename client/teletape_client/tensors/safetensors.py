"""Named tensors in one body: the safetensors format (https://github.com/huggingface/safetensors#format)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np

    from teletape_client.tensors.values import Array

SAFETENSORS: Final = "application/vnd.safetensors"
_METADATA: Final = "__metadata__"
_ALIGNMENT: Final = 64  # of the first tensor in the body
#: The format's names of dtypes, by NumPy's.
NAMES: Final = {
    "bool": "BOOL",
    **{f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"U{bits}" for bits in (8, 16, 32, 64)},
    "bfloat16": "BF16",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
}
_DTYPES: Final = {name: dtype for dtype, name in NAMES.items()}


def raw(array: Array) -> memoryview:
    """Returns the elements of an array, row-major and little-endian: without a copy if it lies like that."""
    import numpy as np

    flat = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)).reshape(-1)
    return flat.view(np.uint8).data


def dtype_of(name: str) -> tuple[np.dtype[Any], bool]:
    """Returns the dtype with this name, and whether it has the bits of a bfloat16, which NumPy does not have."""
    import numpy as np

    if name != "bfloat16":
        return np.dtype(name), False
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype("<u2"), True
    return np.dtype(ml_dtypes.bfloat16), False


def array_of(buffer: memoryview, dtype: str, shape: Sequence[int]) -> Array:
    """Returns the array with these elements, a view of the buffer.

    A bfloat16 is a float32 of the same value unless ml_dtypes is installed.
    """
    import numpy as np

    kind, is_bits = dtype_of(dtype)
    flat = np.frombuffer(buffer, kind)
    if is_bits:
        flat = (flat.astype("<u4") << 16).view("<f4")
    return flat.reshape(shape)


def write(tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> bytes:
    """Returns a body with these tensors, all of dtypes in `NAMES`, and texts."""
    header: dict[str, Any] = {_METADATA: dict(metadata)}
    parts: list[memoryview] = []
    position = 0
    for name, array in sorted(tensors.items(), key=lambda item: -item[1].dtype.itemsize):
        parts.append(raw(array))
        end = position + parts[-1].nbytes
        header[name] = {"dtype": NAMES[array.dtype.name], "shape": array.shape, "data_offsets": [position, end]}
        position = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    return b"".join((len(text).to_bytes(8, "little"), text, *parts))


def read(body: bytes) -> tuple[dict[str, Array], dict[str, str]]:
    """Returns the tensors of a body and its texts.

    Raises:
        ValueError: The body is not in the format.
    """
    end = 8 + int.from_bytes(body[:8], "little")
    try:
        header = json.loads(body[8:end])
        texts: dict[str, str] = header.pop(_METADATA, {})
        data = memoryview(bytearray(memoryview(body)[end:]))  # a copy, so that the caller may write to the arrays
        tensors = {
            name: array_of(data[slice(*facts["data_offsets"])], _DTYPES[facts["dtype"]], facts["shape"])
            for name, facts in header.items()
        }
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"this is no safetensors body: {error!r}") from None
    return tensors, texts
