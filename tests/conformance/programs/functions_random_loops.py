"""tf.function: random ops in its loops, and TensorArrays."""

from conformance.program import program


@program()
def rnd_range_distinct(tf, np):
    @tf.function
    def f():
        ta = tf.TensorArray(tf.float32, 4)
        for i in tf.range(4):
            ta = ta.write(i, tf.random.uniform([]))
        return ta.stack()

    a = f().numpy()
    b = f().numpy()
    return [len(set(a.tolist())), len(set(a.tolist() + b.tolist()))]


@program()
def rnd_while_distinct(tf, np):
    @tf.function
    def f():
        i = tf.constant(0)
        a = tf.zeros([3])
        while i < 3:
            a = tf.tensor_scatter_nd_update(a, [[i]], [tf.random.normal([])])
            i += 1
        return a

    return len(set(f().numpy().tolist() + f().numpy().tolist()))


@program()
def rnd_tf_while_loop(tf, np):
    @tf.function
    def f():
        return tf.while_loop(
            lambda i, a: i < 3,
            lambda i, a: (i + 1, tf.tensor_scatter_nd_update(a, [[i]], [tf.random.normal([])])),
            (0, tf.zeros([3])),
        )[1]

    return len(set(f().numpy().tolist()))


@program()
def rnd_map_fn(tf, np):
    @tf.function
    def f():
        return tf.map_fn(lambda x: x + tf.random.uniform([]), tf.zeros([4]))

    return len(set(f().numpy().tolist()))


@program()
def rnd_scan(tf, np):
    @tf.function
    def f():
        return tf.scan(lambda a, x: tf.random.uniform([]), tf.zeros([4]), tf.constant(0.0))

    return len(set(f().numpy().tolist()))


@program()
def rnd_cond_in_loop(tf, np):
    @tf.function
    def f():
        s = tf.zeros([0])
        c = 0.0
        for i in tf.range(10):
            if tf.random.uniform([]) < 2.0:
                c += tf.random.uniform([])
        return c

    a, b = f().numpy(), f().numpy()
    return [bool(a != b), bool(0 < a < 10)]


@program()
def rnd_seeded_in_function(tf, np):
    @tf.function
    def f():
        return tf.random.uniform([3], seed=1)

    tf.random.set_seed(3)
    a = f().numpy().tolist()
    tf.random.set_seed(3)
    b = f().numpy().tolist()
    return a == b


@program()
def rnd_dropout_loop_gradient(tf, np):
    @tf.function
    def f(x):
        for _ in tf.range(3):
            x = tf.nn.dropout(x, 0.5)
        return tf.reduce_sum(x)

    x = tf.ones([200])
    with tf.GradientTape() as t:
        t.watch(x)
        y = f(x)
    g = t.gradient(y, x)
    return [bool(abs(float(tf.reduce_sum(g)) - float(y)) < 1e-3), sorted(set(g.numpy().tolist()))]


@program()
def rnd_stateless_loop(tf, np):
    @tf.function
    def f():
        s = 0.0
        for i in tf.range(3):
            s += tf.random.stateless_uniform([], seed=tf.stack([i, 0]))
        return s

    return bool(f() == f())


@program()
def rnd_categorical_rollout(tf, np):
    @tf.function
    def f(logits):
        acts = tf.TensorArray(tf.int64, 5)
        for i in tf.range(5):
            a = tf.random.categorical(logits, 1)[0, 0]
            acts = acts.write(i, a)
        return acts.stack()

    return f(tf.constant([[0.0, 100.0, 0.0]]))


@program()
def rnd_langevin(tf, np):
    @tf.function
    def f(x):
        for _ in tf.range(5):
            with tf.GradientTape() as t:
                t.watch(x)
                e = tf.reduce_sum(x**2)
            x = x - 0.1 * t.gradient(e, x) + 0.0 * tf.random.normal(tf.shape(x))
        return x

    return f(tf.ones([3]))


@program()
def rnd_shuffle_loop(tf, np):
    @tf.function
    def f(x):
        for _ in tf.range(3):
            x = tf.random.shuffle(x)
        return tf.sort(x)

    return f(tf.range(5))


@program()
def ta_argument(tf, np):
    @tf.function
    def f(ta):
        return ta.stack()

    ta = tf.TensorArray(tf.float32, 2).unstack([1.0, 2.0])
    return f(ta)


@program()
def ta_unstack_loop(tf, np):
    @tf.function
    def f(x):
        ta = tf.TensorArray(tf.float32, size=4).unstack(x)
        s = 0.0
        for i in tf.range(4):
            s += ta.read(i) * tf.cast(i, tf.float32)
        return s

    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    with tf.GradientTape() as t:
        t.watch(x)
        y = f(x)
    return [y, t.gradient(y, x)]


