"""Elementwise functions where they are hardest: at zeros of both signs, poles, infinities, nan, and far out."""

from conformance.program import program

_POINTS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, -100.0, 100.0, float("inf"), float("-inf"), float("nan")]
_PAIRS = [0.0, -0.0, 1.0, -2.0, 0.5, float("inf"), float("-inf"), float("nan")]


def _by_point(tf, names, points=_POINTS, dtype="float32"):
    """The values and gradients of unary functions."""
    results = {}
    for name in names:
        function = tf
        for part in name.split("."):
            function = getattr(function, part)
        x = tf.constant(points, dtype)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        results[name] = [y, tape.gradient(y, x)]
    return results


def _by_pair(tf, names, points=_PAIRS):
    """The values and gradients of binary functions, at every pair of points."""
    results = {}
    for name in names:
        function = tf
        for part in name.split("."):
            function = getattr(function, part)
        x, y = (tf.reshape(grid, [-1]) for grid in tf.meshgrid(tf.constant(points), tf.constant(points)))
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            z = function(x, y)
        results[name] = [z, tape.gradient(z, [x, y])]
    return results


@program()
def exponentials_and_logarithms(tf, np):
    return _by_point(tf, ["exp", "math.expm1", "math.log", "math.log1p", "math.log_sigmoid", "sigmoid", "nn.softplus"])


@program()
def trigonometry(tf, np):
    return _by_point(
        tf, ["sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"]
    )


@program()
def powers(tf, np):
    return _by_point(tf, ["sqrt", "math.rsqrt", "square", "math.reciprocal", "math.reciprocal_no_nan"])


@program()
def activations(tf, np):
    return _by_point(tf, ["nn.relu", "nn.relu6", "nn.leaky_relu", "nn.silu", "nn.softsign"]) | _by_point(
        tf, ["nn.elu", "nn.selu"], points=[p for p in _POINTS if p == p]
    )


@program()
def signs_and_rounding(tf, np):
    return _by_point(tf, ["abs", "sign", "floor", "math.ceil", "round", "math.rint", "negative"])


@program()
def errors_and_gammas(tf, np):
    ordinary = _by_point(tf, ["math.erf", "math.erfc", "math.lgamma", "math.digamma"])
    inverses = _by_point(tf, ["math.erfinv", "math.erfcinv", "math.ndtri"], points=[0.0, 0.25, 0.5, 1.0, 2.0, -1.0])
    return ordinary | inverses


@program()
def integrals(tf, np):
    names = [
        "math.bessel_i0",
        "math.bessel_i0e",
        "math.special.bessel_j0",
        "math.special.bessel_j1",
        "math.special.spence",
    ]
    points = [0.0, 1.0, 0.5, 3.0, 20.0, float("nan")]
    return _by_point(tf, names, points) | _by_point(tf, ["math.special.dawsn", "math.special.fresnel_sin"], points[:4])


@program()
def arithmetic_of_pairs(tf, np):
    return _by_pair(tf, ["add", "subtract", "multiply", "divide", "math.divide_no_nan", "math.multiply_no_nan"])


@program()
def comparisons_of_pairs(tf, np):
    return _by_pair(tf, ["maximum", "minimum", "math.squared_difference"]) | {
        name: getattr(tf, name)(*tf.meshgrid(tf.constant(_PAIRS), tf.constant(_PAIRS)))
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    }


@program()
def powers_of_pairs(tf, np):
    return _by_pair(tf, ["pow", "atan2"])


@program()
def logarithms_of_pairs(tf, np):
    return _by_pair(tf, ["math.xlogy", "math.xlog1py"])


@program()
def remainders_of_pairs(tf, np):
    return _by_pair(tf, ["math.floordiv", "math.floormod"], points=[1.0, -1.0, 0.5, -2.5, 3.0, 100.0])


@program()
def integer_limits(tf, np):
    results = {}
    for dtype in ("int8", "int32", "int64", "uint8", "uint32"):
        low, high = tf.as_dtype(dtype).min, tf.as_dtype(dtype).max
        x = tf.constant([low, high, 0, 1, 7], dtype)
        y = tf.constant([high, high, 1, 3, 2], dtype)
        results[dtype] = [
            x + y,
            x - y,
            x * y,
            tf.abs(x) if low < 0 else x,
            x // y,
            x % y,
            tf.maximum(x, y),
            tf.round(x),
        ]
    return results


@program()
def quotients_of_integers_without_nan(tf, np):
    results = []
    for dtype in ("int8", "uint16", "int32", "int64"):
        results.append(tf.math.divide_no_nan(tf.constant([4, 1, 7], dtype), tf.constant([2, 0, 3], dtype)))
    return results


@program()
def zeros_of_truth_values(tf, np):
    return tf.nn.zero_fraction(tf.constant([True, False, False, True, False])), tf.math.count_nonzero([True, False])


@program()
def an_order_for_each_element(tf, np):
    x = tf.constant([0.5, 1.5, -0.5, 2.0, 3.0])
    order = tf.constant([0.0, 1.0, 2.0, 3.0, 1.5])
    with tf.GradientTape() as tape:
        tape.watch([x, order])
        y = tf.math.polygamma(order, x)
    poles = tf.math.polygamma(3.0, tf.constant([-1.0, 0.0])), tf.math.polygamma(2.0, tf.constant([-1.0, 0.0]))
    return y, tape.gradient(y, [x, order]), poles, tf.math.zeta(tf.constant([3.0, 4.0, 3.5]), -1.0)


@program()
def a_learned_slope_of_silu(tf, np):
    beta, x = tf.Variable(1.5), tf.Variable([1.0, -2.0, 0.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.nn.silu(x, beta)
        z = tf.nn.swish(x, beta=beta * 2.0)
    return y, tape.gradient(y, [x, beta]), z, tape.gradient(z, [x, beta])


@program()
def remainders_have_no_gradient(tf, np):
    x = tf.Variable([5.5, -5.5])
    with tf.GradientTape() as tape:
        y = tf.truncatemod(x, 2.0)
    try:
        tape.gradient(y, x)
    except LookupError:
        return y, "LookupError"
    return y


@program()
def one_tensor_is_concatenated_along_a_number(tf, np):
    try:
        tf.concat(tf.constant([1.0, 2.0]), tf.constant([1.0, 2.0]))
        refused = False
    except (ValueError, TypeError):
        refused = True
    return refused, tf.concat(tf.constant([1.0]), 0), tf.concat([tf.constant([[1.0]])], 1)
