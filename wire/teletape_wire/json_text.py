"""Parses JSON text strictly: all JSON that the server reads from requests is parsed here."""

from __future__ import annotations

import codecs
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from teletape_wire.errors import MalformedJsonError

_LARGE: Final = 512  #: Bytes of a text from which another parser is faster.
_FEW: Final = 64  #: Members of a list that are all looked at.
_LONG: Final = b"1" * 19  #: Digits of an integer that may have more than 64 bits, each as 1.
_ONES: Final = re.compile(rb"1+")
_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")  #: Half of a surrogate pair; alone it is not a character.


def parse_json(text: bytes | memoryview) -> Any:
    """Parses UTF-8 bytes as JSON, strictly.

    NaN and infinities must be strings, also a number that is too large to be finite (1e999); a name may occur only once
    in an object; other encodings are refused.

    Raises:
        MalformedJsonError: The bytes are not JSON; the message says where and why.
    """
    content = bytes(text)
    if len(content) > _LARGE:
        value = _fast(content)
        if value is not None:
            return value
    return _parsed(content)


def parse_numbers(texts: Sequence[bytes]) -> list[Any] | None:
    """Parses texts of numbers, and of nested lists of numbers, each by itself; None: one is no such text.

    So is one with an integer that may have more than 64 bits.
    """
    import orjson  # the server's

    content = b"[%b]" % b",".join(texts)
    if _has_long_integer(content.translate(_DIGITS)):
        return None
    try:
        values: list[Any] = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    return values if len(values) == len(texts) else None


def _fast(content: bytes) -> Any:
    """The value of a text, by orjson, in a fraction of the time; None if the text needs another look.

    orjson is as strict as this module, but for names that occur twice and integers of more than 64 bits, which become
    floating. Every member of an object has a colon: if there are as many of both, no name occurs twice.
    """
    try:
        import orjson  # the server's; a client parses no large texts
    except ImportError:
        return None
    if _has_long_integer(content.translate(_DIGITS)):
        return None
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    return value if _members(value, content.count(b"{")) == content.count(b":") else None


def _has_long_integer(digits: bytes) -> bool:
    """Whether a text whose digits are all 1 has an integer that may have more than 64 bits.

    A float in full precision may have as many digits: only these places are looked at, and not the whole text.
    """
    begin = digits.find(_LONG)
    while begin >= 0:
        match = _ONES.match(digits, begin)
        assert match is not None
        end = match.end()
        if digits[begin - 1 : begin] != b"." and digits[end : end + 1] not in (b".", b"e", b"E"):
            return True
        begin = digits.find(_LONG, end)
    return False


def _members(value: Any, objects: int) -> int:
    """How many members the objects in a value have; too few if a long list has objects that do not begin it.

    `objects`: how many there are at most. Those of most bodies are around their lists, which are then not looked at.
    """
    count, nests = 0, [value]
    for nest in nests:  # which grows
        if nest.__class__ is dict:
            count += len(nest)
            objects -= 1
            if not objects:
                break
            nests += nest.values()
        elif nest.__class__ is not list or not nest:
            continue
        elif len(nest) <= _FEW:
            nests += [member for member in nest if member.__class__ is dict or member.__class__ is list]
        else:
            first = nest[0]
            while first.__class__ is list and first:
                first = first[0]
            if first.__class__ is dict:
                nests += nest
    return count


def _parsed(content: bytes) -> Any:
    try:
        # A number that is not finite has three digits of exponent, or very many digits; others need no check of each.
        digits = content.translate(_DIGITS)
        decoder = _CHECKING_DECODER if any(sign in digits for sign in _HUGE) else _DECODER
        value = decoder.decode(content.decode())
        if _HALF.search(content):
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except MalformedJsonError:
        raise
    except json.JSONDecodeError as error:
        if content.startswith(codecs.BOM_UTF8):
            raise MalformedJsonError(
                "no valid JSON: it begins with a byte order mark: send UTF-8 without one"
            ) from None
        raise MalformedJsonError(f"no valid JSON: {error}") from None
    except RecursionError:
        raise MalformedJsonError("no valid JSON here: it is nested too deep") from None
    except UnicodeEncodeError:
        raise MalformedJsonError("no valid JSON: half of a surrogate pair, which is not a character") from None
    except UnicodeDecodeError as error:
        raise MalformedJsonError(
            f"no valid JSON: it is not UTF-8; byte {error.start} is 0x{content[error.start]:02x}. Send UTF-8 without a "
            "byte order mark"
        ) from None
    except ValueError:  # a number of more digits than Python reads
        raise MalformedJsonError(
            f"no valid JSON here: an integer of more than {sys.get_int_max_str_digits():,} digits"
        ) from None


#: Makes each digit a 1, so that long numbers can be searched for as text.
_DIGITS: Final = bytes.maketrans(b"0123456789", b"1" * 10)
#: What a number of more than 1.8e308 contains: 200 digits, or an exponent of three.
_HUGE: Final = (b"1" * 200, b"e111", b"e+111", b"E111", b"E+111")


def _no_constant(word: str) -> Any:
    raise MalformedJsonError(f'no valid JSON: {word} is written as a string, "{word}"')


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise MalformedJsonError(
            f'no valid JSON: {text:.40} is too large for a float64; infinity is written as a string, "Infinity"'
        )
    return number


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(members)
    if len(value) != len(members):
        name = next(name for name, times in Counter(name for name, _ in members).items() if times > 1)
        raise MalformedJsonError(f"no valid JSON: the name {name!r:.60} occurs twice in one object: send it once")
    return value


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_object)
_CHECKING_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_object, parse_float=_finite)
