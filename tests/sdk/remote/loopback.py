"""A server's batch endpoint without the network: the real wire and the real engine under httpx's transport seam."""

import http.server
import json
import math
import threading
from collections import deque
from typing import Any

import httpx

import teletape_wire as wire
from teletape.core.network.options import ConnectOptions
from teletape.core.sessions.remote import RemoteSession
from teletape_engine.catalogue import describe
from teletape_engine.commands import Batch, ClientAttach, Command
from teletape_engine.commands.structure import Repetition
from teletape_engine.errors import TeletapeError, UnknownStructureError
from teletape_engine.session.session import Session

PROGRESS = b'{"status": "running", "done": 1, "total": 3, "iteration": 0, "iterations": 0}'  #: A body with status 202.


class Loopback(httpx.BaseTransport):
    """Answers as a server does, or badly if a test says so.

    Attributes:
        session: The engine's session behind it.
        batches: Every batch received, decoded, repeated ones too.
        paths: Method and path of every request.
        mishaps: What happens to the batches to come, one each: `lost` (executed, its answer lost), `forgotten`
            (so, and the server has it no more at the retry), `unreached` (lost on
            the way), `busy` (429), `running` (202), `refused` (403), `ended` (410), `garbled` (an unreadable answer),
            `page` (a proxy's), `unknown` (all structures are forgotten before), `fine`.
        features: What it says that it can.
        structures: Those that are kept.
        repetitions: The number of batches that came as the number of a structure.
        answers: The number of batches executed; the latest answer's request is `r` with this number.
        changed: Facts of ops that its list has otherwise, by op; None: it has no list.
        most_bytes: The largest number of bytes of a batch.
        gate: Closed, it holds back every answer.
        arrived: Set when a batch has come in.
    """

    def __init__(
        self, memory_limit: int | None = None, catalogue: str | None = None, features: list[str] | None = None
    ) -> None:
        self.session = Session(memory_limit=memory_limit)
        self.features = [wire.REPEATED_BATCHES, wire.STRANDS] if features is None else features
        self.structures, self.repetitions, self.answers = wire.Structures(), 0, 0
        self.catalogue = describe.digest() if catalogue is None else catalogue
        self.changed: dict[str, dict[str, Any]] | None = {}
        self.most_bytes: float = math.inf
        self.batches: list[Batch] = []
        self.paths: list[str] = []
        self.mishaps: deque[str] = deque()
        self.gate, self.arrived = threading.Event(), threading.Event()
        self.gate.set()
        self._computing = threading.Lock()  # a session executes one batch at a time

    def commands(self, kind: type[Command] = Command) -> list[Any]:
        """All commands of a kind received so far."""
        return [command for batch in self.batches for command in batch.commands if isinstance(command, kind)]

    @property
    def entries(self) -> dict[Any, Any]:
        """What the ids of the engine's session name."""
        return self.session._state.entries

    def _attach(self) -> dict[str, Any]:
        [result] = self.session.execute(Batch((ClientAttach(),))).results
        return result.facts

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        self.paths.append(f"{request.method} {path}")
        if path == "/v1/info":
            info = {"version": "0", "catalogue": self.catalogue, "features": self.features}
            return httpx.Response(200, json=info)
        if path == "/v1/ops":
            if self.changed is None:
                return _problem(404, "not_found", "there is no /v1/ops")
            ops = [record | self.changed.get(record["name"], {}) for record in describe.catalogue()]
            return httpx.Response(200, json={"ops": ops})
        if path == "/v1/sessions":
            return httpx.Response(201, json={"id": "s1"})
        if path.endswith("/attach"):
            return httpx.Response(200, json=self._attach())
        if request.method == "DELETE":
            return httpx.Response(204)
        if request.method == "GET":
            return httpx.Response(200, json={"id": "s1", "running": {"done": 1, "total": 3}})
        return self._batch(request)

    def _batch(self, request: httpx.Request) -> httpx.Response:
        mishap = self.mishaps.popleft() if self.mishaps else "fine"
        if mishap == "unknown":
            self.structures = wire.Structures()
        body = request.read()
        if len(body) > self.most_bytes:
            return _problem(413, "body_too_large", f"at most {self.most_bytes} bytes")
        try:
            sent = wire.decode_request(body, self.structures)
        except UnknownStructureError as error:
            return _problem(409, error.code, error.message)
        batch = sent.batch() if isinstance(sent, Repetition) else sent
        self.repetitions += sent is not batch
        self.batches.append(batch)
        self.arrived.set()
        self.gate.wait()
        match mishap:
            case "unreached":
                raise httpx.WriteError("the connection broke", request=request)
            case "busy":
                return _problem(429, "busy", "too many at once", {"Retry-After": "0"})
            case "running":
                return httpx.Response(202, headers={"Retry-After": "0"}, stream=httpx.ByteStream(PROGRESS))
            case "refused":
                return _problem(403, "foreign_origin", "not from here")
            case "ended":
                return _problem(410, "session_ended", "session s1 ended: idle for an hour")
            case "page":
                return httpx.Response(403, stream=httpx.ByteStream(b"<html>go away</html>"))
        try:
            with self._computing:
                answer = self.session.execute(batch)
                self.answers += 1
        except TeletapeError as error:
            return _problem(409, error.code, error.message)
        if mishap == "forgotten":
            self.session.forget_old_answers()
            self.session.forget_old_answers()
        if mishap in ("lost", "forgotten"):
            raise httpx.ReadError("the connection broke", request=request)
        frame = wire.encode_answer(answer, client=batch.client, seq=batch.seq, nonce=batch.nonce)
        body = b"".join(bytes(buffer) for buffer in frame.buffers)
        content = body[:-1] if mishap == "garbled" else body
        return httpx.Response(200, headers={"X-Request-Id": f"r{self.answers}"}, stream=httpx.ByteStream(content))


