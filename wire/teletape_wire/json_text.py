"""Parses JSON text strictly: all JSON that the server reads from requests is parsed here."""

from __future__ import annotations

import codecs
import json
import math
import re
import sys
from collections import Counter
from typing import Any, Final

from teletape_wire.errors import MalformedJsonError

#: Bytes from which lists of numbers are looked for, and the bytes of which these consist.
_LARGE: Final = 512
_NUMBER_BYTES: Final = b"-+.0123456789eE, []\t\r\n"
#: Many bytes of numbers and lists of these. It has no end that could be missing, so each byte is looked at once.
_NUMBERS: Final = re.compile(rb"[-+.\deE,\s\[\]]{64,}")
_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")  #: Half of a surrogate pair; alone it is not a character.


def parse_json(text: bytes | memoryview) -> Any:
    """Parses UTF-8 bytes as JSON, strictly.

    NaN and infinities must be strings, also a number that is too large to be finite (1e999); a name may occur only once
    in an object; other encodings are refused.

    Raises:
        MalformedJsonError: The bytes are not JSON; the message says where and why.
    """
    content = bytes(text)
    if len(content) > _LARGE and 4 * len(content.translate(None, _NUMBER_BYTES)) < len(content):
        value = _numbers_fast(content)
        if value is not None:
            return value
    return _parsed(content)


def _numbers_fast(content: bytes) -> Any:
    """The value of a text whose bulk is numbers, by orjson, in half the time; None if the text needs another look.

    orjson is as strict as this module, but for names that occur twice and integers of more than 64 bits, which become
    floating. So the text is parsed here too, without its long lists of numbers.
    """
    try:
        import orjson  # the server's; a client parses no large texts
    except ImportError:
        return None
    rest = _NUMBERS.sub(_without_lists, content)
    if len(rest) > len(content) // 2 or b"1" * 19 in rest.translate(_DIGITS):
        return None
    try:
        _parsed(rest)
        return orjson.loads(content)
    except (MalformedJsonError, orjson.JSONDecodeError):
        return None


def _without_lists(numbers: re.Match[bytes]) -> bytes:
    text = numbers[0]
    begin, end = text.find(b"["), text.rfind(b"]")
    return text if begin < 0 or end < begin else text[:begin] + b"[]" + text[end + 1 :]


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
