"""Functions of tf.nn in the forms that programs call them in: lists, arrays, parts, lengths and names."""

from conformance.probes import derivatives, gradients, raises
from conformance.program import program


def numbers(np, *shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def singles(np, *shape):
    return numbers(np, *shape).astype("float32")


@program()
def embeddings_of_a_largest_norm(tf, np):
    table = tf.Variable(numbers(np, 5, 3))
    with tf.GradientTape() as tape:
        rows = tf.nn.embedding_lookup(table, [[0, 4], [1, 1]], max_norm=1.0)
        loss = tf.reduce_sum(rows**3)
    return [
        rows,
        tf.convert_to_tensor(tape.gradient(loss, table)),
        tf.nn.embedding_lookup(table, 2, max_norm=tf.constant(0.5, tf.float64), name="row"),
    ]


@program()
def embeddings_in_parts(tf, np):
    table = numbers(np, 5, 3)
    parts = [tf.Variable(table[:2]), tf.Variable(table[2:4]), tf.Variable(table[4:])]
    with tf.GradientTape() as tape:
        rows = tf.nn.embedding_lookup(parts, [0, 3, 4, 3])
        loss = tf.reduce_sum(rows**2)
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([1, 4, 0], tf.int64), [2, 2])
    return [
        rows,
        [tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, parts)],
        tf.nn.embedding_lookup([[1.0, 2.0], [3.0, 4.0]], [0, 3]),
        tf.nn.embedding_lookup_sparse(parts, ids, None, combiner="sum"),
        raises(lambda: tf.nn.embedding_lookup([], [0]), "Need at least one param"),
        raises(lambda: tf.nn.embedding_lookup(None, [0]), "params must be specified"),
    ]


@program()
def arrays_where_tensors_have_a_default_dtype(tf, np):
    images = numbers(np, 1, 2, 2, 3)
    return [
        tf.nn.max_pool2d(images, 2, 1, "SAME"),
        tf.nn.max_pool(images, 2, 1, "SAME"),
        tf.nn.max_pool2d((images * 9).astype("int64"), 2, 1, "SAME"),
        tf.nn.max_pool2d((images * 9).astype("int64").tolist(), 2, 1, "SAME"),
        tf.nn.avg_pool2d(images, 2, 1, "SAME"),
        tf.nn.max_pool1d(images[0], 2, 1, "SAME"),
        tf.nn.lrn(images),
        tf.nn.local_response_normalization((images * 9).astype("int64").tolist(), depth_radius=1),
        tf.image.rgb_to_hsv(np.abs(images)),
        tf.image.hsv_to_rgb(np.abs(images) / 4),
        tf.function(lambda: tf.nn.max_pool2d(images, 2, 1, "SAME"))(),
    ]


@program()
def biases_as_lists(tf, np):
    rows = tf.constant(numbers(np, 2, 3))
    return [
        tf.nn.bias_add(rows, [1.0, 2.0, 3.0]),
        tf.nn.bias_add(numbers(np, 2, 3), [1, 2, 3], data_format="N...C"),
        tf.nn.bias_add([[1, 2]], np.array([3, 4], np.int32)),
        raises(lambda: tf.nn.bias_add(rows, tf.ones([3]))),
        raises(lambda: tf.nn.bias_add(rows, [1.0, 2.0])),
    ]


@program()
def transposed_convolutions_of_the_lengths_alone(tf, np):
    kernel, y = numbers(np, 3, 3, 2, 4), numbers(np, 2, 5, 5, 4)

    def upsampled(y, kernel):
        return tf.nn.conv2d_transpose(y, kernel, [10, 9], 2)

    return [
        gradients(tf, upsampled, y, kernel),
        tf.nn.conv2d_transpose(y, kernel, tf.constant([2, 9, 10, 2]), strides=(1, 2, 2, 1)),
        raises(lambda: tf.nn.conv2d_transpose(y, kernel, 10, 2)),
        raises(lambda: tf.nn.conv_transpose(y, kernel, 10, 2)),
        raises(lambda: tf.nn.conv2d_transpose(y, kernel, [10, 10, 2], 2)),
    ]


