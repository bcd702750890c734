"""tf.function: AutoGraph in programs, assertions, custom gradients."""

from conformance.program import program


def raises(tf, function):
    """Returns the name of the error's type, or None."""
    try:
        function()
    except Exception as error:
        return type(error).__name__
    return None


@program()
def ag_do_not_convert(tf, np):
    @tf.autograph.experimental.do_not_convert
    def g(x):
        return 1.0 if isinstance(x, tf.Tensor) else 2.0

    @tf.function
    def f(x):
        return x * g(x)

    return f(tf.constant(2.0))


@program()
def ag_loop_options(tf, np):
    @tf.function
    def f(n):
        s = 0
        for i in tf.range(n):
            tf.autograph.experimental.set_loop_options(parallel_iterations=1, swap_memory=True, maximum_iterations=4)
            s += i
        return s

    return f(tf.constant(10))


@program()
def ag_continue(tf, np):
    @tf.function
    def f(n):
        s = 0
        for i in tf.range(n):
            if i % 2 == 0:
                continue
            s += i
        return s

    return f(tf.constant(10))


@program()
def ag_nested_break(tf, np):
    @tf.function
    def f(n):
        c = 0
        for i in tf.range(n):
            for j in tf.range(n):
                if j > i:
                    break
                c += 1
        return c

    return f(tf.constant(4))


@program()
def ag_while_and(tf, np):
    @tf.function
    def f(x, n):
        i = 0
        while i < n and x < 100.0:
            x = x * 2.0
            i += 1
        return x, i

    return [f(tf.constant(1.0), tf.constant(3)), f(tf.constant(50.0), tf.constant(30))]


@program()
def ag_list_append(tf, np):
    @tf.function
    def f(x):
        parts = []
        for i in range(3):
            parts.append(x * i)
        return tf.stack(parts)

    return f(tf.constant(2.0))


@program()
def ag_list_append_tf_loop(tf, np):
    @tf.function
    def f(x):
        parts = []
        for i in tf.range(3):
            parts.append(x)
        return parts

    return raises(tf, lambda: f(tf.constant(2.0)))


@program()
def ag_dict_state(tf, np):
    @tf.function
    def f(n):
        d = {"a": tf.constant(0), "b": tf.constant(1)}
        for i in tf.range(n):
            d = {"a": d["a"] + i, "b": d["b"] * 2}
        return d

    return f(tf.constant(4))


@program()
def ag_attr_state(tf, np):
    class S:
        pass

    @tf.function
    def f(n):
        s = S()
        s.x = tf.constant(0)
        for i in tf.range(n):
            s.x = s.x + i
        return s.x

    return f(tf.constant(4))


@program()
def ag_lambda(tf, np):
    def g(x):
        return x if x > 0.0 else -x

    @tf.function
    def f(x):
        return g(x)

    return [f(tf.constant(-2.0)), f(tf.constant(2.0))]


@program()
def ag_zip_tensors(tf, np):
    @tf.function
    def f(a, b):
        s = 0.0
        for x, y in zip(tf.unstack(a), tf.unstack(b)):
            s += x * y
        return s

    return f(tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0]))


@program()
def ag_reversed_range(tf, np):
    @tf.function
    def f(r):
        g = tf.TensorArray(tf.float32, size=3)
        d = tf.constant(0.0)
        d_shape = d.shape
        r = r[::-1]
        for i in tf.range(3):
            d = r[i] + 0.9 * d
            d.set_shape(d_shape)
            g = g.write(i, d)
        return g.stack()[::-1]

    return f(tf.constant([1.0, 2.0, 3.0]))


@program()
def ag_try_except(tf, np):
    @tf.function
    def f(x):
        try:
            y = x * 2.0
        finally:
            pass
        return y

    return f(tf.constant(1.0))


@program()
def ag_recursion_python(tf, np):
    @tf.function
    def fact(n):
        return tf.constant(1) if n <= 1 else n * fact(n - 1)

    return fact(5)


@program()
def ag_recursion_tensor(tf, np):
    @tf.function
    def fact(n):
        if n <= 1:
            return 1
        return n * fact(n - 1)

    return raises(tf, lambda: fact(tf.constant(5))) is not None


@program()
def ag_generator_expr(tf, np):
    @tf.function
    def f(x):
        return sum(v * 2.0 for v in [x, x + 1.0])

    return f(tf.constant(1.0))


@program()
def ag_with_tape_in_for(tf, np):
    w = tf.Variable([1.0, 2.0])

    @tf.function
    def f(n):
        for _ in tf.range(n):
            with tf.GradientTape() as t:
                loss = tf.reduce_sum(w**2)
            w.assign_sub(0.1 * t.gradient(loss, w))
        return loss

    return [f(tf.constant(3)), w]


