"""Order: sorting, top_k, searching, unique elements, reversed, rolled and repeated ones; their gradients, refusals."""

from conformance.probes import derivatives, raises
from conformance.program import program

DATA = [[3.0, 1.0, 2.0, 5.0], [0.5, 4.0, -1.0, 2.5]]
TIES = [[2, 1, 2, 0], [0, 3, 1, 3]]


@program()
def sorting(tf, np):
    return [
        derivatives(tf, lambda x: tf.sort(x) ** 2, DATA),
        derivatives(tf, lambda x: tf.sort(x, axis=0, direction="DESCENDING") ** 2, DATA),
        tf.sort(TIES, direction="DESCENDING"),
        tf.sort(tf.constant([5, 250, 7], tf.uint8)),
        tf.argsort(TIES),
        tf.argsort(TIES, axis=0),
        tf.argsort(TIES, direction="DESCENDING", stable=True),
        tf.sort(tf.zeros([2, 0])),
        raises(lambda: tf.sort([1.0], direction="UP")),
    ]


@program()
def largest(tf, np):
    values, indices = tf.math.top_k(TIES, 2)
    x = tf.Variable(DATA)
    with tf.GradientTape(persistent=True) as tape:
        top = tf.nn.top_k(x, k=2).values ** 2
    return [
        values,
        indices,
        tf.math.top_k([1.0, 3.0]),
        tf.math.top_k(DATA, k=3, index_type=tf.int64).indices,
        tape.gradient(top, x),
        tape.jacobian(top, x),
        tape.batch_jacobian(top, x),
        tape.jacobian(top, x, experimental_use_pfor=False),
        derivatives(tf, lambda x: tf.math.top_k(x, 3).values ** 2, DATA),
        raises(lambda: tf.math.top_k([1.0], k=2)),
        tf.math.in_top_k([1, 3], DATA, k=2),
        tf.math.in_top_k([1, 9], [[1.0, np.inf], [1.0, 2.0]], 1),
    ]


@program()
def searching(tf, np):
    edges = [1.0, 2.0, 2.0, 5.0]
    return [
        tf.searchsorted(edges, [2.0, 0.0, 6.0]),
        tf.searchsorted(edges, [2.0, 0.0, 6.0], side="right", out_type=tf.int64),
        tf.searchsorted([[1, 3], [0, 9]], [[1, 2, 3], [9, 10, -1]]),
        raises(lambda: tf.searchsorted(edges, [1.0], side="up")),
    ]


@program()
def different_elements(tf, np):
    return [
        tuple(tf.unique([3, 1, 3, 2, 1])),
        tuple(tf.unique(tf.constant([3.0, 1.5, 3.0]), out_idx=tf.int64)),
        tuple(tf.unique_with_counts([3, 1, 3, 2, 1])),
        tf.unique_with_counts(tf.constant([7, 7], tf.int64)).count,
        tuple(tf.unique(tf.constant(["b", "a", "b"]))),
        raises(lambda: tf.unique([[1]]).y.numpy()),
    ]


@program()
def other_places(tf, np):
    return [
        derivatives(tf, lambda x: tf.reverse(x, [1]) ** 2, DATA),
        tf.reverse([[1, 2], [3, 4]], axis=[0, -1]),
        derivatives(tf, lambda x: tf.roll(x, 1, 0) * tf.roll(x, shift=[-1, 3], axis=[0, 1]), DATA),
        tf.roll([1, 2, 3], shift=-1, axis=0),
        tf.math.invert_permutation([2, 0, 1]),
        raises(lambda: tf.math.invert_permutation([2, 0, 2]).numpy()),
        raises(lambda: tf.reverse([1, 2], [1])),
        raises(lambda: tf.roll([1, 2], [1, 1], [0])),
    ]


@program()
def repeated(tf, np):
    x = tf.Variable(DATA)
    with tf.GradientTape(persistent=True) as tape:
        y = tf.repeat(x, [2, 1], axis=0) * [[1.0, 2.0, 3.0, 4.0]]
    return [
        derivatives(tf, lambda x: tf.repeat(x, 2, axis=1) ** 2, DATA),
        derivatives(tf, lambda x: tf.repeat(x, [0, 2, 1, 1], axis=-1) ** 2, DATA),
        tf.repeat(DATA, repeats=2),
        tf.repeat(7, 3),
        y,
        tape.gradient(y, x),
        tf.repeat([[1, 2]], repeats=tf.constant([3]), axis=0),
        raises(lambda: tf.repeat([1, 2], [1, 2, 3], axis=0).numpy()),
    ]