@program()
def ta_unstack_unknown(tf, np):
    @tf.function
    def f(x):
        n = tf.shape(x)[0]
        ta = tf.TensorArray(tf.float32, size=n).unstack(x)
        out = tf.TensorArray(tf.float32, size=n)
        for i in tf.range(n):
            out = out.write(i, ta.read(n - 1 - i))
        return out.stack()

    return f(tf.constant([1.0, 2.0, 3.0]))


@program()
def ta_scatter_gather(tf, np):
    @tf.function
    def f(x):
        ta = tf.TensorArray(tf.float32, size=4)
        ta = ta.scatter([3, 0, 2, 1], x)
        return ta.stack(), ta.gather([0, 2]), ta.size()

    return f(tf.constant([1.0, 2.0, 3.0, 4.0]))


@program()
def ta_scatter_dynamic_idx(tf, np):
    @tf.function
    def f(x, i):
        ta = tf.TensorArray(tf.float32, size=3)
        ta = ta.scatter(i, x)
        return ta.gather(i[:2])

    return f(tf.constant([1.0, 2.0, 3.0]), tf.constant([2, 0, 1]))


@program()
def ta_concat(tf, np):
    @tf.function
    def f():
        ta = tf.TensorArray(tf.float32, size=3, infer_shape=False)
        ta = ta.write(0, [1.0])
        ta = ta.write(1, [2.0, 3.0])
        ta = ta.write(2, [4.0])
        return ta.concat()

    return f()


@program()
def ta_concat_loop(tf, np):
    @tf.function
    def f():
        ta = tf.TensorArray(tf.float32, size=3, element_shape=[2])
        for i in tf.range(3):
            ta = ta.write(i, tf.fill([2], tf.cast(i, tf.float32)))
        return ta.concat()

    return f()


@program()
def ta_split(tf, np):
    @tf.function
    def f(x):
        ta = tf.TensorArray(tf.float32, size=2, infer_shape=False)
        ta = ta.split(x, [1, 3])
        return ta.read(0), ta.read(1)

    return f(tf.constant([1.0, 2.0, 3.0, 4.0]))


@program()
def ta_size_dynamic(tf, np):
    @tf.function
    def f(n):
        ta = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
        for i in tf.range(n):
            ta = ta.write(i, i * i)
        return ta.stack(), ta.size()

    return [f(tf.constant(4)), f(tf.constant(2))]


@program()
def ta_dynamic_while(tf, np):
    @tf.function
    def f(n):
        ta = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
        i = tf.constant(0)
        while i < n:
            ta = ta.write(ta.size(), i * 2)
            i += 1
        return ta.stack()

    return f(tf.constant(3))


@program()
def ta_size_from_tensor(tf, np):
    @tf.function
    def f(n):
        ta = tf.TensorArray(tf.float32, size=n)
        for i in tf.range(n):
            ta = ta.write(i, tf.cast(i, tf.float32))
        return ta.stack()

    return [f(tf.constant(3)), f(tf.constant(5))]


@program()
def ta_dynamic_gradient(tf, np):
    @tf.function
    def f(x, n):
        ta = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(n):
            ta = ta.write(i, x * tf.cast(i, tf.float32))
        return tf.reduce_sum(ta.stack())

    x = tf.constant(2.0)
    with tf.GradientTape() as t:
        t.watch(x)
        y = f(x, tf.constant(4))
    return [y, t.gradient(y, x)]


@program()
def ta_break_dynamic(tf, np):
    @tf.function
    def f(x):
        ta = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(10):
            x = x * 0.5
            ta = ta.write(i, x)
            if x < 0.1:
                break
        return ta.stack()

    return f(tf.constant(1.0))


@program()
def ta_in_cond(tf, np):
    @tf.function
    def f(c):
        ta = tf.TensorArray(tf.float32, 2)
        if c:
            ta = ta.write(0, 1.0)
        else:
            ta = ta.write(0, 2.0)
        ta = ta.write(1, 3.0)
        return ta.stack()

    return [f(tf.constant(True)), f(tf.constant(False))]


@program()
def ta_while_loop_api(tf, np):
    @tf.function
    def f():
        ta = tf.TensorArray(tf.float32, size=3)
        _, ta = tf.while_loop(
            lambda i, t: i < 3, lambda i, t: (i + 1, t.write(i, tf.cast(i, tf.float32) ** 2)), [tf.constant(0), ta]
        )
        return ta.stack()

    return f()


@program()
def ta_two_results_rl(tf, np):
    @tf.function
    def run(n):
        s = tf.constant(1.0)
        r = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        v = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for t in tf.range(n):
            s = s * 0.9
            r = r.write(t, s)
            v = v.write(t, s * 2)
            if s < 0.5:
                break
        return r.stack(), v.stack()

    return run(tf.constant(20))
