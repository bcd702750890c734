"""tf.function: forward mode and tapes around and inside its loops, branches of different shapes."""

from conformance.program import program


def raises(tf, function):
    """Returns the name of the error's type, or None."""
    try:
        function()
    except Exception as error:
        return type(error).__name__
    return None


@program()
def fwd_function_loop(tf, np):
    @tf.function
    def f(x):
        for _ in tf.range(3):
            x = tf.sin(x) * 2.0
        return x

    x = tf.constant(0.7)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        y = f(x)
    return [y, acc.jvp(y)]


@program()
def fwd_while(tf, np):
    @tf.function
    def f(x):
        i = 0
        while i < 4:
            x = x * x * 0.9
            i += 1
        return x

    x = tf.constant(1.1)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(2.0)) as acc:
        y = f(x)
    return [y, acc.jvp(y)]


@program()
def fwd_while_tensor(tf, np):
    @tf.function
    def f(x):
        while x < 10.0:
            x = x * x
        return x

    x = tf.constant(1.5)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(2.0)) as acc:
        y = f(x)
    return [y, acc.jvp(y)]


@program()
def fwd_inside_with_loop(tf, np):
    @tf.function
    def f(x, v):
        with tf.autodiff.ForwardAccumulator(x, v) as acc:
            y = x
            for _ in tf.range(3):
                y = tf.sin(y) * 2.0
        return y, acc.jvp(y)

    return f(tf.constant(0.7), tf.constant(1.0))


@program()
def fwd_inside_with_while(tf, np):
    @tf.function
    def f(x, v):
        with tf.autodiff.ForwardAccumulator(x, v) as acc:
            y = x
            while y < 10.0:
                y = y * y
        return y, acc.jvp(y)

    return f(tf.constant(1.7), tf.constant(1.0))


@program()
def fwd_inside_cond(tf, np):
    @tf.function
    def f(x, v):
        with tf.autodiff.ForwardAccumulator(x, v) as acc:
            if x > 0.0:
                y = x * x
            else:
                y = -x
        return y, acc.jvp(y)

    return [f(tf.constant(1.7), tf.constant(1.0)), f(tf.constant(-1.7), tf.constant(1.0))]


@program()
def fwd_around_map_fn(tf, np):
    @tf.function
    def f(x):
        return tf.map_fn(lambda a: a * a, x)

    x = tf.constant([1.0, 2.0, 3.0])
    with tf.autodiff.ForwardAccumulator(x, tf.ones([3])) as acc:
        y = f(x)
    return acc.jvp(y)


@program()
def fwd_scan(tf, np):
    @tf.function
    def f(x):
        return tf.scan(lambda a, b: a * b, x)

    x = tf.constant([1.0, 2.0, 3.0])
    with tf.autodiff.ForwardAccumulator(x, tf.ones([3])) as acc:
        y = f(x)
    return acc.jvp(y)


@program()
def fwd_inside_branch_of_a_constant(tf, np):
    @tf.function
    def f(k, y):
        with tf.autodiff.ForwardAccumulator(y, tf.constant(1.0)) as acc:
            if k > 1:
                r = 3.0 * y
            else:
                r = 0.0
        return acc.jvp(r)

    return [f(tf.constant(k), tf.constant(2.0)) for k in (0, 2)]


@program()
def fwd_inside_loop_of_several(tf, np):
    @tf.function
    def f(x, steps):
        weight = tf.constant([0.5, 0.25])
        with tf.autodiff.ForwardAccumulator([x, weight], [tf.constant([1.0, 2.0]), tf.constant([1.0, -1.0])]) as acc:
            i, y, still = tf.constant(0), x, tf.constant(5.0)
            while i < steps:
                y = tf.sin(y) * weight + y[::-1]
                i += 1
                still = still + 1.0
        return acc.jvp([y, still, i]), y

    return [f(tf.constant([0.1, 0.7]), tf.constant(steps)) for steps in (0, 3)]


@program()
def tape_inside_while(tf, np):
    @tf.function
    def f(x):
        with tf.GradientTape() as t:
            t.watch(x)
            y = x
            while y < 10.0:
                y = y * y
        return y, t.gradient(y, x)

    return f(tf.constant(1.7))


@program()
def tape_inside_second_order_loop(tf, np):
    @tf.function
    def f(x):
        with tf.GradientTape() as t2:
            t2.watch(x)
            with tf.GradientTape() as t:
                t.watch(x)
                y = x
                for _ in tf.range(3):
                    y = tf.sin(y)
            g = t.gradient(y, x)
        return g, t2.gradient(g, x)

    return f(tf.constant(0.7))


@program()
def tape_jacobian_loop_inside(tf, np):
    @tf.function
    def f(x):
        with tf.GradientTape() as t:
            t.watch(x)
            y = x
            for _ in tf.range(2):
                y = y * x
        return t.jacobian(y, x)

    return f(tf.constant([1.0, 2.0]))


@program()
def tape_assign_in_loop_recorded(tf, np):
    v = tf.Variable(1.0)

    @tf.function
    def f(x):
        with tf.GradientTape() as t:
            t.watch(x)
            y = x
            for _ in tf.range(2):
                v.assign_add(1.0)
                y = y * x
        return t.gradient(y, x)

    return [f(tf.constant(3.0)), v]


@program()
def br_shapes(tf, np):
    @tf.function
    def f(c):
        if c:
            x = tf.constant([1.0, 2.0])
        else:
            x = tf.constant([3.0])
        return tf.reduce_sum(x)

    return [f(tf.constant(True)), f(tf.constant(False))]


