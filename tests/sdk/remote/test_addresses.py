"""Addresses that people pass to tf.connect, and what it says of those where no Teletape server is."""

from __future__ import annotations

import http.server
import re
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from teletape.errors import AuthenticationError, ConnectionFailed, InvalidArgumentError

import teletape as tf
from serving import KEYS
from teletape.core.network import first_contact
from teletape.core.network.address import normalized

if TYPE_CHECKING:
    from serving import Server


@pytest.mark.parametrize(
    ("address", "url"),
    [
        (8470, "http://127.0.0.1:8470"),
        ("8470", "http://127.0.0.1:8470"),
        (" 8470 ", "http://127.0.0.1:8470"),
        ("gpu-box:80", "http://gpu-box:80"),
        ("gpu-box", "http://gpu-box:8470"),
        ("10.0.0.7:1234/v1/", "http://10.0.0.7:1234"),
        ("[::1]:8470", "http://[::1]:8470"),
        ("http://gpu-box", "http://gpu-box"),
        ("HTTPS://gpu-box/v1", "https://gpu-box"),
        ("https://gpu-box//", "https://gpu-box"),
        ("http://gpu-box:8470/docs", "http://gpu-box:8470"),
        ("https://proxy/lab/teletape/v1/", "https://proxy/lab/teletape"),
        ("unix:///run/teletape.sock", "unix:///run/teletape.sock"),
    ],
)
def test_an_address_in_each_form(address: str | int, url: str) -> None:
    assert normalized(address) == url


@pytest.mark.parametrize(
    "address",
    [
        0,
        -3,
        70000,
        3.5,
        True,
        "ftp://gpu-box",
        "http://",
        "http://a b",
        "gpu-box:99999",
        "x:y",
        "http://x?y=1",
        " ",
        "",
    ],
)
def test_what_is_no_address_is_refused_with_the_forms_that_are(address: str | int) -> None:
    with pytest.raises(InvalidArgumentError, match=r"is no address of a server: expected http://.*host:port.*8470"):
        tf.connect(address)


@pytest.mark.parametrize("key", ["clé-de-l-équipe", "ann's key", "from-a-file\n", "\tkey-of-ann"])
def test_a_key_that_no_header_can_have_is_refused_before_anything_is_sent(key: str) -> None:
    with pytest.raises(InvalidArgumentError, match="an API key has characters of ASCII without spaces") as caught:
        tf.connect(8470, api_key=key)
    assert key.strip() not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    ["http://ann:s3cret@gpu-box:8470", "ann:s3cret@gpu-box", "https://s3cret@gpu-box", "http://ann:s3cret/@x@gpu-box"],
)
def test_a_password_in_an_address_is_refused_and_not_shown(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidArgumentError, match=r"a name or a password before an @.*api_key=") as caught:
        tf.connect(address)
    monkeypatch.setenv("TELETAPE_URL", address)
    with pytest.raises(InvalidArgumentError, match=r"…@gpu-box") as by_environment:
        tf.connect()
    for error in (caught.value, by_environment.value):
        assert "s3cret" not in str(error)
        assert "ann" not in str(error)


def test_a_free_port_is_reported_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConnectionFailed, match=rf"http://127\.0\.0\.1:{port}: nothing answers there .*teletape serve"):
        tf.connect(port)


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        (
            "http://gpu-box",
            r"This was port 80, for the address names none; .* at 8470 by default: http://gpu-box:8470$",
        ),
        ("https://gpu-box/lab", r"This was port 443, .*: https://gpu-box:8470/lab$"),
    ],
)
def test_a_refusal_at_an_address_without_a_port_names_the_port(url: str, advice: str) -> None:
    for error in (httpx.ConnectError("refused"), httpx.ConnectTimeout(""), httpx.RemoteProtocolError("SSH-2.0")):
        assert re.search(advice, str(first_contact.failure(url, error, 10.0)))
    assert re.search(advice, str(first_contact.no_teletape(url, "a page")))
    for other in ("http://gpu-box:81", "unix:///run/teletape.sock"):
        assert "This was port" not in str(first_contact.failure(other, httpx.ConnectError("refused"), 10.0))


def test_a_machine_that_does_not_exist() -> None:
    with pytest.raises(ConnectionFailed, match=r"no-such-host\.invalid:8470: there is no machine of that name"):
        tf.connect("no-such-host.invalid")


def test_a_wrong_key_and_none_say_how_to_pass_one(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TELETAPE_API_KEY", raising=False)
    with pytest.raises(
        AuthenticationError, match=r"none was passed: pass tf\.connect\(url, api_key=…\), or set .*API_KEY"
    ):
        tf.connect(server.port)
    with pytest.raises(AuthenticationError, match=r"the key that was passed is not one of its keys"):
        tf.connect(server.port, api_key="guess")
    with tf.connect(server.port, api_key=KEYS["ann"]) as session:
        assert session.url == server.url


def test_https_at_a_server_without_it(server_url: str) -> None:
    with pytest.raises(ConnectionFailed, match=rf"plain HTTP, not HTTPS: the address is {server_url}$"):
        tf.connect(server_url.replace("http", "https"))


class Page(http.server.BaseHTTPRequestHandler):
    """Answers each request with the server's body and status, and 3xx with a Location on another machine."""

    def do_GET(self) -> None:
        status, body = self.server.answer  # type: ignore[attr-defined]
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", f"https://gpu-box{self.path}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Quiet."""


@contextmanager
def other_server(status: int, body: bytes, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serves one page at a free port, over TLS if there is a context."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as other:
        other.answer = status, body  # type: ignore[attr-defined]
        other.handle_error = lambda *args: None  # type: ignore[method-assign]
        if context is not None:
            other.socket = context.wrap_socket(other.socket, server_side=True)
        thread = threading.Thread(target=other.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield other.server_address[1]
        finally:
            other.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "body"),
    [(404, b"<html>no such page</html>"), (200, b"<html>hello</html>"), (200, b'{"name": "jupyter"}')],
)
def test_another_server(status: int, body: bytes) -> None:
    with (
        other_server(status, body) as port,
        pytest.raises(ConnectionFailed, match=r"is not a Teletape server: GET http://.*/v1/info answered"),
    ):
        tf.connect(port)


def test_a_redirect_names_the_address_to_use() -> None:
    with (
        other_server(301, b"") as port,
        pytest.raises(ConnectionFailed, match=r"HTTP 301 is no answer .* to another address: use https://gpu-box$"),
    ):
        tf.connect(port)


def test_a_server_that_speaks_no_http() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
                connection.recv(4096)

        thread = threading.Thread(target=greet)
        thread.start()
        with pytest.raises(ConnectionFailed, match="what answers there does not speak HTTP"):
            tf.connect(listener.getsockname()[1])
        thread.join()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """A context of a server whose certificate no one has signed."""
    folder: Path = tmp_path_factory.mktemp("certificate")
    names = ["-subj", "/CN=localhost", "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "1",
    ]
    subprocess.run([*command, *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


def test_http_at_a_server_with_https(certificate: ssl.SSLContext) -> None:
    with (
        other_server(200, b"{}", certificate) as port,
        pytest.raises(ConnectionFailed, match=rf"speaks HTTPS: the address is https://127\.0\.0\.1:{port}"),
    ):
        tf.connect(port)


def test_a_certificate_that_is_not_trusted(certificate: ssl.SSLContext) -> None:
    with (
        other_server(200, b"{}", certificate) as port,
        pytest.raises(ConnectionFailed, match=r"the certificate there is not trusted .*SSL_CERT_FILE"),
    ):
        tf.connect(f"https://localhost:{port}")
