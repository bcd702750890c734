"""The console at /console: sessions, what runs in them, and their tapes."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse

from teletape_server.pages.files import page

router = APIRouter(include_in_schema=False)


@router.get("/console", tags=["page"])
async def console() -> HTMLResponse:
    """Your sessions; for an admin those of all keys."""
    return page("console", "Console")
