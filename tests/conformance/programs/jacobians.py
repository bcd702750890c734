"""Jacobians, also of each example: values, structure, arguments, second order, refusals."""

from conformance.probes import message, raises
from conformance.program import program


@program()
def of_an_elementwise_function(tf, np):
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.jacobian(y, x)


@program()
def of_a_matrix_by_matrices(tf, np):
    w = tf.Variable([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]])
    x = tf.constant([[0.5, -1.5], [2.0, 1.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.tanh(x @ w)
    return tape.jacobian(y, [w, x])


@program()
def of_a_scalar_is_its_gradient(tf, np):
    x = tf.Variable([0.5, -1.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(tf.exp(x))
    return [tape.jacobian(y, x), tape.gradient(y, x)]


@program()
def of_a_small_network(tf, np):
    rng = np.random.RandomState(0)
    x = tf.constant(rng.normal(size=(2, 4)).astype("float32"))
    w = [tf.Variable(rng.normal(size=(4, 4)).astype("float32") / 2) for _ in range(2)]
    b = [tf.Variable(rng.normal(size=4).astype("float32")) for _ in range(2)]
    with tf.GradientTape() as tape:
        tape.watch(x)
        h = tf.nn.relu(x @ w[0] + b[0])
        y = tf.nn.softmax(h @ w[1] + b[1])
    return tape.jacobian(y, {"x": x, "weights": w, "biases": b})


@program()
def of_reductions_broadcasts_and_slices(tf, np):
    x = tf.Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with tf.GradientTape(persistent=True) as tape:
        a = tf.reduce_mean(x * x, axis=1)
        b = x[:, None, 1:] * x[0, 0]
        c = tf.concat([x, x[::-1]], axis=1)
        d = tf.reduce_max(x, axis=0)
        e = tf.transpose(tf.reshape(x, [3, 2]))
        f = tf.stack([x[0], x[1] ** 2.0])
    return [tape.jacobian(y, x) for y in (a, b, c, d, e, f)]


@program()
def of_rows_gathered_from_a_table_is_dense(tf, np):
    table = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.gather(table, [0, 0, 2])
        z = tf.gather(table * 2.0, [1, 0])
    return [tape.jacobian(y, table), tape.jacobian(z, table)]


@program()
def of_complex_numbers(tf, np):
    z = tf.constant([1 + 2j, 3 - 1j], tf.complex64)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(z)
        y = z * z
        w = z * tf.math.conj(z)
        a = tf.abs(z)
    return [tape.jacobian(y, z), tape.jacobian(w, z), tape.jacobian(a, z)]


@program()
def through_casts_and_half_precision(tf, np):
    x = tf.Variable([1.0, 2.0])
    h = tf.Variable([0.5, 1.5], dtype=tf.float16)
    with tf.GradientTape(persistent=True) as tape:
        y = tf.cast(x, tf.float64) ** 2.0
        z = h * h
    return [tape.jacobian(y, x), tape.jacobian(z, h)]


@program()
def of_a_source_by_itself(tf, np):
    x, v = tf.constant([1.0, 2.0]), tf.Variable([3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * v
    unwatched = tf.constant([1.0])
    return [tape.jacobian(x, x), tape.jacobian(v, v), tape.jacobian(v, x), tape.jacobian(unwatched, unwatched)]


@program()
def sources_keep_their_structure(tf, np):
    x, v, w = tf.constant([1.0, 2.0]), tf.Variable(2.0), tf.Variable([5.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * v
    return [
        tape.jacobian(y, {"a": (x, [v]), "b": w}),
        tape.jacobian(y, []),
        tape.jacobian(y, (v,)),
        tape.jacobian(y, [x, x]),
    ]


@program()
def unconnected_sources(tf, np):
    x, w = tf.constant([1.0, 2.0]), tf.Variable([[1.0, 2.0, 3.0]])
    integers = tf.constant([1, 2])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    zero = tf.UnconnectedGradients.ZERO
    return [
        tape.jacobian(y, w),
        tape.jacobian(y, [w, x], unconnected_gradients="zero"),
        tape.jacobian(y, integers),
        tape.jacobian(y, integers, unconnected_gradients=zero),
        tape.jacobian(tf.cast(y, tf.int32), x),
        tape.jacobian(tf.floor(y), x),
    ]


@program()
def a_zero_derivative_is_not_none(tf, np):
    x = tf.Variable([-1.0, 0.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y, z = tf.sign(x), tf.stop_gradient(x) * x
        r = tf.round(x) * x
    return [tape.jacobian(y, x), tape.jacobian(z, x), tape.jacobian(r, x)]


@program()
def of_nothing(tf, np):
    x, e = tf.constant([1.0, 2.0]), tf.zeros([0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, e])
        y = x[:0] * 2.0
        z = tf.reduce_sum(e) * x
    return [tape.jacobian(y, x), tape.jacobian(z, e)]


@program()
def every_argument(tf, np):
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.sin(x) * x
    return [
        tape.jacobian(y, x, tf.UnconnectedGradients.ZERO, 2, True),
        tape.jacobian(target=y, sources=[x], parallel_iterations=2),
        tape.jacobian(y, x, parallel_iterations=10),
        tape.jacobian(y, x, experimental_use_pfor=False),
        tape.jacobian(y, x, parallel_iterations=2, experimental_use_pfor=False),
    ]


# -------------------------------------------------------------------------------------------------------- second order
@program()
def hessian_of_a_scalar(tf, np):
    x = tf.Variable([1.0, -2.0, 0.5])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(x[:-1] ** 3.0 * x[1:])
        first = inner.gradient(y, x)
    return outer.jacobian(first, x)


@program()
def hessian_of_a_layer_by_its_weights(tf, np):
    w = tf.Variable([[0.5, -1.0], [0.25, 0.75]])
    b = tf.Variable([0.1, -0.2])
    x = tf.constant([[1.0, 2.0], [-0.5, 0.3]])
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            loss = tf.reduce_mean(tf.tanh(x @ w + b) ** 2.0)
        firsts = inner.gradient(loss, [w, b])
    return [outer.jacobian(first, [w, b]) for first in firsts]


@program()
def gradient_of_a_jacobian(tf, np):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x**3.0 * x[0]
        first = inner.jacobian(y, x)
    return [first, outer.gradient(first, x)]


@program()
def jacobian_of_a_jacobian(tf, np):
    x = tf.Variable([[0.5, -1.0]])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.exp(x) * tf.reduce_sum(x)
        first = inner.jacobian(y, x)
    return outer.jacobian(first, x)


@program()
def third_order_by_jacobians(tf, np):
    x = tf.Variable([0.5, 1.5])
    with tf.GradientTape() as third:
        with tf.GradientTape() as second:
            with tf.GradientTape() as first:
                y = tf.reduce_sum(x**4.0) * x[1]
            d1 = first.gradient(y, x)
        d2 = second.jacobian(d1, x)
    return third.jacobian(d2, x)


@program()
def second_order_is_zero_or_none_as_for_gradients(tf, np):
    x = tf.constant([1.0, -2.0])
    found = []
    for f in (tf.nn.relu, tf.abs, lambda v: 2.0 * v, tf.reduce_max):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            first = inner.jacobian(y, x)
        found.append(outer.gradient(first, x))
    return found


@program()
def a_persistent_tape_asked_while_it_records(tf, np):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * x * x
        first = tape.jacobian(y, x)
    return [first, tape.gradient(first, x)]


# -------------------------------------------------------------------------------------------------------- each example
@program()
def of_each_example(tf, np):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    w = tf.constant([[1.0, 0.5, -1.0], [2.0, -0.5, 0.25]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sin(x) @ w
    return tape.batch_jacobian(y, x)


@program()
def of_each_example_of_higher_rank(tf, np):
    x = tf.constant(np.arange(12, dtype="float32").reshape(2, 3, 2) / 10)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.reduce_sum(x**2.0, axis=2)
        z = tf.exp(x)
    return [tape.batch_jacobian(y, x), tape.batch_jacobian(z, x)]


@program()
def of_examples_that_depend_on_each_other(tf, np):
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        y = x * tf.reduce_sum(x)
    return tape.batch_jacobian(y, x)


@program()
def of_each_example_unconnected_is_zeros(tf, np):
    x, other = tf.Variable([[1.0, 2.0], [3.0, 4.0]]), tf.ones([2, 3])
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    return [
        tape.batch_jacobian(y, other),
        tape.batch_jacobian(y, other, unconnected_gradients="zero"),
        tape.batch_jacobian(tf.cast(y, tf.int32), x),
        tape.batch_jacobian(y, tf.constant([[1, 2], [3, 4]])),
    ]


@program()
def of_each_example_every_argument(tf, np):
    x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.cumsum(x**2.0, axis=1)
    return [
        tape.batch_jacobian(y, x, tf.UnconnectedGradients.ZERO, 2, True),
        tape.batch_jacobian(target=y, source=x, parallel_iterations=8),
        tape.batch_jacobian(y, x, experimental_use_pfor=False),
    ]


@program()
def of_each_example_is_differentiable(tf, np):
    x = tf.Variable([[0.5, -1.0], [1.5, 2.0]])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x**3.0
        first = inner.batch_jacobian(y, x)
    return outer.gradient(first, x)


@program()
def the_norm_of_each_examples_jacobian_trains(tf, np):
    w = tf.Variable([[0.5, -1.0], [0.25, 0.75]])
    x = tf.constant([[1.0, 2.0], [-0.5, 0.3]])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.tanh(x @ w)
        penalty = tf.reduce_sum(inner.batch_jacobian(y, x) ** 2.0)
    return [penalty, outer.gradient(penalty, w)]


# ------------------------------------------------------------------------------------------------------------ refusals
@program()
def a_tape_answers_once(tf, np):
    x = tf.Variable([[1.0, 2.0]])
    found = []
    for ask in ("gradient", "jacobian", "batch_jacobian"):
        with tf.GradientTape() as tape:
            y = x * x
        getattr(tape, ask)(y, x)
        found.append(message(lambda tape=tape, y=y: tape.jacobian(y, x)))
    return [found, message(lambda: tf.GradientTape().jacobian(x, x))]


@program()
def loops_need_a_persistent_tape(tf, np):
    x = tf.Variable([[1.0, 2.0]])
    with tf.GradientTape() as tape:
        y = x * x
    return [
        message(lambda: tape.jacobian(y, x, experimental_use_pfor=False)),
        message(lambda: tape.batch_jacobian(y, x, experimental_use_pfor=False)),
        tape.jacobian(y, x),
    ]


@program()
def what_cannot_be_a_target(tf, np):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * x
    return [
        *[message(lambda one=one: tape.jacobian(one, x)) for one in ([y], (y,), {"a": y}, None, 3.0, "y")],
        message(lambda: tape.batch_jacobian([y], x)),
        message(lambda: tape.batch_jacobian(y, [x])),
        message(lambda: tape.batch_jacobian(y, None)),
        tape.jacobian(y, x),
    ]


@program()
def what_cannot_be_a_source(tf, np):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    return [
        raises(lambda: tape.jacobian(y, None), containing="Cannot convert the argument `type_value`: None"),
        raises(lambda: tape.jacobian(y, [x, None]), containing="Cannot convert the argument `type_value`: None"),
    ]


@program()
def examples_have_to_match(tf, np):
    x, flat = tf.Variable([[1.0, 2.0], [3.0, 4.0]]), tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * x
        z = flat * flat
    return [
        message(lambda: tape.batch_jacobian(y[:1], x)),
        message(lambda: tape.batch_jacobian(z, flat)),
        message(lambda: tape.batch_jacobian(tf.reduce_sum(y, axis=1), x)),
        message(lambda: tape.batch_jacobian(y, flat)),
        tape.batch_jacobian(y, x),
    ]


@program()
def wrong_words_and_counts(tf, np):
    x = tf.Variable([[1.0, 2.0]])
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    return [
        message(lambda: tape.jacobian(y, x, unconnected_gradients="x")),
        message(lambda: tape.jacobian(y, x, "x", experimental_use_pfor=False)),
        message(lambda: tape.batch_jacobian(y, x, "x")),
        message(lambda: tape.jacobian(y, x, parallel_iterations=0)),
        message(lambda: tape.jacobian(y, x, parallel_iterations=1)),
        message(lambda: tape.jacobian(y, x, parallel_iterations=0, experimental_use_pfor=False)),
    ]


@program()
def few_rows_at_once_need_a_persistent_tape(tf, np):
    x = tf.Variable([[1.0, 2.0, 3.0]])
    found = []
    for rows in (2, 3, 4):
        for ask in ("jacobian", "batch_jacobian"):
            with tf.GradientTape() as tape:
                y = x * x
            try:
                found.append(getattr(tape, ask)(y, x, parallel_iterations=rows))
            except Exception as error:
                found.append(type(error).__name__)
    return found


# ------------------------------------------------------------------------------------------- together with all the rest
@program()
def inside_a_function(tf, np):
    @tf.function
    def derivatives(x, w):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.tanh(x @ w)
        return y, tape.jacobian(y, x), tape.batch_jacobian(y, x), tape.jacobian(y, tf.constant(1.0))

    x, w = tf.constant([[1.0, -0.5], [0.25, 2.0]]), tf.constant([[0.5, -1.0, 0.25], [1.0, 0.5, -0.5]])
    return derivatives(x, w)


@program()
def of_a_function(tf, np):
    @tf.function
    def layer(x, w):
        return tf.nn.relu(x @ w) ** 2.0

    x, w = tf.constant([[1.0, -0.5], [0.25, 2.0]]), tf.Variable([[0.5, -1.0, 0.25], [1.0, 0.5, -0.5]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = layer(x, w)
    return [tape.jacobian(y, [x, w]), tape.batch_jacobian(y, x)]


@program()
def hessian_of_a_function(tf, np):
    @tf.function
    def energy(x):
        return tf.reduce_sum(tf.exp(x) * x[::-1])

    x = tf.Variable([0.5, -1.0, 0.25])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = energy(x)
        first = inner.gradient(y, x)
    return outer.jacobian(first, x)


@program()
def of_a_custom_gradient(tf, np):
    @tf.custom_gradient
    def clipped(x):
        def grad(upstream):
            return upstream * tf.clip_by_value(x, -1.0, 1.0)

        return tf.exp(x), grad

    x = tf.constant([[0.5, -2.0], [1.5, 0.25]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = clipped(x) * 2.0
    return [tape.jacobian(y, x), tape.batch_jacobian(y, x)]


@program()
def of_a_custom_gradient_calls_it_once(tf, np):
    calls = []

    @tf.custom_gradient
    def doubled(x):
        def grad(upstream):
            calls.append(tuple(upstream.shape))
            return upstream * 2.0

        return x * 3.0, grad

    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = doubled(x)
    return [tape.jacobian(y, x), calls]


@program()
def of_a_loop(tf, np):
    x = tf.constant([0.5, 1.5])
    with tf.GradientTape() as tape:
        tape.watch(x)
        _, y = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * x), (0, tf.ones_like(x)))
    return tape.jacobian(y, x)


@program()
def of_a_branch(tf, np):
    x = tf.constant([0.5, 1.5])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.cond(x[0] > 0.0, lambda: x * x, lambda: x)
        z = tf.where(x > 1.0, x**3.0, 2.0 * x)
    return [tape.jacobian(y, x), tape.jacobian(z, x)]


@program()
def of_a_recomputed_layer(tf, np):
    x = tf.constant([0.5, 1.5])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.recompute_grad(lambda v: tf.sin(v) * v)(x)
    return tape.jacobian(y, x)


@program()
def forward_over_a_jacobian(tf, np):
    x, t = tf.constant([0.5, 1.5]), tf.constant([1.0, -2.0])
    with tf.autodiff.ForwardAccumulator(x, t) as accumulator:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x**3.0 * x[0]
        first = tape.jacobian(y, x)
    return accumulator.jvp(first)


@program()
def of_a_forward_derivative(tf, np):
    x, t = tf.constant([0.5, 1.5]), tf.constant([1.0, -2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.autodiff.ForwardAccumulator(x, t) as accumulator:
            y = tf.exp(x) * x[0]
        along = accumulator.jvp(y)
    return tape.jacobian(along, x)


@program()
def an_unregistered_op_is_a_lookup_error_after_which_no_gradient_helps(tf, np):
    image = tf.Variable(tf.ones([1, 2, 2, 1]))
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(tf.image.adjust_contrast(image, 2.0)) + tf.reduce_sum(image)
    return raises(lambda: tape.jacobian(y, image, experimental_use_pfor=False), containing="AdjustContrastv2")
