"""Convolution and pooling: values, gradients of both inputs, second order, paddings, ties, refusals."""

from conformance.probes import derivatives, raises
from conformance.program import program


def images(np, *shape):
    return np.sin(np.arange(np.prod(shape)) * 0.7 + 0.2).astype(np.float32).reshape(shape)


@program()
def convolution(tf, np):
    x, f = images(np, 2, 4, 5, 2), images(np, 2, 3, 2, 3)
    return {
        padding: derivatives(tf, lambda x, f: tf.nn.conv2d(x, f, strides=1, padding=padding) ** 2, x, f)
        for padding in ("SAME", "VALID")
    }


@program()
def convolution_with_strides(tf, np):
    x, f = images(np, 1, 5, 6, 1), images(np, 3, 2, 1, 2)
    return {
        str(strides): derivatives(tf, lambda x, f: tf.nn.conv2d(x, f, strides, padding="SAME"), x, f)
        for strides in (2, [2], [1, 2], [1, 3, 2, 1])
    }


@program()
def convolution_with_dilations_and_borders(tf, np):
    x, f = images(np, 1, 5, 5, 2), images(np, 2, 2, 2, 2)
    borders = [[0, 0], [1, 2], [0, 1], [0, 0]]
    return [
        tf.nn.conv2d(x, f, 1, "SAME", dilations=2),
        tf.nn.conv2d(x, f, 1, "VALID", dilations=[1, 2]),
        tf.nn.conv2d(x, f, 2, borders),
        derivatives(tf, lambda x, f: tf.nn.conv2d(x, f, [2, 1], borders), x, f),
    ]


@program()
def convolution_in_groups(tf, np):
    return [
        tf.nn.conv2d(images(np, 1, 3, 3, 4), images(np, 2, 2, 2, 4), 1, "SAME"),
        tf.nn.conv2d(images(np, 2, 3, 4, 3), images(np, 2, 3, 1, 6), 2, "VALID"),
    ]


@program()
def convolution_of_other_dtypes(tf, np):
    x, f = images(np, 1, 3, 3, 1), images(np, 2, 2, 1, 2)
    return [
        tf.nn.conv2d(tf.constant(x, dtype), tf.constant(f, dtype), 1, "VALID")
        for dtype in (tf.float16, tf.float32, tf.float64)
    ] + [tf.nn.conv2d(tf.ones([1, 3, 3, 1], tf.int32), tf.fill([2, 2, 1, 1], 2), 1, "SAME")]


@program()
def convolution_of_stacked_images_and_of_none(tf, np):
    return [
        tf.nn.conv2d(images(np, 2, 2, 3, 3, 1), images(np, 2, 2, 1, 2), 1, "VALID"),
        tf.nn.conv2d(tf.ones([0, 4, 4, 2]), tf.ones([2, 2, 2, 3]), 1, "VALID"),
        tf.nn.conv2d(tf.ones([1, 2, 2, 1]), tf.ones([3, 3, 1, 1]), 1, "VALID"),
        tf.nn.conv2d(tf.ones([1, 4, 4, 1]), tf.ones([7, 7, 1, 1]), 2, "VALID"),
        tf.nn.conv2d(tf.ones([2, 0, 4, 1]), tf.ones([2, 2, 1, 1]), 1, "SAME"),
        raises(
            lambda: tf.nn.conv2d(tf.ones([1, 4, 4, 1]), tf.ones([8, 8, 1, 1]), 2, "VALID"),
            containing="output size would be negative: -1 [input_size: 4, effective_filter_size: 8, stride: 2]",
        ),
        raises(lambda: tf.nn.max_pool2d(tf.ones([1, 2, 2, 1]), 4, 1, "VALID"), containing="would be negative: -1"),
    ]


@program()
def convolution_refused(tf, np):
    x, f = tf.ones([1, 4, 4, 2]), tf.ones([2, 2, 2, 3])
    conv = tf.nn.conv2d
    return [
        raises(lambda: conv(x[0], f, 1, "SAME"), containing="convolution input must be 4-dimensional: [4,4,2]"),
        raises(lambda: conv(x, f[0], 1, "SAME"), containing="convolution filter must be 4-dimensional: [2,2,3]"),
        raises(
            lambda: conv(x, tf.ones([2, 2, 3, 3]), 1, "SAME"),
            containing="input depth must be evenly divisible by filter depth: 2 vs 3",
        ),
        raises(lambda: conv(x, tf.ones([2, 2, 1, 3]), 1, "SAME"), containing="number of groups: 3 vs 2"),
        raises(lambda: conv(x, f, 0, "VALID")),
        raises(lambda: conv(x, f, 1, "FULL"), containing='of "FULL" is not in the list of allowed values'),
        raises(lambda: conv(x, f, 1, "same")),
        raises(lambda: conv(x, f, [1, 1, 1], "VALID"), containing="strides should be of length 1, 2 or 4"),
        raises(lambda: conv(x, f, [2, 2, 2, 1], "VALID"), containing="in the batch and depth dimensions"),
        raises(lambda: conv(x, f, 1, [[0, 0], [1, 2]]), containing="When padding is a list, it must be of size 4"),
        raises(lambda: conv(x, f, 1, [[0, 1], [1, 2], [0, 1], [0, 0]])),
        raises(lambda: conv(x, f, 1, [[0, 0], [-1, 2], [0, 1], [0, 0]]), containing="must be nonnegative"),
        raises(lambda: conv(tf.cast(x, tf.float64), f, 1, "SAME")),
        raises(lambda: conv(tf.cast(x, tf.complex64), tf.cast(f, tf.complex64), 1, "SAME")),
    ]


