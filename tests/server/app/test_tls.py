"""A server with a certificate: requests, frames and programs pass, it is renewed, and its connections are not lent."""

import contextlib
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from server_processes import children

import teletape as tf
from prepared import Prepared
from serving import KEYS, Program, Server, make_certificate, needs_exchange, ok, problem, until
from teletape_engine.commands import Call, Constant, Fetch
from teletape_server import tls
from teletape_server.connections.streams import BodyReceiver
from teletape_server.settings import Settings, SettingsError

MIB = 1 << 20


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    certificate, key = map(str, make_certificate(tmp_path_factory.mktemp("tls")))
    settings = Settings(api_keys=KEYS, direct="on", shutdown_grace=0.1, tls_certificate=certificate, tls_key=key)
    with Server(settings).running() as server:
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


def presented(port: int) -> bytes:
    """The certificate that a new connection gets."""
    context = ssl._create_unverified_context()
    with socket.create_connection(("127.0.0.1", port)) as plain, context.wrap_socket(plain) as sock:
        return sock.getpeercert(binary_form=True) or b""


def test_a_server_with_a_certificate_serves_programs_and_reads_it_again_at_sighup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file has both here; the address that the server prints is the one that a program takes."""
    (tmp_path / "next").mkdir()
    (certificate, key), next_files = make_certificate(tmp_path), make_certificate(tmp_path / "next")
    first, second = (ssl.PEM_cert_to_DER_cert(file.read_text()) for file in (certificate, next_files[0]))
    certificate.write_text(key.read_text() + certificate.read_text())
    code = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); from teletape_server import cli; cli.main()"
    command = [sys.executable, "-P", "-c", code, "serve", "--port", "0", "--tls-certificate", str(certificate)]
    with (
        open(tmp_path / "log", "w") as log,
        Prepared([*command, "--log-level", "info"], stdout=subprocess.PIPE, stderr=log) as process,
    ):

        def hang_up(line: str) -> None:
            process.send_signal(signal.SIGHUP)
            until(lambda: line in (tmp_path / "log").read_text())

        try:
            assert process.stdout is not None
            address = re.search(r"https://127.0.0.1:(\d+)", process.stdout.readline())
            assert address
            monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
            with tf.connect(address[0]):
                variable = tf.Variable([1.0, 2.0])
                certificate.write_text("no certificate")
                hang_up("the TLS certificate is not renewed, the last one stays: cannot use the TLS files")
                assert presented(int(address[1])) == first
                certificate.write_text("".join(file.read_text() for file in next_files))
                hang_up("the TLS certificate was read again: as SIGHUP asks")
                assert presented(int(address[1])) == second
                for child in children(process.pid):  # the end of a terminal reaches the session's process too
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(child, signal.SIGHUP)
                assert (variable * 2.0).numpy().tolist() == [2.0, 4.0]
        finally:
            process.terminate()


def test_a_renewed_certificate_is_taken_by_the_next_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "_LOOK_SECONDS", 0.01)
    (tmp_path / "next").mkdir()
    certificate, key = make_certificate(tmp_path)
    next_certificate, next_key = make_certificate(tmp_path / "next")
    settings = Settings(tls_certificate=str(certificate), tls_key=str(key), shutdown_grace=0.1)
    with contextlib.ExitStack() as stack, Server(settings).running() as server:
        first, second = (ssl.PEM_cert_to_DER_cert(file.read_text()) for file in (certificate, next_certificate))

        assert presented(server.port) == first
        before = stack.enter_context(server.client())
        ok(before.get("/v1/health"))
        shutil.copy(next_certificate, certificate)  # the key is still the former one's
        assert presented(server.port) == first
        shutil.copy(next_key, key)
        until(lambda: presented(server.port) == second)
        ok(before.get("/v1/health"))  # over the connection that it has
        # It is still open at the server's end, which does not wait for its caller.


@pytest.mark.parametrize("case", ["no file", "no certificate", "no key", "another key", "password"])
def test_files_that_are_no_certificate_with_its_key_are_refused(tmp_path: Path, case: str) -> None:
    certificate, key = make_certificate(tmp_path, password="secret" if case == "password" else "")
    if case == "no file":
        certificate.unlink()
    elif case == "no certificate":
        certificate.write_text("a page")
    elif case == "another key":
        (tmp_path / "other").mkdir()
        _, key = make_certificate(tmp_path / "other")
    settings = Settings(tls_certificate=str(certificate), tls_key=None if case == "no key" else str(key))
    with pytest.raises(SettingsError, match=r"cannot (read|use) the TLS file") as refusal:
        tls.check(settings)
    assert str(certificate) in str(refusal.value)


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--tls-key", "server.key"], "is the key of a certificate, and there is none"),
        (["--tls-certificate", "server.pem", "--unix", "teletape.sock"], "a Unix socket needs no encryption"),
        (["--tls-certificate", ""], "--tls-certificate must be the path of a file"),
        (["--unix", " "], "--unix must be the path of a file"),
    ],
)
def test_settings_that_do_not_fit_are_refused(flags: list[str], reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        Settings.load(flags, {})
