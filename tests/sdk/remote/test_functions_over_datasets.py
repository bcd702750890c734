"""Loops over datasets inside `tf.function`: traced once, a command an element, a request a step at most."""

import logging

import numpy as np
import pytest

import teletape as tf
from teletape_engine.commands import Call, CallFunction

FEATURES = np.linspace(-1, 1, 40, dtype=np.float32).reshape(20, 2)
TARGETS = FEATURES.sum(axis=1)


def pairs(batch):
    return tf.data.Dataset.from_tensor_slices((FEATURES, TARGETS)).batch(batch)


class Model:
    def __init__(self):
        self.weight = tf.Variable([[0.5], [0.1]])
        self.traces = 0

    def step(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.matmul(x, self.weight)[:, 0] - y) ** 2)
        self.weight.assign_sub(0.1 * tape.gradient(loss, self.weight))
        return loss

    @tf.function
    def epoch(self, dataset):
        self.traces += 1
        total = 0.0
        for x, y in dataset:
            total += self.step(x, y)
        return total


@pytest.fixture
def no_notice(caplog):
    """Fails the test if a function says that it runs op by op."""
    with caplog.at_level(logging.WARNING):
        yield
    assert not [record.message for record in caplog.records if "op by op" in record.message]


def test_an_epoch_is_one_command_a_batch_and_two_requests(remote, loopback, no_notice):
    model, dataset = Model(), pairs(4)
    losses = [float(model.epoch(dataset)) for _ in range(2)]
    calls, ops, requests = len(loopback.commands(CallFunction)), len(loopback.commands(Call)), remote.requests
    losses.append(float(model.epoch(dataset)))
    assert len(loopback.commands(CallFunction)) - calls <= 5 + 1  # five batches, and what comes after the loop
    assert len(loopback.commands(Call)) - ops <= 2 * 5  # the rows of the arrays that are a batch
    assert remote.requests - requests == 1
    assert losses == sorted(losses, reverse=True)
    assert model.traces == 1


def test_the_last_batch_may_be_smaller(remote, no_notice):
    model, by_step = Model(), Model()
    dataset = pairs(8)
    for _ in range(2):
        total = model.epoch(dataset)
        expected = sum(float(by_step.step(x, y)) for x, y in dataset)
    assert model.traces == 1
    np.testing.assert_allclose(total, expected, rtol=1e-5)
    np.testing.assert_allclose(model.weight, by_step.weight, rtol=1e-5)


def test_what_an_element_prints_comes_in_order(remote, no_notice, capfd):
    @tf.function
    def total():
        tf.print("begin")
        result = tf.constant(0, tf.int64)
        for step, x in tf.data.Dataset.range(4).enumerate():
            if step % 2 == 0:
                tf.print("step", step)
            else:
                tf.print("odd", x * 10)
            result += x
        tf.print("end", result)
        return result

    for _ in range(2):
        assert int(total()) == 6
        assert capfd.readouterr().err.split("\n") == ["begin", "step 0", "odd 10", "step 2", "odd 30", "end 6", ""]


def test_each_element_draws_its_own_random_numbers(remote, no_notice):
    seen = tf.Variable(tf.zeros([4]))

    @tf.function
    def draw():
        for i, _ in enumerate(tf.data.Dataset.range(4)):
            seen.assign(tf.tensor_scatter_nd_update(seen, [[i]], [tf.random.uniform([])]))

    draw()
    first = set(seen.numpy().tolist())
    draw()
    assert len(first | set(seen.numpy().tolist())) == 8


def test_a_loop_that_breaks_reads_once_an_element(remote, no_notice):
    dataset = tf.data.Dataset.range(100)

    @tf.function
    def until(limit):
        total = tf.constant(0, tf.int64)
        for x in dataset:
            if total > limit:
                break
            total += x
        return total

    assert int(until(tf.constant(3, tf.int64))) == 6
    requests = remote.requests
    assert int(until(tf.constant(20, tf.int64))) == 21
    assert remote.requests - requests <= 9


def test_functions_with_loops_over_datasets_call_each_other(remote, no_notice):
    model, dataset = Model(), pairs(5)

    @tf.function
    def train(epochs):
        losses = []
        for _ in range(epochs):
            losses.append(model.epoch(dataset))
        return tf.stack(losses)

    @tf.function
    def repeated():
        total = 0.0
        for _ in tf.range(2):
            total += model.epoch(dataset)
        return total

    losses = train(2).numpy()
    assert losses[1] < losses[0]
    total = float(repeated())
    other = Model()
    expected = [float(other.epoch(dataset)) for _ in range(4)]
    np.testing.assert_allclose([*losses, total], [*expected[:2], sum(expected[2:])], rtol=1e-5)


def test_an_iterator_goes_on_where_it_was(remote, no_notice):
    iterator = iter(tf.data.Dataset.range(7))

    @tf.function
    def two(iterator):
        return next(iterator) + 10 * next(iterator)

    @tf.function
    def rest(iterator):
        total = tf.constant(0, tf.int64)
        for x in iterator:
            total += x
        return total

    assert [int(two(iterator)), int(two(iterator))] == [10, 32]
    assert int(rest(iterator)) == 4 + 5 + 6
    with pytest.raises(tf.errors.OutOfRangeError):
        two(iterator)


def test_an_error_in_an_element_leaves_the_tape_as_it_was(remote):
    x = tf.Variable(2.0)

    @tf.function
    def check():
        for i in tf.data.Dataset.range(3):
            tf.debugging.assert_less(i, tf.constant(2, tf.int64))

    def checked():
        check()
        tf.sync()

    with tf.GradientTape() as tape:
        y = x * x
        with pytest.raises(tf.errors.InvalidArgumentError):
            checked()
        y = y * x
    assert float(tape.gradient(y, x)) == 12.0


def test_a_loop_over_a_dataset_has_no_gradient(remote):
    @tf.function
    def scaled(x):
        y = x * 2.0
        for i in tf.data.Dataset.range(3):
            y = y + tf.cast(i, tf.float32) * x
        return y

    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = scaled(x)
    assert float(y) == 15.0
    assert tape.gradient(y, x) is None
