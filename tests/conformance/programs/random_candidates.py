"""Candidate samplers, noise-contrastive estimation, the sampled softmax, and dropout with a sampler of its own."""

from conformance.probes import raises
from conformance.program import program

TRUE = [[1, 7], [0, 3], [11, 2]]


@program()
def log_uniform_classes(tf, np):
    tf.random.set_seed(5)
    sample = tf.random.log_uniform_candidate_sampler
    results = [list(sample(TRUE, 2, 8, unique, 20)) for unique in (True, False)]
    results += [list(sample(TRUE, 2, 6, True, 50, seed=3)) for _ in range(2)]
    return [*results, list(sample([[0]], 1, 400, False, 10**6)), list(sample(TRUE, 2, 12, True, 12))]


@program()
def uniform_classes(tf, np):
    tf.random.set_seed(5)
    sample = tf.random.uniform_candidate_sampler
    results = [list(sample(TRUE, 2, 8, unique, 20)) for unique in (True, False)]
    return [*results, list(sample(TRUE, 2, 6, True, 16, seed=3)), list(sample([[0]], 1, 5, False, 2**40))]


@program()
def all_classes(tf, np):
    return [
        list(tf.random.all_candidate_sampler(TRUE, 2, 12, True)),
        list(tf.nn.all_candidate_sampler([[1]], 1, 3, True)),
    ]


@program()
def accidental_hits(tf, np):
    hits = tf.nn.compute_accidental_hits(tf.constant(TRUE, tf.int64), tf.constant([2, 9, 1, 3], tf.int64), 2)
    return [list(hits), list(tf.nn.compute_accidental_hits([[5]], [1, 2], 1))]


def _parameters(tf, np):
    weights = tf.Variable(np.sin(np.arange(60.0)).reshape(12, 5).astype(np.float32))
    biases = tf.Variable(np.cos(np.arange(12.0)).astype(np.float32))
    return weights, biases, tf.Variable(np.cos(np.arange(15.0) * 2).reshape(3, 5).astype(np.float32))


@program()
def noise_contrastive_estimation(tf, np):
    tf.random.set_seed(2)
    weights, biases, inputs = _parameters(tf, np)
    results = []
    for classes, hits in ((TRUE, False), (TRUE, True), ([[1], [0], [3]], False)):
        true = tf.constant(classes)
        with tf.GradientTape() as tape:
            losses = tf.nn.nce_loss(weights, biases, true, inputs, 4, 12, true.shape[1], remove_accidental_hits=hits)
        results += [losses, tape.gradient(losses, [weights, biases, inputs])]
    return results


@program()
def sampled_softmax(tf, np):
    tf.random.set_seed(2)
    weights, biases, inputs = _parameters(tf, np)
    true = tf.constant([[1], [0], [3]])
    results = []
    for hits in (True, False):
        with tf.GradientTape() as tape:
            losses = tf.nn.sampled_softmax_loss(
                weights, biases, true, inputs, 5, 12, remove_accidental_hits=hits, seed=7
            )
        results += [losses, tape.gradient(losses, [weights, biases, inputs])]
    return [*results, tf.nn.sampled_softmax_loss(weights, biases, tf.constant(TRUE), inputs, 5, 12, 2)]


@program()
def given_candidates(tf, np):
    weights, biases, inputs = _parameters(tf, np)
    labels = tf.constant([[1], [0], [3]], tf.int64)
    values = tf.nn.all_candidate_sampler(labels, 1, 12, True)
    losses = tf.nn.sampled_softmax_loss(weights, biases, labels, inputs, 12, 12, sampled_values=values)
    logits = tf.matmul(inputs, weights, transpose_b=True) + biases
    return [losses, tf.nn.sparse_softmax_cross_entropy_with_logits(labels[:, 0], logits)]


@program()
def a_step_in_a_function(tf, np):
    tf.random.set_seed(4)
    weights, biases, inputs = _parameters(tf, np)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            losses = tf.nn.nce_loss(weights, biases, tf.constant([[1], [0], [3]]), inputs, 4, 12)
            loss = tf.reduce_mean(losses)
        gradient = tape.gradient(loss, inputs)
        inputs.assign_sub(gradient)
        return loss

    return [step(), step(), step(), inputs]


@program()
def general_dropout(tf, np):
    x = tf.Variable(tf.ones([2, 6]))
    generator = tf.random.Generator.from_seed(3)
    with tf.GradientTape() as tape:
        y = tf.nn.experimental.general_dropout(x, 0.5, generator.uniform)
    fixed = lambda shape, dtype: tf.reshape(tf.range(12.0) / 12.0, shape)  # noqa: E731
    return [
        y,
        tape.gradient(y, x),
        tf.nn.experimental.general_dropout(x, 0.25, fixed),
        tf.nn.experimental.general_dropout(x, 0.0, fixed),
        raises(lambda: tf.nn.experimental.general_dropout(x, 1.5, fixed)),
    ]


@program()
def arguments_that_do_not_fit(tf, np):
    return [
        raises(lambda: tf.random.log_uniform_candidate_sampler(TRUE, 2, 8, True, 4)),
        raises(lambda: tf.random.log_uniform_candidate_sampler(TRUE, 1, 8, True, 40)),
    ]
