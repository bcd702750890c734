"""Gradients that the program defines: custom_gradient, recompute_grad, grad_pass_through, RegisterGradient."""

from conformance.probes import message, raises
from conformance.program import program


@program()
def log1pexp_far_out(tf, np):
    @tf.custom_gradient
    def log1pexp(x):
        e = tf.exp(x)

        def grad(upstream):
            return upstream * (1 - 1 / (1 + e))

        return tf.math.log(1 + e), grad

    x = tf.constant(100.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = log1pexp(x)
    return [y, tape.gradient(y, x)]


@program()
def second_order_through_what_the_forward_kept(tf, np):
    @tf.custom_gradient
    def log1pexp(x):
        e = tf.exp(x)

        def grad(upstream):
            return upstream * (1 - 1 / (1 + e))

        return tf.math.log(1 + e), grad

    x = tf.constant([0.5, 2.0, -1.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = log1pexp(x)
        dy = inner.gradient(y, x)
    return [dy, outer.gradient(dy, x)]


@program()
def clip_gradients_on_the_way_back(tf, np):
    @tf.custom_gradient
    def clip(y):
        def backward(dy):
            return tf.clip_by_norm(dy, 0.5)

        return y, backward

    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        output = clip(v * v)
    return [output, tape.gradient(output, v)]


@program()
def gradient_reversal(tf, np):
    @tf.custom_gradient
    def reverse(x):
        return tf.identity(x), lambda dy: -0.5 * dy

    x = tf.Variable([1.0, 2.0])
    w = tf.Variable([3.0, 4.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(reverse(x * x) * w)
    return tape.gradient(y, [x, w])


@program()
def straight_through_binarisation(tf, np):
    @tf.custom_gradient
    def binarize(x):
        def grad(dy):
            return tf.where(tf.abs(x) <= 1.0, dy, tf.zeros_like(dy))

        return tf.sign(x), grad

    x = tf.Variable([-2.0, -0.5, 0.25, 1.5])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(binarize(x) * tf.constant([1.0, 2.0, 3.0, 4.0]))
    return [y, tape.gradient(y, x)]


@program()
def two_arguments_two_results(tf, np):
    seen = []

    @tf.custom_gradient
    def both(a, b):
        def grad(da, db):
            seen.append([da.numpy(), db.numpy()])
            return da * b + 10.0 * db, da * a - db

        return (a * b, a + b), grad

    a, b = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 5.0])
    with tf.GradientTape(persistent=True) as tape:
        p, s = both(a, b)
        z = p * 2.0 + s
    return [tape.gradient(z, [a, b]), tape.gradient(p, [a, b]), tape.gradient(s, a), seen]


@program()
def an_unused_result_gets_zeros(tf, np):
    seen = []

    @tf.custom_gradient
    def f(x):
        def grad(*dys):
            seen.append([dy.numpy() for dy in dys])
            return dys[0]

        return (x * 2.0, tf.reduce_sum(x), tf.constant([7, 8])), grad

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return [tape.gradient(y[0], x), seen]


@program()
def nested_arguments_and_results(tf, np):
    @tf.custom_gradient
    def f(pair, rest):
        def grad(da, db, dc):
            return {"a": da * 10.0, "b": db * 20.0}, [dc * 30.0]

        result = {"z": [pair["a"] * 2.0, pair["b"] * 3.0], "y": rest[0] * 4.0}
        return result, grad

    x, y, z = tf.Variable(2.0), tf.Variable(3.0), tf.Variable(4.0)
    with tf.GradientTape() as tape:
        found = f({"b": y, "a": x}, [z])
        total = found["y"] + 2.0 * found["z"][0] + 3.0 * found["z"][1]
    return [found, tape.gradient(total, [x, y, z])]


@program()
def keyword_arguments_get_no_gradient(tf, np):
    @tf.custom_gradient
    def scaled(x, factor=1.0, name="none"):
        return x * factor, lambda dy: dy * 10.0

    x, s = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = scaled(x, factor=s, name="here")
        z = scaled(x, name="there")
    return [y, tape.gradient(y, [x, s]), z, tape.gradient(z, [x, s])]


@program()
def a_python_number_as_an_argument(tf, np):
    @tf.custom_gradient
    def power(x, n):
        return x**n, lambda dy: (dy * n * x ** (n - 1), None)

    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = power(x, 3)
    return [y, tape.gradient(y, x)]


@program()
def variables_used_inside(tf, np):
    w = tf.Variable(3.0, name="w")
    frozen = tf.Variable(2.0, trainable=False, name="frozen")
    names = []

    @tf.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            names.append([v.name for v in variables])
            return dy * w * frozen, [dy * x * 7.0]

        return x * w * frozen, grad

    x = tf.Variable(2.0, name="x")
    with tf.GradientTape() as tape:
        y = f(x)
    return [tape.gradient(y, [x, w, frozen]), names, sorted(v.name for v in tape.watched_variables())]


@program()
def a_variable_that_is_an_argument_is_not_among_the_variables(tf, np):
    s = tf.Variable(3.0)

    @tf.custom_gradient
    def f(x, v):
        def grad(dy, variables=None):
            return (dy, None), [dy * 5.0 * len(variables)]

        return x * v * s, grad

    x, v = tf.Variable(2.0), tf.Variable(4.0)
    with tf.GradientTape() as tape:
        y = f(x, v)
    return tape.gradient(y, [x, v, s])


@program()
def variables_without_the_keyword(tf, np):
    w = tf.Variable(3.0, name="w")

    @tf.custom_gradient
    def f(x):
        return x * w, lambda dy: dy

    return message(lambda: f(tf.constant(1.0)))


@program()
def too_few_variable_gradients(tf, np):
    w = tf.Variable(3.0)

    @tf.custom_gradient
    def f(x):
        return x * w, lambda dy, variables: (dy, [])

    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = f(x)
    return message(lambda: tape.gradient(y, x))


@program()
def too_few_gradients(tf, np):
    @tf.custom_gradient
    def f(x, y):
        return x * y, lambda dy: dy

    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        z = f(x, x)
    return message(lambda: tape.gradient(z, x))


@program()
def none_for_an_argument(tf, np):
    @tf.custom_gradient
    def f(x, y):
        return x * y, lambda dy: (None, dy * 2.0)

    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z = f(x, y) + x
    return tape.gradient(z, [x, y])


@program()
def the_gradient_function_reads_the_upstream(tf, np):
    seen = []

    @tf.custom_gradient
    def f(x):
        def grad(dy):
            seen.append(float(dy))
            if dy > 1.0:
                return dy * 10.0
            return -dy

        return x * 2.0, grad

    x = tf.Variable(1.0)
    found = []
    for scale in (0.5, 3.0):
        with tf.GradientTape() as tape:
            y = f(x) * scale
        found.append(tape.gradient(y, x))
    return [found, seen]


@program()
def a_persistent_tape_calls_it_each_time(tf, np):
    calls = []

    @tf.custom_gradient
    def f(x):
        def grad(dy):
            calls.append(1)
            return dy * float(len(calls))

        return x * 2.0, grad

    x = tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        y = f(x)
    return [tape.gradient(y, x), tape.gradient(y, x), tape.gradient(y, x), len(calls)]


@program()
def it_is_called_though_the_source_lies_elsewhere(tf, np):
    calls = []

    @tf.custom_gradient
    def f(x):
        def grad(dy):
            calls.append(1)
            return dy

        return x * 2.0, grad

    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z = f(x) * y
    return [tape.gradient(z, y), len(calls)]


@program()
def only_a_closure_is_watched(tf, np):
    calls = []

    @tf.custom_gradient
    def f(x):
        def grad(dy):
            calls.append(1)
            return dy * 100.0

        return x * y * 2.0, grad

    x, y = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(y)
        z = f(x)
    with tf.GradientTape() as both:
        both.watch([x, y])
        again = f(x)
    return [tape.gradient(z, y), both.gradient(again, [x, y]), len(calls)]


@program()
def an_intermediate_result_leaks(tf, np):
    kept = []

    @tf.custom_gradient
    def f(x):
        e = tf.exp(x)
        kept.append(e)
        return e * 2.0, lambda dy: dy * 100.0

    x = tf.constant(1.5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x) + kept[0]
    return tape.gradient(y, x)


@program()
def a_gradient_function_with_a_gradient_of_its_own(tf, np):
    @tf.custom_gradient
    def f(x):
        @tf.custom_gradient
        def grad(dy):
            def second(ddy):
                return ddy * 1000.0

            return dy * 2.0 * x, second

        return x * x, grad

    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x) * x
        dy = inner.gradient(y, x)
    return [dy, outer.gradient(dy, x)]


@program()
def one_inside_another(tf, np):
    calls = []

    @tf.custom_gradient
    def inner(x):
        def grad(dy):
            calls.append("inner")
            return dy * 3.0

        return x + 1.0, grad

    @tf.custom_gradient
    def outer(x):
        y = inner(x) * 2.0

        def grad(dy):
            calls.append("outer")
            return dy * 7.0

        return y, grad

    x = tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        a = outer(x)
        b = inner(a)
    return [tape.gradient(a, x), tape.gradient(b, x), calls]


@program()
def a_gradient_asked_inside_the_gradient_function(tf, np):
    @tf.custom_gradient
    def f(x):
        def grad(dy):
            with tf.GradientTape() as tape:
                tape.watch(x)
                again = tf.sin(x) ** 2
            return dy * tape.gradient(again, x)

        return tf.sin(x) ** 2, grad

    x = tf.constant([0.3, 1.2])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        dy = inner.gradient(y, x)
    return [dy, outer.gradient(dy, x)]


@program()
def on_a_method(tf, np):
    class Layer:
        def __init__(self):
            self.factor = tf.constant(3.0)

        @tf.custom_gradient
        def apply(self, x):
            return x * self.factor, lambda dy: dy * self.factor * 10.0

    layer, x = Layer(), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = layer.apply(x)
    return [y, tape.gradient(y, x), layer.apply.__name__]


@program()
def names_and_documentation_stay(tf, np):
    @tf.custom_gradient
    def documented(x):
        """What it does."""
        return x, lambda dy: dy

    def plain(x):
        """The plain one."""
        return x

    again, through = tf.recompute_grad(plain), tf.grad_pass_through(plain)
    return [
        documented.__name__,
        documented.__doc__,
        again.__name__,
        again.__doc__,
        again.__wrapped__ is plain,
        through.__name__,
    ]


@program()
def the_jacobian_calls_it_once(tf, np):
    calls = []

    @tf.custom_gradient
    def f(x):
        def grad(dy):
            calls.append(1)
            return dy * 3.0 * x

        return x * 2.0, grad

    x = tf.constant([2.0, 3.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x) ** 2
    return [tape.jacobian(y, x), len(calls)]


@program()
def batch_jacobian_through_it(tf, np):
    @tf.custom_gradient
    def f(x, y):
        def grad(da, db):
            return da * y - db, 2.0 * db

        return (x * y, x - y), grad

    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        a, b = f(x, tf.sin(x))
        z = a * b
    return [tape.batch_jacobian(z, x), tape.jacobian(a, x)]


@program()
def forward_mode_follows_the_body(tf, np):
    @tf.custom_gradient
    def f(x):
        return x * x, lambda dy: dy * 100.0

    x = tf.constant(3.0)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as accumulator:
        y = f(x)
    return accumulator.jvp(y)


@program()
def inside_a_function(tf, np):
    @tf.custom_gradient
    def f(x):
        return x * 2.0, lambda dy: dy * 30.0 * x

    @tf.function
    def g(x):
        return f(x) * x

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = g(x)
    return [y, tape.gradient(y, x)]


@program()
def a_sparse_upstream(tf, np):
    kinds = []

    @tf.custom_gradient
    def f(x):
        def grad(dy):
            kinds.append(type(dy).__name__)
            return dy

        return x * 2.0, grad

    x = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        y = tf.gather(f(x), [0, 0, 2])
    found = tape.gradient(y, x)
    return [found, kinds]


@program()
def a_sparse_answer(tf, np):
    @tf.custom_gradient
    def f(x):
        def grad(dy):
            return tf.IndexedSlices(tf.constant([7.0]), tf.constant([1]), tf.constant([3]))

        return x * 2.0, grad

    x = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        y = f(x)
        z = f(x) + x
    return [tape.gradient(y, x), tape.gradient(z, x)]


@program()
def stopped_gradients_and_recordings(tf, np):
    calls = []

    @tf.custom_gradient
    def f(x):
        def grad(dy):
            calls.append(1)
            return dy

        return x * 2.0, grad

    v = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        a = tf.stop_gradient(f(v))
        b = f(tf.stop_gradient(v))
        with tape.stop_recording():
            c = f(v)
    return [tape.gradient(a, v), tape.gradient(b, v), tape.gradient(c, v), len(calls)]


@program()
def an_error_inside_leaves_a_persistent_tape_usable(tf, np):
    calls = []

    @tf.custom_gradient
    def f(x):
        def grad(dy):
            calls.append(1)
            if len(calls) == 1:
                raise KeyError("first")
            return dy * 9.0

        return x * 2.0, grad

    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = f(x)
    try:
        tape.gradient(y, x)
    except KeyError as error:
        caught = str(error)
    return [caught, tape.gradient(y, x)]


@program()
def recompute_with_variables_and_keywords(tf, np):
    w = tf.Variable([2.0, 3.0])
    runs = []

    def f(x, power=2.0):
        runs.append(1)
        return tf.reduce_sum(tf.sin(x) * w**power)

    x = tf.Variable([0.5, 1.0])
    again = tf.recompute_grad(f)
    with tf.GradientTape() as tape:
        y = again(x, power=3.0)
    return [y, tape.gradient(y, [x, w]), len(runs)]


@program()
def recompute_chained(tf, np):
    def block(x):
        return tf.tanh(x * 1.5) + x

    x = tf.constant([0.1, -0.4])
    again = tf.recompute_grad(block)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(4):
            y = again(y)
    return [y, tape.gradient(y, x)]


@program()
def recompute_second_order_and_jacobian(tf, np):
    cube = tf.recompute_grad(lambda x: x**3)
    x = tf.constant([2.0, 3.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = cube(x)
        dy = inner.gradient(y, x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = cube(x)
    return [dy, outer.gradient(dy, x), tape.jacobian(y, x)]


@program()
def recompute_of_several_results_and_an_unused_argument(tf, np):
    f = tf.recompute_grad(lambda x, y: (x**2, tf.exp(x)))
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        a, b = f(x, y)
        z = a * b
    return tape.gradient(z, [x, y])


@program()
def recompute_in_forward_mode(tf, np):
    f = tf.recompute_grad(lambda x: x**3)
    x = tf.constant(2.0)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)):
        return raises(lambda: f(x), "recompute_grad tried to transpose grad of <lambda>")


@program()
def pass_through_round_and_assign(tf, np):
    x = tf.Variable(1.4)
    with tf.GradientTape() as tape:
        y = tf.grad_pass_through(tf.round)(x * 3.0) * 2.0
    v, z = tf.Variable(1.0), tf.Variable(3.0)
    with tf.GradientTape() as other:
        assigned = tf.grad_pass_through(v.assign)(z**2)
    return [y, tape.gradient(y, x), assigned, other.gradient(assigned, [z, v]), v]


@program()
def pass_through_ignores_variables_inside(tf, np):
    w = tf.Variable(5.0)
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.grad_pass_through(lambda x: x * w)(x)
    return [y, tape.gradient(y, [x, w])]


@program()
def pass_through_of_two_arguments(tf, np):
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z = tf.grad_pass_through(lambda x, y: x * y)(x, y)
    return message(lambda: tape.gradient(z, [x, y]))


@program(fresh=True)
def a_registered_gradient(tf, np):
    seen = []

    @tf.RegisterGradient("AdjustContrastv2")
    def adjust_contrast_grad(op, dy):
        seen.append([op.type, len(op.inputs), len(op.outputs), op.get_attr("T").name])
        return dy * op.inputs[1], tf.reduce_sum(dy * op.outputs[0])

    x = tf.reshape(tf.range(12.0), (1, 2, 2, 3))
    factor = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch([x, factor])
        y = tf.image.adjust_contrast(x, factor) * 3.0
    return [tape.gradient(y, [x, factor]), seen, adjust_contrast_grad.__name__]


@program()
def a_gradient_registered_twice(tf, np):
    return raises(
        lambda: tf.RegisterGradient("Mul")(lambda op, dy: (dy, dy)), "Registering two gradient with name 'Mul'!"
    )


@program()
def registered_under_no_string(tf, np):
    return message(lambda: tf.RegisterGradient(3))


@program()
def a_gradient_of_another_shape(tf, np):
    @tf.custom_gradient
    def total(x):
        return tf.reduce_sum(x), lambda dy: dy

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = total(x)
    return tape.gradient(y, x)


@program()
def seeds_and_unconnected_sources(tf, np):
    @tf.custom_gradient
    def f(x):
        return x * 2.0, lambda dy: dy * 5.0

    x, other = tf.Variable([1.0, 2.0]), tf.Variable([3.0])
    with tf.GradientTape(persistent=True) as tape:
        y = f(x)
    return [
        tape.gradient(y, x, output_gradients=tf.constant([0.5, -1.0])),
        tape.gradient(y, [x, other], unconnected_gradients="zero"),
        tape.gradient([y, y * 2.0], x),
    ]


@program()
def a_training_loop_with_clipped_gradients(tf, np):
    @tf.custom_gradient
    def clipped(x):
        return x, lambda dy: tf.clip_by_value(dy, -0.1, 0.1)

    w = tf.Variable([[1.0], [-2.0]])
    data = tf.constant([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]])
    losses = []
    for _ in range(4):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(clipped(data @ w) - 1.0))
        w.assign_sub(tape.gradient(loss, w))
        losses.append(float(loss))
    return [w, losses]


def steep_square(tf):
    @tf.custom_gradient
    def square(x):
        return x * x, lambda dy: dy * 20.0 * x

    return square


@program()
def forward_over_reverse(tf, np):
    f = steep_square(tf)
    x = tf.constant([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.5])) as accumulator:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(f(x) * x)
        g = tape.gradient(y, x)
    return [g, accumulator.jvp(g), accumulator.jvp(y)]


@program()
def reverse_over_forward(tf, np):
    f = steep_square(tf)
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.5])) as accumulator:
            y = tf.reduce_sum(f(x) * x)
        j = accumulator.jvp(y)
    return [j, tape.gradient(j, x)]


