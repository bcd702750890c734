"""A program's steps over and over: on a server they run as plans, and give the bytes that they give in this process."""

import numpy as np
import pytest

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape_engine.plans.policy import POLICY
from teletape_engine.session.repeats.repetitions import Repetitions

STEPS = 10


def rosenbrock():
    """A gradient, each time at another point."""

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
        return tape.gradient(y, x)

    for number in range(STEPS):
        yield gradient(tf.constant(np.linspace(-1, 1, 10).astype(np.float32) * number)).numpy()


def training():
    """Variables, a rate that decays, a loss that is read."""
    w, b = tf.Variable(np.linspace(-1, 1, 12).reshape(4, 3).astype(np.float32)), tf.Variable(np.zeros(3, np.float32))
    x = tf.constant(np.cos(np.arange(20, dtype=np.float32)).reshape(5, 4))

    def step(rate):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.nn.relu(tf.matmul(x, w) + b) - 1.0))
        for variable, grad in zip((w, b), tape.gradient(loss, (w, b)), strict=True):
            variable.assign_sub(rate * grad)
        return loss

    for number in range(STEPS):
        yield step(0.5 / (number + 1)).numpy()
    yield w.numpy()


def second_derivatives():
    """A tape inside another one."""

    def derivative(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.sin(x) * tf.exp(x)
            first = inner.gradient(y, x)
        return outer.gradient(first, x)

    for number in range(STEPS):
        yield derivative(tf.constant(np.linspace(0, 1, 7) + number)).numpy()


@pytest.mark.skipif(not POLICY.enabled, reason="TELETAPE_PLANS is off: every command runs by itself")
@pytest.mark.parametrize("program", [rosenbrock, training, second_derivatives])
def test_a_step_over_and_over(remote, monkeypatch, program):
    answers = []
    planned = Repetitions._planned
    monkeypatch.setattr(Repetitions, "_planned", lambda *of, **how: answers.append(planned(*of, **how)) or answers[-1])
    there = [array.tobytes() for array in program()]
    assert len(answers) - answers.count(None) >= STEPS - 6
    use(LocalSession())
    assert there == [array.tobytes() for array in program()]
