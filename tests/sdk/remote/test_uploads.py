"""Large elements of datasets are sent to a server before the program uses them, by a second client of its session."""

import gc
import threading
import time

import numpy as np
import pytest

import teletape as tf
from teletape.core.sessions.local import LocalSession
from teletape_engine.commands import Constant

WIDTH = 80_000  #: Of a row: large enough to be sent ahead.


def rows(count=4):
    for i in range(count):
        yield np.full((1, WIDTH), i, np.float32)


def generated(count=4):
    signature = tf.TensorSpec([1, WIDTH])
    return tf.data.Dataset.from_generator(lambda: rows(count), output_signature=signature).prefetch(2)


def losses(dataset):
    weight = tf.Variable(tf.ones([WIDTH, 1]))
    read = []
    for x in dataset:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(x @ weight)
        weight.assign_sub(1e-6 * tape.gradient(loss, weight))
        read.append(float(loss))
    return read


def large(loopback, client=None):
    """The large constants that came, of one client or of all."""
    return [
        command.value
        for batch in loopback.batches
        for command in batch.commands
        if isinstance(command, Constant) and command.value.nbytes >= 4 * WIDTH and client in (None, batch.client)
    ]


def until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_a_second_client_sends_what_a_generator_prepares(remote, loopback):
    batches = remote.batches
    read = losses(generated())
    assert read == losses(map(tf.constant, rows()))
    assert len(large(loopback)) == 8
    assert len(large(loopback, remote.channel.client)) == 4  # of the second round, which has no dataset
    assert remote.batches - batches == 8  # one a step


def test_the_next_element_is_sent_while_a_step_runs(remote, loopback):
    iterator = iter(generated(10))
    total = tf.reduce_sum(next(iterator))
    until(lambda: len(large(loopback)) == 4)  # one is in use, two wait, and one waits for its place among them
    loopback.gate.clear()
    step = len(loopback.batches)
    reading = threading.Thread(target=total.numpy, daemon=True)
    reading.start()
    until(lambda: len(loopback.batches) == step + 1)
    next(iterator)  # makes room for another one
    until(lambda: len(large(loopback)) == 5)  # it comes although the answer to the step is not there yet
    assert reading.is_alive()
    loopback.gate.set()
    reading.join()


def test_rows_of_arrays_that_are_too_large_to_stay_are_sent_ahead(remote, loopback, monkeypatch):
    monkeypatch.setenv("TELETAPE_DATASET_BYTES", "1000")
    array = np.concatenate(list(rows()))
    read = losses(tf.data.Dataset.from_tensor_slices(array).batch(1).map(lambda x: x + 1.0))
    assert len(large(loopback)) == 4
    assert large(loopback, remote.channel.client) == []
    assert read == losses(tf.constant(row) + 1.0 for row in rows())


def test_what_was_sent_is_released_after_its_use(remote, loopback):
    losses(generated())
    gc.collect()
    tf.sync()
    arrays = [entry for entry in loopback.entries.values() if getattr(entry, "nbytes", 0) >= 4 * WIDTH]
    assert arrays == []


def test_what_cannot_be_sent_ahead_comes_with_the_step(remote, loopback, monkeypatch):
    def refused(arrays):
        raise tf.errors.ResourceExhaustedError("no room")

    monkeypatch.setattr(remote, "sent_ahead", refused)
    assert losses(generated()) == losses(map(tf.constant, rows()))
    assert len(large(loopback, remote.channel.client)) == 8


def test_another_session_gets_the_elements_anew(remote, loopback):
    iterator = iter(generated())
    first = next(iterator)
    with LocalSession().as_default():
        assert float(next(iterator)[0, 0]) == 1.0
    assert float(first[0, 0]) == 0.0


def senders():
    return {thread for thread in threading.enumerate() if thread.name == "teletape-sender"}


@pytest.fixture
def others():
    """Senders of sessions that earlier tests have left; named before `remote`, so that its own is none of them."""
    return senders()


def test_closing_the_session_ends_its_second_client(others, remote, loopback):
    list(generated())
    assert len(senders() - others) == 2
    remote.close()
    until(lambda: not senders() - others)


@pytest.mark.parametrize("size", [1, 1000])
def test_small_elements_come_with_the_step(remote, loopback, size):
    dataset = tf.data.Dataset.from_generator(
        lambda: iter([np.ones(size, np.float32)] * 3), output_signature=tf.TensorSpec([size])
    )
    assert [float(tf.reduce_sum(x)) for x in dataset.prefetch(2)] == [size] * 3
    assert {batch.client for batch in loopback.batches} == {remote.channel.client}
