"""Requests are read alike however their bytes come: a part ends with a head or a request, and goes no further."""

from typing import NamedTuple

import hypothesis
import pytest
from hypothesis import strategies as st

from teletape_server.connections.reader import MalformedRequestError, RequestReader, Stage

CHUNKED = b"POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
REQUESTS = [
    b"GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\r\n\r\nGET /b HTTP/1.0\r\n\r\n",
    b"POST /b HTTP/1.1\r\nContent-Length: 9\r\nX:\r\n\r\n\r\n\r\nGET /",
    b"POST /0 HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
    CHUNKED + b"5\r\n\r\n\r\n0\r\n0\r\n\r\n",
    CHUNKED + b"2;a=b\r\n\r\n\r\n3\r\n\r\n\r\r\n00\r\nX: y\r\nZ:\r\n\r\n",
    b"PUT /d HTTP/1.1\r\nConnection: close\r\n\r\n",
]


class Read(NamedTuple):
    """What was read of a request."""

    method: bytes
    url: bytes
    version: str
    headers: list[tuple[bytes, bytes]]
    keep_alive: bool
    body: bytes


def read(pieces: list[bytes]) -> list[Read]:
    """The requests; each begins in a part of its own."""
    reader, requests, body = RequestReader(), [], b""
    for piece in pieces:
        position = 0
        while position < len(piece):
            position = reader.read(piece, position)
            body += reader.body
            if reader.message_ended:
                head = reader.head
                assert head is not None
                requests.append(Read(head.method, head.url, head.version, head.headers, head.keep_alive, body))
                body = b""
                if not head.keep_alive:  # what the connection does: nothing more is read
                    reader = RequestReader()
    assert (reader.stage, reader.head_bytes) == (Stage.START, 0)
    return requests


EXPECTED = {request: read([request])[0] for request in REQUESTS}


def test_the_requests_are_what_they_should_be() -> None:
    assert [item.body for item in EXPECTED.values()] == [
        b"",
        b"",
        b"\r\n\r\nGET /",
        b"",
        b"\r\n\r\n0",
        b"\r\n\r\n\r",
        b"",
    ]
    assert [item.version for item in EXPECTED.values()] == ["1.1", "1.0", "1.1", "1.1", "1.1", "1.1", "1.1"]
    assert [item.keep_alive for item in EXPECTED.values()] == [True, False, True, True, True, True, False]


@hypothesis.given(data=st.data(), requests=st.lists(st.sampled_from(REQUESTS), max_size=6))
def test_requests_are_the_same_however_their_bytes_come(data: st.DataObject, requests: list[bytes]) -> None:
    stream = b"".join(requests)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)))))
    pieces = [stream[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert read(pieces) == [EXPECTED[request] for request in requests]


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\n", b"\n\r\n", b"\r\r"])
def test_lines_end_with_both_characters(end: bytes) -> None:
    """Else a part could go beyond a head."""
    with pytest.raises(MalformedRequestError):
        read([b"GET / HTTP/1.1\r\nHost: x" + end + b"GET / HTTP/1.1\r\n\r\n"])
