"""`tf.GradientTape` if no program of TensorFlow's shows it: threads, order of tapes, wrong arguments."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pytest

import teletape as tf


def squared() -> tuple[tf.GradientTape, Any, Any]:
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    return tape, y, x


def test_watched_variables_are_listed_in_order_of_creation() -> None:
    a, b, c = (tf.Variable(1.0, name=name) for name in "abc")
    with tf.GradientTape() as tape:
        c * a * b
    assert [v.name for v in tape.watched_variables()] == ["a:0", "b:0", "c:0"]
    assert tape.watched_variables()[2] is c


def test_an_op_of_another_thread_is_not_recorded_and_a_gradient_may_be_asked_there() -> None:
    x, result = tf.Variable(2.0), {}

    def in_thread(work: Any) -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    with tf.GradientTape() as tape:
        in_thread(lambda: result.update(y=x * x))
        z = result["y"] * x
    in_thread(lambda: result.update(g=tape.gradient(z, x)))
    assert result["g"].numpy() == 4.0


def test_an_exception_pops_the_tape() -> None:
    x = tf.Variable(2.0)
    tape = tf.GradientTape(persistent=True)
    try:
        with tape:
            y = x * x
            raise KeyError
    except KeyError:
        pass
    z = y * x
    assert tape.gradient(y, x).numpy() == 4.0
    assert tape.gradient(z, x) is None


def test_tapes_may_be_left_out_of_order() -> None:
    x, first, second = tf.Variable(3.0), tf.GradientTape(), tf.GradientTape()
    first.__enter__()
    second.__enter__()
    y = x * x
    first.__exit__(None, None, None)
    z = y * x
    second.__exit__(None, None, None)
    assert first.gradient(z, x) is None
    assert second.gradient(z, x).numpy() == 27.0


def test_entering_again_continues() -> None:
    x, tape = tf.Variable(2.0), tf.GradientTape()
    with tape:
        y = x * x
    with tape:
        z = y * x
    assert tape.gradient(z, x).numpy() == 12.0
    with tf.GradientTape() as active, pytest.raises(ValueError, match="Tape is still recording"):
        active.__enter__()


@pytest.mark.parametrize("inputs", [None, [None], 3.0, [3.0], np.ones(1), "a", tf.float32])
@pytest.mark.parametrize("place", ["target", "sources"])
def test_what_is_no_tensor_is_a_type_error(inputs: Any, place: str) -> None:
    tape, y, x = squared()
    arguments = {"target": y, "sources": x} | {place: inputs}
    with pytest.raises(TypeError):
        tape.gradient(**arguments)
    assert tape.gradient(y, x).numpy() == 6.0  # the question was refused, not answered


def test_a_float_as_target_is_refused_with_what_to_pass() -> None:
    tape, _, x = squared()
    with pytest.raises(TypeError, match=r"found 9.0 of type float.*tf.constant makes a tensor of it"):
        tape.gradient(9.0, x)


@pytest.mark.parametrize("seeds", [[1.0, 10.0], [[1.0, 10.0]], [], (None, None)])
def test_another_count_of_output_gradients(seeds: Any) -> None:
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = v * v
    with pytest.raises(ValueError, match=rf"1 targets need as many gradients, found {0 if seeds == [] else 2}"):
        tape.gradient(y, v, output_gradients=seeds)


@pytest.mark.parametrize(
    ("seed", "expected"),
    [(2.0, [4.0, 8.0]), ([3.0], [6.0, 12.0]), (np.array([1.0, 5.0]), [2.0, 20.0]), ([None], [2.0, 4.0])],
    ids=repr,
)
def test_output_gradients_that_fit(seed: Any, expected: list[float]) -> None:
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = v * v
    assert tape.gradient(y, v, output_gradients=seed).numpy().tolist() == expected


def test_output_gradients_broadcast() -> None:
    v = tf.Variable([1.0, 2.0])
    for shape in ([], [1], [2], [1, 2], [1, 1, 1]):
        with tf.GradientTape() as tape:
            y = v * v
        assert tape.gradient(y, v, output_gradients=tf.ones(shape)).numpy().tolist() == [2.0, 4.0]
    shapes = "vs. [2]: an output gradient has the shape of its target, number 0 from 0"
    for wrong, what in (
        (tf.ones([3]), f"Incompatible shapes: [3] {shapes}"),
        (tf.ones([2, 2]), f"Incompatible shapes: [2,2] {shapes}"),
        (tf.constant([1, 2]), "cast it"),
    ):
        with tf.GradientTape() as tape:
            y = v * v
        with pytest.raises(tf.errors.InvalidArgumentError, match=re.escape(what)):
            tape.gradient(y, v, output_gradients=wrong)


def test_a_wrong_word_for_unconnected_gradients() -> None:
    tape, y, x = squared()
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'ZERO'"):
        tape.gradient(y, x, unconnected_gradients="ZERO")
    assert tape.gradient(y, [x, tf.constant(1)], unconnected_gradients="zero")[1].dtype == tf.int32


def test_stop_gradient_is_followed_no_more_than_a_constant() -> None:
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        h = tf.stop_gradient(x * x)
        y = h * x
    assert tape.gradient(y, x).numpy() == 4.0
    assert tape.gradient(y, h) is None
    assert tape.gradient(h, h).numpy() == 1.0


def test_a_refused_watch_watches_nothing_more() -> None:
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        with pytest.raises(ValueError, match=r"Passed in object 3\.0 of type 'float', not tf\.Tensor"):
            tape.watch(3.0)
        y = x * x
    assert tape.gradient(y, x) is None
