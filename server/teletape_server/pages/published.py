"""The page of published functions at /published: what each takes, a form that calls it, and a plot."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse

from teletape_server.pages.files import page

router = APIRouter(include_in_schema=False)


@router.get("/published", tags=["page"])
async def published() -> HTMLResponse:
    """The functions that you may call; the one after # is open."""
    return page("published", "Published")
