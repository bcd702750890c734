"""Requests without end, and requests that stop halfway: the server goes on answering others, and ends them.

`make flood`. While each flood lasts, a process of its own asks for /v1/health 50 times a second. The row has the
latencies of that, how the connections ended, and by how much the memory of the server's front process grew.
"""

import argparse
import asyncio
import contextlib
import datetime
import json
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import observing

KEY = "flood-key-0123456789"
HEAD = b"Host: localhost\r\n"
BLOCK = 64 << 10
BODY = 1 << 20  # bytes that each stalled body declares
BODIES = 30  # of one session: it refuses more than 32 that wait
GIVE_UP = 120.0  # seconds after which a connection that the server has not ended counts as held


def endless_headers(number: int) -> Iterator[bytes]:
    """A request whose headers do not end."""
    yield b"GET /v1/health HTTP/1.1\r\n" + HEAD
    while True:
        yield b"x-filler: " + b"y" * (BLOCK - 12) + b"\r\n"


def endless_header(number: int) -> Iterator[bytes]:
    """A request with a header that does not end."""
    yield b"GET /v1/health HTTP/1.1\r\n" + HEAD + b"x-filler: "
    while True:
        yield b"y" * BLOCK


def endless_url(number: int) -> Iterator[bytes]:
    """A request whose first line does not end."""
    yield b"GET /"
    while True:
        yield b"y" * BLOCK


def half_a_head(number: int) -> Iterator[bytes]:
    """A request that stops in its headers."""
    yield b"GET /v1/health HTTP/1.1\r\n" + HEAD


def stalled_body(number: int) -> Iterator[bytes]:
    """A request with a key that declares a large body, and sends only its beginning."""
    yield (
        b"POST /v1/sessions/flood%d/tensors HTTP/1.1\r\n" % (number // BODIES)
        + HEAD
        + b"Authorization: Bearer "
        + KEY.encode()
        + b"\r\n"
        b"Content-Type: application/octet-stream\r\nTensor-Dtype: uint8\r\nTensor-Shape: %d\r\n"
        b"Content-Length: %d\r\n\r\nbeginning" % (BODY, BODY)
    )


#: Name of the flood: what each connection sends, and the number of connections.
FLOODS: dict[str, tuple[Callable[[int], Iterator[bytes]], int]] = {
    "nothing": (half_a_head, 0),  # how quickly this machine answers meanwhile
    "endless headers": (endless_headers, 50),
    "endless header": (endless_header, 50),
    "endless URL": (endless_url, 50),
    "half-sent requests": (half_a_head, 1000),
    "stalled bodies": (stalled_body, 1000),
}


async def connection(port: int, parts: Iterator[bytes]) -> tuple[str, float]:
    """Sends the parts until the server answers or closes; returns the answer's status, and the bytes sent."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError as error:
        return type(error).__name__, 0
    sent = 0

    async def send() -> None:
        nonlocal sent
        with contextlib.suppress(ConnectionError):
            for part in parts:
                writer.write(part)
                await writer.drain()
                sent += len(part)

    sending = asyncio.create_task(send())
    try:
        line = await asyncio.wait_for(reader.readline(), GIVE_UP)
        status = line.split()[1].decode() if line else "closed"
    except ConnectionError:
        status = "closed"
    except TimeoutError:
        status = "held"
    sending.cancel()
    writer.close()
    return status, sent


async def flood(port: int, parts: Callable[[int], Iterator[bytes]], number: int) -> tuple[Counter[str], float]:
    """Opens that number of connections at once; returns how they ended, and the bytes sent."""
    ends = await asyncio.gather(*[connection(port, parts(position)) for position in range(number)])
    return Counter(status for status, _ in ends), sum(sent for _, sent in ends)


def measure(name: str, number: int, *, seconds: float, stall_limit: float) -> dict[str, Any]:
    """Floods a server of its own, and returns the row."""
    parts, _ = FLOODS[name]
    sessions = number // BODIES + 1 if parts is stalled_body else 0
    settings: dict[str, object] = {"api_keys": f"flood:{KEY}", "connections": 2048, "stall_limit": stall_limit}
    settings |= {"sessions_per_key": 64, "sessions": 64, "log_level": "error"}
    with tempfile.TemporaryDirectory() as folder, observing.server(Path(folder), **settings) as (port, pid):
        create_sessions(port, sessions)
        before = observing.memory(pid)
        started = time.monotonic()
        with observing.watched_health(port, seconds) as health:
            ends, sent = asyncio.run(flood(port, parts, number))
            ended = time.monotonic() - started
        return {
            "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
            "flood": name,
            "connections": number,
            "ends": dict(ends),
            "ended_after_s": round(ended, 1),
            "sent_mb": round(sent / 1e6, 1),
            "front_mb": [round(before), round(observing.memory(pid))],
            "health_ms": health,
        }


def create_sessions(port: int, number: int) -> None:
    """Creates the sessions that the bodies are for."""
    import httpx

    url = f"http://127.0.0.1:{port}/v1/sessions"
    with httpx.Client(headers={"Authorization": f"Bearer {KEY}"}, trust_env=False, timeout=60) as http:
        for position in range(number):
            http.post(url, json={"id": f"flood{position}"}).raise_for_status()


def main() -> int:
    """Runs the command line; the status is 1 if the server held a connection."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=FLOODS, help="one of the floods")
    parser.add_argument("--connections", type=int, help="at once; each flood has its own number")
    parser.add_argument("--seconds", type=float, default=20.0, help="for which the health is watched at least")
    parser.add_argument("--stall-limit", type=float, default=15.0, help="of the server, in seconds")
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # the server inherits it
    stayed = 0
    for name in [options.only] if options.only else FLOODS:
        number = options.connections or FLOODS[name][1]
        row = measure(name, number, seconds=options.seconds, stall_limit=options.stall_limit)
        stayed += row["ends"].get("held", 0)
        print(json.dumps(row), flush=True)
    return 1 if stayed else 0


if __name__ == "__main__":
    sys.exit(main())
