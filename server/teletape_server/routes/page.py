"""The API page: Swagger UI from this server's own files, so that a browser asks no other host for anything."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles

router = APIRouter(include_in_schema=False)

_FOLDER: Final = Path(__file__).parents[1] / "static"
#: What the page's scripts, styles and pictures are; to be mounted at /docs/static.
static = StaticFiles(directory=_FOLDER)

#: Swagger UI sets styles on elements and draws icons from data: addresses; nothing else needs leave.
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


@router.api_route("/openapi.json", methods=["GET", "HEAD"], tags=["page"])
async def document(request: Request) -> Response:
    """The OpenAPI document, written when the server started: that takes a third of a second."""
    return Response(request.app.state.document, media_type="application/json")


@router.get("/docs", tags=["page"])
async def page() -> HTMLResponse:
    """Every operation, to be tried from top to bottom."""
    return HTMLResponse((_FOLDER / "page.html").read_bytes(), headers=_HEADERS)
