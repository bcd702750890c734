"""`tf.debugging` of ranks, dtypes and kinds of values: what is known without reading a value."""

from conformance.probes import message, raises
from conformance.program import program


@program()
def ranks_are_checked(tf, np):
    debugging, x = tf.debugging, tf.constant([[1.0, 2.0]])
    return [
        debugging.assert_rank_in(x, [1, 2]),
        debugging.assert_rank_in(x, (tf.constant(2),), "with a message", "name"),
        message(lambda: debugging.assert_rank_in(x, (0, 1))),
        message(lambda: debugging.assert_rank_in(x, (0, 1), message="rows")),
        message(lambda: debugging.assert_rank(x, 1, message="rows")),
        message(lambda: debugging.assert_rank_at_least(x, 3, message="rows")),
        message(lambda: debugging.assert_rank(x, [2])),
        message(lambda: debugging.assert_rank(x, np.int64(2))),
        message(lambda: debugging.assert_rank_in(x, [[2]])),
        message(lambda: debugging.assert_rank_in(x, [2.0])),
    ]


@program()
def scalars_are_checked(tf, np):
    return [
        tf.debugging.assert_scalar(1.0),
        tf.debugging.assert_scalar(tensor=tf.Variable(1.0)),
        message(lambda: tf.debugging.assert_scalar([1.0])),
        message(lambda: tf.debugging.assert_scalar([[1.0]], message="the loss")),
    ]


@program()
def dtypes_are_checked(tf, np):
    debugging = tf.debugging
    return [
        debugging.assert_integer([1, 2]),
        debugging.assert_integer(tf.constant(1, tf.uint8), name="name"),
        message(lambda: debugging.assert_integer(1.0)),
        message(lambda: debugging.assert_integer([True], message="labels")),
        debugging.assert_type(1, tf.int32),
        message(lambda: debugging.assert_type(1.0, tf.int32, message="labels")),
        message(lambda: debugging.assert_positive(tf.constant(-1), message="sizes")),
    ]


@program()
def floating_dtypes_are_compared(tf, np):
    same = tf.debugging.assert_same_float_dtype
    single, double = tf.constant(1.0), tf.constant(1.0, tf.float64)
    return [
        same(),
        same([single, None, tf.Variable(2.0)]),
        same(dtype=tf.float64),
        same([double], tf.float64),
        raises(lambda: same([single, double]), "must be of the same type"),
        raises(lambda: same([single], tf.float64), "must be of the same type"),
        message(lambda: same([tf.constant(1)])),
        message(lambda: same(dtype=tf.int32)),
    ]


@program()
def kinds_of_values_are_told_apart(tf, np):
    values = [tf.constant(1), tf.constant(1j), tf.constant(True), tf.constant("a"), tf.Variable(1.0), 1, np.zeros(1)]
    containers = [[1], (1,), {1: 2}, 1, "a", b"a", np.zeros(2), iter([]), None]
    return [
        [tf.debugging.is_numeric_tensor(value) for value in values],
        [message(lambda value=value: tf.debugging.assert_proper_iterable(value)) for value in containers],
    ]


@program()
def tensors_of_a_traced_function_are_symbolic(tf, np):
    seen = []

    @tf.function
    def traced(x):
        seen.extend([tf.is_symbolic_tensor(x), tf.is_symbolic_tensor(x + 1)])
        return x

    traced(tf.constant(1))
    return [*seen, *(tf.is_symbolic_tensor(value) for value in (tf.constant(1), tf.Variable(1), 1))]


@program()
def the_scopes_that_are_open_have_a_name(tf, np):
    names = [tf.get_current_name_scope()]
    with tf.name_scope("outer"):
        names.append(tf.get_current_name_scope())
        with tf.name_scope("inner"):
            names.append(tf.get_current_name_scope())
        with tf.name_scope("absolute/"):
            names.append(tf.get_current_name_scope())
    return [*names, tf.get_current_name_scope()]
