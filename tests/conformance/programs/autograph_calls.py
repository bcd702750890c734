"""AutoGraph: which functions are converted: those that a tf.function calls, methods, lambdas, closures."""

from conformance.probes import gradients, raises
from conformance.program import program


def halved_until(x, limit):
    while x > limit:
        x = x / 2.0
    return x


def recursive_power(x, n):
    if n == 0:
        return tf_ones(x)
    return x * recursive_power(x, n - 1)


def tf_ones(x):
    return x * 0.0 + 1.0


@program()
def functions_of_the_module(tf, np):
    @tf.function
    def f(x):
        return halved_until(x, 1.0) + halved_until(x * 3.0, 0.5)

    return [gradients(tf, f, 5.0), gradients(tf, f, 0.1)]


@program()
def recursion_on_python_numbers(tf, np):
    @tf.function
    def f(x):
        return recursive_power(x, 3)

    return gradients(tf, f, 2.0)


@program()
def inner_functions_and_closures(tf, np):
    scale = tf.constant(3.0)

    @tf.function
    def f(x):
        count = 0

        def act(y):
            nonlocal count
            count += 1
            if y > scale:
                return y * scale
            return y

        return act(x) + act(x * 2.0), count

    return [gradients(tf, lambda x: f(x)[0], 2.0), f(tf.constant(2.0))]


@program()
def lambdas(tf, np):
    @tf.function
    def f(x):
        g = lambda y: y * 2.0 if y > 1.0 else y * y  # noqa: E731
        return g(x) + g(x * 0.1)

    h = tf.function(lambda x: x if x > 0.0 else -x)
    return [gradients(tf, f, 3.0), h(tf.constant(-2.0)), h(tf.constant(2.0))]


@program()
def methods_of_objects(tf, np):
    class Model:
        def __init__(self):
            self.w = tf.Variable(2.0)
            self.calls = 0

        def clip(self, x):
            if tf.abs(x) > self.w:
                x = tf.sign(x) * self.w
            return x

        @tf.function
        def forward(self, x):
            self.calls += 1
            return self.clip(x) * 3.0

        def __call__(self, x):
            if x > 0.0:
                return self.w * x
            return x

    model, other = Model(), Model()
    other.w.assign(5.0)

    @tf.function
    def call(x):
        return model(x) + 1.0

    x = tf.constant(4.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = model.forward(x), other.forward(x)
    return [
        y,
        tape.gradient(y, [x, model.w]),
        z,
        tape.gradient(z, x),
        model.forward(-x),
        model.calls,
        call(x),
        call(-x),
    ]


@program()
def super_and_inheritance(tf, np):
    class Base(tf.Module):
        def step(self, x):
            if x > 1.0:
                return x - 1.0
            return x

    class Child(Base):
        def __init__(self):
            super().__init__()
            self.k = tf.Variable(2.0)

        @tf.function
        def step(self, x):
            y = super().step(x)
            if y > 2.0:
                y = y * self.k
            return y

    child = Child()
    return [child.step(tf.constant(v)) for v in (5.0, 2.5, 0.5)]


@program()
def decorated_functions(tf, np):
    def doubling(function):
        def wrapped(*args, **kwargs):
            result = function(*args, **kwargs)
            if result > 10.0:
                result = result * 2.0
            return result

        return wrapped

    @doubling
    def inner(x, *, by):
        if x > 3.0:
            x = x * by
        return x

    @tf.function
    def f(x):
        return inner(x, by=4.0)

    return [gradients(tf, f, 5.0), gradients(tf, f, 1.0)]


@program()
def functions_that_call_functions(tf, np):
    @tf.function
    def relu(x):
        if x > 0.0:
            return x
        return tf.zeros_like(x)

    @tf.function
    def net(x):
        y = relu(x) + relu(-x)
        for _ in tf.range(2):
            y = relu(y * 2.0)
        return y

    return [gradients(tf, net, 2.0), gradients(tf, net, -3.0), relu.experimental_get_tracing_count()]


@program()
def do_not_convert(tf, np):
    @tf.autograph.experimental.do_not_convert
    def raw(x, flag):
        if flag:
            return x * 2.0
        return x

    @tf.function
    def f(x, flag):
        if x > 0.0:
            return raw(x, flag)
        return x

    return [f(tf.constant(2.0), True), f(tf.constant(2.0), False)]


@program()
def without_autograph(tf, np):
    @tf.function(autograph=False)
    def f(x, n):
        for _ in range(n):
            x = tf.cond(x > 10.0, lambda: x - 10.0, lambda: x * 3.0)
        return x

    return gradients(tf, lambda x: f(x, 3), 2.0)


@program()
def mapped_functions_are_converted(tf, np):
    def act(x):
        if x > 0.0:
            return x * 2.0
        return -x

    @tf.function
    def f(x):
        return tf.map_fn(act, x)

    return gradients(tf, f, [1.0, -2.0, 3.0])


@program()
def to_graph_in_a_function(tf, np):
    def clipped(x):
        if x > 1.0:
            return tf.ones_like(x)
        return x

    converted = tf.autograph.to_graph(clipped)

    @tf.function(autograph=False)
    def f(x):
        return converted(x)

    return [f(tf.constant(3.0)), f(tf.constant(0.5)), "def tf__clipped(x)" in tf.autograph.to_code(clipped)]


@program()
def default_and_keyword_arguments(tf, np):
    def scaled(x, by=2.0, *rest, offset=0.5, **named):
        if x > by:
            x = x * by
        for value in rest:
            x = x + value
        return x + offset + named.get("extra", 0.0)

    @tf.function
    def f(x):
        return scaled(x) + scaled(x, 3.0, 1.0, 2.0, offset=x, extra=x) + scaled(x=x)

    return [gradients(tf, f, 5.0), gradients(tf, f, 2.5)]


@program()
def try_and_with_blocks(tf, np):
    @tf.function
    def f(x):
        with tf.name_scope("scope"):
            if x > 0.0:
                x = x * 2.0
        try:
            if x > 3.0:
                x = x + 1.0
        finally:
            x = x * 10.0
        return x

    return [gradients(tf, f, 2.0), gradients(tf, f, -2.0)]


@program()
def list_comprehensions_and_appends(tf, np):
    @tf.function
    def f(x):
        parts = [x * i for i in range(3)]
        for i in range(2):
            parts.append(x + i)
        return tf.stack(parts)

    return gradients(tf, f, 2.0)


@program()
def eager_calls_of_the_python_function(tf, np):
    @tf.function
    def f(x):
        if x > 0.0:
            return x
        return -x

    tf.config.run_functions_eagerly(True)
    try:
        eager = f(tf.constant(-2.0))
    finally:
        tf.config.run_functions_eagerly(False)
    return [eager, f.python_function(tf.constant(-3.0)), raises(lambda: tf.autograph.to_graph(3))]
