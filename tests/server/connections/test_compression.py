"""Compression: texts above a size for callers that accept it, and nothing else; the bytes stay what they are."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from typing import Any

import httpx
import numpy as np
import pytest
from rest_client import RAW, Rest
from starlette.applications import Starlette
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from zlib_ng import zlib_ng

from serving import Program, ok, problem
from teletape_engine.commands import Constant, Fetch
from teletape_server.middleware import compression
from teletape_server.middleware.compression import CompressionMiddleware, accepts_gzip

GZIP = {"Accept-Encoding": "gzip"}
PLAIN = {"Accept-Encoding": "identity"}


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("*", True),
        ("*;q=0.1, gzip;q=0", False),
        ("gzip;q=0", False),
        ("gzip;q=none", False),
        ("gzipped", False),
        ("br", False),
        ("identity", False),
        ("", False),
    ],
)
def test_what_a_caller_accepts(header: str, accepted: bool) -> None:
    assert accepts_gzip(header) is accepted


@pytest.mark.parametrize("path", ["/v1/ops", "/openapi.json", "/openapi.yaml", "/static/shared/theme.css", "/guide"])
def test_texts_are_compressed_and_say_so(http: httpx.Client, path: str) -> None:
    for _ in range(2):  # the second time from what is stored
        plain, compressed = ok(http.get(path, headers=PLAIN)), ok(http.get(path, headers=GZIP))
        assert compressed.content == plain.content
        assert compressed.headers["content-encoding"] == "gzip"
        assert "content-encoding" not in plain.headers
        assert "accept-encoding" in compressed.headers["vary"].lower()
        assert "accept-encoding" in plain.headers["vary"].lower(), "a cache must not give a caller the other form"
        assert compressed.num_bytes_downloaded < plain.num_bytes_downloaded / 2


def test_a_tensor_in_json_is_compressed_and_in_bytes_is_not(rest: Rest) -> None:
    rest.create("variables", {"id": "w", "value": [1.5] * 300_000})
    path = f"{rest.path}/variables/w?full=true"
    compressed = ok(rest.http.get(path, headers=GZIP))
    assert compressed.headers["content-encoding"] == "gzip"
    assert compressed.num_bytes_downloaded < 20_000
    assert compressed.json()["value"]["data"] == [1.5] * 300_000
    raw = ok(rest.http.get(path, headers=GZIP | {"Accept": RAW}))
    assert "content-encoding" not in raw.headers
    assert raw.num_bytes_downloaded == 1_200_000


def test_frames_and_events_are_never_compressed(rest: Rest) -> None:
    program = Program(rest.http, rest.session)
    origin = {"Origin": str(rest.http.base_url).rstrip("/")}
    for headers in (GZIP, GZIP | origin):  # answered by the connection, and by the framework
        constant = Constant(program.seq, np.full(5000, 0.5, np.float32))
        answer = ok(program.post(program.batch(constant, Fetch(program.seq)), **headers))
        assert "content-encoding" not in answer.headers
        assert len(answer.content) > 20_000
    rest.create("tensors", {"id": "x", "value": [1.5] * 900})
    body = {"ops": [{"op": "neg", "inputs": ["x"], "outputs": ["y"]}]}
    events = ok(rest.post("ops", body, Accept="text/event-stream", **GZIP))
    assert "content-encoding" not in events.headers
    assert len(events.content) > 3000


def test_problems_are_compressed_if_they_are_long(rest: Rest) -> None:
    short = rest.http.get("/v1/nothing", headers=GZIP)
    assert "content-encoding" not in short.headers
    body = {"commands": [{"do": "op"}] * 40}
    long = rest.http.post("/v1/run", json=body | {f"member{at}" * 5: 1 for at in range(90)}, headers=GZIP)
    problem(long, 422, "invalid_request")
    assert ("content-encoding" in long.headers) == (len(long.content) >= 1024)


# ------------------------------------------------------------------------------------------------- without a server
def answered(response: Response | StreamingResponse, path: str = "/v1/x", **headers: str) -> httpx.Response:
    """The answer of an application with this one response."""

    async def route(_: Any) -> Response:
        return response

    async def ask() -> httpx.Response:
        app = CompressionMiddleware(Starlette(routes=[Route(path, route)]))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://test") as client:
            return await client.get(path, headers=GZIP | headers)

    return asyncio.run(ask())


@pytest.mark.parametrize(("length", "is_compressed"), [(1023, False), (1024, True)])
def test_the_size_from_which_texts_are_compressed(length: int, is_compressed: bool) -> None:
    answer = answered(Response(b"x" * length, media_type="application/json"))
    assert ("content-encoding" in answer.headers) is is_compressed
    assert answer.content == b"x" * length


@pytest.mark.parametrize(
    "kind", ["application/octet-stream", "application/vnd.safetensors", "text/event-stream", "image/png", ""]
)
def test_other_types_are_left_alone(kind: str) -> None:
    answer = answered(Response(b"x" * 5000, media_type=kind))
    assert "content-encoding" not in answer.headers
    assert "vary" not in answer.headers


def test_what_has_an_encoding_keeps_it() -> None:
    body = gzip.compress(b"x" * 50_000) + b"\0" * 2000
    answer = answered(Response(body, media_type="text/html", headers={"Content-Encoding": "gzip"}))
    assert answer.headers["content-length"] == str(len(body))


def test_pieces_are_compressed_as_they_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large ones in threads: so the event loop does nothing else meanwhile than take the next piece."""
    pieces = [bytes([65 + at]) * (compression.INLINE * 4 if at % 2 else 10) for at in range(6)]
    threads: list[int] = []
    to_thread = asyncio.to_thread

    async def noted(function: Any, body: bytes) -> bytes:
        threads.append(len(body))
        return await to_thread(function, body)

    monkeypatch.setattr(asyncio, "to_thread", noted)

    async def parts() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    answer = answered(StreamingResponse(parts(), media_type="application/json"))
    assert answer.content == b"".join(pieces)
    assert answer.headers["content-encoding"] == "gzip"
    assert threads == [compression.INLINE * 4] * 3


def test_what_all_callers_get_is_compressed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compressors: list[Any] = []
    new = zlib_ng.compressobj

    def counted(*arguments: Any) -> Any:
        compressors.append(arguments)
        return new(*arguments)

    monkeypatch.setattr(zlib_ng, "compressobj", counted)

    async def page(request: Any) -> Response:
        return Response(b"y" * 5000, media_type="text/html", headers={"ETag": f'"{request.query_params["tag"]}"'})

    async def ask() -> None:
        app = CompressionMiddleware(Starlette(routes=[Route("/page", page), Route("/v1/page", page)]))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://test") as client:
            for path, tag, count in (
                *(("/page", "1", 1), ("/page", "1", 1), ("/page", "2", 2), ("/page", "1", 2)),
                *(("/v1/page", "1", 3), ("/v1/page", "1", 4)),  # of a session: not stored
            ):
                answer = await client.get(path, params={"tag": tag}, headers=GZIP)
                assert (answer.content, answer.headers["etag"]) == (b"y" * 5000, f'"{tag}-gzip"')
                assert len(compressors) == count
            for at in range(compression._STORED):
                await client.get("/page", params={"tag": f"other{at}"}, headers=GZIP)
            before = len(compressors)
            await client.get("/page", params={"tag": "1"}, headers=GZIP)
            assert len(compressors) == before + 1, "it was the first of too many"

    asyncio.run(ask())