@program()
def ag_adam_by_hand(tf, np):
    w = tf.Variable(1.0)
    m = tf.Variable(0.0)
    v = tf.Variable(0.0)
    step = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def train(n):
        for _ in tf.range(n):
            with tf.GradientTape() as t:
                loss = (w - 3.0) ** 2
            g = t.gradient(loss, w)
            step.assign_add(1)
            m.assign(0.9 * m + 0.1 * g)
            v.assign(0.999 * v + 0.001 * g * g)
            k = tf.cast(step, tf.float32)
            w.assign_sub(0.1 * (m / (1 - 0.9**k)) / (tf.sqrt(v / (1 - 0.999**k)) + 1e-7))
        return loss

    return [train(tf.constant(5)), w, step]


@program()
def ag_if_assign_variable(tf, np):
    v = tf.Variable(0.0)

    @tf.function
    def f(x):
        if x > 0.0:
            v.assign_add(x)
        else:
            v.assign(-1.0)
        return v + 0.0

    return [f(tf.constant(2.0)), f(tf.constant(2.0)), f(tf.constant(-2.0))]


@program()
def ag_if_none(tf, np):
    @tf.function
    def f(x, training=None):
        if training:
            x = x * 2.0
        if training is None:
            x = x + 1.0
        return x

    return [
        f(tf.constant(1.0)),
        f(tf.constant(1.0), True),
        f(tf.constant(1.0), training=tf.constant(True)) if False else 0,
    ]


@program()
def ag_training_tensor(tf, np):
    @tf.function
    def f(x, training):
        if training:
            x = x * 2.0
        return x

    return [f(tf.constant(1.0), tf.constant(True)), f(tf.constant(1.0), tf.constant(False))]


@program()
def ag_variable_condition(tf, np):
    v = tf.Variable(True)
    k = tf.Variable(3)

    @tf.function
    def f(x):
        if v:
            x = x + 1.0
        while k > 0:
            k.assign_sub(1)
            x = x * 2.0
        return x

    return [f(tf.constant(1.0)), f(tf.constant(1.0))]


@program()
def ag_one_branch_undefined(tf, np):
    @tf.function
    def f(x):
        if x > 0.0:
            y = x
        return y

    return raises(tf, lambda: f(tf.constant(1.0)))


@program()
def ag_dtype_mismatch(tf, np):
    @tf.function
    def f(x):
        if x > 0.0:
            y = x
        else:
            y = tf.constant(1)
        return y

    return raises(tf, lambda: f(tf.constant(1.0)))


@program()
def ag_loop_dtype_change(tf, np):
    @tf.function
    def f(n):
        x = 0
        for i in tf.range(n):
            x = x + 1.5
        return x

    return raises(tf, lambda: f(tf.constant(3)))


@program()
def ag_range_negative(tf, np):
    @tf.function
    def f(n):
        s = 0
        for i in tf.range(n, 0, -1):
            s = s * 10 + i
        return s

    return f(tf.constant(4))


@program()
def ag_range_float(tf, np):
    @tf.function
    def f():
        s = 0.0
        for i in tf.range(0.0, 1.0, 0.25):
            s += i
        return s

    return f()


@program()
def ag_range_int64(tf, np):
    @tf.function
    def f(n):
        s = tf.constant(0, tf.int64)
        for i in tf.range(n):
            s += i
        return s

    return f(tf.constant(4, tf.int64))


@program()
def ag_len_tensor(tf, np):
    @tf.function
    def f(x):
        s = 0.0
        for i in range(len(x)):
            s += x[i]
        return s

    return f(tf.constant([1.0, 2.0]))


@program()
def ag_py_range_tensor(tf, np):
    @tf.function
    def f(n):
        s = 0
        for i in range(n):
            s += i
        return s

    return f(tf.constant(4))


@program()
def ag_min_max_any(tf, np):
    @tf.function
    def f(a, b):
        return tf.constant(1) if any([a is None, b is None]) else tf.maximum(a, b)

    return f(tf.constant(4), tf.constant(3))


@program()
def ag_sorted_map_filter(tf, np):
    @tf.function
    def f(x):
        return [a * 2.0 for a in [x, x + 1.0]]

    return f(tf.constant(4.0))


@program()
def ag_any_all_tensor(tf, np):
    @tf.function
    def f(x):
        return tf.reduce_any(x > 3.0), tf.reduce_all(x > 0.0)

    return f(tf.constant([4.0, 3.0]))


@program()
def ag_to_code(tf, np):
    def f(x):
        if x > 0:
            return x
        return -x

    c = tf.autograph.to_code(f)
    g = tf.autograph.to_graph(f)
    return ["def tf__f" in c, tf.function(g)(tf.constant(-2))]


@program()
def dbg_asserts(tf, np):
    @tf.function
    def f(x):
        tf.debugging.assert_greater(x, 0.0, message="pos")
        tf.debugging.assert_equal(tf.shape(x)[0], 2)
        tf.debugging.assert_rank(x, 1)
        tf.debugging.assert_type(x, tf.float32)
        tf.debugging.assert_shapes([(x, ("N",))])
        tf.debugging.assert_all_finite(x, "finite")
        tf.debugging.Assert(tf.reduce_all(x < 100.0), [x])
        return x * 2.0

    return [f(tf.constant([1.0, 2.0])), raises(tf, lambda: f(tf.constant([-1.0, 2.0])).numpy())]


