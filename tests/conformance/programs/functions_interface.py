"""tf.function: signatures, options, methods, variables made at the first call."""

from conformance.program import program


def raises(tf, function):
    """Returns the name of the error's type, or None."""
    try:
        function()
    except Exception as error:
        return type(error).__name__
    return None


@program()
def sig_structured(tf, np):
    @tf.function(input_signature=[{"a": tf.TensorSpec([], tf.float32), "b": [tf.TensorSpec([None], tf.int32)]}])
    def f(d):
        return d["a"] * tf.cast(tf.reduce_sum(d["b"][0]), tf.float32)

    return f({"a": 2.0, "b": [[1, 2, 3]]})


@program()
def sig_none_shape_used(tf, np):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def f(x):
        return x.shape[0] is None, tf.shape(x)[0]

    r = f(tf.ones([3]))
    return r[1]


@program()
def sig_unknown_rank(tf, np):
    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32)])
    def f(x):
        return tf.reduce_sum(x)

    return [f(2.0), f([1.0, 2.0]), f([[1.0, 2.0]])]


@program()
def sig_kw(tf, np):
    @tf.function(input_signature=[tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.float32)])
    def f(x, y):
        return x - y

    return [f(1.0, 2.0), f(x=1.0, y=2.0), f(1.0, y=5.0)]


@program()
def sig_method(tf, np):
    class M(tf.Module):
        def __init__(self):
            self.w = tf.Variable(2.0)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def __call__(self, x):
            return x * self.w

    m = M()
    return [m(tf.constant([1.0])), m([1.0, 2.0])]


@program()
def sig_default(tf, np):
    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def f(x, k=3):
        return x * k

    return f(2.0)


@program()
def sig_loop_none(tf, np):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def f(x):
        s = 0.0
        for v in x:
            s += v * v
        return s

    return [f([1.0, 2.0]), f([1.0, 2.0, 3.0])]


@program()
def sig_zero_size(tf, np):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def f(x):
        s = 0.0
        for v in x:
            s += v * v
        return s

    return f(tf.zeros([0]))


@program()
def concrete_named(tf, np):
    @tf.function
    def f(x, y):
        return x - y

    c = f.get_concrete_function(x=tf.TensorSpec([], tf.float32), y=tf.TensorSpec([], tf.float32))
    return [
        c(tf.constant(3.0), tf.constant(1.0)),
        c(x=tf.constant(3.0), y=tf.constant(1.0)),
        c(y=tf.constant(3.0), x=tf.constant(1.0)),
    ]


@program()
def concrete_variables(tf, np):
    v = tf.Variable(2.0)
    w = tf.Variable(3.0, trainable=False)

    @tf.function
    def f(x):
        return x * v + w

    c = f.get_concrete_function(tf.constant(1.0))
    return [len(c.variables), len(c.trainable_variables), len(c.inputs), len(c.outputs), len(c.captured_inputs)]


@program()
def concrete_wrong(tf, np):
    @tf.function
    def f(x):
        return x * 2.0

    c = f.get_concrete_function(tf.TensorSpec([2], tf.float32))
    return [raises(tf, lambda: c(tf.constant([1.0, 2.0, 3.0]))), raises(tf, lambda: c(tf.constant([1, 2])))]


@program()
def concrete_python_arg(tf, np):
    @tf.function
    def f(x, n):
        return x**n

    c = f.get_concrete_function(tf.TensorSpec([], tf.float32), 3)
    return [c(tf.constant(2.0))]


@program()
def jit_decorated_train(tf, np):
    w = tf.Variable(1.0)

    @tf.function(jit_compile=True)
    def step(x):
        with tf.GradientTape() as t:
            loss = (w * x - 1.0) ** 2
        w.assign_sub(0.1 * t.gradient(loss, w))
        return loss

    return [step(tf.constant(2.0)), step(tf.constant(2.0)), w, step.python_function.__name__]


@program()
def reduce_retracing_count(tf, np):
    n = [0]

    @tf.function(reduce_retracing=True)
    def f(x):
        n[0] += 1
        return tf.reduce_sum(x)

    r = [f(tf.ones([i])) for i in (1, 2, 3, 4)]
    return r


@program()
def method_function(tf, np):
    class A:
        def __init__(self, k):
            self.k = k
            self.v = None

        @tf.function
        def f(self, x):
            if self.v is None:
                self.v = tf.Variable(1.0)
            return x * self.k * self.v

    a, b = A(2.0), A(3.0)
    return [a.f(tf.constant(1.0)), b.f(tf.constant(1.0)), a.f(tf.constant([1.0, 2.0]))]


