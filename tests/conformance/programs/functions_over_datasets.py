"""tf.function: loops over datasets inside it."""

from conformance.probes import raises
from conformance.program import program


@program()
def ds_for_sum(tf, np):
    ds = tf.data.Dataset.from_tensor_slices(np.arange(6.0, dtype="float32")).batch(2)

    @tf.function
    def f(ds):
        s = 0.0
        for x in ds:
            s += tf.reduce_sum(x)
        return s

    return f(ds)


@program()
def ds_for_closure(tf, np):
    ds = tf.data.Dataset.from_tensor_slices(np.arange(6.0, dtype="float32")).batch(4)

    @tf.function
    def f():
        s = 0.0
        for x in ds:
            s += tf.reduce_sum(x)
        return s

    return [f(), f()]


@program()
def ds_train_epoch(tf, np):
    X = np.linspace(-1, 1, 10).astype("float32").reshape(5, 2)
    Y = X.sum(1)
    w = tf.Variable([[0.5], [0.1]])
    ds = tf.data.Dataset.from_tensor_slices((X, Y)).batch(2)

    @tf.function
    def epoch():
        total = 0.0
        n = 0
        for x, y in ds:
            with tf.GradientTape() as t:
                loss = tf.reduce_mean((tf.matmul(x, w)[:, 0] - y) ** 2)
            g = t.gradient(loss, w)
            w.assign_sub(0.1 * g)
            total += loss
            n += 1
        return total / tf.cast(n, tf.float32)

    return [epoch(), epoch(), w]


@program()
def ds_enumerate(tf, np):
    ds = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0])

    @tf.function
    def f():
        s = 0.0
        for i, x in enumerate(ds):
            s += tf.cast(i, tf.float32) * x
        return s

    return f()


@program()
def ds_enumerate_method(tf, np):
    ds = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0]).enumerate()

    @tf.function
    def f():
        s = 0.0
        for i, x in ds:
            s += tf.cast(i, tf.float32) * x
        return s

    return f()


@program()
def ds_take_break(tf, np):
    ds = tf.data.Dataset.range(10)

    @tf.function
    def f(limit):
        s = tf.constant(0, tf.int64)
        for x in ds:
            if x > limit:
                break
            s += x
        return s

    return [f(tf.constant(3, tf.int64)), f(tf.constant(20, tf.int64))]


@program()
def ds_take_in_function(tf, np):
    ds = tf.data.Dataset.range(10)

    @tf.function
    def f():
        s = tf.constant(0, tf.int64)
        for x in ds.take(4):
            s += x
        return s

    return f()


@program()
def ds_nested_epochs(tf, np):
    ds = tf.data.Dataset.range(3)

    @tf.function
    def f():
        s = tf.constant(0, tf.int64)
        for e in tf.range(2):
            for x in ds:
                s += x
        return s

    return f()


@program()
def ds_python_epochs(tf, np):
    ds = tf.data.Dataset.range(3)

    @tf.function
    def f(n):
        s = tf.constant(0, tf.int64)
        for e in range(n):
            for x in ds:
                s += x * (e + 1)
        return s

    return f(2)


@program()
def ds_zip_loop(tf, np):
    a = tf.data.Dataset.range(3)
    b = tf.data.Dataset.range(5, 8)

    @tf.function
    def f():
        s = tf.constant(0, tf.int64)
        for x, y in tf.data.Dataset.zip((a, b)):
            s += x * y
        return s

    return f()


@program()
def ds_zip_builtin(tf, np):
    a = tf.data.Dataset.range(3)
    b = tf.data.Dataset.range(5, 8)

    @tf.function
    def f():
        s = tf.constant(0, tf.int64)
        for x, y in zip(a, b):
            s += x * y
        return s

    return f()


@program()
def ds_reduce_in_function(tf, np):
    ds = tf.data.Dataset.range(5)

    @tf.function
    def f():
        return ds.reduce(tf.constant(0, tf.int64), lambda s, x: s + x)

    return f()


