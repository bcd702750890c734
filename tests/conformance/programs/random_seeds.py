"""tf.random.set_seed and seeds of ops: the numbers are TensorFlow's, in any order of calls and in functions."""

from conformance.probes import raises
from conformance.program import program


@program()
def the_seed_of_the_program(tf, np):
    tf.random.set_seed(5)
    return [
        tf.random.normal([3]),
        tf.random.uniform([3]),
        tf.random.normal([2, 2], 1.0, 2.0),
        tf.random.truncated_normal([3]),
        tf.random.uniform([3], 0, 10, tf.int32),
        tf.random.uniform([2], -5, 10, tf.int64),
        tf.random.uniform([2], 2.0, 3.0, tf.float64),
        tf.random.normal([]),
        tf.random.normal([0, 3]),
        tf.random.normal([3], dtype=tf.float16),
    ]


@program()
def the_seed_of_an_op_counts_its_draws(tf, np):
    tf.random.set_seed(5)
    draws = [tf.random.normal([3], seed=1), tf.random.normal([3], seed=1), tf.random.uniform([3], seed=1)]
    draws += [tf.random.normal([5], seed=1), tf.random.normal([2], seed=1, dtype=tf.float64)]
    tf.random.set_seed(5)
    return [*draws, tf.random.normal([3], seed=1), tf.random.normal([3], seed=2), tf.random.normal([3])]


@program(fresh=True)
def the_seed_of_an_op_alone(tf, np):
    return [tf.random.normal([3], seed=1), tf.random.normal([3], seed=1), tf.random.uniform([2], seed=0)]


@program()
def seeds_of_every_kind(tf, np):
    results = []
    for seed in (0, -7, 2**31 - 1, 2**40 + 3, np.int64(12), np.int32(-3)):
        tf.random.set_seed(seed)
        results += [tf.random.normal([2]), tf.random.normal([2], seed=0), tf.random.normal([2], seed=-3)]
    return results


@program()
def shuffles(tf, np):
    tf.random.set_seed(5)
    x = tf.range(10)
    return [
        tf.random.shuffle(x),
        tf.random.shuffle(x, seed=3),
        tf.random.shuffle(x, seed=3),
        tf.random.shuffle(tf.reshape(tf.range(20.0), [10, 2]), seed=3),
        tf.random.shuffle([7], seed=3),
        tf.random.shuffle(tf.zeros([0, 2])),
        tf.random.shuffle(tf.range(3)),
        tf.random.experimental.stateless_shuffle(x, [1, 2]),
    ]


