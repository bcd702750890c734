"""tf.summary over HTTP: summaries wait, and their values are read together."""

from event_files import scalars

import teletape as tf


def test_ten_summaries_cost_one_request(remote, tmp_path):
    writer = tf.summary.create_file_writer(tmp_path)
    x = tf.ones([3])
    tf.sync()
    requests = remote.requests
    with writer.as_default():
        for step in range(10):
            tf.summary.scalar("loss", tf.reduce_sum(x) * step, step=step)
    assert remote.requests == requests + 1
    writer.close()
    assert [value for _, _, value in scalars(tmp_path)] == [3.0 * step for step in range(10)]
