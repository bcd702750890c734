"""Programs that read and write at places: attention over neighbours, beams, tables, grids, slices that are assigned."""

from conformance.probes import derivatives, gradients, raises
from conformance.program import program


def waves(np, *shape, phase=0.2):
    return np.sin(np.arange(np.prod(shape)) * 0.7 + phase).astype(np.float32).reshape(shape)


@program()
def attention_over_neighbours(tf, np):
    features, neighbours = (
        waves(np, 2, 4, 3),
        tf.constant([[[1, 2], [0, 3], [3, 3], [2, 0]], [[0, 1], [1, 1], [3, 0], [2, 1]]]),
    )

    def attend(x):
        near = tf.gather(x, neighbours, axis=1, batch_dims=1)
        weights = tf.nn.softmax(tf.reduce_sum(near * x[:, :, None], -1))
        return tf.reduce_sum(weights[..., None] * near, 2)

    return derivatives(tf, attend, features)


@program()
def gathers_with_batches(tf, np):
    x = waves(np, 2, 3, 4)
    return {
        "one": gradients(tf, lambda x: tf.gather(x, [[0, 1], [3, 2]], axis=2, batch_dims=1) ** 2, x),
        "two": gradients(tf, lambda x: tf.gather(x, [[[3], [0], [0]], [[1], [1], [2]]], axis=2, batch_dims=2) ** 2, x),
        "negative": gradients(tf, lambda x: tf.gather(x, [[0, 1], [3, 2]], axis=-1, batch_dims=-1), x),
        "indices": [tf.gather(x, tf.constant([[2, 0]], dtype), axis=1) for dtype in (tf.int16, tf.int64)],
        "nothing": [
            tf.gather(x, tf.zeros([0, 2], tf.int32), axis=1).shape,
            tf.gather(tf.zeros([0, 3]), tf.zeros([0], tf.int32)).shape,
        ],
        "bad": [
            raises(lambda: tf.gather(x, [-1])),
            raises(lambda: tf.gather(x, [0, 3], axis=1)),
            raises(lambda: tf.gather(x, [0], axis=3)),
            raises(lambda: tf.gather(x, [0, 1], axis=1, batch_dims=2)),
            raises(lambda: tf.gather(x, [[0, 1], [1, 1]], axis=1, batch_dims=3)),
            raises(lambda: tf.gather(x, [0.0])),
        ],
    }


@program()
def scores_of_beams(tf, np):
    logits, parents = waves(np, 2, 3, 4), tf.constant([[[0], [0], [2]], [[1], [2], [1]]])

    def scores(x, tokens):
        log_p = tf.nn.log_softmax(x)
        kept = tf.gather_nd(log_p, parents, batch_dims=1)
        return tf.gather_nd(kept, tokens, batch_dims=2)

    tokens = tf.constant([[[3], [1], [0]], [[2], [2], [1]]])
    return derivatives(tf, lambda x: scores(x, tokens) ** 2, logits)


@program()
def places_that_there_are_not(tf, np):
    x, places = waves(np, 2, 3), [[5, 0], [1, 2], [-1, 1]]
    ignore = {"bad_indices_policy": "IGNORE"}
    changes = [getattr(tf, f"tensor_scatter_nd_{how}") for how in ("add", "sub", "max", "min")]
    return {
        "read": gradients(tf, lambda x: tf.gather_nd(x, places, **ignore) ** 2, x),
        "rows": tf.gather_nd(x, [[3], [1]], **ignore),
        "written": tf.scatter_nd(places, waves(np, 3), [2, 3], **ignore),
        "changed": [change(x, places, waves(np, 3), **ignore) for change in changes],
        "whole": changes[2](tf.constant([1, 2, 3]), [[7], [1]], [9, 9], **ignore),
        "refused": [
            raises(lambda: tf.gather_nd(x, places, bad_indices_policy="ERROR")),
            raises(lambda: tf.scatter_nd(places, waves(np, 3), [2, 3])),
            raises(lambda: changes[0](x, places, waves(np, 3), bad_indices_policy="DEFAULT")),
        ],
    }


