"""`tape.sparse_jacobian` and `tape.sparse_hessian`: here and through a server."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

import teletape as tf

X = np.array([0.5, -1.0, 2.0, 1.5, 0.25, -0.75])


def chain(x):
    return tf.reduce_sum((x[1:] - x[:-1] ** 2) ** 2)


def tape_of(function, x=X, **options):
    x = tf.Variable(x)
    with tf.GradientTape(**options) as tape:
        y = function(x)
    return tape, y, x


@pytest.mark.parametrize("format", ["coo", "csr"])
def test_both_formats_have_the_entries_of_the_dense_derivative(format):
    tape, y, x = tape_of(chain, persistent=True)
    expected = tape.hessian(y, x).numpy()
    matrix = tape.sparse_hessian(y, x, format=format)
    assert (matrix.shape, matrix.vector_products, matrix.values.shape) == ((6, 6), 3, [16])
    np.testing.assert_allclose(matrix.to_dense().numpy(), expected)
    np.testing.assert_allclose(matrix.scipy().toarray(), expected)
    assert scipy.sparse.issparse(matrix.scipy())
    tape, y, x = tape_of(lambda x: tf.sin(x)[::-1] * x, persistent=True)
    matrix = tape.sparse_jacobian(y, x, format=format)
    assert matrix.vector_products == 2
    np.testing.assert_allclose(matrix.to_dense().numpy(), tape.jacobian(y, x).numpy())


def test_coordinates_go_row_by_row():
    tape, y, x = tape_of(lambda x: x[1:] * x[:-1])
    matrix = tape.sparse_jacobian(y, x)
    assert matrix.rows.numpy().tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert matrix.cols.numpy().tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5]
    assert (matrix.rows.dtype, matrix.cols.dtype, matrix.values.dtype) == (tf.int32, tf.int32, tf.float64)
    assert matrix.values.numpy().tolist() == [-1.0, 0.5, 2.0, -1.0, 1.5, 2.0, 0.25, 1.5, -0.75, 0.25]


def test_by_rows_the_starts_are_those_of_scipy():
    tape, y, x = tape_of(lambda x: x[1:] * x[:-1])
    matrix = tape.sparse_jacobian(y, x, format="csr")
    assert matrix.indptr.numpy().tolist() == [0, 2, 4, 6, 8, 10]
    assert matrix.indices.numpy().tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5]


def test_not_connected_is_none_or_a_matrix_without_entries():
    other = tf.Variable(1.0)
    tape, y, _ = tape_of(chain, persistent=True)
    assert tape.sparse_jacobian(y, other) is None
    assert tape.sparse_hessian(y, other) is None
    matrix = tape.sparse_hessian(y, other, "zero", format="csr")
    assert (matrix.shape, matrix.vector_products, matrix.values.shape) == ((1, 1), 0, [0])
    assert matrix.to_dense().numpy().tolist() == [[0.0]]


def test_axes_are_flattened_in_row_major_order():
    tape, y, x = tape_of(lambda x: tf.transpose(x) ** 2.0, X.reshape(2, 3), persistent=True)
    matrix = tape.sparse_jacobian(y, x)
    assert (matrix.shape, matrix.vector_products) == ((6, 6), 1)
    np.testing.assert_allclose(matrix.to_dense().numpy(), tape.jacobian(y, x).numpy().reshape(6, 6))


def test_a_tape_answers_once_or_often():
    tape, y, x = tape_of(chain)
    assert tape.sparse_hessian(y, x).vector_products == 3
    with pytest.raises(RuntimeError, match="non-persistent"):
        tape.sparse_hessian(y, x)
    tape, y, x = tape_of(chain, persistent=True)
    first, second = tape.sparse_hessian(y, x), tape.sparse_hessian(y, x)
    np.testing.assert_array_equal(first.values.numpy(), second.values.numpy())
    assert tape.gradient(y, x).shape == [6]


def test_a_gradient_of_the_programs_own_is_asked_for_one_cotangent_at_a_time():
    @tf.custom_gradient
    def cube(x):
        return x**3.0, lambda ct: ct * 3.0 * x**2.0

    tape, y, x = tape_of(lambda x: cube(x) * x, persistent=True)
    matrix = tape.sparse_jacobian(y, x)
    np.testing.assert_allclose(matrix.to_dense().numpy(), tape.jacobian(y, x).numpy())
    assert matrix.vector_products == 6  # nothing is known of the structure of a function
    total = tf.reduce_sum(X)
    with tape:
        total = tf.reduce_sum(cube(x))
    np.testing.assert_allclose(tape.sparse_hessian(total, x).to_dense().numpy(), tape.hessian(total, x).numpy())


def test_loops_are_followed_as_they_ran():
    def steps(x):
        for _ in tf.range(3):
            x = tf.concat([x[1:], x[:1]], 0) * x
        return x

    tape, y, x = tape_of(tf.function(steps), persistent=True)
    matrix = tape.sparse_jacobian(y, x)
    np.testing.assert_allclose(matrix.to_dense().numpy(), tape.jacobian(y, x).numpy())
    assert matrix.values.shape == [24]


def test_rows_of_a_table_interact_where_they_are_gathered():
    def loss(table):
        rows = tf.gather(table, [0, 2, 2])
        return tf.reduce_sum(rows[:, :1] * rows[:, 1:] ** 2.0)

    tape, y, table = tape_of(loss, X.reshape(3, 2), persistent=True)
    matrix = tape.sparse_hessian(y, table)
    np.testing.assert_allclose(matrix.to_dense().numpy(), tape.hessian(y, table).numpy().reshape(6, 6))
    assert set(zip(matrix.rows.numpy().tolist(), matrix.cols.numpy().tolist(), strict=True)) <= {
        (i, j) for row in (0, 2) for i in (2 * row, 2 * row + 1) for j in (2 * row, 2 * row + 1)
    }


def test_what_cannot_be_asked_says_why():
    tape, y, x = tape_of(chain, persistent=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="one source, found 2: ask for each by itself"):
        tape.sparse_hessian(y, [x, x])
    with pytest.raises(tf.errors.InvalidArgumentError, match="one target, found 2"):
        tape.sparse_jacobian([y, y], x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="format: coo or csr, found 'csc'"):
        tape.sparse_jacobian(y, x, format="csc")
    with pytest.raises(ValueError, match="unconnected_gradients"):
        tape.sparse_jacobian(y, x, "no")
    with pytest.raises(tf.errors.InvalidArgumentError, match="numeric tensors"):
        tape.sparse_jacobian(y, tf.constant("a"))
    with tf.GradientTape() as outer:
        with tf.GradientTape(persistent=True) as tape:
            y = chain(x)
        with pytest.raises(tf.errors.UnimplementedError, match="has no derivative of its own"):
            tape.sparse_hessian(y, x)
        with outer.stop_recording():
            assert tape.sparse_hessian(y, x).vector_products == 3
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)), tf.GradientTape() as tape:
        y = chain(x)
        with pytest.raises(tf.errors.UnimplementedError, match="an accumulator records"):
            tape.sparse_hessian(y, x)


def test_a_tridiagonal_hessian_of_a_million_variables_takes_few_products_and_little_memory():
    count = 1_000_000
    tape, y, x = tape_of(lambda x: chain(x) + tf.reduce_sum((1.0 - x) ** 2), np.linspace(-1.0, 1.0, count, dtype="f4"))
    tracemalloc.start()
    try:
        hessian = tape.sparse_hessian(y, x, format="csr")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert hessian.values.shape == [3 * count - 2]
    assert hessian.vector_products <= 4
    assert peak < 100e6
    point = np.linspace(-1.0, 1.0, count)
    rows = hessian.scipy()[[0, 1, 500_000, count - 1]].toarray()
    for row, i in zip(rows, (0, 1, 500_000, count - 1), strict=True):
        expected = np.zeros(count)
        expected[i] = 2.0 + (i > 0) * 2.0
        if i + 1 < count:
            expected[i] += 12.0 * point[i] ** 2 - 4.0 * point[i + 1]
            expected[i + 1] = -4.0 * point[i]
        if i:
            expected[i - 1] = -4.0 * point[i - 1]
        np.testing.assert_allclose(row, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("ask", ["sparse_jacobian", "sparse_hessian", "jacobian", "hessian", "estimate"])
def test_a_bound_that_is_no_number_of_bytes_is_refused(ask):
    tape, y, x = tape_of(chain, persistent=True)
    for bound in (0, -1):
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=f"max_bytes must be 1 or more, or None; found {bound}"
        ):
            getattr(tape, ask)(y, x, max_bytes=bound)
    with pytest.raises(TypeError, match="'str' object cannot be interpreted as an integer"):
        getattr(tape, ask)(y, x, max_bytes="1")
