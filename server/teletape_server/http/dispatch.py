"""What the routes of values, tapes and functions share: parameters, types, the question to the session's process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Header, Path, Query, Request
from starlette.responses import Response

import teletape_wire as wire
from teletape_server.http.admission import ask, sent_type, wanted_type
from teletape_server.registry import Session
from teletape_server.worker.bodies import DTYPE_HEADER, RAW_TYPE, SHAPE_HEADER

Full = Annotated[bool, Query(description="Every element of a large tensor, not the first 1000")]
Dtype = Annotated[str | None, Header(alias=DTYPE_HEADER, description="Of a raw body, such as float32")]
Shape = Annotated[str | None, Header(alias=SHAPE_HEADER, description="Of a raw body, such as 2,3; empty: a scalar")]
NameQuery = Annotated[str | None, Query(description="Of a raw body: your name for it")]
Once = Annotated[
    str | None,
    Header(alias="Idempotency-Key", description="A retry under the same key gets the first answer again"),
]


def named(what: str, example: str) -> Any:
    """The path parameter that names one `what`."""
    return Path(description=f"The {what}'s id; digits alone are an integer id", examples=[example])


async def exchange(
    request: Request,
    session: Session,
    kind: str,
    *,
    name: str | None = None,
    full: bool = False,
    status: int = 200,
    query: Mapping[str, Any] | None = None,
    raw_answer: bool = False,
) -> Response:
    """Asks the session's process, and answers with what it says.

    Args:
        request: Its body, JSON or (with `query`) a raw tensor, goes unread to the process.
        session: Whose process.
        kind: What is asked.
        name: The id in the path.
        full: Whether JSON shows all of large tensors.
        status: Of the answer.
        query: The other fields of a body that may be a raw tensor; None: it may not.
        raw_answer: Whether the answer may be a raw tensor, if Accept says so.
    """
    sent = (RAW_TYPE, wire.JSON_TYPE) if query is not None else (wire.JSON_TYPE,)
    sendable = (wire.JSON_TYPE, RAW_TYPE) if raw_answer else (wire.JSON_TYPE,)
    params: dict[str, Any] = {
        "id": name,
        "full": full,
        # An answer without a body has no type; browsers ask for that of the problems then.
        "accept": wire.JSON_TYPE if status == 204 else wanted_type(request, sendable, wire.JSON_TYPE),
        "place": request.url.path,
    }
    if query is not None:
        headers = request.headers
        params |= {"query": dict(query), "dtype": headers.get(DTYPE_HEADER), "shape": headers.get(SHAPE_HEADER)}
    has_body = request.method in ("POST", "PUT")
    content_type = sent_type(request, sent) if has_body else ""
    return await ask(request, session, kind, params, content_type=content_type, status=status)
