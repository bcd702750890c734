"""What ops send back for a cotangent of zero where their derivative is infinite: the trap under tf.where."""

from conformance.program import program


def _asked(tf, function, point, upstream):
    x, upstream = tf.constant(point), tf.constant(upstream)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch([x, upstream])
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = function(x)
        g = inner.gradient(y, x, output_gradients=upstream)
    with tf.autodiff.ForwardAccumulator(x, upstream) as accumulator:
        y = function(x)
    return [g, outer.gradient(g, x), outer.gradient(g, upstream), accumulator.jvp(y)]


@program()
def roots_at_zero(tf, np):
    functions = [tf.sqrt, tf.math.rsqrt, tf.math.reciprocal]
    return [_asked(tf, function, [0.0, 0.0, 4.0], [0.0, 1.0, 0.0]) for function in functions]


@program()
def roots_of_nan_and_infinity(tf, np):
    functions = [tf.sqrt, tf.math.rsqrt, tf.math.reciprocal]
    return [_asked(tf, function, [float("inf"), float("nan")], [0.0, 0.0])[0] for function in functions]


@program()
def logarithms_at_zero(tf, np):
    return [
        _asked(tf, tf.math.log, [0.0, 0.0, 4.0], [0.0, 1.0, 0.0]),
        _asked(tf, tf.math.log1p, [-1.0, -1.0, 4.0], [0.0, 1.0, 0.0]),
    ]


@program()
def half_precision_roots(tf, np):
    found = []
    for dtype in (tf.float16, tf.bfloat16, tf.float64):
        x = tf.Variable([0.0, 0.25], dtype=dtype)
        with tf.GradientTape() as tape:
            y = tf.where(x > 0, tf.sqrt(x), tf.zeros_like(x))
        found.append(tape.gradient(y, x))
    return found


@program()
def the_branch_not_taken(tf, np):
    x = tf.Variable([0.0, 4.0, -1.0])
    with tf.GradientTape(persistent=True) as tape:
        results = [
            tf.where(x > 0, tf.sqrt(x), 0.0),
            tf.where(x > 0, tf.math.rsqrt(x), 0.0),
            tf.where(x > 0, tf.math.reciprocal(x), 0.0),
            tf.where(x > 0, tf.math.log(x), 0.0),
            tf.where(x > 0, x**0.5, 0.0),
            tf.where(x > 0, 1.0 / x, 0.0),
            tf.reduce_max(tf.sqrt(tf.abs(x))),
            tf.sqrt(tf.abs(x))[1],
        ]
    return [[tape.gradient(y, x), tape.jacobian(y, x)] for y in results]


@program()
def distances_between_all_pairs(tf, np):
    x = tf.Variable([[0.0, 1.0], [2.0, 3.0], [1.0, 1.0]])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            squared = tf.reduce_sum((x[:, None] - x[None]) ** 2, -1)
            same = tf.cast(tf.equal(squared, 0.0), tf.float32)
            total = tf.reduce_sum(tf.sqrt(squared + same * 1e-16) * (1.0 - same))
        g = inner.gradient(total, x)
    return [total, g, outer.gradient(g, x)]


@program()
def a_norm_times_zero(tf, np):
    x = tf.Variable([0.0, 0.0])
    with tf.GradientTape(persistent=True) as tape:
        results = [x / (tf.norm(x) + 1.0), tf.norm(x) * 0.0, tf.math.reduce_std(x) * 0.0, tf.norm(x)]
    return [tape.gradient(y, x) for y in results]


@program()
def forward_by_two_backward_passes(tf, np):
    x, dummy = tf.Variable([1.0, 4.0]), tf.zeros([2])
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(dummy)
        with tf.GradientTape(persistent=True) as inner:
            results = [tf.sqrt(x), tf.math.rsqrt(x), 1.0 / x, tf.math.log(x)]
        grads = [inner.gradient(y, x, output_gradients=dummy) for y in results]
    return [[outer.gradient(g, dummy, output_gradients=tf.constant([1.0, 2.0])), outer.gradient(g, x)] for g in grads]
