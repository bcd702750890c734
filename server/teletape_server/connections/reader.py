"""Reads requests from the bytes of a connection, one part at a time: a head, or the next piece of a body.

httptools has no limit on a request's head, and copies it with every piece that arrives. Here bytes are counted before
they are parsed, and no part goes beyond the end of a head or of a request. This runs before authentication.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

import httptools

MAX_HEAD: Final = 64 << 10  #: Bytes of a request's line and headers.
MAX_HEADERS: Final = 100  #: Headers of a request.
_PIECE: Final = 8 << 10  # bytes of a head, or of a body in chunks, that are parsed at once
_LINE_END: Final = b"\r\n"
_END: Final = b"\r\n\r\n"  # of a head, and of a body in chunks


class Stage(Enum):
    """What a connection receives next."""

    START = "the first byte of a request"
    HEAD = "the rest of a request's head"
    BODY = "the rest of a body"


class Head(NamedTuple):
    """The head of a request.

    Attributes:
        method, url, version: Of its first line; the version is "1.1" or "1.0".
        headers: Their names are in lower case.
        length: Bytes of the body; None: it comes in chunks.
        keep_alive: Whether the caller allows another request after this one.
    """

    method: bytes
    url: bytes
    version: str
    headers: list[tuple[bytes, bytes]]
    length: int | None
    keep_alive: bool


class MalformedRequestError(Exception):
    """What came is no request in HTTP/1.1."""


class HeadTooLargeError(Exception):
    """The head, or what follows a body in chunks, has too many bytes or headers."""


class RequestReader:
    """Reads the requests of a connection.

    Attributes:
        stage: What is received next.
        head: The head of the present request, from its end on.
        left: Bytes of the body that are missing; None: not known.
        body_bytes: Bytes of the body that have come.
        head_bytes: All other bytes of the request that is received.
        head_ended, body, message_ended: What the last part has brought: the head's end, bytes, the request's end.
    """

    def __init__(self) -> None:
        self.stage = Stage.START
        self.head: Head | None = None
        self.left: int | None = 0
        self.body_bytes = self.head_bytes = 0
        self.head_ended = self.message_ended = False
        self.body: bytes | memoryview = b""
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._tail = b""  # the last bytes, if a head's end may have begun with them
        self.parses_body = True
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)

    def read(self, data: bytes | bytearray, position: int) -> int:
        """Reads the part of a request that begins at `position`; returns where the next one begins.

        Raises:
            MalformedRequestError: It is none.
            HeadTooLargeError: There is a limit to it.
        """
        self.head_ended = self.message_ended = False
        self.body = b""
        if self.stage is Stage.BODY and self.left:
            end = min(len(data), position + self.left)
            if not self.parses_body:
                self.body = memoryview(data)[position:end]
                self.count(end - position)
                return end
        elif self.stage is Stage.START and data[position] in _LINE_END:  # empty lines, all at once
            part = data[position : position + _PIECE]
            end = position + len(part) - len(part.lstrip(_LINE_END))
        else:
            end = self._end_of_part(data, position)
        self._parse(data if position == 0 and end == len(data) else memoryview(data)[position:end])
        body_bytes = len(self.body)
        self.head_bytes += end - position - body_bytes
        if self.head_bytes > MAX_HEAD or len(self._headers) > MAX_HEADERS:
            raise HeadTooLargeError
        if body_bytes:
            self.body_bytes += body_bytes
            if self.left is not None:
                self.left -= body_bytes
        if self.message_ended:
            self._end()
        return end

    def _end_of_part(self, data: bytes | bytearray, position: int) -> int:
        """Returns where a head or a body in chunks may end, or how far it is parsed at once."""
        tail = self._tail
        if tail:  # the end may have begun before
            end = (tail + data[position : position + len(_END) - 1]).find(_END)
            if end >= 0:
                self._tail = b""
                return position + end + len(_END) - len(tail)
        end = data.find(_END, position, position + _PIECE)
        if end >= 0:
            self._tail = b""
            return end + len(_END)
        end = min(len(data), position + _PIECE)
        self._tail = (tail + data[max(position, end - len(_END) + 1) : end])[1 - len(_END) :]
        return end

    def _parse(self, piece: bytes | bytearray | memoryview) -> None:
        assert self._parser is not None
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserUpgrade:  # to another protocol, of which there is none
            pass
        except httptools.HttpParserError:
            raise MalformedRequestError from None

    # ------------------------------------------------------------------------------------------ bodies past the parser
    def begin_known(self, head: Head, length: int) -> None:
        """Begins to receive the body of a request whose head need not be parsed: it was, and had another length."""
        self.stage, self.head, self.left, self.body_bytes = Stage.BODY, head, length, 0
        self.parses_body = False

    def skip_parser(self) -> None:
        """Lets no more bytes of this body, if one is to come, go through the parser: it would copy them."""
        if self.stage is not Stage.BODY:
            return
        self.parses_body = False
        self._parser = httptools.HttpRequestParser(self)  # the present one waits for the body

    def count(self, count: int) -> None:
        """Counts bytes of a body that does not go through the parser."""
        assert self.left is not None
        self.body_bytes += count
        self.left -= count
        if not self.left:
            self.message_ended = True
            self._end()

    def _end(self) -> None:
        self.stage = Stage.START
        self.head_bytes = 0
        self.parses_body = True

    def close(self) -> None:
        """Lets go of the parser, which has this object."""
        self._parser = None

    # ------------------------------------------------------------------------------------------ what the parser reports
    def on_message_begin(self) -> None:
        """Begins a request."""
        if self.message_ended:  # in this part, which does not go beyond a request
            raise MalformedRequestError
        self.stage = Stage.HEAD
        self._url, self._headers = b"", []

    def on_url(self, url: bytes) -> None:
        """Takes a piece of the URL."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Takes a header, or a trailer."""
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Ends the head."""
        parser, headers = self._parser, self._headers
        assert parser is not None
        version, length = parser.get_http_version(), 0
        chunked: bool = False
        for name, value in headers:
            if name == b"content-length":
                length = int(value)
            elif name == b"transfer-encoding":
                chunked = True
        keep_alive = version != "1.0" and parser.should_keep_alive() and not parser.should_upgrade()
        left = None if chunked else length
        self.head = Head(parser.get_method(), self._url, version, [*headers], left, keep_alive)
        self.stage, self.left, self.body_bytes, self.head_ended = Stage.BODY, left, 0, True

    def on_body(self, body: bytes) -> None:
        """Takes a piece of the body."""
        self.body = self.body + body if self.body else body  # type: ignore[operator]

    def on_message_complete(self) -> None:
        """Ends the request."""
        self.message_ended = True
