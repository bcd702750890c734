"""Gradients through ragged tensors, and whole programs: embeddings of words, masks of attention, training."""

from conformance.probes import derivatives, raises
from conformance.program import program

VALUES = [1.0, 2.0, -1.0, 3.0, 0.5]
SPLITS = [0, 2, 2, 3, 5]


def rows(tf, values, splits=None):
    return tf.RaggedTensor.from_row_splits(values, SPLITS if splits is None else splits)


def of_rows(tf, function):
    """Values and derivatives, of first and second order, of a function of a ragged tensor by its flat values."""
    return derivatives(tf, lambda values: function(rows(tf, values)), VALUES)


@program()
def by_flat_values(tf, np):
    return [
        of_rows(tf, lambda x: (x * x).flat_values),
        of_rows(tf, lambda x: tf.exp(x).to_tensor()),
        of_rows(tf, lambda x: tf.math.log1p(x * x).to_tensor(default_value=2.0)),
        of_rows(tf, lambda x: (x / (1.0 + x * x)).values),
    ]


@program()
def through_reductions(tf, np):
    return [
        of_rows(tf, lambda x: tf.reduce_sum(x * x, axis=1)),
        of_rows(tf, lambda x: tf.reduce_mean(x * x)),
        of_rows(tf, lambda x: tf.reduce_prod(x, axis=1)),
        of_rows(tf, lambda x: tf.reduce_sum(x**3.0, axis=0)),
        of_rows(tf, lambda x: tf.reduce_max(x * x, axis=1)[::2]),
        of_rows(tf, lambda x: tf.math.reduce_variance(x[2:], axis=1)),
    ]


@program()
def through_softmax_and_running_sums(tf, np):
    return [
        of_rows(tf, lambda x: tf.nn.softmax(x).flat_values),
        of_rows(tf, lambda x: tf.cumsum(x * x, axis=1).flat_values),
    ]


@program()
def through_broadcasting(tf, np):
    column = np.array([[1.0], [2.0], [3.0], [4.0]], np.float32)

    def both(values, dense):
        return (rows(tf, values * 1.0) * dense + dense * dense).flat_values

    return [
        derivatives(tf, both, VALUES, column),
        of_rows(tf, lambda x: (x - tf.reduce_mean(x, axis=1, keepdims=True)).flat_values),
        derivatives(tf, lambda values, b: (rows(tf, values) * b).to_tensor(), VALUES, 2.0),
    ]


@program()
def through_joining_and_indexing(tf, np):
    return [
        of_rows(tf, lambda x: tf.concat([x, x * x], axis=1).flat_values),
        of_rows(tf, lambda x: tf.concat([x, x * x], axis=0).to_tensor()),
        of_rows(tf, lambda x: tf.stack([x, x * x], axis=1).flat_values),
        of_rows(tf, lambda x: (x * x)[3]),
        of_rows(tf, lambda x: (x * x)[:, 1:].flat_values),
        of_rows(tf, lambda x: tf.gather(x * x, [3, 0, 0]).flat_values),
        of_rows(tf, lambda x: tf.reverse(x * x, [0]).flat_values),
        of_rows(tf, lambda x: tf.tile(x * x, [1, 2]).flat_values),
        of_rows(tf, lambda x: tf.where(x > 0.0, x * x, x).flat_values),
    ]


@program()
def through_dense_tensors(tf, np):
    dense = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)

    def cut(x):
        return (tf.RaggedTensor.from_tensor(x, lengths=[1, 3]) ** 2.0).to_tensor()

    def masked(x):
        return (tf.ragged.boolean_mask(x, [[True, False, True], [False, True, True]]) ** 2.0).flat_values

    return [derivatives(tf, cut, dense), derivatives(tf, masked, dense)]


