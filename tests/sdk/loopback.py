"""A server's batch endpoint without the network: the real wire and the real engine behind httpx's transport seam."""

import json
from typing import Any

import httpx

from teletape import wire
from teletape.connection import Connection
from teletape.remote import RemoteSession
from teletape_engine import describe
from teletape_engine.errors import TeletapeError
from teletape_engine.session import Session


class Loopback(httpx.BaseTransport):
    """Answers as a server would.

    Attributes:
        batches: Every batch received, decoded, retries too.
        drop: How many of the next batch answers get lost on the way back, after the batch was executed.
    """

    def __init__(self, memory_limit: int | None = None) -> None:
        self.session = Session(memory_limit=memory_limit)
        self.batches: list[Any] = []
        self.paths: list[str] = []
        self.drop = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        self.paths.append(f"{request.method} {path}")
        if path == "/v1/info":
            return httpx.Response(200, json={"version": "0", "catalogue": describe.digest()})
        if path == "/v1/sessions":
            return httpx.Response(201, json={"id": "s1"})
        if path.endswith("/attach"):
            return httpx.Response(200, json=self.session.attach()._asdict())
        if request.method == "DELETE":
            return httpx.Response(204)
        batch = wire.decode_batch(request.read())
        self.batches.append(batch)
        try:
            answer = self.session.execute(batch)
        except TeletapeError as error:
            body = {"code": error.code, "title": error.code, "detail": error.message}
            return httpx.Response(409, stream=httpx.ByteStream(json.dumps(body).encode()))
        if self.drop:
            self.drop -= 1
            raise httpx.ReadError("the connection broke", request=request)
        frame = wire.encode_answer(answer, client=batch.client, seq=batch.seq, nonce=batch.nonce)
        return httpx.Response(200, stream=httpx.ByteStream(b"".join(bytes(one) for one in frame.buffers)))


def session_on(loopback: Loopback, *, lazy: bool = True) -> RemoteSession:
    """A remote session that talks to `loopback`."""
    return RemoteSession(
        "http://loopback", connection=Connection("http://loopback", None, transport=loopback), lazy=lazy
    )
