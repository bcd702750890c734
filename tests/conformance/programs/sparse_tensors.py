"""Sparse tensors: forms, products, sums, softmax, sets and lookups, with the gradients of their values."""

import operator

from conformance.probes import raises
from conformance.program import program


def parts(sparse):
    return [sparse.indices, sparse.values, sparse.dense_shape]


def matrix(tf, values=(3.0, -4.0, 5.0)):
    return tf.SparseTensor([[0, 1], [2, 0], [2, 3]], values, [3, 4])


@program()
def what_a_sparse_tensor_is(tf, np):
    a = matrix(tf)
    return [
        parts(a),
        a.shape,
        a.get_shape(),
        a.dtype,
        tf.is_tensor(a),
        tf.nest.is_nested(a),
        len(tf.nest.flatten([a, a])),
        tf.shape(a),
        tf.size(a),
        tf.rank(a),
        str(a),
        parts(a.with_values([1.0, 2.0, 3.0])),
        parts(tf.sparse.SparseTensor(np.zeros([0, 2], "int64"), [], [2, 2])),
    ]


@program()
def parts_that_do_not_fit(tf, np):
    return [
        raises(lambda: tf.SparseTensor([0, 1], [3.0, 4.0], [3, 4])),
        raises(lambda: tf.SparseTensor([[0, 1]], [3.0, 4.0], [3, 4])),
        raises(lambda: tf.SparseTensor([[0, 1]], [3.0], [3])),
        raises(lambda: tf.SparseTensor([[0.5, 1.0]], [3.0], [3, 4])),
        raises(lambda: matrix(tf).with_values([1.0])),
        raises(lambda: tf.convert_to_tensor(matrix(tf)), containing="Attempt to convert a value (SparseTensor"),
        raises(lambda: tf.reduce_sum(matrix(tf))),
        raises(lambda: matrix(tf) + 1.0),
    ]


@program()
def dense_and_back(tf, np):
    a = matrix(tf)
    unordered = tf.SparseTensor([[2, 0], [0, 1]], [3.0, 4.0], [3, 4])
    return [
        tf.sparse.to_dense(a),
        tf.sparse.to_dense(a, default_value=-1.0),
        tf.sparse.to_dense(unordered, validate_indices=False),
        raises(lambda: tf.sparse.to_dense(unordered).numpy(), containing="indices[1] = [0,1] is out of order"),
        raises(
            lambda: tf.sparse.to_dense(tf.SparseTensor([[0, 0], [0, 0]], [3.0, 4.0], [3, 4])).numpy(),
            containing="indices[1] = [0,0] is repeated",
        ),
        raises(
            lambda: tf.sparse.to_dense(tf.SparseTensor([[0, 7]], [3.0], [3, 4])).numpy(),
            containing="indices[0] = [0,7] is out of bounds",
        ),
        parts(tf.sparse.from_dense([[0, 1, 0], [2, 0, 3]])),
        parts(tf.sparse.from_dense(tf.constant(["", "a", "b"]))),
        tf.sparse.to_dense(tf.SparseTensor([[1]], ["b"], [3]), default_value="-"),
        parts(tf.sparse.eye(2, 3)),
        parts(tf.sparse.eye(2, dtype=tf.int32)),
    ]


@program()
def gradients_through_the_dense_form(tf, np):
    values, background = tf.Variable([3.0, -4.0, 5.0]), tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        a = matrix(tf, values)
        dense = tf.sparse.to_dense(a, default_value=background)
        loss = tf.reduce_sum(dense**2 * tf.reshape(tf.range(12.0), [3, 4]))
    return tape.gradient(loss, [values, background]), raises(lambda: tape.gradient(loss, a))


