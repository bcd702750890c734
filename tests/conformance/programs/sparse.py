"""Sparse updates: scatter methods, assignments to parts of a variable, and training a table by rows."""

from conformance.probes import raises
from conformance.program import program

TABLE = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
ROWS = [[10.0, 20.0], [2.0, 4.0], [3.0, 3.0]]


def scattered(tf, how, values, indices, table=TABLE):
    """What a variable holds after a scatter method, and what that gave."""
    v = tf.Variable(table)
    given = getattr(v, f"scatter_{how}")(tf.IndexedSlices(tf.constant(values), tf.constant(indices)))
    return [v.numpy(), given.numpy(), given.name, type(given).__name__]


@program()
def every_way_with_rows_named_twice(tf, np):
    return [scattered(tf, how, ROWS, [0, 2, 0]) for how in ("add", "sub", "update", "mul", "div", "min", "max")]


@program()
def forms_of_indices_and_values(tf, np):
    return [
        scattered(tf, "add", [[1.0, 1.0]], np.array([1])),
        scattered(tf, "add", [1.0, 1.0], 1),
        scattered(tf, "add", [[[1.0, 1.0]], [[2.0, 2.0]]], [[0], [1]]),
        scattered(tf, "add", 1.0, [0, 1]),
        scattered(tf, "add", 5.0, 0, [1.0, 2.0]),
        scattered(tf, "add", np.zeros((0, 2), np.float32), np.zeros(0, np.int32)),
    ]


@program()
def other_dtypes(tf, np):
    return [
        scattered(tf, "add", [5], [1], [1, 2]),
        scattered(tf, "div", [2, -2], [1, 0], [-7, 7]),
        scattered(tf, "update", [True], [1], [False, False]),
        scattered(tf, "update", ["z"], [1], ["a", "b"]),
        scattered(tf, "sub", [1 + 1j], [0], [2j, 1.0 + 0j]),
        scattered(tf, "add", np.array([0.5]), [1], np.array([1.0, 2.0])),
        scattered(tf, "max", np.array([0.5, 9.0, 3.0], np.float16), [1, 0, 0], np.array([1.0, 2.0], np.float16)),
    ]


@program()
def many_rows_named_often(tf, np):
    ids = (np.arange(200) * 7) % 5
    rows = (np.arange(400, dtype=np.float64) % 11).reshape(200, 2)
    table = np.ones((5, 2))
    return [scattered(tf, how, rows, ids, table) for how in ("add", "sub", "update", "min", "max")]


@program()
def scatter_mistakes(tf, np):
    def add(values, indices, table=TABLE):
        return raises(lambda: scattered(tf, "add", values, indices, table))

    v = tf.Variable([1.0])
    return [
        raises(lambda: scattered(tf, "add", [[1.0, 1.0]], [3]), "indices[0] = 3 is not in [0, 3)"),
        raises(lambda: scattered(tf, "update", [[1.0, 1.0], [1.0, 1.0]], [0, -1]), "indices[1] = -1 is not in [0, 3)"),
        add([[1.0, 2.0]], [1, 2]),
        add(np.array([[1.0, 2.0]]), [1]),
        add([[1.0, 1.0]], [1.0]),
        add([5.0], [0], 1.0),
        raises(lambda: v.scatter_add(tf.constant([1.0])), "Argument `sparse_delta` must be a `tf.IndexedSlices`."),
        raises(lambda: scattered(tf, "div", [0], [1], [1, 7]), "updates must not contain 0"),
    ]