@program()
def classes(tf, np):
    tf.random.set_seed(5)
    logits = tf.math.log([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
    return [
        tf.random.categorical(logits, 7),
        tf.random.categorical(logits, 7, seed=3),
        tf.random.categorical(logits[:1], 6, tf.int32, seed=3),
        tf.random.categorical(logits, 6, tf.int32, seed=3),
        tf.random.categorical([[0.0, -np.inf, 1.0, 2.0]], 20),
        tf.random.categorical(tf.zeros([2, 5], tf.float64), 3),
        tf.random.categorical(logits, 0),
        tf.random.stateless_categorical(logits, 7, [1, 2]),
        tf.random.stateless_categorical(logits, 5, [3, 2], tf.int32),
    ]


@program()
def gamma_numbers(tf, np):
    tf.random.set_seed(5)
    return [
        tf.random.gamma([3], [0.5, 1.0, 3.0]),
        tf.random.gamma([3], [0.5, 1.0, 3.0], beta=2.0, seed=4),
        tf.random.gamma([2], 3.0, [1.0, 2.0], seed=4),
        tf.random.gamma([2], 0.7, dtype=tf.float64),
        tf.random.gamma([2, 2], [[0.1], [50.0]], dtype=tf.float16),
        tf.random.stateless_gamma([3, 2], [1, 2], [0.5, 3.0]),
        tf.random.stateless_gamma([3, 2], [1, 2], [0.5, 3.0], [[1.0], [2.0], [4.0]]),
    ]


@program()
def gradients_of_gamma_numbers(tf, np):
    tf.random.set_seed(3)
    alpha, beta = tf.Variable([0.3, 1.0, 4.0, 200.0]), tf.Variable([1.0, 2.0, 0.5, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        drawn = tf.random.gamma([5], alpha, beta)
        stateless = tf.random.stateless_gamma([5, 4], [1, 2], alpha, beta)
        y = tf.reduce_sum(tf.math.log(drawn)) + tf.reduce_sum(stateless * tf.range(4.0))
        first = drawn[0]
    return [drawn, tape.gradient(y, [alpha, beta]), tape.jacobian(first, alpha)]


@program()
def the_gradient_of_gamma_numbers_in_a_function(tf, np):
    tf.random.set_seed(3)
    alpha = tf.Variable([0.3, 2.0])

    @tf.function
    def loss_and_gradient():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.random.gamma([4], alpha))
        return loss, tape.gradient(loss, alpha)

    return [loss_and_gradient(), loss_and_gradient()]


@program()
def poisson_numbers(tf, np):
    tf.random.set_seed(5)
    rates = tf.constant([0.5, 4.0, 30.0])
    return [
        tf.random.poisson([3], rates),
        tf.random.poisson([3], rates, seed=4),
        tf.random.poisson([2, 2], rates, tf.int32, seed=4),
        tf.random.poisson([4], tf.constant(12.0, tf.float64), dtype=tf.float64),
        tf.random.poisson([4], 1000.0),
        tf.random.stateless_poisson([3, 3], [1, 2], rates),
        tf.random.stateless_poisson([4], [1, 2], 15.0, tf.float64),
    ]


@program()
def binomial_numbers(tf, np):
    generator = tf.random.Generator.from_seed(3)
    return [
        tf.random.stateless_binomial([5, 2], [1, 2], [10.0, 100.0], [0.3, 0.7]),
        tf.random.stateless_binomial([4], [5, 2], 1000.0, 0.4, tf.float32),
        tf.random.stateless_binomial([4], [5, 2], 10.0, [0.0, 1.0, 0.5, 0.99]),
        generator.binomial([5, 2], [10.0, 100.0], [0.3, 0.7]),
        generator.binomial([3], 7.0, 0.2),
        generator.state.numpy(),
    ]


@program()
def dropout(tf, np):
    tf.random.set_seed(5)
    x = tf.Variable(tf.ones([2, 6]))
    with tf.GradientTape() as tape:
        y = tf.nn.dropout(x, 0.5)
    results = [y, tape.gradient(y, x), tf.nn.dropout(x, 0.0), tf.nn.dropout(x, 0.4, noise_shape=[2, 1])]
    return [*results, tf.nn.dropout(x, 0.3, seed=2), tf.nn.dropout(x, 0.3, seed=2), tf.nn.dropout(x, tf.constant(0.2))]


@program()
def images(tf, np):
    image = tf.image
    tf.random.set_seed(5)
    x = tf.reshape(tf.range(27.0), [3, 3, 3]) / 27.0
    batch = tf.stack([x, x * x])
    results = [image.random_flip_left_right(x), image.random_flip_up_down(batch), image.random_brightness(x, 0.2)]
    results += [image.random_contrast(x, 0.5, 1.5), image.random_saturation(x, 0.5, 1.5), image.random_hue(x, 0.2)]
    results += [image.random_crop(x, [2, 2, 3]), image.random_flip_left_right(x, seed=1)]
    return [*results, image.random_crop(batch, [1, 2, 2, 3], seed=4), image.random_brightness(x, 0.2, seed=4)]


@program()
def initializers(tf, np):
    tf.random.set_seed(5)
    normal, uniform = tf.random_normal_initializer, tf.random_uniform_initializer
    return [normal()([3]), uniform()([3]), normal(seed=2)([3]), normal(1.0, 2.0)([2]), uniform(0.0, 5.0, seed=3)([2])]


@program()
def draws_in_a_function(tf, np):
    tf.random.set_seed(7)

    @tf.function
    def draw():
        return [
            tf.random.normal([2]),
            tf.random.uniform([2]),
            tf.random.normal([2], seed=3),
            tf.random.normal([2], seed=3),
            tf.random.shuffle(tf.range(5)),
        ]

    results = [draw(), draw(), tf.random.normal([2])]
    tf.random.set_seed(9)
    return [*results, draw(), draw(), tf.random.normal([2])]


@program()
def each_signature_draws_for_itself(tf, np):
    tf.random.set_seed(7)

    @tf.function
    def moved(x):
        return tf.random.normal([2]) + x

    zero = tf.constant(0.0)
    return [moved(zero), moved(zero), moved(0.0), moved(0.0), moved(0.5), moved(tf.zeros([2]))]


@program()
def a_function_called_twice_by_another(tf, np):
    tf.random.set_seed(7)

    @tf.function
    def inner():
        return tf.random.normal([2]), tf.random.normal([], seed=1)

    @tf.function
    def outer():
        return tf.random.normal([2]), inner(), inner()

    return [outer(), inner(), outer(), inner()]


@program()
def draws_in_a_loop_of_a_function(tf, np):
    tf.random.set_seed(9)

    @tf.function
    def walk():
        place = tf.zeros([2])
        for _ in tf.range(4):
            place += tf.random.normal([2])
        return place, tf.random.normal([2])

    return [walk(), walk(), walk()]


@program()
def draws_in_a_branch(tf, np):
    tf.random.set_seed(9)

    @tf.function
    def choose(first):
        if first:
            drawn = tf.random.normal([2])
        else:
            drawn = tf.random.uniform([2])
        return drawn, tf.random.normal([2])

    return [choose(tf.constant(True)), choose(tf.constant(True))]


@program()
def draws_in_an_eager_loop(tf, np):
    tf.random.set_seed(9)
    body = lambda i, y: (i + 1, y + tf.random.normal([2]))  # noqa: E731
    return [
        tf.while_loop(lambda i, y: i < 3, body, [0, tf.zeros([2])])[1],
        tf.map_fn(lambda v: v + tf.random.normal([]), tf.zeros([3])),
        tf.random.normal([2]),
    ]


@program()
def the_seed_of_a_function(tf, np):
    tf.random.set_seed(9)

    @tf.function
    def draw():
        before = tf.random.normal([2])
        tf.random.set_seed(3)
        return before, tf.random.normal([2])

    return [draw(), draw(), tf.random.normal([2])]


@program()
def a_step_with_noise(tf, np):
    tf.random.set_seed(1)
    w = tf.Variable(tf.random.normal([3, 2], stddev=0.5))
    losses = []

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            hidden = tf.nn.dropout(tf.nn.relu(x @ w + tf.random.normal([4, 2], stddev=0.1)), 0.25)
            loss = tf.reduce_mean(tf.square(hidden - 1.0))
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    for _ in range(5):
        losses.append(step(tf.random.uniform([4, 3])))
    return [losses, w]


@program()
def numpys_functions(tf, np):
    random = tf.experimental.numpy.random
    random.seed(5)
    return [random.randn(3), random.uniform(0, 1, [2]), random.rand(2), random.poisson(3.0, [3]), random.randint(9)]


@program()
def a_shuffled_dataset_takes_a_seed(tf, np):
    tf.random.set_seed(4)
    tf.data.Dataset.range(6).shuffle(6)
    first = tf.random.normal([2])
    tf.data.Dataset.range(6).shuffle(6, seed=3)
    return [first, tf.random.normal([2])]


@program()
def arguments_that_do_not_fit(tf, np):
    return [
        raises(lambda: tf.random.uniform([2], 5, 5, dtype=tf.int32).numpy()),
        raises(lambda: tf.random.normal([2], dtype=tf.int32)),
        raises(lambda: tf.random.categorical([[]], 2).numpy()),
    ]
