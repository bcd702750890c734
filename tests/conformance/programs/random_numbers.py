"""Random tensors: shapes, dtypes, ranges, the same numbers after the same seed; not the numbers themselves."""

from conformance.probes import raises
from conformance.program import program


@program()
def shapes_and_dtypes(tf, np):
    tensors = [
        tf.random.normal([2, 3]),
        tf.random.normal((4,), mean=1.0, stddev=2.0, dtype=tf.float64),
        tf.random.normal([]),
        tf.random.uniform([3]),
        tf.random.uniform([2, 2], minval=0, maxval=10, dtype=tf.int32),
        tf.random.uniform([2], dtype=tf.float64),
        tf.random.normal(tf.constant([2, 1])),
        tf.random.normal([0, 2]),
    ]
    return [[tensor.shape, tensor.dtype] for tensor in tensors]


@program()
def ranges_of_uniform_numbers(tf, np):
    f = tf.random.uniform([4000], 2.0, 3.0).numpy()
    i = tf.random.uniform([4000], 5, 9, dtype=tf.int32).numpy()
    return [bool(f.min() >= 2.0), bool(f.max() < 3.0), bool(abs(f.mean() - 2.5) < 0.05), sorted(set(i.tolist()))]


@program()
def moments_of_normal_numbers(tf, np):
    x = tf.random.normal([20000], mean=3.0, stddev=2.0).numpy()
    return [bool(abs(x.mean() - 3.0) < 0.1), bool(abs(x.std() - 2.0) < 0.1), bool(np.isfinite(x).all())]


@program()
def the_global_seed(tf, np):
    def draw():
        tf.random.set_seed(7)
        return [tf.random.normal([3]).numpy(), tf.random.normal([3]).numpy(), tf.random.uniform([3]).numpy()]

    first, second = draw(), draw()
    tf.random.set_seed(8)
    other = tf.random.normal([3]).numpy()
    same = [bool(np.array_equal(a, b)) for a, b in zip(first, second, strict=True)]
    return [same, bool(np.array_equal(first[0], first[1])), bool(np.array_equal(first[0], other))]


@program()
def the_seed_of_an_op(tf, np):
    def draw(seed):
        tf.random.set_seed(7)
        return [tf.random.normal([3], seed=seed).numpy(), tf.random.normal([3], seed=seed).numpy()]

    first, second, third = draw(1), draw(1), draw(2)
    pairs = [(first[0], second[0]), (first[1], second[1]), (first[0], first[1]), (first[0], third[0])]
    return [bool(np.array_equal(a, b)) for a, b in pairs]


@program()
def every_draw_is_another(tf, np):
    draws = [tf.random.normal([8]).numpy() for _ in range(4)]
    return len({draw.tobytes() for draw in draws})


@program()
def parameters_are_differentiable(tf, np):
    mean, spread = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        noise = tf.random.normal([5])
        y = tf.reduce_sum(mean + spread * noise)
    dm, ds = tape.gradient(y, [mean, spread])
    return [dm, bool(np.allclose(ds.numpy(), noise.numpy().sum(), rtol=1e-4, atol=1e-5))]


@program()
def arguments_that_do_not_fit(tf, np):
    return [
        raises(lambda: tf.random.uniform([2], dtype=tf.int32)),
        raises(lambda: tf.random.uniform([2], 5, 5, dtype=tf.int32).numpy()),
        raises(lambda: tf.random.normal([-1]).numpy()),
        raises(lambda: tf.random.normal([2], dtype=tf.int32)),
    ]
