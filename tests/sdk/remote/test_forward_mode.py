"""Forward mode and Python functions in a remote session: what travels, and how seldom."""

import numpy as np
import pytest

import teletape as tf
from teletape_engine.commands import (
    AccumulatorClose,
    AccumulatorOpen,
    AccumulatorResume,
    Assign,
    Call,
    Constant,
    Fetch,
    Jvp,
    TapePause,
    TapeResume,
)

X = [1.0, 2.0, 3.0]
make = tf.autodiff.ForwardAccumulator


def hvp(v, direction):
    """The Hessian of sum(v**4) times a direction, forward over reverse."""
    with make(v, direction) as acc:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(v**4.0)
        g = tape.gradient(y, v)
    return acc.jvp(g)


def test_a_hessian_vector_product_is_one_request(remote, loopback):
    v, direction = tf.Variable(X), tf.constant([1.0, 0.0, -1.0])
    tf.sync()
    before = remote.requests
    products = hvp(v, direction)
    assert remote.requests == before
    np.testing.assert_allclose(products, [12.0, 0.0, -108.0])
    assert remote.requests == before + 1
    (question,) = loopback.commands(Jvp)
    assert question.predicted == ("dense",)


def test_only_tangents_that_are_asked_for_get_names(remote, loopback):
    x = tf.constant(X)
    with make(x, tf.ones(3)) as acc:
        y = tf.sin(x) * x + tf.exp(x)
    assert acc.jvp(tf.constant(1.0)) is None
    assert acc.jvp(x) is not None
    tf.sync()
    assert not loopback.commands(Jvp)
    first, second = acc.jvp([y, y])
    assert acc.jvp(y).recorded is first.recorded is second.recorded
    tf.sync()
    (question,) = loopback.commands(Jvp)
    assert len(question.targets) == 1


