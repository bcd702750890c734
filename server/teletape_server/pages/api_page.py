"""The API page at /docs: Swagger UI over the server's OpenAPI document."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from teletape_server.pages.files import page

router = APIRouter(include_in_schema=False)


@router.api_route("/openapi.json", methods=["GET", "HEAD"], tags=["page"])
async def document(request: Request) -> Response:
    """The OpenAPI document, written when the server started: that takes a third of a second."""
    return Response(request.app.state.document, media_type="application/json")


@router.get("/docs", tags=["page"])
async def api_page() -> HTMLResponse:
    """Every operation, to be tried from top to bottom."""
    return page("api", "API", allowed={"style-src": "'self' 'unsafe-inline'"})  # Swagger UI sets styles on elements
