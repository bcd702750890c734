"""Convolution and pooling of lines and volumes, transposes, depthwise and dilated ones: values and gradients."""

from conformance.probes import derivatives, raises
from conformance.program import program


def waves(np, *shape):
    return np.sin(np.arange(np.prod(shape)) * 0.7 + 0.2).astype(np.float32).reshape(shape)


@program()
def lines(tf, np):
    x, f = waves(np, 2, 7, 2), waves(np, 3, 2, 3)
    return [
        derivatives(tf, lambda x, f: tf.nn.conv1d(x, f, 1, "SAME") ** 2, x, f),
        derivatives(tf, lambda x, f: tf.nn.conv1d(x, f, stride=2, padding="VALID"), x, f),
        tf.nn.conv1d(x, f, [1, 2, 1], "SAME", data_format="NWC"),
        tf.nn.conv1d(x, f, 1, "VALID", dilations=2),
    ]


@program()
def volumes(tf, np):
    x, f = waves(np, 1, 4, 3, 5, 2), waves(np, 2, 3, 2, 2, 3)
    return [
        derivatives(tf, lambda x, f: tf.nn.conv3d(x, f, [1, 1, 1, 1, 1], "SAME") ** 2, x, f),
        derivatives(tf, lambda x, f: tf.nn.conv3d(x, f, [1, 2, 1, 2, 1], "VALID"), x, f),
        derivatives(tf, lambda x, f: tf.nn.conv3d(x, f, [1, 2, 2, 1, 1], "SAME"), x, f),
        tf.nn.convolution(x, f, 1, "SAME", data_format="NDHWC"),
    ]


@program()
def any_number_of_axes(tf, np):
    line, image, volume = waves(np, 1, 6, 2), waves(np, 1, 5, 4, 2), waves(np, 1, 3, 3, 3, 1)
    return [
        tf.nn.convolution(line, waves(np, 2, 2, 3)),
        tf.nn.convolution(line, waves(np, 2, 2, 3), 2, "SAME", data_format="NWC"),
        tf.nn.convolution(line, waves(np, 2, 2, 3), padding="SAME", dilations=2),
        tf.nn.convolution(image, waves(np, 2, 2, 2, 1), strides=[1, 2], padding="SAME", data_format="NHWC"),
        tf.nn.convolution(image, waves(np, 2, 2, 2, 1), padding="VALID", dilations=[2, 1]),
        tf.nn.convolution(image, waves(np, 2, 2, 1, 4), strides=1, padding="SAME"),
        tf.nn.convolution(volume, waves(np, 2, 2, 2, 1, 2)),
        tf.nn.atrous_conv2d(image, waves(np, 2, 2, 2, 1), 2, "SAME"),
    ]


@program()
def transposes(tf, np):
    line, volume = waves(np, 1, 3, 3), waves(np, 1, 2, 2, 3, 2)
    return [
        derivatives(
            tf,
            lambda x, f: tf.nn.conv1d_transpose(x, f, [1, 6, 2], 2) ** 2,
            line,
            waves(np, 3, 2, 3),
        ),
        tf.nn.conv1d_transpose(line, waves(np, 3, 2, 3), [1, 7, 2], strides=2, padding="VALID"),
        derivatives(
            tf,
            lambda x, f: tf.nn.conv3d_transpose(x, f, [1, 4, 4, 6, 1], 2) ** 2,
            volume,
            waves(np, 3, 2, 2, 1, 2),
        ),
        tf.nn.conv3d_transpose(volume, waves(np, 2, 2, 2, 1, 2), [1, 3, 3, 4, 1], strides=1, padding="VALID"),
        tf.nn.conv_transpose(line, waves(np, 3, 2, 3), [1, 6, 2], 2),
        tf.nn.conv_transpose(waves(np, 1, 2, 3, 2), waves(np, 2, 3, 1, 2), tf.constant([1, 4, 6, 1]), [2, 2]),
        tf.nn.conv_transpose(volume, waves(np, 3, 2, 2, 1, 2), [1, 4, 4, 6, 1], strides=[2, 2, 2], padding="SAME"),
    ]