@program()
def dbg_check_numerics(tf, np):
    @tf.function
    def f(x):
        return tf.debugging.check_numerics(tf.math.log(x), "log")

    return [f(tf.constant(1.0)), raises(tf, lambda: f(tf.constant(-1.0)).numpy())]


@program()
def dbg_assert_in_loop(tf, np):
    @tf.function
    def f(n):
        s = 0
        for i in tf.range(n):
            tf.debugging.assert_less(i, 3)
            s += i
        return s

    return [f(tf.constant(3)), raises(tf, lambda: f(tf.constant(6)).numpy())]


@program()
def ctl_dependencies(tf, np):
    v = tf.Variable(1.0)

    @tf.function
    def f(x):
        a = v.assign_add(x)
        with tf.control_dependencies([a]):
            y = tf.identity(v)
        with tf.control_dependencies([tf.debugging.assert_positive(x)]):
            y = y * 2.0
        return y

    return [f(tf.constant(2.0)), f(tf.constant(3.0))]


@program()
def ctl_tuple(tf, np):
    @tf.function
    def f(x):
        return tf.tuple([x, x * 2.0])

    return f(tf.constant(1.0))


@program()
def ctl_group_returned_eager(tf, np):
    return [tf.group(tf.constant(1.0)) is None, tf.no_op() is None]


@program()
def custom_gradient_in_function(tf, np):
    calls = []

    @tf.custom_gradient
    def cg(x):
        def back(dy):
            calls.append(1)
            return dy * 100.0

        return x * 1.0, back

    f = tf.function(lambda x: cg(x))
    x = tf.constant(1.0)
    z = tf.constant(2.0)
    with tf.GradientTape() as t:
        t.watch(x)
        y = f(z) + x
    g = t.gradient(y, x)
    return [g]


@program()
def custom_gradient_unwatched_raises(tf, np):
    @tf.custom_gradient
    def cg(x):
        def back(dy):
            raise ValueError("must not run")

        return x * 1.0, back

    f = tf.function(lambda x: cg(x))
    x = tf.constant(1.0)
    z = tf.constant(2.0)
    with tf.GradientTape() as t:
        t.watch(x)
        y = f(z) + x
    return t.gradient(y, x)


@program()
def custom_gradient_inner_tape(tf, np):
    @tf.custom_gradient
    def clip(x):
        return x, lambda dy: tf.clip_by_value(dy, -0.5, 0.5)

    @tf.function
    def f(x):
        with tf.GradientTape() as t:
            t.watch(x)
            y = clip(x * 3.0) ** 2
        return t.gradient(y, x)

    return f(tf.constant(1.0))


@program()
def custom_gradient_in_loop(tf, np):
    @tf.custom_gradient
    def clip(x):
        return x * 2.0, lambda dy: dy * 3.0

    @tf.function
    def f(x):
        for _ in tf.range(3):
            x = clip(x)
        return x

    x = tf.constant(1.0)
    with tf.GradientTape() as t:
        t.watch(x)
        y = f(x)
    return [y, t.gradient(y, x)]


@program()
def custom_gradient_in_cond(tf, np):
    @tf.custom_gradient
    def clip(x):
        return x * 2.0, lambda dy: dy * 3.0

    @tf.function
    def f(x):
        if x > 0.0:
            return clip(x)
        return x

    r = []
    for v in (1.0, -1.0):
        x = tf.constant(v)
        with tf.GradientTape() as t:
            t.watch(x)
            y = f(x)
        r.append(t.gradient(y, x))
    return r


@program()
def custom_gradient_variables(tf, np):
    w = tf.Variable(2.0)

    @tf.custom_gradient
    def cg(x):
        def back(dy, variables=None):
            return dy * w, [dy * 10.0]

        return x * w, back

    @tf.function
    def f(x):
        return cg(x)

    x = tf.constant(3.0)
    with tf.GradientTape() as t:
        t.watch(x)
        y = f(x)
    return t.gradient(y, [x, w])


@program()
def switch_str_arg(tf, np):
    @tf.function
    def f(x, mode):
        if mode == "a":
            return x + 1.0
        return x - 1.0

    return [f(tf.constant(1.0), "a"), f(tf.constant(1.0), mode="b"), f.experimental_get_tracing_count()]


@program()
def tensor_in_python_bool(tf, np):
    @tf.function
    def f(x):
        assert not isinstance(x, float)
        return x if tf.reduce_sum(x) > 0 else -x

    return f(tf.constant([1.0, -3.0]))


@program()
def stop_early_variable(tf, np):
    best = tf.Variable(1e9)

    @tf.function
    def f(xs):
        for x in xs:
            if x < best:
                best.assign(x)
        return best.read_value()

    return f(tf.constant([3.0, 1.0, 2.0]))


@program()
def matrix_power_fn(tf, np):
    @tf.function
    def f(a, n):
        r = tf.eye(2)
        while n > 0:
            if n % 2 == 1:
                r = tf.matmul(r, a)
            a = tf.matmul(a, a)
            n = n // 2
        return r

    return f(tf.constant([[1.0, 1.0], [1.0, 0.0]]), tf.constant(10))
