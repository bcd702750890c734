"""Safetensors bodies as the safetensors package writes and reads them, and over HTTP."""

import json
from typing import Any

import httpx
import ml_dtypes
import numpy as np
import safetensors
from rest_client import Rest
from safetensors.numpy import save

from serving import ok
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE

Arrays = dict[str, np.ndarray[Any, Any]]
_KINDS = {"F": "float", "I": "int", "U": "uint"}
_DTYPES = {
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "BOOL": np.dtype(bool),
    "C64": np.dtype(np.complex64),
    **{
        name: np.dtype(f"{_KINDS[name[0]]}{name[1:]}")
        for name in (*("F16", "F32", "F64", "I8", "I16", "I32", "I64"), *("U8", "U16", "U32", "U64"))
    },
}


def packed(tensors: Arrays, request: Any = None, **metadata: str) -> bytes:
    """A body as the package writes it."""
    if request is not None:
        metadata["request"] = request if isinstance(request, str) else json.dumps(request)
    return save({name: np.asarray(array, order="C") for name, array in tensors.items()}, metadata or None)


def unpacked(body: bytes) -> tuple[Any, Arrays]:
    """The answer in a body's metadata, and its tensors, as the package reads them."""
    tensors = {name: _array(facts) for name, facts in safetensors.deserialize(body)}
    header = json.loads(body[8 : 8 + int.from_bytes(body[:8], "little")])
    return json.loads(header["__metadata__"]["answer"]), tensors


def _array(facts: Any) -> np.ndarray[Any, Any]:
    return np.frombuffer(bytes(facts["data"]), np.uint8).view(_DTYPES[facts["dtype"]]).reshape(facts["shape"])


def send(
    rest: Rest, place: str, body: bytes, *, method: str = "POST", accept: str | None = None, **headers: str
) -> httpx.Response:
    """Sends a safetensors body."""
    headers |= {"Content-Type": SAFETENSORS_TYPE} | ({} if accept is None else {"Accept": accept})
    return rest.http.request(method, f"{rest.path}/{place}", content=body, headers=headers)


def answered(response: httpx.Response) -> tuple[Any, Arrays]:
    """A safetensors answer."""
    assert ok(response).headers["content-type"] == SAFETENSORS_TYPE
    return unpacked(response.content)
