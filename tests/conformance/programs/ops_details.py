"""Details of ops that programs rely on: lengths of ranges, complex statistics, empty shapes, refusals."""

from conformance.probes import raises
from conformance.program import program


@program()
def ranges_of_fractions(tf, np):
    return [
        tf.range(-2.0, 1.0, tf.constant(0.00375)).shape,
        tf.range(0.1, 1.1, 0.1),
        tf.range(1.0, 0.0, -0.3),
        tf.range(0.0, 1.0, tf.constant(0.1, tf.float64)),
        tf.range(3, 0.5, -1),
    ]


@program()
def complex_statistics(tf, np):
    x = tf.constant([0 + 0j, 2j])
    return [tf.math.reduce_std(x), tf.math.reduce_variance(x), tf.math.reduce_variance([[1 + 1j, 3 - 1j]], axis=1)]


@program()
def jacobians_of_gather(tf, np):
    x = tf.Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    y = tf.Variable(np.arange(12.0).reshape(2, 2, 3))
    results = []
    for pfor in (True, False):
        with tf.GradientTape(persistent=True) as tape:
            a = tf.gather(x, [0, 2], axis=1, batch_dims=1) ** 2
            b = tf.gather(y, [[0, 1], [2, 2]], axis=2, batch_dims=2) ** 2
        results.append([tape.jacobian(a, x, experimental_use_pfor=pfor), tape.jacobian(b, y)])
    return results


@program()
def shapes(tf, np):
    return [
        tf.reshape(tf.zeros([100, 0, 5]), [0, -1, 5]).shape,
        tf.reshape(tf.zeros([0, 2]), [-1, 4]).shape,
        raises(lambda: tf.split(tf.constant([1, 2, 3, 4]), [2, 2], num=3)),
        tf.split(tf.constant([1, 2, 3, 4]), [1, 3], num=2),
        raises(lambda: tf.clip_by_value(tf.constant([1.0, 2.0]), tf.zeros([2, 2]), tf.ones([2, 2]))),
        tf.clip_by_value(tf.constant([[1.0, -2.0]]), [[-1.0, 0.0]], 0.5),
        tf.shape_n([tf.zeros([2, 3]), tf.zeros([])]),
        tf.broadcast_static_shape(tf.TensorShape([2, 1]), tf.TensorShape([3])),
        tf.broadcast_dynamic_shape([2, 1], [3]),
        raises(lambda: tf.broadcast_static_shape(tf.TensorShape([2]), tf.TensorShape([3]))),
        raises(lambda: tf.broadcast_dynamic_shape([2], [3])),
    ]
