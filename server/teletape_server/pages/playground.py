"""The playground at /: formulas and programs with their values, gradients and pictures."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse

from teletape_server.pages.files import page

router = APIRouter(include_in_schema=False)


@router.get("/", tags=["page"])
async def playground() -> HTMLResponse:
    """Type a formula, and see its gradient."""
    return page("playground", "Playground")
