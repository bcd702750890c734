"""Ties, kinks, poles and NaN: which gradient TensorFlow chose where mathematics leaves a choice."""

from conformance.probes import derivatives
from conformance.program import program

INF, NAN = float("inf"), float("nan")


@program()
def maximum_and_minimum(tf, np):
    a, b = [1.0, 2.0, 3.0], [1.0, 3.0, 2.0]
    return [derivatives(tf, tf.maximum, a, b), derivatives(tf, tf.minimum, a, b)]


@program()
def maximum_against_a_scalar(tf, np):
    return [derivatives(tf, tf.maximum, [-1.0, 0.0, 1.0], 0.0), derivatives(tf, lambda x: tf.maximum(x, 0), [0.0, 2.0])]


@program()
def maximum_of_a_value_with_itself(tf, np):
    return derivatives(tf, lambda x: tf.maximum(x, x) + tf.minimum(x, x), [1.0, 2.0])


@program()
def reduce_max_and_min(tf, np):
    x = [[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]
    return [derivatives(tf, lambda x, f=f: f(x, axis=1), x) for f in (tf.reduce_max, tf.reduce_min)]


@program()
def reduce_max_over_everything(tf, np):
    return derivatives(tf, tf.reduce_max, [[4.0, 1.0], [4.0, 4.0]])


@program()
def clip_by_value(tf, np):
    return derivatives(tf, lambda x: tf.clip_by_value(x, 0.0, 1.0), [-0.5, 0.0, 0.5, 1.0, 1.5])


@program()
def clip_by_value_with_tensors_for_bounds(tf, np):
    return derivatives(tf, tf.clip_by_value, [-1.0, 0.5, 2.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0])


@program()
def clip_by_value_with_crossed_bounds(tf, np):
    return derivatives(tf, lambda x: tf.clip_by_value(x, 2.0, 1.0), [0.0, 1.5, 3.0])


@program()
def kinks_at_zero(tf, np):
    functions = {"abs": tf.abs, "relu": tf.nn.relu, "leaky_relu": tf.nn.leaky_relu, "elu": tf.nn.elu, "sign": tf.sign}
    return {name: derivatives(tf, function, [-1.0, 0.0, -0.0, 2.0]) for name, function in functions.items()}


@program()
def relu6_at_both_ends(tf, np):
    return derivatives(tf, tf.nn.relu6, [-1.0, 0.0, 3.0, 6.0, 7.0])


@program()
def roots_and_logarithms_at_zero(tf, np):
    functions = {"sqrt": tf.sqrt, "rsqrt": tf.math.rsqrt, "log": tf.math.log, "reciprocal": lambda x: 1.0 / x}
    return {name: derivatives(tf, function, [0.0, 4.0]) for name, function in functions.items()}


@program()
def log1p_at_minus_one(tf, np):
    return derivatives(tf, tf.math.log1p, [-1.0, 0.0])


@program()
def a_norm_at_zero(tf, np):
    return derivatives(tf, lambda x: tf.sqrt(tf.reduce_sum(x * x)), [0.0, 0.0])


@program()
def powers_of_zero(tf, np):
    return {
        "0": derivatives(tf, lambda x: x**0, [0.0, 2.0]),
        "1": derivatives(tf, lambda x: x**1, [0.0, 2.0]),
        "2": derivatives(tf, lambda x: x**2, [0.0, -2.0]),
        "0.5": derivatives(tf, lambda x: x**0.5, [0.0, 4.0]),
        "-1": derivatives(tf, lambda x: x**-1, [0.0, 2.0]),
    }


@program()
def powers_of_both(tf, np):
    return derivatives(tf, tf.pow, [0.0, 0.0, 0.0, 2.0, -2.0], [0.0, 2.0, 1.0, 3.0, 2.0])


@program()
def powers_of_a_constant(tf, np):
    return [derivatives(tf, lambda x, base=base: base**x, [0.0, 1.5]) for base in (2.0, 0.0, 1.0)]


@program()
def reduce_prod_with_zeros(tf, np):
    # Where an element is zero TensorFlow's second gradient is wrong.
    found = [derivatives(tf, tf.reduce_prod, x) for x in ([2.0, 3.0, 4.0], [0.0, 3.0, 4.0], [0.0, 0.0, 4.0])]
    return [found[0], found[1]["g"], found[2]["g"]]


@program()
def the_nan_trap_of_where(tf, np):
    trap = derivatives(tf, lambda x: tf.where(x > 0.0, tf.math.log(x), 0.0), [0.0, 2.0])
    safe = derivatives(tf, lambda x: tf.where(x > 0.0, tf.math.log(tf.where(x > 0.0, x, 1.0)), 0.0), [0.0, 2.0])
    return {"trap": trap["g"], "safe": safe["g"]}


@program()
def division_by_zero(tf, np):
    return derivatives(tf, lambda a, b: a / b, [1.0, -1.0, 0.0, 3.0], [0.0, 0.0, 0.0, 2.0])


@program()
def nan_and_infinities_pass_through(tf, np):
    x = [NAN, INF, -INF, 1.0]
    functions = {"mul": lambda x: x * 2.0, "exp": tf.exp, "tanh": tf.tanh, "relu": tf.nn.relu, "sigmoid": tf.sigmoid}
    return {name: derivatives(tf, function, x) for name, function in functions.items()}


@program()
def nan_in_a_maximum(tf, np):
    return [derivatives(tf, tf.maximum, [NAN, 1.0], [1.0, NAN]), derivatives(tf, tf.minimum, [NAN, 1.0], [1.0, NAN])]


@program()
def nan_in_a_reduction(tf, np):
    x = [1.0, NAN, 3.0]
    return [derivatives(tf, function, x) for function in (tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min)]


@program()
def saturation(tf, np):
    x = [-100.0, -20.0, 0.0, 20.0, 100.0]
    functions = {"sigmoid": tf.sigmoid, "tanh": tf.tanh, "softplus": tf.nn.softplus}
    return {name: derivatives(tf, function, x) for name, function in functions.items()}


@program()
def large_logits(tf, np):
    x = [[1000.0, 0.0, -1000.0]]
    return {
        "softmax": derivatives(tf, tf.nn.softmax, x),
        "log_softmax": derivatives(tf, tf.nn.log_softmax, x),
        "logsumexp": derivatives(tf, tf.reduce_logsumexp, x),
    }


@program()
def logsumexp_of_minus_infinity(tf, np):
    return derivatives(tf, lambda x: tf.reduce_logsumexp(x, axis=1), [[-INF, -INF], [-INF, 1.0], [0.0, 0.0]])


@program()
def logsumexp_of_numbers_that_are_not_finite(tf, np):
    rows = [[INF, 1.0], [INF, INF], [INF, -INF], [-INF, 1.0], [-INF, -INF], [NAN, 1.0], [NAN, INF], [0.0, 1.0]]
    return [derivatives(tf, lambda x, axis=axis: tf.reduce_logsumexp(x, axis), rows) for axis in (0, 1)]


@program()
def modulo_and_floor_division(tf, np):
    return [
        derivatives(tf, lambda a, b: a % b, [7.0, -7.0, 7.5], [2.0, 2.0, -2.0]),
        [tf.constant([7.0, -7.0, 7.5]) // 2.0, tf.constant([7, -7]) // 2, tf.constant([7, -7]) % 3],
    ]
