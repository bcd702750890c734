"""session.profile(): time by op and by line, bytes, requests, and the split of what was waited for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from loopback import Loopback, session_on

import teletape as tf
from teletape.core.profiling.profile import Profile
from teletape.core.sessions.current import use
from teletape.core.sessions.session import Session


@pytest.fixture(params=["in the process", "over HTTP"])
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    remote = request.param == "over HTTP"
    url = request.getfixturevalue("server_url") if remote else None
    with tf.connect(url, local=not remote) as session:
        yield session


def train(steps: int) -> float:
    w = tf.Variable(np.full((30, 30), 0.01, np.float32))
    loss = 0.0
    for _ in range(steps):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.tanh(w @ w))
        w.assign_sub(tape.gradient(y, w))
        loss = float(y)
    return loss


def test_a_training_loop(session: Session) -> None:
    before = train(2)
    with session.profile() as profile:
        assert train(2) == before
    counts = {row.name: row.calls for row in profile.by_op}
    assert counts["matmul"] == counts["tanh"] == counts["gradient"] == counts["assign"] == 2
    lines = {row.name: row.calls for row in profile.by_line}
    assert sum(count for line, count in lines.items() if "test_profile.py" in line and "in train" in line) >= 10
    assert all(row.seconds >= 0.0 for row in [*profile.by_op, *profile.by_line, *profile.reads])
    assert profile.seconds > 0.0
    assert profile.computed > 0.0
    assert sum(profile.parts.values()) == pytest.approx(profile.seconds)
    assert sum(row.seconds for row in profile.by_op) <= profile.computed * (1.0 + 1e-9)
    assert sum(row.seconds for row in profile.by_op) == pytest.approx(sum(row.seconds for row in profile.by_line))
    assert sum(row.seconds for row in profile.reads) == pytest.approx(profile.waited)
    if session.local:
        assert (profile.requests, profile.bytes_sent, profile.reads) == (0, 0, [])
        return
    assert profile.requests >= 2
    assert profile.bytes_sent > 2 * 64
    assert profile.bytes_received > 2 * 64
    assert profile.waited > 0.0
    assert [row.calls for row in profile.reads if "in train" in row.name] == [2]


def line_number(line: str) -> int:
    """The number of a line of this file."""
    return next(number for number, text in enumerate(_LINES, 1) if text.strip() == line)


_LINES = Path(__file__).read_text().splitlines()


def looped(turns: int) -> tuple[Any, tf.Variable]:
    w = tf.Variable(np.full((30, 30), 0.01, np.float32))

    @tf.function
    def layer(x: tf.Tensor) -> tf.Tensor:
        product = x @ w
        return tf.tanh(product)

    @tf.function
    def loop(x: tf.Tensor) -> tf.Tensor:
        for _ in tf.range(tf.constant(turns)):
            x = layer(x)
        w.assign_add(x)
        return tf.reduce_sum(x)

    return loop, w


def test_ops_in_a_function_are_shown_at_its_lines(session: Session) -> None:
    loop, w = looped(6)
    for _ in range(4):
        loop(w).numpy()  # it would run as a plan now
    with session.profile() as profile:
        for _ in range(2):
            loop(w).numpy()
    calls = {row.name: row.calls for row in profile.by_op}
    assert (calls["matmul"], calls["tanh"], calls["assign"], calls["while"]) == (12, 12, 2, 2)
    assert calls["call"] == 2 + 12
    lines = {re.sub(r".*test_profile.py:", "", row.name): row.calls for row in profile.by_line}
    for text, count, function in (
        ("product = x @ w", 12, "layer"),
        ("return tf.tanh(product)", 12, "layer"),
        ("x = layer(x)", 12, "loop"),
        ("w.assign_add(x)", 2, "loop"),
        ("return tf.reduce_sum(x)", 2, "loop"),
    ):
        assert lines.get(f"{line_number(text)}, in {function}") == count, lines
    assert all(" in test_ops" in line or " in l" in line for line in lines), lines
    assert sum(row.seconds for row in profile.by_op) == pytest.approx(sum(row.seconds for row in profile.by_line))
    assert sum(row.seconds for row in profile.by_op) <= profile.computed * (1.0 + 1e-9)


def test_after_a_profile_functions_are_plans_again(session: Session) -> None:
    loop, w = looped(6)
    with session.profile():
        before = [loop(w).numpy() for _ in range(4)]
    with session.profile() as profile:
        pass
    after = [loop(w).numpy() for _ in range(4)]
    assert len({*before, *after}) == 8
    assert profile.by_op == []


def test_ops_of_keras_are_at_the_line_that_calls_it(session: Session) -> None:
    from teletape import keras

    model = keras.Sequential([keras.layers.Dense(4, activation="relu"), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    x = np.ones((64, 3), np.float32)
    model.fit(x, x[:, :1], verbose=0)  # here its step is traced
    with session.profile() as profile:
        model.fit(x, x[:, :1], verbose=0, epochs=2)
    assert next(row.calls for row in profile.by_op if row.name == "relu") == 4
    here = line_number("model.fit(x, x[:, :1], verbose=0, epochs=2)")
    assert {re.sub(r".*test_profile.py:", "", row.name) for row in profile.by_line} == {
        f"{here}, in test_ops_of_keras_are_at_the_line_that_calls_it"
    }


def test_what_it_shows() -> None:
    profile = Profile("session s at http://there")
    commands = [("matmul", "train.py:1", 0.25), *[(f"op{i}", "train.py:<2>", 0.001) for i in range(20)]]
    served = SimpleNamespace(queue_seconds=0.125, compute_seconds=0.5)
    profile.note_batch(commands, 2_000_000, 10_000, under_way=1.0, served=served)
    profile.note_wait("train.py:9", 0.75)
    profile.end()
    profile.seconds = 2.0
    assert profile.parts == {
        "program and recording": 1.25,
        "network and encoding": 0.375,
        "queue": 0.125,
        "compute": 0.5,
    }
    text = repr(profile)
    assert text.startswith("profile of session s at http://there: 2.000 s, 1 request, 1.9 MiB sent, 9.8 KiB received")
    for line in (
        r"network and encoding +0\.3750 +19%",
        r"matmul +1 +0\.2500",
        r"9 others +9 +0\.0090",
        r"train\.py:<2> +20 +0\.0200",
        r"train\.py:9 +1 +0\.7500",
    ):
        assert re.search(line, text), (line, text)
    page = profile._repr_html_()
    assert "<td>train.py:&lt;2&gt;</td><td>20</td>" in page
    assert page.count("<table>") == 4


def test_the_plot() -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
    matplotlib.use("agg")
    profile = Profile("this process")
    profile.note_command("matmul", "train.py:1", 0.25)
    profile.end()
    figure = profile.plot()
    assert [axes.get_title() for axes in figure.axes] == ["where the time goes", "by op", "by line"]
    assert [[bar.get_width() for bar in axes.patches] for axes in figure.axes[1:]] == [[0.25], [0.25]]


def test_without_a_profile_no_command_is_sent_for_it() -> None:
    loopback = Loopback()
    session = use(session_on(loopback))
    with session.profile():
        tf.sync()  # nothing was recorded
    (tf.ones(3) * 2.0).numpy()
    assert [command.verb for command in loopback.commands() if command.verb == "profile"] == []
    session.close()


def test_a_server_that_cannot_profile_says_so() -> None:
    session = use(session_on(Loopback()))  # its engine has no clock
    with pytest.raises(tf.errors.UnimplementedError, match="no clock"), session.profile():
        (tf.ones(3) * 2.0).numpy()
    session.close()


def test_an_error_in_the_block_ends_the_profile(session: Session) -> None:
    def fail(profile: Profile) -> None:
        profiles.append(profile)
        raise ZeroDivisionError

    profiles: list[Profile] = []
    with pytest.raises(ZeroDivisionError), session.profile() as profile:
        fail(profile)
    [profile] = profiles
    assert profile.seconds > 0.0
    assert (tf.ones(3) * 3.0).numpy().tolist() == [3.0] * 3
    assert profile.requests <= 1
