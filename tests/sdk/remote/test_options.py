"""How a program reaches its server: certificates, proxies, headers, a client of its own, attempts and timeouts."""

from __future__ import annotations

import http.server
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from loopback import Listener, Loopback
from teletape.errors import ConnectionFailed, InvalidArgumentError, RequestError
from test_connection import BROKEN, connected, respond

import teletape as tf
from serving import KEYS, Server, make_certificate
from teletape.core.network import http as module
from teletape.core.network.options import ConnectOptions
from teletape.core.sessions.remote import RemoteSession
from teletape_server.settings import Settings

if TYPE_CHECKING:
    from test_connection import Script


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def secure(certificate: tuple[Path, Path]) -> Iterator[Server]:
    file, key = map(str, certificate)
    with Server(Settings(api_keys=KEYS, shutdown_grace=0.1, tls_certificate=file, tls_key=key)).running() as server:
        yield server


def doubled(url: str, **options: Any) -> float:
    with tf.connect(url, **options):
        return float(tf.constant(3.0) * 2.0)


# --------------------------------------------------------------------------------------------------------- certificates
def test_a_certificate_of_your_own_is_trusted_by_its_file_its_context_or_not_checked(
    secure: Server, certificate: tuple[Path, Path]
) -> None:
    file = str(certificate[0])
    for verify in (file, ssl.create_default_context(cafile=file), False):
        assert doubled(secure.url, api_key=KEYS["ann"], verify=verify) == 6.0
    with pytest.raises(
        ConnectionFailed, match=r"not trusted .*pass the file of its authority, tf\.connect\(url, verify"
    ):
        tf.connect(secure.url, api_key=KEYS["ann"])


def test_a_server_gets_the_certificate_of_the_caller(certificate: tuple[Path, Path]) -> None:
    """What answers is no Teletape server, which is enough: without a certificate the connection ends before that."""
    file, key = map(str, certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(file)
    with serving(Answers, context) as port:
        with pytest.raises(ConnectionFailed, match="is not a Teletape server"):
            tf.connect(f"https://localhost:{port}", verify=file, cert=(file, key))
        with pytest.raises(ConnectionFailed) as caught:
            tf.connect(f"https://localhost:{port}", verify=file, connect_timeout=0.2)
        assert "is not a Teletape server" not in str(caught.value)


@pytest.mark.parametrize("options", [{"verify": "/no/such/file"}, {"cert": ("/no/cert", "/no/key")}])
def test_a_certificate_that_cannot_be_read(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="no certificate can be read there"):
        tf.connect("https://localhost:1", **options)


# ------------------------------------------------------------------------------------------------- proxies and headers
class Answers(http.server.BaseHTTPRequestHandler):
    """Answers each request with a JSON object, and notes its line and headers."""

    def do_GET(self) -> None:
        self.server.requests.append((self.requestline, dict(self.headers)))  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args: object) -> None:
        """Quiet."""


@contextmanager
def serving(
    handler: type[http.server.BaseHTTPRequestHandler], context: ssl.SSLContext | None = None, requests: Any = None
) -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.requests = [] if requests is None else requests  # type: ignore[attr-defined]
        server.handle_error = lambda *args: None  # type: ignore[method-assign]
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def test_requests_go_through_the_proxy_that_is_named() -> None:
    requests: list[tuple[str, dict[str, str]]] = []
    with serving(Answers, requests=requests) as port:
        proxy = f"http://127.0.0.1:{port}"
        with pytest.raises(ConnectionFailed, match="is not a Teletape server"):
            tf.connect("http://gpu-box.invalid:8470", proxy=proxy)
    assert requests[0][0] == "GET http://gpu-box.invalid:8470/v1/info HTTP/1.1"
    with pytest.raises(InvalidArgumentError, match=r"proxy='ftp://there'"):
        tf.connect(8470, proxy="ftp://there")


