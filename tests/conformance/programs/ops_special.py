"""Special functions, products and quotients that hide nan, remainders, shifts, polynomials; their gradients."""

from conformance.probes import derivatives, raises
from conformance.program import program

POINTS = [[0.2, 0.5], [0.7, 0.9]]
FAR = [[1.2, 1.5], [2.5, 3.5]]


@program(rtol=2e-5)  # the kernels' own errors: SciPy's are smaller
def special_functions(tf, np):
    inner = {
        "asinh": tf.asinh,
        "atanh": tf.math.atanh,
        "erfc": tf.math.erfc,
        "erfinv": tf.math.erfinv,
        "ndtri": tf.math.ndtri,
        "erfcinv": tf.math.erfcinv,
        "lgamma": tf.math.lgamma,
        "digamma": tf.math.digamma,
        "log_sigmoid": tf.math.log_sigmoid,
    }
    return [
        {name: derivatives(tf, f, POINTS) for name, f in inner.items()},
        derivatives(tf, tf.acosh, FAR),
        derivatives(tf, lambda x: tf.math.polygamma(tf.constant(1.0), x), FAR),
        tf.asinh(tf.constant([1 + 2j])),
    ]


@program()
def where_zero_decides(tf, np):
    x, y = tf.Variable([0.0, 0.5, 2.0]), tf.Variable([0.0, 0.0, 3.0])
    results = []
    for f in (tf.math.xlogy, tf.math.xlog1py, tf.math.xdivy, tf.math.multiply_no_nan, tf.math.divide_no_nan):
        with tf.GradientTape() as tape:
            z = f(x, y + 0.25 if f is tf.math.xlogy or f is tf.math.xdivy else y)
        results.append([z, tape.gradient(z, [x, y])])
    with tf.GradientTape() as tape:
        z = tf.math.reciprocal_no_nan(x)
    return [
        *results,
        z,
        tape.gradient(z, x),
        tf.math.xlogy(0.0, 0.0),
        tf.math.xdivy([0.0, 1.0], 0.0),
        tf.math.multiply_no_nan(np.nan, tf.constant(0.0)),
    ]


@program()
def quotients_and_bits(tf, np):
    return [
        tf.truncatediv([-7, 7, -6], [2, -2, 3]),
        tf.truncatemod([-7, 7, -6], [2, -2, 4]),
        tf.truncatediv([-7.5, 7.0], 2.0),
        tf.truncatemod([-7.5, 7.0], 2.0),
        tf.bitwise.left_shift([1, 3], [2, 4]),
        tf.bitwise.right_shift([-16, 12], [2, 1]),
        tf.bitwise.left_shift(tf.constant([1], tf.uint8), tf.constant([9], tf.uint8)),
        tf.math.nextafter(tf.constant(1.0), tf.constant(2.0)),
    ]


@program()
def sums_and_orders(tf, np):
    return [
        derivatives(tf, lambda x: tf.math.polyval([2.0, x, -1.0], x), POINTS),
        tf.math.polyval([], tf.constant(2.0)),
        tf.math.scalar_mul(2, tf.constant([1.5, 2.0])),
        tf.scalar_mul(0.5, tf.IndexedSlices(tf.constant([[2.0]]), tf.constant([1]), tf.constant([3, 1]))),
        raises(lambda: tf.math.scalar_mul([1.0, 2.0], tf.constant([1.0]))),
        tf.math.accumulate_n([tf.constant([1.0]), tf.constant([2.0])]),
        tf.math.is_non_decreasing([1, 2, 2]),
        tf.math.is_strictly_increasing([1, 2, 2]),
        tf.math.is_strictly_increasing([[1.0, 2.0], [3.0, 4.0]]),
    ]
