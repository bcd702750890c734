"""Control flow inside tf.function: one graph for all that may run, zeros for what did not."""

from conformance.probes import raises
from conformance.program import program


@program()
def a_loop_with_and_without_trips(tf, np):
    c, d = tf.Variable(2.0), tf.Variable(3.0)

    @tf.function
    def power(n):
        return tf.while_loop(lambda i, z: i < n, lambda i, z: (i + 1, z * d), (0, c))[1]

    out = []
    for n in (0, 1, 4):
        with tf.GradientTape() as tape:
            y = power(tf.constant(n))
        out.append([y, tape.gradient(y, [c, d])])
    return out


@program()
def a_loop_whose_condition_is_a_value(tf, np):
    @tf.function
    def grow(x, w):
        return tf.while_loop(lambda y: tf.reduce_sum(y) < 20.0, lambda y: (y * w + 1.0,), (x,))[0]

    x, w = tf.Variable([1.0, 2.0]), tf.Variable([1.5, 1.25])
    with tf.GradientTape() as tape:
        y = grow(x, w)
    return [y, tape.gradient(y, [x, w])]


@program()
def both_branches(tf, np):
    a, b = tf.Variable(2.0), tf.Variable([3.0, 5.0])

    @tf.function
    def choose(p):
        return tf.cond(p, lambda: a * a * tf.ones([2]), lambda: b * 2.0)

    out = []
    for p in (True, False):
        with tf.GradientTape() as tape:
            y = choose(tf.constant(p))
        out.append([y, tape.gradient(y, [a, b])])
    return out


@program()
def branches_of_structures(tf, np):
    @tf.function
    def choose(x):
        return tf.cond(x > 1.0, lambda: {"a": x * x, "b": [x, 1.0]}, lambda: {"a": -x, "b": [x + 1.0, 2.0]})

    out = []
    for x in [tf.Variable(0.5), tf.Variable(2.0)]:
        with tf.GradientTape() as tape:
            found = choose(x)
            total = found["a"] * found["b"][0]
        out.append([found, tape.gradient(total, x)])
    return out


@program()
def a_case_of_several(tf, np):
    a, b, c = tf.Variable(2.0), tf.Variable(3.0), tf.Variable(5.0)

    @tf.function
    def choose(x):
        return tf.case([(x < 0.0, lambda: a * x), (x < 1.0, lambda: b * x)], default=lambda: c * x)

    out = []
    for value in (-1.0, 0.5, 2.0):
        with tf.GradientTape() as tape:
            y = choose(tf.constant(value))
        out.append([y, tape.gradient(y, [a, b, c])])
    return out


@program()
def a_switch(tf, np):
    a, b = tf.Variable(2.0), tf.Variable(3.0)

    @tf.function
    def choose(i):
        return tf.switch_case(i, [lambda: a * a, lambda: b * b, lambda: a * b])

    out = []
    for i in (0, 1, 2, 7):
        with tf.GradientTape() as tape:
            y = choose(tf.constant(i))
        out.append([y, tape.gradient(y, [a, b])])
    return out


@program()
def cond_in_a_loop(tf, np):
    x, w = tf.Variable(1.5), tf.Variable(0.5)

    @tf.function
    def walk(n):
        def step(i, y):
            return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: y + x, lambda: y * w)

        return tf.while_loop(lambda i, y: i < n, step, (0, x * w))[1]

    out = []
    for n in (1, 2, 5):
        with tf.GradientTape() as tape:
            y = walk(tf.constant(n))
        out.append([y, tape.gradient(y, [x, w])])
    return out


@program()
def second_order_through_a_loop(tf, np):
    x = tf.Variable(1.3)

    @tf.function
    def cube(x):
        return tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * x), (0, x))[1]

    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = cube(x)
        g = inner.gradient(y, x)
    return [y, g, outer.gradient(g, x)]


@program()
def maps_and_scans(tf, np):
    w, x = tf.Variable([2.0, -1.0]), tf.Variable([[1.0, 2.0], [3.0, 4.0], [0.5, 0.25]])

    @tf.function
    def f(x):
        return [
            tf.map_fn(lambda row: tf.tanh(row * w), x),
            tf.map_fn(lambda row: (row, tf.reduce_sum(row)), x, fn_output_signature=(tf.float32, tf.float32)),
            tf.scan(lambda a, row: a * w + row, x),
            tf.scan(lambda a, row: a + tf.reduce_sum(row), x, 0.0, reverse=True),
            tf.foldl(lambda a, row: a * row, x),
            tf.foldr(lambda a, row: a - row * w, x, tf.zeros([2])),
            tf.vectorized_map(lambda row: tf.reduce_sum(row * w), x),
        ]

    with tf.GradientTape() as tape:
        found = f(x)
    return [found, tape.gradient(found, [w, x])]


