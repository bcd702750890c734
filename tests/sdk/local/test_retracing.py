"""TensorFlow's warning about functions that are traced again and again: when, and how often (measured on 2.21)."""

from __future__ import annotations

from typing import Any

import pytest

import teletape as tf
from teletape.core.functions.retracing import Retracing
from teletape.core.program import logs


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    results: list[str] = []
    monkeypatch.setattr(logs.get_logger(), "warning", lambda text, *args: results.append(text))
    return results


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ("TTTTTTT", ["5 out of the last 5 calls", "6 out of the last 6 calls"]),
        ("TRTTTTRRRRRT", ["5 out of the last 6 calls", "6 out of the last 12 calls"]),
        ("TRRRRRRRRRRRTTTT", ["5 out of the last 16 calls"]),
        ("TTTT", []),
        ("RRRRTRRRRRRTRRRRRTRRRRRRTRRRRRT", []),
    ],
)
def test_five_in_ten_calls_are_too_many(warnings: list[str], calls: str, expected: list[str]) -> None:
    watched = Retracing()
    for call in calls:
        watched.traced("f") if call == "T" else watched.reused()
    assert [text.split(" to f triggered")[0] for text in warnings] == expected


def test_functions_made_in_a_loop_share_the_count(warnings: list[str]) -> None:
    def doubled() -> Any:
        return tf.function(lambda x: x * 2)

    for _ in range(5):
        doubled()(tf.constant(1.0))
    (text,) = warnings
    assert "5 out of the last 5 calls to <function" in text
    assert "please define your @tf.function outside of the loop" in text


def test_functions_with_one_decorator_have_counts_of_their_own(warnings: list[str]) -> None:
    functions = [tf.autograph.experimental.do_not_convert(body) for body in (lambda x: x * 2, lambda x: x * 3)]
    for _ in range(4):
        for function in functions:
            tf.function(function)(tf.constant(1.0))
    assert not warnings


def test_numbers_as_arguments_retrace(warnings: list[str]) -> None:
    @tf.function
    def f(n: int) -> Any:
        return tf.constant(1.0) * n

    assert [float(f(n)) for n in range(6)] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert f.experimental_get_tracing_count() == 6
    assert len(warnings) == 2
