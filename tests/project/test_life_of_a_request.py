"""docs/life-of-a-request.md: each station exists, and a remote gradient passes those of SDK and engine in order."""

import importlib
import inspect
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import Loopback, session_on

import teletape as tf
from teletape.sessions.current import use

PAGE = Path(__file__).resolve().parents[2] / "docs" / "life-of-a-request.md"
STATION = re.compile(r"^\| (\d+) \| `([\w.]+)` \| `([\w.]+)` \| .+ \|$", re.MULTILINE)
STATIONS = STATION.findall(PAGE.read_text(encoding="utf-8"))
MOST_STATIONS, MOST_NAMES = 24, 6


def attribute(module: str, path: str) -> Any:
    value: Any = importlib.import_module(module)
    for name in path.split("."):
        value = getattr(value, name)
    return value


@pytest.mark.parametrize(("number", "module", "path"), STATIONS)
def test_a_station_exists(number: str, module: str, path: str) -> None:
    value = attribute(module, path)
    assert callable(value)
    assert value.__module__ == module


def test_the_stations_are_numbered_and_few() -> None:
    assert [int(number) for number, _, _ in STATIONS] == list(range(1, len(STATIONS) + 1))
    assert len(STATIONS) <= MOST_STATIONS
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
