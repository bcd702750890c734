"""Estimates of derivatives: the counts of the pass that would run, the same in this process and through a server."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from loopback import Loopback

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape_engine.catalogue.op import WorkKind
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.derivatives.reports import estimate as estimates
from teletape_engine.derivatives.reports.estimate import CostEstimate
from teletape_engine.derivatives.reports.speed import Speed


@pytest.fixture(params=["in this process", "through a server"])
def session(request: pytest.FixtureRequest) -> None:
    if request.param == "through a server":
        request.getfixturevalue("remote")
    else:
        use(LocalSession())


@pytest.mark.usefixtures("session")
def test_products_are_counted_and_the_tape_stays() -> None:
    x, w = tf.Variable(tf.ones([30, 20])), tf.Variable(tf.ones([20, 5]))
    with tf.GradientTape() as tape:
        y = x @ w
    estimate = tape.estimate(y, [x, w])
    product = 30 * 20 * 5
    assert (estimate.question, estimate.rows, estimate.passes) == ("gradient", 1, 1)
    assert (estimate.ops, estimate.multiply_adds) == (2, 2 * product)
    assert estimate.answer_bytes == 4 * (30 * 20 + 20 * 5)
    assert estimate.peak_bytes == estimate.answer_bytes + 4 * 30 * 5  # and the cotangent of y
    assert tape.estimate(y, w).multiply_adds == product
    assert tape.gradient(y, [x, w])[0].shape == (30, 20)
    with pytest.raises(RuntimeError, match="only be used to compute one"):
        tape.estimate(y, x)


@pytest.mark.usefixtures("session")
def test_a_jacobian_takes_a_row_for_each_element_in_passes_that_fit() -> None:
    x, w = tf.Variable(tf.ones([6, 20])), tf.ones([20, 5])
    with tf.GradientTape(persistent=True) as tape:
        y = x @ w
    whole = tape.estimate(y, x, "jacobian")
    assert (whole.rows, whole.passes, whole.multiply_adds) == (30, 1, 30 * 6 * 20 * 5)
    assert whole.answer_bytes == 4 * 30 * 6 * 20
    cut = tape.estimate(y, x, "jacobian", max_bytes=10_000)
    assert cut.passes > 1
    assert cut.ops == cut.passes * whole.ops
    assert cut.peak_bytes <= 10_000 + cut.answer_bytes < whole.peak_bytes
    by_example = tape.estimate(y, x, "batch_jacobian")
    assert (by_example.rows, by_example.answer_bytes) == (5, 4 * 5 * 6 * 20)


@pytest.mark.usefixtures("session")
def test_second_derivatives_take_the_gradient_and_what_follows_it() -> None:
    a, x, v = tf.ones([30, 20]), tf.Variable(tf.ones([20, 1])), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = v * tf.reduce_sum((a @ x) ** 3)
    product = 30 * 20
    hvp = tape.estimate(y, x, "hvp")
    assert (hvp.rows, hvp.passes, hvp.answer_bytes, hvp.multiply_adds) == (2, 2, 80, 3 * product)
    hessian = tape.estimate(y, x, "hessian")
    assert (hessian.rows, hessian.passes, hessian.answer_bytes) == (21, 2, 20 * 80)
    assert hessian.multiply_adds == product + 20 * 2 * product
    assert hessian.ops == hvp.ops
    both = tape.estimate(y, [x, v], "hessian")
    assert (both.rows, both.passes, both.answer_bytes) == (22, 3, 21 * 84 - 4)  # y has no second derivative by v
    cut = tape.estimate(y, x, "hessian", max_bytes=1000)
    assert cut.passes > 2
    assert cut.peak_bytes < hessian.peak_bytes
    assert tape.estimate(y, tf.Variable(1.0), "hessian").answer_bytes == 0
    assert tape.hessian(y, x).shape == (20, 1, 20, 1)  # the tape was not used up, and has what it recorded


@pytest.mark.usefixtures("session")
def test_rows_of_slices_are_followed_to_the_second_order() -> None:
    table = tf.Variable(tf.ones([50, 4]))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.gather(table, [1, 3, 3]) ** 3)
    assert tape.estimate(y, table, "hvp").answer_bytes == 50 * 4 * 4
    assert tape.estimate(y, table, "hessian").answer_bytes == 200 * 200 * 4


@pytest.mark.usefixtures("session")
def test_a_jacobian_under_an_outer_tape_goes_in_chunks_too() -> None:
    x = tf.Variable(np.linspace(0.1, 1.0, 50))

    def second(max_bytes: int | None) -> tuple[CostEstimate, np.ndarray]:
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = tf.sin(x) * tf.reduce_sum(x)
            total = tf.reduce_sum(inner.jacobian(y, x, max_bytes=max_bytes) ** 2)
        return outer.estimate(total, x), outer.gradient(total, x).numpy()

    (whole, expected), (cut, gradient) = second(None), second(5_000)
    np.testing.assert_allclose(gradient, expected, rtol=1e-12)
    assert cut.ops > 3 * whole.ops
    with pytest.raises(tf.errors.ResourceExhaustedError, match="max_bytes is 100: raise it"):
        second(100)


@pytest.mark.usefixtures("session")
def test_what_is_not_connected_takes_nothing() -> None:
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * x
    estimate = tape.estimate(y, tf.Variable(1.0))
    assert (estimate.passes, estimate.ops, estimate.answer_bytes) == (0, 0, 0)
    assert not estimate.seconds  # None: the engine of a loopback has no clock


@pytest.mark.usefixtures("session")
def test_gradient_functions_of_the_program_are_counted_and_not_called() -> None:
    calls = []

    @tf.custom_gradient
    def halved(x):
        def gradient(upstream):
            calls.append(upstream)
            return upstream / 2

        return tf.identity(x), gradient

    x = tf.Variable(tf.ones([3, 3]))
    with tf.GradientTape() as tape:
        y = halved(tf.matmul(x, x))
    estimate = tape.estimate(y, x)
    assert (estimate.functions, estimate.multiply_adds) == (1, 2 * 27)
    assert not calls


@pytest.mark.usefixtures("session")
def test_questions_that_it_does_not_know_or_that_do_not_fit_are_refused() -> None:
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="one of gradient, jacobian, batch_jacobian, hessian, hvp, found 'vjps'"
    ):
        tape.estimate(y, x, "vjps")
    with pytest.raises(tf.errors.InvalidArgumentError, match="one target, found 2"):
        tape.estimate([y, y], x, "jacobian")
    with pytest.raises(tf.errors.InvalidArgumentError, match="rank at least 2"):
        tape.estimate(y, x, "batch_jacobian")


def test_more_work_takes_more_seconds() -> None:
    use(LocalSession())
    seconds = []
    for n in (4, 512):
        x = tf.Variable(tf.ones([n, n]))
        with tf.GradientTape() as tape:
            y = x @ x
        seconds.append(tape.estimate(y, x).seconds)
    assert 0 < seconds[0] < seconds[1] < 10


def test_seconds_are_of_products_of_results_and_of_calls() -> None:
    use(LocalSession())
    x, w = tf.Variable(tf.ones([30, 20])), tf.Variable(tf.ones([20, 5]))
    with tf.GradientTape() as tape:
        y = x @ w
    query = GradientQuery(tape._tape, [y.operand()], [x.recorded, w.recorded])
    instant = 1e30
    every = dict.fromkeys(WorkKind, instant)
    products = estimates.estimate(query, speed=Speed(every | {WorkKind.PRODUCTS: 1.0}, instant, instant))
    results = estimates.estimate(query, speed=Speed(every, 1.0, instant))
    calls = estimates.estimate(query, speed=Speed(every, instant, 1.0))
    assert products.seconds == pytest.approx(2 * 30 * 20 * 5)
    assert results.seconds == pytest.approx(30 * 20 + 20 * 5)
    assert calls.seconds == pytest.approx(2)


def model() -> tuple[tf.GradientTape, tf.Tensor, list[tf.Variable]]:
    """A network of products, a convolution and elementwise functions: its tape, loss and weights."""
    random = np.random.default_rng(0)
    weights = [tf.Variable(random.normal(size=(256, 256)).astype(np.float32) / 16) for _ in range(3)]
    kernel = tf.Variable(random.normal(size=(3, 3, 1, 4)).astype(np.float32))
    with tf.GradientTape(persistent=True) as tape:
        hidden = tf.constant(random.normal(size=(64, 256)).astype(np.float32))
        for weight in weights:
            hidden = tf.nn.gelu(hidden @ weight)
        images = tf.nn.conv2d(tf.reshape(hidden, [64, 16, 16, 1]), kernel, 1, "SAME")
        loss = tf.reduce_mean(tf.nn.softmax(tf.reshape(images, [64, -1])) ** 2)
    return tape, loss, [*weights, kernel]


def test_the_bytes_are_about_those_that_a_derivative_takes() -> None:
    use(LocalSession())
    weights = [tf.Variable(tf.ones([256, 256])) for _ in range(3)]
    with tf.GradientTape(persistent=True) as tape:
        hidden = tf.ones([64, 256])
        for weight in weights:
            hidden = tf.nn.gelu(hidden @ weight)
        loss = tf.reduce_mean(tf.nn.softmax(hidden) ** 2)
    questions = {"gradient": tape.gradient, "hvp": lambda y, x: tape.hvp(y, x, x)}
    for question, ask in questions.items():
        estimate = tape.estimate(loss, weights, question)
        ask(loss, weights)
        tracemalloc.start()
        derivatives = ask(loss, weights)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert sum(derivative.numpy().nbytes for derivative in derivatives) == estimate.answer_bytes
        assert peak / 2 < estimate.peak_bytes < peak * 2


def test_a_server_counts_what_this_process_counts(remote: Loopback) -> None:
    tape, loss, weights = model()
    served = tape.estimate(loss, weights, max_bytes=1 << 20)
    use(LocalSession())
    tape, loss, weights = model()
    assert replace(served, seconds=None) == replace(tape.estimate(loss, weights, max_bytes=1 << 20), seconds=None)


def test_facts_and_text() -> None:
    estimate = CostEstimate("jacobian", 30, 2, 10, 6000, 100, 400, 900, 0, 0.00123)
    assert CostEstimate.from_facts(estimate.facts()) == estimate
    assert str(estimate) == "jacobian: 2 passes of 10 ops in all, 6,000 multiply-adds, 900 bytes, about 0.0012 s"
    assert str(replace(estimate, passes=1, seconds=None)).endswith(
        "1 pass of 10 ops in all, 6,000 multiply-adds, 900 bytes"
    )