@program()
def activations_of_integers(tf, np):
    whole = tf.constant([-1, 2])
    return [
        tf.nn.relu(whole),
        tf.nn.relu6(whole),
        raises(lambda: tf.nn.gelu(whole), "must be a floating point tensor"),
        raises(lambda: tf.nn.gelu(tf.constant([1j])), "must be a floating point tensor"),
        raises(lambda: tf.nn.elu(whole)),
        raises(lambda: tf.nn.softplus(whole)),
    ]


@program()
def scores_that_are_large_and_nearly_equal(tf, np):
    scores = {
        "float16": [[60000.0, 60000.0, -60000.0], [1024.0, 1024.0, 1023.0]],
        "float32": [[-3e38, -3e38, -3e38], [1e8, 1e8, 1e8 - 8.0], [12345.0, 12345.5, 12344.0]],
        "float64": [[1e300, 1e300, 0.0], [-1e16, -1e16, -1e16]],
    }
    return {
        dtype: [
            gradients(tf, lambda x: tf.reduce_logsumexp(x, -1), np.array(rows, dtype)),
            gradients(tf, tf.nn.log_softmax, np.array(rows, dtype)),
            gradients(
                tf,
                lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits([0] * x.shape[0], x),
                np.array(rows, dtype),
            ),
        ]
        for dtype, rows in scores.items()
    }


@program()
def a_penalised_critic(tf, np):
    def penalty(kernel, images):
        with tf.GradientTape() as tape:
            tape.watch(images)
            score = tf.reduce_sum(tf.nn.silu(tf.nn.conv2d(images, kernel, 2, "SAME")), [1, 2, 3])
        slopes = tape.gradient(score, images)
        return tf.reduce_mean((tf.sqrt(tf.reduce_sum(slopes**2, [1, 2, 3]) + 1e-12) - 1.0) ** 2)

    return gradients(tf, penalty, numbers(np, 3, 3, 2, 3), numbers(np, 2, 4, 4, 2))


@program()
def an_encoder_and_decoder_that_skips(tf, np):
    def decoded(images, down, up):
        hidden = tf.nn.silu(tf.nn.conv2d(images, down, 2, "SAME"))
        return tf.concat([images, tf.nn.conv2d_transpose(hidden, up, tf.shape(images), 2, "SAME")], -1)

    return derivatives(tf, decoded, numbers(np, 1, 5, 6, 2), numbers(np, 3, 3, 2, 3), numbers(np, 3, 3, 2, 3) / 2)


@program()
def groups_of_channels_normalized(tf, np):
    def normalized(x):
        groups = tf.reshape(x, [2, 3, 3, 2, 2])
        mean, variance = tf.nn.moments(groups, [1, 2, 4], keepdims=True)
        return tf.reshape((groups - mean) / tf.sqrt(variance + 1e-5), tf.shape(x))

    return derivatives(tf, normalized, numbers(np, 2, 3, 3, 4))


@program()
def jacobians_of_pools_and_convolutions(tf, np):
    images, kernel = tf.constant(numbers(np, 2, 3, 3, 1)), tf.Variable(numbers(np, 2, 2, 1, 2))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(images)
        y = tf.nn.conv2d(images, kernel, 1, "SAME")
        largest, mean = tf.nn.max_pool2d(y, 2, 1, "VALID"), tf.nn.avg_pool2d(y, 2, 2, "SAME")
    return [
        tape.jacobian(largest, kernel),
        tape.batch_jacobian(largest, images),
        tape.batch_jacobian(mean, images),
        tape.jacobian(y, kernel),
    ]


@program(rtol=1e-4)  # float32
def sequences_without_frames_or_labels(tf, np):
    labels = tf.constant([[1, 2], [1, 0], [0, 0], [3, 3]])

    def loss(logits):
        return tf.nn.ctc_loss(labels, logits, [2, 1, 0, 0], [4, 0, 0, 3], blank_index=0)

    return gradients(tf, loss, singles(np, 4, 4, 4))


@program(rtol=1e-4)  # TensorFlow's logarithms of probabilities are float32
def a_recogniser_of_the_last_class_blank(tf, np):
    frames = tf.constant(singles(np, 2, 8, 3))

    def loss(kernel):
        logits = tf.einsum("btf,fc->btc", frames, kernel)
        return tf.nn.ctc_loss(
            labels=tf.constant([[1, 2], [3, 0]]),
            logits=logits,
            label_length=[2, 1],
            logit_length=[8, 6],
            logits_time_major=False,
            blank_index=-1,
        )

    return gradients(tf, loss, singles(np, 3, 5))
