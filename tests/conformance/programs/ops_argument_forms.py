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


# ----------------------------------------------------------------------------------------------------- numbers, rows
@program(rtol=2e-5)
def polygamma_of_a_tensor_and_a_number(tf, np):
    orders = tf.constant([1.0, 2.0])
    return [
        tf.math.polygamma(orders, 2),
        tf.math.polygamma(orders, 2.5),
        tf.math.polygamma(orders, [3, 4]),
        tf.math.polygamma([1.0, 2.0], [1, 2]),
        tf.math.polygamma(1.0, 2),
        tf.math.polygamma(2.5, [1, 2]),
        tf.math.polygamma(2, tf.constant([1.0, 2.0])),
        tf.math.polygamma(tf.constant([1.0], tf.float64), 3),
        raises(lambda: tf.math.polygamma(orders, tf.constant(2))),
        raises(lambda: tf.math.polygamma(1, 2)),
        derivatives(tf, lambda x: tf.math.polygamma(orders, x) ** 2, [0.5, 1.5]),
    ]


@program()
def searching_rows_that_are_numbered_otherwise(tf, np):
    rows = tf.constant([[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]])
    return [
        tf.searchsorted([1.0, 3.0, 5.0], [[2.0, 4.0]]),
        tf.searchsorted([[1.0, 3.0, 5.0]], [2.0, 5.0], side="right"),
        tf.searchsorted(rows, [[[2.0, 9.0], [3.0, 4.0]]], out_type=tf.int64),
        tf.searchsorted(tf.reshape(tf.stack([rows, rows]), [2, 2, 3]), tf.ones([4, 1]) * 4.0, "right"),
        raises(lambda: tf.searchsorted(rows, [2.0, 4.0])),
        raises(lambda: tf.searchsorted([1.0, 3.0], [[2.0], [4.0]])),
        tf.function(lambda values: tf.searchsorted([1.0, 3.0], values))(tf.constant([[[0.0, 2.0, 4.0]]])),
    ]


@program()
def frames_of_any_dtype(tf, np):
    whole = tf.range(9)
    return [
        tf.signal.frame(whole, 4, 2),
        tf.signal.frame(whole, 4, 3, pad_end=True, pad_value=7),
        tf.signal.frame(tf.constant([1, 2, 3], tf.uint8), 2, 1),
        tf.signal.frame([True, False, True], 2, 1),
        tf.signal.frame([True, False, True], 2, 2, pad_end=True, pad_value=True),
        tf.signal.frame(["a", "b", "c"], 2, 1),
        tf.signal.frame(["a", "b", "c"], 2, 2, pad_end=True, pad_value="z"),
        tf.signal.frame(tf.reshape(whole, [3, 3]), 2, 1, axis=0),
        [tf.signal.frame(tf.ones([2, 9]), 0, 3, pad_end=pads) for pads in (False, True)],
        tf.signal.overlap_and_add([[1, 2], [3, 4]], 1),
        tf.signal.overlap_and_add(tf.constant([[100, 100], [100, 4]], tf.int8), 1),
        tf.signal.overlap_and_add(tf.ones([3, 0]), 2),
        raises(lambda: tf.signal.overlap_and_add([[True, False]], 1)),
    ]


@program()
def transforms_of_nothing(tf, np):
    def empty(*shape):
        return tf.zeros(shape, tf.complex64)

    return [
        tf.signal.fft(empty(0)),
        tf.signal.ifft(empty(2, 0)),
        tf.signal.fft(empty(0, 2)),
        tf.signal.fft2d(empty(0, 2)),
    ]


@program()
def parts_of_unequal_lengths(tf, np):
    def array(**options):
        return tf.TensorArray(tf.float32, size=2, clear_after_read=False, **options)

    x = tf.Variable(waves(np, 5, 2))
    with tf.GradientTape() as tape:
        parts = array().split(x, [2, 3])
        loss = tf.reduce_sum(parts.read(1) ** 2) * tf.reduce_sum(parts.read(0))
    gradient = tape.gradient(loss, x)

    @tf.function
    def longest(values):
        unequal = array().split(values, [1, 4])
        return unequal.read(1), unequal.concat()

    return [
        loss,
        gradient,
        array().split(x, [2, 3]).concat(),
        array(element_shape=[2, 2]).split(x, [2, 3]).read(1),
        array(infer_shape=False).split(x, [5, 0]).read(1),
        array().split(x, [2, 3]).write(0, [1.0]).read(0),
        tf.TensorArray(tf.float32, size=0, dynamic_size=True).split(x, [1, 2, 2]).read(2),
        longest(x),
        raises(lambda: array().split(x, [2, 3]).stack()),
        raises(lambda: array().split(x, [2, 2])),
        raises(lambda: array().split(x, [2, 2, 1])),
        raises(lambda: array().split(x, [5])),
    ]


