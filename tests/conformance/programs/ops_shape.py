"""Ops that move, repeat, join, cut and make tensors."""

from conformance.probes import derivatives, raises
from conformance.program import program

GRID = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def squared(function):
    """The op followed by a square, so that there is a second derivative to compare."""
    return lambda *points: function(*points) ** 2


@program()
def reshape(tf, np):
    x = tf.constant(GRID)
    shapes = [[3, 2], [6], [-1], (2, -1), [1, 6, 1], tf.constant([3, 2]), x.shape, np.array([6, 1])]
    return [[tf.reshape(x, shape) for shape in shapes], derivatives(tf, squared(lambda x: tf.reshape(x, [3, 2])), GRID)]


@program()
def reshapes_that_do_not_fit(tf, np):
    x = tf.constant(GRID)
    return [raises(lambda shape=shape: tf.reshape(x, shape)) for shape in ([4], [-1, 4], [-1, -1], [], [-2, 3])]


@program()
def transpose(tf, np):
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    return [
        tf.transpose(tf.constant(GRID)),
        tf.transpose(tf.constant(x), perm=[1, 2, 0]),
        tf.transpose(tf.constant(x)),
        tf.transpose([1.0, 2.0]),
        derivatives(tf, squared(lambda x: tf.transpose(x, [2, 0, 1])), x),
        [raises(lambda perm=perm: tf.transpose(tf.constant(GRID), perm)) for perm in ([0], [0, 0], [0, 2])],
    ]


@program()
def expand_dims_and_squeeze(tf, np):
    x = tf.constant(GRID)
    return [
        [tf.expand_dims(x, axis).shape for axis in (0, 1, 2, -1, -2, -3)],
        [
            tf.squeeze(tf.zeros([1, 2, 1])).shape,
            tf.squeeze(tf.zeros([1, 2, 1]), axis=0).shape,
            tf.squeeze(tf.zeros([1, 2, 1]), [-1]).shape,
        ],
        derivatives(tf, squared(lambda x: tf.squeeze(tf.expand_dims(x, 1), 1)), GRID),
        [raises(lambda: tf.expand_dims(x, 3)), raises(lambda: tf.squeeze(x, 0)), raises(lambda: tf.squeeze(x, 5))],
    ]


@program()
def broadcast_to(tf, np):
    return [
        tf.broadcast_to(tf.constant([1, 2]), [2, 2]),
        tf.broadcast_to(5.0, [2]),
        derivatives(tf, squared(lambda x: tf.broadcast_to(x, [2, 3, 2])), [[1.0, 2.0]]),
        [raises(lambda: tf.broadcast_to(tf.ones([2]), [3])), raises(lambda: tf.broadcast_to(tf.ones([1, 2]), [2]))],
    ]


@program()
def concat(tf, np):
    return [
        tf.concat([[1.0], [2.0, 3.0]], 0),
        tf.concat([tf.constant(GRID), tf.constant(GRID)], axis=-1),
        derivatives(tf, squared(lambda a, b: tf.concat([a, b, a], axis=1)), GRID, [[7.0], [8.0]]),
        raises(lambda: tf.concat([tf.ones([1, 2]), tf.ones([1, 3])], 0)),
        raises(lambda: tf.concat([tf.ones([1, 2]), tf.ones([2])], 0)),
        raises(lambda: tf.concat([tf.ones([1]), tf.ones([1])], 1)),
        raises(lambda: tf.concat([tf.constant(1.0), tf.constant(2.0)], 0)),
    ]


@program()
def stack(tf, np):
    return [
        tf.stack([1, 2, 3]),
        tf.stack([tf.constant([1.0, 2.0]), [3.0, 4.0]], axis=1),
        tf.stack([tf.Variable(1.0), 2.0]),
        derivatives(tf, squared(lambda a, b: tf.stack([a, b, a], axis=-1)), [1.0, 2.0], [3.0, 4.0]),
        raises(lambda: tf.stack([tf.ones([1]), tf.ones([2])])),
        raises(lambda: tf.stack([tf.ones([1])], axis=3)),
    ]


@program()
def split(tf, np):
    x = tf.constant(GRID)
    return [
        tf.split(x, 2),
        tf.split(x, [1, 2], axis=1),
        tf.split(x, [2, -1], axis=-1),
        derivatives(tf, lambda x: [part**2 for part in tf.split(x, 3, axis=1)], GRID),
        derivatives(tf, squared(lambda x: tf.split(x, [1, 2], axis=1)[1]), GRID),
        [
            raises(lambda: tf.split(x, 2, axis=1)),
            raises(lambda: tf.split(x, [1, 1], axis=1)),
            raises(lambda: tf.split(x, 2, axis=2)),
        ],
    ]


@program()
def tile(tf, np):
    return [
        tf.tile([1, 2], [3]),
        derivatives(tf, squared(lambda x: tf.tile(x, [2, 3])), GRID),
        tf.tile(tf.constant(GRID), [1, 0]),
        raises(lambda: tf.tile(tf.ones([2]), [2, 2])),
    ]


