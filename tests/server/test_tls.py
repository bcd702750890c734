"""A server with a certificate: requests and frames pass, and no session's process gets their connection."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from serving import KEYS, Program, Server, needs_exchange, ok, problem
from teletape_engine.commands import Call, Constant, Fetch
from teletape_server.connections.streams import BodyReceiver
from teletape_server.settings import Settings

MIB = 1 << 20


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a key and its certificate for this machine."""
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    kind = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost".split()
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    result = subprocess.run(
        ["openssl", *kind, *names, "-keyout", "-", "-out", "-"], check=True, capture_output=True, text=True
    )
    file.write_text(result.stdout)
    return file


@pytest.fixture(scope="module")
def secure(certificate: Path) -> Iterator[Server]:
    with Server(Settings(api_keys=KEYS, direct="on", shutdown_grace=0.1), certificate=certificate).running() as server:
        yield server


@pytest.fixture
def http(secure: Server) -> Iterator[httpx.Client]:
    with secure.client() as client:
        ok(client.post("/v1/sessions", json={"id": "demo"}))
        yield client
        client.delete("/v1/sessions/demo")


def test_rest_passes(http: httpx.Client) -> None:
    for i in range(20):
        ok(http.put("/v1/sessions/demo/variables", json={"variables": {f"v{i}": [float(i)] * 1000}}))
    assert ok(http.get("/v1/sessions/demo/variables/v7?full=true")).json()["value"]["data"] == [7.0] * 1000


def test_small_frames_pass_and_stay_with_the_server(secure: Server, http: httpx.Client) -> None:
    program = Program(http, "demo")
    for i in range(20):
        (fetched,) = program.run(
            Constant(2 * i, np.float32(i)), Call("neg", (2 * i,), (2 * i + 1,)), Fetch(2 * i + 1)
        ).results
        assert fetched.array == -i  # type: ignore[union-attr]
    assert all(item.lending is None for item in secure.app.state.connections.open)


@needs_exchange
def test_a_large_frame_goes_straight_into_its_memory(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[int] = []
    updated = BodyReceiver.buffer_updated
    monkeypatch.setattr(BodyReceiver, "buffer_updated", lambda self, n: (pieces.append(n), updated(self, n))[1])
    array = np.random.default_rng(0).random(5 * MIB // 8)
    program = Program(http, "demo")
    for i in range(3):
        (fetched,) = program.run(Constant(i + 1, array), Fetch(i + 1)).results
        assert np.array_equal(fetched.array, array)  # type: ignore[union-attr]
    assert sum(pieces) > 3 * (array.nbytes - MIB)


def test_an_answer_before_the_body_is_here_arrives(secure: Server) -> None:
    """TLS has no half of a connection that could be closed."""
    with secure.client(None) as http:
        problem(http.post("/v1/sessions", content=bytes(20 * MIB)), 401, "unauthenticated")


def test_who_speaks_no_tls_is_left(secure: Server) -> None:
    with (
        httpx.Client(base_url=secure.url.replace("https", "http"), trust_env=False) as http,
        pytest.raises(httpx.HTTPError),
    ):
        http.get("/v1/health")
