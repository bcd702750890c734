"""Plain requests: what a connection answers itself is, but for its time, what the framework answers."""

import itertools
import json
import socket
from typing import Any

import httpx
import pytest
from frame_streams import answer

from serving import KEYS, Server, needs_exchange, ok
from teletape_server.connections import frames
from teletape_server.http.plain_requests import plain_request
from teletape_server.settings import Settings

NUMBERS = [[0.5, 1.5], [2.5, 3.5]]
#: Requests in order: the path below the session's, or the whole one, and the body; without one it is a GET.
REQUESTS: list[tuple[str, Any]] = [
    ("functions", {"id": "loss", "text": "sum((x @ w - y)**2)"}),
    ("functions/loss/value_and_gradient", {"inputs": {"x": NUMBERS, "w": [1, 2], "y": [0, 1]}, "sources": ["w"]}),
    ("functions/loss/call", {"inputs": {"x": NUMBERS, "w": [1, 2], "y": [0, 1]}, "outputs": ["z"]}),
    ("functions/loss/call", {"inputs": {"x": NUMBERS, "w": [1, 2, 3], "y": [0, 1]}}),
    ("functions/loss/call", {"inputs": {"x": NUMBERS}}),
    ("functions/none/call", {"inputs": {"x": NUMBERS}}),
    ("variables", {"id": "v", "value": NUMBERS}),
    ("tensors", {"id": "t", "value": [0.25] * 5000}),
    ("tensors", {"id": "t", "value": 1.0}),
    ("tapes", {"id": "tape"}),
    ("tapes/tape/ops", {"ops": [{"op": "square", "inputs": ["v"], "outputs": ["y"]}]}),
    ("tapes/tape/gradient", {"targets": ["y"], "sources": ["v"]}),
    ("tapes/tape/gradient", {"targets": ["y"], "sources": ["v"]}),
    ("tapes/tape/nothing", {}),
    ("variables", {"value": "text"}),
    ("variables", b"{"),
    ("variables", b'{"value": 1, "value": 2}'),
    ("run", {"commands": [{"do": "constant", "id": "c", "value": [0.5] * 600}], "fetch": ["c"]}),
    ("run", {"commands": [{"do": "op", "op": "nothing", "inputs": [], "outputs": ["c2"]}]}),
    ("/v1/run", {"commands": [{"do": "constant", "id": "c", "value": [0.5] * 600}], "fetch": ["c"]}),
    ("/v1/run", {"commands": [{"do": "op", "op": "exp", "inputs": [0.0], "outputs": ["c"]}], "fetch": ["c", "d"]}),
    ("/v1/run", {"commands": [{"do": "op", "op": "nothing", "inputs": [], "outputs": ["c2"]}]}),
    ("/v1/run", b""),
    ("/v1/run", b"{"),
    ("/v1/run", b"[" * (1 << 20) + b"]"),
    ("/v1/health", None),
]
OWN = ("connection", "date", "etag", "x-request-id", "teletape-boot-id")  # headers that differ from answer to answer


def answers(way: str, encoding: str) -> list[Any]:
    """What a server says, and counts, whose connections answer plain requests (on), or do not (off)."""
    settings = Settings(api_keys=KEYS, frames=way, shutdown_grace=0.1)
    with Server(settings).running() as server, server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo", "dtype": "float64"}))
        entries: list[Any] = []
        for path, body in REQUESTS:
            sent = body if isinstance(body, bytes) else json.dumps(body).encode()
            headers = {"Content-Type": "application/json", "Accept-Encoding": encoding}
            whole = path if path.startswith("/") else f"/v1/sessions/demo/{path}"
            if body is None:
                response = http.get(whole, headers={"Accept-Encoding": encoding})
            else:
                response = http.post(whole, content=sent, headers=headers)
            own = {name: value for name, value in response.headers.items() if name not in OWN}
            content = {name: value for name, value in response.json().items() if name != "instance"}
            entries.append((path, response.status_code, own, content))
        lines = http.get("/metrics").text.splitlines()
        return [
            *entries,
            *sorted(line for line in lines if line.startswith("teletape_requests_total") and "health" not in line),
        ]


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_an_answer_is_the_framework_s(encoding: str) -> None:
    here, framework = answers("on", encoding), answers("off", encoding)
    for plain, other in zip(here, framework, strict=True):
        assert plain == other
    assert {status for _, status, _, _ in here[: len(REQUESTS)]} == {200, 201, 400, 404, 409, 422}
    assert any("gzip" in entry[2].values() for entry in here[: len(REQUESTS)]) is (encoding == "gzip")


