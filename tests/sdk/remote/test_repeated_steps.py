"""Steps that a program repeats: their structure is sent once, and nothing else about them changes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loopback import Loopback, session_on
from teletape.errors import SessionEndedError

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape_engine.commands import Assign, Gradient
from teletape_wire import repeats


@pytest.fixture(autouse=True)
def small_batches_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "_FEWEST", 1)


def training(rates: Any, lengths: Any) -> Callable[[], list[Any]]:
    """A program that trains a small model, and the values that it reads."""

    def program() -> list[Any]:
        w, b = tf.Variable(np.linspace(-1, 1, 6, dtype=np.float32)), tf.Variable(0.5)
        values = []
        for step, (rate, length) in enumerate(zip(rates, lengths, strict=True)):
            x = tf.constant(np.linspace(step, 1, 6 * length, dtype=np.float32).reshape(length, 6))
            with tf.GradientTape() as tape:
                y = tf.tanh(tf.linalg.matvec(x, w)) * 2.0 + b
                loss = tf.reduce_mean((y - 0.25) ** 2)
            dw, db = tape.gradient(loss, (w, b))
            w.assign_sub(rate * dw)
            b.assign_sub(rate * db)
            values += [loss.numpy(), dw.numpy()]
        return [*values, w.numpy(), b.numpy()]

    return program


def alternating() -> list[Any]:
    """Two kinds of step in turn, with the same ops."""
    w, values = tf.Variable([[1.0, 2.0], [3.0, 5.0]]), []
    for step in range(12):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.sin(w) * (step + 0.5), axis=step % 2)
        values.append(tape.gradient(y, w).numpy())
        w.assign(w * 0.5)
    return values


def alternating_reads() -> list[Any]:
    """What a step reads depends on its values."""
    x, values = tf.Variable(1.0), []
    for _ in range(20):
        x.assign(x * 1.5 % 2.0)
        values.append((x * 2.0).numpy() if x.numpy() > 1 else (x + 2.0).numpy())
    return values


def persistent_and_slices() -> list[Any]:
    table, values = tf.Variable(np.ones((5, 2), np.float32)), []
    for step in range(8):
        with tf.GradientTape(persistent=True) as tape:
            rows = tf.gather(table, [step % 5, 1])
            loss = tf.reduce_sum(rows * rows)
        slices = tape.gradient(loss, table)
        values.append(slices.values.numpy())
        table.assign_sub(0.1 * tf.convert_to_tensor(slices))
        values.append(tape.jacobian(rows, table).numpy() if step % 3 == 0 else table.numpy())
        del tape
    return values


def custom() -> list[Any]:
    @tf.custom_gradient
    def clipped(x: Any) -> Any:
        return x * 1.0, lambda ct: tf.clip_by_value(ct, -0.5, 0.5)

    w, values = tf.Variable([1.0, 2.0]), []
    for _ in range(8):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(clipped(w) * w)
        values.append(tape.gradient(y, w).numpy())
        w.assign_sub([0.1, 0.2])
    return values


def functions() -> list[Any]:
    @tf.function
    def loss(w: Any, x: Any) -> Any:
        return tf.reduce_sum(tf.tanh(w * x))

    w, values = tf.Variable([1.0, 2.0]), []
    for step in range(8):
        with tf.GradientTape() as tape:
            y = loss(w, tf.constant([1.0, step]))
        values.append(tape.gradient(y, w).numpy())
    return values


def shapes_that_depend_on_values() -> list[Any]:
    x, values = tf.Variable([0.5, -0.5, 2.0]), []
    for _ in range(8):
        y = tf.sin(x * 2.0)
        values += [tf.where(y > 0).numpy(), tf.boolean_mask(y, y > 0).numpy()]
        x.assign_add([0.5, 0.5, 0.5])
    return values


PROGRAMS = {
    "a changing rate": training(np.linspace(0.1, 0.01, 9), [4] * 9),
    "a rate that is first an integer": training([1, 1, 1, 0.5, 0.25, 1], [4] * 6),
    "growing shapes": training([0.1] * 9, range(1, 10)),
    "shapes in turn": training([0.1] * 14, [4, 4, 2, 4, 4, 2, 2, 4, 2, 4, 2, 4, 2, 4]),
    "two kinds of step": alternating,
    "reads that depend on values": alternating_reads,
    "sparse gradients": persistent_and_slices,
    "gradients of the program's own": custom,
    "functions": functions,
    "shapes that depend on values": shapes_that_depend_on_values,
}


def outcome(program: Callable[[], list[Any]], *, mishaps: list[str] | None = None, repeats: bool = True) -> Any:
    """What a program reads, and the loopback that it has used."""
    loopback = Loopback(features=[] if not repeats else None)
    session = use(session_on(loopback))
    try:
        loopback.mishaps.extend(mishaps or [])
        return program(), loopback
    finally:
        use(LocalSession())
        session.close()


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_results_are_those_of_batches_in_full(name: str) -> None:
    expected, plain = outcome(PROGRAMS[name], repeats=False)
    values, loopback = outcome(PROGRAMS[name])
    assert plain.repetitions == 0
    if name != "growing shapes":
        assert loopback.repetitions > 0
    assert len(values) == len(expected)
    for value, other in zip(values, expected, strict=True):
        assert value.dtype == other.dtype
        assert value.tobytes() == other.tobytes()
    assert [len(batch.commands) for batch in loopback.batches] == [len(batch.commands) for batch in plain.batches]
    assert [len(batch.releases) for batch in loopback.batches] == [len(batch.releases) for batch in plain.batches]


@pytest.mark.parametrize(
    "mishaps",
    [
        ["fine", "fine", "fine", "unknown", "fine", "unknown", "unknown"] * 3,
        ["fine", "lost", "fine", "fine", "lost", "unreached", "lost", "busy", "running"] * 3,
        ["fine", "fine", "fine", "unknown", "lost", "fine", "unreached", "unknown", "lost"] * 3,
    ],
)
def test_nothing_is_lost_or_doubled_if_structures_are_forgotten_and_answers_lost(
    mishaps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from teletape.core.network import http

    monkeypatch.setattr(http.random, "random", lambda: -0.5)  # no waits between attempts
    program = training(np.linspace(0.1, 0.01, 12), [4] * 12)
    expected, _ = outcome(program)
    values, loopback = outcome(program, mishaps=mishaps)
    assert [value.tobytes() for value in values] == [value.tobytes() for value in expected]
    assert loopback.repetitions > 3
    once = {batch.nonce: batch for batch in loopback.batches}.values()
    assert [batch.seq for batch in once] == list(range(1, len(once) + 1))
    assigned = [command for batch in once for command in batch.commands if isinstance(command, Assign)]
    assert len(assigned) == 24


def test_a_failure_in_a_repeated_step_names_its_line(remote: Any, loopback: Loopback) -> None:
    table = tf.constant(np.arange(8, dtype=np.float32))
    messages = []
    for step in range(-3, 6):
        rows = tf.gather(table, tf.cast(tf.constant([1.0, abs(step)]) * 2.0, "int32"))
        if step < 4:
            assert (rows * 2.0).numpy().tolist() == [4.0, 4.0 * abs(step)]
            continue
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            (rows * 2.0).numpy()
        messages.append(str(caught.value))
    assert loopback.repetitions >= 3
    with open(__file__) as source:
        line = next(number for number, text in enumerate(source, 1) if "rows = tf.gather(table, tf" in text)
    for message, index in zip(messages, (8, 10), strict=True):
        assert f"= {index} is not in [0, 8)" in message
        assert "op 'gather', recorded at " in message
        assert f"test_repeated_steps.py:{line}, " in message
    assert (table[:2] + 1.0).numpy().tolist() == [1.0, 2.0]


def test_a_session_that_ends_between_repeated_steps(remote: Any, loopback: Loopback) -> None:
    x = tf.Variable(1.0)
    for _ in range(4):
        x.assign_add(1.0)
        x.numpy()
    assert loopback.repetitions > 0
    loopback.mishaps.append("ended")
    x.assign_add(1.0)
    with pytest.raises(SessionEndedError, match="recorded command"):
        x.numpy()


def test_a_gradient_in_a_loop_travels_as_its_number(remote: Any, loopback: Loopback) -> None:
    def gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
        return tape.gradient(y, x)

    for step in range(10):
        gradient(tf.constant(np.linspace(-1, step, 10, dtype=np.float32))).numpy()
    assert loopback.repetitions >= 7
    assert len(loopback.commands(Gradient)) == 10
