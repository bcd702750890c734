"""/metrics: what is counted is what happened, whoever answered; and what counting a frame costs."""

import dis
import os
import signal
import time
from collections.abc import Iterator

import numpy as np
import pytest
from scraped import read

from counting import calls
from serving import KEYS, Program, Server, needs_exchange, ok, problem, until
from teletape_engine.commands import Call, Constant, Fetch
from teletape_server.connections import lending
from teletape_server.connections.frames import Frames
from teletape_server.connections.lending import Lending
from teletape_server.hosts import loans
from teletape_server.middleware.metrics import Metrics
from teletape_server.settings import Settings
from teletape_server.worker.lent.connections import DirectConnections


@pytest.fixture
def served() -> Iterator[Server]:
    with Server(Settings(shutdown_grace=0.1, direct="off")).running() as server:
        yield server


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
        assert metrics["teletape_lent_connections",] == 0
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


@pytest.mark.parametrize("way", ["on", "off"])
def test_frames_are_counted_and_measured_whoever_answers_them(way: str) -> None:
    with Server(Settings(shutdown_grace=0.1, direct="off", frames=way)).running() as server, server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        program = Program(http, "demo")
        before = read(http)
        began = time.monotonic()
        for _ in range(10):
            ok(program.post(program.batch(Constant(program.seq, 1.5), Fetch(program.seq))))
        program.seq += 5
        problem(program.post(program.batch(Constant(1, 1.5))), 409, "out_of_turn")
        took = time.monotonic() - began
        until(lambda: read(http)["teletape_frame_seconds_count",] == 11)
        after = read(http)
    assert after["teletape_frames_total", "200"] == 10
    assert after["teletape_frames_total", "409"] == 1
    assert after["teletape_key_frames_total", "local"] == 11
    assert after["teletape_frame_seconds_bucket", "+Inf"] == 11
    assert 0 < after["teletape_frame_seconds_sum",] < took
    assert not [name for name in before if name[0] == "teletape_frames_total" and name[1] != "0"]
    assert before["teletape_frame_seconds_count",] == 0
    assert not [name for name in after if name[0] == "teletape_requests_total" and "/batch" in name[2]]


@pytest.mark.long
@needs_exchange
def test_frames_of_lent_connections_are_counted_by_their_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lending, "_QUICK", 600.0)
    monkeypatch.setattr(loans, "_LONG_SECONDS", 600.0)
    settings = Settings(direct="on", shutdown_grace=0.1)
    with Server(settings).running() as server, server.client() as http, server.client() as other:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        program = Program(http, "demo")
        sent, took = 0, list[float]()

        def send() -> int:
            nonlocal sent
            sent += 1
            began = time.monotonic()
            ok(program.post(program.batch(Constant(program.seq, 1.5), Fetch(program.seq))))
            took.append(time.monotonic() - began)
            return int(read(other)["teletape_frames_total", "0"])

        until(lambda: send() > 0)
        while read(other)["teletape_lent_connections",] and sent < 200:
            send()
        metrics = read(other)
        assert metrics["teletape_frames_total", "200"] + metrics["teletape_frames_total", "0"] == sent
        assert metrics["teletape_frame_seconds_count",] == metrics["teletape_key_frames_total", "local"] == sent
        assert 0 < metrics["teletape_frame_seconds_sum",] < sum(took)
        answered = ok(other.get("/v1/sessions/demo")).json()["answered"]
        assert answered["frames"] == sent
        ok(other.delete("/v1/sessions/demo"))
        after = read(other)
    for name, *labels in (
        ("teletape_frames_total", "0"),
        ("teletape_frame_seconds_count",),
        ("teletape_frame_seconds_sum",),
        ("teletape_key_frames_total", "local"),
        ("teletape_key_compute_seconds_total", "local"),
        ("teletape_key_cpu_seconds_total", "local"),
    ):
        assert after[name, *labels] >= metrics[name, *labels] > 0, f"{name}: what has ended stays counted"
    assert after["teletape_key_sessions", "local"] == after["teletape_key_session_bytes", "local"] == 0