@program()
def scatter_nd(tf, np):
    def after(how, indices, updates):
        v = tf.Variable(TABLE)
        given = getattr(v, f"scatter_nd_{how}")(indices, updates)
        return [v.numpy(), given.numpy()]

    places = [[0, 1], [2, 0], [0, 1]]
    return [
        [after(how, places, [10.0, 20.0, 1.0]) for how in ("add", "sub", "update", "min", "max")],
        after("add", [[0], [2]], [[1.0, 1.0], [2.0, 2.0]]),
        after("update", tf.constant([[0, 1]], tf.int64), tf.constant([1.0])),
        raises(lambda: after("add", [[3]], [[1.0, 1.0]]), "indices[0] = [3] does not index into shape [3,2]"),
        raises(lambda: after("update", [[0, 5]], [1.0]), "indices[0] = [0, 5] does not index into shape [3,2]"),
        raises(lambda: after("add", [[0, 0, 0]], [1.0])),
        raises(lambda: after("add", [[0]], [1.0])),
        raises(lambda: after("update", tf.constant([[0, 1]]), tf.constant([1]))),
    ]


@program()
def parts_of_a_variable(tf, np):
    def after(assign):
        v = tf.Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        assign(v)
        return v

    return [
        after(lambda v: v[0].assign([9.0, 9.0, 9.0])),
        after(lambda v: v[:, 1:].assign([[0.0, 0.0], [1.0, 1.0]])),
        after(lambda v: v[:, 1:].assign(7.0)),
        after(lambda v: v[:, 1:].assign([7.0])),
        after(lambda v: v[::-1, 0].assign([1.0, 2.0])),
        after(lambda v: v[tf.newaxis, 0].assign([[1.0, 2.0, 3.0]])),
        after(lambda v: v[..., 0].assign([8.0, 9.0])),
        after(lambda v: v[-1, -1].assign(0.0)),
        after(lambda v: v[1:1].assign(0.0)),
        after(lambda v: v[tf.constant(1)].assign([1, 2, 3])),
        after(lambda v: v[:, ::-2].assign([[1.0, 2.0], [3.0, 4.0]])),
        raises(lambda: after(lambda v: v[:, 1:].assign([1.0, 2.0, 3.0])), "Cannot broadcast input shape [3] into"),
        raises(lambda: after(lambda v: v[0].assign(tf.constant([1, 2, 3])))),
        raises(lambda: after(lambda v: v[5].assign([1.0, 2.0, 3.0])), "slice index 5 of dimension 0 out of bounds."),
    ]


@program()
def what_was_read_before_stays(tf, np):
    v = tf.Variable(TABLE)
    before, row = v.read_value(), v[0]
    v.scatter_add(tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0])))
    v[1].assign([0.0, 0.0])
    between = tf.identity(v)
    v.scatter_nd_update([[2, 1]], [100.0])
    return [before, row, between, v]


@program()
def a_tape_sees_the_values_that_it_read(tf, np):
    v = tf.Variable(TABLE)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.gather(v, [0, 2]) ** 2)
        w = tf.reduce_sum(v * v)
        v.scatter_add(tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0])))
        z = tf.reduce_sum(v * v)
    return tape.gradient([y, w, z], v)


@program()
def training_an_embedding(tf, np):
    table = tf.Variable(np.linspace(-1.0, 1.0, 30).reshape(10, 3).astype(np.float32))
    ids = [[1, 1, 3], [3, 9, 1], [0, 0, 0]]
    for step in range(3):
        with tf.GradientTape() as tape:
            rows = tf.nn.embedding_lookup(table, tf.constant(ids[step]))
            loss = tf.reduce_mean(tf.reduce_sum(rows * rows, axis=1))
        g = tape.gradient(loss, table)
        table.scatter_sub(tf.IndexedSlices(0.1 * g.values, g.indices))
    return [type(g).__name__, table, loss]


@program()
def adagrad_by_hand(tf, np):
    table = tf.Variable(np.linspace(-1.0, 1.0, 12).reshape(6, 2))
    total = tf.Variable(tf.zeros([6, 2], tf.float64))
    for ids in ([0, 5], [5, 2], [0, 1]):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.nn.embedding_lookup(table, ids) ** 3)
        g = tape.gradient(loss, table)
        total.scatter_add(tf.IndexedSlices(g.values**2, g.indices))
        step = 0.5 * g.values / (tf.sqrt(tf.gather(total, g.indices)) + 1e-7)
        table.scatter_sub(tf.IndexedSlices(step, g.indices))
    return [table, total]


