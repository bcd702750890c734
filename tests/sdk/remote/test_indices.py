"""Indices that only the server knows: nothing is read to use one, and TensorFlow's errors come from the server."""

import numpy as np
import pytest
from teletape.errors import InvalidArgumentError

import teletape as tf


@pytest.fixture
def table():
    return tf.Variable(np.arange(12.0, dtype=np.float32).reshape(4, 3))


def unread(number, dtype=tf.int64):
    """An integer scalar whose value is not known in this process."""
    return tf.cast(tf.reduce_sum(tf.fill([20], float(number) / 20.0) * 1.0) + 0.001 * np.sign(number), dtype)


USES = {
    "row": lambda table, at: table[at],
    "column": lambda table, at: table[:, at],
    "element": lambda table, at: table[at, at],
    "rest": lambda table, at: table[1:, None, at],
    "ellipsis": lambda table, at: table[..., at],
    "tensor": lambda table, at: (table * 2.0)[at],
    "block": lambda table, at: tf.slice(table, [at, 0], [2, 3]),
    "inner block": lambda table, at: tf.slice(table, [1, at], [2, 1]),
    "begin": lambda table, at: tf.slice(table, tf.stack([at, at]), [1, 2]),
    "written": lambda table, at: tf.TensorArray(tf.float32, 3).write(at, 5.0).stack(),
    "read": lambda table, at: tf.TensorArray(tf.float32, 4).unstack(table[:, 0]).read(at),
    "assigned": lambda table, at: table[at].assign([7.0, 8.0, 9.0]),
    "assigned column": lambda table, at: table[:, at].assign([6.0, 7.0, 8.0, 9.0]),
    "assigned rest": lambda table, at: table[2:, None, at].assign([[6.0], [7.0]]),
    "assigned ellipsis": lambda table, at: table[..., at].assign(7.0),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_an_index_is_not_read(remote, table, use, dtype):
    at = unread(1, dtype)
    before = remote.requests
    result = USES[use](table, at)
    assert remote.requests == before
    read = tf.convert_to_tensor(result).numpy()
    assert read.tolist() == _known(use, table, np.int64(1)).tolist()


def _known(use, table, at):
    """The same with a number that is known."""
    again = tf.Variable(np.arange(12.0, dtype=np.float32).reshape(4, 3))
    return tf.convert_to_tensor(USES[use](again, at)).numpy()


@pytest.mark.parametrize("use", ["row", "column", "ellipsis", "tensor", "assigned", "assigned column"])
def test_a_negative_index_counts_from_the_end(remote, table, use):
    at = unread(-2)
    before = remote.requests
    result = USES[use](table, at)
    assert remote.requests == before
    assert tf.convert_to_tensor(result).numpy().tolist() == _known(use, table, -2).tolist()


@pytest.mark.parametrize(
    ("use", "at", "text"),
    [
        ("row", 7, r"slice index 7 of dimension 0 out of bounds. \[Op:StridedSlice\]"),
        ("row", -5, "slice index -1 of dimension 0 out of bounds."),
        ("rest", -7, "slice index -4 of dimension 1 out of bounds."),
        ("assigned", 7, "slice index 7 of dimension 0 out of bounds."),
        ("block", 7, r"Expected begin\[0\] in \[0, 4\], but got 7 \[Op:Slice\]"),
        ("block", 3, r"Expected size\[0\] in \[0, 1\], but got 2"),
        ("block", -1, r"Expected begin\[0\] in \[0, 4\], but got -1"),
        ("written", 25, "Trying to modify element 25 in a list with 3 elements."),
        ("written", -1, "Trying to modify element -1 in a list with 3 elements."),
        ("read", 25, "Trying to access element 25 in a list with 4 elements."),
    ],
)
def test_what_is_outside_is_refused(remote, table, use, at, text):
    result = USES[use](table, unread(at))
    with pytest.raises(InvalidArgumentError, match=text):
        tf.convert_to_tensor(result).numpy()


def test_an_assignment_outside_changes_nothing(remote, table):
    table[unread(7)].assign([7.0, 8.0, 9.0])
    with pytest.raises(InvalidArgumentError):
        table.numpy()
    assert table.numpy().tolist() == np.arange(12.0).reshape(4, 3).tolist()


def test_the_gradient_of_an_element(remote, table):
    at = unread(-1)
    before = remote.requests
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(table[at] ** 2) + tf.reduce_sum(tf.slice(table, [unread(1), 1], [2, 2]))
    gradient = tape.gradient(loss, table)
    assert remote.requests == before
    assert isinstance(gradient, tf.Tensor)  # dense, as in TensorFlow
    assert gradient.numpy().tolist() == [[0, 0, 0], [0, 1, 1], [0, 1, 1], [18, 20, 22]]


def test_floats_are_no_indices(remote, table):
    with pytest.raises(TypeError, match="Only integers, slices"):
        table[tf.reduce_sum(table)]
