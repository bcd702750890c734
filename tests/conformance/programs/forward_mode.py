"""tf.autodiff.ForwardAccumulator: tangents, whom they belong to, and how accumulators and tapes nest."""

from conformance.probes import raises
from conformance.program import program

X = [1.0, 2.0, 3.0]


@program()
def a_jacobian_vector_product(tf, np):
    x = tf.constant(X)
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0, -1.0])) as acc:
        y = tf.sin(x) * x
        z = tf.reduce_sum(y) / (1.0 + x)
    return [acc.jvp(y), acc.jvp(z), acc.jvp(x)]


@program()
def a_linear_regression(tf, np):
    x = tf.constant([[2.0, 3.0], [1.0, 4.0]])
    target = tf.constant([[1.0], [-1.0]])
    kernel, bias = tf.Variable([[0.5], [-0.25]]), tf.Variable([0.1])

    def loss():
        return tf.reduce_sum((tf.matmul(x, kernel) + bias - target) ** 2.0)

    columns = []
    for tangent in ([[1.0], [0.0]], [[0.0], [1.0]]):
        with tf.autodiff.ForwardAccumulator(kernel, tf.constant(tangent)) as acc:
            columns.append(acc.jvp(loss()))
    with tf.GradientTape() as tape:
        value = loss()
    return [columns, tape.gradient(value, [kernel, bias])]


@program()
def several_primals_in_a_structure(tf, np):
    a, b, v = tf.constant(2.0), tf.constant(3.0), tf.Variable(4.0)
    primals = {"a": a, "rest": (b, [v])}
    tangents = {"a": tf.constant(1.0), "rest": (tf.constant(10.0), [tf.constant(100.0)])}
    with tf.autodiff.ForwardAccumulator(primals, tangents) as acc:
        y = {"product": a * b * v, "parts": [a + b, (v * v, tf.constant(1.0))]}
    return [acc.jvp(y), acc.jvp(primals)]


@program()
def tangents_as_python_numbers_and_arrays(tf, np):
    x, y = tf.constant(2.0), tf.constant(X)
    with (
        tf.autodiff.ForwardAccumulator(x, 3.0) as one,
        tf.autodiff.ForwardAccumulator(y, np.array([1.0, 0.0, 2.0])) as two,
    ):
        z = x * y * y
    return [one.jvp(z), two.jvp(z)]


@program()
def a_hessian_vector_product_forward_over_reverse(tf, np):
    v = tf.Variable([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(v, tf.constant([1.0, 0.0])) as acc:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(v**3.0) * v[1]
        backward = tape.gradient(y, v)
    return [backward, acc.jvp(backward), acc.jvp(y)]


@program()
def reverse_over_forward(tf, np):
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 2.0, 3.0])) as acc:
            y = tf.reduce_sum(x**3 * tf.exp(-x))
        tangent = acc.jvp(y)
    return [tangent, tape.gradient(tangent, x)]


@program()
def a_jvp_asked_after_the_outer_tape_closed(tf, np):
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
            y = x**3
    return tape.gradient(acc.jvp(y), x)


@program()
def a_tape_inside_sees_no_tangents(tf, np):
    x = tf.constant(2.0)
    found = []
    for use in (lambda y, t: t, lambda y, t: t * x, lambda y, t: y + t):
        with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc, tf.GradientTape() as tape:
            tape.watch(x)
            y = x**3
            z = use(y, acc.jvp(y))
        found.append(tape.gradient(z, x))
    return found


@program()
def a_tape_outside_differentiates_what_uses_the_tangent(tf, np):
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
            y = x**3
            z = acc.jvp(y) * x
            w = acc.jvp(z)
    return [tape.gradient(z, x), w]


@program()
def accumulators_nest(tf, np):
    primal = tf.constant(1.1)
    with tf.autodiff.ForwardAccumulator(primal, tf.constant(1.0)) as outer:
        with tf.autodiff.ForwardAccumulator(primal, tf.constant(1.0)) as inner:
            y = primal ** tf.constant(3.5)
    first = inner.jvp(y)
    return [first, outer.jvp(first), outer.jvp(y), inner.jvp(outer.jvp(y)), inner.jvp(first)]


@program()
def third_order(tf, np):
    x = tf.constant(0.7)
    make = tf.autodiff.ForwardAccumulator
    with make(x, 1.0) as a, make(x, 1.0) as b, make(x, 1.0) as c:
        y = tf.sin(x) * tf.exp(x)
    return [c.jvp(y), b.jvp(c.jvp(y)), a.jvp(b.jvp(c.jvp(y)))]


