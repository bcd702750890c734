"""Parameters that several routes take: headers, query and path parameters, with their descriptions."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Header, Path, Query
from starlette.datastructures import Headers

from teletape_server.handlers.bodies import DTYPE_HEADER, SHAPE_HEADER
from teletape_server.problems import Problem

_KEY_LENGTH: Final = 255

Full = Annotated[bool, Query(description="Return every element of a large tensor, not only the first 1000")]
Dtype = Annotated[str | None, Header(alias=DTYPE_HEADER, description="For a binary body: the dtype, such as float32")]
Shape = Annotated[
    str | None,
    Header(alias=SHAPE_HEADER, description="For a binary body: the shape, such as 2,3; empty for a scalar"),
]
IdempotencyKey = Annotated[
    str | None,
    Header(alias="Idempotency-Key", description="A retry with the same key gets the first answer again"),
]

IfMatch = Annotated[
    str | None,
    Header(alias="If-Match", description="An ETag: the request is refused if the variable has another version by now"),
]
IfNoneMatch = Annotated[
    str | None,
    Header(alias="If-None-Match", description="An ETag: GET answers 304 without a body if the version is still this"),
]


def path_id_of(resource: str, example: str) -> Any:
    """Returns the path parameter that holds the id of a `resource`."""
    return Path(description=f"The {resource}'s id; digits alone are an integer id", examples=[example])


def idempotency_key(headers: Headers) -> str | None:
    """Returns a request's Idempotency-Key, or None.

    Raises:
        Problem: invalid_request, if the key is empty or too long.
    """
    key = headers.get("idempotency-key")
    if key is not None and not 0 < len(key) <= _KEY_LENGTH:
        raise Problem("invalid_request", f"an Idempotency-Key has 1 to {_KEY_LENGTH} characters, found {len(key)}")
    return key
