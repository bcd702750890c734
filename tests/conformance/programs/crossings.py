"""Tapes, accumulators, functions, loops, custom gradients and sparse gradients, crossed with each other."""

from conformance.probes import logged
from conformance.program import program


# ---------------------------------------------------------------------------- functions that give back what they took
@program()
def a_gather_from_what_a_function_handed_back(tf, np):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.function(lambda value: value)(x)
        from_result, from_argument = tf.gather(y, [1, 1]), tf.gather(x, [1, 1])
    return [
        tape.gradient(from_result, x),
        tape.gradient(from_result, y),
        tape.gradient(from_argument, x),
        y is x,
    ]


@program()
def the_same_argument_handed_back_twice(tf, np):
    x = tf.constant([3.0, 4.0])
    function = tf.function(lambda value: {"a": value, "b": [value, value * value]})
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        first = function(x)
        second = function(first["a"])
        third = tf.function(lambda value: function(value))(second["a"])
    return [
        [tape.gradient(one, x) for one in (first, second, third)],
        [tape.gradient(one, first["a"]) for one in (first["a"], second, third)],
        first["b"][0] is first["a"],
    ]


@program()
def a_variable_read_inside_a_function(tf, np):
    v, x = tf.Variable([1.0, 2.0]), tf.constant([3.0, 4.0])
    function = tf.function(lambda value: (v.read_value(), value))
    with tf.autodiff.ForwardAccumulator([v, x], [tf.ones([2]), tf.ones([2]) * 3.0]) as accumulator:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            read, same = function(x)
            gathered = [tf.gather(read, [1, 1]), tf.gather(same, [1, 1])]
        grads = [tape.gradient(one, [v, x]) for one in (read, same, *gathered)]
    return [grads, accumulator.jvp([read, same, *gathered])]


@program()
def an_identity_mapped_under_an_accumulator(tf, np):
    x = tf.constant([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(x, tf.ones([2])) as accumulator:
        y = tf.vectorized_map(lambda row: row, tf.stack([x, x * 2.0]))
        z = tf.function(lambda value: value)(tf.stack([x, x * 3.0]))
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(x * tf.vectorized_map(lambda row: row, tf.stack([x, x * 2.0]))[0])
        g = tape.gradient(total, x)
    return [accumulator.jvp([y, z, total, g]), g]


# ------------------------------------------------------------------------------------------- elements that go unused
@program()
def elements_that_a_loop_does_not_use(tf, np):
    a, b = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([[5.0, 6.0], [7.0, 8.0]])
    v = tf.Variable([1.0, 2.0])
    loops = [
        lambda a, b: tf.map_fn(lambda rows: rows[0] * 2.0, (a, b), fn_output_signature=tf.float32),
        lambda a, b: tf.vectorized_map(lambda rows: rows[0] * 2.0, (a, b)),
        lambda a, b: tf.scan(lambda carry, row: v * 1.0, a, initializer=b[0]),
        lambda a, b: tf.foldl(lambda carry, row: carry * 2.0, a, initializer=b[0]),
        lambda a, b: tf.foldr(lambda carry, row: row, a, initializer=b[0]),
        lambda a, b: tf.map_fn(lambda row: v * 1.0, a),
    ]
    found = []
    for loop in loops:
        for function in (loop, tf.function(loop)):
            with tf.GradientTape() as tape:
                tape.watch([a, b])
                y = function(a, b)
            found.append(tape.gradient(y, [a, b, v]))
    return found


# --------------------------------------------------------------------------------- custom gradients in forward mode
def _rounded(tf):
    @tf.custom_gradient
    def rounded(x):
        return tf.round(x), lambda upstream: upstream * tf.sin(x)

    return rounded


@program()
def a_custom_gradient_followed_forward(tf, np):
    rounded, x = _rounded(tf), tf.constant([0.3, 1.7])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.5])) as accumulator:
        y = rounded(x) * x
        passed = tf.grad_pass_through(tf.round)(x) * x
    return accumulator.jvp([y, passed])


@program()
def a_result_that_has_a_tangent_keeps_it(tf, np):
    @tf.custom_gradient
    def scaled(x):
        return x * 2.0, lambda upstream: upstream * 10.0

    @tf.custom_gradient
    def first(a, b):
        return tf.identity(a), lambda upstream: (upstream * 10.0, None)

    x, z = tf.constant(2.0), tf.constant(3.0)
    with tf.autodiff.ForwardAccumulator(z, tf.constant(1.0)) as accumulator:
        results = [scaled(z), first(x, z), first(z, x)]
    return accumulator.jvp(results)


