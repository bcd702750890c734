"""tf.function: what a call gives, when it is traced, and what it is refused for."""

from conformance.probes import message
from conformance.program import program


@program()
def a_call(tf, np):
    @tf.function
    def scaled(x, by=3.0):
        return x * by + 1.0

    return [
        scaled(tf.constant([1.0, 2.0])),
        scaled(tf.constant(2.0), 4.0),
        scaled(by=tf.constant(2.0), x=tf.constant(5.0)),
    ]


@program()
def results_of_every_shape(tf, np):
    @tf.function
    def many(x):
        return {"x": x, "list": [1, None, np.float32(2.0)], "pair": (x * 2.0, {"deep": x - 1.0}), "flag": True}

    @tf.function
    def nothing(x):
        x + 1.0

    return [many(tf.constant(1.0)), nothing(tf.constant(1.0))]


@program()
def nested_arguments(tf, np):
    @tf.function
    def total(batch, *rest, scale=1.0, **named):
        summed = batch["x"][0] + batch["x"][1] * batch["y"]
        for one in rest:
            summed += one
        for name in sorted(named):
            summed += named[name] * 10.0
        return summed * scale

    a, b, c = tf.constant(1.0), tf.constant(2.0), tf.constant(3.0)
    return [total({"y": c, "x": [a, b]}), total({"x": (a, b), "y": c}, a, b, scale=2.0, extra=c)]


@program()
def traces_are_counted(tf, np):
    traces = []

    @tf.function
    def f(x, k=1, word=None):
        traces.append(k)
        return x * k

    def count(*calls):
        del traces[:]
        for call in calls:
            call()
        return len(traces)

    return {
        "one spec": count(lambda: f(tf.constant(1.0)), lambda: f(tf.constant(2.0))),
        "shapes": count(lambda: f(tf.constant([1.0])), lambda: f(tf.constant([1.0, 2.0]))),
        "dtypes": count(lambda: f(tf.constant(1)), lambda: f(tf.constant(1, tf.int64))),
        "python numbers": count(lambda: f(1), lambda: f(2), lambda: f(2), lambda: f(1.0), lambda: f(True)),
        "arrays": count(lambda: f(np.float32(3.0)), lambda: f(np.ones(3)), lambda: f(np.zeros(3))),
        "keywords": count(
            lambda: f(tf.constant(1.0), k=7), lambda: f(tf.constant(1.0), 7), lambda: f(k=7, x=tf.constant(0.5))
        ),
        "variables": count(lambda: f(tf.Variable(1.0)), lambda: f(tf.Variable(2.0))),
        "words": count(lambda: f(tf.constant(1.0), word="a"), lambda: f(tf.constant(1.0), word="b")),
        "lists": count(lambda: f([1.0, 2.0], 1), lambda: f([1.0, 2.0], 1), lambda: f([1.0, 3.0], 1)),
        "in all": f.experimental_get_tracing_count(),
    }


@program()
def objects_are_told_apart(tf, np):
    traces = []

    class Setting:
        def __init__(self, by):
            self.by = by

    @tf.function
    def f(x, setting):
        traces.append(setting.by)
        return x * setting.by

    one, two = Setting(2.0), Setting(3.0)
    x = tf.constant(1.5)
    return [f(x, one), f(x, two), f(x, one), list(traces)]


@program()
def python_runs_while_it_is_traced(tf, np):
    seen = []

    @tf.function
    def f(x):
        seen.append((tf.executing_eagerly(), tf.inside_function()))
        with tf.init_scope():
            seen.append((tf.executing_eagerly(), tf.inside_function()))
        return x + len(seen)

    return [f(tf.constant(1.0)), f(tf.constant(2.0)), f(tf.constant([1.0])), seen]


@program()
def a_symbol_prints(tf, np):
    seen = []

    @tf.function
    def f(x, y):
        seen.append([str(x), repr(y), x.name, x.shape, x.dtype])
        return x

    f(tf.constant(1.0), tf.constant([[1, 2]]))
    return seen


@program()
def shapes_are_numbers_while_it_is_traced(tf, np):
    @tf.function
    def f(x):
        rows, columns = x.shape
        flat = tf.reshape(x, [rows * columns])
        total = tf.constant(0.0)
        for i in range(rows):
            total += float(i) * tf.reduce_sum(x[i])
        return flat, total, tf.shape(x), len(x.shape)

    return f(tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))


@program()
def an_input_signature(tf, np):
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([], tf.float32)])
    def f(x, by):
        return tf.reduce_sum(x) * by

    x = tf.constant([[1.0, 2.0]])
    return [
        f(x, tf.constant(2.0)),
        f([[1.0, 2.0], [3.0, 4.0]], 3.0),
        message(lambda: f(tf.constant([1.0, 2.0]), 1.0)),
        message(lambda: f(tf.constant([[1, 2]]), 1.0)),
    ]


@program()
def arguments_that_do_not_fit(tf, np):
    @tf.function
    def f(x, k=1):
        return x * k

    return [
        message(lambda: f()),
        message(lambda: f(1, 2, 3)),
        message(lambda: f(1, word=2)),
        message(lambda: f(1, x=2)),
    ]


