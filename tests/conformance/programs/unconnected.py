"""``unconnected_gradients``: zeros in the place of None."""

from conformance.program import program


@program()
def zeros_have_shape_and_dtype_of_the_source(tf, np):
    x = tf.Variable(2.0)
    sources = [
        tf.Variable([[1.0, 2.0]]),
        tf.Variable([1.0], dtype=tf.float64),
        tf.Variable([1, 2, 3]),
        tf.constant(5, dtype=tf.int64),
        tf.constant([1.0 + 2.0j], dtype=tf.complex64),
        tf.constant([True]),
        tf.zeros([0, 2]),
    ]
    with tf.GradientTape() as tape:
        y = x * x
    return tape.gradient(y, sources, unconnected_gradients=tf.UnconnectedGradients.ZERO)


@program()
def connected_and_unconnected(tf, np):
    x, w = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    zero, none = tf.UnconnectedGradients.ZERO, tf.UnconnectedGradients.NONE
    return {
        "zero": tape.gradient(y, {"x": x, "w": w}, unconnected_gradients=zero),
        "none": tape.gradient(y, (x, w), unconnected_gradients=none),
        "default": tape.gradient(y, (x, w)),
    }


@program()
def named_by_a_string(tf, np):
    x, w = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * 3.0
    return [tape.gradient(y, w, unconnected_gradients="zero"), tape.gradient(y, w, unconnected_gradients="none")]


@program()
def by_position(tf, np):
    x, w = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * 3.0
    return tape.gradient(y, [x, w], None, "zero")


@program()
def a_target_of_ints(tf, np):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.cast(x, tf.int32)
    return [tape.gradient(y, x, unconnected_gradients="zero"), tape.gradient(tf.constant(1), x, None, "zero")]


@program()
def an_interrupted_path(tf, np):
    x = tf.Variable([1.5, 2.5])
    with tf.GradientTape() as tape:
        y = tf.floor(x) * 2.0 + tf.stop_gradient(x)
    return tape.gradient(y, x, unconnected_gradients="zero")


@program()
def second_order_zeros(tf, np):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(x) * 2.0
        g = inner.gradient(y, x)
    return outer.gradient(g, x, unconnected_gradients=tf.UnconnectedGradients.ZERO)


@program()
def the_zeros_can_be_used(tf, np):
    x, w = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x * x
        g = inner.gradient(y, w, unconnected_gradients="zero")
        z = (g + 1.0) * w
    return [g, outer.gradient(z, [x, w])]


@program()
def the_enumeration(tf, np):
    kinds = tf.UnconnectedGradients
    return [kinds.NONE.value, kinds.ZERO.value, kinds("zero") is kinds.ZERO, str(kinds.NONE), repr(kinds.ZERO)]
