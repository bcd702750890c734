"""docs/life-of-a-request.md: each station exists, and gradients of the SDK and by REST pass theirs in order."""

import importlib
import inspect
import json
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import Loopback, session_on

import teletape as tf
from serving import Server, needs_exchange, ok
from teletape.core.sessions.current import use
from teletape_engine.session.session import Session
from teletape_server.handlers.methods import METHODS, Request
from teletape_server.settings import Settings
from teletape_wire import JSON_TYPE

PAGE = Path(__file__).resolve().parents[2] / "docs" / "life-of-a-request.md"
STATION = re.compile(r"^\| (\d+) \| `([\w.]+)` \| `([\w.]+)` \| .+ \|$", re.MULTILINE)
BY_SDK, _, BY_REST = (
    PAGE.read_text(encoding="utf-8").partition("\n## The names of the target")[0].partition("\n## A gradient by REST\n")
)
STATIONS, REST_STATIONS = STATION.findall(BY_SDK), STATION.findall(BY_REST)
MOST_STATIONS, MOST_REST_STATIONS, MOST_NAMES = 24, 36, 6


def attribute(module: str, path: str) -> Any:
    value: Any = importlib.import_module(module)
    for name in path.split("."):
        value = getattr(value, name)
    return value


@pytest.mark.parametrize(("number", "module", "path"), [*STATIONS, *REST_STATIONS])
def test_a_station_exists(number: str, module: str, path: str) -> None:
    value = attribute(module, path)
    assert callable(value)
    assert value.__module__ == module


def test_the_stations_are_numbered_and_few() -> None:
    for stations, most in ((STATIONS, MOST_STATIONS), (REST_STATIONS, MOST_REST_STATIONS)):
        assert [int(number) for number, _, _ in stations] == list(range(1, len(stations) + 1))
        assert len(stations) <= most
    names = PAGE.read_text(encoding="utf-8").partition("## The names of the target")[2].partition("\n## ")[0]
    assert 1 <= len(re.findall(r"^\| `\w+` \|", names, re.MULTILINE)) <= MOST_NAMES


class FirstCalls:
    """Which code objects were called, in the order of their first calls in any thread."""

    def __init__(self) -> None:
        self.order: list[Any] = []
        self.active = False

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        if self.active and event == "call" and frame.f_code not in self.order:
            self.order.append(frame.f_code)


@pytest.fixture
def calls() -> Iterator[FirstCalls]:
    calls = FirstCalls()
    before = sys.getprofile()
    threading.setprofile(calls)  # the sender's thread starts after this
    sys.setprofile(calls)
    yield calls
    sys.setprofile(before)
    threading.setprofile(None)  # type: ignore[arg-type]  # None removes it


def test_a_gradient_passes_the_stations_in_order(calls: FirstCalls) -> None:
    """The loopback replaces the server's processes, whose stations are therefore not called; all others are."""
    with use(session_on(Loopback())):
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(x * x)
        calls.active = True
        gradient = tape.gradient(loss, x)
        array = gradient.numpy()
        calls.active = False
        assert array.tolist() == [2.0, 4.0]
    expected = []
    for _, module, path in STATIONS:
        function = attribute(module, path)
        if not module.startswith("teletape_server") and not inspect.isclass(function):
            expected.append((path, inspect.unwrap(function).__code__))
    passed = [code for code in calls.order if code in {code for _, code in expected}]
    names = {code: path for path, code in expected}
    assert [names[code] for code in passed] == [path for path, _ in expected]


def in_order(calls: FirstCalls, stations: list[tuple[str, str, str]]) -> list[str]:
    """The functions of these stations in the order of their first calls."""
    names = {inspect.unwrap(attribute(module, path)).__code__: path for _, module, path in stations}
    return [names[code] for code in calls.order if code in names]


@needs_exchange
def test_a_gradient_by_rest_passes_the_stations_in_order(calls: FirstCalls) -> None:
    """In the server's process over HTTP, and in the session's as far as the methods go, which run here."""
    front, process, back = (STATION.findall(part) for part in BY_REST.split("| --- | --- | --- | --- |")[1:])
    body = {"inputs": {"x": [[0.5, 1.5], [2.5, 3.5]], "w": [1, 2], "y": [0, 1]}, "sources": ["w"]}
    function = {"id": "loss", "text": "sum((x @ w - y)**2)"}
    with Server(Settings(shutdown_grace=0.1)).running() as server, server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        ok(http.post("/v1/sessions/demo/functions", json=function))
        for number in range(3):
            calls.active = number == 2
            ok(http.post("/v1/sessions/demo/functions/loss/value_and_gradient", json=body))
            calls.active = False
    assert in_order(calls, [*front, *back]) == [path for _, _, path in (*front, *back)]

    session = Session("cpu", memory_limit=1 << 30)
    calls.order.clear()
    for number, (name, sent) in enumerate([("create", function), *[("value_and_gradient", body)] * 4]):
        content = memoryview(json.dumps(sent).encode())
        request = Request(
            {"id": "loss", "accept": JSON_TYPE, "collection": "", "full": False},
            JSON_TYPE,
            content,
            len(content),
            lambda: False,
            lambda *_, **__: None,
            0.0,
        )
        calls.active = number == 4
        METHODS[f"functions-{name}"](session, request)
        calls.active = False
    methods = [station for station in process if not re.search(r"worker|ipc|idempotency", station[1])]
    assert in_order(calls, methods) == [path for _, _, path in methods]