@program()
def transposed_convolution(tf, np):
    def up(x, f):
        return tf.nn.conv2d_transpose(x, f, output_shape=[1, 5, 6, 2], strides=2, padding="SAME")

    return [
        derivatives(tf, lambda x, f: up(x, f) ** 2, images(np, 1, 3, 3, 3), images(np, 2, 3, 2, 3)),
        raises(lambda: tf.nn.conv2d_transpose(tf.ones([1, 2, 2, 1]), tf.ones([2, 2, 1, 1]), [1, 9, 9, 1], 2)),
    ]


@program()
def max_pooling(tf, np):
    x = images(np, 2, 5, 4, 2)
    pools = {
        "2x2": lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"),
        "same": lambda x: tf.nn.max_pool2d(x, [3, 2], [2, 1], "SAME"),
        "four": lambda x: tf.nn.max_pool2d(x, [1, 2, 3, 1], [1, 1, 2, 1], "SAME"),
        "overlapping": lambda x: tf.nn.max_pool2d(x, 3, 1, "VALID"),
        "nd": lambda x: tf.nn.max_pool(x, 2, 2, "VALID"),
    }
    return {name: derivatives(tf, lambda x: pool(x) ** 3, x) for name, pool in pools.items()}


@program()
def max_pooling_with_a_border(tf, np):
    x = tf.Variable(images(np, 1, 5, 4, 2))
    with tf.GradientTape() as tape:
        y = tf.nn.max_pool2d(x, 2, 2, [[0, 0], [1, 1], [1, 0], [0, 0]]) ** 2
    return [y, tape.gradient(y, x)]


@program()
def second_gradient_of_max_pooling_alone(tf, np):
    return derivatives(tf, lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), images(np, 1, 4, 4, 1))


@program()
def max_pooling_ties(tf, np):
    x = tf.Variable([[[[1.0], [1.0]], [[1.0], [0.0]]]])
    rows = tf.Variable(tf.ones([1, 3, 3, 2]))
    with tf.GradientTape(persistent=True) as tape:
        y = tf.nn.max_pool2d(x, 2, 2, "VALID")
        z = tf.nn.max_pool2d(rows, 2, 1, "SAME")
    return [y, tape.gradient(y, x), z, tape.gradient(z, rows)]


@program()
def max_pooling_of_negative_numbers_ints_and_nan(tf, np):
    x = -tf.abs(images(np, 1, 3, 3, 2)) - 1.0
    return [
        tf.nn.max_pool2d(x, 3, 1, "SAME"),
        tf.nn.max_pool2d(tf.reshape(tf.range(-8, 8), [1, 4, 4, 1]), 2, 2, "VALID"),
        tf.nn.max_pool2d(tf.constant([[[[1.0], [float("nan")]], [[0.0], [2.0]]]]), 2, 1, "VALID"),
        tf.nn.max_pool2d(tf.cast(x, tf.float64), 2, 2, "VALID"),
        tf.nn.max_pool2d(tf.cast(x, tf.float16), 2, 2, "VALID"),
    ]


@program()
def average_pooling(tf, np):
    x = images(np, 2, 5, 4, 2)
    pools = {
        "2x2": lambda x: tf.nn.avg_pool2d(x, 2, 2, "VALID"),
        "same": lambda x: tf.nn.avg_pool2d(x, [3, 2], [2, 1], "SAME"),
        "overlapping": lambda x: tf.nn.avg_pool2d(x, 3, 1, "VALID"),
        "nd": lambda x: tf.nn.avg_pool(x, [2, 3], 2, "SAME"),
    }
    return {name: derivatives(tf, lambda x: pool(x) ** 2, x) for name, pool in pools.items()}