@program()
def pad(tf, np):
    edges = [[1, 0], [2, 1]]
    return [
        derivatives(tf, squared(lambda x: tf.pad(x, edges)), GRID),
        derivatives(tf, squared(lambda x: tf.pad(x, edges, constant_values=7.0)), GRID),
        derivatives(tf, squared(lambda x: tf.pad(x, edges, mode="REFLECT")), GRID),
        derivatives(tf, squared(lambda x: tf.pad(x, edges, mode="SYMMETRIC")), GRID),
        tf.pad([1, 2], [[0, 2]]),
        [
            raises(lambda: tf.pad(tf.ones([2]), [[1, 2]], mode="REFLECT")),
            raises(lambda: tf.pad(tf.ones([2]), [[0, 0], [0, 0]])),
        ],
    ]


@program()
def gather(tf, np):
    return [
        tf.gather([10, 20, 30], [2, 0]),
        tf.gather(tf.constant(GRID), [[0, 2], [1, 1]], axis=1),
        tf.gather(tf.constant(GRID), [1], axis=-1),
        derivatives(tf, squared(lambda x: tf.gather(x * 1.0, [1, 1, 0])), GRID),
        derivatives(tf, squared(lambda x: tf.gather(x, [2, 2], axis=1)), GRID),
    ]


@program()
def one_hot(tf, np):
    return [
        tf.one_hot([0, 2, -1, 5], 3),
        tf.one_hot(1, 2),
        tf.one_hot([[0], [1]], 2, on_value=5.0, off_value=-1.0),
        tf.one_hot([0, 1], 3, axis=0),
        tf.one_hot([1], 2, dtype=tf.int32),
        tf.one_hot([1], 2, on_value=True, off_value=False),
    ]


@program()
def zeros_ones_and_fill(tf, np):
    return [
        [tf.zeros([2]), tf.zeros(3), tf.zeros([2, 1], tf.int32), tf.zeros((1,), dtype="float64"), tf.zeros([])],
        [tf.ones([2]), tf.ones([1, 2], tf.complex64), tf.ones([2], tf.bool)],
        [tf.fill([2, 2], 1.5), tf.fill([2], 3), tf.fill([], True)],
        [tf.zeros_like([1, 2]), tf.ones_like(tf.Variable([1.0, 2.0])), tf.zeros_like(tf.ones([2]), dtype=tf.int64)],
        derivatives(tf, squared(lambda x: tf.fill([2, 2], x)), 3.0),
        [raises(lambda: tf.zeros([-1])), raises(lambda: tf.fill([-2], 1.0))],
    ]


@program()
def ranges(tf, np):
    return [
        [tf.range(4), tf.range(2, 8, 3), tf.range(3, 0, -1), tf.range(1.5), tf.range(0.0, 1.0, 0.25), tf.range(0)],
        [tf.range(3, dtype=tf.float32), tf.range(np.int64(2)), tf.range(tf.constant(3)), tf.range(1, 2, 0.25)],
        [raises(lambda: tf.range(0, 3, 0).numpy()), raises(lambda: tf.range(3, 0).numpy())],
    ]


@program()
def linspace(tf, np):
    return [
        [tf.linspace(0.0, 1.0, 5), tf.linspace(1.0, -1.0, 3), tf.linspace(2.0, 3.0, 1), tf.linspace(0, 2, 3)],
        derivatives(tf, squared(lambda a, b: tf.linspace(a, b, 4)), 0.5, 2.0),
    ]


@program()
def eye(tf, np):
    return [tf.eye(2), tf.eye(2, 3), tf.eye(2, dtype=tf.int32), tf.eye(1, batch_shape=[2])]


@program()
def matmul(tf, np):
    a, b = np.arange(6.0, dtype=np.float32).reshape(2, 3), np.cos(np.arange(6.0)).astype(np.float32).reshape(3, 2)
    return {
        "plain": derivatives(tf, tf.matmul, a, b),
        "transpose_a": derivatives(tf, lambda a, b: tf.matmul(a, b, transpose_a=True), a.T.copy(), b),
        "transpose_b": derivatives(tf, lambda a, b: tf.matmul(a, b, transpose_b=True), a, b.T.copy()),
        "both": derivatives(
            tf, lambda a, b: tf.matmul(a, b, transpose_a=True, transpose_b=True), a.T.copy(), b.T.copy()
        ),
        "ints": tf.matmul(tf.constant([[1, 2]]), tf.constant([[3], [4]])),
    }


@program()
def matmul_of_batches(tf, np):
    a = np.sin(np.arange(12.0)).astype(np.float32).reshape(2, 3, 2)
    b = np.cos(np.arange(8.0)).astype(np.float32).reshape(2, 2, 2)
    return {
        "same": derivatives(tf, tf.matmul, a, b),
        "shared": derivatives(tf, tf.matmul, a, b[0]),
        "one": derivatives(tf, lambda a, b: tf.matmul(a, b, transpose_b=True), a[:1], b),
    }


@program()
def matmuls_that_do_not_fit(tf, np):
    z = tf.zeros
    calls = [
        lambda: tf.matmul(z([1, 2]), z([1, 2])),
        lambda: tf.matmul(z([2]), z([2])),
        lambda: tf.matmul(z([2, 3]), z([3])),
        lambda: tf.matmul(z([2, 3, 4]), z([3, 4, 5])),
        lambda: tf.matmul(z([2, 3, 4]), z([2, 3, 5])),
    ]
    return [raises(call) for call in calls]


@program()
def shape_size_and_rank(tf, np):
    x = tf.zeros([2, 3])
    return [
        tf.shape(x),
        tf.size(x),
        tf.rank(x),
        tf.shape(1.0),
        tf.shape(x)[0] * 2,
        tf.reshape(tf.range(6), tf.shape(x)),
    ]