@program()
def ragged_targets_and_sources(tf, np):
    x = tf.ragged.constant([[1.0, 2.0], [], [3.0]])
    deep = tf.ragged.constant([[[1.0], [2.0, 3.0]], []])
    v = tf.Variable([1.0, 2.0, 3.0])

    def gradient(target, sources, watched=(), **kwargs):
        with tf.GradientTape() as tape:
            tape.watch(watched)
            y = target()
        return tape.gradient(y, sources, **kwargs)

    return [
        gradient(lambda: x * x, x, [x]),
        gradient(lambda: deep**2.0, deep, [deep]),
        gradient(lambda: tf.reduce_sum(x * x), [x, x.flat_values], [x]),
        gradient(lambda: {"a": x * x, "b": x}, {"x": x}, [x]),
        gradient(lambda: x * x, x, [x], output_gradients=x),
        gradient(lambda: tf.constant(1.0), x, [x]),
        gradient(lambda: x * x, x),
        gradient(lambda: rows(tf, v, [0, 2, 2, 3]) ** 2.0, v),
        gradient(lambda: x * 2.0, [x, v], [x.flat_values]),
    ]


@program()
def integers_have_no_gradient(tf, np):
    x = tf.ragged.constant([[1, 2], [3]])
    with tf.GradientTape() as tape:
        tape.watch(tf.constant(1.0))
        y = tf.cast(x, tf.float32) * 2.0
    return tape.gradient(y, x)


@program()
def in_functions(tf, np):
    v = tf.Variable(VALUES)

    @tf.function
    def loss(x, scale):
        return tf.reduce_sum(tf.reduce_sum(x * x, axis=1) * scale)

    with tf.GradientTape() as tape:
        value = loss(rows(tf, v), tf.constant([1.0, 2.0, 3.0, 4.0]))
    g = tape.gradient(value, v)

    @tf.function
    def inside(x):
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(tf.nn.softmax(x) * x)
        return inner.gradient(y, x)

    return [value, g, inside(tf.ragged.constant([[1.0, 2.0], [3.0]]))]


@program()
def forward_mode(tf, np):
    values = tf.constant(VALUES)
    with tf.autodiff.ForwardAccumulator(values, tf.constant([1.0, 0.5, 0.0, 2.0, -1.0])) as accumulator:
        x = rows(tf, values)
        y = tf.reduce_mean(x * x, axis=1)[::2]
        z = tf.nn.softmax(x).flat_values
    return [accumulator.jvp(y), accumulator.jvp(z)]


@program()
def rows_of_an_embedding(tf, np):
    table = tf.Variable(np.linspace(-1.0, 1.0, 12).reshape(4, 3).astype(np.float32))
    ids = tf.ragged.constant([[0, 2, 2], [], [3]])
    with tf.GradientTape() as tape:
        vectors = tf.nn.embedding_lookup(table, ids)
        loss = tf.reduce_sum(vectors * vectors)
    g = tape.gradient(loss, table)
    return [vectors, g]


@program()
def words_pooled_and_trained(tf, np):
    table = tf.Variable(np.linspace(-1.0, 1.0, 24).reshape(8, 3).astype(np.float32))
    kernel = tf.Variable([[0.5], [-0.25], [1.0]])
    ids = tf.ragged.constant([[1, 2, 3], [4], [5, 6, 7, 1]])
    labels = tf.constant([[1.0], [0.0], [1.0]])
    losses = []
    for _ in range(4):
        with tf.GradientTape() as tape:
            pooled = tf.reduce_mean(tf.gather(table, ids), axis=1)
            logits = tf.matmul(pooled, kernel)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
        g_table, g_kernel = tape.gradient(loss, [table, kernel])
        table.scatter_sub(tf.IndexedSlices(0.5 * g_table.values, g_table.indices))
        kernel.assign_sub(0.5 * g_kernel)
        losses.append(loss)
    return [losses, kernel, table]


@program()
def bags_of_words_by_sum_and_maximum(tf, np):
    table = np.linspace(-1.0, 1.0, 12).reshape(4, 3).astype(np.float32)
    ids = tf.ragged.constant([[0, 2], [1], [3, 0, 1]])

    def pooled(t):
        vectors = tf.ragged.map_flat_values(lambda i: tf.gather(tf.identity(t * 1.0), i), ids)
        return tf.concat([tf.reduce_sum(vectors, axis=1), tf.reduce_max(vectors, axis=1)], axis=-1)

    return derivatives(tf, pooled, table)