@needs_exchange
def test_which_requests_are_answered_past_the_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = list[str]()
    respond = frames.Frames.respond

    def noted(self: frames.Frames, exchange: Any, response: Any) -> None:
        answered.append(exchange.head.path)
        respond(self, exchange, response)

    monkeypatch.setattr(frames.Frames, "respond", noted)
    with Server(Settings(api_keys=KEYS, shutdown_grace=0.1)).running() as server, server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        answered.clear()
        body = {"value": 1.0}
        path = "/v1/sessions/demo/tensors"
        for headers in ({}, {"Accept": "application/json, */*;q=0.5"}, {"Accept-Encoding": "gzip"}):
            ok(http.post(path, json=body, headers=headers))
        assert answered == [path] * 3
        answered.clear()
        for headers in (
            {"Idempotency-Key": "mine"},
            {"Accept": "text/event-stream"},
            {"Accept": "application/vnd.safetensors, application/json"},
            {"Origin": "http://127.0.0.1"},
        ):
            http.post(path, json=body, headers=headers)
        http.post(f"{path}?full=true", json=body)
        http.post(path, json=body, headers={"X-API-Key": "wrong", "Authorization": ""})
        http.post("/v1/sessions/other/tensors", json=body)
        http.get(path)
        http.get("/v1/health", headers={"Origin": "http://127.0.0.1"})
        http.head("/v1/health")
        http.post("/v1/run?full=true", json={"commands": []})
        assert answered == []
        ok(http.get("/v1/health"))
        ok(http.post("/v1/run", json={"commands": []}))
        assert answered == ["/v1/health", "/v1/run"]


@pytest.mark.parametrize(
    ("path", "accept", "is_plain"),
    [
        ("/v1/sessions/s/functions/f/call", "*/*", True),
        ("/v1/sessions/s/functions/f/call", "application/json;q=0.1", True),
        ("/v1/sessions/s/functions/f/call", "text/html", False),
        ("/v1/sessions/s/functions/a%20b/call", "*/*", False),
        ("/v1/sessions/ANN:s/functions/f/call", "*/*", False),
        ("/v1/sessions/s/functions/f/call/", "*/*", False),
        ("/v1/sessions/s/functions/f/fly", "*/*", False),
        ("/v1/sessions/s", "*/*", False),
    ],
)
def test_which_heads_are_plain(path: str, accept: str, is_plain: bool) -> None:
    assert (plain_request(path, accept) is not None) is is_plain


def test_a_head_that_is_known_is_asked_for_its_length_again() -> None:
    """JSON has a limit of its own, also where the head differs from the one before in its length alone."""

    def head(length: int) -> bytes:
        lines = ["POST /v1/sessions/demo/tensors HTTP/1.1", "Host: 127.0.0.1", f"X-API-Key: {KEYS['ann']}"]
        return "\r\n".join([*lines, "Content-Type: application/json", f"Content-Length: {length}", "", ""]).encode()

    body = b'{"value": 1.0}'
    with Server(Settings(api_keys=KEYS, shutdown_grace=0.1)).running() as server, server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
            for _ in range(2):
                sock.sendall(head(len(body)) + body)
                assert answer(sock).status == 201
            sock.sendall(head(60 << 20))
            refusal = answer(sock)
        assert (refusal.status, json.loads(refusal.body)["code"]) == (413, "body_too_large")


def test_requests_of_every_kind_follow_one_another_on_a_connection(http: httpx.Client) -> None:
    """With and without a body, answered by the connection or by the framework: every three of them, in any order."""
    exp = {"commands": [{"do": "op", "op": "exp", "inputs": [0.0], "outputs": ["c"]}], "fetch": ["c"]}
    kinds: list[tuple[str, str, Any]] = [
        ("GET", "/v1/health", None),
        ("GET", "/v1/info", None),
        ("POST", "/v1/run", exp),
        ("POST", "/v1/sessions", {"id": "order"}),
        ("POST", "/v1/sessions/order/run", {**exp, "scratch": True}),
        ("POST", "/v1/sessions/order/tensors", {"id": "t", "value": [1.0, 2.0], "replace": True}),
    ]
    ok(http.post("/v1/sessions", json={"id": "order", "replace": True}))
    for three in itertools.product(kinds, repeat=3):
        for method, place, body in three:
            answer = http.request(method, place, json=body)
            assert answer.status_code < 300, ([f"{method} {place}" for method, place, _ in three], answer.text)
    ok(http.delete("/v1/sessions/order"))
