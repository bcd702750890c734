"""/metrics: what is counted is what happened, whoever answered; and what counting a frame costs."""

import dis
import os
import re
import signal
from collections.abc import Iterator

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from test_frames import until

from serving import Program, Server, needs_exchange, ok, problem
from teletape_engine.commands import Constant, Fetch
from teletape_server.connections import lending
from teletape_server.connections.frames import Frames
from teletape_server.hosts import loans
from teletape_server.settings import Settings


@pytest.fixture
def served() -> Iterator[Server]:
    with Server(Settings(shutdown_grace=0.1, direct="off")).running() as server:
        yield server


def read(http: httpx.Client) -> dict[tuple[str, ...], float]:
    """Every sample by its name and labels."""
    answer = ok(http.get("/metrics"))
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["cache-control"] == "no-store"
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_requests_are_counted_by_method_route_and_status(served: Server) -> None:
    with served.client() as http:
        before = read(http)
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        for name in ("a", "b", "c"):
            ok(http.post("/v1/sessions/demo/tensors", json={"id": name, "value": 1.5}))
        problem(http.get("/v1/sessions/demo/tensors/none"), 404, "unknown_id")
        for path in ("/v1/nothing", "/secret", "/docs/../x"):
            http.get(path)
        ok(http.get("/docs"))
        ok(http.get("/static/shared/theme.css"))
        ok(http.head("/v1/info"))
        http.request("SUBSCRIBE", "/v1/info")
        counts = {
            ("teletape_requests_total", *labels): count
            for labels, count in {
                ("POST", "/v1/sessions", "201"): 1,
                ("POST", "/v1/sessions/{session}/tensors", "201"): 3,
                ("GET", "/v1/sessions/{session}/tensors/{tensor}", "404"): 1,
                ("GET", "other", "404"): 3,
                ("GET", "/docs", "200"): 1,
                ("GET", "/static", "200"): 1,
                ("HEAD", "/v1/info", "200"): 1,
                ("other", "/v1/info", "405"): 1,
            }.items()
        }
        until(lambda: counts.keys() <= read(http).keys())  # a request is counted after its answer has been sent
        until(lambda: read(http)["teletape_requests_total", "POST", "/v1/sessions/{session}/tensors", "201"] == 3)
        after = read(http)
    for key, count in counts.items():
        assert after[key] == count, key
        assert before.get(key, 0) == 0
    route = "/v1/sessions/{session}/tensors"
    assert after["teletape_request_seconds_count", route] == 3
    assert after["teletape_request_seconds_bucket", "+Inf", route] == 3
    assert after["teletape_request_seconds_sum", route] > 0


def test_what_is_in_use_is_reported(served: Server) -> None:
    with served.client() as http:
        for id in ("one", "two"):
            ok(http.post("/v1/sessions", json={"id": id}))
        ok(http.post("/v1/sessions/one/tensors", json={"id": "x", "value": [1.5] * 1000}))
        metrics = read(http)
        assert metrics["teletape_sessions",] == metrics["teletape_sessions_created_total",] == 2
        assert metrics["teletape_session_bytes",] == ok(http.get("/v1/sessions/one")).json()["bytes_in_use"] >= 4000
        assert metrics["teletape_bodies_bytes",] == metrics["teletape_unanswered_requests",] == 0
        assert metrics["teletape_connections",] >= 1
        assert metrics["teletape_handed_connections",] == 0
        assert metrics["process_open_fds",] > 0
        ok(http.delete("/v1/sessions/one"))
        os.kill(served.worker("two", "local"), signal.SIGKILL)
        until(lambda: read(http).get(("teletape_sessions_ended_total", "worker_died")) == 1)
        metrics = read(http)
        assert metrics["teletape_sessions_ended_total", "deleted"] == 1
        assert metrics["teletape_sessions",] == 0


def test_refused_connections_are_counted(served: Server) -> None:
    with served.client() as http:
        http.get("/v1/info", headers={"X": "a" * (70 << 10)})
        until(lambda: read(http).get(("teletape_refused_connections_total", "headers_too_large")) == 1)


@needs_exchange
def test_frames_are_counted_by_status(served: Server) -> None:
    with served.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        program = Program(http, "demo")
        before = read(http)
        for _ in range(10):
            ok(program.post(program.batch(Constant(program.seq, 1.5), Fetch(program.seq))))
        program.seq += 5
        problem(program.post(program.batch(Constant(1, 1.5))), 409, "out_of_turn")
        after = read(http)
    assert after["teletape_frames_total", "200"] == 10
    assert after["teletape_frames_total", "409"] == 1
    assert not [name for name in before if name[0] == "teletape_frames_total" and name[1] != "0"]


@needs_exchange
def test_frames_of_lent_connections_are_counted_by_their_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lending, "_QUICK", 600.0)
    monkeypatch.setattr(loans, "_LONG_SECONDS", 600.0)
    settings = Settings(direct="on", shutdown_grace=0.1)
    with Server(settings).running() as server, server.client() as http, server.client() as other:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        program = Program(http, "demo")
        sent = 0

        def send() -> int:
            nonlocal sent
            sent += 1
            ok(program.post(program.batch(Constant(program.seq, 1.5), Fetch(program.seq))))
            return int(read(other)["teletape_frames_total", "0"])

        until(lambda: send() > 0)
        while read(other)["teletape_handed_connections",] and sent < 200:
            send()
        metrics = read(other)
        assert metrics["teletape_frames_total", "200"] + metrics["teletape_frames_total", "0"] == sent
        ok(other.delete("/v1/sessions/demo"))
        assert read(other)["teletape_frames_total", "0"] == metrics["teletape_frames_total", "0"], "they stay counted"


def test_a_server_with_keys_asks_for_one(server: Server) -> None:
    with server.client(None) as stranger, server.client() as http:
        problem(stranger.get("/metrics"), 401, "unauthenticated")
        assert "teletape_requests_total" in ok(http.get("/metrics")).text
        problem(http.post("/metrics"), 405, "method_not_allowed")


def test_open_metrics_are_had_on_request(served: Server) -> None:
    with served.client() as http:
        answer = ok(http.get("/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0"}))
        assert answer.headers["content-type"].startswith("application/openmetrics-text")
        assert answer.text.endswith("# EOF\n")


def test_two_servers_count_apart() -> None:
    counts = []
    for _ in range(2):
        with Server(Settings(shutdown_grace=0.1)).running() as server, server.client() as http:
            ok(http.get("/v1/devices"))
            until(lambda: ("teletape_requests_total", "GET", "/v1/devices", "200") in read(http))  # at once
            counts.append(read(http)["teletape_requests_total", "GET", "/v1/devices", "200"])
    assert counts == [1, 1]


def test_counting_a_frame_is_one_increment() -> None:
    """In instructions, not in time: an attribute, an index, an addition, a store; and two tests for the log."""
    respond = [(item.opname, str(item.argval)) for item in dis.get_instructions(Frames.respond)]
    counted = next(at for at, item in enumerate(respond) if item[1] == "_counts")
    stored = next(at for at in range(counted, len(respond)) if respond[at][0] == "STORE_SUBSCR")
    assert stored - counted <= 12
    assert not [name for _, name in respond if re.search(r"time|labels|inc$|observe", name)]
