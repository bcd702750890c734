"""Reductions: axes, kept dimensions, empty tensors, and their gradients."""

from conformance.probes import derivatives, raises
from conformance.program import program

CUBE = [[[1.0, -2.0], [0.5, 3.0], [2.5, 0.2]], [[-1.5, 4.0], [0.1, -0.6], [1.1, 2.2]]]


def reductions(tf):
    return {
        "sum": tf.reduce_sum,
        "mean": tf.reduce_mean,
        "max": tf.reduce_max,
        "min": tf.reduce_min,
        "prod": tf.reduce_prod,
        "logsumexp": tf.reduce_logsumexp,
    }


@program()
def over_everything(tf, np):
    return {name: derivatives(tf, function, CUBE) for name, function in reductions(tf).items()}


@program()
def over_one_axis(tf, np):
    return {name: derivatives(tf, lambda x, f=f: f(x, axis=1), CUBE) for name, f in reductions(tf).items()}


@program()
def over_the_last_axis_kept(tf, np):
    return {
        name: derivatives(tf, lambda x, f=f: f(x, axis=-1, keepdims=True), CUBE) for name, f in reductions(tf).items()
    }


@program()
def over_several_axes(tf, np):
    return {name: derivatives(tf, lambda x, f=f: f(x, axis=[0, -1]), CUBE) for name, f in reductions(tf).items()}


@program()
def axes_given_in_other_ways(tf, np):
    x = tf.constant(CUBE)
    return [
        tf.reduce_sum(x, 0),
        tf.reduce_sum(x, (1, 2), True),
        tf.reduce_sum(x, axis=tf.constant(1)),
        tf.reduce_sum(x, axis=np.array([0, 2])),
        tf.reduce_sum(x, axis=[]),
        tf.reduce_sum(x, axis=None, keepdims=True),
    ]


@program()
def of_scalars_and_python_values(tf, np):
    return [
        tf.reduce_sum(3.0),
        tf.reduce_mean([1.0, 2.0]),
        tf.reduce_max([1, 5, 2]),
        tf.reduce_sum([[1, 2], [3, 4]], axis=0),
    ]


@program()
def of_empty_tensors(tf, np):
    x = tf.zeros([0, 2])
    return {name: [function(x), function(x, axis=0)] for name, function in reductions(tf).items()}


@program()
def the_gradient_of_an_empty_mean(tf, np):
    x = tf.Variable(tf.zeros([0]))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x) + tf.reduce_prod(x)
    return [y, tape.gradient(y, x)]


@program()
def any_and_all(tf, np):
    b = tf.constant([[True, False], [True, True]])
    return [
        tf.reduce_any(b),
        tf.reduce_all(b),
        tf.reduce_all(b, axis=1),
        tf.reduce_any(b, axis=0, keepdims=True),
        tf.reduce_all(b[:0]),
    ]


@program()
def argmax_and_argmin(tf, np):
    x = tf.constant([[1.0, 3.0, 3.0], [5.0, -2.0, -2.0]])
    return [tf.argmax(x), tf.argmin(x), tf.argmax(x, axis=1), tf.argmin(x, axis=-1), tf.argmax([7, 9, 9])]


@program()
def arguments_that_do_not_fit(tf, np):
    x = tf.constant([1.0, 2.0])
    calls = [
        lambda: tf.reduce_sum(x, axis=1),
        lambda: tf.reduce_mean(x, axis=-2),
        lambda: tf.reduce_max(x, axis=[0, 3]),
        lambda: tf.reduce_sum(x, axis=[0, 0]),
        lambda: tf.argmax(x, axis=2),
        lambda: tf.argmax(tf.zeros([0])).numpy(),
    ]
    return [raises(call) for call in calls]


@program()
def a_long_mean_is_accurate(tf, np):
    x = tf.constant(np.linspace(0.0, 1.0, 4001, dtype=np.float32))
    return [tf.reduce_mean(x), tf.reduce_sum(x - 0.5) < 1e-2]


@program()
def variance_written_out(tf, np):
    def variance(x):
        centred = x - tf.reduce_mean(x, axis=0, keepdims=True)
        return tf.reduce_mean(centred * centred, axis=0)

    return derivatives(tf, variance, [[1.0, 2.0], [3.0, -1.0], [0.5, 4.0]])


@program()
def layer_normalisation_written_out(tf, np):
    def normalised(x):
        mean = tf.reduce_mean(x, axis=-1, keepdims=True)
        spread = tf.reduce_mean(tf.math.squared_difference(x, mean), axis=-1, keepdims=True)
        return (x - mean) * tf.math.rsqrt(spread + 1e-3)

    return derivatives(tf, normalised, [[1.0, 2.0, 4.0], [0.5, -1.0, 3.0]])


@program()
def the_axis_of_a_position_is_the_first_by_default(tf, np):
    x = tf.constant([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]])
    return [
        function(x, axis, output_type=dtype)
        for function in (tf.argmax, tf.math.argmin)
        for axis in (None, 1)
        for dtype in (tf.int32, tf.int64)
    ]