@program()
def products_with_dense_matrices(tf, np):
    a, b = matrix(tf), tf.reshape(tf.range(8.0), [4, 2])
    return [
        tf.sparse.sparse_dense_matmul(a, b),
        tf.sparse.sparse_dense_matmul(a, tf.transpose(b), adjoint_b=True),
        tf.sparse.sparse_dense_matmul(a, tf.ones([3, 2]), adjoint_a=True),
        tf.sparse.sparse_dense_matmul(tf.ones([2, 3]), a),
        tf.sparse.sparse_dense_matmul(tf.ones([4, 2]), a, adjoint_a=True, adjoint_b=True),
        raises(lambda: tf.sparse.sparse_dense_matmul(a, tf.ones([3, 2])).numpy()),
    ]


@program()
def gradients_of_products(tf, np):
    values, b = tf.Variable([3.0, -4.0, 5.0]), tf.Variable(tf.reshape(tf.range(8.0) - 3.0, [4, 2]))
    results = []
    for adjoint in (False, True):
        with tf.GradientTape(persistent=True) as outer:
            with tf.GradientTape() as tape:
                c = b[:3] if adjoint else b
                y = tf.sparse.sparse_dense_matmul(matrix(tf, values), c, adjoint_a=adjoint)
                loss = tf.reduce_sum(tf.sin(y))
            gradients = tape.gradient(loss, [values, b])
            total = tf.reduce_sum(gradients[0] ** 2) + tf.reduce_sum(gradients[1] ** 2)
        results.append([loss, gradients, outer.gradient(total, [values, b])])
    return results


@program()
def complex_products(tf, np):
    values = tf.Variable([1 + 2j, 3 - 1j])
    a = tf.SparseTensor([[0, 1], [1, 0]], values, [2, 2])
    b = tf.constant([[1j], [2 + 1j]])
    with tf.GradientTape() as tape:
        y = tf.sparse.sparse_dense_matmul(tf.SparseTensor(a.indices, values, [2, 2]), b, adjoint_a=True)
        loss = tf.reduce_sum(tf.math.real(y * tf.math.conj(y)))
    return y, tape.gradient(loss, values)


@program()
def functions_of_the_values(tf, np):
    a = matrix(tf)
    return [
        parts(a * 2.0),
        parts(a / tf.constant([1.0, 2.0, 4.0, 8.0])),
        parts(a * np.ones([3, 4], "float32")),
        parts(tf.square(a)),
        parts(tf.abs(a)),
        parts(tf.negative(a)),
        parts(tf.cast(a, tf.int32)),
        parts(tf.sparse.map_values(tf.math.add, a, 5.0)),
        parts(tf.sparse.map_values(lambda x, y: x * y, a, a)),
        raises(lambda: tf.exp(a)),
        raises(lambda: 2.0 * a),
    ]


@program()
def sums_over_axes(tf, np):
    a = matrix(tf)
    b = tf.SparseTensor([[0, 0, 1], [1, 0, 1], [1, 2, 0]], [1.0, -2.0, -3.0], [2, 3, 2])
    return [
        [tf.sparse.reduce_sum(a, axis) for axis in (None, 0, 1, -1, [0, 1])],
        [tf.sparse.reduce_max(b, axis) for axis in (None, 0, 1, [0, 2])],
        tf.sparse.reduce_sum(b, 1, keepdims=True),
        parts(tf.sparse.reduce_sum(b, 2, output_is_sparse=True)),
        parts(tf.sparse.reduce_max(b, 0, output_is_sparse=True)),
    ]


@program()
def gradients_of_sums(tf, np):
    values = tf.Variable([3.0, -4.0, 5.0])
    with tf.GradientTape(persistent=True) as tape:
        rows = tf.sparse.reduce_sum(matrix(tf, values), 1)
        loss = tf.reduce_sum(rows**2)
    return rows, tape.gradient(loss, values)


