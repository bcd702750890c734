"""The files of the pages, and the headers that limit what a page may do in a browser.

Each page has a folder in `static/`; `shared/` has what several pages use, `vendor/` libraries of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles

#: The folder of all files that browsers get; mounted at /static.
FOLDER: Final = Path(__file__).parents[1] / "static"


class _Files(StaticFiles):
    """Files that a browser may keep, and asks about each time: a new version of the server may have others."""

    def file_response(self, *arguments: Any, **named: Any) -> Response:
        response = super().file_response(*arguments, **named)
        response.headers["Cache-Control"] = "no-cache"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response


static: Final = _Files(directory=FOLDER)

_PACKAGED: Final = FOLDER / "client"
#: The JavaScript client, in the installed package or in the checkout that is installed as editable; mounted at
#: /static/client, so that a page imports it from the server that it calls.
client: Final = _Files(directory=_PACKAGED if _PACKAGED.is_dir() else Path(__file__).parents[3] / "client/js/src")

#: The pages that the header of every page links to, path by name; the icon links to the first.
PAGES: Final = {"Playground": "./", "Published": "published", "Console": "console", "API": "docs", "Guide": "guide"}
#: What a page may load, by kind: its own server's files alone, and no script or style inside its text.
_ALLOWED: Final = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}


def page_headers(allowed: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns the headers of a page.

    Args:
        allowed: Directives of the Content-Security-Policy that differ from those of other pages.
    """
    return {
        "Content-Security-Policy": "; ".join(
            f"{kind} {sources}" for kind, sources in {**_ALLOWED, **(allowed or {})}.items()
        ),
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-cache",
    }


def header(current: str, *, root: str = "") -> str:
    """Returns the HTML of the header: the pages, with the current one marked.

    Args:
        current: A name in `PAGES`.
        root: The way from the page to the server's root: "" or "../".
    """
    links = "".join(
        f'<a href="{root}{path}"{" aria-current=page" if name == current else ""}>{name}</a>'
        for name, path in PAGES.items()
    )
    first = root + next(iter(PAGES.values()))
    icon = f'<img src="{root}static/shared/icon.svg" alt="" width="22" height="22">'
    return (
        f'<header class="site"><a class="brand" href="{first}">{icon} Teletape</a>'
        f'<nav aria-label="Pages">{links}</nav></header>'
    )


def page(
    name: str,
    current: str,
    *,
    root: str = "",
    contents: Mapping[str, str] | None = None,
    allowed: Mapping[str, str] | None = None,
) -> HTMLResponse:
    """Returns the page in a folder of `static/`: its file page.html, with what stands for `<!-- mark -->` filled in.

    Args:
        name: The folder.
        current: The page's name in `PAGES`.
        root: The way from the page to the server's root: "" or "../"; fills the mark `root`.
        contents: HTML by mark. The header fills the mark `header`.
        allowed: As for `page_headers`.
    """
    text = (FOLDER / name / "page.html").read_text(encoding="utf-8")
    for mark, content in {"root": root, "header": header(current, root=root), **(contents or {})}.items():
        text = text.replace(f"<!-- {mark} -->", content)
    return HTMLResponse(text, headers=page_headers(allowed))
