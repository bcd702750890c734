"""QR factors of matrices of every shape with their derivatives, and bits as another dtype."""

from conformance.probes import raises
from conformance.program import program


def matrix(np, *shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


@program()
def qr_factors_and_gradients(tf, np):
    found = {}
    for shape in ((3, 3), (5, 2), (2, 5), (2, 3, 2), (1, 1)):
        x = tf.constant(matrix(np, *shape))
        with tf.GradientTape() as tape:
            tape.watch(x)
            q, r = tf.linalg.qr(x)
            y = tf.reduce_sum(tf.sin(q)) + tf.reduce_sum(r * r * r)
        found[str(shape)] = [q, r, tape.gradient(y, x), tf.abs(tf.matmul(q, r) - x) < 1e-12]
    return found


@program()
def qr_of_singles(tf, np):
    factors = tf.linalg.qr(tf.constant(matrix(np, 4, 3).astype("float32")))
    return [factors.q, factors.r, raises(lambda: tf.linalg.qr(tf.ones(3)))]


@program()
def bits_as_another_dtype(tf, np):
    x = tf.constant([1.0, -2.5, 0.0])
    return [
        tf.bitcast(x, tf.int32),
        tf.bitcast(tf.bitcast(x, tf.uint32), tf.float32),
        tf.bitcast(x, tf.uint8),
        tf.bitcast(tf.constant([[0, 0, 128, 63]], tf.uint8), tf.float32),
        tf.bitcast(tf.constant(1.5), tf.int16),
        tf.bitcast(tf.constant([1.5], tf.float16), tf.uint16),
        raises(lambda: tf.bitcast(x, tf.float64)),
    ]


@program()
def no_gradient_passes_through_bits(tf, np):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.bitcast(tf.bitcast(x, tf.int32), tf.float32) * 2.0
    return tape.gradient(y, x)