@program()
def when_the_gradient_is_sparse(tf, np):
    def kind(f):
        v = tf.Variable(np.arange(12, dtype=np.float32).reshape(4, 3))
        with tf.GradientTape() as tape:
            y = f(v)
        return tape.gradient(y, v)

    return [
        kind(lambda v: tf.gather(v, [0, 2], axis=1)),
        kind(lambda v: tf.gather(v, [[0], [1], [0], [2]], batch_dims=1)),
        kind(lambda v: tf.gather(v, [0, 2], axis=-2)),
        kind(lambda v: tf.nn.embedding_lookup(v, tf.constant([[1, 2], [1, 0]]))),
        kind(lambda v: tf.nn.embedding_lookup([v], [1, 2])),
        kind(lambda v: v.sparse_read([1, 2])),
        kind(lambda v: tf.gather_nd(v, [[0], [2]])),
        kind(lambda v: tf.gather_nd(v, [[0, 1], [2, 2], [0, 1]])),
        kind(lambda v: v.gather_nd([[1], [2]])),
        kind(lambda v: v[1:2]),
        kind(lambda v: tf.boolean_mask(v, [True, False, True, False])),
        kind(lambda v: tf.reduce_sum(tf.gather(v, [0])) + tf.reduce_sum(tf.gather(v, [3, 3]))),
        kind(lambda v: tf.reduce_sum(tf.gather(v, [0])) + tf.reduce_sum(v)),
        kind(lambda v: tf.gather(tf.identity(v), [0])),
        kind(lambda v: tf.gather(v * 2.0, [0])),
    ]


@program()
def slices_given_where_tensors_are_taken(tf, np):
    slices = tf.IndexedSlices(tf.constant([[1.0, 1.0], [2.0, 2.0]]), tf.constant([0, 0]), tf.constant([3, 2]))
    v = tf.Variable(TABLE)
    v.assign_sub(slices)
    return [v, tf.convert_to_tensor(slices), tf.add_n([slices, slices]), tf.reduce_sum(slices)]


@program()
def tensors_with_places_changed(tf, np):
    def both(f, tensor, updates):
        a, u = tf.constant(tensor), tf.constant(updates)
        with tf.GradientTape() as tape:
            tape.watch([a, u])
            y = f(a, u) ** 2
        return [y, tape.gradient(y, [a, u])]

    line, table = [1.0, 2.0, 3.0], [[1.0, 2.0], [3.0, 4.0]]
    return [
        both(lambda a, u: tf.tensor_scatter_nd_update(a, [[1], [2]], u), line, [9.0, 1.0]),
        both(lambda a, u: tf.tensor_scatter_nd_update(a, [[1], [1]], u), line, [9.0, 1.0]),
        both(lambda a, u: tf.tensor_scatter_nd_add(a, [[1], [1]], u), line, [9.0, 1.0]),
        both(lambda a, u: tf.tensor_scatter_nd_sub(a, [[1]], u), table, [[9.0, 1.0]]),
        both(lambda a, u: a * tf.scatter_nd([[1], [0], [1]], u, [3]), line, [9.0, 1.0, 5.0]),
        tf.scatter_nd([[1], [1]], [1, 2], tf.constant([3])),
        tf.gather_nd(tf.constant([1, 2]), [[1]]),
        raises(lambda: tf.gather_nd(table, [[0, 5]]), "indices[0] = [0, 5] does not index into param shape [2,2]"),
        raises(lambda: tf.gather_nd(table, [[0, 0, 0]]), "index innermost dimension length must be <= params rank"),
        raises(lambda: tf.scatter_nd([[5]], [1.0], [3]), "indices[0] = [5] does not index into shape [3]"),
        raises(lambda: tf.scatter_nd([[1]], [[1.0]], [3])),
    ]
