"""Methods of a worker, and replies stored under an Idempotency-Key."""

from typing import Any

import pytest

from teletape_engine.errors import UnimplementedError
from teletape_server.worker.idempotency import IdempotencyConflictError, ReplyStore
from teletape_server.worker.methods import METHODS, Request, Result, method


def request(body: bytes = b"", **params: Any) -> Request:
    return Request(params, "text/plain", memoryview(body), 0, lambda: False, lambda done, total: None, 0.0)


def test_an_answer_is_kept_under_its_key_and_given_to_that_request_alone() -> None:
    ran: list[str] = []

    def go(name: str, request_: Request) -> Result:
        ran.append(name)
        return Result("text/plain", [b"ran ", str(len(ran)).encode()], 5)

    store = ReplyStore()
    first = store.once("key", "kind", request(b"x", now=1.0), go)
    again = store.once("key", "kind", request(b"x", now=2.0), go)
    assert b"".join(first.buffers) == b"".join(again.buffers) == b"ran 1"
    store.once(None, "kind", request(b"x"), go)
    assert len(ran) == 2
    for other in (request(b"y"), request(b"x", full=True)):
        with pytest.raises(IdempotencyConflictError, match="'key'"):
            store.once("key", "kind", other, go)
    with pytest.raises(IdempotencyConflictError):
        store.once("key", "another", request(b"x"), go)


def test_a_refusal_is_kept_too() -> None:
    ran: list[str] = []

    def go(name: str, request_: Request) -> Result:
        ran.append(name)
        raise UnimplementedError("no")

    store = ReplyStore()
    for _ in range(2):
        with pytest.raises(UnimplementedError):
            store.once("key", "kind", request(), go)
    assert len(ran) == 1


def test_what_is_kept_is_bounded_but_holds_the_last() -> None:
    store = ReplyStore()
    large = b"x" * (40 << 20)
    for n in range(3):
        store.once(str(n), "kind", request(), lambda name, request_: Result("", [large], len(large)))
    assert list(store.replies) == ["2"]
    for n in range(100):
        store.once(f"small{n}", "kind", request(), lambda name, request_: Result("", [b"x"], 1))
    assert len(store.replies) <= 64


def test_a_method_has_one_function() -> None:
    assert {"attach", "batch"} <= METHODS.keys()
    with pytest.raises(TypeError, match="registered twice"):
        method("batch")(lambda session, request: Result("", [], 0))
