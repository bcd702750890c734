"""The API page at /docs: Swagger UI over the server's OpenAPI document."""

from __future__ import annotations

import asyncio
from html import escape

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import HTMLResponse, Response

from teletape_server.http.negotiation import entity_tag
from teletape_server.http.openapi import document as openapi
from teletape_server.pages.files import page

router = APIRouter(include_in_schema=False)


@router.get("/openapi.json", tags=["page"])
async def document(request: Request) -> Response:
    """The OpenAPI document, written when the server started: that takes a third of a second."""
    return _cacheable(request.app.state.document, "application/json")


@router.get("/openapi.yaml", tags=["page"])
async def yaml_document(request: Request) -> Response:
    """The same document in YAML, written once, at the first request, for all who wait for it then."""
    state = request.app.state
    if state.yaml is None:
        state.yaml = asyncio.ensure_future(asyncio.to_thread(openapi.yaml_text, request.app))
    return _cacheable(await asyncio.shield(state.yaml), "application/yaml")


def _cacheable(text: bytes, media_type: str) -> Response:
    return Response(text, media_type=media_type, headers={"Cache-Control": "no-cache", "ETag": entity_tag(text)})


@router.get("/docs", tags=["page"])
async def api_page(request: Request) -> HTMLResponse:
    """Every operation, to be tried from top to bottom."""
    return page(
        "api",
        "API",
        contents={
            "keys": "keys" if request.app.state.keys else "no-keys",
            "main": _operations(request.app),
        },
        allowed={"style-src": "'self' 'unsafe-inline'"},  # Swagger UI sets styles on elements
    )


def _operations(app: FastAPI) -> str:
    """Returns a list of all operations: shown at once, and read by browsers without scripts."""
    document = app.openapi()
    sections = {tag["name"]: "" for tag in document["tags"]}
    for path, method, operation in openapi.operations(document):
        sections[operation["tags"][-1]] += (
            f'<li><span class="method">{method.upper()}</span> <code>{path}</code> {escape(operation["summary"])}</li>'
        )
    parts = "".join(f"<h2>{name}</h2><ul>{entries}</ul>" for name, entries in sections.items())
    return f'<div class="operations"><h1>Teletape: the API</h1>{parts}</div>'
