"""Many clients add to counters over a lossy network while sessions' processes are killed: no addition may be lost.

`make soak ARGS='--minutes 120'`. None may be executed twice either. Half of the clients are SDK programs, half use REST
with Idempotency-Keys. Each adds to a variable of its own and compares the variable with its own count. A proxy loses
requests and answers, and sends requests twice. Every few seconds the process of one session is killed: the client must
be told that its session has ended, and begins another, with a count of its own. At the end no session and no process
may be left. `--without-proxy` lets the clients reach the server themselves: then the processes serve their connections.
"""

import argparse
import contextlib
import datetime
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import observing
import team

SESSION_STEPS = 2000  # additions of one session, after which a client ends it and begins another
PATIENCE = 60.0  # seconds for which a client sends a request again, as the SDK's
TIMEOUT = 180.0  # seconds that a client may take for its last answers


# ------------------------------------------------------------------------------------------------------------ clients
def sdk_client(url: str, seed: int, end: float) -> Counter[str]:
    """A program that adds through the SDK, several additions a request."""
    import teletape as tf

    counts: Counter[str] = Counter()
    draw = random.Random(seed)
    while goes_on(counts, end):
        try:
            with tf.connect(url):
                counts["sessions"] += 1
                variable, expected = tf.Variable(0, dtype=tf.int64), 0
                while expected < SESSION_STEPS and goes_on(counts, end):
                    for _ in range(draw.randint(1, 30)):
                        variable.assign_add(1)
                        expected += 1
                    with tf.GradientTape() as tape:
                        weight = tf.Variable(2.0)
                        loss = weight * weight
                    if float(tape.gradient(loss, weight)) != 4.0:
                        counts["wrong"] += 1
                    compare(counts, expected, int(variable.numpy()))
        except tf.errors.SessionEndedError:
            counts["ended"] += 1
        except Exception as error:
            unexpected(counts, error)
    return counts


def rest_client(url: str, seed: int, end: float) -> Counter[str]:
    """A program that adds by REST: it repeats each request under its key until it is answered."""
    import httpx

    counts: Counter[str] = Counter()
    draw = random.Random(seed)
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as http:

        def send(method: str, path: str, body: Any = None) -> Any:
            headers = {} if body is None else {"Idempotency-Key": uuid.uuid4().hex}
            deadline = time.time() + PATIENCE
            while time.time() < deadline:
                try:
                    response = http.request(method, path, json=body, headers=headers)
                except httpx.TransportError:
                    counts["repeated"] += 1
                    continue
                if response.status_code == 202 or response.status_code == 429:
                    time.sleep(0.2)
                    continue
                if response.is_success:
                    return response.json() if response.content else None
                if response.json()["code"] == "session_ended":
                    raise EndedError
                raise RuntimeError(response.text)
            raise TimeoutError(f"{method} {path}: no answer in {PATIENCE:g} s")

        while goes_on(counts, end):
            session = None
            try:
                session = f"/v1/sessions/{send('POST', '/v1/sessions', {})['id']}"
                counts["sessions"] += 1
                variable, expected = f"{session}/variables/n", 0
                send("POST", f"{session}/variables", {"id": "n", "value": {"dtype": "int64", "data": 0}})
                while expected < SESSION_STEPS and goes_on(counts, end):
                    for _ in range(draw.randint(1, 10)):
                        send("PUT", variable, {"mode": "add", "value": 1})
                        expected += 1
                    compare(counts, expected, send("GET", variable)["value"]["data"])
                with contextlib.suppress(EndedError):  # the first of two deletions, if the answer was lost
                    send("DELETE", session)
            except EndedError:
                counts["ended"] += 1
            except Exception as error:
                unexpected(counts, error)
    return counts


def goes_on(counts: Counter[str], end: float) -> bool:
    """Whether a client begins another comparison: until the end, and at least once."""
    return time.time() < end or not counts["comparisons"]


class EndedError(Exception):
    """The session has ended."""


def compare(counts: Counter[str], expected: int, actual: int) -> None:
    """Counts a comparison, and the additions that were lost or executed twice."""
    counts["comparisons"] += 1
    counts["lost"] += max(expected - actual, 0)
    counts["doubled"] += max(actual - expected, 0)
    if actual != expected:
        raise AssertionError(f"{expected} additions, and the variable is {actual}")


def unexpected(counts: Counter[str], error: Exception) -> None:
    """Counts an error that no client should see, and writes it down."""
    counts["errors"] += 1
    print(f"soak: {type(error).__name__}: {error}", file=sys.stderr, flush=True)


