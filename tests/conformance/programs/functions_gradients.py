"""tf.function and tapes: outside, inside, on both sides of a call, and what is connected to what."""

from conformance.program import program


def gradients(tf, f, *values):
    """The result and its gradient with respect to variables of these values."""
    variables = [tf.Variable(value) for value in values]
    with tf.GradientTape() as tape:
        y = f(*variables)
    return [y, tape.gradient(y, variables)]


def twice(tf, f, *values):
    """First gradients, and the gradients of each of those."""
    variables = [tf.Variable(value) for value in values]
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            y = f(*variables)
        first = inner.gradient(y, variables)
    return [first, [None if g is None else outer.gradient(g, variables) for g in first]]


@program()
def a_tape_outside(tf, np):
    @tf.function
    def f(x, w):
        return tf.reduce_sum(tf.tanh(tf.matmul(x, w)) ** 2)

    return gradients(tf, f, [[1.0, 2.0], [3.0, 4.0]], [[0.1], [-0.2]])


@program()
def an_argument_without_use(tf, np):
    return gradients(tf, tf.function(lambda a, b: a * 2.0), 3.0, 4.0)


@program()
def two_results_of_which_one_is_asked(tf, np):
    @tf.function
    def f(a, b):
        return a * 2.0, b * 3.0

    return [gradients(tf, lambda a, b: f(a, b)[0], 3.0, 4.0), gradients(tf, lambda a, b: f(a, b)[1], 3.0, 4.0)]


@program()
def a_result_that_is_cut(tf, np):
    @tf.function
    def f(a, b):
        return a * 2.0, tf.round(b)

    @tf.function
    def g(a, b):
        return tf.stop_gradient(a) * b

    return [
        gradients(tf, lambda a, b: f(a, b)[0], 3.0, 4.0),
        gradients(tf, lambda a, b: f(a, b)[1], 3.0, 4.0),
        gradients(tf, g, 3.0, 4.0),
        gradients(tf, tf.function(lambda a: tf.round(a)), 3.0),
    ]


@program()
def second_order_through_linear_functions(tf, np):
    doubled, same, shifted, negated = (
        tf.function(f) for f in (lambda a: a * 2.0, lambda a: a, lambda a: a + 1.0, lambda a: -a)
    )
    return [
        twice(tf, doubled, 3.0),
        twice(tf, lambda a: a * 2.0, 3.0),
        twice(tf, same, 3.0),
        twice(tf, shifted, 3.0),
        twice(tf, negated, 3.0),
        twice(tf, lambda a: 3.0 * doubled(a), 3.0),
        twice(tf, lambda a: doubled(doubled(a)), 3.0),
    ]


@program()
def second_order_of_several_arguments(tf, np):
    return [
        twice(tf, tf.function(lambda a, b: a * 2.0 + b), 3.0, 4.0),
        twice(tf, tf.function(lambda a, b: a * a + b), 3.0, 4.0),
        twice(tf, tf.function(lambda a, b: a * b), 3.0, 4.0),
        twice(tf, tf.function(lambda a, b: a - b), 3.0, 4.0),
        twice(tf, tf.function(lambda a, b, d: a * b + d), 3.0, 4.0, 5.0),
        twice(tf, tf.function(lambda a, b: tf.sin(a) + 3.0 * b), 3.0, 4.0),
    ]


@program()
def third_order(tf, np):
    def thrice(f):
        x = tf.Variable(3.0)
        with tf.GradientTape() as third:
            with tf.GradientTape() as second:
                with tf.GradientTape() as first:
                    y = f(x)
                g = first.gradient(y, x)
            h = second.gradient(g, x)
        return [g, h, third.gradient(h, x)]

    return [thrice(tf.function(lambda a: a * a)), thrice(tf.function(lambda a: a**4)), thrice(lambda a: a * a)]


@program()
def a_tape_inside(tf, np):
    @tf.function
    def f(a, b):
        with tf.GradientTape() as tape:
            tape.watch([a, b])
            y = a * a * 2.0
        return tape.gradient(y, [a, b])

    return f(tf.constant(3.0), tf.constant(4.0))


@program()
def tapes_inside_and_outside(tf, np):
    x = tf.Variable(3.0)

    @tf.function
    def slope(a):
        with tf.GradientTape() as tape:
            tape.watch(a)
            y = a**3
        return tape.gradient(y, a)

    with tf.GradientTape() as outer:
        g = slope(x)
    return [g, outer.gradient(g, x)]