@program()
def leaving_out_of_order(tf, np):
    x = tf.constant(2.0)
    outer, inner = (tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) for _ in range(2))
    outer.__enter__()
    inner.__enter__()
    y = x**3
    outer.__exit__(None, None, None)
    z = x**3
    inner.__exit__(None, None, None)
    return [outer.jvp(y), inner.jvp(y), outer.jvp(z), inner.jvp(z), outer.jvp(inner.jvp(y)), outer.jvp(inner.jvp(z))]


@program()
def entered_again(tf, np):
    x = tf.constant(2.0)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        y = x * x
    outside = y * y
    with acc:
        inside, mixed = y * y, x * y
    return [acc.jvp(one) for one in (outside, inside, mixed)]


@program()
def a_tape_that_resumes_inside_an_accumulator_lies_inside(tf, np):
    x = tf.constant(2.0)
    tape = tf.GradientTape(persistent=True)
    with tape:
        tape.watch(x)
        with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
            with tape.stop_recording():
                pass
            y = x**3
    return [tape.gradient(acc.jvp(y), x), tape.gradient(y, x)]


@program()
def a_variable_whatever_its_version(tf, np):
    v = tf.Variable(2.0)
    with tf.autodiff.ForwardAccumulator(v, tf.constant(1.0)) as acc:
        y = v * v
        v.assign(5.0)
        z = v * v
        v.assign_add(v * 2.0)
        w = v * v
        reads = [v.read_value(), tf.identity(v), tf.convert_to_tensor(v), v.assign(4.0), v.assign_sub(1.0) * 2.0]
    return [acc.jvp(y), acc.jvp(z), acc.jvp(w), acc.jvp(v), acc.jvp(reads)]


@program()
def an_assignment_carries_no_tangent_to_another_variable(tf, np):
    v, u = tf.Variable(2.0), tf.Variable(7.0)
    with tf.autodiff.ForwardAccumulator(v, tf.constant(1.0)) as acc:
        u.assign(v * 3.0)
        made = tf.Variable(v * 1.0)
        y, z = u * u, made * made
    return [acc.jvp(y), acc.jvp(z), acc.jvp(u), acc.jvp(made)]


@program()
def what_has_no_tangent(tf, np):
    x = tf.constant([1.0, -2.0])
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as acc:
        integers = tf.cast(x, tf.int32)
        cut = [
            integers, tf.cast(integers, tf.float32), tf.round(x), tf.sign(x), tf.argmax(x), tf.stop_gradient(x),
            x > 1.0, tf.zeros_like(x), tf.ones_like(x), tf.constant(3.0), tf.shape(x), tf.floor(x),
        ]  # fmt: skip
        kept = [tf.abs(x), tf.nn.relu(x), tf.reduce_max(x), tf.where(x > 0.0, x, 2.0), tf.gather(x, [1, 1]), x % 2.0]
    return [acc.jvp(cut), acc.jvp(kept)]


@program()
def unconnected_gradients_zero(tf, np):
    x = tf.constant(2.0)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        y = [x * x, tf.constant([1.0, 2.0]), tf.constant([1, 2])]
    v = tf.Variable([1.0])
    return [
        acc.jvp(y, unconnected_gradients=tf.UnconnectedGradients.ZERO),
        acc.jvp([v], unconnected_gradients="zero"),
        raises(lambda: acc.jvp(x, unconnected_gradients="some")),
    ]


@program()
def before_it_is_entered(tf, np):
    x = tf.constant(2.0)
    acc = tf.autodiff.ForwardAccumulator(x, tf.constant(3.0))
    y = x * x
    return [acc.jvp(x), acc.jvp(y)]


@program()
def complex_tangents(tf, np):
    x = tf.constant([1 + 2j, 3 - 1j], tf.complex128)
    t = tf.constant([1 + 1j, 1j], tf.complex128)
    with tf.autodiff.ForwardAccumulator(x, t) as acc:
        y = [x * x, tf.math.conj(x), tf.abs(x), tf.math.real(x), tf.exp(x), tf.reduce_sum(x * tf.math.conj(x))]
    return acc.jvp(y)


@program()
def many_ops(tf, np):
    x = tf.constant([[0.3, -0.6, 0.9], [1.2, 0.1, -0.4]], tf.float64)
    t = tf.constant([[1.0, 0.5, -1.0], [0.25, -2.0, 3.0]], tf.float64)
    with tf.autodiff.ForwardAccumulator(x, t) as acc:
        y = [
            tf.nn.softmax(x), tf.nn.log_softmax(x), tf.reduce_logsumexp(x, axis=1), tf.sigmoid(x), tf.tanh(x),
            tf.matmul(x, x, transpose_b=True), tf.transpose(x), tf.reshape(x, [6]), tf.concat([x, 2.0 * x], 0),
            tf.stack([x, x * x]), tf.reduce_prod(x, axis=0), tf.cumsum(x, axis=1), x[:, ::2], tf.tile(x, [1, 2]),
            tf.reduce_mean(x), tf.norm(x), tf.clip_by_value(x, -0.5, 0.5), tf.maximum(x, 0.2),
            tf.pad(x, [[1, 0], [0, 1]]),
            tf.boolean_mask(x, [True, False]), tf.expand_dims(x, 0), tf.cast(x, tf.float32), tf.pow(tf.abs(x), 1.5),
        ]  # fmt: skip
    return acc.jvp(y)


