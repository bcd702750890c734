"""Datasets on a server: what is sent, how often, and that each step stays one request."""

import itertools

import numpy as np
import pytest

import teletape as tf
from teletape_engine.commands import Call, CallFunction, Constant

ROWS = 40
FEATURES = np.arange(ROWS * 64, dtype=np.float32).reshape(ROWS, 64) / 1000
TARGETS = np.arange(ROWS, dtype=np.int64)


def pairs():
    return tf.data.Dataset.from_tensor_slices((FEATURES, TARGETS))


def constant_bytes(loopback):
    """Bytes of the arrays that were sent as constants."""
    return sum(command.value.nbytes for command in loopback.commands(Constant))


def ops_sent(loopback):
    return [command.op for command in loopback.commands(Call)]


def steps(dataset, weight):
    """Trains on a dataset, and reads the loss of each step."""
    losses = []
    for x, _ in dataset:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weight) ** 2)
        weight.assign_sub(0.01 * tape.gradient(loss, weight))
        losses.append(float(loss))
    return losses


def test_an_array_is_sent_once_and_each_step_is_one_request(remote, loopback):
    weight = tf.Variable(tf.ones([64, 1]))
    tf.sync()
    requests, before = remote.requests, constant_bytes(loopback)
    losses = steps(pairs().shuffle(ROWS).batch(4).repeat(3), weight)
    assert remote.requests - requests == len(losses) == 30
    sent = constant_bytes(loopback) - before
    first_batch = 4 * (64 * 4 + 8)
    indices = 30 * 2 * 4 * 4
    assert sent < FEATURES.nbytes + TARGETS.nbytes + first_batch + indices + 30 * 64


def test_steps_on_a_dataset_repeat_as_the_number_of_a_structure(remote, loopback):
    weight = tf.Variable(tf.ones([64, 1]))
    steps(pairs().shuffle(ROWS).batch(4).repeat(3), weight)
    assert loopback.repetitions > 20


def test_a_program_that_looks_at_one_batch_sends_one_batch(remote, loopback):
    before = constant_bytes(loopback)
    x, _ = next(iter(pairs().batch(4)))
    assert float(x[0, 1]) == pytest.approx(0.001)
    assert constant_bytes(loopback) - before < 2 * 4 * 64 * 4


def test_what_is_larger_than_the_limit_is_sent_batch_by_batch(remote, loopback, monkeypatch):
    monkeypatch.setenv("TELETAPE_DATASET_BYTES", "1000")
    weight = tf.Variable(tf.ones([64, 1]))
    tf.sync()
    requests, before = remote.requests, constant_bytes(loopback)
    losses = steps(pairs().batch(4).repeat(2), weight)
    assert remote.requests - requests == len(losses) == 20
    assert constant_bytes(loopback) - before >= 2 * FEATURES.nbytes
    assert "gather" not in ops_sent(loopback)


def test_all_ways_give_the_same_elements(remote, monkeypatch):
    dataset = pairs().shuffle(ROWS, seed=3).batch(7).map(lambda x, y: (x * 2.0, y + 1))
    resident = [(x.numpy(), y.numpy()) for x, y in dataset]
    arrays = list(pairs().shuffle(ROWS, seed=3).batch(7).as_numpy_iterator())
    monkeypatch.setenv("TELETAPE_DATASET_BYTES", "0")
    again = pairs().shuffle(ROWS, seed=3).batch(7).map(lambda x, y: (x * 2.0, y + 1))
    streamed = [(x.numpy(), y.numpy()) for x, y in again]
    for first, second, (x, y) in zip(resident, streamed, arrays, strict=True):
        np.testing.assert_array_equal(first[0], second[0])
        np.testing.assert_array_equal(first[1], second[1])
        np.testing.assert_array_equal(first[0], x * 2)
        np.testing.assert_array_equal(first[1], y + 1)


def test_arrays_are_read_without_a_session(remote):
    requests = remote.requests
    assert len(list(pairs().shuffle(8).batch(4).as_numpy_iterator())) == 10
    assert remote.requests == requests


