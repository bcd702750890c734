"""clip_by_norm, clip_by_global_norm, global_norm: values, gradients, zeros, lists with None, slices."""

from conformance.probes import message, raises
from conformance.program import program


@program()
def clip_by_norm_above_below_and_at_zero(tf, np):
    found = []
    for x in ([3.0, 4.0], [0.3, 0.4], [0.0, 0.0]):
        v = tf.Variable(x)
        with tf.GradientTape() as tape:
            y = tf.clip_by_norm(v, 2.0)
            z = tf.reduce_sum(y * tf.constant([1.0, 3.0]))
        found.append([y, tape.gradient(z, v)])
    return found


@program()
def clip_by_norm_along_axes(tf, np):
    x = tf.constant([[3.0, 4.0], [0.3, 0.4]])
    return [
        tf.clip_by_norm(x, 1.0, axes=[1]),
        tf.clip_by_norm(x, 1.0, axes=[0]),
        tf.clip_by_norm(x, tf.constant(1.0)),
        tf.clip_by_norm(x, -1.0),
    ]


@program()
def clip_by_global_norm_of_a_list(tf, np):
    a, b = tf.Variable([3.0, 4.0]), tf.Variable([[12.0]])
    with tf.GradientTape() as tape:
        clipped, norm = tf.clip_by_global_norm([a, None, b], 6.5)
        total = tf.reduce_sum(clipped[0] * tf.constant([1.0, 2.0])) + tf.reduce_sum(clipped[2])
    loose, same = tf.clip_by_global_norm((a, b), 100.0)
    given, _ = tf.clip_by_global_norm([a], 1.0, use_norm=tf.constant(10.0))
    return [clipped, norm, tape.gradient(total, [a, b]), loose, same, given, tf.linalg.global_norm([a, b])]


@program()
def a_norm_that_is_not_finite(tf, np):
    clipped, norm = tf.clip_by_global_norm([tf.constant([1.0, np.inf])], 1.0)
    return [clipped, norm]


@program()
def slices_are_clipped_by_their_rows(tf, np):
    table = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.gather(table, [0, 2]) ** 2)
    g = tape.gradient(y, table)
    return [tf.clip_by_norm(g, 1.0), tf.clip_by_global_norm([g], 1.0)]


@program()
def no_list(tf, np):
    return message(lambda: tf.clip_by_global_norm({}, 1.0))


@program()
def training_with_a_clipped_norm(tf, np):
    w, b = tf.Variable([[1.0], [-2.0]]), tf.Variable([0.5])
    x = tf.constant([[1.0, 2.0], [3.0, -1.0]])
    norms = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ w + b - 1.0))
        gradients, norm = tf.clip_by_global_norm(tape.gradient(loss, [w, b]), 0.5)
        for variable, gradient in zip([w, b], gradients):
            variable.assign_sub(gradient)
        norms.append(norm)
    return [w, b, norms]


@program()
def bounds_of_another_shape_are_refused(tf, np):
    x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    return [
        tf.clip_by_value(x, [2.0, 1.0, 0.0], tf.constant([[3.0], [5.0]])),
        raises(lambda: tf.clip_by_value(x, [1.0, 2.0], 3.0).numpy(), "Incompatible shapes"),
        raises(lambda: tf.clip_by_value(x[0], x * 0.0, 3.0).numpy()),
    ]
