"""Random ops in the loops of functions: each iteration and each call draws other numbers, a seed the same again.

The bodies of two loops have the same seeds, as in TensorFlow, unless an op has one of its own.
"""

import logging

import numpy as np
import pytest

import teletape as tf


@tf.function
def counted():
    numbers = tf.TensorArray(tf.float32, 64)
    for i in tf.range(64):
        numbers = numbers.write(i, tf.random.normal([32]))
    return numbers.stack()


@tf.function
def nested():
    numbers = tf.TensorArray(tf.float32, 16)
    for i in tf.range(4):
        for j in tf.range(4):
            if i >= j:
                numbers = numbers.write(4 * i + j, tf.random.uniform([]))
            else:
                numbers = numbers.write(4 * i + j, tf.random.uniform([]) + 1.0)
    return numbers.stack()


@tf.function
def over_elements():
    return tf.concat(
        [
            tf.map_fn(lambda x: x + tf.random.uniform([]), tf.zeros([5])),
            tf.scan(lambda a, x: tf.random.uniform([], seed=3), tf.zeros([5]), tf.constant(0.0)),
            tf.while_loop(
                lambda i, _: i < 5,
                lambda i, a: (i + 1, tf.tensor_scatter_nd_update(a, [[i]], [tf.random.uniform([], seed=4)])),
                (0, tf.zeros([5])),
            )[1],
        ],
        0,
    )


@tf.function
def until_above(limit):
    total, count = 0.0, 0
    while total < limit:
        total += tf.random.uniform([])
        count += 1
    return count


each = pytest.mark.parametrize("function", [counted, nested, over_elements], ids=["counted", "nested", "over_elements"])


@each
def test_no_number_comes_twice(function, caplog):
    tf.random.set_seed(1)
    with caplog.at_level(logging.WARNING):
        numbers = np.concatenate([function().numpy().ravel() for _ in range(2)])
    assert len(set(numbers.tolist())) == len(numbers)
    assert not [record.message for record in caplog.records if "op by op" in record.message]


@each
def test_a_seed_repeats_the_numbers(function):
    def drawn():
        tf.random.set_seed(7)
        return [function().numpy() for _ in range(2)]

    np.testing.assert_array_equal(drawn(), drawn())


def test_the_numbers_of_iterations_have_the_distribution():
    tf.random.set_seed(2)
    numbers = counted().numpy()
    assert abs(numbers.mean()) < 0.1
    assert abs(numbers.std() - 1) < 0.1
    assert abs(np.corrcoef(numbers)[~np.eye(64, dtype=bool)].mean()) < 0.05


def test_a_condition_sees_what_was_drawn():
    tf.random.set_seed(3)
    counts = [int(until_above(tf.constant(5.0))) for _ in range(20)]
    assert len(set(counts)) > 1
    assert 7 < np.mean(counts) < 14


def test_the_backward_pass_sees_the_same_numbers():
    @tf.function
    def dropped(x):
        for _ in tf.range(3):
            x = tf.nn.dropout(x, 0.5)
        return x

    x = tf.ones([64])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = dropped(x)
    np.testing.assert_array_equal(tape.gradient(y, x), y)
