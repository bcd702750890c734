"""Frames as bytes on a connection, and what answers them."""

import socket
from collections.abc import Callable
from http.client import HTTPResponse
from typing import Any, NamedTuple

import numpy as np

import teletape_wire as wire
from serving import KEYS, Server
from teletape_engine.commands import Batch, Constant

PATH = "/v1/sessions/demo/batch"
MIB = 1 << 20


class Answered(NamedTuple):
    """A response as it came, with lists of headers in place of a dictionary."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def comparable(self) -> Any:
        """All that must not depend on the way; a request's own id and the time do."""
        own = dict(self.headers).get("x-request-id", "none")
        body = self.body.replace(own.encode(), b"ID")
        if self.status == 200:
            answer, _ = wire.decode_answer(body)  # without its times
            body = repr(answer).encode()
        return (
            self.status,
            [(name, value) for name, value in self.headers if name not in ("x-request-id", "date", "vary")],
            body,
        )


def frame(batch: Batch) -> bytes:
    return b"".join(wire.encode_batch(batch).buffers)


def head(length: int, *, path: str = PATH, **headers: str) -> bytes:
    """A frame's head, with ann's key; a header of None is left out, `_` in names stands for `-`."""
    named = {"Host": "localhost", "Authorization": f"Bearer {KEYS['ann']}", "Content-Type": wire.FRAME_TYPE}
    named |= {"Content-Length": str(length)} | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{name}: {value}" for name, value in named.items() if value is not None]
    return "\r\n".join([f"POST {path} HTTP/1.1", *lines, "", ""]).encode()


def answer(sock: Any) -> Answered:
    """The next answer that comes."""
    response = HTTPResponse(sock)
    response.begin()
    headers = [(name.lower(), value) for name, value in response.getheaders()]
    return Answered(response.status, headers, response.read())


class Stream:
    """A connection whose answers come one after the other: what one has read too much belongs to the next."""

    def __init__(self, sock: socket.socket) -> None:
        self._file = sock.makefile("rb")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def makefile(self, _: str) -> Any:
        return self

    def close(self) -> None:
        """Leaves the file open for the next answer."""

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def host_of(server: Server, session: str = "demo") -> Any:
    return server.app.state.registry.find("ann", session).host


GOOD = frame(Batch((), (), 0, 0, b""))


def lying(spoil: Callable[[bytes], bytes]) -> bytes:
    return spoil(frame(Batch((Constant(1, np.full(100, 7.0)),), (), 0, 0, b"")))


REFUSED: dict[str, tuple[int, str, bytes, dict[str, Any]]] = {
    "no key": (401, "unauthenticated", GOOD, {"Authorization": None}),
    "a wrong key": (401, "unauthenticated", GOOD, {"Authorization": "Bearer wrong-key"}),
    "a session that is not": (404, "unknown_session", GOOD, {"path": "/v1/sessions/nobody/batch"}),
    "a session of another": (404, "unknown_session", GOOD, {"Authorization": f"Bearer {KEYS['bob']}"}),
    "no type": (400, "malformed_json", GOOD, {"Content_Type": None}),
    "another type": (415, "unsupported_media_type", GOOD, {"Content_Type": "text/csv"}),
    "compressed": (415, "unsupported_media_type", GOOD, {"Content_Encoding": "gzip"}),
    "another answer": (406, "not_acceptable", GOOD, {"Accept": "image/png"}),
    "an empty key": (422, "invalid_request", GOOD, {"Idempotency_Key": ""}),
    "too large": (413, "body_too_large", b"", {"Content_Length": str(64 * MIB + 1)}),
    "too short": (400, "malformed_frame", GOOD[:30], {}),
    "no frame": (400, "malformed_frame", b"GIF89a" + GOOD[6:], {}),
    "longer than it says": (400, "malformed_frame", GOOD + b"\0", {}),
    "shorter than it says": (400, "malformed_frame", GOOD[:-1], {}),
    "another version": (400, "unsupported_version", GOOD[:8] + b"\7" + GOOD[9:], {}),
    "a large header": (413, "frame_too_large", GOOD[:48] + (1 << 40).to_bytes(8, "little") + GOOD[56:], {}),
    "damaged": (400, "corrupt_frame", lying(lambda good: good[:-1] + bytes([good[-1] ^ 1])), {}),
    "a client that is not attached": (404, "unknown_id", frame(Batch((), (), 99, 1, b"n" * 16)), {}),
}
