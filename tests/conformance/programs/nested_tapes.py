"""Second and third order: tapes inside tapes, and persistent tapes asked while they record."""

from conformance.program import program


@program()
def second_order(tf, np):
    x = tf.Variable([1.0, -2.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x**4
        dy = inner.gradient(y, x)
    return [dy, outer.gradient(dy, x)]


@program()
def third_order(tf, np):
    x = tf.Variable(0.7)
    with tf.GradientTape() as third:
        with tf.GradientTape() as second:
            with tf.GradientTape() as first:
                y = tf.sin(x) * tf.exp(2.0 * x)
            d1 = first.gradient(y, x)
        d2 = second.gradient(d1, x)
    return [d1, d2, third.gradient(d2, x)]


@program()
def fourth_order_of_a_power(tf, np):
    x = tf.Variable(1.2)
    with tf.GradientTape() as t4:
        with tf.GradientTape() as t3:
            with tf.GradientTape() as t2:
                with tf.GradientTape() as t1:
                    y = x**5
                d1 = t1.gradient(y, x)
            d2 = t2.gradient(d1, x)
        d3 = t3.gradient(d2, x)
    return [d1, d2, d3, t4.gradient(d3, x)]


@program()
def mixed_partial_derivatives(tf, np):
    x, y = tf.Variable(1.5), tf.Variable(0.5)
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            f = x**2 * y**3 + tf.sin(x * y)
        fx, fy = inner.gradient(f, [x, y])
    return {
        "xx": outer.gradient(fx, x),
        "xy": outer.gradient(fx, y),
        "yx": outer.gradient(fy, x),
        "yy": outer.gradient(fy, y),
    }


@program()
def a_hessian_row_by_row(tf, np):
    x = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_prod(x) + tf.reduce_sum(x**3)
        g = inner.gradient(y, x)
        rows = [g[i] for i in range(3)]
    return [outer.gradient(row, x) for row in rows]


@program()
def a_hessian_vector_product(tf, np):
    x, v = tf.Variable([1.0, 2.0, -1.0]), tf.constant([0.5, -1.0, 2.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(tf.exp(x) * tf.reduce_sum(x * x))
        directional = tf.reduce_sum(inner.gradient(y, x) * v)
    return outer.gradient(directional, x)


@program()
def newtons_method(tf, np):
    x = tf.Variable(2.0)
    path = []
    for _ in range(5):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = x**4 - 3.0 * x**2 + x
            slope = inner.gradient(y, x)
        x.assign_sub(slope / outer.gradient(slope, x))
        path.append(x.numpy())
    return path


@program()
def a_gradient_penalty(tf, np):
    w, x = tf.Variable([[1.0, -0.5], [0.3, 2.0]]), tf.Variable([[0.2, 0.7]])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            score = tf.reduce_sum(tf.tanh(x @ w))
        slope = inner.gradient(score, x)
        penalty = (tf.sqrt(tf.reduce_sum(slope**2)) - 1.0) ** 2
    return [penalty, *outer.gradient(penalty, [w, x])]


@program()
def a_step_of_an_inner_optimiser(tf, np):
    w, rate = tf.Variable([1.0, 2.0]), tf.Variable(0.1)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            loss = tf.reduce_sum(w**2 * [1.0, 3.0])
        adapted = w - rate * inner.gradient(loss, w)
        meta = tf.reduce_sum((adapted - 1.0) ** 2)
    return [meta, *outer.gradient(meta, [w, rate])]


@program()
def the_outer_tape_uses_value_and_gradient(tf, np):
    x = tf.Variable(0.8)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.exp(x)
        z = y * inner.gradient(y, x) + x
    return outer.gradient(z, x)


@program()
def the_inner_gradient_outside_the_outer_tape(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        y = x**3
    dy = inner.gradient(y, x)
    return [dy, outer.gradient(dy, x)]


@program()
def a_linear_function_has_no_second_derivative(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            y = 3.0 * x
        dy = inner.gradient(y, x)
    return [dy, outer.gradient(dy, x), outer.gradient(dy, x, unconnected_gradients="zero")]


@program()
def second_order_of_each_simple_op(tf, np):
    out = {}
    functions = {
        "add": lambda x: x + 2.0 * x,
        "reduce_sum": tf.reduce_sum,
        "reshape": lambda x: tf.reshape(x, [2, 1]),
        "square": tf.square,
        "relu": tf.nn.relu,
        "abs": tf.abs,
        "sign": tf.sign,
        "reduce_max": tf.reduce_max,
        "maximum": lambda x: tf.maximum(x, 0.0),
        "matmul_with_itself": lambda x: x[None] @ x[:, None],
        "matmul_with_a_constant": lambda x: x[None] @ tf.constant([[1.0], [2.0]]),
        "divide_by": lambda x: 1.0 / x,
        "divided": lambda x: x / 4.0,
        "softmax": tf.nn.softmax,
        "cast": lambda x: tf.cast(x, tf.float64),
    }
    for name, function in functions.items():
        x = tf.Variable([1.5, -0.5])
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = function(x)
            dy = inner.gradient(y, x)
        out[name] = [dy, outer.gradient(dy, x)]
    return out


@program()
def watched_by_the_outer_tape_alone(tf, np):
    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x**3
        dy = inner.gradient(y, x)
        z = dy * x
    with tf.GradientTape() as unwatched:
        with tf.GradientTape() as again:
            again.watch(x)
            w = x**3
        dw = again.gradient(w, x)
    return [outer.gradient(z, x), unwatched.gradient(dw, x)]


@program()
def with_respect_to_an_inner_target(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            h = x * x
            y = h * h
        dh = inner.gradient(y, h)
    return [dh, outer.gradient(dh, x), outer.gradient(dh, h)]


@program()
def two_inner_tapes_in_a_row(tf, np):
    x = tf.Variable(1.3)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x**3
        first = inner.gradient(y, x)
        with tf.GradientTape() as inner:
            z = first * x
        second = inner.gradient(z, x)
    return [first, second, outer.gradient(second, x)]


@program()
def an_inner_persistent_tape(tf, np):
    x, w = tf.Variable(1.5), tf.Variable(-0.5)
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape(persistent=True) as inner:
            y = x**2 * w
            z = tf.exp(w) * y
        dy, dz = inner.gradient(y, x), inner.gradient(z, [x, w])
    return [outer.gradient(dy, [x, w]), outer.gradient(dz, [x, w]), inner.gradient(z, x)]


@program(fresh=True)
def a_persistent_tape_asked_while_it_records(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x**4
        d1 = tape.gradient(y, x)
        d2 = tape.gradient(d1, x)
    return [d1, d2, tape.gradient(d1, x), tape.gradient(d2, x), tape.gradient(y, x)]


@program(fresh=True)
def a_persistent_tape_goes_on_after_a_gradient(tf, np):
    x, w = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x * w
        g = tape.gradient(y, x)
        z = g * g + y
    return [tape.gradient(z, [x, w]), tape.gradient(z, g), tape.gradient(y, x)]


@program()
def a_persistent_gradient_outside_the_recording(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x**3
        with tape.stop_recording():
            g = tape.gradient(y, x)
        z = y + g * x
    return [g, tape.gradient(z, x), tape.gradient(g, x)]


@program()
def second_order_through_slices(tf, np):
    table = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(tf.gather(table, [0, 2, 0]) ** 3)
        g = inner.gradient(y, table)
        z = tf.reduce_sum(tf.convert_to_tensor(g) * [[1.0, 10.0], [100.0, 1000.0], [2.0, 20.0]])
    return [g, outer.gradient(z, table)]


@program()
def second_order_of_a_classifier(tf, np):
    w, x = tf.Variable([[0.2, -0.4], [1.0, 0.3]]), tf.constant([[1.0, 2.0], [-1.0, 0.5]])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1], logits=tf.nn.relu(x @ w))
            )
        g = inner.gradient(loss, w)
        size = tf.reduce_sum(g * g)
    return [g, outer.gradient(size, w)]
