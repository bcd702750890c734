"""The program's own gradient functions in a remote session: they run here, on handles, without a request."""

import gc
import logging

import numpy as np
import pytest

import teletape as tf
from teletape_engine.commands import BackwardBegin, BackwardCotangents, BackwardResume, Custom, Gradient, Jacobian


@tf.custom_gradient
def tenfold(x):
    """Twice x, ten times as steep."""
    return x * 2.0, lambda dy: dy * 10.0


@pytest.fixture
def x(remote):
    variable = tf.Variable([1.0, 2.0])
    tf.sync()
    return variable


def test_nothing_is_asked_unless_a_value_is_read(remote, loopback, x):
    before = remote.requests
    for _ in range(3):
        with tf.GradientTape() as tape:
            y = tenfold(tenfold(x)) * 3.0
        gradient = tape.gradient(y, x)
        x.assign_sub(0.001 * gradient)
    assert remote.requests == before
    assert gradient.numpy().tolist() == [300.0, 300.0]
    assert remote.requests == before + 1
    assert len(loopback.commands(BackwardBegin)) == 3
    assert len(loopback.commands(BackwardCotangents)) == len(loopback.commands(BackwardResume)) == 6
    assert not loopback.commands(Gradient)


def test_a_function_that_reads_its_upstream_asks_once_a_read(remote, x):
    seen = []

    @tf.custom_gradient
    def f(x):
        def grad(dy):
            seen.append(float(tf.reduce_sum(dy)))
            return dy if seen[-1] > 5.0 else -dy

        return x * 2.0, grad

    with tf.GradientTape() as tape:
        y = f(x) * 3.0
    before = remote.requests
    gradient = tape.gradient(y, x)
    assert (seen, remote.requests) == ([6.0], before + 1)
    assert gradient.numpy().tolist() == [3.0, 3.0]
    assert remote.requests == before + 2


def test_the_functions_never_reach_the_server(remote, loopback, x):
    secret = "a closure's secret"

    @tf.custom_gradient
    def f(x):
        return x * 2.0, lambda dy: dy * float(len(secret))

    with tf.GradientTape() as tape:
        y = f(x)
    assert tape.gradient(y, x).numpy().tolist() == [18.0, 18.0]
    (command,) = loopback.commands(Custom)
    assert command.label == "f"
    assert all(secret not in repr(batch) for batch in loopback.batches)


def test_without_a_tape_or_with_an_unwatched_argument_no_call_is_noted(remote, loopback, x):
    constant = tf.constant([1.0])
    tenfold(x)
    with tf.GradientTape(watch_accessed_variables=False):
        tenfold(x)
        tenfold(constant)
    tf.sync()
    assert not loopback.commands(Custom)


def test_a_function_that_raises_leaves_both_sides_right(remote, loopback, x):
    calls = []

    @tf.custom_gradient
    def f(x):
        def grad(dy):
            calls.append(1)
            if len(calls) < 3:
                raise KeyError("not yet")
            return dy * 5.0

        return x * 2.0, grad

    with tf.GradientTape(persistent=True) as tape:
        y = f(x) * 3.0
    with tf.GradientTape() as once:
        z = f(x)
    for question, what in ((tape, y), (once, z)):
        with pytest.raises(KeyError, match="not yet"):
            question.gradient(what, x)
    assert tape.gradient(y, x).numpy().tolist() == [15.0, 15.0]
    with pytest.raises(RuntimeError, match="A non-persistent GradientTape can only be used to compute one set"):
        once.gradient(z, x)
    gc.collect()
    tf.sync()
    assert not loopback.session.listing("backward")


def test_nothing_of_a_pass_outlives_it(remote, loopback, x):
    def step():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.recompute_grad(lambda x: tf.sin(x) * 2.0)(tenfold(x)))
        return tape.gradient(y, x).numpy()

    step()
    gc.collect()
    tf.sync()
    names = set(loopback.entries)
    for _ in range(3):
        step()
    gc.collect()
    tf.sync()
    assert set(loopback.entries) == names


def test_second_order_and_a_function_of_its_own_for_the_second(remote, x):
    @tf.custom_gradient
    def f(x):
        @tf.custom_gradient
        def grad(dy):
            return dy * 3.0, lambda ddy: ddy * 1000.0

        return x * x, grad

    before = remote.requests
    c = tf.constant([1.0, 2.0])
    with tf.GradientTape() as outer:
        outer.watch(c)
        with tf.GradientTape() as inner:
            inner.watch(c)
            y = f(c) * c
        dy = inner.gradient(y, c)
    ddy = outer.gradient(dy, c)
    assert remote.requests == before
    assert dy.numpy().tolist() == [4.0, 10.0]  # c² + 3c
    assert ddy.numpy().tolist() == [1003.0, 1003.0]  # 3 from f, 1000 from the function's own
    assert remote.requests <= before + 2


