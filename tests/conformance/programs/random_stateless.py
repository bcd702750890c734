"""Draws from a seed of two numbers: uniform and normal numbers; of other distributions what depends on what."""

from conformance.probes import raises
from conformance.program import program


@program()
def shapes_and_dtypes(tf, np):
    seed = tf.constant([3, 5])
    tensors = [
        tf.random.stateless_uniform([2, 3], seed=seed),
        tf.random.stateless_uniform([2], seed=[1, 2], minval=2, maxval=9, dtype="int32"),
        tf.random.stateless_uniform([2], [1, 2], minval=None, maxval=None, dtype=tf.int64),
        tf.random.stateless_normal([], seed, mean=2.0, stddev=3.0, dtype=tf.float64),
        tf.random.stateless_truncated_normal((4,), seed, dtype="float16"),
        tf.random.stateless_categorical(tf.zeros([2, 3]), 5, seed),
        tf.random.stateless_categorical(tf.zeros([2, 3]), 5, seed, dtype=tf.int32),
        tf.random.stateless_gamma([3, 2], seed, [0.5, 2.0], beta=2.0),
        tf.random.stateless_poisson([3], seed, [1.0, 2.0, 3.0]),
        tf.random.stateless_binomial([3], seed, 10.0, 0.5),
        tf.random.gamma([3], [0.5, 2.0]),
        tf.random.poisson([2], [1.0, 2.0, 3.0]),
        tf.random.categorical([[0.0, 1.0]], 4),
        tf.random.shuffle(tf.ones([3, 2])),
        tf.random.split(seed),
        tf.random.split(tf.constant([1, 2], tf.int64), 3),
        tf.random.fold_in(seed, 7),
        tf.random.experimental.stateless_split(seed, 4),
        tf.random.experimental.stateless_shuffle(tf.range(4), seed=seed),
        tf.nn.experimental.stateless_dropout(tf.ones([2, 3]), 0.5, seed=seed, noise_shape=[2, 1]),
    ]
    return [[tensor.shape, tensor.dtype] for tensor in tensors]


@program()
def the_numbers_follow_from_the_seed(tf, np):
    def draws(seed):
        x = tf.range(10)
        return [
            tf.random.stateless_uniform([5], seed=seed),
            tf.random.stateless_normal([5], seed=seed),
            tf.random.stateless_gamma([5], seed, 2.0),
            tf.random.experimental.stateless_shuffle(x, seed=seed),
            tf.random.split(seed),
            tf.nn.experimental.stateless_dropout(tf.ones([40]), 0.5, seed=seed),
        ]

    first, same, other = draws([1, 2]), draws(tf.constant([1, 2])), draws([2, 1])
    equal = [bool(np.array_equal(a.numpy(), b.numpy())) for a, b in zip(first, same, strict=True)]
    return [equal, [bool(np.array_equal(a.numpy(), b.numpy())) for a, b in zip(first, other, strict=True)]]


@program()
def ranges_and_moments(tf, np):
    seed = [7, 11]
    whole = tf.random.stateless_uniform([2000], seed, minval=5, maxval=9, dtype=tf.int32).numpy()
    even = tf.random.stateless_uniform([4000], seed, 2.0, 3.0).numpy()
    gamma = tf.random.stateless_gamma([20000], seed, 3.0, beta=2.0).numpy()
    poisson = tf.random.stateless_poisson([20000], seed, 4.0).numpy()
    binomial = tf.random.stateless_binomial([20000], seed, 10.0, 0.3).numpy()
    classes = tf.random.stateless_categorical(tf.math.log([[0.2, 0.8, 0.0]]), 20000, seed).numpy()
    return [
        sorted(set(whole.tolist())),
        bool(even.min() >= 2.0 and even.max() < 3.0),
        bool(abs(gamma.mean() - 1.5) < 0.05 and gamma.min() > 0),
        bool(abs(poisson.mean() - 4.0) < 0.1),
        bool(abs(binomial.mean() - 3.0) < 0.1),
        bool(abs((classes == 1).mean() - 0.8) < 0.02),
        int(classes.max()),
    ]


@program()
def a_shuffle_keeps_every_row(tf, np):
    x = tf.reshape(tf.range(12), [6, 2])
    rows = [tf.random.shuffle(x), tf.random.experimental.stateless_shuffle(x, seed=[1, 1])]
    return [sorted(row.numpy().tolist()) for row in rows]


@program()
def parameters_are_differentiable(tf, np):
    mean, spread = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.random.stateless_normal([5], [1, 2], mean=mean, stddev=0.5))
        y += tf.reduce_sum(tf.random.stateless_uniform([5], [1, 2], minval=0.0, maxval=spread)) * 0.0
    dm, ds = tape.gradient(y, [mean, spread])
    return [dm, ds]


@program()
def dropout_scales_what_it_keeps(tf, np):
    x = tf.Variable(tf.ones([50, 4]))
    with tf.GradientTape() as tape:
        y = tf.nn.experimental.stateless_dropout(x, rate=0.2, seed=[4, 5], noise_shape=tf.shape(x))
    gradient = tape.gradient(y, x)
    rows = tf.nn.experimental.stateless_dropout(tf.ones([50, 4]), 0.5, seed=[4, 5], noise_shape=[50, 1]).numpy()
    return [
        sorted(set(y.numpy().reshape(-1).tolist())),
        bool(np.array_equal(gradient.numpy(), y.numpy())),
        bool((rows == rows[:, :1]).all()),
        tf.nn.dropout(tf.ones([3]), tf.constant(0.0)),
    ]


