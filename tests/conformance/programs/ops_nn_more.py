"""More of tf.nn: activations, normalization, losses, blocks and patches of images: values and gradients."""

from conformance.probes import derivatives, raises
from conformance.program import program


def waves(np, *shape):
    return np.sin(np.arange(np.prod(shape)) * 0.7 + 0.2).astype(np.float32).reshape(shape)


def gradient(tf, function, x):
    variable = tf.Variable(x)
    with tf.GradientTape() as tape:
        y = function(variable)
    return [y, tape.gradient(y, variable)]


@program()
def activations(tf, np):
    x = waves(np, 3, 4) * 3
    return [
        derivatives(tf, lambda x: tf.nn.crelu(x) ** 2, x),
        tf.nn.crelu(x, axis=0),
        gradient(tf, lambda x: tf.nn.softsign(x), x),
        derivatives(tf, lambda x: tf.nn.silu(x, beta=0.5), x),
        tf.nn.swish(x, 2.0),
        tf.nn.softsign(tf.constant([0.0, -1.0, 3.0], tf.float64)),
    ]


@program()
def normalization(tf, np):
    x = waves(np, 2, 3, 4)
    image = waves(np, 1, 2, 2, 6)
    return [
        derivatives(tf, lambda x: tf.math.l2_normalize(x, axis=-1) ** 3, x),
        tf.nn.l2_normalize(x),
        tf.linalg.l2_normalize(x, axis=[0, 2], epsilon=0.5),
        tf.nn.l2_normalize(tf.zeros([3]), 0),
        gradient(tf, lambda x: tf.nn.local_response_normalization(x, 2, 1.5, 0.5, 0.75), image),
        tf.nn.lrn(image),
        gradient(tf, lambda x: tf.nn.lrn(x, depth_radius=1, alpha=2.0), image),
    ]


@program()
def losses(tf, np):
    labels, logits = np.abs(waves(np, 2, 3)), waves(np, 2, 3)[::-1] * 4
    return [
        derivatives(tf, lambda z, x: tf.nn.weighted_cross_entropy_with_logits(z, x, 2.5), labels, logits),
        tf.nn.weighted_cross_entropy_with_logits(labels, logits, pos_weight=tf.constant([1.0, 2.0, 0.5])),
        derivatives(tf, lambda t, x: tf.nn.log_poisson_loss(t, x), labels * 3, logits),
        derivatives(tf, lambda t, x: tf.nn.log_poisson_loss(t, x, compute_full_loss=True), labels * 3 + 1.5, logits),
        tf.nn.compute_average_loss([1.0, 2.0, 4.0]),
        tf.nn.compute_average_loss([1.0, 2.0], sample_weight=[0.5, 1.0], global_batch_size=4),
        tf.nn.scale_regularization_loss([1.0, 2.0]),
        raises(lambda: tf.nn.weighted_cross_entropy_with_logits(labels, logits[:1], 1.0)),
    ]


@program()
def statistics(tf, np):
    x = waves(np, 2, 3, 4)
    count, total, squares, shift = tf.nn.sufficient_statistics(x, [0, 2], shift=0.5)
    return [
        [count, total, squares, shift],
        tf.nn.normalize_moments(count, total, squares, shift),
        tf.nn.sufficient_statistics(x, [0], keepdims=True),
        tf.nn.zero_fraction([[0.0, 1.0], [0.0, 0.0]]),
        tf.math.zero_fraction(tf.constant([0, 3, 4])),
        tf.nn.in_top_k([2, 0, 9, 1], waves(np, 4, 5), 2),
        tf.math.in_top_k(targets=[0, 1], predictions=[[0.5, 0.5, 0.1], [0.2, float("inf"), 0.3]], k=1),
    ]


@program()
def blocks_and_channels(tf, np):
    x = waves(np, 1, 4, 6, 3)
    return [
        derivatives(tf, lambda x: tf.nn.space_to_depth(x, 2) ** 2, x),
        derivatives(tf, lambda x: tf.nn.depth_to_space(x, 2) ** 2, waves(np, 2, 1, 2, 8)),
        tf.nn.space_to_depth(tf.reshape(tf.range(16), [1, 4, 4, 1]), block_size=4, data_format="NHWC"),
        raises(lambda: tf.nn.space_to_depth(x, 4)),
        raises(lambda: tf.nn.depth_to_space(x, 2)),
    ]


@program()
def blocks_and_batches(tf, np):
    x = waves(np, 1, 4, 3, 2)
    return [
        derivatives(tf, lambda x: tf.space_to_batch(x, [2, 2], [[0, 0], [1, 0]]) ** 2, x),
        tf.nn.space_to_batch(x, [2, 3], tf.constant([[1, 1], [0, 0]])),
        tf.space_to_batch_nd(waves(np, 2, 6), [3], [[0, 0]]),
        derivatives(tf, lambda x: tf.batch_to_space(x, [2, 2], [[0, 1], [1, 0]]) ** 2, waves(np, 8, 2, 2, 1)),
        tf.batch_to_space(waves(np, 4, 3), block_shape=[2], crops=[[1, 1]]),
        raises(lambda: tf.space_to_batch(x, [3, 2], [[0, 0], [1, 0]])),
    ]


@program()
def patches(tf, np):
    x = waves(np, 2, 5, 6, 2)

    def cut(x, size, step, rate, padding):
        return tf.image.extract_patches(x, [1, size, size, 1], [1, step, step, 1], [1, rate, rate, 1], padding)

    return [
        derivatives(tf, lambda x: cut(x, 2, 2, 1, "VALID") ** 2, x),
        derivatives(tf, lambda x: cut(x, 3, 2, 1, "SAME") ** 2, x),
        cut(x, 2, 1, 2, "VALID"),
        cut(x, 3, 3, 1, "SAME"),
        cut(tf.reshape(tf.range(16), [1, 4, 4, 1]), 2, 2, 1, "VALID"),
    ]


@program()
def losses_of_connectionist_temporal_classification(tf, np):
    logits = tf.constant(np.random.default_rng(0).normal(size=(5, 3, 4)).astype("float32"))
    labels = tf.constant([[1, 2], [3, 3], [2, 0]])

    def loss(labels=labels, logits=logits, lengths=(2, 2, 1), frames=(5, 4, 3), **options):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            losses = tf.nn.ctc_loss(labels, logits, list(lengths), list(frames), **options)
        return [losses, tape.gradient(losses, logits)]

    return [
        loss(),
        loss(labels=[[1, 2], [0, 0], [2, 0]], blank_index=-1),
        loss(labels=[[1, 3], [0, 0], [3, 0]], blank_index=2),
        loss(logits=tf.transpose(logits, [1, 0, 2]), logits_time_major=False),
        loss(lengths=(0, 1, 0)),
        loss(labels=[[1, 0], [0, 3], [2, 0]])[0],
        loss(labels=tf.constant([[1, 2], [3, 3], [2, -1]], tf.int64)),
        tf.function(loss)(),
        tf.keras.losses.CTC()(labels, tf.transpose(logits, [1, 0, 2])),
        loss(logits=tf.cast(logits, tf.float16))[0].dtype,
    ]