def test_each_key_sees_its_own_counts_and_an_admin_those_of_all() -> None:
    settings = Settings(api_keys=KEYS, admins=("bob",), shutdown_grace=0.1, direct="off")
    with Server(settings).running() as server, server.client("ann") as ann, server.client("bob") as bob:
        for http, frames in ((ann, 3), (bob, 1)):
            ok(http.post("/v1/sessions", json={"id": "demo"}))
            program = Program(http, "demo")
            for _ in range(frames):
                program.run(Constant(1, np.ones(1000 * frames)), Call("exp", (1,), (2,)))
        until(
            lambda: (
                ("teletape_key_frames_total", "ann") in read(bob) and read(bob)["teletape_frame_seconds_count",] == 4
            )
        )
        with server.client(None) as stranger:
            ok(stranger.get("/v1/health"))
        of_all, of_ann = read(bob), read(ann)
        sessions = {http: ok(http.get("/v1/sessions/demo")).json() for http in (ann, bob)}
    names = {name for name, *_ in of_all if name.startswith("teletape_key_") and not name.endswith("_bucket")}
    assert len(names) == 15
    assert {key for name, *labels in of_ann for key in labels if name in names} == {"ann"}
    assert {key for name, *labels in of_all for key in labels if name in names} == {"ann", "bob"}
    for key, http, frames in (("ann", ann, 3), ("bob", bob, 1)):
        assert of_all["teletape_key_frames_total", key] == sessions[http]["answered"]["frames"] == frames
        assert of_all["teletape_key_requests_total", key] >= 2
        assert of_all["teletape_key_sessions", key] == 1
        assert of_all["teletape_key_session_bytes", key] == sessions[http]["bytes_in_use"]
        for name in ("compute_seconds", "cpu_seconds"):
            seconds = sessions[http]["answered"][name]
            assert of_all[f"teletape_key_{name}_total", key] == pytest.approx(seconds, abs=1e-5)
    assert of_all["teletape_key_session_bytes", "ann"] != of_all["teletape_key_session_bytes", "bob"]


def test_a_session_says_what_its_requests_took(served: Server) -> None:
    with served.client() as http:
        before = ok(http.post("/v1/sessions", json={"id": "demo"})).json()["answered"]
        assert (before["requests"], before["frames"], before["p50_seconds"], before["p99_seconds"]) == (
            0,
            0,
            None,
            None,
        )
        program = Program(http, "demo")
        for _ in range(3):
            program.run(Constant(1, 1.5))
        ok(http.post("/v1/sessions/demo/tensors", json={"id": "x", "value": [1.5] * 1000}))
        problem(http.get("/v1/sessions/demo/tensors/none"), 404, "unknown_id")
        after = ok(http.get("/v1/sessions/demo")).json()["answered"]
        assert ok(http.get("/v1/sessions")).json()["sessions"][0]["answered"] == after
    assert (after["requests"], after["frames"], after["problems"]) == (6, 3, 1)  # with attach
    assert 0 < after["p50_seconds"] <= after["p99_seconds"]
    assert after["compute_seconds"] > 0
    assert after["cpu_seconds"] > 0


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


def test_counting_a_frame_is_a_few_calls_and_one_look_at_the_clock() -> None:
    """In calls, not in time: the count by key and status, the bucket, the sum."""
    metrics = Metrics()
    metrics.observe_frame(200, 1e-4, "ann")
    assert calls(lambda: metrics.observe_frame(200, 1e-4, "ann")) <= 6
    looks = [item.argval for way in (Frames._note, Lending._count) for item in dis.get_instructions(way)]
    assert looks.count("monotonic") == 1
    run = [item.argval for item in dis.get_instructions(DirectConnections._run)]
    assert run.count("monotonic") == 2, "when the frame came, and when it had run"