@program()
def in_a_function(tf, np):
    @tf.function
    def draw(seed):
        return tf.random.stateless_uniform([3], seed=seed), tf.random.shuffle(tf.range(20))

    (first, order), (same, other), (third, _) = (
        draw(tf.constant([1, 2])),
        draw(tf.constant([1, 2])),
        draw(tf.constant([3, 2])),
    )
    pairs = [(first, same), (first, third), (order, other)]
    return [bool(np.array_equal(a.numpy(), b.numpy())) for a, b in pairs]


@program()
def arguments_that_do_not_fit(tf, np):
    return [
        raises(
            lambda: tf.random.stateless_uniform([2], seed=[1, 2, 3]), containing="seed must have shape [2], not [3]"
        ),
        raises(lambda: tf.random.stateless_uniform([2], seed=[1, 2], minval=None, maxval=3, dtype=tf.int32)),
        raises(lambda: tf.random.categorical([0.0, 1.0], 3).numpy(), containing="logits should be a matrix"),
    ]


@program()
def uniform_and_normal_numbers(tf, np):
    results = []
    for seed in ([1, 2], [-5, 2**31 - 1], tf.constant([2**40, -9], tf.int64)):
        for dtype in (tf.float16, tf.float32, tf.float64):
            results += [
                tf.random.stateless_uniform([5], seed, -1.0, 3.0, dtype),
                tf.random.stateless_normal([2, 3], seed, 1.0, 2.0, dtype),
                tf.random.stateless_truncated_normal([7], seed, dtype=dtype),
            ]
        results += [
            tf.random.stateless_uniform([3], seed, 2, 9, dtype=tf.int32),
            tf.random.stateless_uniform([3], seed, None, None, dtype=tf.int64),
            tf.random.stateless_uniform([3], seed, None, None, dtype=tf.uint32),
            tf.random.split(seed, 3),
            tf.random.fold_in(seed, 7),
            tf.nn.experimental.stateless_dropout(tf.ones([8]), 0.5, seed=seed),
        ]
    return results


@program()
def numbers_of_initializers(tf, np):
    return [
        tf.random_normal_initializer(1.0, 2.0, seed=3)([2, 3]),
        tf.random_uniform_initializer(-2.0, 2.0, seed=3)([2, 3]),
    ]


@program()
def images_changed_by_numbers_of_a_seed(tf, np):
    image = tf.image
    x = tf.reshape(tf.range(48.0), [4, 4, 3]) / 48.0
    batch = tf.stack([x, 1.0 - x, x * x, x])
    results = []
    for seed in ([1, 2], [5, 9], [7, 7]):
        results += [
            image.stateless_random_crop(x, [2, 3, 3], seed),
            image.stateless_random_flip_left_right(x, seed),
            image.stateless_random_flip_up_down(batch, seed),
            image.stateless_random_brightness(x, 0.2, seed),
            image.stateless_random_contrast(x, 0.5, 1.5, seed),
            image.stateless_random_saturation(x, 0.5, 1.5, seed),
            image.stateless_random_hue(x, 0.2, seed),
        ]
    return results


@program()
def algorithms(tf, np):
    seed, draw = [1, 2], tf.random.stateless_uniform
    functions = (tf.random.stateless_normal, tf.random.stateless_truncated_normal)
    return [
        [draw([3], seed, alg=alg) for alg in ("philox", "auto_select", tf.random.Algorithm.PHILOX, 1)],
        [function([3], seed, alg="philox") for function in functions],
        [raises(lambda alg=alg: draw([3], seed, alg=alg)) for alg in ("foo", 7, 1.5, "threefry")],
        [raises(lambda function=function: function([3], seed, alg="foo")) for function in functions],
    ]


@program()
def normals_between_bounds_without_their_numbers(tf, np):
    draw = tf.random.stateless_parameterized_truncated_normal
    means, spread = tf.Variable([0.0, 0.5]), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        drawn = draw([5, 2], [1, 2], means, spread, -2.0, [2.0, 1.0])
    high = draw([3], [1, 2], 0.0, 1.0, 30.0, np.inf)
    return [
        tape.gradient(drawn, means),
        tf.reduce_all((drawn >= -2.0) & (drawn <= [2.0, 1.0])),
        tf.reduce_all((high >= 30.0) & (high < 31.0)),
        draw([0, 2], seed=[1, 2], means=means).shape,
        draw([3], [1, 2], *np.array([0.0, 1.0, -1.0, 1.0])).dtype,
        raises(lambda: draw([3], [1, 2], 0.0, 1.0, 2.0, 1.0).numpy(), containing="Invalid parameters"),
        raises(lambda: draw([3], [1, 2], 0.0, 0.0).numpy(), containing="Invalid parameters"),
        raises(lambda: draw([3], [1, 2], [0.0, 1.0])),
        raises(lambda: draw([3], [1, 2, 3])),
        raises(lambda: draw([3], [1, 2], tf.constant(0.0, tf.float64), spread)),
    ]
