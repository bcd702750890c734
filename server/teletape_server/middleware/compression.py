"""Compression: texts of a kilobyte or more go as gzip to callers that accept it, and never tensors, frames or events.

A tensor's bytes hardly become fewer, and would be copied; an event has to leave at once. Starlette's middleware has no
list of types, and compresses on the event loop. Here what is large is compressed in threads, piece by piece as it is
sent, and what all callers get (pages, files, the OpenAPI document) is compressed once.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from zlib_ng import zlib_ng

SMALLEST: Final = 1 << 10  # bytes of a text that is compressed
_TYPES: Final = {
    *("application/json", "application/problem+json", "application/yaml", "image/svg+xml", "text/vnd.graphviz"),
    *("text/html", "text/css", "text/javascript", "text/plain"),
}
_API: Final = "/v1/"  # what is below differs from caller to caller
_LEVEL, _LEVEL_OF_STORED = 4, 9
_GZIP: Final = 31  # zlib's window bits for it
INLINE: Final = 32 << 10  # bytes of a piece that is compressed on the event loop: half a millisecond
_STORED: Final = 64  # compressed texts that are kept, the last used
_LARGEST_STORED: Final = 2 << 20  # bytes of one of them


class CompressionMiddleware:
    """Compresses answers.

    Args:
        app: The application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._stored: OrderedDict[tuple[str, str], bytes] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        accepts = accepts_gzip(Headers(scope=scope).get("accept-encoding", ""))
        answer = _Answer(scope["path"], send, self._stored, accepts=accepts)
        await self._app(scope, receive, answer.send)


def compressed(text: bytes | memoryview) -> bytes:
    """Returns a whole text, compressed."""
    compressor = zlib_ng.compressobj(_LEVEL, zlib_ng.DEFLATED, _GZIP)
    return compressor.compress(text) + compressor.flush()


def accepts_gzip(header: str) -> bool:
    """Returns whether an Accept-Encoding header allows gzip."""
    qualities = {}
    for entry in header.lower().split(","):
        name, _, quality = entry.partition(";")
        try:
            qualities[name.strip()] = float(quality.strip().removeprefix("q=") or 1)
        except ValueError:
            qualities[name.strip()] = 0.0
    return qualities.get("gzip", qualities.get("*", 0.0)) > 0


class _Answer:
    """One answer on its way; a text's head is not sent before the first part of its body is here."""

    def __init__(self, path: str, send: Send, stored: OrderedDict[tuple[str, str], bytes], *, accepts: bool) -> None:
        self._path, self._send, self._stored, self._accepts = path, send, stored, accepts
        self._start: Message | None = None
        self._compressor: zlib_ng._Compress | None = None
        self._key: tuple[str, str] | None = None  # under which the compressed text becomes stored
        self._parts: list[bytes] = []  # of that
        self._is_complete = False

    async def send(self, message: Message) -> None:
        """Sends a part of the answer."""
        if message["type"] == "http.response.start":
            if _is_text(message):
                self._start = message
            else:
                await self._send(message)
        elif self._start is not None:
            start, self._start = self._start, None
            await self._begin(start, message)
        elif self._compressor is not None:
            await self._send(await self._compressed(self._compressor, message))
        elif not self._is_complete:
            await self._send(message)

    async def _begin(self, start: Message, message: Message) -> None:
        """Sends the head and the first part of the body."""
        headers = MutableHeaders(scope=start)
        headers.add_vary_header("Accept-Encoding")
        is_whole = not message.get("more_body", False)
        if not self._accepts or (is_whole and len(message.get("body", b"")) < SMALLEST):
            await self._send(start)
            await self._send(message)
            return
        tag = headers.get("etag")
        headers["Content-Encoding"] = "gzip"
        if tag is not None:
            headers["ETag"] = f'{tag[:-1]}-gzip"'  # another representation has another tag
            if not self._path.startswith(_API):
                self._key = self._path, tag
                text = self._stored.get(self._key)
                if text is not None:
                    self._stored.move_to_end(self._key)
                    self._is_complete = True
                    headers["Content-Length"] = str(len(text))
                    await self._send(start)
                    await self._send({"type": "http.response.body", "body": text})
                    return
        level = _LEVEL if self._key is None else _LEVEL_OF_STORED
        self._compressor = zlib_ng.compressobj(level, zlib_ng.DEFLATED, _GZIP)
        first = await self._compressed(self._compressor, message)
        if is_whole:
            headers["Content-Length"] = str(len(first["body"]))
        elif "content-length" in headers:
            del headers["Content-Length"]
        await self._send(start)
        await self._send(first)

    async def _compressed(self, compressor: zlib_ng._Compress, message: Message) -> Message:
        body, more = message.get("body", b""), message.get("more_body", False)
        if len(body) > INLINE:
            part = await asyncio.to_thread(compressor.compress, body)
        else:
            part = compressor.compress(body)
        if not more:
            part += compressor.flush()
        if self._key is not None:
            self._parts.append(part)
            if not more:
                self._store(self._key, b"".join(self._parts))
        return {"type": "http.response.body", "body": part, "more_body": more}

    def _store(self, key: tuple[str, str], text: bytes) -> None:
        if len(text) <= _LARGEST_STORED:
            self._stored[key] = text
            while len(self._stored) > _STORED:
                self._stored.popitem(last=False)


def _is_text(start: Message) -> bool:
    """Returns whether an answer is a text that can be compressed as a whole."""
    headers = MutableHeaders(scope=start)
    kind = headers.get("content-type", "").partition(";")[0]
    return kind in _TYPES and start["status"] not in (206, 304) and "content-encoding" not in headers
