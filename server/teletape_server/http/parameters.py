"""Parameters that several routes take: headers, query and path parameters, with their descriptions."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import Header, Path, Query
from pydantic import AfterValidator
from starlette.datastructures import Headers

from teletape_engine.diagram.histogram import MAX_BINS
from teletape_engine.spec import DTYPES
from teletape_engine.suggestions import with_nearest
from teletape_server.handlers.bodies import DTYPE_HEADER, SHAPE_HEADER
from teletape_server.problems import Problem

_KEY_LENGTH: Final = 255
MOST_LISTED: Final = 10_000  #: Items that a page of a listing may have; without a limit it has all.

Full = Annotated[bool, Query(description="Return every element of a large tensor, not only the first 1000")]
Dtype = Annotated[str | None, Header(alias=DTYPE_HEADER, description="For a binary body: the dtype, such as float32")]
Shape = Annotated[
    str | None,
    Header(alias=SHAPE_HEADER, description="For a binary body: the shape, such as 2,3; empty for a scalar"),
]
NameQuery = Annotated[str | None, Query(description="For a binary body: the id to create")]
ReplaceQuery = Annotated[
    bool | None,
    Query(description="For a binary body: whether the id may be in use or released, and names the new thing then"),
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


def _dtype(name: str | None) -> str | None:
    if name is not None and name not in DTYPES:
        raise ValueError(with_nearest(f"must be one of {', '.join(DTYPES)}; found {name!r}", name, DTYPES))
    return name


Limit = Annotated[int | None, Query(ge=1, le=MOST_LISTED, description="Most items; without it all")]
After = Annotated[str | None, Query(min_length=1, description="Continue after this item: `next` of the page before")]
Prefix = Annotated[str | None, Query(min_length=1, description="Only those whose id begins with this text")]
Kind = Annotated[Literal["tensor", "slices"] | None, Query(description="Only tensors, or only sparse gradients")]
DtypeFilter = Annotated[
    str | None,
    AfterValidator(_dtype),
    Query(min_length=1, description="Only those of this dtype, such as float32"),
]
Several = Annotated[
    list[str] | None,
    Query(description="Ids, the parameter repeated; those that name nothing are skipped", examples=[["old"]]),
]
All = Annotated[bool, Query(description="All of them")]
Bins = Annotated[int, Query(ge=1, le=MAX_BINS, description="Most bins of a histogram")]


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