@program()
def sums_and_extremes_of_two(tf, np):
    a = matrix(tf)
    b = tf.SparseTensor([[0, 0], [2, 0], [2, 2]], [1.0, 6.0, -2.0], [3, 4])
    values = tf.Variable([3.0, -4.0, 5.0])
    with tf.GradientTape() as tape:
        total = tf.sparse.add(matrix(tf, values), b)
        loss = tf.reduce_sum(total.values**2)
    return [
        parts(total),
        tape.gradient(loss, values),
        parts(tf.sparse.add(a, b, threshold=2.5)),
        tf.sparse.add(a, tf.ones([3, 4])),
        tf.sparse.add(tf.ones([3, 4]), a),
        parts(tf.sparse.maximum(a, b)),
        parts(tf.sparse.minimum(a, b)),
    ]


@program()
def other_orders_and_shapes(tf, np):
    a = matrix(tf)
    unordered = tf.SparseTensor([[2, 0], [0, 1], [1, 1]], [3.0, 4.0, 5.0], [3, 4])
    return [
        parts(tf.sparse.reorder(unordered)),
        parts(tf.sparse.transpose(a)),
        parts(tf.sparse.transpose(tf.sparse.reshape(a, [3, 2, 2]), [2, 0, 1])),
        parts(tf.sparse.reshape(a, [2, -1])),
        parts(tf.sparse.expand_dims(a, 0)),
        parts(tf.sparse.expand_dims(a, -1)),
        parts(tf.sparse.expand_dims(a)),
        parts(tf.sparse.reset_shape(a, [4, 5])),
        parts(tf.sparse.reset_shape(a)),
        raises(lambda: tf.sparse.reshape(a, [5, 3])),
    ]


@program()
def parts_of_sparse_tensors(tf, np):
    a = matrix(tf)
    return [
        parts(tf.sparse.slice(a, [0, 1], [3, 2])),
        parts(tf.sparse.slice(a, [2, 0], [9, 9])),
        [parts(part) for part in tf.sparse.split(a, 2, 1)],
        [parts(part) for part in tf.sparse.split(sp_input=a, num_split=2, axis=0)],
        parts(tf.sparse.concat(0, [a, a])),
        parts(tf.sparse.concat(1, [a, a])),
        parts(tf.sparse.retain(a, [True, False, True])),
        [[parts(filled), empty] for filled, empty in [tf.sparse.fill_empty_rows(a, 7.0)]],
        tf.sparse.to_indicator(tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([1, 3, 0]), [3, 2]), 4),
    ]


@program()
def softmax_of_the_values_of_a_row(tf, np):
    values = tf.Variable([1.0, 2.0, 0.5, -1.0])

    def rows(v):
        return tf.sparse.softmax(tf.SparseTensor([[0, 0], [0, 2], [1, 1], [2, 0]], v, [3, 3]))

    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(rows(values).values * [1.0, 2.0, 3.0, 4.0])
    return parts(rows(values)), tape.gradient(loss, values)


@program()
def a_function_takes_and_returns_sparse_tensors(tf, np):
    traces = []

    @tf.function
    def scaled(sparse, factor):
        traces.append(1)
        return sparse.with_values(sparse.values * factor), tf.sparse.to_dense(sparse)

    values = tf.Variable([3.0, -4.0, 5.0])
    with tf.GradientTape() as tape:
        result, dense = scaled(matrix(tf, values), tf.constant(2.0))
        loss = tf.reduce_sum(result.values**2) + tf.reduce_sum(dense)
    gradient = tape.gradient(loss, values)
    scaled(matrix(tf), tf.constant(3.0))
    return parts(result), dense, gradient, len(traces)


@program()
def chosen_rows_by_segment(tf, np):
    data = tf.Variable(tf.reshape(tf.range(12.0), [4, 3]))
    indices, ids = tf.constant([0, 2, 2, 3]), tf.constant([0, 0, 1, 3])
    results = []
    for function in (tf.sparse.segment_sum, tf.sparse.segment_mean, tf.sparse.segment_sqrt_n):
        with tf.GradientTape() as tape:
            y = function(data, indices, ids)
            loss = tf.reduce_sum(y**2)
        results.append([y, tape.gradient(loss, data), function(data, indices, ids, num_segments=5)])
    return results


