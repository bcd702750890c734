"""Runs every Python program of the pages as pasted, and writes what it prints into the ```text block below it.

`make pages` writes; `scripts/pages.py --check` compares instead and lists what differs. A program is a ```python block.
It runs alone, in an empty namespace, under the file name train.py. A block that begins with `# from PATH: NAME` is not
run: it is the definition of NAME in that file.
"""

import ast
import contextlib
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import teletape as tf

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "graph.svg"
ADDRESS = "http://127.0.0.1:8470"  #: The server of the pages; a test puts its own in this place.
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n(?:\n?```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
_EXCERPT = re.compile(r"# from (\S+): (\w+)\n")
_COMMENT = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)
_FLOAT = re.compile(r"(-?\d+(?:\.\d*(?:e[+-]?\d+)?|e[+-]?\d+))")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        page: The page's path from the repository root.
        line: The line of its opening fence.
        language: What the fence says.
        source: The block's text.
        output: The ```text block directly below it, or None.
    """

    page: str
    line: int
    language: str
    source: str
    output: str | None

    @property
    def is_excerpt(self) -> bool:
        """Whether the block shows a definition of the code, and is no program."""
        return _EXCERPT.match(self.source) is not None

    @property
    def excerpt(self) -> str:
        """What an excerpt must be."""
        match = _EXCERPT.match(self.source)
        assert match, self.source
        return match[0] + definition(ROOT / match[1], match[2])

    @property
    def shown(self) -> list[str]:
        """The lines that the page says the program prints."""
        return _COMMENT.findall(self.source) if self.output is None else self.output.splitlines()


def pages() -> list[str]:
    """Every page of the project, as a path from the repository root."""
    return sorted(
        path.relative_to(ROOT).as_posix()
        for path in [*ROOT.glob("*.md"), *ROOT.glob("client/*.md"), *ROOT.glob("docs/*.md")]
    )


def blocks(page: str, language: str) -> Iterator[Block]:
    """The blocks of a page in one language, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        if match[1] == language:
            yield Block(page, text.count("\n", 0, match.start()) + 1, language, match[2], match[3])


def definition(path: Path, name: str) -> str:
    """The source of a function with its decorators, or of an assignment."""
    text = path.read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        elif isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [name]:
            first = node.lineno
        else:
            continue
        return "".join(line + "\n" for line in text.splitlines()[first - 1 : node.end_lineno])
    raise LookupError(f"{path} defines no {name}")


def run(block: Block, address: str = ADDRESS) -> str:
    """Runs a program in an empty namespace and returns what it prints."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        exec(compile(block.source.replace(ADDRESS, address), "train.py", "exec"), {"__name__": "__main__"})  # noqa: S102  # the project's own pages
    return stream.getvalue()


def picture() -> str:
    """The SVG of the tape in the first program of docs/graph.md, which is docs/graph.svg."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    block = next(blocks("docs/graph.md", "python"))
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(block.source, "train.py", "exec"), namespace)  # noqa: S102  # the project's own page
    svg: str = namespace["tape"].graph(namespace["loss"], namespace["w"]).svg
    return svg


def texts(svg: str) -> list[tuple[str, str]]:
    """The texts and tooltips of a picture: all but the layout, which depends on Graphviz' version."""
    return re.findall(r"<text[^>]*>([^<]*)</text>|xlink:title=\"([^\"]*)\"", svg)


def agree(shown: str, printed: str) -> bool:
    """Whether two lines are equal but for roundings of their floating numbers, which differ between processors.

    Two numbers agree to five digits, or in the line's largest number's seventh digit. Numbers that are printed with the
    same count of decimals, three or more, may differ by one in the last.
    """
    a, b = _FLOAT.split(shown), _FLOAT.split(printed)
    texts = [[text.strip() for text in parts[::2]] for parts in (a, b)]
    largest = max((abs(float(number)) for number in a[1::2]), default=0.0)
    return texts[0] == texts[1] and all(map(partial(_close, largest), a[1::2], b[1::2]))


def shows(printed: str, line: str) -> bool:
    """Whether a line of a page occurs in what a program printed, but for roundings."""
    if line in printed:
        return True
    pattern = _FLOAT.pattern.join(map(re.escape, _FLOAT.split(line)[::2]))
    return any(agree(line, match[0]) for match in re.finditer(pattern, printed))


def _close(largest: float, shown: str, printed: str) -> bool:
    a, b = float(shown), float(printed)
    decimals = {len(number.partition(".")[2]) for number in (shown, printed)}
    last = 1.01 * 10.0 ** -min(decimals) if len(decimals) == 1 and min(decimals) > 2 and "e" not in shown else 0.0
    return abs(a - b) <= max(1e-5 * max(abs(a), abs(b)), 1e-7 * largest, last)


def main() -> int:
    """Writes or compares the printed output of every page; returns the exit status."""
    failures = 0
    for page in pages():
        text = (ROOT / page).read_text(encoding="utf-8")
        for block in blocks(page, "python"):
            if block.is_excerpt and block.excerpt != block.source:
                failures += sys.argv[1:] == ["--check"]
                print(f"{page}:{block.line}: the excerpt has changed")
                text = text.replace(block.source, block.excerpt)
            if block.output is None or block.is_excerpt:
                continue
            with tf.connect(local=True):
                try:
                    printed = run(block)
                except Exception as error:
                    print(f"{page}:{block.line}: {type(error).__name__}: {error}")
                    failures += 1
                    continue
            lines = printed.splitlines()
            if len(lines) != len(block.shown) or not all(map(agree, block.shown, lines)):
                failures += sys.argv[1:] == ["--check"]
                print(f"{page}:{block.line}: prints something else than the page shows")
                fence = f"{block.source}```\n"
                text = text.replace(f"{fence}```text\n{block.output}```", f"{fence}```text\n{printed}```")
        if sys.argv[1:] != ["--check"]:
            (ROOT / page).write_text(text, encoding="utf-8")
    with tf.connect(local=True):
        svg = picture()
    if texts(svg) != texts(PICTURE.read_text(encoding="utf-8")):
        print(f"{PICTURE.name} shows something else")
        failures += sys.argv[1:] == ["--check"]
        if sys.argv[1:] != ["--check"]:
            PICTURE.write_text(svg, encoding="utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
