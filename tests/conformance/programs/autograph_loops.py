"""AutoGraph: `for` and `while` on tensors in a tf.function, with break, continue and return inside."""

from conformance.probes import derivatives, gradients
from conformance.program import program


@program()
def while_on_a_tensor(tf, np):
    @tf.function
    def f(x):
        n = 0
        while tf.reduce_sum(x) < 20.0:
            x = x * x
            n += 1
        return x, n

    return [gradients(tf, lambda x: f(x)[0], [1.5, 2.0]), f(tf.constant([1.5, 2.0])), f(tf.constant([30.0, 2.0]))]


@program()
def second_derivatives_through_a_loop(tf, np):
    @tf.function
    def f(x):
        y = x
        while y < 20.0:
            y = y * x + 1.0
        return y

    return derivatives(tf, f, 2.5)


@program()
def for_over_a_range(tf, np):
    @tf.function
    def power(x, n):
        y = tf.ones_like(x)
        for _ in tf.range(n):
            y = y * x
        return y

    results = []
    for n in (0, 1, 5):
        results.append(gradients(tf, lambda x, n=n: power(x, tf.constant(n)), [1.5, 2.0]))
    return [results, power.experimental_get_tracing_count()]


@program()
def ranges_with_start_and_step(tf, np):
    @tf.function
    def f(start, stop, step):
        total = 0
        last = -100
        for i in tf.range(start, stop, step):
            total = total * 2 + i
            last = i
        return total, last

    return [f(*map(tf.constant, each)) for each in ((1, 8, 3), (9, 2, -2), (0, 1, 1))]


@program()
def ranges_of_constants_and_floats(tf, np):
    @tf.function
    def f(x):
        for i in tf.range(2, 5):
            x = x + tf.cast(i, tf.float32)
        for t in tf.range(0.0, 1.0, 0.25):
            x = x * (1.0 + t)
        return x

    return gradients(tf, f, 1.5)


@program()
def builtin_range_of_a_tensor(tf, np):
    @tf.function
    def f(n):
        s = 0
        for i in range(n):
            s += i * i
        for i in range(1, n):
            s -= i
        return s

    return [f(tf.constant(5)), f(tf.constant(0)), f(3)]


@program()
def for_over_the_rows_of_a_tensor(tf, np):
    @tf.function
    def f(x, w):
        state = tf.zeros_like(w)
        for row in x:
            state = tf.tanh(state + row * w)
        return state

    return gradients(tf, f, [[0.1, 0.2], [0.3, -0.4], [0.5, 0.6]], [1.0, -1.5])


@program()
def for_over_no_rows(tf, np):
    @tf.function
    def f(x, y):
        for row in x:
            y = y * row
        return y

    return gradients(tf, lambda y: f(tf.zeros([0, 2]), y), [1.0, 2.0])


@program()
def break_out_of_a_loop(tf, np):
    @tf.function
    def f(x, limit):
        total = 0.0
        for value in x:
            if total + value > limit:
                break
            total += value
        return total

    x = [1.0, 2.0, 3.0, 4.0]
    return [gradients(tf, f, x, limit) for limit in (0.5, 3.5, 100.0)]


@program()
def continue_in_a_loop(tf, np):
    @tf.function
    def f(x):
        total = 0.0
        for i in tf.range(5):
            if i % 2 == 1:
                continue
            total += x[i] * x[i]
        return total

    return gradients(tf, f, [1.0, 2.0, 3.0, 4.0, 5.0])


@program()
def break_and_continue_in_a_while(tf, np):
    @tf.function
    def f(n):
        i, s = 0, 0
        while True:
            i += 1
            if i > n:
                break
            if i % 3 == 0:
                continue
            s += i
            if s > 50:
                break
        return i, s

    @tf.function
    def on_tensors(n):
        i, s = tf.constant(0), tf.constant(0)
        while i < 100:
            i += 1
            if i > n:
                break
            if i % 3 == 0:
                continue
            s += i
            if s > 50:
                break
        return i, s

    return [f(7), on_tensors(tf.constant(7)), on_tensors(tf.constant(90))]


@program()
def nested_loops(tf, np):
    @tf.function
    def f(x, n):
        total = 0.0
        for i in tf.range(n):
            for j in tf.range(i + 1):
                total += x[i] * x[j]
        return total

    return [gradients(tf, lambda x, n=n: f(x, tf.constant(n)), [1.0, 2.0, 3.0]) for n in (1, 3)]


@program()
def nested_loops_with_breaks(tf, np):
    @tf.function
    def first_pair(x, target):
        a, b = -1, -1
        for i in tf.range(4):
            for j in tf.range(4):
                if x[i] + x[j] == target and i != j:
                    a, b = i, j
                    break
            if a >= 0:
                break
        return a, b

    x = tf.constant([1, 4, 6, 9])
    return [first_pair(x, tf.constant(t)) for t in (10, 5, 2, 15)]


@program()
def python_loops_are_unrolled(tf, np):
    runs = []

    @tf.function
    def f(x):
        for i in range(3):
            runs.append(i)
            x = x * (i + 1.0)
        k = 0
        while k < 2:
            x = x + 1.0
            k += 1
        for w in [x, 2.0 * x]:
            x = x + w
        return x

    return [gradients(tf, f, [1.0, 2.0]), list(runs)]


