"""tf.function and variables: made, read, assigned to, and trained."""

from conformance.program import program


@program()
def a_training_step(tf, np):
    w, b = tf.Variable([[1.0], [2.0]]), tf.Variable([0.0])
    x, y = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), tf.constant([[1.0], [2.0], [3.0]])

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.matmul(x, w) + b - y) ** 2)
        for variable, gradient in zip([w, b], tape.gradient(loss, [w, b]), strict=True):
            variable.assign_sub(0.01 * gradient)
        return loss

    return [[step(x, y) for _ in range(4)], w, b]


@program()
def reads_and_assignments_in_order(tf, np):
    v = tf.Variable(1.0)

    @tf.function
    def f():
        y = v * v
        v.assign(5.0)
        z = 3.0 * v
        w = v * v
        return y + z + w

    with tf.GradientTape() as tape:
        y = f()
    return [y, tape.gradient(y, v), v]


@program()
def a_residual_of_an_older_value(tf, np):
    v, w = tf.Variable(2.0), tf.Variable(5.0)

    @tf.function
    def f():
        with tf.GradientTape() as tape:
            z = v * w
        v.assign(100.0)
        return tape.gradient(z, [v, w]), v.read_value()

    return [f(), v]


@program()
def what_an_assignment_gives(tf, np):
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def f(x):
        first = v.assign_add(x)
        second = v.assign(v * 2.0)
        return first, second, v

    return [f(tf.constant([1.0, 1.0])), v]


@program()
def an_old_value_is_kept(tf, np):
    v = tf.Variable(1.0)

    @tf.function
    def swapped(x):
        old = v.read_value()
        v.assign(x)
        return old

    return [swapped(tf.constant(2.0)), swapped(tf.constant(3.0)), v]


@program()
def variables_as_arguments(tf, np):
    @tf.function
    def moved(v, by):
        v.assign_add(by)
        return v * 2.0

    a, b = tf.Variable(1.0), tf.Variable(10.0)
    out = [moved(a, tf.constant(1.0)), moved(b, tf.constant(2.0)), moved(a, tf.constant(3.0))]
    return [out, a, b, moved.experimental_get_tracing_count()]


@program()
def one_variable_twice(tf, np):
    traces = []

    @tf.function
    def f(v, w):
        traces.append(1)
        v.assign(v + 1.0)
        return v * w

    a, b = tf.Variable(1.0), tf.Variable(10.0)
    return [f(a, b), f(a, a), f(b, b), a, b, len(traces)]


@program()
def made_on_the_first_call(tf, np):
    class Dense(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = None
            self.traces = 0

        @tf.function
        def __call__(self, x):
            self.traces += 1
            if self.w is None:
                self.w = tf.Variable(tf.ones([x.shape[-1], 2]), name="w")
            return tf.matmul(x, self.w)

    layer = Dense()
    return [layer(tf.constant([[1.0, 2.0]])), layer(tf.constant([[3.0, 4.0]])), layer.traces, layer.w, layer.w.name]


@program()
def made_of_computed_values(tf, np):
    scale = tf.constant(3.0)

    class Layer(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = self.b = None
            self.traces = 0

        @tf.function
        def __call__(self, x):
            self.traces += 1
            if self.w is None:
                self.w = tf.Variable(tf.random.normal([x.shape[-1], 2], stddev=0.0) + scale)
                self.b = tf.Variable(tf.reduce_sum(tf.ones([2, 4]), axis=0)[:2] * self.w[0])
            return tf.matmul(x, self.w) + self.b

    layer = Layer()
    x = tf.constant([[1.0, 2.0]])
    return [layer(x), layer(x * 2.0), layer.traces, layer.w, layer.b]


@program()
def made_at_every_call(tf, np):
    @tf.function
    def f(x):
        return x * tf.Variable(1.0)

    try:
        f(tf.constant(1.0))
    except ValueError as error:
        return "tf.function only supports singleton tf.Variables created on the first call." in str(error)


@program()
def an_error_leaves_variables_alone(tf, np):
    v = tf.Variable(1.0)

    @tf.function
    def f(x, fail):
        v.assign_add(x)
        if fail:
            raise ValueError("while it is traced")
        return v * 2.0

    first = f(tf.constant(1.0), False)
    try:
        f(tf.constant(1.0), True)
    except ValueError:
        pass
    return [first, v, f(tf.constant(1.0), False), v]


@program()
def functions_that_assign_call_functions_that_assign(tf, np):
    v = tf.Variable(1.0)

    @tf.function
    def bump(by):
        v.assign_add(by)
        return v * 1.0

    @tf.function
    def outer(x):
        a = bump(x)
        b = bump(x * 2.0)
        return a, b, v.read_value()

    return [outer(tf.constant(1.0)), outer(tf.constant(10.0)), v]


@program()
def momentum(tf, np):
    w, m = tf.Variable([1.0, -2.0]), tf.Variable([0.0, 0.0])
    count = tf.Variable(0, trainable=False)

    @tf.function
    def step(rate):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(w**4)
        m.assign(0.9 * m + tape.gradient(loss, w))
        w.assign_sub(rate * m)
        count.assign_add(1)
        return loss

    losses = [step(tf.constant(0.01)) for _ in range(3)]
    return [losses, w, m, count]


@program()
def a_table_of_rows(tf, np):
    table = tf.Variable(np.zeros((4, 2), np.float32))

    @tf.function
    def step(rows, target):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((tf.gather(table, rows) - target) ** 2)
        gradient = tape.gradient(loss, table)
        table.scatter_sub(tf.IndexedSlices(0.1 * gradient.values, gradient.indices))
        return loss

    rows, target = tf.constant([0, 2, 2]), tf.constant([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    return [[step(rows, target) for _ in range(3)], table]


@program()
def a_tape_lists_what_a_function_reads(tf, np):
    a, b, c = tf.Variable(1.0), tf.Variable(2.0), tf.Variable(3.0, trainable=False)
    f = tf.function(lambda x: x * a * c)
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        y = f(x)
    names = [any(one is v for one in tape.watched_variables()) for v in (a, b, c)]
    return [y, names, tape.gradient(y, [a, b, c])]


@program()
def assigned_from_outside_between_calls(tf, np):
    v = tf.Variable(1.0)
    f = tf.function(lambda: v * 10.0)
    out = [f()]
    v.assign(2.0)
    out.append(f())
    v.assign_add(1.0)
    return [*out, f()]


@program()
def a_function_with_a_conditional_assignment(tf, np):
    v = tf.Variable(1.0)

    @tf.function
    def f(x):
        tf.cond(x > 0.0, lambda: v.assign_add(x), lambda: v.assign_sub(1.0))
        return v * 1.0

    return [f(tf.constant(2.0)), f(tf.constant(-2.0)), v]


@program()
def traces_that_make_variables_are_counted(tf, np):
    class Lazy(tf.Module):
        weight = None

        @tf.function
        def __call__(self, x):
            runs.append(1)
            if self.weight is None:
                self.weight = tf.Variable(2.0)
            return self.weight * x

    runs, lazy = [], Lazy()
    return [
        [lazy(tf.constant(x)), len(runs), lazy.__call__.experimental_get_tracing_count()] for x in (1.0, 2.0, [3.0])
    ]
