"""Bodies that are being received or not answered yet: counted by key and in all, before memory is taken for them."""

import contextlib
import errno
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from serving import KEYS, Server, ok, problem, unread_post, until
from teletape_server.ipc.shared_memory import MessageBody
from teletape_server.problems import Problem
from teletape_server.sessions.quotas import Quota
from teletape_server.settings import Settings

MIB = 1 << 20
STEP = {"op": "add", "inputs": ["x", 1.0], "outputs": ["y"]}
LONG = {  # computes until it is cancelled
    "commands": [
        {"do": "function", "id": "f", "inputs": ["x"], "outputs": ["y"], "steps": [STEP]},
        {"do": "scan", "body": "f", "inputs": [1.0], "carried": 1, "length": 9_000_000, "outputs": ["z"]},
    ]
}


@pytest.fixture(scope="module")
def limited() -> Iterator[Server]:
    settings = Settings(api_keys=KEYS, max_body=4 * MIB, bodies_per_key=6 * MIB, bodies=8 * MIB, stall_limit=600.0)
    with Server(settings).running() as server:
        for owner in KEYS:
            with server.client(owner) as http:
                ok(http.post("/v1/sessions", json={"id": "demo"}))
        yield server


@pytest.fixture
def ann(limited: Server) -> Iterator[httpx.Client]:
    with limited.client("ann") as http:
        yield http


@pytest.fixture
def bob(limited: Server) -> Iterator[httpx.Client]:
    with limited.client("bob") as http:
        yield http


def entry(server: Server, owner: str = "ann") -> Any:
    return server.app.state.registry.find(owner, "demo")


