"""`tf.GradientAccumulator`: sums of gradients over batches, each of which is added once."""

import numpy as np
import pytest

import teletape as tf

X = np.arange(24.0).reshape(8, 3) / 10
Y = np.linspace(-1, 1, 8)


def network():
    w = tf.Variable([0.5, -1.0, 2.0], dtype=tf.float64)
    return {"w": w, "bias": tf.Variable(0.25, dtype=tf.float64)}


def gradients(network, rows):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.linalg.matvec(X[rows], network["w"]) + network["bias"] - Y[rows]) ** 2)
    return tape.gradient(loss, network)


def assert_same(some, others):
    assert some.keys() == others.keys()
    for name, value in some.items():
        np.testing.assert_allclose(value, others[name], rtol=1e-12)


@pytest.mark.parametrize("cuts", [[8], [3, 8], [1, 2, 5, 8]])
def test_the_mean_over_batches_is_that_of_all_examples(cuts):
    net = network()
    total = tf.GradientAccumulator(net)
    for start, stop in zip([0, *cuts], cuts, strict=False):
        assert total.add(gradients(net, slice(start, stop)), weight=stop - start)
    whole = gradients(net, slice(0, 8))
    assert_same(total.mean(), whole)
    assert_same(total.sum(), {name: 8 * value for name, value in whole.items()})
    assert (int(total.count), float(total.weight)) == (len(cuts), 8.0)


def test_a_batch_with_a_number_is_added_once_in_any_order():
    w = tf.Variable([1.0, 2.0])
    total = tf.GradientAccumulator([w])
    added = [total.add([tf.ones(2) * number], batch=number) for number in (4, 2, 3, 4, 7, 2, 0)]
    assert added == [True, True, True, False, True, False, True]
    assert total.batches == [(0, 0), (2, 4), (7, 7)]
    assert total.sum()[0].numpy().tolist() == [16.0, 16.0]
    total.reset()
    assert (total.batches, int(total.count), total.sum()[0].numpy().tolist()) == ([], 0, [0.0, 0.0])
    assert total.add([tf.ones(2)], batch=4)


def test_a_program_goes_on_from_a_checkpoint(tmp_path):
    net = network()
    total = tf.GradientAccumulator(net)
    for batch in range(3):
        total.add(gradients(net, slice(batch, batch + 2)), batch=batch)
    path = tf.train.Checkpoint(net=net, total=total).save(tmp_path / "checkpoint")
    other = tf.GradientAccumulator(net)
    tf.train.Checkpoint(net=net, total=other).restore(path).assert_consumed()
    assert other.batches == [(0, 2)]
    assert_same(other.sum(), total.sum())
    assert [other.add(gradients(net, slice(batch, batch + 2)), batch=batch) for batch in (2, 3)] == [False, True]
    assert int(other.count) == 4


def test_narrow_sparse_and_missing_gradients():
    table, narrow = tf.Variable(tf.zeros([4, 2])), tf.Variable([1.0], dtype=tf.float16)
    total = tf.GradientAccumulator((table, narrow))
    for _ in range(3000):
        total.add((None, tf.constant([1.0], tf.float16)))
    total.add((tf.IndexedSlices(tf.ones([2, 2]), tf.constant([1, 1]), tf.constant([4, 2])), None))
    by_table, by_narrow = total.sum()
    assert by_table.numpy().tolist() == [[0.0, 0.0], [2.0, 2.0], [0.0, 0.0], [0.0, 0.0]]
    assert (by_narrow.dtype, by_narrow.numpy().tolist()) == (tf.float16, [3000.0])  # 2048 + 1 is 2048 in float16


def test_it_adds_inside_a_function():
    net = network()
    total = tf.GradientAccumulator(net)

    @tf.function
    def step(rows):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.linalg.matvec(rows, net["w"]) + net["bias"])
        total.add(tape.gradient(loss, net), weight=2.0)

    for _ in range(3):
        step(tf.constant(X))
    assert (int(total.count), float(total.weight)) == (3, 6.0)
    np.testing.assert_allclose(total.mean()["w"], X.sum(0))

    @tf.function
    def numbered():
        total.add(net, batch=1)

    with pytest.raises(tf.errors.InvalidArgumentError, match="is added outside of a"):
        numbered()


@pytest.mark.parametrize(
    ("add", "error", "text"),
    [
        (lambda total, w: total.add([w, w]), ValueError, "same"),
        (lambda total, w: total.add([w], batch=-1), tf.errors.InvalidArgumentError, "is 0 or more; found -1"),
        (lambda total, w: total.add([tf.ones(3)], batch=0), tf.errors.InvalidArgumentError, r"shape \(3,\) for a"),
    ],
)
def test_what_does_not_fit_is_refused(add, error, text):
    w = tf.Variable([1.0, 2.0])
    total = tf.GradientAccumulator([w])
    with pytest.raises(error, match=text):
        add(total, w)
    assert (int(total.count), total.batches) == (0, [])


def test_sources_are_floats():
    with pytest.raises(TypeError, match="gradients are by floats, and a source is of int32"):
        tf.GradientAccumulator(tf.Variable(1))
