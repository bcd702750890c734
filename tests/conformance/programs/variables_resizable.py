"""Variables with a shape that leaves sizes open."""

from conformance.program import program


def raises(tf, function):
    """Returns the name of the error's type, or None."""
    try:
        function()
    except Exception as error:
        return type(error).__name__
    return None


@program()
def var_unknown_shape(tf, np):
    v = tf.Variable(1.0, shape=tf.TensorShape(None))
    s0 = v.shape.rank
    v.assign([[1.0]])
    a = v.numpy()
    v.assign([1.0, 2.0])
    return [s0, a, v.numpy(), v * 2.0]


@program()
def var_partial_shape(tf, np):
    v = tf.Variable([1.0, 2.0], shape=[None])
    v.assign([1.0, 2.0, 3.0])
    return [v.shape.as_list(), v, raises(tf, lambda: v.assign([[1.0]]))]


@program()
def var_unknown_in_function(tf, np):
    v = tf.Variable([1.0, 2.0], shape=[None])

    @tf.function
    def f(x):
        v.assign(tf.concat([v, [x]], 0))
        return tf.reduce_sum(v)

    return [f(tf.constant(1.0)), f(tf.constant(2.0)), v]


@program()
def var_unknown_gradient(tf, np):
    v = tf.Variable([1.0, 2.0], shape=[None])
    r = []
    for _ in range(2):
        with tf.GradientTape() as t:
            loss = tf.reduce_sum(v**2)
        r.append(t.gradient(loss, v))
        v.assign([1.0, 2.0, 3.0])
    return r


@program()
def var_unknown_more(tf, np):
    v = tf.Variable(tf.zeros([0, 2]), shape=[None, 2], name="rows", trainable=False)
    for i in range(3):
        v.assign(tf.concat([v, [[float(i), 1.0]]], 0))
    r = v.assign([[9.0, 9.0]])
    v.assign_add([[1.0, 1.0]])
    v[0, 1].assign(4.0)
    return [
        v,
        r.shape.as_list(),
        v.name,
        v.trainable,
        v.dtype.name,
        raises(tf, lambda: v.assign([1.0])),
        raises(tf, lambda: v.assign_add([[1.0, 1.0], [2.0, 2.0]])),
        tf.shape(v),
        len(v.numpy()),
        v.value(),
    ]


@program()
def var_unknown_buffer_in_function(tf, np):
    v = tf.Variable([1.0], shape=tf.TensorShape([None]))

    @tf.function
    def f(x):
        return tf.reduce_sum(v) * x

    a = f(tf.constant(2.0))
    v.assign([1.0, 2.0, 3.0])
    return [a, f(tf.constant(2.0))]


@program()
def var_unknown_argument(tf, np):
    v = tf.Variable([1.0], shape=tf.TensorShape([None]))

    @tf.function
    def f(u, x):
        return tf.reduce_sum(u) * x

    a = f(v, tf.constant(2.0))
    v.assign([1.0, 2.0, 3.0])
    return [a, f(v, tf.constant(2.0))]


@program()
def var_shape_defined(tf, np):
    v = tf.Variable([1.0, 2.0], shape=[2])
    return [v.shape.as_list(), raises(tf, lambda: v.assign([1.0])), raises(tf, lambda: tf.Variable([1.0], shape=[2]))]
