"""Checkpoints over HTTP: all values travel together."""

import numpy as np

import teletape as tf


def test_a_checkpoint_is_read_in_one_request_and_restored_with_the_next(remote, tmp_path):
    variables = [tf.Variable(tf.ones([3]) * number) for number in range(20)]
    tf.sync()
    requests = remote.requests
    path = tf.train.Checkpoint(all=variables).write(tmp_path / "c")
    assert remote.requests == requests + 1
    for variable in variables:
        variable.assign(tf.zeros([3]))
    tf.train.Checkpoint(all=variables).read(path).assert_consumed()
    assert remote.requests == requests + 1
    np.testing.assert_array_equal(variables[7].numpy(), [7.0, 7.0, 7.0])
    assert remote.requests == requests + 2