# ------------------------------------------------------------------------------------------------------------- losses
@program(rtol=1e-5)
def labels_for_all_rows_of_logits(tf, np):
    logits, labels = waves(np, 2, 2, 3), tf.constant([0.2, 0.3, 0.5])
    loss = tf.nn.softmax_cross_entropy_with_logits
    features = tf.constant(logits[0])
    return [
        loss(labels, features),
        loss(labels, logits),
        loss([[0.2, 0.3, 0.5]], features),
        tf.function(loss)(labels, features),
        tf.raw_ops.SoftmaxCrossEntropyWithLogits(features=features, labels=[[0.2, 0.3, 0.5]]),
        raises(lambda: loss(tf.ones([2]), features)),
        raises(lambda: loss(labels, features, axis=0)),
        raises(lambda: loss(tf.ones([3, 1, 3]), logits)),
    ]


@program(rtol=1e-4)
def ctc_loss_of_sparse_labels(tf, np):
    logits = waves(np, 4, 2, 4)
    labels = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 2, 3], [2, 2])
    apart = tf.SparseTensor([[0, 0], [1, 1]], [1, 2], [2, 3])

    def loss(sparse, values, **options):
        return tf.nn.ctc_loss(sparse, values, None, [4, 3], **options)

    x = tf.Variable(logits)
    with tf.GradientTape() as tape:
        losses = loss(labels, x, blank_index=0)
    return [
        losses,
        tape.gradient(losses, x),
        loss(apart, logits, blank_index=0),
        loss(tf.SparseTensor(labels.indices, [1, 0, 3], [2, 2]), logits, blank_index=2),
        loss(tf.SparseTensor(labels.indices, [1, 2, 0], [2, 2]), logits, blank_index=-1),
        loss(labels, logits.transpose(1, 0, 2), logits_time_major=False, blank_index=0),
        tf.nn.ctc_loss(labels, logits, [2, 1], [4, 3], blank_index=0),
        raises(lambda: loss(labels, logits)),
        raises(lambda: tf.nn.ctc_loss([[1, 2], [3, 0]], logits, None, [4, 3], blank_index=0)),
    ]


# ----------------------------------------------------------------------------------------------------------- matrices
@program(rtol=4e-3, atol=4e-3)  # TensorFlow computes in float16 throughout
def factors_and_inverses_of_float16(tf, np):
    x = tf.constant([[4.0, 1.0], [2.0, 3.0]], tf.float16)
    inverse = tf.Variable(x)
    with tf.GradientTape() as tape:
        y = tf.linalg.inv(inverse)
    return [
        y,
        tape.gradient(y, inverse),
        tf.linalg.inv(x, adjoint=True),
        tf.linalg.qr(x),
        tf.linalg.qr(tf.concat([x, x], 0), full_matrices=True),
        raises(lambda: tf.linalg.inv(tf.cast(x, tf.bfloat16))),
        raises(lambda: tf.linalg.qr(tf.cast(x, tf.bfloat16))),
    ]


# ---------------------------------------------------------------------------------------------------------- variables
@program()
def methods_of_counters_and_batches(tf, np):
    counter = tf.Variable(0)
    counts = [counter.count_up_to(3) for _ in range(3)]

    def updated(shape, indices, values):
        variable = tf.Variable(np.zeros(shape, np.float32))
        variable.batch_scatter_update(tf.IndexedSlices(tf.constant(values, tf.float32), tf.constant(indices)))
        return variable

    return [
        counts,
        raises(lambda: counter.count_up_to(3)),
        counter,
        tf.Variable(7, dtype=tf.int64).count_up_to(9),
        raises(lambda: tf.Variable(0.0).count_up_to(3)),
        raises(lambda: tf.Variable([0, 1]).count_up_to(3)),
        updated([2, 3], [[0, 1], [2, 0]], [[1, 2], [3, 4]]),
        updated([2, 3, 2], [[0, 1], [2, 0]], np.arange(8).reshape(2, 2, 2)),
        updated([3], [0, 2], [1, 2]),
        updated([2, 3], [[0, 1]], [[1, 2]]),
        raises(lambda: updated([2, 3], [[0, 5], [2, 0]], [[1, 2], [3, 4]])),
        raises(lambda: tf.Variable([1.0]).batch_scatter_update(3.0)),
        tf.SparseTensor([[0, 1]], [1.0], [2, 2]).consumers(),
    ]


@program()
def raw_comparisons_of_shapes_that_do_not_fit(tf, np):
    raw = tf.raw_ops
    return [
        [op(x=[1, 2], y=[1, 2, 3], incompatible_shape_error=False) for op in (raw.Equal, raw.NotEqual)],
        [op(x=[1, 2], y=[[1], [2]], incompatible_shape_error=False) for op in (raw.Equal, raw.NotEqual)],
        [raises(lambda op=op: op(x=[1, 2], y=[1, 2, 3])) for op in (raw.Equal, raw.NotEqual)],
    ]