@program()
def depthwise_and_separable(tf, np):
    x, f = waves(np, 2, 5, 4, 3), waves(np, 2, 3, 3, 2)
    point = waves(np, 1, 1, 6, 2)
    return [
        derivatives(tf, lambda x, f: tf.nn.depthwise_conv2d(x, f, [1, 1, 1, 1], "SAME") ** 2, x, f),
        derivatives(tf, lambda x, f: tf.nn.depthwise_conv2d(x, f, [1, 2, 2, 1], "VALID"), x, f),
        tf.nn.depthwise_conv2d(x, f, [1, 1, 1, 1], "SAME", dilations=[2, 1]),
        tf.nn.depthwise_conv2d(x, f[..., :1], [1, 1, 1, 1], "SAME", data_format="NHWC"),
        derivatives(tf, lambda x, f, p: tf.nn.separable_conv2d(x, f, p, [1, 2, 2, 1], "SAME") ** 2, x, f, point),
        raises(lambda: tf.nn.depthwise_conv2d(x, waves(np, 2, 2, 4, 1), [1, 1, 1, 1], "SAME")),
    ]


@program()
def pooling_of_lines_and_volumes(tf, np):
    line, volume = waves(np, 2, 7, 2), waves(np, 1, 4, 5, 3, 2)
    pools = {
        "max 1d": lambda: derivatives(tf, lambda x: tf.nn.max_pool1d(x, 2, 2, "VALID") ** 2, line),
        "max 1d same": lambda: derivatives(tf, lambda x: tf.nn.max_pool1d(x, 3, 2, "SAME") ** 2, line),
        "avg 1d": lambda: derivatives(tf, lambda x: tf.nn.avg_pool1d(x, 3, 2, "SAME") ** 2, line),
        "max 3d": lambda: derivatives(tf, lambda x: tf.nn.max_pool3d(x, 2, 2, "SAME") ** 2, volume),
        "max 3d long": lambda: tf.nn.max_pool3d(volume, [1, 3, 2, 1, 1], [1, 1, 2, 1, 1], "VALID"),
        "avg 3d": lambda: derivatives(tf, lambda x: tf.nn.avg_pool3d(x, [3, 2, 2], [2, 1, 1], "SAME") ** 2, volume),
        "by rank": lambda: [tf.nn.max_pool(line, 2, 1, "SAME"), tf.nn.avg_pool(volume, 2, 2, "VALID")],
        "named": lambda: [tf.nn.max_pool(line, 2, 1, "SAME", "NWC"), tf.nn.max_pool(volume, 2, 2, "VALID", "NDHWC")],
    }
    return {name: pool() for name, pool in pools.items()}


@program()
def pooling_by_name(tf, np):
    line, image = waves(np, 2, 6, 2), waves(np, 1, 4, 4, 2)
    return [
        tf.nn.pool(line, (2,), "AVG", strides=(1,), padding="VALID", data_format="NWC"),
        tf.nn.pool(line, [3], "MAX", padding="SAME"),
        tf.nn.pool(image, (3, 1), "MAX", strides=(1, 1), padding="VALID", data_format="NHWC"),
        tf.nn.pool(image, (2, 2), "AVG", strides=(2, 2), padding="SAME"),
        raises(lambda: tf.nn.pool(image, (2, 2), "MEAN")),
    ]


@program()
def refused(tf, np):
    line = waves(np, 1, 6, 2)
    return [
        raises(lambda: tf.nn.convolution(line, waves(np, 2, 3, 3))),
        raises(lambda: tf.nn.conv1d(line, waves(np, 2, 2, 3), 1, "FULL")),
        raises(lambda: tf.nn.max_pool(waves(np, 2, 3), 2, 2, "SAME")),
    ]


@program()
def in_a_function(tf, np):
    kernel = tf.Variable(waves(np, 3, 2, 4))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = tf.reduce_mean(tf.nn.max_pool1d(tf.nn.relu(tf.nn.conv1d(x, kernel, 1, "SAME")), 2, 2, "VALID"))
        return y, tape.gradient(y, kernel)

    return [step(waves(np, 2, 6, 2)), step(waves(np, 2, 6, 2) + 1.0)]
