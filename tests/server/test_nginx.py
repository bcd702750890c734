"""examples/nginx.conf in a real nginx: programs and REST pass through it, nothing is delayed, strangers are limited."""

import contextlib
import os
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np
import pytest

import teletape as tf
from serving import KEYS, Server, make_certificate, ok, problem, until
from teletape_server.connections.pace import KEEP_ALIVE_SECONDS
from teletape_server.settings import Settings

pytestmark = pytest.mark.nginx

CONFIGURATION = Path(__file__).resolve().parents[2] / "examples" / "nginx.conf"
MIB = 1 << 20


class Proxy(NamedTuple):
    """A running nginx.

    Attributes:
        url: Its address.
        certificate: The file with its certificate.
        log: The file with what it says from the level warn on.
    """

    url: str
    certificate: Path
    log: Path


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


def configured(folder: Path, port: int, server_port: int) -> str:
    """The configuration with the places of the test: each is in the file exactly once."""
    text = CONFIGURATION.read_text()
    temporary = "".join(
        f"{name}_temp_path {folder / name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    for place, own in (
        ("/run/nginx.pid", str(folder / "nginx.pid")),
        ("/var/log/nginx/error.log", str(folder / "error.log")),
        ("/var/log/nginx/access.log", str(folder / "access.log")),
        ("/etc/nginx/teletape.crt", str(folder / "cert.pem")),
        ("/etc/nginx/teletape.key", str(folder / "key.pem")),
        ("listen 443 ", f"listen 127.0.0.1:{port} "),
        ("server 127.0.0.1:8470", f"server 127.0.0.1:{server_port}"),
        ("worker_processes auto", "worker_processes 1"),
        ("http {\n", "http {\n" + temporary),
    ):
        assert text.count(place) == 1, place
        text = text.replace(place, own)
    return text


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(Settings(api_keys=KEYS, access_log="on", shutdown_grace=0.1)).running() as item:
        yield item


@pytest.fixture(scope="module")
def proxy(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder, port = tmp_path_factory.mktemp("nginx"), free_port()
    certificate, _ = make_certificate(folder)
    (folder / "nginx.conf").write_text(configured(folder, port, server.port))
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    assert nginx is not None
    command = [nginx, "-p", folder, "-e", folder / "error.log", "-c", folder / "nginx.conf", "-g", "daemon off;"]
    with subprocess.Popen(command) as process:
        try:
            until(lambda: process.poll() is not None or listens(port))
            assert process.poll() is None, (folder / "error.log").read_text()
            yield Proxy(f"https://localhost:{port}", certificate, folder / "error.log")
        finally:
            process.terminate()


def listens(port: int) -> bool:
    with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def client(proxy: Proxy, **headers: str) -> httpx.Client:
    context = ssl.create_default_context(cafile=str(proxy.certificate))
    return httpx.Client(base_url=proxy.url, verify=context, headers=headers, timeout=60, trust_env=False)


def test_a_program_s_steps_pass_and_none_is_delayed(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than the page's limits allow a stranger; nginx writes a line for each that it delays or refuses."""
    monkeypatch.setenv("SSL_CERT_FILE", str(proxy.certificate))
    with tf.connect(proxy.url, api_key=KEYS["ann"]):
        v = tf.Variable(0.0)
        for _ in range(300):
            v.assign_add(1.0)
            assert v.numpy() > 0  # a request
        large = np.arange(4 * MIB, dtype=np.float32)
        assert np.array_equal(tf.constant(large).numpy(), large)
    assert proxy.log.read_text() == ""


def test_rest_passes_with_the_caller_s_address_and_name(
    proxy: Proxy, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with client(proxy, Authorization=f"Bearer {KEYS['bob']}") as http:
        for number in range(300):
            body = {"commands": [{"do": "op", "op": "add", "inputs": [number, 1], "outputs": ["y"]}], "fetch": ["y"]}
            if number == 0:
                assert ok(http.post("/v1/run", json=body)).json()["values"]["y"]["data"] == 1
            ok(http.get("/v1/info"))
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        large = np.arange(4 * MIB, dtype=np.float32)
        headers = {
            "Content-Type": "application/octet-stream",
            "Tensor-Dtype": "float32",
            "Tensor-Shape": str(large.size),
        }
        ok(http.post("/v1/sessions/demo/tensors?id=x", content=large.tobytes(), headers=headers))
        answer = ok(http.get("/v1/sessions/demo/tensors/x", headers={"Accept": "application/octet-stream"}))
        assert answer.content == large.tobytes()
        with http.stream("GET", "/v1/sessions", headers={"Accept": "text/event-stream"}) as stream:
            assert next(stream.iter_lines()) == "event: sessions", "events come as they are sent"
        ok(http.delete("/v1/sessions/demo"))
    lines = [record.getMessage() for record in caplog.records if record.name == "teletape.access"]
    assert lines
    assert {line.split(" ")[8] for line in lines} == {"127.0.0.1"}
    assert proxy.log.read_text() == ""


def test_strangers_are_limited_at_once_with_a_problem(proxy: Proxy) -> None:
    with client(proxy) as http:
        answers = [http.get("/v1/health") for _ in range(300)]
    refused = [answer for answer in answers if answer.status_code != 200]
    assert 0 < len(refused) < 250
    for answer in refused:
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
        assert answer.headers["content-type"] == "application/problem+json"
        assert (answer.json()["code"], answer.json()["status"]) == ("busy", 429)
    log = proxy.log.read_text()
    assert "limiting requests" in log
    assert "delaying" not in log
    proxy.log.write_text("")
    with client(proxy, Authorization=f"Bearer {KEYS['bob']}") as http:
        ok(http.get("/v1/info"))
    with client(proxy, **{"X-API-Key": "wrong-key"}) as http:
        problem(http.get("/v1/info"), 401, "unauthenticated")


def test_no_limit_delays_however_fast_a_program_is() -> None:
    limits = re.findall(r"^ *limit_req zone.*", CONFIGURATION.read_text(), re.M)
    assert limits
    assert not [line for line in limits if not line.endswith(" nodelay;")]


def test_nginx_waits_for_the_longest_request_that_the_server_takes() -> None:
    [seconds] = re.findall(r"proxy_read_timeout (\d+)s;", CONFIGURATION.read_text())
    assert int(seconds) > Settings().time_limit + Settings().grace


def test_what_nginx_keeps_open_is_closed_before_the_server_would() -> None:
    """Else a request may meet a connection that the server has just closed, and fail."""
    [seconds] = re.findall(r"keepalive_timeout (\d+)s;", CONFIGURATION.read_text())
    assert int(seconds) < KEEP_ALIVE_SECONDS
