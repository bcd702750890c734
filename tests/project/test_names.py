"""Names say what they hold, and sentences are plain: words that do neither are counted per folder, and only shrink.

`python tests/project/test_names.py` writes the counts of today into names.json, beside this file. It refuses to write a
count that has grown.
"""

from __future__ import annotations

import ast
import functools
import io
import json
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COUNTS = Path(__file__).with_name("names.json")
TREES = ("engine", "wire", "client", "server", "scripts", "benchmarks", "examples", "tests")

#: As the name of a variable, argument, attribute or function these say nothing about what it is.
VAGUE = frozenset("one found given made told asked held said thing".split())
#: These are fair names of a method or attribute (`tape.kept`), and poor names of a variable.
VAGUE_VARIABLES = VAGUE | {"kept"}

#: In a comment, or the first sentence of a docstring, there is a plainer word: after, also, returns, if, n, computed.
PHRASES = (
    r"behind",
    r"beside",
    r"tells",
    r"told",
    r"asked",
    r"stands?(?! for)",
    r"nobody",
    r"somebody",
    r"so many",
    r"of those that",
    r"where there (?:is|are)",
    r"what (?:is|was) (?:given|asked|made|found|told)",
)
_PHRASE = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b", re.IGNORECASE)


def sources() -> Iterator[tuple[str, Path]]:
    """Every Python file with the folder that it counts for; recorded programs are written as people write them."""
    for tree in TREES:
        for path in sorted((ROOT / tree).rglob("*.py")):
            parts = path.relative_to(ROOT).parts
            if parts[:3] != ("tests", "conformance", "programs"):
                yield "/".join(parts[:-1][:3]), path


def bound_names(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Each name that a file gives to something, and whether it is a variable's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, True
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, False
        elif isinstance(node, ast.arg):
            yield node.arg, True
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, False
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name, True
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname, True


def vague_names(source: str) -> Counter[str]:
    """How often each vague word is given as a name, leading underscores aside."""
    names = ((name.strip("_"), variable) for name, variable in bound_names(ast.parse(source)))
    return Counter(name for name, variable in names if name in (VAGUE_VARIABLES if variable else VAGUE))


def sentences(source: str) -> Iterator[str]:
    """The first paragraph of each docstring, and each comment."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            documentation = ast.get_docstring(node)
            if documentation:
                yield documentation.partition("\n\n")[0]
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def phrases(source: str) -> list[str]:
    """The phrases in a file's docstrings and comments that have a plainer word."""
    return [match.group().lower() for sentence in sentences(source) for match in _PHRASE.finditer(sentence)]


@functools.cache
def counts() -> dict[str, dict[str, int]]:
    """Vague names and phrases per folder; folders without any are left out."""
    names: Counter[str] = Counter()
    wording: Counter[str] = Counter()
    for folder, path in sources():
        if path == Path(__file__):
            continue
        source = path.read_text(encoding="utf-8")
        names[folder] += vague_names(source).total()
        wording[folder] += len(phrases(source))
    return {"names": dict(sorted((+names).items())), "phrases": dict(sorted((+wording).items()))}


def differences(kind: str) -> list[str]:
    """Where the counts of today are not those of names.json."""
    today, allowed = counts()[kind], json.loads(COUNTS.read_text())[kind]
    return [
        f"{folder}: {today.get(folder, 0)} {kind}, names.json says {allowed.get(folder, 0)}"
        for folder in sorted(today.keys() | allowed.keys())
        if today.get(folder, 0) != allowed.get(folder, 0)
    ]


ADVICE = "rename what grew; if all of them shrank: python tests/project/test_names.py"


def test_names_say_what_they_hold() -> None:
    assert not differences("names"), ADVICE


def test_sentences_are_plain() -> None:
    assert not differences("phrases"), ADVICE


def test_every_way_to_bind_a_name_is_seen() -> None:
    source = (
        "def told(one, *given, thing=1, **made):\n    [found for found in one]\n    self._held = kept = 1\n"
        "    self.kept = other.found\n    with x as asked: pass\n    for said in y: pass\n"
        "    try: pass\n    except E as one: pass\nimport a as found\n(made := 2)\nlambda one: 0\n"
    )
    assert vague_names(source) == Counter(
        {
            "one": 3,
            "found": 2,
            "made": 2,
            "given": 1,
            "thing": 1,
            "held": 1,
            "kept": 1,
            "asked": 1,
            "said": 1,
            "told": 1,
        }
    )


def test_phrases_are_seen_in_first_paragraphs_and_comments() -> None:
    source = '"""Tells it.\n\nAn example stands behind."""\n\n# beside the other\nx = "told"\n'
    assert phrases(source) == ["tells", "beside"]


if __name__ == "__main__":
    _today, _allowed = counts(), json.loads(COUNTS.read_text()) if COUNTS.exists() else {}
    _grown = [
        f"{folder}: {count} {kind}, {_allowed[kind].get(folder, 0)} allowed"
        for kind, folders in _today.items()
        if kind in _allowed
        for folder, count in folders.items()
        if count > _allowed[kind].get(folder, 0) and "--force" not in sys.argv
    ]
    if _grown:
        sys.exit("\n".join(_grown))
    COUNTS.write_text(json.dumps(_today, indent=1) + "\n")
