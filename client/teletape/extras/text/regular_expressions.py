r"""Translates RE2's regular expressions, which `tf.strings` takes, to Python's.

They differ in meaning: in RE2 `\d`, `\w`, `\s` and `\b` match only ASCII, `$` is the end of the text and not a line
break before it, and there are named classes: `[[:alpha:]]`, `\pL`.
"""

from __future__ import annotations

import functools
import re
import string
import sys
import unicodedata
from typing import Final

from teletape_engine.errors import InvalidArgumentError

_LAST: Final = sys.maxunicode
_ALL: Final = ((0, _LAST),)

Ranges = tuple[tuple[int, int], ...]  #: First and last code points, ascending.


def _of(characters: str) -> Ranges:
    return _joined([(ord(character), ord(character)) for character in characters])


def _joined(ranges: list[tuple[int, int]]) -> Ranges:
    """Returns ranges in ascending order, with neighbours merged."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return tuple(joined)


def _others(ranges: Ranges) -> Ranges:
    """Returns the complement of the ranges."""
    others, next_point = [], 0
    for first, last in ranges:
        if first > next_point:
            others.append((next_point, first - 1))
        next_point = last + 1
    return (*others, (next_point, _LAST)) if next_point <= _LAST else tuple(others)


def _written(ranges: Ranges) -> str:
    """Returns ranges in the syntax between brackets."""
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


#: `\d` and the other classes of one letter.
_LETTERS: Final = {
    "d": _of(string.digits),
    "w": _of(string.ascii_letters + string.digits + "_"),
    "s": _of("\t\n\f\r "),
}
#: `[[:alpha:]]` and the other named classes.
_NAMED: Final = {
    "alnum": _of(string.ascii_letters + string.digits),
    "alpha": _of(string.ascii_letters),
    "ascii": ((0, 127),),
    "blank": _of("\t "),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _of(string.digits),
    "graph": ((33, 126),),
    "lower": _of(string.ascii_lowercase),
    "print": ((32, 126),),
    "punct": _of(string.punctuation),
    "space": _of("\t\n\v\f\r "),
    "upper": _of(string.ascii_uppercase),
    "word": _LETTERS["w"],
    "xdigit": _of(string.hexdigits),
}
_NAMED_CLASS: Final = re.compile(r"\[:(\^?)(\w+):\]")
_CATEGORY: Final = re.compile(r"\\([pP])(?:\{(\^?)(\w+)\}|([A-Z]))")
_CODE_POINT: Final = re.compile(r"\\x\{([0-9a-fA-F]{1,6})\}")
_FLAGS: Final = re.compile(r"\(\?([a-zA-Z]*)(-[a-zA-Z]+)?[:)]")


@functools.lru_cache(maxsize=64)
def _of_category(category: str) -> Ranges:
    """Returns the characters of a category of Unicode such as "L" or "Lu"; an unknown one has none."""
    if category == "Any":
        return _ALL
    points = [point for point in range(_LAST + 1) if unicodedata.category(chr(point)).startswith(category)]
    return _joined([(point, point) for point in points])


def _class_at(text: str, at: int, within: bool) -> tuple[Ranges, int] | None:
    """Returns the class of characters whose name begins at an index, and the index after the name; None without one."""
    category = _CATEGORY.match(text, at)
    if category:
        letter, turned, name, short = category.groups()
        ranges = _of_category(name or short)
        if not ranges:
            raise _invalid(text, f"invalid character class range: {category[0]}: no category of Unicode")
        return (_others(ranges) if (letter == "P") != bool(turned) else ranges), category.end()
    if within:
        named = _NAMED_CLASS.match(text, at)
        if named:
            if named[2] not in _NAMED:
                raise _invalid(text, f"invalid character class range: {named[0]}")
            return (_others(_NAMED[named[2]]) if named[1] else _NAMED[named[2]]), named.end()
    if text[at] == "\\" and text[at + 1 : at + 2].lower() in (*_LETTERS,):
        letter = text[at + 1]
        return (_LETTERS[letter] if letter.islower() else _others(_LETTERS[letter.lower()])), at + 2
    return None


def _invalid(pattern: str, reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"Invalid pattern: {pattern}, error: {reason}")


#: Python's syntax that RE2 lacks: looking ahead or back, comments, conditions, other flags, possessive repetition.
_FOREIGN: Final = re.compile(
    r"(?<!\\)(?:\\\\)*(\(\?(?:[=!#(>]|<[=!]|P=|[a-zA-Z]*[aLux])|(?<!\\)(?:[*+?]|\{\d+,?\d*\})\+"
    r"|\{(?:\d+,)?(?:1\d{3}(?<!1000)|[2-9]\d{3}|\d{5,}))"  # at most 1000 times
)

#: Escapes that have another name in Python, or another meaning for Unicode.
_ESCAPES: Final = {"\\z": r"\Z", "\\b": r"(?a:\b)", "\\B": r"(?a:\B)", "\\C": r"(?s:.)"}
_NO_ESCAPES: Final = {"\\Z", "\\u", "\\U", "\\N", *(f"\\{digit}" for digit in "123456789")}


@functools.lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    """Returns Python's expression for one of RE2.

    Raises:
        InvalidArgumentError: It is not valid in RE2, which cannot look ahead or back, or refer back to a group.
    """
    foreign = _FOREIGN.search(pattern)
    if foreign:
        raise _invalid(pattern, f"invalid perl operator: {foreign[1]}")
    by_line = any("m" in flags[1] for flags in _FLAGS.finditer(pattern))
    parts: list[str] = []
    at, within = 0, False
    while at < len(pattern):
        named_class = _class_at(pattern, at, within)
        if named_class is not None:
            ranges, at = named_class
            parts.append(_written(ranges) if within else f"[{_written(ranges)}]")
            continue
        pair = pattern[at : at + 2] if pattern[at] == "\\" else pattern[at]
        if pair == "\\Q" and not within:
            literal, _, _ = pattern[at + 2 :].partition("\\E")
            parts.append(re.escape(literal))
            at += 2 + len(literal) + 2
            continue
        point = _CODE_POINT.match(pattern, at)
        if point:
            parts.append(f"\\U{int(point[1], 16):08x}")
            at = point.end()
            continue
        if pair in _NO_ESCAPES:
            raise _invalid(pattern, f"invalid escape sequence: {pair}")
        if within:
            within = pair != "]"
            parts.append(rf"\{pair}" if pair == "[" else pair)
        elif pair == "[":
            within = True
            opening = re.compile(r"\[\^?\]?").match(pattern, at)
            assert opening is not None  # it begins with the bracket
            parts.append(opening[0].replace("]", r"\]"))
            at = opening.end()
            continue
        elif pair == "$" and not by_line:
            parts.append(r"\Z")
        else:
            parts.append(_ESCAPES.get(pair, pair))
        at += len(pair)
    try:
        return re.compile("".join(parts))
    except re.error as error:
        raise _invalid(pattern, str(error)) from None
