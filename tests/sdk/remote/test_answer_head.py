"""Heads of answers: what is read from one, and the pattern that the next ones are compared with."""

from __future__ import annotations

import random
from typing import Any

import pytest

from teletape.core.network.answer_head import END, AnswerHead, parse, pattern_of

HEAD = (
    b"HTTP/1.1 200 OK\r\ndate: Sun, 22 Nov 2026 20:00:00 GMT\r\ncontent-type: application/x-frame\r\n"
    b"Content-Length: 146\r\nX-Request-Id:17\r\nConnection: keep-alive"
)


def pattern(head: bytes = HEAD) -> Any:
    parsed = parse(head)
    assert parsed is not None
    return pattern_of(head, parsed)


def test_a_head_is_read() -> None:
    assert parse(HEAD) == AnswerHead(200, 146, None, set_cookie=False, keeps_open=True, request_id="17")
    refusal = b"HTTP/1.1 503 Busy\r\nRetry-After: 2\r\nSet-Cookie: a=b\r\nConnection: Close\r\nContent-Length: 0"
    assert parse(refusal) == AnswerHead(503, 0, "2", set_cookie=True, keeps_open=False)


def test_a_head_without_the_id_of_its_request_is_a_pattern_too() -> None:
    head = HEAD.replace(b"\r\nX-Request-Id:17", b"")
    match = pattern(head).match(head + END + b"the body")
    assert (int(match["length"]), match["request_id"], match.end()) == (146, b"", len(head) + len(END))


def test_heads_that_differ_in_their_values_match() -> None:
    other = HEAD.replace(b"20:00:00", b"20:00:07").replace(b"146", b" 9").replace(b"17", b"\t18 ")
    match = pattern().match(other + END + b"the body")
    assert (int(match["length"]), match["request_id"]) == (9, b"18 ")
    assert match.end() == len(other) + len(END)


@pytest.mark.parametrize(
    "other",
    [
        HEAD.replace(b"200", b"202"),
        HEAD.replace(b"keep-alive", b"close"),
        HEAD.replace(b"Length: 146", b"Length: -146"),
        HEAD.replace(b"Length: 146", b"Length: 1234567890123456"),
        HEAD.replace(b":17", b":\r\n 17"),
        HEAD.replace(b":17", b":\0"),
        HEAD.replace(b"\r\nX-", b"\nX-"),
        HEAD + b"\r\nTransfer-Encoding: chunked",
        HEAD + b"\r\nSet-Cookie: a=b",
        HEAD.replace(b"\r\nX-Request-Id:17", b""),
    ],
)
def test_heads_that_say_something_else_do_not_match(other: bytes) -> None:
    assert pattern().match(other + END) is None


@pytest.mark.parametrize(
    "line", [b"HTTP/1.1 503 Busy", b"HTTP/1.1 200 OK\r\nConnection: close", b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b"]
)
def test_an_unusual_head_is_no_pattern(line: bytes) -> None:
    assert pattern(line + b"\r\nContent-Length: 1") is None


def test_what_matches_is_read_alike() -> None:
    """Random changes of a head: whatever the pattern takes, `parse` takes with the same length."""
    draw, known, matches = random.Random(0), pattern(), 0
    for _ in range(20_000):
        head = bytearray(HEAD)
        for _ in range(draw.randint(1, 2)):
            at = draw.randrange(len(head))
            head[at : at + draw.randint(0, 2)] = bytes(draw.choices(b"\r\n\0:; a9Z-\t\x80", k=draw.randint(0, 2)))
        match = known.match(bytes(head) + END)
        if match is not None and match.end() == len(head) + len(END):
            matches += 1
            request_id = match["request_id"].strip(b" \t").decode("latin-1")
            expected = AnswerHead(200, int(match["length"]), None, set_cookie=False, keeps_open=True)
            assert parse(bytes(head)) == expected._replace(request_id=request_id)
    assert matches > 1000