@program()
def several_results_followed_forward(tf, np):
    @tf.custom_gradient
    def function(a, b):
        def grad(first, second, third):
            return first * 3.0 + third * 5.0, second * 2.0 + third

        return (tf.round(a), b * 2.0, tf.stop_gradient(b)), grad

    x, z = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    found = []
    for primal in (x, z):
        with tf.autodiff.ForwardAccumulator(primal, tf.constant([1.0, 0.5])) as accumulator:
            results = function(x, z)
        found.append(accumulator.jvp(results))
    return found


@program()
def variables_of_a_custom_gradient_followed_forward(tf, np):
    v, x = tf.Variable([2.0, 3.0]), tf.constant([1.2, 2.3])

    @tf.custom_gradient
    def function(x):
        def grad(upstream, variables=None):
            return upstream * v, [upstream * x for _ in variables]

        return tf.round(x * v), grad

    found = []
    for primal in (v, x):
        with tf.autodiff.ForwardAccumulator(primal, tf.constant([1.0, 0.5])) as accumulator:
            y = function(x)
        found.append(accumulator.jvp(y))
    return found


@program()
def a_gradient_function_that_reads_its_upstream_forward(tf, np):
    seen = []

    @tf.custom_gradient
    def function(x):
        def grad(upstream):
            seen.append(upstream.numpy().tolist())
            return upstream * float(tf.reduce_sum(upstream))

        return tf.round(x), grad

    x = tf.constant([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.5])) as accumulator:
        y = function(x)
    return [accumulator.jvp(y), seen]


@program()
def a_gradient_function_that_raises_forward(tf, np):
    @tf.custom_gradient
    def function(x):
        def grad(upstream):
            raise ValueError("no")

        return tf.round(x), grad

    x, caught = tf.constant([1.2, 2.3]), []
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.5])) as accumulator:
        try:
            function(x)
        except ValueError as error:
            caught.append(str(error))
        y = x * x
    return [caught, accumulator.jvp(y)]


@program()
def forward_over_reverse_through_a_custom_gradient(tf, np):
    rounded, x = _rounded(tf), tf.Variable([0.3, 1.7])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.5])) as accumulator:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(rounded(x) ** 2 * x)
        g = tape.gradient(y, x)
    return [g, accumulator.jvp(g), accumulator.jvp(y)]


@program()
def reverse_over_forward_through_a_custom_gradient(tf, np):
    rounded, x = _rounded(tf), tf.Variable([0.3, 1.7])
    with tf.GradientTape(persistent=True) as tape:
        with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.5])) as accumulator:
            y = rounded(x) * x
        tangent = accumulator.jvp(y)
    return [tangent, tape.gradient(tangent, x), tape.gradient(y, x)]


@program()
def accumulators_in_each_other_through_a_custom_gradient(tf, np):
    @tf.custom_gradient
    def sine(x):
        return tf.stop_gradient(tf.sin(x)), lambda upstream: upstream * tf.cos(x)

    x = tf.constant([0.3, 1.7])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.5])) as outer:
        with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.5])) as inner:
            y = sine(x)
        tangent = inner.jvp(y)
    return [tangent, outer.jvp(y), outer.jvp(tangent)]


@program()
def tapes_around_and_inside_an_accumulator_with_a_custom_gradient(tf, np):
    rounded, x = _rounded(tf), tf.Variable([0.3, 1.7])
    with tf.GradientTape() as outer:
        with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.5])) as accumulator:
            with tf.GradientTape(persistent=True) as inner:
                y = rounded(x)
                z = tf.sin(y * x)
            g = inner.gradient(z, x)
        tangent = accumulator.jvp(g)
    return [tangent, accumulator.jvp(y), g, outer.gradient(tangent, x)]


@program()
def custom_gradients_in_functions_and_loops_followed_forward(tf, np):
    rounded, x = _rounded(tf), tf.constant([0.3, 1.7])
    function = tf.function(lambda x: rounded(x) * x)
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.5])) as accumulator:
        results = [
            function(x),
            tf.while_loop(lambda i, z: i < 2, lambda i, z: (i + 1, rounded(z) * z + 0.3), (0, x))[1],
            tf.map_fn(rounded, x),
            tf.scan(lambda carry, one: carry + rounded(one), x),
        ]
    return accumulator.jvp(results)


@program()
def results_of_a_function_that_do_not_vary(tf, np):
    v, x, u = tf.Variable([1.0, 2.0]), tf.constant([3.0, 4.0]), tf.constant([5.0, 6.0])
    functions = [
        tf.function(lambda x, u: (x * 2.0, u * 3.0, v * 2.0, x * u, v * x)),
        tf.function(lambda x, u: (v * 2.0, x * 2.0)),
        tf.function(lambda x, u: tf.stop_gradient(x)),
        tf.function(lambda x, u: (tf.argmax(x), x)),
        lambda x, u: (v * 2.0, x * 2.0),
    ]
    found = []
    for function in functions:
        for primal in (x, u, v):
            with tf.autodiff.ForwardAccumulator(primal, tf.ones([2])) as accumulator:
                y = function(x, u)
            found.append(accumulator.jvp(y))
    return found


