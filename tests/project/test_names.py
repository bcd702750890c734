"""Names say what they hold, and sentences are plain: no file has a word that does neither."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TREES = ("engine", "wire", "client", "server", "scripts", "benchmarks", "reliability", "examples", "tests")

#: As the name of a variable, argument, attribute or function these say nothing about what it is.
VAGUE = frozenset("one found given made told asked held said thing beside behind".split())
#: These are fair names of a method or attribute (`tape.kept`), and poor names of a variable.
VAGUE_VARIABLES = VAGUE | {"kept"}

#: Python's name for the method that returns the place in a file.
FILES_METHOD = "tell"

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
#: Words of a longer name that have a plainer one.
_WORDS = re.compile(r"(?:^|_)(tells?|told|behind|beside)(?:_|$)")
_PHRASE = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b", re.IGNORECASE)
#: As the first word of a docstring: the sentence then has to be read twice to see what is described.
_OPAQUE_OPENING = re.compile(r"(?:What|As|Who|Those|That)\b(?!')")
_AFTER_SIGN = re.compile(rf"#.*{_PHRASE.pattern}", re.IGNORECASE)


def sources(tree: str) -> Iterator[Path]:
    """The tree's Python files; recorded programs are written as people write them."""
    for path in sorted((ROOT / tree).rglob("*.py")):
        if path != Path(__file__) and path.relative_to(ROOT).parts[:3] != ("tests", "conformance", "programs"):
            yield path


def bound_names(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Each name that a file gives to something, and whether it is a variable's.

    Most of the time of these tests is this walk, so it is not `ast.walk`, which takes twice as long.
    """
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                yield node.id, True
            continue
        if isinstance(node, ast.Attribute):
            if isinstance(node.ctx, ast.Store):
                yield node.attr, False
        elif isinstance(node, ast.arg):
            yield node.arg, True
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, False
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name, True
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname, True
        for part in node.__dict__.values():
            if isinstance(part, list):
                nodes += [each for each in part if isinstance(each, ast.AST)]
            elif isinstance(part, ast.AST) and part._fields:  # the others are operators and contexts
                nodes.append(part)


def vague_names(tree: ast.AST) -> Counter[str]:
    """How often each vague name is bound, leading underscores aside."""
    names = [(name.strip("_"), variable) for name, variable in bound_names(tree)]
    return Counter(
        name
        for name, variable in names
        if name in (VAGUE_VARIABLES if variable else VAGUE)
        or (_WORDS.search(name) and (variable or name != FILES_METHOD))
    )


def sentences(source: str, tree: ast.AST) -> Iterator[str]:
    """The first paragraph of each docstring, and each comment of a file where a number sign comes before a phrase."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            documentation = ast.get_docstring(node)
            if documentation:
                yield documentation.partition("\n\n")[0]
    if not _AFTER_SIGN.search(source):
        return  # tokens take longer than all the rest
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def phrases(source: str, tree: ast.AST) -> list[str]:
    """The phrases in a file's docstrings and comments that have a plainer word."""
    if not _PHRASE.search(source):
        return []  # most files: to look for their docstrings takes as long as to read them
    return [match.group().lower() for sentence in sentences(source, tree) for match in _PHRASE.finditer(sentence)]


def openings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The line and the first word of each docstring that begins with a relative clause, or compares before it names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match = _OPAQUE_OPENING.match(ast.get_docstring(node) or "")
            if match:
                yield getattr(node, "lineno", 1), match.group()


@pytest.mark.parametrize("folder", TREES)
def test_names_say_what_they_hold_and_sentences_are_plain(folder: str) -> None:
    vague, odd = {}, {}
    for path in sources(folder):
        source = path.read_text("utf-8")
        tree = ast.parse(source)
        if names := vague_names(tree):
            vague[str(path)] = dict(names)
        if words := phrases(source, tree):
            odd[str(path)] = words
    assert not vague, "call each by the noun that says what it holds"
    assert not odd, "say it in plainer words: after, also, returns, if, n, computed"


@pytest.mark.parametrize("package", ["teletape", "teletape_client"])
def test_docstrings_of_the_sdk_begin_with_what_they_describe(package: str) -> None:
    """Editors show the first line alone: "Returns the cotangent …", "The op's spec …", "Like f, …"."""
    opaque = {
        f"{path}:{line}": words
        for path in sorted((ROOT / "client" / package).rglob("*.py"))
        for line, words in openings(ast.parse(path.read_text("utf-8")))
    }
    assert not opaque, "begin with a verb (Returns, Raises, Sets) or with a noun"


def test_an_opening_is_seen_in_every_docstring() -> None:
    source = (
        '"""What it holds."""\nclass A:\n    """Those that wait."""\n    def f(self):\n        """As g."""\n'
        '    async def g(self):\n        """Who asks."""\n    def h(self):\n        """Asserts; Whatever, That\'s."""\n'
    )
    assert list(openings(ast.parse(source))) == [(1, "What"), (2, "Those"), (4, "As"), (6, "Who")]


def test_every_way_to_bind_a_name_is_seen() -> None:
    source = (
        "def what_tells(one, *given, thing=1, **made):\n    [found for found in one]\n    self._held = kept = 1\n"
        "    self.kept = other.found\n    with x as asked: pass\n    for said in y: pass\n"
        "    try: pass\n    except E as one: pass\nimport a as found\n(made := 2)\nlambda one: 0\n"
    )
    assert vague_names(ast.parse(source)) == Counter(
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
            "what_tells": 1,
        }
    )


def test_phrases_are_seen_in_first_paragraphs_and_comments() -> None:
    source = '"""Tells it.\n\nAn example stands behind."""\n\n# beside the other\nx = "told"\n'
    assert phrases(source, ast.parse(source)) == ["tells", "beside"]


def test_each_class_of_the_engine_and_of_the_wire_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = {}
    for path in sorted([*(ROOT / "engine").rglob("*.py"), *(ROOT / "wire").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
