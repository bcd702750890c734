"""Callers of a server that has keys, over connections of their own: requests of REST that repeat until settled.

What a caller sends has an effect once however often it is sent: it is a question, or has an Idempotency-Key.
"""

import asyncio
import contextlib
import json
import time
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

PATIENCE = 180.0  # seconds for which a request is repeated
_PAUSE = 0.2  # seconds before it is repeated
_REPLACED = 3.0  # seconds in which the replacement of a key is known to its callers
_LATER = (202, 429, 503)  # statuses of what is to be sent again


class Answer(NamedTuple):
    """An answer to a request."""

    status: int
    headers: dict[str, str]
    body: Any

    @property
    def code(self) -> str:
        """The code of a problem, or the status."""
        return str(self.body.get("code", self.status) if isinstance(self.body, dict) else self.status)


class UnsettledError(Exception):
    """A request was refused, or not answered in time."""

    def __init__(self, what: str, answer: Answer | None) -> None:
        text = f"no answer in {PATIENCE:g} s" if answer is None else f"{answer.status} {json.dumps(answer.body)[:600]}"
        super().__init__(f"{what}: {text}")
        self.code = "no answer" if answer is None else answer.code


class Caller:
    """A connection to a server, which is opened again when it breaks.

    Args:
        port: Of the server.
        key: Returns the API key that counts now.
        address: Of this machine, from which it calls: 127.x.x.x.
        counts: Of requests, and of repetitions by reason.
    """

    def __init__(self, port: int, key: Callable[[], str], address: str, counts: Counter[str]) -> None:
        self._port, self._key, self._address, self._counts = port, key, address, counts
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._turn = asyncio.Lock()

    async def once(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, key: str = ""
    ) -> Answer:
        """Sends a request once.

        Raises:
            ConnectionError: There was no answer.
        """
        raw = isinstance(body, bytes)
        content = body if raw else b"" if body is None else json.dumps(body).encode()
        head = {"Host": "localhost", "Authorization": f"Bearer {key or self._key()}", **(headers or {})}
        if content or method != "GET":
            head["Content-Length"] = str(len(content))
            head.setdefault("Content-Type", "application/octet-stream" if raw else "application/json")
        lines = [f"{method} /v1{path} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items()), "", ""]
        async with self._turn:
            try:
                return await asyncio.wait_for(self._exchange("\r\n".join(lines).encode() + content), PATIENCE)
            except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
                self.close()
                raise ConnectionError(str(error)) from error
            except asyncio.CancelledError:
                self.close()
                raise

    async def _exchange(self, request: bytes) -> Answer:
        if self._streams is None:
            local = (self._address, 0)
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, local_addr=local)
        reader, writer = self._streams
        self._counts["requests"] += 1
        writer.write(request)
        await writer.drain()
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        content = await reader.readexactly(int(headers.get("content-length", 0)))
        if headers.get("connection", "").lower() == "close":
            self.close()
        return Answer(int(first.split()[1]), headers, json.loads(content) if content else None)

    async def settled(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, *, expected: int = 0
    ) -> Answer:
        """Repeats a request until it has succeeded, or has the expected status.

        Raises:
            UnsettledError: It was refused, or not answered in time.
        """
        own = dict(headers or {})
        if method != "GET":
            own.setdefault("Idempotency-Key", uuid.uuid4().hex)
        until, answer = time.monotonic() + PATIENCE, None
        while time.monotonic() < until:
            key = self._key()
            try:
                answer = await self.once(method, path, body, own, key)
            except ConnectionError:
                self._counts["repeated: no answer"] += 1
                await asyncio.sleep(_PAUSE)
                continue
            if answer.status == expected or (answer.status < 300 and answer.status not in _LATER):
                return answer
            if answer.status == 401 and key == self._key():  # it is replaced, which its callers do not know yet
                await asyncio.sleep(_REPLACED)
            if answer.status not in _LATER and (answer.status != 401 or key == self._key()):
                raise UnsettledError(f"{method} {path}", answer)
            self._counts[f"repeated: {answer.code}"] += 1
            await asyncio.sleep(_PAUSE)
        raise UnsettledError(f"{method} {path}", None)

    def close(self) -> None:
        """Closes the connection; the next request opens another one."""
        if self._streams is not None:
            with contextlib.suppress(RuntimeError):
                self._streams[1].close()
            self._streams = None
