"""Values that one call has made come together: reading the parts of a tensor one by one is a request or a few."""

import numpy as np
import pytest

import teletape as tf


@pytest.fixture
def parts_of(remote):
    """The number of requests that reading all of some tensors takes, and their values."""

    def read(tensors):
        before = remote.requests
        values = [tensor.numpy().tolist() for tensor in tensors]
        return remote.requests - before, values

    return read


def test_the_parts_of_a_split_come_in_one_request(parts_of):
    x = tf.constant(np.arange(5000.0)) * 2.0
    tf.sync()
    requests, values = parts_of(tf.split(x, 500))
    assert requests == 1
    assert np.concatenate(values).tolist() == (2.0 * np.arange(5000.0)).tolist()


def test_unstacked_rows_too(parts_of):
    x = tf.constant(np.arange(60.0).reshape(20, 3)) + 1.0
    requests, values = parts_of(tf.unstack(x))
    assert requests == 1
    assert values == (np.arange(60.0).reshape(20, 3) + 1.0).tolist()


def test_an_iteration_takes_a_few(remote):
    x = tf.constant(np.arange(100.0)) * 3.0
    tf.sync()
    before = remote.requests
    assert [float(row) for row in x] == (3.0 * np.arange(100.0)).tolist()
    assert remote.requests - before <= 9  # of 1, 1, 2, 4, … rows
    assert float(next(iter(x))) == 0.0


def test_from_the_middle_on(parts_of):
    pieces = tf.split(tf.constant(np.arange(40.0)) * 2.0, 40)
    assert parts_of(pieces[20:21])[0] == 1
    assert parts_of(pieces[21:])[0] == 0
    assert parts_of(pieces[:20])[0] == 1


def test_large_ones_come_one_by_one(parts_of):
    pieces = tf.split(tf.ones([3, 1 << 17], tf.float64), 3)  # of 1 MiB
    assert parts_of(pieces)[0] == 3


def test_what_is_gone_is_left_out(parts_of):
    pieces = tf.split(tf.constant(np.arange(40.0)) * 2.0, 40)
    first, last = pieces[0], pieces[-1]
    del pieces
    assert parts_of([first, last]) == (1, [[0.0], [78.0]])


def test_a_failure_before_them_is_reported_once(remote):
    x = tf.constant(np.arange(40.0)) * 2.0
    tf.gather(x, tf.cast(tf.ones(20) * 99.0, tf.int32))
    pieces = tf.split(x, 40)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[Op:GatherV2\]"):
        pieces[0].numpy()
    assert float((x * 2.0)[3]) == 12.0
