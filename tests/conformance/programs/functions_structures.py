"""tf.function: conditions, maps, scans and Python calls, with structures."""

from conformance.program import program


def raises(tf, function):
    """Returns the name of the error's type, or None."""
    try:
        function()
    except Exception as error:
        return type(error).__name__
    return None


@program()
def cond_names(tf, np):
    @tf.function
    def f(x):
        return tf.cond(x > 0.0, true_fn=lambda: {"a": x, "b": [x]}, false_fn=lambda: {"a": -x, "b": [x * 2.0]})

    return [f(tf.constant(1.0)), f(tf.constant(-1.0))]


@program()
def case_default(tf, np):
    @tf.function
    def f(x):
        return tf.case([(x < 0.0, lambda: -x), (x > 10.0, lambda: x / 10.0)], default=lambda: x * 2.0)

    return [f(tf.constant(v)) for v in (-3.0, 20.0, 3.0)]


@program()
def case_exclusive_error(tf, np):
    @tf.function
    def f(x):
        return tf.case([(x < 5.0, lambda: -x), (x < 10.0, lambda: x / 10.0)], default=lambda: x * 2.0, exclusive=True)

    return [f(tf.constant(7.0)), raises(tf, lambda: f(tf.constant(1.0)))]


@program()
def case_no_default(tf, np):
    @tf.function
    def f(x):
        return tf.case([(x < 0.0, lambda: -x), (x >= 0.0, lambda: x + 1.0)])

    return [f(tf.constant(v)) for v in (-3.0, 20.0)]


@program()
def switch_case_default(tf, np):
    @tf.function
    def f(i, x):
        return tf.switch_case(i, [lambda: x, lambda: x * 2.0], default=lambda: x * 3.0)

    return [f(tf.constant(i), tf.constant(2.0)) for i in (0, 1, 2, -1)]


@program()
def switch_case_dict(tf, np):
    @tf.function
    def f(i, x):
        return tf.switch_case(i, {0: lambda: x, 1: lambda: x * 2.0, 2: lambda: x - 1.0})

    return [f(tf.constant(i), tf.constant(2.0)) for i in (0, 1, 2, 7)]


@program()
def switch_case_grad(tf, np):
    @tf.function
    def f(i, x):
        return tf.switch_case(i, [lambda: x, lambda: x * x])

    x = tf.constant(3.0)
    r = []
    for i in (0, 1):
        with tf.GradientTape() as t:
            t.watch(x)
            y = f(tf.constant(i), x)
        r.append(t.gradient(y, x))
    return r


@program()
def map_fn_structures(tf, np):
    @tf.function
    def f(a, b):
        return tf.map_fn(
            lambda t: (t[0] * t[1], {"s": t[0] + t[1]}), (a, b), fn_output_signature=(tf.float32, {"s": tf.float32})
        )

    return f(tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0]))


@program()
def map_fn_signature_dtype(tf, np):
    @tf.function
    def f(a):
        return tf.map_fn(lambda t: tf.cast(t, tf.int32) * 2, a, fn_output_signature=tf.int32)

    return f(tf.constant([1.0, 2.0]))


@program()
def map_fn_signature_spec(tf, np):
    @tf.function
    def f(a):
        return tf.map_fn(lambda t: tf.fill([2], t), a, fn_output_signature=tf.TensorSpec([2], tf.float32))

    return f(tf.constant([1.0, 2.0]))


@program()
def map_fn_var(tf, np):
    w = tf.Variable(2.0)

    @tf.function
    def f(a):
        return tf.reduce_sum(tf.map_fn(lambda t: t * t * w, a))

    with tf.GradientTape() as t:
        y = f(tf.constant([1.0, 2.0]))
    return t.gradient(y, w)


@program()
def map_fn_cond(tf, np):
    @tf.function
    def f(a):
        def g(t):
            if t > 1.5:
                return t * 10.0
            return t

        return tf.map_fn(g, a)

    return f(tf.constant([1.0, 2.0]))


@program()
def scan_structures(tf, np):
    @tf.function
    def f(x):
        return tf.scan(lambda a, b: (a[0] + b, a[1] * b), x, initializer=(tf.constant(0.0), tf.constant(1.0)))

    return f(tf.constant([1.0, 2.0, 3.0]))


@program()
def scan_reverse(tf, np):
    @tf.function
    def f(x):
        return tf.scan(lambda a, b: a * 0.9 + b, x, reverse=True)

    return f(tf.constant([1.0, 2.0, 3.0]))


@program()
def foldl_foldr(tf, np):
    @tf.function
    def f(x):
        return tf.foldl(lambda a, b: a - b, x), tf.foldr(lambda a, b: a - b, x)

    return f(tf.constant([1.0, 2.0, 3.0]))


@program()
def vectorized_map_fn(tf, np):
    @tf.function
    def f(x):
        return tf.vectorized_map(lambda a: tf.matmul(a, a), x)

    return f(tf.reshape(tf.range(8.0), [2, 2, 2]))


@program()
def vectorized_map_struct(tf, np):
    w = tf.constant([1.0, 2.0])

    @tf.function
    def f(x, y):
        return tf.vectorized_map(lambda t: {"a": tf.reduce_sum(t[0] * w), "b": t[1] + 1.0}, (x, y))

    return f(tf.reshape(tf.range(6.0), [3, 2]), tf.range(3.0))


@program()
def vectorized_map_tape(tf, np):
    @tf.function
    def f(x):
        def g(a):
            with tf.GradientTape() as t:
                t.watch(a)
                y = tf.reduce_sum(a**3)
            return t.gradient(y, a)

        return tf.vectorized_map(g, x)

    return f(tf.reshape(tf.range(6.0), [3, 2]))


@program()
def pyf_in_function(tf, np):
    @tf.function
    def f(x):
        return tf.py_function(lambda a: a.numpy() * 2, [x], tf.float32) + 1.0

    return f(tf.constant([1.0, 2.0]))


@program()
def pyf_gradient(tf, np):
    @tf.function
    def f(x):
        return tf.reduce_sum(tf.py_function(lambda a: a * a, [x], tf.float32))

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as t:
        t.watch(x)
        y = f(x)
    return t.gradient(y, x)


@program()
def npf_in_function(tf, np):
    @tf.function
    def f(x):
        return tf.numpy_function(lambda a: np.sort(a)[::-1].copy(), [x], tf.float32)

    return f(tf.constant([1.0, 3.0, 2.0]))


@program()
def npf_two_results(tf, np):
    @tf.function
    def f(x):
        a, b = tf.numpy_function(lambda a: (a + 1, np.int64(len(a))), [x], [tf.float32, tf.int64])
        return a * 2.0, b

    return f(tf.constant([1.0, 3.0, 2.0]))


@program()
def npf_set_shape(tf, np):
    @tf.function
    def f(x):
        y = tf.numpy_function(lambda a: a * 2, [x], tf.float32)
        y.set_shape([2])
        return tf.reduce_sum(y)

    return f(tf.constant([1.0, 3.0]))


@program()
def pyf_ensure_shape(tf, np):
    @tf.function
    def f(x):
        y = tf.ensure_shape(tf.py_function(lambda a: a * 2, [x], tf.float32), [2])
        return y[0]

    return f(tf.constant([1.0, 3.0]))
