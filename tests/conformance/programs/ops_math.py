"""Elementwise functions: value, gradient and second gradient away from their edges (those are in ties.py)."""

from conformance.probes import derivatives, raises
from conformance.program import program

ANY = [-1.3, -0.4, 0.3, 0.9, 2.1]
POSITIVE = [0.2, 0.7, 1.0, 1.9, 3.4]


def each(tf, functions, points):
    """The derivatives of every named function at the same points."""
    return {name: derivatives(tf, function, points) for name, function in functions.items()}


@program()
def exponentials_and_logarithms(tf, np):
    functions = {"exp": tf.exp, "expm1": tf.math.expm1, "log": tf.math.log, "log1p": tf.math.log1p}
    return each(tf, functions, POSITIVE)


@program()
def trigonometry(tf, np):
    return each(tf, {"sin": tf.sin, "cos": tf.cos, "tan": tf.tan}, ANY)


@program()
def squashing(tf, np):
    return each(tf, {"tanh": tf.tanh, "sigmoid": tf.sigmoid, "softplus": tf.nn.softplus}, ANY)


@program()
def squares_and_roots(tf, np):
    return each(tf, {"square": tf.square, "sqrt": tf.sqrt, "rsqrt": tf.math.rsqrt, "cube": lambda x: x**3}, POSITIVE)


@program()
def sign_and_size(tf, np):
    return each(tf, {"negative": tf.negative, "abs": tf.abs, "sign": tf.sign}, ANY)


@program()
def rounding(tf, np):
    x = tf.constant([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49, -0.51])
    return [tf.round(x), tf.floor(x), tf.math.ceil(x), tf.sign(x)]


@program()
def small_arguments_keep_their_digits(tf, np):
    x = tf.constant([1e-8, -1e-8, 1e-20])
    return [tf.math.expm1(x), tf.math.log1p(x), tf.sin(x), tf.tanh(x)]


@program()
def two_arguments(tf, np):
    functions = {
        "add": tf.add,
        "subtract": tf.subtract,
        "multiply": tf.multiply,
        "divide": tf.divide,
        "pow": tf.pow,
        "maximum": tf.maximum,
        "minimum": tf.minimum,
        "squared_difference": tf.math.squared_difference,
        "floormod": tf.math.floormod,
    }
    return {name: derivatives(tf, function, [0.5, 1.5, 2.5], [2.0, 1.2, 0.7]) for name, function in functions.items()}


@program()
def two_arguments_that_broadcast(tf, np):
    functions = {
        "add": tf.add,
        "subtract": tf.subtract,
        "multiply": tf.multiply,
        "divide": tf.divide,
        "pow": tf.pow,
        "maximum": tf.maximum,
        "squared_difference": tf.math.squared_difference,
    }
    return {name: derivatives(tf, function, [[0.5], [1.5]], [2.0, 1.2, 0.7]) for name, function in functions.items()}


@program()
def functions_of_python_numbers(tf, np):
    return [
        tf.add(1, 2),
        tf.multiply(2.0, 3),
        tf.divide(1, 4),
        tf.pow(2, 10),
        tf.exp(0.0),
        tf.abs(-3),
        tf.maximum(1, 2),
        tf.math.floordiv(7, 2),
        tf.math.floormod(-7, 3),
        tf.square([1, 2]),
    ]


@program()
def floor_division(tf, np):
    a, b = [7.5, -7.5, 7.5, -7.5], [2.0, 2.0, -2.0, -2.0]
    return [tf.math.floordiv(tf.constant(a), b), tf.math.floormod(tf.constant(a), b)]


@program()
def add_n(tf, np):
    out = derivatives(tf, lambda a, b: tf.add_n([a, b * b, a]), [1.0, 2.0], [3.0, 4.0])
    return [
        out,
        tf.add_n([tf.constant([1, 2])]),
        raises(lambda: tf.add_n([])),
        raises(lambda: tf.add_n([tf.ones([1]), tf.ones([2])])),
    ]


@program()
def comparisons_as_functions(tf, np):
    a, b = tf.constant([1.0, 2.0, 3.0]), tf.constant([2.0, 2.0, 2.0])
    return [
        tf.equal(a, b),
        tf.not_equal(a, b),
        tf.less(a, b),
        tf.less_equal(a, b),
        tf.greater(a, b),
        tf.greater_equal(a, b),
    ]


@program()
def nan_in_comparisons(tf, np):
    x, nan = tf.constant([float("nan"), 1.0]), float("nan")
    return [tf.equal(x, x), x != x, x < nan, x >= 1.0]


@program()
def logic_as_functions(tf, np):
    a, b = tf.constant([True, True, False]), tf.constant([True, False, False])
    return [
        tf.logical_and(a, b),
        tf.logical_or(a, b),
        tf.logical_not(a),
        tf.math.logical_xor(a, b),
        tf.logical_and(a, True),
    ]


@program()
def where_with_three_arguments(tf, np):
    mask = tf.constant([True, False, True])
    return [
        derivatives(tf, lambda a, b: tf.where(mask, a * a, b * 3.0), [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]),
        derivatives(tf, lambda a, b: tf.where(mask, a, b), [1.0, 2.0, 3.0], 7.0),
        derivatives(tf, lambda a: tf.where([[True], [False]], a, 0.0), [1.0, 2.0]),
        tf.where([True, False], [1, 2], [3, 4]),
    ]


@program()
def identity(tf, np):
    v = tf.Variable([1.0, 2.0])
    copy = tf.identity(v)
    v.assign([5.0, 6.0])
    return [copy, derivatives(tf, tf.identity, [1.0, 2.0]), tf.identity([1, 2])]


@program()
def the_same_function_under_its_names(tf, np):
    return [
        tf.math.exp is tf.exp,
        tf.linalg.matmul is tf.matmul,
        tf.nn.sigmoid is tf.sigmoid,
        tf.math.tanh is tf.tanh,
        tf.math.reduce_sum is tf.reduce_sum,
        tf.math.sqrt is tf.sqrt,
        tf.math.abs is tf.abs,
    ]


@program()
def names_may_be_given(tf, np):
    x = tf.constant([1.0, 4.0])
    return [
        tf.sqrt(x, name="root"),
        tf.add(x, x, name="sum"),
        tf.reduce_sum(x, name="total"),
        tf.constant(1.0, name="one"),
    ]
