"""The page of each problem at /problems/{code}, the `type` of a problem: a section of docs/problems.md."""

from __future__ import annotations

import re
from functools import cache
from html import escape

from fastapi import APIRouter
from starlette.responses import HTMLResponse, RedirectResponse

from teletape_server.pages import markdown
from teletape_server.pages.files import page as static_page
from teletape_server.problems import PROBLEMS, Problem

router = APIRouter(include_in_schema=False)


@router.get("/problems", tags=["page"])
def index() -> RedirectResponse:
    """All problems: the page of the guide."""
    return RedirectResponse("guide/problems")


@router.get("/problems/{code}", tags=["page"])
def page(code: str) -> HTMLResponse:
    """What a problem means, an example, and what to do."""
    if code not in PROBLEMS:
        raise Problem("not_found", f"no problem has the code {code!r}: /guide/problems lists all codes")
    kind = PROBLEMS[code]
    body = (
        f"<article><h1>{kind.title}</h1>"
        f"<p><code>{code}</code>, HTTP status {kind.status}. <a href='../guide/problems'>All problems</a></p>"
        f"{markdown.html(_sections()[code], guide='../guide/')}</article>"
    )
    return static_page("guide", "Guide", root="../", contents={"title": escape(kind.title), "main": body})


@cache
def _sections() -> dict[str, str]:
    """Returns the text of each problem's section, by code."""
    parts = re.split(r"^### `([a-z_]+)`.*\n", markdown.source("problems"), flags=re.MULTILINE)
    return {code: text.partition("\n## ")[0] for code, text in zip(parts[1::2], parts[2::2], strict=True)}
