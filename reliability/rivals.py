"""One key floods a server, and another one goes on working: how long its calls take, and which part of the CPU it gets.

`make rivals`. The rival has a hundred sessions, and floods in one of three ways. Meanwhile the other key asks for the
gradient of a small function again and again; then it computes without a pause in one session. Clients that flood give
way to all other processes, and the client that is measured comes first, if the system lets it: elsewhere they would be
on other machines. An answer that refuses ends the program: it is no work. Numbers with control groups, with time
slices, and as the processes do by themselves.
"""

import argparse
import asyncio
import contextlib
import datetime
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import observing

KEYS = {"rival": "rival-key-0123456789", "other": "other-key-0123456789"}
SMALL = {"id": "small", "text": "result = sum(square(x))"}
#: Some hundredths of a second: `heavy_ms` of a row says how long it takes alone.
HEAVY = {"id": "heavy", "text": "result = sum(square(tanh(tanh(tanh(x @ x)))))"}
SIDE = 1200  # of the matrix
UPLOAD = 4 << 20  # bytes
PAUSE = 0.005  # seconds between two small calls of the other key
BEGINS = 1.0  # seconds of a flood before anything is measured: until all of its connections are lent
LEAST = 19  # the nice value of who gives way to all others


def head(key: str, path: str, length: int, content_type: str = "application/json") -> bytes:
    """The head of a POST."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {KEYS[key]}"]
    return "\r\n".join([*lines, f"Content-Type: {content_type}", f"Content-Length: {length}", "", ""]).encode()


def heavy(key: str, session: str) -> bytes:
    """A call that computes for long; the matrix lies in the session."""
    body = b'{"inputs": ["matrix"], "scratch": true}'
    return head(key, f"/v1/sessions/{session}/functions/heavy/call", len(body)) + body


def small(key: str, session: str) -> bytes:
    """The gradient of a small function."""
    body = b'{"inputs": [[0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5]]}'
    return head(key, f"/v1/sessions/{session}/functions/small/value_and_gradient", len(body)) + body


def upload(key: str, session: str) -> bytes:
    """New content of a variable."""
    line = f"PUT /v1/sessions/{session}/variables/bytes HTTP/1.1"
    lines = [line, "Host: localhost", f"Authorization: Bearer {KEYS[key]}", "Content-Type: application/octet-stream"]
    lines += ["Tensor-Dtype: uint8", f"Tensor-Shape: {UPLOAD}", f"Content-Length: {UPLOAD}", "", ""]
    return "\r\n".join(lines).encode() + bytes(UPLOAD)


FLOODS: dict[str, Callable[[str, str], bytes]] = {"heavy batches": heavy, "small calls": small, "uploads": upload}


async def ask(port: int, request: bytes, seconds: float, pause: float = 0.0) -> list[float]:
    """Sends a request again and again over one connection; returns how long each answer took, in milliseconds.

    Raises:
        ValueError: An answer refuses.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    took, end = [], time.monotonic() + seconds
    while (began := time.monotonic()) < end:
        writer.write(request)
        await writer.drain()
        answer = await reader.readuntil(b"\r\n\r\n")
        match = re.search(rb"\r\ncontent-length: ([0-9]+)", answer.lower())
        assert match is not None, answer
        body = await reader.readexactly(int(match[1]))
        if not answer.startswith(b"HTTP/1.1 2"):
            raise ValueError(f"{answer.splitlines()[0].decode()}: {body[:500].decode(errors='replace')}")
        took.append(1000 * (time.monotonic() - began))
        if pause:
            await asyncio.sleep(pause)
    writer.close()
    return took


async def flood(port: int, request: Callable[[str, str], bytes], sessions: int, seconds: float) -> int:
    """Floods with a connection for each session; returns how many answers came."""
    floods = [ask(port, request("rival", f"s{number}"), seconds) for number in range(sessions)]
    return sum(map(len, await asyncio.gather(*floods)))


def prepare(port: int, key: str, sessions: int) -> None:
    """Makes sessions with both functions, the matrix and the variable."""
    raw = {"Content-Type": "application/octet-stream"}
    matrix = raw | {"Tensor-Dtype": "float32", "Tensor-Shape": f"{SIDE},{SIDE}"}
    variable = raw | {"Tensor-Dtype": "uint8", "Tensor-Shape": str(UPLOAD)}
    values = np.full((SIDE, SIDE), 1 / SIDE, np.float32).tobytes()
    url, headers = f"http://127.0.0.1:{port}/v1/sessions", {"Authorization": f"Bearer {KEYS[key]}"}
    with httpx.Client(headers=headers, trust_env=False, timeout=60) as http:
        for number in range(sessions):
            http.post(url, json={"id": f"s{number}"}).raise_for_status()
            for function in (SMALL, HEAVY):
                http.post(f"{url}/s{number}/functions", json=function).raise_for_status()
            http.post(f"{url}/s{number}/tensors?id=matrix", content=values, headers=matrix).raise_for_status()
            http.post(f"{url}/s{number}/variables?id=bytes", content=bytes(UPLOAD), headers=variable).raise_for_status()