def test_ops_of_a_tangent_never_travel(remote, loopback):
    x, t = tf.constant(X), tf.constant([1.0, 1.0, 1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with make(x, t) as acc:
            y = tf.exp(x) * x
        z = acc.jvp(y)
    np.testing.assert_allclose(tape.gradient(z, x), np.exp(X) * (2 + np.array(X)), rtol=1e-6)
    assert [command.op for command in loopback.commands(Call)] == ["exp", "mul"]


def test_the_life_of_an_accumulator_travels(remote, loopback):
    x = tf.constant(X)
    acc = make(x, 2.0 * tf.ones(3))
    tf.sync()
    assert not loopback.commands(AccumulatorOpen)
    with acc:
        y = x * x
    with acc:
        z = y * y
    np.testing.assert_allclose(acc.jvp(z), [8.0, 64.0, 216.0])
    life = loopback.commands((AccumulatorOpen, AccumulatorClose, AccumulatorResume))
    assert [type(item) for item in life] == [AccumulatorOpen, AccumulatorClose, AccumulatorResume, AccumulatorClose]
    reference = loopback.session.listing("accumulator")
    assert [(item["recording"], item["tangents"]) for item in reference] == [(False, 3)]
    del acc, y, z
    tf.sync()
    assert not loopback.session.listing("accumulator")


def test_a_value_that_the_program_drops_takes_its_tangent_along(remote, loopback):
    x = tf.constant(X)
    with make(x, tf.ones(3)) as acc:
        y = x * x
        tf.sync()
        assert loopback.session.listing("accumulator")[0]["tangents"] == 2
        del y
        tf.sync()
        assert loopback.session.listing("accumulator")[0]["tangents"] == 1
    assert acc.jvp(x) is not None


def test_a_failure_leaves_both_sides_agreeing_on_what_is_open(remote, loopback):
    x, t = tf.constant(X), tf.constant([1.0, 1.0, 1.0])
    bad = tf.gather(x, tf.constant(np.full(500, 9)))  # too many to be judged here
    acc = make([x, bad], [t, tf.ones(500)])
    acc.__enter__()
    y = x * x
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
        y.numpy()
    z = x * x * x
    acc.__exit__(None, None, None)
    np.testing.assert_allclose(acc.jvp(z), [3.0, 12.0, 27.0])


def test_a_tangent_that_was_never_made_is_the_cause_that_is_reported(remote):
    x = tf.constant(X)
    t = tf.gather(x, tf.constant(np.full(500, 9)))[:3]
    with make(x, t) as acc:
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
            tf.sync()
        y = x * x
    with pytest.raises(tf.errors.OpError, match="is not in"):
        acc.jvp(y).numpy()
    assert float(tf.reduce_sum(y)) == 14.0


@pytest.mark.parametrize("lazy", [True, False])
def test_without_laziness_it_is_the_same(remote, lazy):
    remote.lazy = lazy
    np.testing.assert_allclose(hvp(tf.Variable(X), tf.ones(3)), [12.0, 48.0, 108.0])


# ------------------------------------------------------------------------------------------------------------- leaving
def test_numpy_function_is_one_round_trip(remote, loopback):
    a, b = tf.constant(np.ones(1000)), tf.constant(np.full(1000, 2.0))
    c, d = a + b, a * b
    before = remote.requests
    y = tf.numpy_function(lambda *arrays: sum(arrays), [c, d, 1.0], tf.float64)
    assert remote.requests == before + 1
    assert len(loopback.batches[-1].commands) > 2
    assert float(tf.reduce_sum(y)) == 6000.0
    assert remote.requests == before + 2


def test_tf_print_is_one_round_trip(remote, capsys):
    a, b = tf.constant(np.ones(1000)), tf.constant(np.full(1000, 2.0))
    before = remote.requests
    tf.print("sums:", tf.reduce_sum(a), {"b": tf.reduce_sum(b)})
    assert remote.requests == before + 1
    assert capsys.readouterr().err == "sums: 1000 {'b': 2000}\n"


def test_py_function_asks_nobody_unless_it_reads(remote, loopback):
    v = tf.Variable(X)
    tf.sync()
    before = remote.requests
    with tf.GradientTape() as tape:
        y = tf.py_function(lambda a: a * a, [v], tf.float32)
    assert remote.requests == before
    np.testing.assert_allclose(tape.gradient(y, v), [2.0, 4.0, 6.0])


def test_py_function_hides_the_tapes_and_restores_their_order(remote, loopback):
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with make(x, 1.0) as acc:
            y = tf.py_function(lambda a: a * a, [x], tf.float32)
            z = x**3
        first = acc.jvp(z)
    assert float(acc.jvp(y)) == 4.0
    assert float(tape.gradient(first, x)) == 12.0
    assert loopback.commands(TapePause)
    assert loopback.commands(TapeResume)


# ------------------------------------------------------------------------------------------------------------- sparse
def test_rows_travel_and_no_table(remote, loopback):
    table = tf.Variable(tf.zeros((100_000, 8)))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [5, 7, 5]))
    g = tape.gradient(loss, table)
    table.scatter_sub(tf.IndexedSlices(0.1 * g.values, g.indices))
    np.testing.assert_allclose(tf.gather(table, [5, 6, 7])[:, 0], [-0.2, 0.0, -0.1], rtol=1e-6)
    assert [command.mode for command in loopback.commands(Assign)] == ["scatter_sub"]
    assert max(command.value.nbytes for command in loopback.commands(Constant)) < 100
    rows = loopback.session.listing("slices")
    assert [row["rows"] for row in rows] == [3]


def test_an_index_that_is_known_here_is_refused_on_its_line(remote, loopback):
    table = tf.Variable(tf.zeros((3, 2)))
    before = remote.requests
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 3 is not in \[0, 3\)"):
        table.scatter_add(tf.IndexedSlices(tf.ones((2, 2)), tf.constant([0, 3])))
    assert remote.requests == before
    table.scatter_add(tf.IndexedSlices(tf.ones((1, 2)), tf.constant([1])))
    np.testing.assert_array_equal(table.numpy(), [[0, 0], [1, 1], [0, 0]])


def test_reading_a_sparse_gradient_moves_its_rows_alone(remote, loopback):
    table = tf.Variable(tf.zeros((50_000, 8)))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table, [1, 2]) ** 2)
    g = tape.gradient(loss, table)
    assert g.values.numpy().shape == (2, 8)
    assert g.indices.numpy().tolist() == [1, 2]
    table_id = table.recorded.value.name.id
    assert table_id not in [command.id for command in loopback.commands(Fetch)]
    assert not [command for command in loopback.commands(Call) if command.op == "unsorted_segment_sum"]


def test_a_loop_in_a_function_with_an_accumulator_is_one_request(remote, caplog):
    @tf.function
    def tangent(x, steps):
        with make(x, tf.ones(3)) as acc:
            y, i = x, tf.constant(0)
            while i < steps:
                y = y * x if y[0] < 8.0 else tf.sin(y)
                i += 1
        return acc.jvp(y)

    x, steps = tf.constant(X), tf.constant(3)
    tangent(x, steps).numpy()
    before = remote.requests
    np.testing.assert_allclose(tangent(x, tf.constant(2)), 3 * np.square(X))
    assert remote.requests == before + 1
    assert "runs op by op" not in caplog.text