@program()
def a_splatted_cloud(tf, np):
    points = np.array([[0.3, 1.6], [1.2, 0.4], [0.9, 1.1]], np.float32)

    def density(points, masses):
        corner = tf.cast(tf.floor(points), tf.int32)
        part = points - tf.floor(points)
        image = tf.zeros([3, 3])
        for shift in ([0, 0], [0, 1], [1, 0], [1, 1]):
            weights = tf.reduce_prod(tf.where(tf.constant(shift) == 1, part, 1.0 - part), 1)
            image = tf.tensor_scatter_nd_add(image, corner + shift, masses * weights)
        return image**2

    return derivatives(tf, density, points, [1.0, 2.0, 0.5])


@program()
def a_memory_that_is_written(tf, np):
    memory, keys = waves(np, 4, 3), [[2], [0]]

    def write(memory, values, delta):
        memory = tf.tensor_scatter_nd_update(memory, keys, values)
        memory = tf.tensor_scatter_nd_sub(memory, [[0], [0]], delta)
        return memory**2 + tf.scatter_nd([[1, 2], [1, 2], [3, 0]], delta[0], [4, 3])

    return derivatives(tf, write, memory, waves(np, 2, 3), waves(np, 2, 3, phase=1.0))


@program()
def the_largest_in_cells(tf, np):
    heights = waves(np, 5)
    cells = [[0, 1], [1, 0], [0, 1], [1, 1], [1, 0]]

    def surface(ground, heights):
        return tf.tensor_scatter_nd_max(ground, cells, heights) - tf.tensor_scatter_nd_min(ground, cells, heights) ** 2

    return {
        "derivatives": derivatives(tf, surface, np.zeros((2, 2), np.float32), heights),
        "ties": gradients(
            tf, lambda g, u: tf.tensor_scatter_nd_max(g, [[0], [0], [1]], u), [1.0, 2.0], [1.0, 1.0, 2.0]
        ),
        "whole": tf.tensor_scatter_nd_min(tf.constant([5, 5], tf.uint8), [[1], [1]], tf.constant([3, 4], tf.uint8)),
    }


@program()
def differences_by_slices(tf, np):
    u = waves(np, 4, 5)

    def stencil(u):
        x, y = u[1:-1, 2:] - u[1:-1, :-2], u[2:, 1:-1] - u[:-2, 1:-1]
        return x * y + u[::-1][1:3, -2:0:-1] ** 2 + u[..., tf.constant(2) : 5, None][1:3, :, 0]

    return derivatives(tf, stencil, u)


@program()
def slices_of_every_form(tf, np):
    x = waves(np, 2, 3, 4)
    forms = {
        "blocks": lambda x: tf.slice(x, [0, 1, 1], [2, -1, 2]),
        "backwards": lambda x: tf.strided_slice(x, [1, 0, 3], [-3, 3, 0], [-1, 2, -2]),
        "masks": lambda x: tf.strided_slice(x, [0, 1, 0], [0, 2, 0], begin_mask=1, end_mask=5, shrink_axis_mask=2),
        "new axes": lambda x: x[:, tf.newaxis, -1, ..., ::3],
        "places": lambda x: x[tf.constant(1), 1 : tf.constant(3), -1],
        "masked": lambda x: tf.boolean_mask(x, [True, False, True], axis=1),
    }
    return {
        **{name: derivatives(tf, lambda x, f=f: f(x) ** 2, x) for name, f in forms.items()},
        "bad": [
            raises(lambda: tf.slice(x, [0, 1], [1, 1])),
            raises(lambda: tf.slice(x, [0, 1, 0], [-1, 4, 2])),
            raises(lambda: tf.constant(x)[2]),
            raises(lambda: tf.constant(x)[0, 0, 0, 0]),
            raises(lambda: tf.constant(x)[::0]),
        ],
    }


@program()
def parts_of_a_variable(tf, np):
    state = tf.Variable(waves(np, 3, 4))
    state[0].assign(tf.zeros([4]))
    state[1:, ::2].assign([[1.0, 2.0], [3.0, 4.0]])
    state[2, 1:3].assign(state[0, 2:] - 5.0)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(state[1:] ** 2 * [1.0, 2.0, 3.0, 4.0])
    slices = tf.IndexedSlices(tf.ones([2, 4]), tf.constant([2, 2]))
    gradient = tape.gradient(loss, state)
    state.scatter_add(slices)
    state.scatter_nd_update([[0, 0], [1, 3]], [-1.0, -2.0])
    state.scatter_max(tf.IndexedSlices(tf.fill([1, 4], 3.0), tf.constant([0])))
    return [loss, gradient, state, state.sparse_read([2, 0]), raises(lambda: state[0].assign(tf.zeros([3])))]
