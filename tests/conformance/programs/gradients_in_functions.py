"""`tf.gradients` in functions: all its arguments, derivatives of derivatives, loops, and growing TensorArrays."""

from conformance.program import program


def called(tf, function, *values):
    return tf.function(function)(*[tf.constant(value) for value in values])


@program()
def of_one_and_of_several(tf, np):
    return [
        called(tf, lambda x: tf.gradients(x**3, x), 2.0),
        called(tf, lambda x, y: tf.gradients([x**3, x * y], [x, y]), 2.0, 3.0),
        called(tf, lambda x, y: tf.gradients([x**3, x * y], [x, y], [tf.constant(2.0), None]), 2.0, 3.0),
        called(tf, lambda x: tf.gradients(x**2, x, grad_ys=x), 2.0),
        called(tf, lambda x: tf.gradients([x[None], x * 2.0], x), 2.0),
        called(tf, lambda x: tf.gradients(x, x), 2.0),
    ]


@program()
def of_what_is_not_connected(tf, np):
    return [
        called(tf, lambda x, y: tf.gradients(x**3, [x, y]), 2.0, 3.0),
        called(tf, lambda x, y: tf.gradients(x**3, [x, y], unconnected_gradients="zero"), 2.0, 3.0),
        called(tf, lambda x: tf.gradients(tf.constant(3.0), x), 2.0),
        called(tf, lambda x: tf.gradients(tf.cast(x, tf.int32), x), 2.0),
    ]


@program()
def of_values_between_and_with_stops(tf, np):
    def between(x):
        y = x * 2.0
        z = y * y
        return tf.gradients(z, y), tf.gradients(z, x)

    def stopped(x):
        y = x * 2.0
        return tf.gradients(y * x, [x, y], stop_gradients=[y])

    return [called(tf, between, 2.0), called(tf, stopped, 2.0)]


@program()
def of_variables(tf, np):
    v, table = tf.Variable(3.0), tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    rows = called(tf, lambda i: tf.gradients(tf.reduce_sum(tf.gather(table, i)), table), [0, 0])
    return [called(tf, lambda x: tf.gradients(v * v * x, v), 2.0), rows]


@program()
def of_derivatives_and_loops(tf, np):
    def second(x):
        (first,) = tf.gradients(x**3, x)
        return tf.gradients(first, x)

    def power(x):
        y = x
        for _ in tf.range(3):
            y = y * x
        return tf.gradients(y, x)

    def taped(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            (first,) = tf.gradients(x**3, x)
        return tape.gradient(first, x)

    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        outer = tf.function(lambda: tf.gradients(v**3, v)[0])()
    return [*[called(tf, function, 2.0) for function in (second, power, taped)], tape.gradient(outer, v)]


@program()
def what_is_refused(tf, np):
    errors = []
    x = tf.constant(2.0)
    for wrong in (
        lambda: tf.gradients(x**3, x),
        lambda: tf.function(lambda x: tf.gradients(x**2, x, grad_ys=[x, x]))(x),
    ):
        try:
            wrong()
        except Exception as error:
            errors.append([type(error).__name__, "Length mismatch" in str(error) or "eager execution" in str(error)])
    return errors


@program()
def arrays_that_grow_until_a_break(tf, np):
    @tf.function
    def decode(token, end):
        out = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
        out = out.write(0, token)
        for i in tf.range(12):
            token = (3 * token + 1) % 17
            out = out.write(i + 1, token)
            if token == end:
                break
        return out.stack(), out.size(), tf.reduce_sum(out.stack() * 2), tf.expand_dims(out.stack(), 0), out.stack()[-1]

    results = [decode(tf.constant(2), tf.constant(end)) for end in (5, 0, -1)]
    return [results, decode.experimental_get_tracing_count()]


@program()
def arrays_that_grow_in_a_while_loop(tf, np):
    @tf.function
    def powers(x, n):
        out = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        _, _, out = tf.while_loop(
            lambda i, y, out: i < n,
            lambda i, y, out: (i + 1, y * x, out.write(i, y)),
            (0, x, out),
            maximum_iterations=5,
        )
        return out.stack()

    v = tf.Variable(2.0)
    results = []
    for n in (3, 9):
        with tf.GradientTape() as tape:
            y = powers(v, tf.constant(n))
        results.append([y, tape.gradient(y, v)])
    return results
