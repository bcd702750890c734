"""Forms of arguments that TensorFlow takes: by position, by keyword, of more axes, broadcast; results and gradients."""

from conformance.probes import derivatives, raises
from conformance.program import program


def waves(np, *shape):
    """Numbers that differ, between -1 and 1."""
    return np.cos(1.7 * np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)


# ------------------------------------------------------------------------------------------------- order of arguments
@program()
def a_policy_is_the_argument_before_the_name(tf, np):
    x = tf.constant([1.0, 2.0, 3.0])
    changes = [
        tf.tensor_scatter_nd_add,
        tf.tensor_scatter_nd_sub,
        tf.tensor_scatter_nd_max,
        tf.tensor_scatter_nd_min,
    ]
    return [
        tf.scatter_nd([[4], [1]], [1.0, 2.0], [4], "IGNORE"),
        tf.scatter_nd([[1]], [1.0], [4], "", "named"),
        [change(x, [[5], [1]], [1.0, 7.0], "IGNORE") for change in changes],
        [change(x, [[0]], [9.0], "ERROR", "named") for change in changes],
        raises(lambda: tf.scatter_nd([[4]], [1.0], [4], "ERROR")),
    ]


@program()
def options_of_a_function_by_position(tf, np):
    def cube(x):
        if x > 0.0:
            return x**3
        return -x

    traced = tf.function(cube, None, True, False, True)
    plain = tf.function(lambda x: x**2, [tf.TensorSpec([], tf.float32)], False)
    decorated = tf.function(None, None, True)(cube)
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        total = traced(x) + plain(x) + decorated(-x)
    return [
        total,
        tape.gradient(total, x),
        raises(lambda: tf.function(cube, nothing=True)),
    ]


@program()
def the_message_of_none_equal_comes_after_the_count(tf, np):
    return [
        raises(lambda: tf.debugging.assert_none_equal([1, 2], [1, 3], 1, "they differ", "named")),
        raises(lambda: tf.debugging.assert_none_equal([1, 2], [1, 3], message="they differ", summarize=1)),
        tf.debugging.assert_none_equal([1, 2], [2, 3], 3, "they differ"),
    ]


@program()
def names_of_arguments(tf, np):
    import os
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        checkpoint = tf.train.Checkpoint(x=tf.Variable(1.5))
        before = tf.train.latest_checkpoint(checkpoint_dir=folder, latest_filename=None)
        checkpoint.save(os.path.join(folder, "saved"))
        latest = os.path.basename(tf.train.latest_checkpoint(checkpoint_dir=folder))
        state = tf.train.get_checkpoint_state(checkpoint_dir=folder, latest_filename="checkpoint")
        paths = [os.path.basename(path) for path in state.all_model_checkpoint_paths]
    spec = tf.TensorSpec([None, 2], tf.float32)
    return [
        before,
        latest,
        paths,
        [tf.nest.is_nested(seq=seq) for seq in ([1], (), {"a": 1}, 1, "text", tf.constant([1]))],
        [spec.is_compatible_with(spec_or_tensor=tf.ones(shape)) for shape in ([3, 2], [2, 3])],
    ]


# ------------------------------------------------------------------------------------------------------------ windows
@program(rtol=1e-5)
def pooling_with_dilations(tf, np):
    lines, images = waves(np, 1, 6, 2), waves(np, 2, 4, 5, 1)
    return [
        [
            derivatives(tf, lambda x, kind=kind: tf.nn.pool(x, [2], kind, dilations=[2]) ** 2, lines)
            for kind in ("MAX", "AVG")
        ],
        [tf.nn.pool(images, [2, 3], kind, dilations=[2, 1]) for kind in ("MAX", "AVG")],
        tf.nn.pool(images, [2, 2], "MAX", [1, 1], "VALID", "NHWC", [1, 3]),
        tf.nn.pool(lines, [2], "AVG", padding="SAME", dilations=[1]),
        [
            raises(lambda options=options: tf.nn.pool(lines, [2], "MAX", **options))
            for options in (
                {"dilations": [2], "padding": "SAME"},
                {"dilations": [2], "strides": [2]},
                {"dilations": [0]},
                {"dilations": [2, 2]},
                {"dilations": [1, 2, 1]},
            )
        ],
    ]


@program(rtol=1e-5)
def convolution_of_several_batch_axes(tf, np):
    lines, filters = waves(np, 2, 3, 5, 2), waves(np, 3, 2, 4)
    volumes, cubes = waves(np, 2, 1, 3, 2, 3, 1), waves(np, 2, 2, 2, 1, 2)

    def gradients(call, *values):
        variables = [tf.Variable(value) for value in values]
        with tf.GradientTape() as tape:
            y = call(*variables)
        return y, tape.gradient(y**2, variables)

    return [
        gradients(lambda x, w: tf.nn.conv1d(x, w, 1, "SAME"), lines, filters),
        gradients(lambda x, w: tf.nn.conv1d(x, w, 2, "VALID"), waves(np, 2, 1, 2, 5, 2), filters),
        gradients(lambda x, w: tf.nn.conv3d(x, w, [1, 1, 1, 1, 1], "VALID"), volumes, cubes),
        tf.nn.conv1d(lines, filters, 1, "VALID", dilations=2),
        tf.nn.convolution(lines, filters),
        tf.nn.convolution(volumes, cubes, padding="SAME"),
        tf.nn.conv1d(tf.zeros([2, 0, 5, 2]), filters, 1, "SAME"),
    ]


@program()
def the_largest_of_channels(tf, np):
    images, deep = waves(np, 1, 3, 2, 4), [1, 1, 1, 2]
    return [
        tf.nn.max_pool2d(images, deep, deep, "SAME"),
        tf.nn.max_pool(images, deep, deep, "VALID"),
        tf.nn.max_pool2d(images, [1, 1, 1, 4], [1, 2, 2, 4], "SAME"),
        [
            raises(lambda call=call: call())
            for call in (
                lambda: tf.nn.max_pool2d(images, [1, 1, 1, 4], deep, "VALID"),
                lambda: tf.nn.max_pool2d(images[..., :3], deep, deep, "VALID"),
                lambda: tf.nn.max_pool2d(images, [1, 2, 2, 2], deep, "VALID"),
                lambda: tf.nn.max_pool2d(images, [2, 1, 1, 1], [1, 1, 1, 1], "VALID"),
            )
        ],
    ]