@program()
def counts_of_numbers(tf, np):
    numbers = tf.constant([[1, 3, 1], [0, 3, 3]])
    return [
        parts(tf.sparse.bincount(numbers, axis=-1)),
        parts(tf.sparse.bincount(numbers)),
        parts(tf.sparse.bincount(numbers, axis=-1, minlength=6)),
        parts(tf.sparse.bincount(numbers, axis=-1, maxlength=3)),
        parts(tf.sparse.bincount(numbers, axis=-1, binary_output=True)),
        parts(tf.sparse.bincount(numbers, weights=[[0.5, 1.0, 2.0], [1.0, 1.0, 4.0]], axis=-1)),
    ]


@program()
def sets_of_rows(tf, np):
    a, b = tf.constant([[1, 2, 2], [5, 3, 4]]), tf.constant([[2, 9, 1], [7, 7, 3]])
    words = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], ["b", "a", "c"], [2, 2])
    return [
        parts(tf.sets.intersection(a, b)),
        parts(tf.sets.difference(a, b)),
        parts(tf.sets.difference(a, b, aminusb=False)),
        parts(tf.sets.union(a, b)),
        tf.sets.size(words),
        parts(tf.sets.union(words, words)),
    ]


@program()
def embeddings_of_sparse_ids(tf, np):
    table = tf.Variable(tf.reshape(tf.range(10.0), [5, 2]))
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [2, 0]], tf.constant([1, 3, 1, 0], tf.int64), [3, 2])
    weights = ids.with_values([2.0, 0.5, 1.0, 3.0])
    results = []
    for combiner in ("sum", "mean", "sqrtn"):
        for row_weights in (None, weights):
            with tf.GradientTape() as tape:
                y = tf.nn.embedding_lookup_sparse(table, ids, row_weights, combiner=combiner)
                loss = tf.reduce_sum(y**2)
            results.append([y, tf.convert_to_tensor(tape.gradient(loss, table))])
    return results, tf.nn.embedding_lookup_sparse(table, ids, None, max_norm=1.0)


@program()
def gradients_of_embeddings_are_rows(tf, np):
    table = tf.Variable(tf.reshape(tf.range(10.0), [5, 2]))
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([3, 1, 3]), [2, 2])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum") ** 2)
    gradient = tape.gradient(loss, table)
    return type(gradient).__name__, gradient.indices, gradient.values


@program()
def embeddings_of_rows_that_may_be_empty(tf, np):
    table = tf.Variable(tf.reshape(tf.range(10.0), [5, 2]))
    ids = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([1, -1, 4], tf.int64), [4, 2])
    weights = ids.with_values([2.0, 1.0, 0.5])
    with tf.GradientTape() as tape:
        y = tf.nn.safe_embedding_lookup_sparse(table, ids, weights)
        loss = tf.reduce_sum(y**2)
    return [
        y,
        tf.convert_to_tensor(tape.gradient(loss, table)),
        tf.nn.safe_embedding_lookup_sparse(table, ids),
        tf.nn.safe_embedding_lookup_sparse(table, ids, default_id=3, combiner="sum"),
    ]


@program()
def a_sparse_regression_is_trained(tf, np):
    a = tf.SparseTensor([[0, 1], [1, 0], [1, 3], [2, 2], [3, 1]], [1.0, 2.0, -1.0, 0.5, 1.5], [4, 4])
    w, target = tf.Variable(tf.zeros([4, 1])), tf.constant([[1.0], [0.0], [2.0], [-1.0]])
    losses = []
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.sparse.sparse_dense_matmul(a, w) - target) ** 2)
        w.assign_sub(0.5 * tape.gradient(loss, w))
        losses.append(loss)
    return losses, w