def test_a_jacobian_is_one_request_and_traces_the_function_once(remote, loopback, x):
    calls = []

    @tf.custom_gradient
    def f(x):
        def grad(dy):
            calls.append(1)
            return dy * 3.0 * x

        return x * 2.0, grad

    with tf.GradientTape(persistent=True) as tape:
        y = f(x) ** 2
    before = remote.requests
    jacobians = tape.jacobian(y, x)
    assert remote.requests == before
    assert jacobians.numpy().tolist() == [[12.0, 0.0], [0.0, 48.0]]
    assert remote.requests == before + 1
    assert calls == [1]
    (command,) = loopback.commands(Jacobian)
    assert len(command.custom_gradients) == 1


def test_a_jacobian_through_a_function_that_reads_goes_row_by_row_and_says_so(remote, loopback, x, caplog, monkeypatch):
    monkeypatch.setattr("teletape.core.program.logs._counts", {})  # it is said once in a process

    @tf.custom_gradient
    def f(x):
        def grad(dy):
            return dy * 3.0 if float(dy[0]) > 0 else dy

        return x * 2.0, grad

    with tf.GradientTape() as tape:
        y = f(x) * 1.0
    tf.get_logger()
    with caplog.at_level(logging.WARNING, "teletape"):
        jacobians = tape.jacobian(y, x)
    assert jacobians.numpy().tolist() == [[3.0, 0.0], [0.0, 1.0]]
    (notice,) = [message for message in caplog.messages if "One backward pass for each of 2 rows" in message]
    assert "test_custom_remote.py:" in notice
    assert "in grad" in notice
    assert not loopback.commands(Jacobian)
    with pytest.raises(RuntimeError, match="can only be used to compute one set"):
        tape.jacobian(y, x)


def test_a_registered_gradient_over_the_wire(remote):
    @tf.RegisterGradient("AdjustContrastv2")
    def adjust(op, dy):
        return dy * op.inputs[1] + op.outputs[0] * 0.0, None

    image = tf.ones((1, 2, 2, 3))
    before = remote.requests
    with tf.GradientTape() as tape:
        tape.watch(image)
        y = tf.image.adjust_contrast(image, 4.0)
    gradient = tape.gradient(y, image)
    assert remote.requests == before
    assert gradient.numpy().ravel().tolist() == [4.0] * 12
    with pytest.raises(KeyError, match="Registering two gradient with name 'AdjustContrastv2'!"):
        tf.no_gradient("AdjustContrastv2")


def test_registered_after_the_forward_pass_counts(remote):
    image = tf.ones((1, 2, 2, 3))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(image)
        y = tf.image.adjust_contrast(image * 1.0, 4.0)
    with pytest.raises(LookupError, match="gradient registry has no entry for: AdjustContrastv2"):
        tape.gradient(y, image)
    tf.RegisterGradient("AdjustContrastv2")(lambda op, dy: (dy * 7.0, None))
    assert tape.gradient(y, image).numpy().ravel().tolist() == [7.0] * 12


def test_recompute_runs_outside_the_tapes_on_the_server_too(remote, loopback):
    x = tf.Variable(tf.ones((64, 64)))

    def block(x):
        for _ in range(12):
            x = tf.tanh(x * 1.01)
        return x

    def measure(f):
        gc.collect()
        tf.sync()
        before = loopback.session.bytes_in_use()
        with tf.GradientTape() as tape:
            y = x
            for _ in range(4):
                y = f(y)
            y = tf.reduce_sum(y)
        gc.collect()
        tf.sync()
        retained = loopback.session.bytes_in_use() - before
        return retained, tape.gradient(y, x).numpy()

    plain, expected = measure(block)
    again, result = measure(tf.recompute_grad(block))
    assert np.allclose(result, expected, rtol=1e-5)
    assert again * 5 < plain


def test_an_op_of_the_function_that_fails_on_the_server_poisons_this_answer_alone(remote, loopback, x):
    calls = []

    @tf.custom_gradient
    def f(x):
        def grad(dy):
            calls.append(1)
            if len(calls) == 1:
                return tf.gather(dy, tf.stack([tf.cast(x[0] * 5.0, tf.int32)] * 2))
            return dy * 4.0

        return x * 2.0, grad

    with tf.GradientTape(persistent=True) as tape:
        y = f(x) * 3.0
    lost = tape.gradient(y, x)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[0\] = 5 is not in \[0, 2\)(.|\n)*in grad"):
        lost.numpy()
    del lost
    assert tape.gradient(y, x).numpy().tolist() == [12.0, 12.0]
    gc.collect()
    tf.sync()
    assert not loopback.session.listing("backward")


def test_a_failure_before_a_pass_is_reported_and_the_next_tape_works(remote, x):
    broken = tf.gather(x, tf.stack([tf.cast(x[0] * 5.0, tf.int32)]))
    with tf.GradientTape() as tape:
        y = tenfold(x)
    gradient = tape.gradient(y, x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
        gradient.numpy()
    del broken
    with tf.GradientTape() as tape:
        y = tenfold(x)
    assert tape.gradient(y, x).numpy().tolist() == [10.0, 10.0]