@program()
def inside_a_loop(tf, np):
    f = steep_square(tf)
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, f(y) * 0.5), [tf.constant(0), x])
    return [y, tape.gradient(y, x)]


@program()
def inside_a_loop_inside_a_function(tf, np):
    f = steep_square(tf)

    @tf.function
    def g(x):
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, f(y) * 0.5), [tf.constant(0), x])[1]

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = g(x)
    return [y, tape.gradient(y, x)]


@program()
def a_tape_inside_a_function_and_one_outside(tf, np):
    f = steep_square(tf)

    @tf.function
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(f(x) * x)
        return tape.gradient(y, x)

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        g = slope(x)
    return [g, outer.gradient(g, x)]


@program()
def inside_map_fn(tf, np):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.map_fn(steep_square(tf), x)
    return [y, tape.gradient(y, x)]


@program()
def complex_numbers(tf, np):
    @tf.custom_gradient
    def square(x):
        return x * x, lambda dy: dy * tf.math.conj(2.0 * x)

    x = tf.constant([1.0 + 2.0j, 3.0 - 1.0j])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.real(square(x))
    return tape.gradient(y, x)


@program()
def another_dtype_behind(tf, np):
    @tf.custom_gradient
    def narrow(x):
        return tf.cast(x, tf.float32), lambda dy: tf.cast(dy, tf.float64) * 3.0

    x = tf.constant([1.0, 2.0], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = narrow(x)
    return [y, tape.gradient(y, x)]


@program()
def a_list_of_results(tf, np):
    @tf.custom_gradient
    def halves(x):
        return tf.split(x, 2), lambda da, db: tf.concat([da * 10.0, db * 100.0], 0)

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        a, b = halves(x)
    return [a, b, tape.gradient([a, b], x)]


@program()
def the_function_closes_over_a_variable_that_changes(tf, np):
    x = tf.Variable(3.0)

    @tf.custom_gradient
    def f(y):
        return y * 2.0, lambda dy: dy * x * 5.0

    with tf.GradientTape() as tape:
        y = f(x)
    x.assign(7.0)
    return tape.gradient(y, x)


@program()
def recompute_of_a_module_after_an_assignment(tf, np):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([2.0, 3.0])
            self.b = tf.Variable(1.0)

        def __call__(self, x):
            return tf.reduce_sum(x * self.w**2) + self.b

    model, x = Model(), tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.recompute_grad(model)(x)
    model.w.assign([10.0, 20.0])
    return [y, tape.gradient(y, [model.w, model.b])]


@program()
def several_targets_some_custom(tf, np):
    f = steep_square(tf)
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        a = f(x)
        b = f(a) + x
    return [tape.gradient([a, b], x), tape.gradient(b, [a, x]), tape.jacobian(b, x)]


@program()
def static_methods_factories_and_any_number_of_arguments(tf, np):
    class Functions:
        @staticmethod
        @tf.custom_gradient
        def steep(x):
            return x * 2.0, lambda dy: dy * 9.0

    @tf.custom_gradient
    def total(*xs):
        return tf.add_n(list(xs)), lambda dy: [dy * (i + 1.0) for i in range(len(xs))]

    def times(k):
        return tf.custom_gradient(lambda x: (x * k, lambda dy: dy * k * 10.0))

    xs = [tf.Variable(float(i)) for i in range(4)]
    with tf.GradientTape(persistent=True) as tape:
        a = Functions.steep(xs[1]) + Functions().steep(xs[2])
        b = total(*xs)
        c = times(3.0)(times(2.0)(xs[3]))
    return [tape.gradient(a, xs), b, tape.gradient(b, xs), c, tape.gradient(c, xs)]


@program()
def arrays_and_lists_among_the_arguments(tf, np):
    @tf.custom_gradient
    def scaled(x, by, offset):
        return x * by + tf.stack(offset), lambda dy: (dy * 5.0, None, [None, None])

    x = tf.Variable([2.0, 3.0])
    with tf.GradientTape() as tape:
        y = scaled(x, np.array([1.0, 2.0], np.float32), [4.0, 5.0])
    return [y, tape.gradient(y, x)]


@program()
def guided_relu(tf, np):
    @tf.custom_gradient
    def relu(x):
        def grad(dy):
            return dy * tf.cast(x > 0, tf.float32) * tf.cast(dy > 0, tf.float32)

        return tf.nn.relu(x), grad

    x = tf.Variable([-1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(relu(x) * tf.constant([1.0, -1.0, 1.0]))
    return tape.gradient(y, x)


@program()
def a_dense_layer_by_hand(tf, np):
    w = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
    b = tf.Variable([0.1, 0.2], name="b")

    @tf.custom_gradient
    def dense(x):
        def grad(dy, variables=None):
            by_name = {"w:0": tf.matmul(x, dy, transpose_a=True), "b:0": tf.reduce_sum(dy, 0)}
            return dy @ tf.transpose(w), [by_name[v.name] for v in variables]

        return x @ w + b, grad

    x = tf.constant([[1.0, -1.0], [2.0, 0.5]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(dense(x) ** 2)
    return [loss, tape.gradient(loss, [x, w, b])]


@program()
def a_condition_in_the_gradient_function(tf, np):
    @tf.custom_gradient
    def limited(x):
        def grad(dy):
            size = tf.norm(dy)
            return tf.cond(size > 1.0, lambda: dy / size, lambda: dy)

        return x, grad

    x = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(limited(x) ** 2)
    return [tape.gradient(y, x), tape.gradient(y, x, output_gradients=tf.constant(0.01))]


@program()
def a_tape_in_the_body(tf, np):
    @tf.custom_gradient
    def cube(a):
        with tf.GradientTape() as tape:
            tape.watch(a)
            y = a**3
        slope = tape.gradient(y, a)
        return y, lambda dy: dy * slope

    x = tf.Variable(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = cube(x * 1.0)
        g = inner.gradient(y, x)
    return [y, g, outer.gradient(g, x)]


@program()
def recompute_of_lookups_dicts_and_stopped_values(tf, np):
    table = tf.Variable(np.arange(8, dtype=np.float32).reshape(4, 2))
    look = tf.recompute_grad(lambda i: tf.reduce_sum(tf.gather(table, i) ** 2))
    both = tf.recompute_grad(lambda x: {"a": x * 2.0, "b": [tf.reduce_sum(x)]})
    stopped = tf.recompute_grad(lambda x: tf.stop_gradient(x) * 2.0)
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        found = look(tf.constant([0, 2, 2]))
        parts = both(x)
        y = tf.reduce_sum(parts["a"]) * parts["b"][0]
        z = stopped(x)
    return [tape.gradient(found, table), tape.gradient(y, x), tape.gradient(z, x)]


@program()
def slices_up_and_down(tf, np):
    @tf.custom_gradient
    def two(x, y):
        return (x * 2.0, y * 3.0), lambda a, b: (a, b)

    t, u = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), tf.Variable([[1.0, 1.0], [2.0, 2.0]])
    with tf.GradientTape(persistent=True) as tape:
        a, b = two(t, u)
        z = tf.reduce_sum(tf.gather(a, [0, 0])) + tf.reduce_sum(tf.gather(t, [1]))
        z += tf.reduce_sum(tf.gather(b, [1, 0]) ** 2)
    return [tape.gradient(z, [t, u]), tape.gradient(z, a)]


@program()
def one_value_for_both_arguments(tf, np):
    @tf.custom_gradient
    def two(x, y):
        return (x * 2.0, y * 3.0), lambda a, b: (a * 2.0, b)

    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        a, b = two(x, x)
        y = a * b
    return tape.gradient(y, x)


@program()
def results_watched_and_two_tapes(tf, np):
    f = steep_square(tf)
    x = tf.constant(3.0)
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        outer.watch(x)
        y = f(x)
        inner.watch(y)
        z = y * y
    with tf.GradientTape() as only:
        y2 = f(x)
        only.watch(y2)
        z2 = y2 * y2
    return [inner.gradient(z, y), outer.gradient(z, x), only.gradient(z2, [x, y2])]


@program()
def an_assignment_between_two_calls(tf, np):
    @tf.custom_gradient
    def f(x):
        return x + 1.0, lambda dy: dy * 5.0

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = f(x)
        x.assign(10.0)
        z = f(x) * y
    return [z, tape.gradient(z, x)]


@program()
def a_jacobian_without_pfor_calls_it_for_each_row(tf, np):
    seen = []

    @tf.custom_gradient
    def f(x):
        def grad(dy):
            seen.append(float(tf.reduce_sum(dy)))
            return dy * 3.0 if seen[-1] > 1.5 else dy

        return x * 2.0, grad

    x = tf.Variable([[1.0, 2.0, 3.0]])
    with tf.GradientTape(persistent=True) as tape:
        y = f(x) * tf.constant([[1.0, 2.0, 3.0]])
    return [
        tape.jacobian(y, x, experimental_use_pfor=False),
        tape.batch_jacobian(y, x, experimental_use_pfor=False),
        seen,
    ]


@program()
def asked_inside_its_own_context(tf, np):
    f = steep_square(tf)
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x) * x
        g = tape.gradient(y, x)
        h = tape.gradient(g, x)
    return [g, h, tape.gradient(h, x), tape.gradient(y, x)]


@program()
def a_gradient_function_with_state(tf, np):
    x, total = tf.Variable([1.0, 2.0]), tf.Variable(0.0)

    @tf.custom_gradient
    def f(x):
        def grad(dy):
            total.assign_add(tf.reduce_sum(dy))
            return dy * total

        return x * 1.0, grad

    found = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            y = f(x) * 3.0
        found.append(tape.gradient(y, x))
    return [found, total]


@program()
def a_training_step_in_a_function(tf, np):
    f = steep_square(tf)
    x = tf.Variable([1.0, 2.0])

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(f(x) ** 2)
        g = tape.gradient(y, x)
        x.assign_sub(0.0001 * g)
        return y, g

    return [step(), step(), x]


@program()
def third_order(tf, np):
    f = steep_square(tf)
    x = tf.Variable(2.0)
    with tf.GradientTape() as t3:
        with tf.GradientTape() as t2:
            with tf.GradientTape() as t1:
                y = f(x)
            g1 = t1.gradient(y, x)
        g2 = t2.gradient(g1, x)
    return [g1, g2, t3.gradient(g2, x)]


@program(fresh=True)
def a_registered_gradient_in_functions_jacobians_and_second_order(tf, np):
    @tf.RegisterGradient("AdjustContrastv2")
    def adjust_contrast_grad(op, dy):
        return dy * op.inputs[1], tf.reduce_sum(dy * op.outputs[0])

    x, c = tf.reshape(tf.range(12.0), (1, 2, 2, 3)), tf.constant(2.0)

    @tf.function
    def adjusted(x, c):
        return tf.image.adjust_contrast(x * 1.0, c * 1.0) * 3.0

    @tf.function
    def slopes(x, c):
        with tf.GradientTape() as tape:
            tape.watch([x, c])
            y = tf.image.adjust_contrast(x * 1.0, c * 1.0) * 3.0
        return tape.gradient(y, [x, c])

    with tf.GradientTape() as tape:
        tape.watch([x, c])
        y = adjusted(x, c)
    with tf.GradientTape() as outer:
        outer.watch([x, c])
        with tf.GradientTape() as inner:
            inner.watch([x, c])
            z = tf.image.adjust_contrast(x * x, c)
        gx, gc = inner.gradient(z, [x, c])
        total = tf.reduce_sum(gx**2) + gc**2
    with tf.GradientTape() as rows:
        rows.watch(x)
        sums = tf.reduce_sum(tf.image.adjust_contrast(x, c), [0, 1, 2])
    return [tape.gradient(y, [x, c]), slopes(x, c), outer.gradient(total, [x, c]), rows.jacobian(sums, x)]


@program(fresh=True)
def declared_between_two_questions(tf, np):
    x = tf.reshape(tf.range(12.0), (1, 2, 2, 3))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.image.adjust_contrast(x * 1.0, 2.0)
    before = raises(lambda: tape.gradient(y, x), "gradient registry has no entry for: AdjustContrastv2")
    tf.RegisterGradient("AdjustContrastv2")(lambda op, dy: (dy * 7.0, None))
    twice = raises(lambda: tf.no_gradient("AdjustContrastv2"), "Registering two gradient with name 'AdjustContrastv2'!")
    return [before, tape.gradient(y, x), twice]