@program()
def a_body_is_traced_once(tf, np):
    calls = []

    @tf.function
    def f(x):
        def step(i, y):
            calls.append("body")
            return i + 1, y * 2.0

        return tf.while_loop(lambda i, y: i < 5, step, (0, x))[1]

    return [f(tf.constant(1.0)), f(tf.constant(2.0)), calls]


@program()
def maximum_iterations(tf, np):
    @tf.function
    def f(x, n):
        return tf.while_loop(lambda y: y < n, lambda y: [y * 2.0], [x], maximum_iterations=3)

    return [f(tf.constant(1.0), tf.constant(4.0)), f(tf.constant(1.0), tf.constant(100.0))]


@program()
def a_recurrent_network(tf, np):
    x = tf.constant(np.sin(np.arange(12.0)).reshape(6, 2).astype(np.float32))
    w, u = tf.Variable([[0.5, -0.25], [0.1, 0.75]]), tf.Variable([[1.0, 0.5], [-0.5, 0.25]])

    @tf.function
    def run(x):
        states = tf.scan(lambda h, e: tf.tanh(tf.linalg.matvec(w, h) + tf.linalg.matvec(u, e)), x, tf.zeros([2]))
        return tf.reduce_sum(states[-1] ** 2)

    with tf.GradientTape() as tape:
        loss = run(x)
    return [loss, tape.gradient(loss, [w, u])]


@program()
def wrong_ones(tf, np):
    @tf.function
    def other_count(n):
        return tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1,), (0, 1.0))

    return raises(lambda: other_count(tf.constant(2)))


@program()
def a_variable_assigned_in_a_loop(tf, np):
    v, x = tf.Variable(0.0), tf.Variable(2.0)

    @tf.function
    def f(n):
        def body(i, y):
            v.assign_add(1.0)
            return i + 1, y * x + 1.0

        return tf.while_loop(lambda i, y: i < n, body, (0, x))[1]

    with tf.GradientTape() as tape:
        y = f(tf.constant(3))
    return [y, v, tape.gradient(y, x), f(tf.constant(0)), v]


@program()
def a_variable_assigned_in_a_branch(tf, np):
    v = tf.Variable(1.0)

    @tf.function
    def f(p):
        tf.cond(p, lambda: v.assign(5.0), lambda: v.assign_add(1.0))
        return v * 2.0

    return [f(tf.constant(True)), f(tf.constant(False)), v]


@program()
def loops_in_loops(tf, np):
    x = tf.Variable(1.1)

    @tf.function
    def f(n, m):
        def outer(i, y):
            return i + 1, tf.while_loop(lambda j, z: j < m, lambda j, z: (j + 1, z * x), (0, y))[1]

        return tf.while_loop(lambda i, y: i < n, outer, (0, x))[1]

    out = []
    for n, m in ((0, 3), (2, 0), (2, 3)):
        with tf.GradientTape() as tape:
            y = f(tf.constant(n), tf.constant(m))
        out.append([y, tape.gradient(y, x)])
    return out


@program()
def a_tape_around_a_loop_inside(tf, np):
    @tf.function
    def slope(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.foldl(lambda a, e: a * x + e, tf.constant([1.0, 2.0, 3.0, 4.0]), x)
        return tape.gradient(y, x) * n

    return slope(tf.constant(0.5), tf.constant(2.0))


@program()
def a_gradient_descent_as_a_loop(tf, np):
    x = tf.constant(np.linspace(-1.0, 1.0, 8).astype(np.float32))
    y = 3.0 * x + 0.5

    @tf.function
    def fit(w, b):
        def step(i, w, b):
            error = w * x + b - y
            return i + 1, w - 0.3 * tf.reduce_mean(error * x), b - 0.3 * tf.reduce_mean(error)

        return tf.while_loop(lambda i, w, b: i < 30, step, (0, w, b))[1:]

    w, b = tf.Variable(0.0), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        found = fit(w, b)
        loss = tf.reduce_mean((found[0] * x + found[1] - y) ** 2)
    return [found, loss, tape.gradient(loss, [w, b])]