CLIENTS = {"sdk": sdk_client, "rest": rest_client}


# ------------------------------------------------------------------------------------------------------------ the soak
def soak(seconds: float, clients: int, kill_every: float, seed: int, *, has_proxy: bool = True) -> dict[str, Any]:
    """Runs the soak and returns its numbers."""
    draw, kinds = random.Random(seed), [*CLIENTS]
    limits = {"sessions_per_key": 4 * clients, "sessions": 4 * clients}
    with tempfile.TemporaryDirectory() as folder, observing.server(Path(folder), **limits) as (port, server_pid):
        proxy_command = [sys.executable, str(observing.HERE / "lossy_proxy.py"), str(port), "--seed", str(seed)]
        with (
            subprocess.Popen(proxy_command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as proxy,
            contextlib.ExitStack() as cleanup,
        ):
            assert proxy.stdout is not None
            proxy_port = int(proxy.stdout.readline())
            url = f"http://127.0.0.1:{proxy_port if has_proxy else port}"
            end = time.time() + seconds
            programs = [start_client(kinds[number % 2], url, seed + number, end) for number in range(clients)]
            for program in programs:
                cleanup.callback(program.kill)  # nothing, if it has ended
            memory_at_first, killed = observing.memory(server_pid), 0
            with observing.watched_health(port, seconds) as health:
                while time.time() < end:
                    time.sleep(min(kill_every, max(end - time.time(), 0)))
                    living = observing.workers(server_pid)
                    if living and time.time() < end:
                        with contextlib.suppress(ProcessLookupError):  # it has just ended
                            os.kill(draw.choice(living), signal.SIGKILL)
                            killed += 1
            counts: Counter[str] = Counter()
            for program in programs:
                output, _ = program.communicate(timeout=TIMEOUT)
                if program.returncode:
                    counts["errors"] += 1
                else:
                    counts.update(json.loads(output))
            proxy.stdin.close()  # type: ignore[union-attr]
            proxied = proxy.stdout.read().strip()
        deadline = time.monotonic() + 20
        while len(living := observing.workers(server_pid)) != observing.SPARE and time.monotonic() < deadline:
            time.sleep(0.5)
        names = ("comparisons", "sessions", "ended", "lost", "doubled", "wrong", "errors")
        return {
            "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
            "minutes": round(seconds / 60, 1),
            "clients": clients,
            "killed": killed,
            **{name: counts[name] for name in names},
            "proxy": proxied,
            "sessions_left": sessions_left(port),
            "processes_left": len(living) - observing.SPARE,
            "front_mb": [round(memory_at_first), round(observing.memory(server_pid))],
            "health_ms": health,
        }


def start_client(kind: str, url: str, seed: int, end: float) -> subprocess.Popen[str]:
    """Starts a program that adds until `end`, and then prints its counts."""
    command = [sys.executable, __file__, "--client", kind, url, str(seed), str(end)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def sessions_left(port: int) -> list[str]:
    """The sessions that live on the server."""
    import httpx

    answer = httpx.get(f"http://127.0.0.1:{port}/v1/sessions", trust_env=False, timeout=60).json()
    return [f"{session['id']} of {session['created_at']}" for session in answer["sessions"]]


def main() -> int:
    """Runs the command line; the status is 1 if anything was lost, doubled, wrong or left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--kill-every", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--without-proxy", action="store_true", help="the network loses nothing")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--client", nargs=4, metavar=("KIND", "URL", "SEED", "END"), help=argparse.SUPPRESS)
    parser.add_argument("--team", action="store_true", help="many keys, which flood, change and compete (see team.py)")
    parser.add_argument("--keys", type=int, default=20, help="of the team")
    parser.add_argument("--sessions", type=int, default=200, help="of the team")
    parser.add_argument("--shares", choices=["groups", "slices", "off"], default="groups", help="of the team's server")
    options = parser.parse_args()
    if options.team:
        seconds = 60 * options.minutes
        row = team.soak(seconds, options.keys, options.sessions, options.seed, options.shares)
        print(json.dumps(row))
        return 0 if team.is_right(row) else 1
    if options.client:
        kind, url, seed, end = options.client
        print(json.dumps(CLIENTS[kind](url, int(seed), float(end))))
        return 0
    row = soak(
        60 * options.minutes,
        options.clients,
        options.kill_every,
        options.seed,
        has_proxy=not options.without_proxy,
    )
    print(json.dumps(row))
    return (
        1 if any(row[name] for name in ("lost", "doubled", "wrong", "errors", "sessions_left", "processes_left")) else 0
    )


if __name__ == "__main__":
    sys.exit(main())