@program()
def pooling_refused(tf, np):
    x = tf.ones([1, 4, 4, 2])
    return [
        raises(lambda: tf.nn.max_pool2d(x[0], 2, 1, "VALID"), containing="must have 2 spatial dimensions"),
        raises(lambda: tf.nn.avg_pool2d(x[0], 2, 1, "VALID"), containing="must have 2 spatial dimensions"),
        raises(lambda: tf.nn.max_pool2d(x, 2, 0, "VALID")),
        raises(lambda: tf.nn.max_pool2d(x, 0, 1, "VALID")),
        raises(lambda: tf.nn.max_pool2d(x, 2, 1, "BAD"), containing='of "BAD" is not in the list of allowed values'),
        raises(lambda: tf.nn.avg_pool2d(x, 2, 1, [[0, 0], [1, 1], [1, 0], [0, 0]])),
        raises(lambda: tf.nn.max_pool2d(x, [1, 2, 3], 1, "VALID"), containing="ksize should be of length 1, 2 or 4"),
        raises(lambda: tf.nn.avg_pool2d(tf.cast(x, tf.int32), 2, 2, "VALID")),
        raises(lambda: tf.nn.max_pool2d(tf.cast(x, tf.complex64), 2, 2, "VALID")),
        tf.nn.max_pool2d(x, 5, 1, "VALID"),
    ]


@program()
def a_convolutional_network(tf, np):
    x, labels = images(np, 4, 6, 6, 1), [0, 2, 1, 2]
    kernel = tf.Variable(images(np, 3, 3, 1, 4), name="kernel")
    bias = tf.Variable(images(np, 4))
    dense = tf.Variable(images(np, 36, 3) * 0.3)
    with tf.GradientTape() as tape:
        hidden = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME") + bias)
        pooled = tf.nn.max_pool2d(hidden, 2, 2, "VALID")
        logits = tf.reshape(pooled, [4, -1]) @ dense
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    return [loss, tape.gradient(loss, [kernel, bias, dense])]


@program()
def moments_and_batch_normalization(tf, np):
    x = images(np, 3, 2, 2)

    def normal(x, scale, offset):
        mean, variance = tf.nn.moments(x, [0, 1])
        return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3)

    return [
        tf.nn.moments(x, [0]),
        tf.nn.moments(x, [0, 1], keepdims=True),
        tf.nn.batch_normalization(x, tf.ones([2]), tf.constant([2.0, 3.0]), None, None, 1e-3),
        derivatives(tf, normal, x, [1.0, 2.0], [0.5, -0.5]),
    ]


@program()
def dropout(tf, np):
    x = tf.Variable(tf.ones([1000]))
    with tf.GradientTape() as tape:
        y = tf.nn.dropout(x, 0.25)
    slopes = tape.gradient(y, x)
    kept = y.numpy() != 0
    return [
        bool(0.7 < kept.mean() < 0.8),
        sorted(set(np.round(y.numpy(), 4).tolist())),
        bool((slopes.numpy() == y.numpy()).all()),
        tf.nn.dropout(tf.constant([1.0, 2.0]), 0.0),
        raises(lambda: tf.nn.dropout(x, 1.0), containing="in the range [0, 1). Received: rate=1.0"),
        raises(lambda: tf.nn.dropout(tf.constant([1]), 0.5), containing="must be a floating point tensor"),
    ]


@program()
def jacobians_through_a_convolution(tf, np):
    x, kernel = tf.Variable(images(np, 2, 4, 4, 1)), tf.Variable(images(np, 2, 2, 1, 2))
    with tf.GradientTape(persistent=True) as tape:
        hidden = tf.nn.max_pool2d(tf.nn.conv2d(x, kernel, 1, "SAME"), 2, 2, "VALID")
        y = tf.reshape(tf.nn.avg_pool2d(hidden, 2, 1, "VALID"), [2, -1]) ** 2
    return [tape.jacobian(y, kernel), tape.jacobian(y, x), tape.batch_jacobian(y, x)]


@program()
def tangents_through_a_convolution(tf, np):
    x, kernel = tf.constant(images(np, 1, 4, 4, 1)), tf.Variable(images(np, 2, 2, 1, 2))
    along = tf.cos(kernel)
    with tf.autodiff.ForwardAccumulator(kernel, along) as accumulator:
        with tf.GradientTape() as tape:
            hidden = tf.nn.conv2d(x, kernel, 1, "SAME") ** 2
            pooled = [tf.nn.max_pool2d(hidden, 2, 2, "VALID"), tf.nn.avg_pool2d(hidden, 2, 2, "VALID")]
            y = tf.reduce_sum(pooled[0] * pooled[1])
        slopes = tape.gradient(y, kernel)
    return [accumulator.jvp(pooled), accumulator.jvp(y), slopes, accumulator.jvp(slopes)]