@program()
def ds_dict_elements(tf, np):
    ds = tf.data.Dataset.from_tensor_slices({"a": [1.0, 2.0], "b": [3.0, 4.0]})

    @tf.function
    def f():
        s = 0.0
        for d in ds:
            s += d["a"] * d["b"]
        return s

    return f()


@program()
def ds_loop_no_state(tf, np):
    v = tf.Variable(0.0)
    ds = tf.data.Dataset.from_tensor_slices([1.0, 2.0])

    @tf.function
    def f():
        for x in ds:
            v.assign_add(x)

    f()
    f()
    return v


@program()
def ds_iterator_arg(tf, np):
    ds = tf.data.Dataset.range(6)

    @tf.function
    def f(it):
        s = tf.constant(0, tf.int64)
        for _ in tf.range(3):
            s += next(it)
        return s

    it = iter(ds)
    return [f(it), f(it)]


@program()
def ds_iterator_next(tf, np):
    ds = tf.data.Dataset.range(6)
    it = iter(ds)

    @tf.function
    def f(it):
        return next(it) * 2

    return [f(it), f(it)]


@program()
def ds_iterator_get_next(tf, np):
    ds = tf.data.Dataset.range(6)
    it = iter(ds)

    @tf.function
    def f(it):
        return it.get_next() + 1

    return [f(it), f(it)]


@program()
def ds_for_over_iterator(tf, np):
    ds = tf.data.Dataset.range(6)

    @tf.function
    def f(it):
        s = tf.constant(0, tf.int64)
        for x in it:
            s += x
        return s

    return f(iter(ds))


@program()
def ds_empty(tf, np):
    ds = tf.data.Dataset.range(0)

    @tf.function
    def f():
        s = tf.constant(0, tf.int64)
        for x in ds:
            s += x
        return s

    return f()


@program()
def ds_tensor_created_before(tf, np):
    ds = tf.data.Dataset.range(3)

    @tf.function
    def f(x):
        y = x * 2.0
        for i in ds:
            y = y + tf.cast(i, tf.float32) * x
        return y

    x = tf.constant(3.0)
    with tf.GradientTape() as t:
        t.watch(x)
        y = f(x)
    return [y, t.gradient(y, x)]


@program()
def ds_keras_metric_style(tf, np):
    ds = tf.data.Dataset.from_tensor_slices(np.arange(7.0, dtype="float32")).shuffle(10, seed=1).batch(3)
    tot = tf.Variable(0.0)
    cnt = tf.Variable(0.0)

    class Metric:
        def update(self, x):
            tot.assign_add(tf.reduce_sum(x))
            cnt.assign_add(tf.cast(tf.shape(x)[0], tf.float32))

    m = Metric()

    @tf.function
    def f():
        for x in ds:
            m.update(x)

    f()
    return [tot, cnt]


@program()
def ds_print_in_loop(tf, np):
    ds = tf.data.Dataset.range(3)
    v = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def f():
        for step, x in ds.enumerate():
            if step % 2 == 0:
                tf.print("step", step, x)
                v.assign_add(x)
        return v.read_value()

    return f()


@program()
def ds_tensorarray(tf, np):
    ds = tf.data.Dataset.range(3)

    @tf.function
    def f():
        ta = tf.TensorArray(tf.int64, size=0, dynamic_size=True)
        i = 0
        for x in ds:
            ta = ta.write(i, x * x)
            i += 1
        return ta.stack()

    return f()


@program()
def ds_from_generator(tf, np):
    def g():
        for i in range(4):
            yield np.float32(i)

    ds = tf.data.Dataset.from_generator(g, output_signature=tf.TensorSpec([], tf.float32))

    @tf.function
    def f():
        s = 0.0
        for x in ds:
            s += x
        return s

    return [f(), f()]


@program()
def ds_map_random(tf, np):
    ds = tf.data.Dataset.range(4).map(lambda x: (x, x * 2))

    @tf.function
    def f():
        s = tf.constant(0, tf.int64)
        for x, y in ds:
            s += x * y
        return s

    return f()