@program()
def static_class_methods(tf, np):
    class A:
        k = 4.0

        @staticmethod
        @tf.function
        def s(x):
            return x + 1.0

        @classmethod
        def c(cls, x):
            return cls.s(x) * cls.k

    return [A.s(tf.constant(1.0)), A().s(tf.constant(1.0)), A.c(tf.constant(1.0))]


@program()
def var_first_call(tf, np):
    v = None

    @tf.function
    def f(x):
        nonlocal v
        if v is None:
            v = tf.Variable(x * 0.0 + 2.0)
        return x * v

    return [f(tf.constant(3.0)), f(tf.constant(4.0))]


@program()
def var_first_call_list(tf, np):
    vs = []

    @tf.function
    def f(x):
        if not vs:
            vs.append(tf.Variable(tf.random.normal([2]) * 0.0 + 1.0))
        return x * vs[0]

    with tf.GradientTape() as t:
        y = tf.reduce_sum(f(tf.constant([1.0, 2.0])))
    return [y, t.gradient(y, vs[0])]


@program()
def var_every_call(tf, np):
    @tf.function
    def f(x):
        return tf.Variable(1.0) * x

    return raises(tf, lambda: f(tf.constant(1.0)))


@program()
def var_lazy_build(tf, np):
    class Dense(tf.Module):
        def __init__(self, n):
            self.n = n
            self.built = False

        @tf.function
        def __call__(self, x):
            if not self.built:
                self.w = tf.Variable(tf.ones([x.shape[-1], self.n]))
                self.b = tf.Variable(tf.zeros([self.n]))
                self.built = True
            return tf.matmul(x, self.w) + self.b

    d = Dense(2)
    return [d(tf.ones([1, 3])), d(tf.ones([2, 3])), len(d.trainable_variables)]


@program()
def init_scope_var(tf, np):
    h = {}

    @tf.function
    def f(x):
        if "v" not in h:
            with tf.init_scope():
                h["v"] = tf.Variable(5.0)
        return x + h["v"]

    return [f(tf.constant(1.0)), f(tf.constant(1.0)), h["v"]]


@program()
def nested_functions(tf, np):
    @tf.function
    def g(x):
        return x * x

    @tf.function
    def f(x):
        @tf.function
        def h(y):
            return g(y) + x

        return h(x) * 2.0

    x = tf.constant(3.0)
    with tf.GradientTape() as t:
        t.watch(x)
        y = f(x)
    return [y, t.gradient(y, x)]


@program()
def no_args_no_result(tf, np):
    v = tf.Variable(0.0)

    @tf.function
    def f():
        v.assign_add(1.0)

    return [f(), f(), v]


@program()
def function_returns_variable(tf, np):
    v = tf.Variable(1.0)

    @tf.function
    def f():
        return v

    r = f()
    v.assign(5.0)
    return [r, isinstance(r, tf.Tensor)]


@program()
def returns_mixed(tf, np):
    @tf.function
    def f(x):
        return x, None, 3, "s", {"k": [x * 2.0, (1.5,)]}, True

    return f(tf.constant(1.0))


@program()
def args_python_nested(tf, np):
    @tf.function
    def f(a, *rest, k=1, **kw):
        return a + sum(rest) * k + kw.get("z", 0)

    return [f(tf.constant(1.0), 2.0, 3.0, k=2, z=tf.constant(7.0))]


@program()
def eager_mode(tf, np):
    tf.config.run_functions_eagerly(True)
    try:
        seen = []

        @tf.function
        def f(x):
            seen.append(float(x))
            return x * 2.0

        r = f(tf.constant(1.0))
    finally:
        tf.config.run_functions_eagerly(False)
    return [r, seen, tf.config.functions_run_eagerly()]


@program()
def leaked_numpy(tf, np):
    leaked = []

    @tf.function
    def f(x):
        leaked.append(x * 2.0)
        return x

    f(tf.constant(1.0))
    return [
        raises(tf, lambda: leaked[0].numpy()),
        raises(tf, lambda: leaked[0] + 1.0),
        raises(tf, lambda: bool(leaked[0] > 0)),
    ]


@program()
def function_of_dataset_map(tf, np):
    @tf.function
    def prep(x):
        if x % 2 == 0:
            return x // 2
        return 3 * x + 1

    return list(tf.data.Dataset.range(5).map(prep).as_numpy_iterator())
