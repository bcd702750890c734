"""Gradients of gather: IndexedSlices where it was the source that was gathered, dense tensors otherwise."""

from conformance.probes import raises
from conformance.program import program

TABLE = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


@program()
def gather_from_a_variable(tf, np):
    table = tf.Variable(TABLE)
    with tf.GradientTape() as tape:
        y = tf.gather(table, [2, 0]) * [[1.0, 10.0], [100.0, 1000.0]]
    g = tape.gradient(y, table)
    return [y, g, type(g).__name__, isinstance(g, tf.IndexedSlices)]


@program()
def gather_from_a_watched_constant(tf, np):
    table = tf.constant(TABLE)
    with tf.GradientTape() as tape:
        tape.watch(table)
        y = tf.gather(table, [1, 1, 0])
    return tape.gradient(y, table)


@program()
def the_parts_of_the_slices(tf, np):
    table = tf.Variable(TABLE)
    with tf.GradientTape() as tape:
        y = tf.gather(table, [2])
    g = tape.gradient(y, table)
    return [g.values, g.indices, g.dense_shape, g.shape, g.dtype, g.values.shape]


@program()
def made_dense(tf, np):
    table = tf.Variable(TABLE)
    with tf.GradientTape() as tape:
        y = tf.gather(table, [2, 0, 2])
    g = tape.gradient(y, table)
    return [tf.convert_to_tensor(g), tf.reduce_sum(g), tf.math.square(g)]


@program()
def repeated_rows_are_not_added_up(tf, np):
    table = tf.Variable(TABLE)
    with tf.GradientTape() as tape:
        y = tf.gather(table, [1, 1, 1]) * [[1.0], [10.0], [100.0]]
    return tape.gradient(y, table)


@program()
def two_gathers_of_one_table(tf, np):
    table = tf.Variable(TABLE)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.gather(table, [0]) * 2.0) + tf.reduce_sum(tf.gather(table, [2, 1]) * 3.0)
    return tape.gradient(y, table)


@program()
def a_gather_and_a_dense_use(tf, np):
    table = tf.Variable(TABLE)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.gather(table, [0])) + tf.reduce_sum(table**2)
    return tape.gradient(y, table)


@program()
def a_gather_of_a_computed_table(tf, np):
    table = tf.Variable(TABLE)
    with tf.GradientTape(persistent=True) as tape:
        scaled = table * 2.0
        y = tf.gather(scaled, [0, 0])
    return [tape.gradient(y, table), tape.gradient(y, scaled)]


@program()
def through_value_and_identity(tf, np):
    table = tf.Variable(TABLE)
    with tf.GradientTape(persistent=True) as tape:
        targets = [tf.gather(table.value(), [0]), tf.gather(tf.identity(table), [0])]
    return [tape.gradient(target, table) for target in targets]


@program()
def along_another_axis(tf, np):
    table = tf.Variable(TABLE)
    with tf.GradientTape() as tape:
        y = tf.gather(table, [1, 1, 0], axis=1) * [[1.0, 2.0, 4.0]]
    return [y, tape.gradient(y, table)]


@program()
def indices_of_other_shapes(tf, np):
    table = tf.Variable(TABLE)
    out = []
    for indices in (1, [[0, 1], [2, 2]], np.array([2]), tf.constant([0], dtype=tf.int64)):
        with tf.GradientTape() as tape:
            y = tf.gather(table, indices)
        out.append([y, tape.gradient(y, table)])
    return out


@program()
def of_a_vector(tf, np):
    v = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        y = tf.gather(v, [2, 0]) ** 2
    return [y, tape.gradient(y, v)]


@program()
def gather_with_batch_dimensions(tf, np):
    x = tf.Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with tf.GradientTape() as tape:
        y = tf.gather(x, [[2, 2], [0, 1]], batch_dims=1) * [[1.0, 10.0], [100.0, 1000.0]]
    return [y, tape.gradient(y, x)]


@program()
def embedding_lookup(tf, np):
    table = tf.Variable(TABLE)
    with tf.GradientTape() as tape:
        words = tf.nn.embedding_lookup(table, [[0, 2], [2, 1]])
        y = tf.reduce_sum(words * tf.reshape(tf.range(8.0), [2, 2, 2]))
    return [words, tape.gradient(y, table)]


@program()
def slicing_is_dense(tf, np):
    table = tf.Variable(TABLE)
    with tf.GradientTape(persistent=True) as tape:
        targets = [table[1], table[:2] * 3.0, table[:, 1], table[::-1], table[..., None]]
    return [tape.gradient(target, table) for target in targets]


@program()
def several_sources_one_of_them_gathered(tf, np):
    table, w = tf.Variable(TABLE), tf.Variable([2.0, -1.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.gather(table, [1]) * w)
    return tape.gradient(y, {"table": table, "w": w})


@program()
def zeros_for_a_table_not_used(tf, np):
    table, w = tf.Variable(TABLE), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        _ = tf.gather(table, [0])
        y = w * w
    return tape.gradient(y, table, unconnected_gradients="zero")


@program()
def indices_out_of_range(tf, np):
    table = tf.Variable(TABLE)
    return [
        raises(lambda: tf.gather(table, [3]).numpy(), "is not in [0, 3)"),
        raises(lambda: tf.gather(tf.constant(TABLE), -1).numpy(), "is not in [0, 3)"),
        raises(lambda: tf.gather(table, [0], axis=2)),
        raises(lambda: tf.gather(table, [0.0])),
    ]


@program()
def slices_made_by_hand(tf, np):
    s = tf.IndexedSlices(tf.constant([[1.0, 2.0], [10.0, 20.0]]), tf.constant([2, 2]), tf.constant([4, 2]))
    bare = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]))
    return [s, tf.convert_to_tensor(s), -s, bare.dense_shape, raises(lambda: tf.convert_to_tensor(bare))]


@program()
def sparse_training_of_a_table(tf, np):
    table = tf.Variable(TABLE)
    for rows in ([0, 1], [1, 2], [1, 1]):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.nn.embedding_lookup(table, rows) ** 2)
        table.assign_sub(0.1 * tf.convert_to_tensor(tape.gradient(loss, table)))
    return table


@program()
def a_cast_keeps_the_slices(tf, np):
    slices = tf.IndexedSlices(tf.constant([[1.5, -2.5], [3.0, 4.0]]), tf.constant([2, 2]), tf.constant([4, 2]))
    cast, same = tf.cast(slices, tf.float64), tf.cast(slices, tf.float32)
    v = tf.Variable(tf.zeros([4, 2], tf.float64))
    v.scatter_add(cast)
    return [cast, type(same) is tf.IndexedSlices, same.values, v]