@program()
def attention_with_a_mask_of_rows(tf, np):
    x = tf.ragged.constant([[[1.0, 0.5], [0.25, -1.0]], [[2.0, 1.0]]], ragged_rank=1, inner_shape=(2,))

    def attended(flat):
        dense = x.with_flat_values(flat * 1.0).to_tensor()
        mask = tf.sequence_mask(x.row_lengths(), dtype=tf.float32)
        scores = tf.matmul(dense, dense, transpose_b=True) - 1e9 * (1.0 - mask[:, tf.newaxis, :])
        out = tf.matmul(tf.nn.softmax(scores), dense)
        return tf.RaggedTensor.from_tensor(out, lengths=x.row_lengths()).flat_values

    return derivatives(tf, attended, x.flat_values.numpy())


@program()
def scores_normalised_over_rows(tf, np):
    features = np.array([[1.0, 0.0], [0.5, -1.0], [2.0, 1.0], [0.0, 3.0], [1.0, 1.0]], np.float32)

    def pooled(flat, query):
        x = rows(tf, flat, [0, 2, 3, 5])
        weights = tf.nn.softmax(x.with_values(tf.linalg.matvec(x.flat_values, query)), axis=1)
        return tf.reduce_sum(x * tf.expand_dims(weights, -1), axis=1)

    return derivatives(tf, pooled, features, [0.5, -0.5])


@program()
def losses_of_sequences(tf, np):
    logits = np.array([[1.0, 0.0], [0.5, -1.0], [2.0, 1.0]], np.float32)
    labels = tf.ragged.constant([[0, 1], [1]])

    def loss(flat):
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels.flat_values, logits=flat)
        return tf.reduce_mean(labels.with_values(each), axis=1)

    return derivatives(tf, loss, logits)


@program()
def graphs_with_several_numbers_of_neighbours(tf, np):
    nodes = np.array([[1.0, 0.5], [-1.0, 2.0], [0.0, 1.0]], np.float32)
    neighbours = tf.ragged.constant([[1, 2], [0], [0, 1]])

    def step(h, w):
        messages = tf.reduce_mean(tf.gather(tf.identity(h * 1.0), neighbours), axis=1)
        return tf.tanh(tf.matmul(h + messages, w))

    return derivatives(tf, lambda h, w: step(step(h, w), w), nodes, np.array([[0.5, -0.25], [1.0, 0.75]], np.float32))


@program()
def mapped_rows_have_gradients(tf, np):
    def squares(x):
        return tf.map_fn(lambda row: tf.reduce_sum(row * row), x, fn_output_signature=tf.float32)

    with tf.GradientTape() as tape:
        values = tf.Variable(VALUES)
        y = squares(rows(tf, values))
    return [y, tape.gradient(y, values)]


@program()
def training_in_a_function(tf, np):
    table = tf.Variable(np.linspace(-1.0, 1.0, 12).reshape(4, 3).astype(np.float32))

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            pooled = tf.reduce_sum(tf.gather(table, ids), axis=1)
            loss = tf.reduce_mean(pooled * pooled)
        g = tape.gradient(loss, table)
        table.scatter_sub(tf.IndexedSlices(0.1 * g.values, g.indices))
        return loss

    batches = [[[0, 1], [2]], [[3], [1, 1]], [[0], [1, 2]]]
    return [[step(tf.ragged.constant(batch)) for batch in batches], table]


@program()
def mistakes(tf, np):
    x = tf.ragged.constant([[1.0, 2.0], [3.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    return [
        raises(lambda: tf.convert_to_tensor([[1.0], [2.0, 3.0]])),
        raises(lambda: x.with_values(tf.constant([1.0]))),
        tape.gradient(y, x),
        tape.gradient(y.values, x.values),
    ]