@program()
def ds_accuracy_of_an_epoch(tf, np):
    X = np.linspace(-1, 1, 40).astype("float32").reshape(10, 4)
    Y = (X.sum(1) > 0).astype("float32")

    class Trainer(tf.Module):
        def __init__(self):
            self.w = tf.Variable(tf.zeros([4, 1]))
            self.data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(4)

        @tf.function
        def epoch(self, rate):
            n = 0
            correct = 0
            for x, y in self.data:
                with tf.GradientTape() as t:
                    z = tf.matmul(x, self.w)[:, 0]
                    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=z))
                self.w.assign_sub(rate * t.gradient(loss, self.w))
                correct += tf.reduce_sum(tf.cast((z > 0) == (y > 0.5), tf.int32))
                n += tf.shape(x)[0]
            return correct / n

    m = Trainer()
    return [m.epoch(1.0), m.epoch(1.0), m.w]


@program()
def ds_branches_and_continue(tf, np):
    ds = tf.data.Dataset.range(5)

    @tf.function(jit_compile=True)
    def inner(x):
        return x * x

    @tf.function
    def f(ds):
        s = tf.constant(0, tf.int64)
        best = tf.constant(-1, tf.int64)
        for i, x in enumerate(ds):
            y = inner(x)
            if y > best:
                best = y
            if i == 3:
                continue
            s += y
        return s, best

    return f(ds)


@program()
def ds_in_a_dataset(tf, np):
    ds = tf.data.Dataset.range(3)

    @tf.function
    def f():
        s = tf.constant(0, tf.int64)
        for x in ds:
            for y in ds.take(2):
                s += x * 10 + y
        return s

    return f()


@program()
def ds_filtered_inside(tf, np):
    @tf.function
    def f():
        s = tf.constant(0, tf.int64)
        for x in tf.data.Dataset.range(10).filter(lambda v: v % 2 == 0).map(lambda v: v * v):
            s += x
        return s

    return [f(), f()]


@program()
def ds_distributed(tf, np):
    X = np.linspace(-1, 1, 20).astype("float32").reshape(10, 2)
    Y = X.sum(1)
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        w = tf.Variable(tf.ones([2, 1]) * 0.5)
    data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((X, Y)).batch(4))

    def step(x, y):
        with tf.GradientTape() as t:
            loss = tf.reduce_mean((tf.matmul(x, w)[:, 0] - y) ** 2)
        w.assign_sub(0.1 * t.gradient(loss, w))
        return loss

    @tf.function
    def epoch(data):
        total = 0.0
        for x, y in data:
            loss = strategy.run(step, args=(x, y))
            total += strategy.reduce(tf.distribute.ReduceOp.SUM, loss, axis=None)
        return total

    return [epoch(data), epoch(data), w]


@program()
def ds_next_in_a_range(tf, np):
    it = iter(tf.data.Dataset.range(20).batch(3, drop_remainder=True))
    v = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def several(it):
        for _ in tf.range(2):
            v.assign_add(tf.reduce_sum(next(it)))

    several(it)
    a = v.numpy()
    several(it)
    return [a, v]


@program()
def a_loop_whose_optimizer_makes_its_variables(tf, np):
    weight, optimizer, runs = tf.Variable(1.0), tf.keras.optimizers.Adam(0.1), []

    @tf.function
    def epoch(dataset):
        runs.append(1)
        for x in dataset:
            with tf.GradientTape() as tape:
                loss = weight * tf.cast(x, tf.float32)
            optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])

    @tf.function
    def made_each_time(dataset):
        total = tf.constant(0.0)
        for _ in dataset:
            total += tf.Variable(1.0)
        return total

    dataset = tf.data.Dataset.range(3)
    results = []
    for _ in range(2):
        epoch(dataset)
        results.append([len(runs), epoch.experimental_get_tracing_count(), weight.numpy()])
    return results, raises(lambda: made_each_time(dataset), "tf.function only supports singleton tf.Variables")
