"""Functions of tf.nn as programs use them: decoders, weighted moments, isotonic fits, kernels by hand."""

from conformance.probes import derivatives, raises
from conformance.program import program


def numbers(np, *shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def singles(np, *shape):
    return numbers(np, *shape).astype("float32")


def parts(sparse):
    return [sparse.indices, sparse.values, sparse.dense_shape]


@program()
def greedy_decoding_of_frames(tf, np):
    logits = tf.constant(singles(np, 6, 2, 4))
    found = {}
    for merged in (True, False):
        for blank in (None, 0, -2):
            [labels], sums = tf.nn.ctc_greedy_decoder(logits, [6, 3], merged, blank)
            found[f"{merged} {blank}"] = [parts(labels), sums]
    [labels], sums = tf.nn.ctc_greedy_decoder(tf.constant(numbers(np, 3, 1, 5)), tf.constant([0]))
    return [found, parts(labels), sums, tf.sparse.to_dense(labels, default_value=-1)]


@program()
def a_search_for_the_best_paths(tf, np):
    logits = tf.constant(2.0 * singles(np, 8, 3, 4))
    found = {}
    for width, paths in ((100, 1), (3, 2), (10, 4), (2, 2), (1, 1)):
        labels, scores = tf.nn.ctc_beam_search_decoder(logits, [8, 5, 2], beam_width=width, top_paths=paths)
        found[f"{width} {paths}"] = [[parts(each) for each in labels], scores]
    return [
        found,
        raises(lambda: tf.nn.ctc_beam_search_decoder(logits, [8, 5, 2], 2, 3), "more paths than the beam width"),
        raises(lambda: tf.nn.ctc_beam_search_decoder(logits[:1], [1, 1, 1], 100, 9), "Less leaves in the beam search"),
        raises(lambda: tf.nn.ctc_beam_search_decoder(logits, [9, 5, 2]), "sequence_length(0) <= 8"),
        raises(lambda: tf.nn.ctc_greedy_decoder(logits, [9]), "len(sequence_length) != batch_size"),
        raises(lambda: tf.nn.ctc_greedy_decoder(logits[0], [9]), "inputs is not a 3-Tensor"),
        raises(lambda: tf.nn.ctc_greedy_decoder(logits, [1, 1, 1], blank_index=4), "blank_index expected to be"),
    ]


@program()
def a_recogniser_is_trained_and_decoded(tf, np):
    frames = tf.constant(singles(np, 6, 2, 3))
    labels, lengths = tf.constant([[1, 2, 1], [2, 2, 0]]), tf.constant([3, 2])
    kernel = tf.Variable(singles(np, 3, 4))
    losses = []
    for _ in range(4):
        with tf.GradientTape() as tape:
            logits = tf.einsum("tbf,fc->tbc", frames, kernel)
            loss = tf.reduce_mean(tf.nn.ctc_loss(labels, logits, lengths, [6, 6], blank_index=3))
        kernel.assign_sub(0.5 * tape.gradient(loss, kernel))
        losses.append(loss)
    [decoded], _ = tf.nn.ctc_greedy_decoder(tf.einsum("tbf,fc->tbc", frames, kernel), [6, 6])
    return [losses, tf.sparse.to_dense(decoded)]


@program()
def labels_in_other_forms(tf, np):
    labels = [[3, 4, 4, 3], [1, 2, 3, 4]]
    long = tf.constant([[1, 1, 2, 2, 1], [1, 1, 1, 0, 0]], tf.int64)
    return [
        tf.nn.ctc_unique_labels(labels),
        tf.nn.collapse_repeated(long, [5, 3]),
        tf.nn.collapse_repeated(long, tf.constant([4, 0], tf.int64)),
    ]


@program()
def moments_of_elements_that_count_more_than_once(tf, np):
    x = numbers(np, 4, 3)

    def spread(x, weights):
        mean, variance = tf.nn.weighted_moments(x, [0], weights)
        return mean / tf.sqrt(variance)

    halves = tf.constant([1.0, 2.0, 4.0], tf.float16)
    return [
        derivatives(tf, spread, x, np.abs(numbers(np, 4, 1))),
        tf.nn.weighted_moments(x, [0, 1], np.arange(4.0)[:, None], keepdims=True),
        tf.nn.weighted_moments(tf.constant(x), -1, 2.0),
        tf.nn.weighted_moments(halves, 0, tf.constant([1.0, 1.0, 2.0], tf.float16)),
    ]


@program()
def normalization_over_the_whole_batch(tf, np):
    images = numbers(np, 2, 3, 3, 2)

    def normalized(x, beta, gamma):
        mean, variance = tf.nn.moments(x, [0, 1, 2])
        return tf.nn.batch_norm_with_global_normalization(x, mean, variance, beta, gamma, 1e-3, True)

    plain = tf.nn.batch_norm_with_global_normalization(
        tf.constant(images), np.zeros(2), np.ones(2), np.ones(2), None, 1e-3, False
    )
    with tf.GradientTape() as tape:
        sources = [tf.constant(images), tf.constant([0.5, -0.5], tf.float64), tf.constant([2.0, 3.0], tf.float64)]
        tape.watch(sources)
        loss = tf.reduce_sum(tf.tanh(normalized(*sources)))
    return [loss, tape.gradient(loss, sources), plain]


@program()
def isotonic_calibration_of_scores(tf, np):
    rows = np.array([[3.0, 1.0, 2.0, 2.0, 4.0, 0.0, 1.0], [1.0, 1.0, 1.0, 2.0, 2.0, 0.0, 0.5]])

    def calibrated(x):
        return tf.nn.isotonic_regression(x)[0]

    rising = tf.nn.isotonic_regression(tf.constant(rows), decreasing=False)
    columns = tf.nn.isotonic_regression(tf.constant(rows), axis=0)
    return [
        derivatives(tf, calibrated, rows),
        rising[0],
        rising[1],
        columns[0],
        columns[1],
        tf.nn.isotonic_regression(tf.constant([3, 1, 2]))[0],
        tf.nn.isotonic_regression(tf.constant([3, 1, 2], tf.int8))[0],
        tf.nn.isotonic_regression(tf.constant([3.0, 1.0, 2.0], tf.bfloat16))[0],
        tf.nn.isotonic_regression(tf.zeros([2, 0]))[0],
    ]


@program()
def ranks_that_are_soft(tf, np):
    scores = np.array([[0.3, 1.2, -0.4, 0.9], [0.1, 0.2, 0.25, -2.0]])

    def ranks(x):
        strength = 0.5
        order = tf.argsort(x, direction="DESCENDING")
        wanted = tf.gather(x, order, batch_dims=1) / strength
        weights = tf.constant([[4.0, 3.0, 2.0, 1.0]] * 2, tf.float64)
        solved = wanted - tf.nn.isotonic_regression(wanted - weights)[0]
        return tf.gather(solved, tf.argsort(order), batch_dims=1)

    return derivatives(tf, ranks, scores)


@program()
def gradients_of_depthwise_kernels_by_hand(tf, np):
    images, filters = singles(np, 1, 4, 4, 3), singles(np, 2, 2, 3, 2)
    found = {}
    for strides, padding, dilations in (((1, 2, 2, 1), "SAME", (1, 1, 1, 1)), ((1, 1, 1, 1), "VALID", (1, 1, 1, 1))):
        x, kernel = tf.constant(images), tf.constant(filters)
        with tf.GradientTape() as tape:
            tape.watch([x, kernel])
            y = tf.nn.depthwise_conv2d(x, kernel, strides, padding, dilations=dilations[1:3])
            total = tf.reduce_sum(y * y)
        by_tape = tape.gradient(total, [x, kernel])
        given = 2.0 * y
        by_hand = [
            tf.nn.depthwise_conv2d_backprop_input(x.shape, kernel, given, strides, padding, dilations=dilations),
            tf.nn.depthwise_conv2d_backprop_filter(x, kernel.shape, given, strides, padding, dilations=dilations),
        ]
        found[padding] = [by_hand, [tf.abs(a - b) < 1e-4 for a, b in zip(by_tape, by_hand, strict=True)]]
    return found


@program()
def derivatives_through_gradients_of_depthwise_kernels(tf, np):
    images, filters, ct = singles(np, 1, 3, 3, 2), singles(np, 2, 2, 2, 1), singles(np, 1, 2, 2, 2)
    strides = [1, 1, 1, 1]

    def images_back(kernel, ct):
        return tf.nn.depthwise_conv2d_backprop_input([1, 3, 3, 2], kernel, ct, strides, "VALID")

    def kernel_back(x, ct):
        return tf.nn.depthwise_conv2d_backprop_filter(x, [2, 2, 2, 1], ct, strides, "VALID")

    return [derivatives(tf, images_back, filters, ct), derivatives(tf, kernel_back, images, ct)]


@program()
def windows_that_are_dilated_by_batches(tf, np):
    images, filters = numbers(np, 1, 5, 4, 2), numbers(np, 2, 2, 2, 3)
    kernel = tf.constant(filters)

    def convolved(part, n, padding):
        return tf.nn.conv2d(part, kernel, 1, padding)

    def dilated(x):
        return tf.nn.with_space_to_batch(x, [2, 1], "SAME", convolved, filter_shape=[2, 2, 2, 3])

    def largest(part, n, padding):
        return tf.nn.max_pool2d(part, 2, 1, padding)

    def pooled(x):
        return tf.nn.with_space_to_batch(x, [2, 2], "VALID", largest)

    def along_columns(x):
        return tf.nn.with_space_to_batch(
            x, [2], "VALID", lambda part, n, padding: tf.nn.avg_pool2d(part, [1, 2], 1, padding), spatial_dims=[2]
        )

    plain = tf.nn.with_space_to_batch(images, [1, 1], "SAME", lambda part, n, padding: f"{n} {padding}")
    return [
        derivatives(tf, dilated, images),
        derivatives(tf, pooled, images),
        along_columns(images),
        plain,
        raises(lambda: tf.nn.with_space_to_batch(images, [1, 2], "SAME", along_columns), "`filter_shape` must"),
        raises(lambda: tf.nn.with_space_to_batch(images, [0, 2], "VALID", along_columns), "`dilation_rate` must be"),
        raises(
            lambda: tf.nn.with_space_to_batch(images, [2, 2], "VALID", along_columns, spatial_dims=[2, 1]),
            "`spatial_dims` must be a monotonically increasing",
        ),
    ]


@program()
def attention_that_keeps_its_largest_scores(tf, np):
    keys, values = tf.constant(singles(np, 5, 3)), tf.constant(singles(np, 5, 2))

    def attended(queries):
        scores, places = tf.nn.approx_max_k(tf.matmul(queries, keys, transpose_b=True), 3)
        weights = tf.nn.softmax(scores)
        return tf.einsum("qk,qkd->qd", weights, tf.gather(values, places))

    return derivatives(tf, attended, singles(np, 2, 3))


@program()
def a_gated_unit_with_its_own_statistics(tf, np):
    x = numbers(np, 3, 4)

    def gated(x, scale):
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        normal = tf.nn.batch_normalization(x, mean, variance, None, scale, 1e-5)
        left, right = tf.split(normal, 2, axis=-1)
        return tf.nn.silu(left) * tf.nn.softsign(right)

    with tf.GradientTape() as tape:
        sources = [tf.constant(x), tf.constant(np.abs(numbers(np, 4)))]
        tape.watch(sources)
        y = gated(*sources)
        loss = tf.reduce_sum(y * y)
    return [y, tape.gradient(loss, sources)]


@program()
def candidates_drawn_by_their_frequency(tf, np):
    true = [[0, 1], [2, 3]]
    frequencies = [float(i % 7 + 1) for i in range(50)]
    found = []
    for unigrams, options in (
        ([1.0, 2.0, 3.0, 4.0], {}),
        ([1.0, 2.0, 3.0], {"num_reserved_ids": 1}),
        ([1.0, 2.0, 3.0, 4.0, 0.5, 6.0, 7.0, 0.1], {"distortion": 0.5, "num_shards": 2, "shard": 1}),
    ):
        for unique in (True, False):
            tf.random.set_seed(3)
            for _ in range(2):
                drawn = tf.random.fixed_unigram_candidate_sampler(
                    true, 2, 3, unique, 4, seed=7, unigrams=unigrams, **options
                )
                found.append(list(drawn))
    tf.random.set_seed(5)
    many = tf.nn.fixed_unigram_candidate_sampler([[0, 9]], 2, 20, True, 50, distortion=0.75, unigrams=frequencies)
    return [
        found,
        many[0],
        raises(lambda: tf.nn.fixed_unigram_candidate_sampler(true, 2, 2, True, 4), "either vocab_file or unigrams"),
        raises(
            lambda: tf.nn.fixed_unigram_candidate_sampler(true, 2, 2, True, 4, unigrams=[1.0, 2.0]),
            "range is 4 must be equal to weights size  2",
        ),
    ]


@program()
def a_sampled_loss_over_classes_of_known_frequency(tf, np):
    labels, inputs = tf.constant([[1], [4]], tf.int64), tf.constant(singles(np, 2, 3))
    weights, biases = tf.constant(singles(np, 6, 3)), tf.constant(singles(np, 6))
    tf.random.set_seed(2)
    drawn = tf.nn.fixed_unigram_candidate_sampler(
        labels, 1, 4, True, 6, unigrams=[5.0, 4.0, 3.0, 2.0, 1.0, 1.0], seed=1
    )

    def loss(inputs):
        return tf.nn.sampled_softmax_loss(weights, biases, labels, inputs, 4, 6, sampled_values=drawn)

    return derivatives(tf, loss, inputs)
