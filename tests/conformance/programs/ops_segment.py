"""Segments and running products: values, ties, gaps, zeros, refusals."""

from conformance.probes import derivatives, raises
from conformance.program import program

DATA = [[1.0, 2.0], [3.0, 4.0], [3.0, 1.0], [0.0, 5.0]]


@program()
def segments(tf, np):
    functions = {
        "sum": tf.math.segment_sum,
        "mean": tf.math.segment_mean,
        "max": tf.math.segment_max,
        "min": tf.math.segment_min,
    }
    return {name: derivatives(tf, lambda x: f(x, [0, 0, 2, 2]) ** 2, DATA) for name, f in functions.items()}


@program()
def unsorted_segments(tf, np):
    functions = {
        "sum": tf.math.unsorted_segment_sum,
        "mean": tf.math.unsorted_segment_mean,
        "sqrt_n": tf.math.unsorted_segment_sqrt_n,
        "max": tf.math.unsorted_segment_max,
        "min": tf.math.unsorted_segment_min,
    }
    return {
        name: [
            derivatives(tf, lambda x: f(x, [1, 0, 1, 1], 2) ** 2, DATA),
            derivatives(tf, lambda x: f(x, tf.constant([1, -1, 0, 1]), num_segments=2), DATA),
            derivatives(tf, lambda x: f(x, [[0, 1], [1, 0], [0, 0], [1, 1]], 2), DATA),
            f(tf.constant(DATA), tf.constant([1, 0, 1, 1], tf.int64), 3),
        ]
        for name, f in functions.items()
    }


@program()
def segment_ties(tf, np):
    x = tf.Variable([[1.0, 2.0], [1.0, 2.0], [1.0, 0.0]])
    gradients = []
    for f in (tf.math.segment_max, tf.math.segment_min):
        with tf.GradientTape() as tape:
            y = f(x, [0, 0, 0])
        gradients.append([y, tape.gradient(y, x)])
    with tf.GradientTape() as tape:
        y = tf.math.unsorted_segment_max(x, [1, 1, 1], 2)[1]
    return [*gradients, tape.gradient(y, x)]


@program()
def segments_of_ints_and_of_nothing(tf, np):
    return [
        tf.math.segment_max([1, 5, 2], [0, 0, 1]),
        tf.math.unsorted_segment_max([3, 4], [1, 1], 2),
        tf.math.unsorted_segment_min(tf.constant([3, 4], tf.uint8), [1, 1], 2),
        tf.math.segment_sum(tf.zeros([0, 2]), tf.zeros([0], tf.int32)),
        tf.math.segment_min([1.0, 5.0], [1, 1]),
        tf.math.unsorted_segment_max(tf.constant([1.0, 2.0], tf.float16), [0, 0], 2),
    ]


@program()
def segments_refused(tf, np):
    f, x = tf.math.segment_max, tf.constant(DATA)
    return [
        raises(lambda: f(x, [0, 1, 0, 0]).numpy(), containing="segment ids are not increasing"),
        raises(lambda: f(x, [0, 1]), containing="segment_ids should be the same size as dimension 0 of input"),
        raises(lambda: f(x, [-1, 0, 0, 1]).numpy(), containing="Segment id -1 out of range [0, 2)"),
        raises(lambda: f(x, [[0, 0], [1, 1]]), containing="segment_ids should be a vector"),
        raises(lambda: tf.math.segment_sum(1.0, 0), containing="input must be at least rank 1"),
        raises(lambda: f(x, [0.0, 1.0, 1.0, 1.0])),
        raises(
            lambda: tf.math.unsorted_segment_max(x, [1, 5, 1, 1], 2).numpy(),
            containing="segment_ids[1] = 5 is out of range [0, 2)",
        ),
        raises(
            lambda: tf.math.unsorted_segment_max(x, [0, 1], 2),
            containing="data.shape = [4,2] does not start with segment_ids.shape = [2]",
        ),
    ]


@program()
def cumprod(tf, np):
    x = np.array([[2.0, 3.0, -1.5], [0.5, 4.0, 1.0]])
    hows = [{}, {"axis": 1}, {"axis": -1, "exclusive": True}, {"reverse": True}, {"exclusive": True, "reverse": True}]
    return [derivatives(tf, lambda x: tf.math.cumprod(x, **how), x) for how in hows]


@program()
def cumprod_past_a_zero(tf, np):
    return [
        tf.math.cumprod([2.0, 0.0, 4.0]),
        tf.math.cumprod([[1, 2], [3, 4]], axis=1),
        raises(
            lambda: tf.math.cumprod([1.0, 2.0], axis=3), containing="Expected scan axis in the range [-1, 1), but got 3"
        ),
        raises(lambda: tf.math.cumprod(2.0)),
    ]