@contextlib.contextmanager
def unfinished(server: Server, length: int, owner: str = "ann", path: str = "batch") -> Iterator[socket.socket]:
    """A request that declares a body, sends one byte of it, and leaves at the end of the block."""
    item = entry(server, owner)
    before = item.receiving
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
        head = f"POST /v1/sessions/demo/{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEYS[owner]}\r\n"
        sock.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{{".encode())
        until(lambda: item.receiving > before)
        yield sock
    until(lambda: item.receiving == before)


def send(http: httpx.Client, length: int) -> httpx.Response:
    """Sends a batch of that length that does nothing."""
    body = b'{"commands": []}'.ljust(length)
    return http.post("/v1/sessions/demo/batch", content=body, headers={"Content-Type": "application/json"})


def test_bodies_of_a_key_are_counted(limited: Server, ann: httpx.Client, bob: httpx.Client) -> None:
    with unfinished(limited, 4 * MIB):
        segments = len(entry(limited).host.channel.pool.segments)
        refused = send(ann, 3 * MIB)
        assert problem(refused, 429, "busy")["details"] == {"found": 4 * MIB, "limit": 6 * MIB}
        assert refused.headers["Retry-After"] == "1"
        assert len(entry(limited).host.channel.pool.segments) == segments, "no memory was taken for it"
        ok(send(ann, 2 * MIB))
        ok(send(bob, 3 * MIB))
    ok(send(ann, 3 * MIB))


def test_bodies_of_all_keys_are_counted(limited: Server, bob: httpx.Client) -> None:
    with unfinished(limited, 4 * MIB), unfinished(limited, 2 * MIB, path="ops"):
        refused = send(bob, 3 * MIB)
        assert problem(refused, 507, "resource_exhausted")["details"] == {"found": 6 * MIB, "limit": 8 * MIB}
        assert refused.headers["Retry-After"] == "1"
        ok(send(bob, 2 * MIB))
    ok(send(bob, 3 * MIB))


def test_a_body_counts_until_its_request_is_answered(limited: Server, ann: httpx.Client) -> None:
    running = ann.build_request("POST", "/v1/sessions/demo/batch", json=LONG, headers={"Accept": "text/event-stream"})
    response = ann.send(running, stream=True)  # its answer is on the way: nothing is received any more
    counts = limited.app.state.registry.bodies.counts
    assert entry(limited).receiving == 0
    assert counts["ann"] == counts[None] == int(running.headers["content-length"])
    ok(ann.post("/v1/sessions/demo/cancel"))
    response.read()
    until(lambda: counts["ann"] == counts[None] == 0)


def test_bodies_that_are_received_are_requests_of_the_session(limited: Server, ann: httpx.Client) -> None:
    """Any number of connections cannot each hold memory and wait for the session."""
    with contextlib.ExitStack() as stack:
        for _ in range(128):
            stack.enter_context(unfinished(limited, 10))
        assert problem(send(ann, 100), 429, "busy")["details"] == {"waiting": 128}
    ok(send(ann, 100))


def test_small_bodies_count_too(limited: Server, ann: httpx.Client) -> None:
    """Bodies that the server itself reads, without a session."""
    with unfinished(limited, 4 * MIB), unfinished(limited, 2 * MIB - 1):
        problem(ann.post("/v1/sessions", json={"id": "other"}), 429, "busy")
    assert not limited.app.state.registry.bodies.counts[None]


def test_one_body_is_always_admitted() -> None:
    quota = Quota(1, 1, bodies_per_key=10, bodies=10)
    quota.body(100, 0, 0)
    for mine, all_bytes, code in ((1, 1, "busy"), (0, 1, "resource_exhausted")):
        with pytest.raises(Problem) as caught:
            quota.body(10, mine, all_bytes)
        assert caught.value.code == code
    quota.body(9, 1, 1)


def test_a_session_that_ends_while_a_body_is_received(limited: Server, ann: httpx.Client) -> None:
    ok(ann.post("/v1/sessions", json={"id": "short"}))
    host = limited.app.state.registry.find("ann", "short").host
    with socket.create_connection(("127.0.0.1", limited.port), timeout=60) as sock:
        head = f"POST /v1/sessions/short/batch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEYS['ann']}\r\n"
        sock.sendall(f"{head}Content-Length: {MIB}\r\n\r\n".encode())
        until(lambda: bool(host.channel.pool.segments))
        ok(ann.delete("/v1/sessions/short"))
        sock.sendall(b" " * MIB)
        assert sock.recv(12) == b"HTTP/1.1 410"
    assert not limited.app.state.registry.bodies.counts[None]


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ECONNREFUSED])
def test_without_descriptors_or_processes_no_session_is_created(
    limited: Server, ann: httpx.Client, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Nothing listens at a forkserver that has died of such an error, until it is started again."""
    with monkeypatch.context() as patch:
        patch.setattr(limited.app.state.hosts, "start", failing(number))
        refused = ann.post("/v1/sessions", json={"id": "other"})
        assert os.strerror(number) in problem(refused, 503, "overloaded")["detail"]
        assert refused.headers["Retry-After"] == "1"
        patch.setattr(limited.app.state.hosts, "devices", failing(number))
        assert os.strerror(number) in problem(ann.get("/v1/devices"), 503, "overloaded")["detail"]
    assert ok(ann.get("/v1/devices")).json()["devices"][0]["device"] == "cpu"
    ok(ann.post("/v1/sessions", json={"id": "other"}))
    ok(ann.delete("/v1/sessions/other"))


@pytest.mark.parametrize(
    ("number", "status", "code"),
    [
        (errno.EMFILE, 503, "overloaded"),
        (errno.ENFILE, 503, "overloaded"),
        (errno.ENOMEM, 507, "resource_exhausted"),
        (errno.ENOSPC, 507, "resource_exhausted"),
    ],
)
def test_a_body_for_which_there_is_no_memory_or_descriptor(
    limited: Server, ann: httpx.Client, monkeypatch: pytest.MonkeyPatch, number: int, status: int, code: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(entry(limited).host, "body_buffer", failing(number))
        assert os.strerror(number) in problem(send(ann, 100), status, code)["detail"]
    assert not limited.app.state.registry.bodies.counts[None]
    ok(send(ann, 100))


def failing(number: int) -> Callable[..., Any]:
    """A function that raises the error of that number."""

    def fail(*_: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


def test_the_body_of_a_run_with_a_key_counts_until_the_answer(limited: Server, ann: httpx.Client) -> None:
    counts = limited.app.state.registry.bodies.counts
    content = json.dumps(LONG).encode() + b" " * MIB
    key = {"Idempotency-Key": "long", "Content-Type": "application/json"}
    with unread_post(ann, "/v1/run", content, Idempotency_Key="long"):
        until(lambda: limited.app.state.retries.works)
        assert counts["ann"] == len(content)
        with unread_post(ann, "/v1/run", content, Idempotency_Key="long"):
            problem(ann.post("/v1/run", content=content + b" ", headers=key), 422, "idempotency_conflict")
            assert counts["ann"] == len(content), "that of its retry is compared, and not kept"
    for session in limited.app.state.registry.live.all():
        session.host.cancel()
    until(lambda: not counts["ann"])


def test_a_run_with_a_key_that_did_not_come_in_full_is_begun_by_its_retry(limited: Server, ann: httpx.Client) -> None:
    content = json.dumps({"commands": [STEP | {"do": "op", "inputs": [1.0, 1.0]}], "fetch": ["y"]}).encode()
    headers = {"Idempotency-Key": "again", "Content-Type": "application/json"}
    with unread_post(ann, "/v1/run", content[:9], length=len(content), Idempotency_Key="again"):
        until(lambda: limited.app.state.registry.bodies.counts["ann"] == len(content))
        answers: list[httpx.Response] = []
        retry = threading.Thread(target=lambda: answers.append(ann.post("/v1/run", content=content, headers=headers)))
        retry.start()
        until(lambda: limited.answering() == 2)
    retry.join()
    assert ok(answers[0]).json()["values"]["y"]["data"] == 2.0
    assert "Idempotent-Replayed" not in answers[0].headers


def test_a_large_body_does_not_stay_mapped_in_the_server(
    limited: Server, ann: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the kernel counts as the server's own memory; the body itself is whole in the session."""
    monkeypatch.setattr("teletape_server.sessions.counted_bodies._MOST_MAPPED", MIB)
    mapped: list[int] = []
    let_go = MessageBody.let_go

    def note(body: MessageBody, start: int, end: int) -> None:
        before = shared_kib()
        let_go(body, start, end)
        mapped.append(before - shared_kib())

    monkeypatch.setattr(MessageBody, "let_go", note)
    values = bytes(range(256)) * (4 * MIB // 256 - 1)
    headers = {"Content-Type": "application/octet-stream", "Tensor-Dtype": "uint8", "Tensor-Shape": str(len(values))}
    ok(ann.post("/v1/sessions/demo/tensors", params={"id": "large"}, content=values, headers=headers))
    assert len(mapped) >= 3
    assert min(mapped) > 900
    raw = {"Accept": "application/octet-stream"}
    assert ok(ann.get("/v1/sessions/demo/tensors/large", headers=raw)).content == values


def shared_kib() -> int:
    """KiB of shared memory that this process, which has the server in a thread, has mapped now."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssShmem"))
