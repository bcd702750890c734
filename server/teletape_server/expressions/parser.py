"""From text to a function: limits, the parser, and problems that say what would be right."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, Final

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedToken, VisitError
from lark.tree import Tree

from teletape_server.expressions.compiled import Compiled
from teletape_server.expressions.compiler import compiled
from teletape_server.expressions.faults import Place, fault
from teletape_server.problems import Problem

MOST_CHARACTERS: Final = 4000
MOST_DEPTH: Final = 50  #: Brackets within brackets.

_CLOSING: Final = {"(": ")", "[": "]"}
_PIECE: Final = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|#[^\n]*|[()\[\]\n]")
#: What the parser's terminals are called in problems; one for several that are of a kind.
_WORDS: Final = {
    "NAME": "a name",
    "NUMBER": "a number",
    "TEXT": "a text",
    "LSQB": "[",
    "RSQB": "]",
    "LPAR": "(",
    "RPAR": ")",
    "COMMA": ",",
    "COLON": ":",
    "EQUAL": "=",
    "DOTS": "...",
    "IF": "if",
    "ELSE": "else",
    "AND": "and",
    "OR": "or",
    "_LINE_END": "the end of the line",
    "$END": "the end of the text",
}
_OPERATORS: Final = frozenset(
    {
        *("PLUS", "MINUS", "TIMES", "AT", "DIVIDE", "FLOOR_DIVIDE", "REMAINDER", "POWER"),
        *("COMPARISON", "AND", "OR", "DOT", "IF"),
    }
)
_BEGINS_VALUE: Final = frozenset({"NAME", "NUMBER", "LPAR"})
#: What people write who know another language, and what it is here.
_OTHERWISE: Final = {
    "^": "powers are written with **",
    "&": "logical operators are the words and, or, not",
    "|": "logical operators are the words and, or, not",
    "!": "the negation is the word not",
    "√": "the root is sqrt(…)",
    "×": "products are written with *",
    "·": "products are written with *",
    "−": "the minus sign is -",
    "{": "vectors and matrices are written with [ ]",
    "²": "powers are written with **",
}
_LOOP: Final = "there are no loops: functions work on all elements, and sum, cumsum and einsum add them up"
_NO_MODULES: Final = "every function is there without an import"
#: Words of Python and other languages that mean nothing here, and what to write.
_STATEMENTS: Final = {
    "class": "a text has formulas alone",
    "const": "a line is name = formula",
    "def": "a text has no functions of its own: write the formula, and give its parts names",
    "elif": "a choice is written where(condition, a, b)",
    "for": _LOOP,
    "from": _NO_MODULES,
    "if": "a choice is written where(condition, a, b)",
    "import": _NO_MODULES,
    "lambda": "a text has no functions of its own: write the formula",
    "let": "a line is name = formula",
    "return": "the result is the last line: leave out return",
    "var": "a line is name = formula",
    "while": _LOOP,
}
#: A module before a function or a number, as in np.sin(x), tf.nn.relu(x) and math.pi: it is read over.
_MODULE: Final = re.compile(
    r"(?<![\w.])(np|numpy|jnp|jax|math|scipy|special|torch|tf)\s*\.\s*(?:[A-Za-z_]\w*\s*\.\s*)*(?=[A-Za-z_])(?!T\b)"
)


@cache
def _parser() -> Lark:
    return Lark.open(
        str(Path(__file__).with_name("grammar.lark")), parser="lalr", propagate_positions=True, maybe_placeholders=True
    )


def parse(text: str, dtype: str = "float32") -> Compiled:
    """Returns the function that the text means.

    Args:
        text: Lines of formulas.
        dtype: Of numbers that meet no array: values of inputs, and results of constants alone.

    Raises:
        Problem: invalid_expression, with the line, the column, and what was expected.
    """
    if len(text) > MOST_CHARACTERS:
        end = Place(text, MOST_CHARACTERS, len(text))
        raise fault(end, f"the text has {len(text):,} characters, the limit is {MOST_CHARACTERS:,}")
    prepared = _prepared(text)
    if not prepared.strip(" \t\r\n;"):
        raise fault(Place(text, 0, len(text)), "there is no expression; write for example y = sin(x) * x")
    try:
        tree: Tree[Any] = _parser().parse(prepared)
    except UnexpectedCharacters as error:
        unexpected: Any = error  # lark's types say that its offset is None
        start = int(unexpected.pos_in_stream)
        place = Place(text, start, start + 1)
        character = text[place.start]
        hint = _OTHERWISE.get(character)
        message = f"found {character!r}: {hint}" if hint else f"the character {character!r} has no meaning here"
        raise fault(place, message, found=character, expected=_words(error.allowed or set())) from None
    except UnexpectedToken as error:
        raise _unexpected(text, error) from None
    taken = set(re.findall(r"[A-Za-z_]\w*", text))
    try:
        return compiled(tree, text, taken, dtype)
    except VisitError as error:
        if isinstance(error.orig_exc, Problem):
            raise error.orig_exc from None
        raise


def _prepared(text: str) -> str:
    """Returns the text with spaces for comments, modules, and line breaks inside brackets; offsets stay the same."""
    assigned = set(re.findall(r"\b([A-Za-z_]\w*)[ \t]*=(?!=)", text))

    def without_modules(code: str) -> str:
        return _MODULE.sub(lambda match: match[0] if match[1] in assigned else " " * len(match[0]), code)

    pieces: list[str] = []
    open_brackets: list[tuple[str, int]] = []
    position = 0
    for match in _PIECE.finditer(text):
        pieces.append(without_modules(text[position : match.start()]))
        position = match.end()
        piece = match[0]
        if piece in _CLOSING:
            open_brackets.append((piece, match.start()))
            if len(open_brackets) > MOST_DEPTH:
                raise fault(
                    Place(text, match.start(), match.end()),
                    f"brackets are nested more than {MOST_DEPTH} deep: give a part of the expression a name",
                )
        elif piece in (")", "]") and open_brackets:
            open_brackets.pop()
        pieces.append(" " * len(piece) if piece[0] == "#" or (piece == "\n" and open_brackets) else piece)
    if open_brackets:
        # The parser would name the end of the text, which is far from the bracket.
        [bracket, start] = open_brackets[-1]
        raise fault(Place(text, start, start + 1), f"this {bracket} is never closed", expected=[_CLOSING[bracket]])
    return "".join((*pieces, without_modules(text[position:])))


def _unexpected(text: str, error: UnexpectedToken) -> Problem:
    token = error.token
    at_end = token.type == "$END"
    start = len(text.rstrip()) if at_end else token.start_pos or 0
    place = Place(text, start, start if at_end else token.end_pos or start)
    expected = _words(error.accepts or error.expected)
    token_text = "the end of the text" if at_end else "the end of the line" if token.type == "_LINE_END" else str(token)
    shown = token_text if token_text.startswith("the end") else repr(token_text)
    message = f"expected {_listed(expected)}; found {shown}"
    before = text[:start].rstrip()
    last_word = re.search(r"[A-Za-z_]\w*$", before)
    hint = _STATEMENTS.get(str(token)) or (_STATEMENTS.get(last_word[0]) if last_word else None)
    if token == "=" and before.endswith(("+", "-", "*", "/")):
        hint = f"write name = name {before[-1]} …"
    elif token == "=":
        hint = "two values are compared with =="
    elif hint is None and token.type in _BEGINS_VALUE and re.search(r"[\w)\]]$", before):
        hint = "products are written with *"
    if hint:
        message += f": {hint}"
    return fault(place, message, found=token_text, expected=expected)


def _words(terminals: set[str]) -> list[str]:
    """Returns what the terminals are called, the most helpful first."""
    rest = set(terminals)
    words = []
    if rest >= _BEGINS_VALUE:
        words.append("a name, a number, ( or [" if "LSQB" in rest else "a name, a number or (")
        rest -= _BEGINS_VALUE | {"LSQB", "TEXT", "PLUS", "MINUS", "NOT"}
    if len(rest & _OPERATORS) > 1:
        words.append("an operator")
        rest -= _OPERATORS | {"LSQB"}
    known = [word for terminal, word in _WORDS.items() if terminal in rest]
    return words + known + sorted(terminal for terminal in rest if terminal not in _WORDS)


def _listed(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
