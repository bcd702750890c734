"""The head of a request in the bytes that were approved, and the head of its answer."""

from __future__ import annotations

import re
import secrets
import time
from email.utils import formatdate
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

MOST: Final = 32 << 10  #: Bytes of a body, and of an answer, that a session's process receives and sends by itself.
_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})(?=\r\n)", re.IGNORECASE)
_DIGITS: Final = re.compile(rb"[0-9]{1,18}(?=\r\n)")
_SOME_DIGITS: Final = re.compile(rb"[0-9]{0,18}")
#: Under which a request is counted: verb, path with its parameters' names, and status.
Label: TypeAlias = tuple[str, str, int]
FRAME: Final[Label] = ("", "", 0)  #: Of frames, which are counted apart.
_OWN: Final = (b"date", b"content-length", b"x-request-id")  # headers of an answer that differ from others'


class HeadBytes(NamedTuple):
    """The bytes of a head: the same bytes, but for the length, say the same.

    Attributes:
        before, after: The bytes on both sides of the length's digits.
    """

    before: bytes
    after: bytes

    @classmethod
    def of(cls, data: bytes) -> HeadBytes | None:
        """Returns a head's bytes; None if they have not exactly one length."""
        lengths = [*_LENGTH.finditer(data)]
        return cls(data[: lengths[0].start(1)], data[lengths[0].end(1) :]) if len(lengths) == 1 else None

    def match(self, data: bytes | bytearray, position: int = 0) -> tuple[int, int] | None:
        """Returns the length of the body whose head begins at `position`, and where it begins; None: another head."""
        if not data.startswith(self.before, position):
            return None
        digits = _DIGITS.match(data, position + len(self.before))
        if digits is None or not data.startswith(self.after, digits.end()):
            return None
        return int(digits[0]), digits.end() + len(self.after)

    def may_follow(self, data: bytes) -> bool:
        """Returns whether these bytes are the beginning of such a head, and not all of it."""
        if not data.startswith(self.before):
            return self.before.startswith(data)
        digits = _SOME_DIGITS.match(data, len(self.before))
        assert digits is not None
        rest = data[digits.end() :]
        return len(rest) < len(self.after) and self.after.startswith(rest)


def answer_pattern(head: bytes) -> bytes:
    """Returns what `AnswerHeads` makes heads from, given the head of an answer."""
    lines = []
    for line in head.split(b"\r\n"):
        name = line.partition(b": ")[0]
        lines.append(b"%b: %%(%b)b" % (name, name) if name in _OWN else line.replace(b"%", b"%%"))
    return b"\r\n".join(lines)


@lru_cache(maxsize=1)
def http_date(second: int) -> bytes:
    """Returns a second of Unix time as the header Date has it."""
    return formatdate(second, usegmt=True).encode()


class AnswerHeads:
    """Makes the heads of answers.

    Args:
        pattern: See `answer_pattern`.
        request_id: Of every answer; None: each has its own.
    """

    def __init__(self, pattern: bytes, request_id: bytes | None) -> None:
        self._pattern, self._request_id = pattern, request_id

    def head(self, length: int) -> bytes:
        """Returns the head of an answer whose body has `length` bytes."""
        values = {
            b"date": http_date(int(time.time())),
            b"content-length": b"%d" % length,
            b"x-request-id": self._request_id or secrets.token_hex(8).encode(),
        }
        return self._pattern % values


class Approval(NamedTuple):
    """What a session's process has to know about the requests of a connection; it travels as it is.

    Attributes:
        before, after: The head's bytes; see `HeadBytes`.
        method, content_type, params: Of each request.
        pattern, request_id: See `AnswerHeads`.
        most: Bytes of the largest body.
        most_of_answer: Bytes of the largest answer.
        max_header: Bytes of the largest header of a frame.
        label: Under which the requests are counted.
        answer_type: Of each answer.
        function, owner: The published function that they ask, and whose calls they are; empty: they ask none.
        together: How many of its calls may be computed together.
    """

    before: bytes
    after: bytes
    method: str
    content_type: str
    params: dict[str, Any]
    pattern: bytes
    request_id: bytes | None
    most: int
    most_of_answer: int
    max_header: int
    label: Label
    answer_type: str
    function: str = ""
    owner: str = ""
    together: int = 1
