"""A caller on a connection that a session's process serves."""

import socket
import time
from typing import Any

import httpx
from frame_streams import Answered, Stream, answer, frame, head, host_of

import teletape_wire as wire
from serving import Program, Server
from teletape_engine.commands import Batch, Call
from teletape_engine.recording.values import Literal

#: One that runs for seconds unless it is ended, so that a busy machine sees it run.
ENDLESS = [
    Call("fill", (Literal(1e-3),), ("a",), {"shape": (300, 5000)}),
    Call("fill", (Literal(1e-3),), ("b",), {"shape": (5000, 300)}),
    *[Call("matmul", ("a", "b"), (f"m{i}",)) for i in range(120)],
    Call("reduce_sum", ("a",), ("sum",)),
]


class Caller:
    """A connection and a client of a session, which its process serves from now on."""

    def __init__(self, server: Server, http: httpx.Client, *, lends: bool = True, **headers: str) -> None:
        self.server, self.headers = server, headers
        self.program = Program(http, "demo")
        self.sock = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = Stream(self.sock)
        if lends:
            self.lend()

    def __enter__(self) -> "Caller":
        return self

    def __exit__(self, *_: object) -> None:
        self.stream._file.close()
        self.sock.close()

    def lend(self) -> None:
        """Sends frames until the process has the connection; it may be so slow that further ones are needed."""
        deadline = time.monotonic() + 60
        while not self.is_lent:
            assert time.monotonic() < deadline
            self.run()
        self.run()  # the process has taken it

    @property
    def is_lent(self) -> bool:
        """Whether the process has this connection."""
        port = self.sock.getsockname()[1]
        connections = [*self.server.app.state.connections.open]
        return any(item.client[1] == port and item.lending.loan is not None for item in connections)

    @property
    def lent(self) -> int:
        return lent(self.server)

    def request(self, batch: Batch) -> bytes:
        body = frame(batch)
        return head(len(body), **self.headers) + body

    def send(self, *commands: Any) -> Batch:
        batch = self.program.batch(*commands)
        self.sock.sendall(self.request(batch))
        return batch

    def answer(self) -> Answered:
        return answer(self.stream)

    def run(self, *commands: Any) -> Any:
        """The results of a batch."""
        self.send(*commands)
        return self.results()

    def results(self) -> Any:
        item = self.answer()
        assert item.status == 200, item
        return wire.decode_answer(item.body)[0].results


def lent(server: Server) -> int:
    """Connections that the process has."""
    connections: int = host_of(server).facts().lent
    return connections