@program()
def br_shapes_returned(tf, np):
    @tf.function
    def f(c):
        return tf.cond(c, lambda: tf.ones([2]), lambda: tf.zeros([3]))

    return [f(tf.constant(True)), f(tf.constant(False))]


@program()
def br_shapes_grad(tf, np):
    @tf.function
    def f(x, c):
        if c:
            y = x[:2]
        else:
            y = x
        return tf.reduce_sum(y**2)

    r = []
    for c in (True, False):
        x = tf.constant([1.0, 2.0, 3.0])
        with tf.GradientTape() as t:
            t.watch(x)
            y = f(x, tf.constant(c))
        r += [y, t.gradient(y, x)]
    return r


@program()
def br_boolean_mask(tf, np):
    @tf.function
    def f(x):
        return tf.reduce_sum(tf.boolean_mask(x, x > 1.0))

    return f(tf.constant([1.0, 2.0, 3.0]))


@program()
def loop_growing_concat(tf, np):
    @tf.function
    def f(n):
        x = tf.zeros([0])
        for i in tf.range(n):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(x, tf.TensorShape([None]))])
            x = tf.concat([x, [tf.cast(i, tf.float32)]], 0)
        return x

    return f(tf.constant(3))


@program()
def loop_growing_decode(tf, np):
    @tf.function
    def f(x):
        i = tf.constant(0)
        while i < 3:
            tf.autograph.experimental.set_loop_options(shape_invariants=[(x, tf.TensorShape([None, None]))])
            x = tf.concat([x, x[:, -1:] + 1], 1)
            i += 1
        return x

    return f(tf.constant([[1], [5]]))


@program()
def while_shape_invariants(tf, np):
    @tf.function
    def f(n):
        _i, x = tf.while_loop(
            lambda i, x: i < n,
            lambda i, x: (i + 1, tf.concat([x, [i]], 0)),
            [tf.constant(0), tf.zeros([0], tf.int32)],
            shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
        )
        return x

    return f(tf.constant(3))


@program()
def while_maximum_iterations(tf, np):
    @tf.function
    def f(n):
        return tf.while_loop(lambda i: True, lambda i: (i + 1,), [tf.constant(0)], maximum_iterations=n)

    return [f(tf.constant(3)), f(4)]


@program()
def while_nested_structure(tf, np):
    @tf.function
    def f():
        return tf.while_loop(
            lambda s: s["i"] < 3,
            lambda s: ({"i": s["i"] + 1, "x": (s["x"][0] * 2.0, s["x"][1])},),
            [{"i": tf.constant(0), "x": (tf.constant(1.0), tf.constant(5.0))}],
        )

    return f()


@program()
def while_named(tf, np):
    import collections

    S = collections.namedtuple("S", "i x")

    @tf.function
    def f():
        [s] = tf.while_loop(lambda s: s.i < 3, lambda s: [S(s.i + 1, s.x * 2.0)], [S(tf.constant(0), tf.constant(1.0))])
        return s

    return tuple(f())


@program()
def while_grad(tf, np):
    @tf.function
    def f(x):
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (0, 1.0))[1]

    x = tf.constant(2.0)
    with tf.GradientTape() as t:
        t.watch(x)
        y = f(x)
    return t.gradient(y, x)


@program()
def jvp_python_float(tf, np):
    @tf.function
    def f(x):
        return tf.cond(x > 0.0, lambda: 0.0, lambda: x)

    x = tf.constant(1.0)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        y = f(x)
    return [y, acc.jvp(y)]


@program()
def jvp_fwdtest(tf, np):
    @tf.function
    def f(k, y):
        if k > 0.0:
            return 0.0
        return y * y

    k, y = tf.constant(1.0), tf.constant(3.0)
    with tf.autodiff.ForwardAccumulator((k, y), (tf.constant(1.0), tf.constant(1.0))) as acc:
        z = f(k, y)
    return [z, acc.jvp(z)]


@program()
def jvp_fwdtest_fallback(tf, np):
    @tf.function
    def f(y):
        if float(y) > 0.0:
            return 0.0
        return y * y

    return raises(tf, lambda: f(tf.constant(3.0)))


@program()
def gradients_of_dynamic_boolean(tf, np):
    @tf.function
    def f(x):
        return tf.reduce_sum(tf.boolean_mask(x, x > 1.0) ** 2)

    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as t:
        t.watch(x)
        y = f(x)
    return t.gradient(y, x)


@program()
def where_unique_in_function(tf, np):
    @tf.function
    def f(x):
        i = tf.where(x > 1.0)
        u, idx = tf.unique(tf.cast(x, tf.int32))
        return i, u, idx, tf.shape(i)[0]

    return f(tf.constant([1.0, 2.0, 3.0, 2.0]))


@program()
def dynamic_slice_loop(tf, np):
    @tf.function
    def f(x, b):
        s = 0.0
        n = tf.shape(x)[0] // b
        for i in tf.range(n):
            s += tf.reduce_sum(x[i * b : (i + 1) * b]) * tf.cast(i + 1, tf.float32)
        return s

    return f(tf.range(6.0), tf.constant(2))


@program()
def minibatch_shuffle_function(tf, np):
    x = tf.reshape(tf.range(12.0), [6, 2])

    @tf.function
    def f():
        idx = tf.random.shuffle(tf.range(6))
        s = 0.0
        for i in tf.range(3):
            b = tf.gather(x, idx[i * 2 : (i + 1) * 2])
            s += tf.reduce_sum(b)
        return s

    return f()