@program()
def two_tapes_inside(tf, np):
    @tf.function
    def f(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(tf.sin(x) * x)
            g = inner.gradient(y, x)
        return y, g, outer.gradient(g, x)

    return f(tf.constant([0.5, 1.5]))


@program()
def a_persistent_tape_inside(tf, np):
    @tf.function
    def f(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x
            z = y * y
        return tape.gradient(z, x), tape.gradient(y, x), tape.gradient([y, z], x, unconnected_gradients="zero")

    return f(tf.constant([1.0, 2.0]))


@program()
def output_gradients_inside(tf, np):
    @tf.function
    def f(x, ct):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        return tape.gradient(y, x, output_gradients=ct)

    return f(tf.constant([1.0, 2.0]), tf.constant([10.0, 0.5]))


@program()
def what_is_captured(tf, np):
    v, unused, k = tf.Variable(3.0), tf.Variable(4.0), tf.constant(5.0)

    @tf.function
    def f(x):
        unused * 1.0
        return x * v * k

    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(k)
        y = f(x)
    return [tape.gradient(y, source) for source in (x, v, k, unused)] + [len(tape.watched_variables())]


@program()
def nested_functions(tf, np):
    w = tf.Variable(3.0)

    @tf.function
    def inner(a):
        return a * w

    @tf.function
    def outer(a):
        return inner(a) * inner(a) + w

    @tf.function
    def asked(a):
        with tf.GradientTape() as tape:
            y = outer(a)
        return tape.gradient(y, w)

    with tf.GradientTape() as tape:
        y = outer(tf.constant(2.0))
    return [y, tape.gradient(y, w), asked(tf.constant(2.0))]


@program()
def slices(tf, np):
    table = tf.Variable(np.arange(10, dtype=np.float32).reshape(5, 2))

    @tf.function
    def looked_up(rows):
        return tf.reduce_sum(tf.gather(table, rows) ** 2)

    @tf.function
    def inside(rows):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.gather(table, rows) ** 2)
        return tape.gradient(y, table)

    rows = tf.constant([1, 1, 3])
    with tf.GradientTape() as tape:
        y = looked_up(rows)
    return [tape.gradient(y, table), inside(rows)]


@program()
def accumulators(tf, np):
    f = tf.function(lambda x: tf.sin(x) * x)

    @tf.function
    def product(x, v):
        with tf.autodiff.ForwardAccumulator(x, v) as accumulator:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(x**3)
            g = tape.gradient(y, x)
        return accumulator.jvp(g)

    x, v = tf.constant([1.0, 2.0]), tf.constant([1.0, -1.0])
    with tf.autodiff.ForwardAccumulator(x, v) as accumulator:
        y = f(x)
    return [accumulator.jvp(y), product(x, v)]


@program()
def jacobians(tf, np):
    f = tf.function(lambda x: tf.sin(x) * tf.reduce_sum(x))

    @tf.function
    def inside(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.jacobian(y, x)

    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return [tape.jacobian(y, x), inside(x)]


@program()
def a_conditional(tf, np):
    @tf.function
    def f(a, b):
        return tf.cond(a > 0.0, lambda: a * a, lambda: b * b)

    def on_tensors(a, b):
        return f(1.0 * a, 1.0 * b)

    return [gradients(tf, on_tensors, 3.0, 4.0), gradients(tf, on_tensors, -3.0, 4.0), twice(tf, on_tensors, 3.0, 4.0)]


@program()
def a_loop(tf, np):
    @tf.function
    def f(a, b, n):
        return tf.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * b), (0, a))[1]

    return [gradients(tf, lambda a, b, n=n: f(1.0 * a, 1.0 * b, tf.constant(n)), 3.0, 2.0) for n in (0, 1, 3)]


@program()
def a_custom_gradient_inside(tf, np):
    @tf.custom_gradient
    def clipped(x):
        def grad(dy):
            return tf.clip_by_value(dy, -1.0, 1.0)

        return x * 1.0, grad

    @tf.function
    def f(x):
        return tf.reduce_sum(clipped(x) ** 2)

    return gradients(tf, f, [0.2, 3.0])


@program()
def a_function_inside_a_custom_gradient(tf, np):
    squared = tf.function(lambda x: x * x)

    @tf.custom_gradient
    def odd(x):
        def grad(dy):
            return dy * squared(x)

        return squared(x), grad

    return gradients(tf, odd, 3.0)


@program()
def integers_and_bools_pass(tf, np):
    @tf.function
    def f(x, mask, k):
        return tf.where(mask, x, -x) * tf.cast(k, tf.float32), k + 1, tf.logical_not(mask)

    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y, k, mask = f(x, tf.constant([True, False]), tf.constant(3))
    return [y, k, mask, tape.gradient(y, x)]


@program()
def control_flow_under_a_tape_inside(tf, np):
    v = tf.Variable(1.0)

    @tf.function
    def chosen(a, b):
        with tf.GradientTape() as tape:
            tape.watch([a, b])
            y = tf.cond(a > 0.0, lambda: a * 2.0, lambda: b * 3.0)
        return tape.gradient(y, [a, b])

    @tf.function
    def looped(a, b):
        with tf.GradientTape() as tape:
            tape.watch([a, b])
            y = tf.while_loop(lambda i, x: i < 0, lambda i, x: (i + 1, x * b), (0, a))[1]
        return tape.gradient(y, [a, b])

    @tf.function
    def trained(x):
        with tf.GradientTape() as tape:
            y = tf.cond(x > 0.0, lambda: v * x, lambda: x)
        g = tape.gradient(y, v)
        v.assign_sub(g)
        return y, g

    a, b = tf.constant(3.0), tf.constant(4.0)
    return [chosen(a, b), looped(a, b), trained(a), trained(-b), v]


@program()
def inside_other_transformations(tf, np):
    squared = tf.function(lambda row: tf.reduce_sum(row * row))
    rows = tf.constant([[1.0, 2.0], [3.0, 4.0]])

    @tf.custom_gradient
    def odd(x):
        def grad(dy):
            return dy * squared(x) if dy > 0 else dy

        return squared(x), grad

    return [tf.map_fn(squared, rows), tf.vectorized_map(squared, rows), gradients(tf, odd, [3.0, 1.0])]


@program()
def tapes_that_watch_by_hand(tf, np):
    w = tf.Variable(3.0)
    f = tf.function(lambda: w * w)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        y = f()
    unwatched = tape.gradient(y, w)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(w)
        y = f()
    watched = tape.gradient(y, w)
    with tf.GradientTape(persistent=True) as tape:
        with tape.stop_recording():
            a = f()
        b = f() * a
    return [unwatched, watched, tape.gradient(b, w)]


@program()
def complex_numbers(tf, np):
    return gradients(tf, tf.function(lambda z: tf.math.real(z * tf.math.conj(z))), [1.0 + 2.0j, 3.0 - 1.0j])