def test_every_request_has_the_headers_of_the_program(server_url: str) -> None:
    seen: list[tuple[str, str | None]] = []

    def note(request: httpx.Request) -> None:
        seen.append((request.url.path, request.headers.get("X-Team")))

    with httpx.Client(event_hooks={"request": [note]}) as client:
        assert doubled(server_url, headers={"X-Team": "vision"}, http_client=client) == 6.0
    assert {team for _, team in seen} == {"vision"}
    assert any(path.endswith("/batch") for path, _ in seen)


def test_frames_over_a_socket_have_the_headers_too() -> None:
    lines: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        http = module.Connection(ConnectOptions(url=port, headers={"X-Team": "vision"}))

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                lines.append(connection.recv(1 << 16))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

        thread = threading.Thread(target=answer)
        thread.start()
        assert bytes(http.frame("/v1/batch", [b"x"], 1, "application/x-frame").body) == b"ok"
        thread.join()
        http.close()
    assert b"\r\nX-Team: vision\r\n" in lines[0]


def test_a_client_of_the_program_serves_several_sessions_and_stays_open(server_url: str) -> None:
    with httpx.Client() as client:
        assert [doubled(server_url, http_client=client) for _ in range(2)] == [6.0, 6.0]
        assert not client.is_closed


# ------------------------------------------------------------------------------------------------ attempts and timeouts
@pytest.mark.parametrize("retries", [0, 1, 3])
@pytest.mark.parametrize("answer", [BROKEN[0], respond(503, b"busy", Retry_After="0")], ids=["unanswered", "busy"])
def test_a_request_is_sent_again_so_often_at_most(retries: int, answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)
    script: Script
    script, http = connected(*[answer] * 9, max_retries=retries)
    with pytest.raises((ConnectionFailed, RequestError)):
        http.json("GET", "/v1/x")
    assert len(script.requests) == retries + 1


def test_progress_is_no_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)
    running = [respond(202, b'{"status": "running"}', Retry_After="0") for _ in range(5)]
    _, http = connected(BROKEN[0], *running, BROKEN[0], respond(200, b"{}"), max_retries=1)
    assert http.json("GET", "/v1/x") == {}


def test_a_server_that_takes_connections_and_says_nothing_is_left_after_the_connect_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        began = time.monotonic()
        with pytest.raises(ConnectionFailed, match="no answer"):
            tf.connect(listening.getsockname()[1], connect_timeout=0.2)
        assert time.monotonic() - began < 2.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": 0}, "timeout is a number of seconds above 0, or None; found 0"),
        ({"timeout": float("nan")}, "timeout is a number .* found nan"),
        ({"timeout": True}, "timeout is a number .* found True"),
        ({"connect_timeout": "1"}, "connect_timeout is a number .* found '1'"),
        ({"max_retries": -1}, "max_retries is a number of attempts from 0 up, or None; found -1"),
        ({"max_retries": 1.5}, "max_retries is a number .* found 1.5"),
        ({"http_client": httpx.Client(), "verify": False}, "belong to the http_client that is passed"),
        ({"http_client": httpx.AsyncClient()}, "http_client is an httpx.Client, also of an async program"),
    ],
)
def test_options_that_cannot_be_meant(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        tf.connect(8470, **options)


def test_a_record_of_options_shows_no_secrets() -> None:
    options = ConnectOptions(url=8470, api_key="secret", headers={"Authorization": "secret"})
    assert "secret" not in repr(options)


def test_a_connection_that_was_closed_between_two_reads_is_replaced_without_an_attempt() -> None:
    listener, loopback = Listener(), Loopback()
    with RemoteSession(ConnectOptions(url=listener.url(loopback), max_retries=0)) as session:
        assert (tf.ones(300) + 1.0).numpy().sum() == 600.0
        link = session.channel.http._frames.idle_link  # type: ignore[union-attr]  # it is reached by a socket
        assert link is not None
        link._socket.shutdown(socket.SHUT_RD)  # as when the server ends it
        assert (tf.ones(300) + 2.0).numpy().sum() == 900.0
        loopback.mishaps.append("lost")
        with pytest.raises(ConnectionFailed):
            (tf.ones(300) + 3.0).numpy()
    listener.close()
