"""A tape of a hundred thousand ops works, inside this process and through a server, in time linear in its length."""

import numpy as np
import pytest

import teletape as tf
from counting import calls
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession

LONG = 100_000


def chain(length, persistent=False):
    x = tf.constant(np.full(3, 0.5, np.float32))
    with tf.GradientTape(persistent=persistent) as tape:
        tape.watch(x)
        y = x
        for _ in range(length // 2):
            y = -tf.tanh(y)
    return tape, x, y


@pytest.mark.long
def test_a_hundred_thousand_ops_are_recorded_answered_counted_and_drawn(connected):
    tape, x, y = chain(LONG, persistent=True)
    assert tape.memory().ops == LONG
    assert tape.memory().bytes == LONG // 2 * 12
    picture = tape.graph()
    assert len(picture.json["nodes"]) <= 2000
    assert sum(node["ops"] for node in picture.json["nodes"]) == LONG
    assert picture.json["bytes"] == LONG // 2 * 12
    first = tape.gradient(y, x).numpy()
    assert np.isfinite(first).all()
    assert np.array_equal(tape.gradient(y, x).numpy(), first)


def test_the_work_is_linear_in_the_length():
    def work(length):
        tape, x, y = chain(length)
        tape.gradient(y, x)

    with tf.connect(local=True):
        work(10)  # what is computed once and kept
        short, long = (calls(lambda length=length: work(length)) for length in (1_000, 4_000))
    use(LocalSession())
    assert long < 4.2 * short