def _problem(status: int, code: str, detail: str, headers: dict[str, str] | None = None) -> httpx.Response:
    body = json.dumps({"code": code, "title": code, "detail": detail}).encode()
    return httpx.Response(status, headers=headers, stream=httpx.ByteStream(body))


class Listener(http.server.ThreadingHTTPServer):
    """Serves loopbacks over TCP, so that frames take the SDK's own socket. What is lost closes the connection."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._loopbacks: list[Loopback] = []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def url(self, loopback: Loopback) -> str:
        """Serves a loopback too, and returns its address, which has a path of its own."""
        self._loopbacks.append(loopback)
        return f"http://127.0.0.1:{self.server_port}/{len(self._loopbacks) - 1}"

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> httpx.Response:
        """Returns what the loopback at a path answers."""
        _, number, rest = path.split("/", 2)
        request = httpx.Request(method, f"http://loopback/{rest}", headers=headers, content=body)
        return self._loopbacks[int(number)].handle_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client may close a connection whenever it likes."""

    def close(self) -> None:
        """Ends it, without a wait for its threads."""
        self.shutdown()
        self.socket.close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Listener

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            response = self.server.answer(self.command, self.path, dict(self.headers), body)
        except httpx.TransportError:
            self.close_connection = True
            return False
        content = response.read()
        lines = [f"HTTP/1.1 {response.status_code} {response.reason_phrase}", f"Content-Length: {len(content)}"]
        lines += [f"{name}: {value}" for name, value in response.headers.items() if name != "content-length"]
        if response.status_code == 204:
            del lines[1]
        self.wfile.write("\r\n".join([*lines, "", ""]).encode() + content)
        return False


def session_on(loopback: Loopback, *, lazy: bool = True, url: str | None = None) -> RemoteSession:
    """A remote session that talks to `loopback`: through httpx's transport seam, or at the address of its listener."""
    if url is not None:
        return RemoteSession(ConnectOptions(url=url, lazy=lazy))
    client = httpx.Client(transport=loopback)
    return RemoteSession(ConnectOptions(url="http://loopback", lazy=lazy, http_client=client))
