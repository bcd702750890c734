"""Reads the body of a request into a model: JSON, the bytes of one tensor, or named tensors (safetensors)."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable
from typing import Any, Final, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError

from teletape_engine.commands import Id
from teletape_engine.errors import TeletapeError
from teletape_engine.spec import BOOL, dtype_of
from teletape_server.handlers.methods import Request
from teletape_server.models.base import GENERATED, MAX_FAULTS, Results
from teletape_server.models.faults import described_faults, path_text, text_of
from teletape_server.tensor_files.errors import InvalidRequestError as InvalidRequestError
from teletape_server.tensor_files.metadata import REQUEST
from teletape_server.tensor_files.requests import request_fields
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE
from teletape_wire.safetensors.reader import TensorFile, read_file
from teletape_wire.tensors import MAX_DIMS

RAW_TYPE: Final = "application/octet-stream"
DTYPE_HEADER: Final = "Tensor-Dtype"
SHAPE_HEADER: Final = "Tensor-Shape"

Model = TypeVar("Model", bound=BaseModel)


def read(request: Request, model: type[Model]) -> Model:
    """Returns the body as `model`. A binary tensor is its `value`, and the query its other fields.

    Raises:
        MalformedJsonError: The body is not JSON.
        MalformedSafetensorsError: It is not in the safetensors format.
        InvalidRequestError: The body does not fit the model, or a binary tensor lacks dtype or shape.
    """
    return validated(model, fields_of(request, model))


def fields_of(request: Request, model: type[BaseModel], file: TensorFile | None = None) -> Any:
    """Returns the body's fields, which are not compared with `model`, but for their names; see `read`.

    Args:
        request: The request.
        model: Of its body.
        file: The body, if it is one of named tensors, and was read.
    """
    query = {name: value for name, value in request.params.get("query", {}).items() if value is not None}
    request_text = request.params.get(REQUEST)
    if request.content_type == SAFETENSORS_TYPE:
        file = file or read_file(request.body, copy_below=request.copy_below)
        return request_fields(file, model.model_fields, query, request_text)
    if request_text is not None:
        raise InvalidRequestError(f"{REQUEST}: this query parameter belongs to a body of the type {SAFETENSORS_TYPE}")
    if request.content_type == RAW_TYPE:
        return query | {"value": _binary_tensor(request)}
    if query:
        raise InvalidRequestError(
            f"the query parameters {', '.join(query)} belong to a binary body; in JSON they are fields of the body"
        )
    return request.json()


def validated(model: type[Model], fields: Any, *path: str | int) -> Model:
    """Returns `fields` as `model`; `path` leads to them in the whole body.

    Raises:
        InvalidRequestError: They do not fit the model.
    """
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise _invalid(error, path, model, is_empty=fields == {} and not path) from None


def _invalid(
    error: ValidationError, path: tuple[str | int, ...], model: type[BaseModel], *, is_empty: bool
) -> TeletapeError:
    """Returns the error to raise: a wrong tensor's own if it is the first fault, else one that lists the fields."""
    errors = error.errors(include_url=False)
    cause = errors[0].get("ctx", {}).get("error")
    if isinstance(cause, TeletapeError):
        place = path_text(*path, *errors[0]["loc"])
        return type(cause)(f"{place}: {cause.message}", **cause.details)
    faults = described_faults(errors[:MAX_FAULTS], path, model=model)
    if is_empty and any(fault["kind"] == "missing" for fault in faults):
        return InvalidRequestError(f"the body is empty; {text_of(faults)}", fields=faults)
    return InvalidRequestError(text_of(faults), fields=faults)


def _binary_tensor(request: Request) -> np.ndarray[Any, Any]:
    """Returns the body as an array: a view of it if it is large.

    Raises:
        InvalidRequestError: dtype or shape is missing, or does not fit the body.
    """
    dtype_header, shape_header = request.params["dtype"], request.params["shape"]
    if dtype_header is None or shape_header is None:
        raise InvalidRequestError(
            f"a binary tensor needs the headers {DTYPE_HEADER} (such as float32) and {SHAPE_HEADER} (such as 2,3; "
            f"empty for a scalar); found {DTYPE_HEADER}: {dtype_header!r}, {SHAPE_HEADER}: {shape_header!r}"
        )
    dtype, text = dtype_of(dtype_header), shape_header.strip()
    lengths = text.split(",") if text else []
    if not all(is_integer(length.strip()) for length in lengths) or len(lengths) > MAX_DIMS:
        raise InvalidRequestError(
            f"{SHAPE_HEADER} has at most {MAX_DIMS} lengths separated by commas, such as 2,3; found {text!r:.80}"
        )
    shape = tuple(map(int, lengths))
    expected, length = math.prod(shape) * dtype.itemsize, len(request.body)
    if expected != length:
        raise InvalidRequestError(f"{dtype.name}{list(shape)} takes {expected} bytes, the body has {length}")
    flat = np.frombuffer(request.body, np.uint8)
    if dtype is BOOL and length and flat.max() > 1:
        raise InvalidRequestError(f"dtype bool has only the bytes 0 and 1, found {flat.max()}")
    try:
        array = (flat.copy() if length < request.copy_below else flat).view(dtype).reshape(shape)
    except ValueError:
        raise InvalidRequestError(f"no array can have the shape {list(shape)}") from None
    array.flags.writeable = False
    return array


def path_id(text: str) -> Id:
    """Returns the id in a path: digits are an integer id, everything else a name, more digits than one has too."""
    return int(text) if is_integer(text) else text


def is_integer(text: str) -> bool:
    """Returns whether a text is a whole number from 0 that fits into 64 bits."""
    return text.isascii() and text.isdecimal() and len(text) < 20


def new_id() -> str:
    """Returns an id that the server generates."""
    return GENERATED + secrets.token_hex(6)


def lasting_ids(outputs: Iterable[Id], body: Results) -> dict[Id, None]:
    """Returns the ids of a request's results that stay after it, each once, in their order.

    Raises:
        InvalidRequestError: `keep` names what is no result.
    """
    created = dict.fromkeys(outputs)
    if body.keep is None:
        return {} if body.scratch else created
    unknown = [id for id in body.keep if id not in created]
    if unknown:
        names = [str(id) for id in created if not str(id).startswith(GENERATED)]
        text = (
            f"ids among this request's results ({', '.join(names[:20]) or 'none has an id of yours'}); found "
            f"{', '.join(unknown[:20])}"
        )
        raise InvalidRequestError(f"keep: {text}", fields=[{"field": "keep", "message": text}])
    return dict.fromkeys(body.keep)