def test_a_map_before_a_batch_is_one_command_a_batch(remote, loopback):
    weight = tf.Variable(tf.ones([64, 1]))
    tf.sync()
    requests, calls = remote.requests, len(loopback.commands(CallFunction))
    losses = steps(pairs().map(lambda x, y: (x / 2.0, y)).shuffle(ROWS).batch(4), weight)
    assert remote.requests - requests == len(losses) == 10
    assert len(loopback.commands(CallFunction)) - calls == 10


def test_a_filter_on_arrays_sends_nothing(remote):
    requests = remote.requests
    dataset = pairs().map(lambda x, y: (x, y * 2)).filter(lambda x, y: y % 3 == 0)
    assert sum(1 for _ in dataset) == 14
    assert remote.requests == requests


def test_a_filter_that_uses_a_variable_asks_the_server(remote):
    limit = tf.Variable(5, dtype=tf.int64)
    dataset = pairs().filter(lambda x, y: y < limit)
    assert [int(y) for _, y in dataset] == [0, 1, 2, 3, 4]
    limit.assign(2)
    assert [int(y) for _, y in dataset] == [0, 1]


def test_a_function_of_strings_runs_in_this_process(remote):
    requests = remote.requests
    dataset = tf.data.Dataset.from_tensor_slices(["1 2", "3 4"])
    parsed = dataset.map(lambda text: np.array(text.numpy().split(), np.float32)).batch(2)
    [rows] = parsed
    assert remote.requests == requests
    assert rows.numpy().tolist() == [[1, 2], [3, 4]]


def test_a_tensor_of_the_server_stays_there(remote):
    rows = tf.random.normal([12, 3])
    requests = remote.requests
    batches = list(tf.data.Dataset.from_tensor_slices(rows).shuffle(12).batch(4))
    assert remote.requests == requests
    assert sum(float(tf.reduce_sum(batch)) for batch in batches) == pytest.approx(float(tf.reduce_sum(rows)), abs=1e-4)


def test_a_whole_array_is_one_tensor(remote, loopback):
    before = constant_bytes(loopback)
    pairs_of_batch = tf.data.Dataset.zip(
        (tf.data.Dataset.range(10), tf.data.Dataset.from_tensors(FEATURES).repeat())
    ).map(lambda i, whole: tf.gather(whole, [i, i]))
    total = sum(float(tf.reduce_sum(batch)) for batch in pairs_of_batch)
    assert total == pytest.approx(2 * FEATURES[:10].sum(), rel=1e-5)
    assert constant_bytes(loopback) - before < FEATURES.nbytes + 2000


def test_an_iteration_reads_several_tensors_in_one_request(remote):
    requests = remote.requests
    rows = list(pairs().batch(20).map(lambda x, y: (x + 1, y)).as_numpy_iterator())
    assert len(rows) == 2
    assert remote.requests - requests == 2


def test_a_generator_runs_ahead_in_a_thread_and_its_steps_stay_one_request(remote):
    def generator():
        for row in FEATURES:
            yield row, 0

    signature = (tf.TensorSpec([64], tf.float32), tf.TensorSpec([], tf.int64))
    dataset = tf.data.Dataset.from_generator(generator, output_signature=signature).batch(4).prefetch(2)
    weight = tf.Variable(tf.ones([64, 1]))
    tf.sync()
    requests = remote.requests
    losses = steps(dataset, weight)
    assert remote.requests - requests == len(losses) == 10


def test_what_is_cached_stays_on_the_server(remote, loopback):
    drawn = pairs().map(lambda x, y: x + tf.random.normal([64])).cache()
    first = [x.numpy() for x in drawn]
    calls = len(loopback.commands(CallFunction))
    second = [x.numpy() for x in drawn]
    assert len(loopback.commands(CallFunction)) == calls
    np.testing.assert_array_equal(first, second)


def test_another_session_gets_its_own_copy(remote, loopback):
    from teletape.core.sessions.current import use
    from teletape.core.sessions.local import LocalSession

    dataset = pairs().batch(4)
    there = [x.numpy() for x, _ in itertools.islice(dataset, 3)]
    use(LocalSession())
    here = [x.numpy() for x, _ in itertools.islice(dataset, 3)]
    np.testing.assert_array_equal(there, here)
    use(remote)
    np.testing.assert_array_equal([x.numpy() for x, _ in itertools.islice(dataset, 3)], here)