@program()
def variables_as_arguments_of_a_custom_gradient_in_a_function(tf, np):
    v = tf.Variable([1.0, 2.0])

    @tf.custom_gradient
    def function(a, b):
        def grad(upstream, variables=None):
            return (upstream * 10.0, upstream * 100.0), [upstream * 1000.0 for _ in variables]

        return a * b * v, grad

    with tf.GradientTape() as tape:
        y = tf.function(lambda: function(v, v))()
    return tape.gradient(y, v)


@program()
def a_custom_gradient_under_everything(tf, np):
    @tf.custom_gradient
    def function(x):
        return x * x, lambda upstream: upstream * 3.0 * x

    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        results = [
            function(x),
            tf.function(function)(x),
            tf.cond(x[0] > 0, lambda: function(x), lambda: x),
            tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, function(y)), (0, x * 1.0))[1],
            tf.map_fn(function, x),
            tf.scan(lambda carry, one: carry + function(one), x),
            tf.foldl(lambda carry, one: function(carry) + one, x),
            tf.recompute_grad(function)(x),
            function(function(x)),
        ]
    return [[tape.gradient(y, x), tape.jacobian(y, x)] for y in results]


# -------------------------------------------------------------------------------------------- a variable as the target
@program()
def a_variable_as_target_and_source(tf, np):
    found = []
    for trainable in (True, False):
        for accessed in (True, False):
            v, u = tf.Variable([1.0, 2.0], trainable=trainable, name="v"), tf.Variable(1.0, name="u")
            with tf.GradientTape(watch_accessed_variables=accessed, persistent=True) as tape:
                pass
            grads = [tape.gradient(v, v), tape.gradient(v, u), tape.gradient([v, u], [v, u])]
            before = [one.name for one in tape.watched_variables()]
            jacobian = tape.jacobian(v, v)
            found.append([grads, before, jacobian, [one.name for one in tape.watched_variables()]])
    return found


@program(fresh=True)
def warnings_of_each_line(tf, np):
    x, whole = tf.Variable([2.0]), tf.constant([1, 2])
    with logged(tf) as lines:
        for _ in range(7):
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(whole)
                y = x * x
                tape.gradient(y, x)
                tape.gradient(y, x)
        with tf.GradientTape() as tape:
            tape.watch(whole)
    return lines


# --------------------------------------------------------------------------------------------------- in an odd order
@program()
def tapes_left_and_entered_out_of_order(tf, np):
    x, c = tf.Variable(2.0), tf.constant(3.0)
    a, b = tf.GradientTape(persistent=True), tf.GradientTape(persistent=True)
    a.__enter__()
    y = x * x
    b.__enter__()
    b.watch(c)
    z = y * c
    a.__exit__(None, None, None)
    w = z * z
    b.__exit__(None, None, None)
    found = [a.gradient(z, x), a.gradient(w, x), b.gradient(w, c), b.gradient(w, y), a.gradient(z, c)]
    with a:
        u = w * x
    found += [a.gradient(u, x), a.gradient(u, y)]
    with a, b:
        with a.stop_recording():
            k = x * x
            g = b.gradient(k, x)
        h = g * x
    return [*found, g, b.gradient(h, x), a.gradient(h, x), a.gradient(g, x)]


@program()
def each_tape_stopped_in_turn(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape(persistent=True) as inner:
            a = x * x
            with inner.stop_recording():
                b = x * a
                c = inner.gradient(a, x)
            d = a * b
            with outer.stop_recording():
                e = x * 3.0
                f = d * e
        g = inner.gradient(f, x)
    return [c, g, *[outer.gradient(one, x) for one in (f, c, g, b)], inner.gradient(b, x)]


@program()
def an_accumulator_entered_again_around_control_flow(tf, np):
    x = tf.constant([1.0, 2.0])
    accumulator = tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0]))
    with accumulator:
        results = [
            tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x + 1.0), (0, x))[1],
            tf.map_fn(lambda one: one * one, x),
            tf.scan(lambda carry, one: carry * one, x),
            tf.function(lambda q: tf.cond(q[0] > 0, lambda: q**2, lambda: q))(x),
        ]
    outside = results[0] * 2.0
    with accumulator:
        again = results[0] * results[0]
    return accumulator.jvp([*results, outside, again])
