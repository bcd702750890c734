"""`python -m teletape.conformity`: our server passes every check, and a server that deviates does not."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from teletape.conformity.__main__ import main
from teletape.conformity.checks import CHECKS


class _AlwaysOne(BaseHTTPRequestHandler):
    """Answers everything with the same JSON, as a server that only seems to understand."""

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        body = json.dumps({"status": "ok", "values": {"y": {"dtype": "float32", "shape": [], "data": 1.0}}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _answer

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


class _NothingThere(BaseHTTPRequestHandler):
    """Answers everything with 404."""

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_error(404)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _answer

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@pytest.fixture
def deviating() -> Iterator[str]:
    with _served(_AlwaysOne) as url:
        yield url


@pytest.fixture
def without_faces() -> Iterator[str]:
    with _served(_NothingThere) as url:
        yield url


@contextmanager
def _served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_server_passes_a_hundred_checks(server_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = main([server_url])
    output = capsys.readouterr().out
    assert status == 0, output
    assert len(CHECKS) >= 100
    assert output == f"{len(CHECKS)} of {len(CHECKS)} checks passed\n"


def test_each_deviation_of_a_server_is_named(deviating: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([deviating, "--json"]) == 1
    failed = json.loads(capsys.readouterr().out)["failed"]
    assert len(failed) > 0.95 * len(CHECKS)
    assert "expected" in failed["the value of sin"]


def test_a_protocol_that_a_server_does_not_offer_is_left_out(
    without_faces: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([without_faces, "--json"]) == 1
    outcome = json.loads(capsys.readouterr().out)
    protocols = {name.partition(":")[0] for name in outcome["not_offered"]}
    assert protocols == {"UM-Bridge", "Tesseract", "Open Inference"}
    assert not outcome["failed"].keys() & {*outcome["not_offered"]}


def test_an_address_without_a_server_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["http://127.0.0.1:9", "--only", "the value of sin"]) == 1
    assert "ConnectError" in capsys.readouterr().out


def test_a_text_that_no_check_has_is_a_failure(server_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([server_url, "--only", "no such check"]) == 1
    assert capsys.readouterr().out == "0 of 0 checks passed\n"
