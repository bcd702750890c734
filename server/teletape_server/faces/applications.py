"""The applications of faces: how they find the server's state, who may call, and how they refuse."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel
from starlette.datastructures import Headers, MutableHeaders, State
from starlette.exceptions import HTTPException

import teletape_wire as wire
from teletape_server import version
from teletape_server.faces.calls import Caller, ClientGone
from teletape_server.http.access import authenticated, registry_of, settings_of
from teletape_server.http.bodies import declared_length, whole_body
from teletape_server.http.negotiation import body_type
from teletape_server.problems import Problem, refusal_of

Work: TypeAlias = Callable[[Caller, bytes], Awaitable[Response]]
Refuse: TypeAlias = Callable[[Problem], Response]


def face(
    state: State,
    path: str,
    title: str,
    description: str,
    refuse: Refuse,
    *,
    has_document: bool = True,
    models: Sequence[type[BaseModel]] = (),
) -> FastAPI:
    """Returns the application of a face without its operations.

    Args:
        state: Of the server: a mounted application has one of its own, where nothing would be found.
        path: Where it is mounted.
        title: For its document.
        description: For its document.
        refuse: Returns a problem as the protocol has it.
        has_document: Whether FastAPI's document is that of the face, at /openapi.json below it.
        models: Bodies of requests, which become components of the document.
    """
    app = FastAPI(
        title=title,
        description=description,
        version=version(),
        docs_url=None,
        openapi_url="/openapi.json" if has_document else None,
        redoc_url=None,
        servers=[{"url": path}],
        redirect_slashes=False,
    )
    app.state = state
    document_of_routes = app.openapi

    def document() -> dict[str, Any]:
        whole = document_of_routes()
        components = whole.setdefault("components", {}).setdefault("schemas", {})
        for model in models:
            schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
            components |= {**schema.pop("$defs", {}), model.__name__: schema}
        return whole

    app.openapi = document  # type: ignore[method-assign]  # FastAPI documents this override

    async def on_http_error(request: Request, error: Any) -> Response:
        path = request.url.path
        if error.status_code == 405:
            return refuse(Problem("method_not_allowed", f"{path} has no {request.method}", headers=error.headers))
        return refuse(Problem("not_found", f"there is nothing at {path}: {title} has {', '.join(_paths(app))}"))

    app.add_exception_handler(HTTPException, on_http_error)
    return app


def _paths(app: FastAPI) -> list[str]:
    return sorted(app.openapi()["paths"])


def answering(work: Work, refuse: Refuse) -> Callable[[Request], Awaitable[Response]]:
    """Returns the endpoint of an operation.

    Args:
        work: Returns the answer to the caller's body.
        refuse: Returns a problem as the protocol has it.
    """

    async def answer(request: Request) -> Response:
        try:
            principal = await authenticated(_with_key(request))
            length = declared_length(request.headers, settings_of(request).max_body, wire.JSON_TYPE)
            body_type(request.headers, (_media_type(request.headers),))  # of any type, and not compressed
            with registry_of(request).bodies.admit(principal.owner, length):
                content = await whole_body(request, length)
                return await work(Caller(request, principal), content)
        except ClientGone:
            return Response(status_code=204)
        except Exception as error:  # a defect too is answered as the protocol has it, and is logged
            return refuse(refusal_of(error, request.state.request_id))

    return answer


def _media_type(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _with_key(request: Request) -> Request:
    """Returns a request whose key is in a header that the server knows.

    Some clients can send none but that of a URL's http://any:KEY@host: Basic authentication with the key as password.
    """
    headers = request.headers
    scheme, _, text = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic" or "x-api-key" in headers:
        return request
    try:
        key = base64.b64decode(text, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return request
    scope = {**request.scope, "headers": [*request.scope["headers"]]}
    MutableHeaders(scope=scope)["x-api-key"] = key
    return Request(scope, request.receive)