@program()
def sparse_gradients_inside(tf, np):
    table = tf.Variable([[1.0], [2.0], [3.0]])
    with tf.autodiff.ForwardAccumulator(table, tf.ones([3, 1])) as acc:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.gather(table, [0, 0, 2]) ** 3)
        g = tape.gradient(y, table)
    return [g, acc.jvp(g.values), acc.jvp(g.indices), acc.jvp(y)]


@program()
def a_step_of_newton(tf, np):
    v = tf.Variable([0.5, -0.3])
    for _ in range(3):
        with tf.autodiff.ForwardAccumulator(v, tf.constant([1.0, 1.0])) as acc:
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(tf.exp(v) - v * 2.0)
            g = tape.gradient(y, v)
        v.assign_sub(g / acc.jvp(g))
    return v


@program()
def under_a_persistent_tape_and_its_gradient(tf, np):
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
            y = x**4
            g = tape.gradient(y, x)
    return [g, acc.jvp(g), tape.gradient(acc.jvp(g), x)]


@program()
def a_tangent_that_is_watched(tf, np):
    x, t = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(t)
        with tf.autodiff.ForwardAccumulator(x, t) as acc:
            y = x**3
    return [tape.gradient(acc.jvp(y), t), acc.jvp(x)]


@program()
def an_exception_inside(tf, np):
    x = tf.constant(2.0)
    acc = tf.autodiff.ForwardAccumulator(x, tf.constant(1.0))
    try:
        with acc:
            y = x * x
            raise KeyError("out")
    except KeyError:
        z = x * x
    return [acc.jvp(y), acc.jvp(z)]


@program()
def another_thread(tf, np):
    import threading

    x, made = tf.constant(2.0), []
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        thread = threading.Thread(target=lambda: made.append(x * x))
        thread.start()
        thread.join()
    return acc.jvp(made[0])


@program()
def an_op_without_a_gradient(tf, np):
    image = tf.ones([1, 2, 2, 3])
    with tf.autodiff.ForwardAccumulator(image, image):
        return raises(lambda: tf.image.adjust_contrast(image, 2.0))


@program(fresh=True)
def an_op_declared_to_have_none(tf, np):
    tf.no_gradient("AdjustContrastv2")
    image = tf.ones([1, 2, 2, 3])
    with tf.autodiff.ForwardAccumulator(image, image) as acc:
        y = tf.image.adjust_contrast(image, 2.0)
    return acc.jvp(y)


@program()
def mistakes(tf, np):
    x, v = tf.constant([1.0, 2.0]), tf.Variable(1.0)
    make = tf.autodiff.ForwardAccumulator

    def twice():
        with make(x, x) as acc, acc:
            pass

    return [
        raises(lambda: make([x, x], [x, x])),
        raises(lambda: make([v, v], [v, v])),
        raises(twice),
        raises(lambda: make(x, tf.constant([1.0, 2.0], tf.float64))),
        raises(lambda: make(2.0, 1.0)),
        raises(lambda: make(None, None)),
        raises(lambda: make(x, x).jvp(2.0)),
        raises(lambda: make(x, x).jvp(None)),
        raises(lambda: make([x], [None])),
    ]


@program()
def custom_gradients_are_looked_through(tf, np):
    @tf.custom_gradient
    def wrong(x):
        return x * x, lambda dy: 100.0 * dy

    x = tf.constant(3.0)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        y = wrong(x)
    return acc.jvp(y)


@program()
def functions(tf, np):
    @tf.function
    def f(x):
        return x**3, tf.reduce_sum(x * x)

    x = tf.constant(X)
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0, 2.0])) as acc:
        y = f(x)
    return acc.jvp(y)


@program(fresh=True)
def integer_primals_are_warned_of(tf, np):
    import logging

    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    tf.get_logger().addHandler(handler)
    x = tf.constant([1, 2])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1, 1])) as acc:
        y = [x * x, tf.cast(x, tf.float32) * 2.0]
    return [acc.jvp(y), acc.jvp(x), said]


@program()
def second_derivatives_that_are_zero_or_none(tf, np):
    x = tf.constant([-1.5, 0.5, 2.0])
    found = []
    for f in (tf.nn.relu, tf.nn.relu6, tf.nn.leaky_relu, tf.abs, tf.reduce_max, tf.reduce_sum, tf.sign, tf.square):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as acc:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            g = tape.gradient(y, x)
        found.append(acc.jvp(g))
    return found
