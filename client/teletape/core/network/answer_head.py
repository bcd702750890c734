"""The head of an answer to a frame, in the usual form: a status line, and headers that occur once each.

A server's heads differ in few values, so a parsed head becomes a pattern for the next ones.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

END: Final = b"\r\n\r\n"  #: The end of a head.

WARNING: Final = b"teletape-warning"  #: A header with a sentence about a limit of which most is used.
_REQUEST_ID: Final = b"x-request-id"
_TOKEN: Final = b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"


class AnswerHead(NamedTuple):
    """The content of a head.

    Attributes:
        status: The HTTP status.
        length: Bytes of the body.
        retry_after: The header of that name, or None.
        set_cookie: Whether it has a header of that name.
        keeps_open: Whether the connection stays open.
        memory: Bytes of the answer in the shared memory of the request; None: it is in the body.
        location: The header of that name, or None.
        request_id: The id of the request in the server's log, or None.
        warning: What the server warns of, or None.
    """

    status: int
    length: int
    retry_after: str | None
    set_cookie: bool
    keeps_open: bool
    memory: int | None = None
    location: str | None = None
    request_id: str | None = None
    warning: str | None = None


def parse(head: bytes) -> AnswerHead | None:
    """Reads a head without its end; None: it has another form, or the answer has no length."""
    headers = _headers(head)
    if headers is None:
        return None
    status, length = head[9:12], headers.get(b"content-length", b"")
    if status[:1] == b"1" or status in (b"204", b"304") or b"transfer-encoding" in headers:
        return None
    if not length.isdigit() or len(length) > 15:
        return None
    memory = headers.get(b"teletape-answer-memory", b"")
    return AnswerHead(
        int(status),
        int(length),
        text_of(headers.get(b"retry-after")),
        b"set-cookie" in headers,
        b"close" not in headers.get(b"connection", b"").lower(),
        int(memory) if memory.isdigit() and len(memory) <= 15 else None,
        text_of(headers.get(b"location")),
        text_of(headers.get(_REQUEST_ID)),
        text_of(headers.get(WARNING)),
    )


def text_of(value: bytes | None) -> str | None:
    """Returns the value of a header as text; None: the head has no such header."""
    return None if value is None else value.decode("latin-1")


def _headers(head: bytes) -> dict[bytes, bytes] | None:
    """Returns the headers by their names in lower case; None: the head has another form."""
    first, *lines = head.split(b"\r\n")
    status = first[9:12]
    if first[:9] != b"HTTP/1.1 " or first[12:13] not in (b" ", b"") or not status.isdigit() or b"\0" in head:
        return None
    if not head.count(b"\r") == head.count(b"\n") == len(lines):
        return None
    headers: dict[bytes, bytes] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        name = name.lower()
        if not (name and colon) or name.translate(None, _TOKEN) or name in headers:
            return None
        headers[name] = value.strip(b" \t")
    return headers


def pattern_of(head: bytes, parsed: AnswerHead) -> re.Pattern[bytes] | None:
    """Returns the pattern of heads that are equal to a parsed one except for the values of most headers.

    Its groups are the `length` and the `request_id`, which is empty without such a header. None: the head is unusual (a
    refusal, the last one of its connection).
    """
    if parsed.status != 200 or not parsed.keeps_open or parsed.retry_after is not None or parsed.set_cookie:
        return None
    if parsed.memory is not None:
        return None
    first, *lines = head.split(b"\r\n")
    end = END if parsed.request_id is not None else END + b"(?P<request_id>)"
    return re.compile(b"\r\n".join([re.escape(first), *map(_line_pattern, lines)]) + end)


def _line_pattern(line: bytes) -> bytes:
    name = line.partition(b":")[0]
    if name.lower() == b"content-length":
        return re.escape(name) + rb":[ \t]*(?P<length>[0-9]{1,15})[ \t]*"
    if name.lower() == _REQUEST_ID:
        return re.escape(name) + rb":[ \t]*(?P<request_id>[^\r\n\0]*)"
    if name.lower() in (b"connection", WARNING):
        return re.escape(line)
    return re.escape(name) + rb":[^\r\n\0]*"