@program()
def a_result_that_is_no_tensor(tf, np):
    @tf.function
    def f(x):
        return object()

    try:
        f(tf.constant(1.0))
    except TypeError as error:
        return str(error).split("; in compilation of")[0]


@program()
def concrete_functions(tf, np):
    @tf.function
    def f(x, by, word="a"):
        return {"y": x * by}

    concrete = f.get_concrete_function(tf.TensorSpec([2], tf.float32), 3.0)
    one = f.get_concrete_function(tf.constant(1.0), tf.constant(2.0))
    return [
        concrete(tf.constant([1.0, 2.0])),
        one(tf.constant(4.0), tf.constant(0.5)),
        concrete.structured_input_signature[0][0].shape,
        concrete.structured_outputs["y"].shape,
        f.experimental_get_tracing_count(),
    ]


@program()
def its_name_and_its_function(tf, np):
    @tf.function
    def doubled(x):
        """Twice."""
        return x * 2

    return [doubled.__name__, doubled.__doc__, doubled.python_function(21)]


@program()
def methods(tf, np):
    class Scale(tf.Module):
        def __init__(self, by):
            super().__init__()
            self.by = tf.Variable(by)
            self.traces = 0

        @tf.function
        def __call__(self, x):
            self.traces += 1
            return x * self.by

        @tf.function
        def shift(self, x, by=1.0):
            return self(x) + by

    two, three = Scale(2.0), Scale(3.0)
    x = tf.constant(5.0)
    return [two(x), three(x), two(x + 1.0), two.shift(x), three.shift(x, 2.0), two.traces, three.traces]


@program()
def functions_call_functions(tf, np):
    inner_traces = []

    @tf.function
    def inner(x, k):
        inner_traces.append(k)
        return x * k

    @tf.function
    def outer(x):
        return inner(x, 2) + inner(x, 3) + inner(x * 2.0, 2)

    return [outer(tf.constant(1.0)), outer(tf.constant(5.0)), inner_traces]


@program()
def a_closure_over_a_traced_tensor(tf, np):
    @tf.function
    def outer(x):
        y = x * x

        @tf.function
        def inner(z):
            return y * z

        return inner(x) + inner(y)

    return [outer(tf.constant(2.0)), outer(tf.constant(3.0))]


@program()
def recursion_over_a_python_number(tf, np):
    @tf.function
    def power(x, n):
        return tf.ones_like(x) if n == 0 else x * power(x, n - 1)

    return [power(tf.constant(2.0), 5), power(tf.constant([1.0, 3.0]), 2)]


@program(fresh=True)
def run_eagerly(tf, np):
    seen = []

    @tf.function
    def f(x):
        seen.append(tf.executing_eagerly())
        return x * 2.0

    tf.config.run_functions_eagerly(True)
    first = [f(tf.constant(1.0)), f(tf.constant(1.0)), tf.config.functions_run_eagerly()]
    tf.config.run_functions_eagerly(False)
    return [first, f(tf.constant(1.0)), f(tf.constant(1.0)), seen]


@program()
def an_error_in_the_body(tf, np):
    @tf.function
    def f(x):
        raise KeyError("of the program's own")

    try:
        f(tf.constant(1.0))
    except KeyError:
        return "KeyError"


@program()
def a_tensor_that_leaks(tf, np):
    leaked = []

    @tf.function
    def f(x):
        leaked.append(x * 2.0)
        return x

    f(tf.constant(1.0))
    try:
        leaked[0] + 1.0
    except TypeError as error:
        return str(error).split(" is out of scope")[1].split("\n")[0]


@program()
def if_and_loops_over_tensors(tf, np):
    @tf.function
    def sign(x):
        if x > 0:
            return tf.constant(1.0)
        return tf.constant(-1.0)

    @tf.function
    def halved(x):
        n = tf.constant(0)
        while x > 1.0:
            x = x / 2.0
            n += 1
        return x, n

    @tf.function
    def summed(xs):
        total = 0.0
        for x in xs:
            total += x * x
        return total

    return [
        sign(tf.constant(2.0)),
        sign(tf.constant(-2.0)),
        halved(tf.constant(10.0)),
        summed(tf.constant([1.0, 2.0, 3.0])),
    ]


@program()
def random_numbers_differ_between_calls(tf, np):
    @tf.function
    def drawn(n):
        return tf.random.normal([n]), tf.random.uniform([], 5.0, 6.0)

    (a, u), (b, v) = drawn(3), drawn(3)
    return [bool(np.any(a.numpy() != b.numpy())), bool(u != v), bool(5.0 <= u < 6.0), a.shape]


@program()
def gather_outside_of_it_raises_at_the_call(tf, np):
    @tf.function
    def divided(a, b):
        return a // b

    try:
        divided(tf.constant([4, 5]), tf.constant([2, 0]))
    except tf.errors.InvalidArgumentError:
        return [divided(tf.constant([4, 5]), tf.constant([2, 1]))]


@program()
def jit_and_other_options(tf, np):
    @tf.function(reduce_retracing=True, autograph=False)
    def f(x):
        return x * 2.0

    g = tf.function(lambda x: x + 1.0)
    return [f(tf.constant(1.0)), g(tf.constant(1.0)), tf.function(f.python_function)(tf.constant(3.0))]
