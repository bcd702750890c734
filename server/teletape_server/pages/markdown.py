"""The project's Markdown pages as HTML: links between them kept, links to files that are not served left out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.anchors import anchors_plugin

_PACKAGED: Final = Path(__file__).parents[1] / "docs"
#: The folder of the pages: in the installed package, or in the checkout that is installed as editable.
FOLDER: Final = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).parents[3] / "docs"


class Heading(NamedTuple):
    """A heading of a page: its text, and its anchor."""

    text: str
    anchor: str


class Document(NamedTuple):
    """A page.

    Attributes:
        title: Its first heading, as text.
        html: Its body.
        headings: Those of the second level, in order.
    """

    title: str
    html: str
    headings: Sequence[Heading]


def names() -> list[str]:
    """Returns the names of all pages: their files without .md."""
    return sorted(path.stem for path in FOLDER.glob("*.md"))


def source(name: str) -> str:
    """Returns a page's text.

    Raises:
        FileNotFoundError: There is no such page.
    """
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


@cache
def title(name: str) -> str:
    """Returns the first heading of a page."""
    return source(name).partition("\n")[0].lstrip("# ")


@cache
def document(name: str) -> Document:
    """Returns a page as HTML; a long page takes a tenth of a second the first time.

    Raises:
        FileNotFoundError: There is no such page.
    """
    tokens = _parser().parse(source(name))
    headings = [
        Heading(text.content.replace("`", ""), str(heading.attrs["id"]))
        for heading, text in pairwise(tokens)
        if heading.type == "heading_open" and heading.tag == "h2"
    ]
    return Document(title(name), _parser().renderer.render(tokens, _parser().options, {}), headings)


def html(text: str, *, guide: str) -> str:
    """Returns a piece of a page as HTML.

    Args:
        text: The piece.
        guide: The way from where it is shown to the guide's pages.
    """
    return str(_parser().render(text, {"guide": guide}))


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").use(anchors_plugin, max_level=3, permalink=False)
    parser.core.ruler.push("served_links", _serve_links)
    parser.add_render_rule("table_open", _open_table)
    parser.add_render_rule("table_close", _close_table)
    return parser


def _serve_links(state: Any) -> None:
    """Changes links to other pages into their paths on the server, and drops links to what is not served.

    A link whose text is the name of a file gets the page's title as text.
    """
    guide = state.env.get("guide", "")
    for block in state.tokens:
        shown: list[Token] = []
        dropped = 0
        for token in block.children or ():
            if token.type == "link_open":
                address = _served(str(token.attrs["href"]), guide)
                dropped += address is None
                if address is None:
                    continue
                token.attrs["href"] = address
            elif token.type == "link_close" and dropped:
                dropped -= 1
                continue
            elif token.type == "image":
                token.attrs["src"] = f"{guide}pictures/{token.attrs['src']}"
            elif token.type == "text" and token.content.endswith(".md") and token.content[:-3] in names():
                token.content = title(token.content[:-3])
            shown.append(token)
        if block.children is not None:
            block.children = shown


def _served(address: str, guide: str) -> str | None:
    """Returns the address of a link as the server has it; None if the server does not have it."""
    if re.match(r"https?:|#|/", address):
        return address
    page = re.fullmatch(r"(?:docs/)?([a-z_-]+)\.md(#.*)?", address)
    if page and page[1] in names():
        return guide + page[1] + (page[2] or "")
    return None


def _open_table(renderer: Any, tokens: Sequence[Token], position: int, options: Any, env: Mapping[str, Any]) -> str:
    return '<div class="table"><table>'


def _close_table(renderer: Any, tokens: Sequence[Token], position: int, options: Any, env: Mapping[str, Any]) -> str:
    return "</table></div>"
