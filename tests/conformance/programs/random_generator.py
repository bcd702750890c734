"""tf.random.Generator: the numbers are TensorFlow's, and so is the state after each draw."""

from conformance.probes import raises
from conformance.program import program


@program()
def numbers_of_each_dtype(tf, np):
    g = tf.random.Generator.from_seed(1234)
    results = [g.normal((2, 3)), g.state.numpy(), g.key, g.algorithm]
    for dtype in (tf.float16, tf.float32, tf.float64):
        results += [g.uniform([7], dtype=dtype), g.truncated_normal([7], dtype=dtype), g.normal([7], dtype=dtype)]
    results += [g.uniform_full_int([5], dtype=dtype) for dtype in (tf.int32, tf.int64, tf.uint32, tf.uint64)]
    for dtype in (tf.int32, tf.int64):
        results += [g.uniform([5], -2, 99, dtype=dtype), g.uniform([5], None, None, dtype=dtype)]
    return [*results, g.uniform_full_int([]), g.normal([]), g.normal([0, 2]), g.uniform([0]), g.state.numpy()]


@program()
def many_numbers(tf, np):
    g = tf.random.Generator.from_state([2**62, -3, 5], "philox")
    wide = [g.normal([50, 1001]), g.truncated_normal([50, 1001]), g.uniform([50, 1001])]
    return [[x[0, :5], x[-1, -5:], tf.reduce_sum(x, 1)[:3]] for x in wide] + [g.state.numpy()]


@program()
def moved_and_scaled(tf, np):
    g = tf.random.Generator.from_seed(7)
    mean, stddev = tf.Variable([1.0, 2.0, 3.0]), tf.constant(0.5)
    with tf.GradientTape() as tape:
        y = g.normal([2, 3], mean, stddev) * 2.0
    return [
        y,
        tape.gradient(y, mean),
        g.uniform([4], -1, 1),
        g.uniform([2, 2], [0.0, 1.0], [1.0, 3.0]),
        g.truncated_normal([4], 5.0, 0.1, tf.float64),
    ]


@program()
def seeds_and_states(tf, np):
    generator, create = tf.random.Generator, tf.random.create_rng_state
    return [
        create(1234, "philox"),
        create([1, 2, 3, 4], tf.random.Algorithm.PHILOX),
        create(2**70 + 5, "threefry"),
        create([12], "Three-Fry"),
        create(-1, 1),
        generator.from_seed([1, 2]).state.numpy(),
        generator.from_seed(2**64 - 1).state.numpy(),
        generator.from_key_counter(7, [1, 2], "philox").state.numpy(),
        generator.from_key_counter(2**64 - 1, [2**63, 0], "auto_select").normal([2]),
        generator.from_non_deterministic_state().state.shape,
        generator.from_non_deterministic_state("threefry").state.shape,
        generator.from_seed(3).state.name,
        generator.from_seed(3).state.trainable,
        [member.name for member in tf.random.Algorithm],
        tf.random.experimental.Generator is tf.random.Generator,
    ]


@program()
def copies_resets_and_skips(tf, np):
    g = tf.random.Generator.from_seed(5)
    copy = tf.random.Generator(copy_from=g)
    first, same = g.normal([3]), copy.normal([3])
    before = g.skip(tf.constant(4))
    results = [first, same, before, g.state.numpy(), copy.state.numpy()]
    g.reset([1, 2, 3])
    results.append(g.uniform([2]))
    g.reset_from_seed(5)
    results.append(g.normal([3]))
    g.reset_from_key_counter(9, [8, 7])
    results += [g.state.numpy(), g.uniform([2])]
    shared = tf.random.Generator.from_state(g.state, "philox")
    shared.normal([1])
    return [*results, shared.state is g.state, g.state.numpy()]


@program()
def new_seeds_and_new_generators(tf, np):
    g = tf.random.Generator.from_seed(11)
    seeds = g.make_seeds(3)
    parts = g.split(2)
    return [
        seeds,
        tf.random.stateless_uniform([2], seeds[:, 1]).shape,
        [part.state.numpy() for part in parts],
        [part.normal([2]) for part in parts],
        g.state.numpy(),
    ]


@program()
def the_binomial_has_its_range_and_mean(tf, np):
    g = tf.random.Generator.from_seed(11)
    x = g.binomial([4000, 2], counts=[10.0, 20.0], probs=[0.2, 0.9])
    mean = np.mean(x.numpy(), 0)
    whole = g.binomial([3], counts=10.0, probs=1.0, dtype=tf.float32)
    return [x.dtype, bool(abs(mean[0] - 2) < 0.1), bool(abs(mean[1] - 18) < 0.1), whole, g.state.numpy()]


@program()
def every_call_of_a_function_draws_anew(tf, np):
    g = tf.random.Generator.from_seed(3)

    @tf.function
    def draw(n):
        total = g.normal([2])
        for _ in tf.range(n):
            total += g.uniform([2])
        return total, g.uniform([], maxval=100, dtype=tf.int32)

    return [draw(tf.constant(2)), draw(tf.constant(3)), g.normal([2]), g.state.numpy()]


@program()
def the_programs_own_generator(tf, np):
    own = tf.random.get_global_generator()
    again = tf.random.get_global_generator() is own
    tf.random.set_global_generator(tf.random.Generator.from_seed(30))
    first = tf.random.get_global_generator().normal([3])
    tf.random.get_global_generator().reset_from_seed(30)
    second = tf.random.get_global_generator().normal([3])
    tf.random.set_global_generator(own)
    return [again, own.state.shape, first, second]


@program()
def in_modules(tf, np):
    module = tf.Module()
    module.generator = tf.random.Generator.from_seed(1)
    module.w = tf.Variable(1.0)
    return [[v.name for v in module.variables], len(module.submodules)]


@program()
def saved_and_restored(tf, np):
    import tempfile

    g = tf.random.Generator.from_seed(8)
    g.normal([3])
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(rng=g).save(folder + "/state")
        expected = g.normal([3])
        other = tf.random.Generator.from_seed(99)
        tf.train.Checkpoint(rng=other).restore(path)
        return [expected, other.normal([3])]


@program()
def refusals(tf, np):
    generator = tf.random.Generator
    g = generator.from_seed(1)
    threefry = generator.from_seed(1, alg="threefry")
    return [
        raises(lambda: generator.from_seed(1, alg="x")),
        raises(lambda: generator.from_seed(1, alg=1.5)),
        raises(lambda: generator.from_state([1, 2], alg="philox")),
        raises(lambda: generator.from_key_counter(1, [1], "philox")),
        raises(lambda: g.reset([1, 2])),
        raises(lambda: generator()),
        raises(lambda: threefry.normal([2])),
        raises(lambda: g.uniform([2], dtype=tf.int32)),
        raises(lambda: g.uniform([2], 3, 3, dtype=tf.int32)),
        raises(lambda: g.uniform([2], maxval=3, dtype=tf.uint8)),
        raises(lambda: g.uniform_full_int([2], dtype=tf.float32)),
        raises(lambda: g.normal([2], dtype=tf.int32)),
        raises(lambda: g.normal(3)),
        raises(lambda: g.normal([-1])),
    ]
