"""Python's own control flow around recorded ops: only what ran counts."""

from conformance.program import program


@program()
def the_branch_that_ran(tf, np):
    out = []
    for value in (0.5, 2.0):
        x, a, b = tf.Variable(value), tf.Variable(10.0), tf.Variable(20.0)
        with tf.GradientTape() as tape:
            y = a * x if x > 1.0 else b - x
        out.append([y, tape.gradient(y, [x, a, b])])
    return out


@program()
def while_over_a_tensor(tf, np):
    x = tf.Variable(1.1)
    with tf.GradientTape() as tape:
        y, steps = x, 0
        while tf.abs(y) < 10.0:
            y, steps = y * 1.7 + x, steps + 1
    return [steps, y, tape.gradient(y, x)]


@program()
def a_loop_that_never_runs(tf, np):
    x, w = tf.Variable(3.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x
        for _ in range(0):
            y = y * w
    return tape.gradient(y, [x, w])


@program()
def a_loop_over_range_of_a_tensor(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.constant(1.0)
        for i in range(tf.constant(4)):
            y = y * x + float(i)
    return [y, tape.gradient(y, x)]


@program()
def break_and_continue(tf, np):
    x = tf.Variable([0.5, 3.0, -1.0, 9.0])
    with tf.GradientTape() as tape:
        y = 0.0
        for part in [x[0], x[1], x[2], x[3]]:
            if part > 5.0:
                break
            if part < 0.0:
                continue
            y += part * part
    return [y, tape.gradient(y, x)]


@program()
def a_condition_of_several_tensors(tf, np):
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z = x * y if x < y and not y > 5.0 else x - y
    return tape.gradient(z, [x, y])


@program()
def recursion(tf, np):
    def power(x, n):
        return tf.ones([]) if n == 0 else x * power(x, n - 1)

    x = tf.Variable(1.5)
    with tf.GradientTape() as tape:
        y = power(x, 5)
    return [y, tape.gradient(y, x)]


@program()
def a_generator(tf, np):
    def partial_sums(values):
        total = 0.0
        for value in values:
            total = total + value
            yield total

    xs = [tf.Variable(float(i)) for i in range(1, 5)]
    with tf.GradientTape() as tape:
        y = tf.add_n(list(partial_sums(xs)))
    return tape.gradient(y, xs)


@program()
def a_sorted_order_chosen_by_values(tf, np):
    xs = [tf.Variable(3.0), tf.Variable(1.0), tf.Variable(2.0)]
    with tf.GradientTape() as tape:
        ordered = sorted(xs, key=float)
        y = ordered[0] * 100.0 + ordered[1] * 10.0 + ordered[2]
    return tape.gradient(y, xs)


@program()
def an_early_return(tf, np):
    def clipped(x):
        if tf.reduce_max(x) > 2.0:
            return x / tf.reduce_max(x)
        return x * 3.0

    out = []
    for values in ([1.0, 4.0], [1.0, 2.0]):
        x = tf.Variable(values)
        with tf.GradientTape() as tape:
            y = clipped(x)
        out.append([y, tape.gradient(y, x)])
    return out


@program()
def a_function_that_calls_through(tf, np):
    @tf.function
    def square_sum(a, b):
        return tf.reduce_sum(a * a) + b

    x, b = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = square_sum(x, b) * 2.0
    return [y, *tape.gradient(y, [x, b])]


@program()
def where_instead_of_if(tf, np):
    x = tf.Variable([-1.0, 2.0, -3.0, 4.0])
    with tf.GradientTape() as tape:
        y = tf.where(x > 0.0, x * x, -x)
    return [y, tape.gradient(y, x)]
