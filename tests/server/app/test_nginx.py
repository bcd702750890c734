"""examples/nginx.conf in a real nginx: programs and REST pass through it, nothing is delayed, strangers are limited."""

import re
import ssl
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

import teletape as tf
from programs import load_script
from serving import KEYS, Server, make_certificate, ok, problem
from teletape_server.connections.pace import KEEP_ALIVE_SECONDS
from teletape_server.settings import Settings

pytestmark = pytest.mark.nginx

with_nginx = load_script("with_nginx")
MIB = 1 << 20


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(Settings(api_keys=KEYS, access_log="on", shutdown_grace=0.1)).running() as item:
        yield item


@pytest.fixture(scope="module")
def proxy(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("nginx")
    certificate, _ = make_certificate(folder)
    with with_nginx.proxy(folder, server.port, certificate) as item:
        yield item


def client(proxy: Any, **headers: str) -> httpx.Client:
    context = ssl.create_default_context(cafile=str(proxy.certificate))
    return httpx.Client(base_url=proxy.url, verify=context, headers=headers, timeout=60, trust_env=False)


def test_a_program_s_steps_pass_and_none_is_delayed(proxy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
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
    proxy: Any, server: Server, caplog: pytest.LogCaptureFixture
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


def test_strangers_are_limited_at_once_with_a_problem(proxy: Any) -> None:
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
    limits = re.findall(r"^ *limit_req zone.*", with_nginx.CONFIGURATION.read_text(), re.M)
    assert limits
    assert not [line for line in limits if not line.endswith(" nodelay;")]


def test_nginx_waits_for_the_longest_request_that_the_server_takes() -> None:
    [seconds] = re.findall(r"proxy_read_timeout (\d+)s;", with_nginx.CONFIGURATION.read_text())
    assert int(seconds) > Settings().time_limit + Settings().grace


def test_what_nginx_keeps_open_is_closed_before_the_server_would() -> None:
    """Else a request may meet a connection that the server has just closed, and fail."""
    [seconds] = re.findall(r"keepalive_timeout (\d+)s;", with_nginx.CONFIGURATION.read_text())
    assert int(seconds) < KEEP_ALIVE_SECONDS
