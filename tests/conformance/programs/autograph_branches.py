"""AutoGraph: `if`, early returns, logical and conditional expressions on tensors in a tf.function."""

from conformance.probes import derivatives, gradients
from conformance.program import program


@program()
def if_and_else(tf, np):
    @tf.function
    def f(x):
        if x > 0.0:
            y = x * x
        else:
            y = -3.0 * x
        return y

    return [derivatives(tf, f, 3.0), derivatives(tf, f, -2.0), f.experimental_get_tracing_count()]


@program()
def if_without_else_changes_a_variable(tf, np):
    @tf.function
    def f(x):
        y = x
        if tf.reduce_sum(x) > 3.0:
            y = y * y
            x = x + 1.0
        return x * y

    return [gradients(tf, f, [1.0, 1.5]), gradients(tf, f, [2.0, 2.5])]


@program()
def elif_and_nested_branches(tf, np):
    @tf.function
    def f(x, y):
        if x > 2.0:
            if y > 0.0:
                z = x * y
            else:
                z = x - y
        elif x > 1.0:
            z = y**3
        else:
            z = x / y
        return z

    return [gradients(tf, f, x, y) for x, y in ((3.0, 2.0), (3.0, -2.0), (1.5, 2.0), (0.5, 4.0))]


@program()
def early_returns(tf, np):
    @tf.function
    def f(x):
        if x > 2.0:
            return x**2
        if x > 1.0:
            x = x * 3.0
            if x > 4.0:
                return x + 10.0
            else:
                return x * 0.5
        return -x

    return [gradients(tf, f, x) for x in (3.0, 1.5, 1.2, 0.5)]


@program()
def early_return_of_a_structure(tf, np):
    @tf.function
    def f(x):
        if x > 0.0:
            return {"a": x, "b": (x * 2.0, x * 3.0)}
        return {"a": -x, "b": (x, x * x)}

    return [f(tf.constant(1.0)), f(tf.constant(-2.0))]


@program()
def python_conditions_stay_python(tf, np):
    seen = []

    @tf.function
    def f(x, flag, name=None):
        if flag:
            seen.append("flag")
            x = x * 2.0
        else:
            seen.append("no flag")
        if name is None:
            return x
        if name == "square":
            return x * x
        return x[0]

    x = tf.constant([1.0, 2.0])
    return [f(x, True), f(x, False), f(x, True, "square"), f(x, True, "first"), f(x, True), list(seen)]


@program()
def a_condition_of_one_element(tf, np):
    @tf.function
    def f(x):
        if x[:1] > 1.0:
            return x * 2.0
        return x

    return [f(tf.constant([2.0, 3.0])), f(tf.constant([0.0, 3.0]))]


@program()
def a_branch_without_the_variable_gives_zeros(tf, np):
    @tf.function
    def f(x, y):
        if x > 1.0:
            z = x * 2.0
        else:
            z = y * y
        return z

    return [gradients(tf, f, 2.0, 3.0), gradients(tf, f, 0.5, 3.0)]


@program()
def logical_expressions(tf, np):
    @tf.function
    def f(x, y):
        a = x > 0.0 and y > 0.0
        b = x > 0.0 or y > 0.0
        c = not (x > y)
        d = not a and (b or c)
        return a, b, c, d

    return [f(tf.constant(x), tf.constant(y)) for x, y in ((1.0, 2.0), (1.0, -2.0), (-3.0, -2.0), (-1.0, 3.0))]


@program()
def the_right_side_is_computed_if_needed(tf, np):
    @tf.function
    def f(x, i):
        if i < 3 and x[i] > 1.0:
            return x[i] * 10.0
        if i >= 3 or x[i] > 0.5:
            return tf.constant(-1.0)
        return x[0]

    x = tf.constant([0.0, 2.0, 0.7])
    return [f(x, tf.constant(i)) for i in (0, 1, 2, 7)]


