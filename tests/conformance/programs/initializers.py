"""TensorFlow's own initializers."""

from conformance.probes import message
from conformance.program import program


@program()
def fixed_values(tf, np):
    return [
        tf.zeros_initializer()((2, 3)),
        tf.ones_initializer()([2], dtype=tf.int32),
        tf.zeros_initializer()((4,), dtype=tf.bool),
        tf.zeros_initializer()((4,), partition_shape=(2,), partition_offset=(0,)),
        tf.constant_initializer(2.5)((2, 2)),
        tf.constant_initializer([1, 2, 3, 4])((2, 2)),
        tf.constant_initializer([1, 2])((2,), dtype=tf.float64),
    ]


@program()
def configurations(tf, np):
    initializers = [
        tf.zeros_initializer(),
        tf.constant_initializer(3),
        tf.random_normal_initializer(1.0, 2.0, 3),
        tf.random_uniform_initializer(),
    ]
    return [[each.get_config(), type(each).from_config(each.get_config()).get_config()] for each in initializers]


@program()
def drawn_values(tf, np):
    normal, uniform = tf.random_normal_initializer(1.0, 0.5), tf.random_uniform_initializer(0, 9)
    drawn, whole = normal((200, 50)).numpy(), uniform((500,), dtype=tf.int32).numpy()
    seeded = tf.random_uniform_initializer(-1.0, 1.0, seed=5)
    first, second = seeded((50,)).numpy(), seeded((50,)).numpy()
    return [
        [drawn.dtype.name, bool(abs(drawn.mean() - 1) < 0.05), bool(abs(drawn.std() - 0.5) < 0.05)],
        [whole.dtype.name, sorted(set(whole.tolist()))],
        [bool(np.array_equal(first, second)), bool(np.abs(first).max() <= 1), len(set(first.tolist())) > 40],
    ]


@program()
def what_is_refused(tf, np):
    return [
        message(lambda: tf.zeros_initializer()((2,), dtype=tf.string)),
        message(lambda: tf.zeros_initializer()((2,), foo=1)),
        message(lambda: tf.constant_initializer(object())),
        message(lambda: tf.random_normal_initializer()((2,), dtype=tf.int32)),
    ]