def give_way() -> None:
    """Lets this process have only what others leave: also where a system shares between terminals first."""
    os.nice(LEAST)
    os.setsid()
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(LEAST))


@contextlib.contextmanager
def coming_first() -> Iterator[None]:
    """A block in which this process has a processor whenever it has something to do, if the system lets it."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    yield
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def computed(http: httpx.Client) -> dict[str, float]:
    """CPU seconds of each key; the client's key is an admin's."""
    text = http.get("/metrics").raise_for_status().text
    lines = re.findall(r'teletape_key_cpu_seconds_total\{key="(\w+)"\} (\S+)', text)
    return {key: float(seconds) for key, seconds in lines}


@contextlib.contextmanager
def flooding(port: int, name: str, sessions: int, seconds: float) -> Iterator[dict[str, int]]:
    """A block while another process floods; fills in how many answers came.

    Raises:
        subprocess.CalledProcessError: An answer refused.
    """
    command = [sys.executable, __file__, "--flood", name, "--port", str(port)]
    command += ["--sessions", str(sessions), "--seconds", str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        time.sleep(BEGINS)
        numbers: dict[str, int] = {}
        yield numbers
        output, _ = process.communicate()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    numbers["answers"] = int(output)


def measure(name: str, *, shares: str, sessions: int, seconds: float) -> dict[str, Any]:
    """Floods a server of its own; returns the row."""
    settings: dict[str, object] = {"api_keys": ",".join(f"{key}:{text}" for key, text in KEYS.items())}
    settings |= {"shares": shares, "sessions": 256, "sessions_per_key": 128, "admins": "other", "log_level": "error"}
    settings |= {"bodies": 1 << 30, "bodies_per_key": 1 << 30}  # all uploads at once, or some are refused
    whole = BEGINS + seconds + 1.0  # of a flood
    with tempfile.TemporaryDirectory() as folder, observing.server(Path(folder), **settings) as (port, _):
        prepare(port, "rival", sessions)
        prepare(port, "other", 1)
        asyncio.run(ask(port, small("other", "s0"), 0.5))
        with coming_first():
            alone = asyncio.run(ask(port, small("other", "s0"), seconds, PAUSE))
        heavy_alone = asyncio.run(ask(port, heavy("other", "s0"), 0.5))
        with flooding(port, name, sessions, whole) as numbers, coming_first():
            flooded = asyncio.run(ask(port, small("other", "s0"), seconds, PAUSE))
        headers = {"Authorization": f"Bearer {KEYS['other']}"}
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, trust_env=False, timeout=60) as http:
            computed(http)  # which connects
            with flooding(port, name, sessions, whole), coming_first():
                before, began = computed(http), time.monotonic()
                asyncio.run(ask(port, heavy("other", "s0"), seconds))
                after, ended = computed(http), time.monotonic()
        spent = {key: after[key] - before[key] for key in KEYS}
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "flood": name,
        "shares": shares,
        "sessions": sessions,
        "heavy_ms": observing.summary(heavy_alone)["p50"],
        "alone_ms": observing.summary(alone),
        "flooded_ms": observing.summary(flooded),
        "rival_per_s": round(numbers["answers"] / whole),
        "other_share": round(spent["other"] / sum(spent.values()), 2),
        "other_cores": round(spent["other"] / (ended - began), 2),
        "both_cores": round(sum(spent.values()) / (ended - began), 2),
    }


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=FLOODS, help="one of the floods")
    parser.add_argument(
        "--shares", choices=["off", "groups", "slices"], help="how keys share; each way in turn if not given"
    )
    parser.add_argument("--sessions", type=int, default=100, help="of the rival")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--flood", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # the server inherits it
    os.environ.pop("OPENBLAS_CORETYPE", None)
    if options.flood:
        give_way()
        print(asyncio.run(flood(options.port, FLOODS[options.flood], options.sessions, options.seconds)))
        return
    for name in [options.only] if options.only else FLOODS:
        for shares in [options.shares] if options.shares else ("off", "groups", "slices"):
            row = measure(name, shares=shares, sessions=options.sessions, seconds=options.seconds)
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