@program()
def chained_comparisons(tf, np):
    @tf.function
    def f(x):
        if 0.0 < x < 1.0:
            return x * 10.0
        if 1.0 <= x <= 2.0 < x + 1.0:
            return x * 100.0
        return x

    return [gradients(tf, f, x) for x in (0.5, 1.5, 1.0, 3.0)]


@program()
def conditional_expressions(tf, np):
    @tf.function
    def f(x, y):
        return (x * y if x > y else y / x) + (1.0 if tf.abs(x) > 2.0 else 2.0)

    return [gradients(tf, f, 3.0, 2.0), gradients(tf, f, 1.0, 2.0)]


@program()
def branches_that_assign_variables(tf, np):
    v, w = tf.Variable(1.0), tf.Variable([1.0, 2.0])

    @tf.function
    def f(x):
        if x > 0.0:
            v.assign_add(x)
        else:
            w.assign(w * x)
            v.assign(0.5)
        return v * tf.reduce_sum(w)

    return [f(tf.constant(2.0)), f(tf.constant(-3.0)), f(tf.constant(1.0)), v, w]


@program()
def branches_that_read_variables(tf, np):
    v, w = tf.Variable(2.0), tf.Variable(3.0)

    @tf.function
    def f(x):
        if x > 0.0:
            y = v * x
        else:
            y = w * x * v
        return y

    results = []
    for at in (1.5, -1.5):
        x = tf.constant(at)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        results.append([y, tape.gradient(y, [x, v, w])])
    return results


@program()
def attributes_and_elements_in_branches(tf, np):
    class Box:
        pass

    @tf.function
    def f(x):
        box = Box()
        box.value = x
        d = {"k": x * 2.0}
        if x > 1.0:
            box.value = box.value * 3.0
            d["k"] = d["k"] + 1.0
        return box.value, d["k"]

    return [f(tf.constant(2.0)), f(tf.constant(0.5))]


@program()
def known_and_unknown_conditions(tf, np):
    @tf.function
    def f(x, training=False):
        scale = 2.0 if training else 1.0
        rows = x.shape[0]
        if rows > 2 and tf.reduce_sum(x) > 0.0:
            scale *= 10.0
        return tf.reduce_mean(x) * scale

    return [
        f(tf.constant([1.0, 2.0, 6.0])),
        f(tf.constant([1.0, 2.0])),
        f(tf.constant([1.0, 2.0, -6.0]), training=True),
    ]


@program()
def leaky_activations(tf, np):
    @tf.function
    def activation(x, kind):
        if kind == 0:
            return tf.nn.relu(x)
        elif kind == 1:
            return tf.tanh(x)
        elif kind == 2:
            return tf.where(x > 0.0, x, 0.1 * x)
        else:
            return x

    x = tf.constant([-1.0, 0.5, 2.0])
    results = []
    for kind in range(4):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = activation(x, tf.constant(kind))
        results.append([y, tape.gradient(y, x)])
    return results


@program()
def training_step_with_the_tape_inside(tf, np):
    w = tf.Variable([1.0, -2.0])

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            error = tf.reduce_sum(w * x) - y
            if tf.abs(error) < 1.0:
                loss = 0.5 * error * error
            else:
                loss = tf.abs(error) - 0.5
        gradient = tape.gradient(loss, w)
        w.assign_sub(0.1 * gradient)
        return loss, gradient

    return [step(tf.constant([1.0, 2.0]), tf.constant(y)) for y in (-2.5, 4.0, -5.0)] + [w]


@program()
def clipped_gradients_in_a_step(tf, np):
    w = tf.Variable([3.0, 4.0])

    @tf.function
    def step(limit):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(w**2)
        g = tape.gradient(loss, w)
        norm = tf.norm(g)
        if norm > limit:
            g = g * limit / norm
        w.assign_sub(0.1 * g)
        return norm

    return [step(tf.constant(1.0)), step(tf.constant(100.0)), w]
