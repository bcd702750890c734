"""The guide at /guide: the pages of docs/, readable without the repository."""

from __future__ import annotations

import re
from html import escape
from typing import Final

from fastapi import APIRouter
from starlette.responses import FileResponse, HTMLResponse

from teletape_server.pages import markdown
from teletape_server.pages.files import page as static_page
from teletape_server.problems import Problem

router = APIRouter(include_in_schema=False)

#: The pages by subject, in the order in which a newcomer reads them. A page that is not here comes under "More".
CONTENTS: Final = {
    "Start": ("concepts", "rest", "browser", "clients", "sessions"),
    "Gradients": ("derivatives", "explain", "graph", "forward-mode", "sparse", "check_gradients"),
    "Functions": ("functions", "training", "control-flow"),
    "Over HTTP": ("binary", "web", "problems", "protocol", "limits"),
    "From Python": ("service-client", "laziness", "custom-gradients", "python-calls", "compatibility", "examples"),
    "Reference": ("reference", "glossary"),
    "Running it": ("deploy", "operate", "reliability", "benchmarks"),
}


@router.get("/guide", tags=["page"])
def contents() -> HTMLResponse:
    """The pages by subject."""
    sections = "".join(
        f"<section><h2>{subject}</h2><ul>{''.join(_entry(name) for name in names)}</ul></section>"
        for subject, names in _contents().items()
    )
    return _guide("Guide", f'<h1>Guide</h1><div class="contents">{sections}</div>', root="")


@router.get("/guide/{name}", tags=["page"])
def page(name: str) -> HTMLResponse:
    """One page of the guide."""
    if name not in markdown.names():
        raise Problem("not_found", f"the guide has no page {name!r}: /guide lists all pages")
    document = markdown.document(name)
    headings = "".join(f'<li><a href="#{head.anchor}">{escape(head.text)}</a></li>' for head in document.headings)
    aside = f'<nav class="headings" aria-label="On this page"><ul>{headings}</ul></nav>' if headings else ""
    return _guide(document.title, f"{aside}<article>{document.html}</article>", root="../", current=name)


@router.get("/guide/pictures/{name}", tags=["page"])
def picture(name: str) -> FileResponse:
    """A picture of the guide's pages."""
    if not re.fullmatch(r"[a-z-]+\.(svg|png)", name) or not (markdown.FOLDER / name).is_file():
        raise Problem("not_found", f"the guide has no picture {name!r}")
    return FileResponse(markdown.FOLDER / name, headers={"X-Content-Type-Options": "nosniff"})


def _contents() -> dict[str, list[str]]:
    """Returns the names of all pages that there are, by subject."""
    existing = markdown.names()
    listed = {subject: [name for name in names if name in existing] for subject, names in CONTENTS.items()}
    more = [name for name in existing if not any(name in names for names in listed.values())]
    return listed | ({"More": more} if more else {})


def _entry(name: str, *, root: str = "guide/", current: str = "") -> str:
    mark = " aria-current=page" if name == current else ""
    return f'<li><a href="{root}{name}"{mark}>{escape(markdown.title(name).replace("`", ""))}</a></li>'


def _guide(title: str, main: str, *, root: str, current: str = "") -> HTMLResponse:
    links = "".join(
        f"<h2>{subject}</h2><ul>{''.join(_entry(name, root='', current=current) for name in names)}</ul>"
        for subject, names in _contents().items()
    )
    menu = f'<details class="menu"><summary>All pages</summary><nav aria-label="Guide">{links}</nav></details>'
    return static_page(
        "guide", "Guide", root=root, contents={"title": escape(title), "main": (menu if current else "") + main}
    )