@program()
def a_graph_is_convolved(tf, np):
    edges = np.array([[0, 1], [1, 0], [1, 2], [2, 1], [2, 3], [3, 2]])
    degrees = np.bincount(edges[:, 0]).astype("float32")
    scale = 1.0 / np.sqrt(degrees[edges[:, 0]] * degrees[edges[:, 1]])
    adjacency = tf.sparse.reorder(tf.SparseTensor(edges, scale, [4, 4]))
    features, kernel = tf.reshape(tf.range(8.0) / 8.0, [4, 2]), tf.Variable([[0.5, -1.0], [1.0, 0.25]])
    with tf.GradientTape() as tape:
        hidden = tf.nn.relu(tf.sparse.sparse_dense_matmul(adjacency, features @ kernel))
        loss = tf.reduce_sum(tf.sparse.sparse_dense_matmul(adjacency, hidden) ** 2)
    return hidden, loss, tape.gradient(loss, kernel)


@program()
def gradient_of_retained_values(tf, np):
    values = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(values)
        matrix = tf.SparseTensor([[0, 0], [0, 2], [1, 1]], values, [2, 3])
        retained = tf.sparse.retain(matrix, [True, False, True])
        y = retained.values * retained.values
    gradient = tape.gradient(y, values)
    return type(gradient).__name__, tf.convert_to_tensor(gradient)


@program()
def axes_and_shapes_that_do_not_fit(tf, np):
    sparse, dense = matrix(tf), tf.constant([1.0, 2.0])
    larger = tf.SparseTensor(sparse.indices, sparse.values, [9, 9])
    return [
        raises(lambda: tf.sparse.reduce_sum(sparse, axis=5)),
        raises(lambda: tf.sparse.reduce_max(sparse, axis=-4)),
        raises(lambda: tf.sparse.sparse_dense_matmul(sparse, dense)),
        raises(lambda: tf.sparse.add(sparse, larger)),
        raises(lambda: tf.sparse.reshape(sparse, [-1, -1])),
        raises(lambda: tf.sparse.expand_dims(sparse, 7)),
    ]


@program()
def distances_of_sequences(tf, np):
    hypothesis = tf.SparseTensor([[0, 0], [0, 1], [0, 2], [1, 0], [3, 0]], ["a", "b", "c", "x", "q"], [4, 3])
    truth = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]], ["b", "c", "x", "y", "z"], [5, 2])
    numbers = tf.SparseTensor([[0, 0, 0], [0, 0, 1], [1, 1, 0]], [3, 1, 4], [2, 2, 2])
    others = tf.SparseTensor([[0, 0, 0], [1, 0, 1], [1, 1, 0]], [1, 1, 4], [2, 2, 3])
    wide = tf.cast(others, tf.int64)
    return [
        tf.edit_distance(hypothesis, truth),
        tf.edit_distance(hypothesis, truth, normalize=False),
        tf.edit_distance(numbers, others, False),
        tf.function(lambda: tf.edit_distance(numbers, others))(),
        raises(lambda: tf.edit_distance(tf.constant([[1]]), others)),
        raises(lambda: tf.edit_distance(hypothesis, numbers)),
        raises(lambda: tf.edit_distance(numbers, wide)),
        raises(lambda: tf.edit_distance(tf.sparse.from_dense([1, 2]), others)),
    ]


@program()
def a_dense_tensor_times_a_sparse_one(tf, np):
    values, column = tf.Variable([1.0, 2.0]), tf.Variable([[10.0], [100.0]])
    with tf.GradientTape() as tape:
        sparse = tf.SparseTensor([[0, 1], [1, 0]], values, [2, 2])
        products = [column * sparse, sparse * column]
        total = sum(tf.sparse.reduce_sum(product) for product in products)
    return [
        *[product.values for product in (*products, tf.constant(2.0) * sparse)],
        *tape.gradient(total, [values, column]),
        *[
            raises(lambda operate=operate: operate(column, sparse))
            for operate in (operator.add, operator.sub, operator.truediv, operator.floordiv, operator.pow)
        ],
        raises(lambda: 2.0 * sparse),
    ]