@program()
def a_python_loop_whose_tensors_change_shape(tf, np):
    @tf.function
    def f(x):
        for _ in range(3):
            x = tf.concat([x, x[:1] * 2.0], 0)
        return x

    return gradients(tf, f, [1.0, 2.0])


@program()
def a_variable_that_the_loop_defines(tf, np):
    @tf.function
    def f(x):
        for i in tf.range(3):
            last = x * tf.cast(i, tf.float32)
        return last

    return gradients(tf, f, [1.0, 2.0])


@program()
def the_loop_variable_after_the_loop(tf, np):
    @tf.function
    def f(n):
        i = -1
        for i in tf.range(n):
            pass
        return i

    return [f(tf.constant(4)), f(tf.constant(0))]


@program()
def structures_as_loop_variables(tf, np):
    @tf.function
    def f(x, n):
        state = {"a": x, "b": (x * 2.0, tf.constant(0))}
        for i in tf.range(n):
            first, count = state["b"]
            state = {"a": state["a"] + first, "b": (first * 0.5, count + i)}
        return state

    return [f(tf.constant(1.0), tf.constant(3)), gradients(tf, lambda x: f(x, tf.constant(4))["a"], 2.0)]


@program()
def variables_assigned_in_a_loop(tf, np):
    v = tf.Variable(0.0)

    @tf.function
    def f(n):
        for i in tf.range(n):
            v.assign_add(tf.cast(i, tf.float32))
            if v > 5.0:
                v.assign(v * 0.5)
        return v.read_value()

    return [f(tf.constant(3)), f(tf.constant(6)), v]


@program()
def variables_read_in_a_loop(tf, np):
    w, b = tf.Variable([[0.5, -0.2], [0.1, 0.3]]), tf.Variable([0.1, -0.1])

    @tf.function
    def f(x, n):
        for _ in tf.range(n):
            x = tf.tanh(tf.matmul(x, w) + b)
        return tf.reduce_sum(x)

    results = []
    for n in (1, 4):
        with tf.GradientTape() as tape:
            y = f(tf.constant([[1.0, 2.0]]), tf.constant(n))
        results.append([y, tape.gradient(y, [w, b])])
    return results


@program()
def maximum_iterations(tf, np):
    @tf.function
    def f(x):
        for i in tf.range(10):
            tf.autograph.experimental.set_loop_options(maximum_iterations=3)
            x += tf.cast(i, tf.float32) + 1.0
        return x

    return gradients(tf, f, 1.0)


@program()
def loop_with_a_tape_inside_the_function(tf, np):
    w = tf.Variable(1.5)

    @tf.function
    def step(n):
        with tf.GradientTape() as tape:
            y = tf.constant(1.0)
            for _ in tf.range(n):
                y = y * w
        return y, tape.gradient(y, w)

    return [step(tf.constant(n)) for n in (0, 1, 4)]


@program()
def gradient_steps_in_a_loop(tf, np):
    w = tf.Variable([2.0, -3.0])

    @tf.function
    def train(n, rate):
        loss = tf.constant(0.0)
        for _ in tf.range(n):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum((w - [1.0, 2.0]) ** 2)
            w.assign_sub(rate * tape.gradient(loss, w))
        return loss

    return [train(tf.constant(3), tf.constant(0.1)), w, train(tf.constant(10), tf.constant(0.2)), w]


@program()
def return_from_a_loop(tf, np):
    @tf.function
    def first_above(x, limit):
        found = -1.0
        for value in x:
            if value > limit:
                found = value
                break
        if found < 0.0:
            return tf.constant(-7.0)
        return found * 2.0

    x = [1.0, 4.0, 2.0, 8.0]
    return [gradients(tf, first_above, x, limit) for limit in (0.0, 3.0, 5.0, 50.0)]


@program()
def columns_of_a_batch(tf, np):
    @tf.function
    def f(x, w):
        h = tf.zeros([2])
        for t in tf.range(3):
            h = tf.sigmoid(h * w + x[:, t])
        return h

    return gradients(tf, f, [[0.1, 0.2, 0.3], [-0.4, 0.5, 0.6]], [1.0, -2.0])


@program()
def counting_with_a_while_and_python_numbers(tf, np):
    @tf.function
    def f(x):
        i = 0
        s = 0.0
        while i < tf.size(x):
            s += x[i]
            i += 1
        return s, i

    return f(tf.constant([1.0, 2.5, 4.0]))


@program()
def len_int_float_and_abs_of_tensors(tf, np):
    @tf.function
    def f(x):
        total = 0.0
        for i in tf.range(len(x)):
            total += float(int(x[i])) + abs(x[i])
        return total

    return gradients(tf, f, [1.5, -2.5])


@program()
def enumerate_and_zip_of_python_sequences(tf, np):
    @tf.function
    def f(x):
        total = 0.0
        for i, (a, b) in enumerate(zip([1.0, 2.0], [x, x * x])):
            if b > 1.0:
                total += a * b + i
        return total

    return [gradients(tf, f, 2.0), gradients(tf, f, 0.5)]
