"""Partitions, stitches, indices in batches, products of segments, extremes at indices, histograms, slices."""

from conformance.probes import derivatives, raises
from conformance.program import program

X = [[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]]


def gradients(tf, f, *inputs):
    inputs = [tf.constant(x) for x in inputs]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = f(*inputs)
    return [y, tape.gradient(y, inputs)]


@program()
def partitions(tf, np):
    return [
        tf.dynamic_partition([[1, 2], [3, 4], [5, 6]], [1, 0, 1], 3),
        tf.dynamic_partition([[1.0, 2.0], [3.0, 4.0]], [[0, 1], [1, 1]], 2),
        gradients(tf, lambda x: tf.dynamic_partition(x, [1, 0], 2)[1] * 3.0, X),
        raises(lambda: tf.dynamic_partition([1.0, 2.0], [0, 5], 2), "partitions[1] = 5 is not in [0, 2)"),
        raises(lambda: tf.dynamic_partition([1.0, 2.0], [0, -1], 2), "partitions[1] = -1"),
        raises(lambda: tf.dynamic_partition([1.0, 2.0], [0], 2), "data.shape must start with partitions.shape"),
    ]


@program()
def stitches(tf, np):
    x = tf.constant(X)
    parts = tf.dynamic_partition(x, [1, 0], 2)
    places = tf.dynamic_partition(tf.range(2), [1, 0], 2)
    return [
        tf.dynamic_stitch([[0, 2], [1, 2]], [[1.0, 2.0], [3.0, 4.0]]),
        tf.dynamic_stitch([[0], 1], [[[1.0, 2.0]], [3.0, 4.0]]),
        tf.dynamic_stitch(places, parts),
        gradients(tf, lambda a, b: tf.dynamic_stitch([[0, 2], [1]], [a, b]) ** 2, [1.0, 2.0], [3.0]),
        raises(lambda: tf.dynamic_stitch([[0], [-1]], [[1.0], [3.0]]), "out of range"),
    ]


@program()
def indices(tf, np):
    x = tf.constant(X)
    return [
        tf.gather([1.0, 2.0], tf.constant([1], tf.int16)),
        tf.gather_nd(x, tf.constant([[1, 2]], tf.int16)),
        tf.gather_nd(x, [[[2]], [[0]]], batch_dims=1),
        gradients(tf, lambda x: tf.gather_nd(x, [[[2], [2]], [[0], [1]]], batch_dims=1) ** 2, X),
        gradients(tf, lambda x: tf.reduce_sum(tf.gather(x, tf.constant([1, 1], tf.int16), axis=1) ** 2), X),
        raises(lambda: tf.gather([1.0], tf.constant([0], tf.uint8))),
        tf.scatter_nd([[0], [0], [2]], [True, True, False], [4]),
        tf.scatter_nd([[0], [0]], [False, True], [2]),
        tf.unravel_index([2, 5, 7], [3, 3]),
        tf.unravel_index(5, [3, 3]),
        raises(lambda: tf.unravel_index([9], [3, 3]).numpy()),
        tf.argmax([1.0, 3.0], output_type=tf.uint16),
        tf.argmax([1.0, 3.0], output_type=tf.int16),
        raises(lambda: tf.argmin([1.0, 3.0], output_type=tf.int16)),
        tf.boolean_mask(X, [True, False, True], axis=1),
        tf.meshgrid([1, 2], [3, 4, 5], indexing="ij"),
    ]


@program()
def jacobians_through_indices(tf, np):
    x = tf.constant(X)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.gather(x, [0, 2], axis=1, batch_dims=1)
        z = tf.gather_nd(x, [[[0]], [[2]]], batch_dims=1)
        w = tf.math.cumulative_logsumexp(x, axis=1)
    return [tape.jacobian(y, x), tape.jacobian(z, x), tape.jacobian(w, x)]


@program()
def extremes_at_indices(tf, np):
    places = [[0], [2], [2]]
    return [
        gradients(tf, lambda x, u: tf.tensor_scatter_nd_max(x, places, u), [1.0, 2.0, 3.0], [5.0, 3.0, 3.0]),
        gradients(tf, lambda x, u: tf.tensor_scatter_nd_min(x, places, u), [1.0, 2.0, 3.0], [5.0, 3.0, 2.0]),
        tf.tensor_scatter_nd_sub([1, 2, 3], [[1], [1]], [1, 4]),
        tf.tensor_scatter_nd_max([[1, 5], [7, 3]], [[1]], [[9, 1]]),
    ]


@program()
def products_of_segments(tf, np):
    data = [2.0, 0.0, 3.0, 4.0]
    return [
        gradients(tf, lambda x: tf.math.segment_prod(x, [0, 0, 0, 2]), data),
        gradients(tf, lambda x: tf.math.unsorted_segment_prod(x, [0, 0, 1, 3], 4), data),
        gradients(tf, lambda x: tf.math.unsorted_segment_prod(x, [0, -1, 0, 0], 2), data),
        tf.math.unsorted_segment_prod([[1, 2], [3, 4], [5, 6]], [0, 1, 0], 2),
        tf.math.segment_min(data, [0, 0, 1, 1]),
        tf.math.segment_mean(data, [0, 0, 1, 1]),
        tf.math.unsorted_segment_max(data, [1, 0, 1, 0], 2),
    ]


@program()
def running_logarithms_of_sums(tf, np):
    f = tf.math.cumulative_logsumexp
    return [
        derivatives(tf, lambda x: f(x, axis=1), X),
        derivatives(tf, lambda x: f(x, axis=-1, reverse=True), X),
        gradients(tf, lambda x: f(x, axis=1, exclusive=True), X),
        gradients(tf, lambda x: f(x, exclusive=True, reverse=True), X),
        f([1000.0, 1001.0, -1000.0]),
        raises(lambda: f(X, axis=2)),
    ]


@program()
def histograms(tf, np):
    values = [-1.0, 0.0, 1.5, 2.0, 5.0, 15.0]
    return [
        tf.histogram_fixed_width(values, [0.0, 5.0], nbins=5),
        tf.histogram_fixed_width_bins(values, [0.0, 5.0], nbins=5),
        tf.histogram_fixed_width(values, [0.0, 5.0], nbins=3, dtype=tf.int64),
        tf.histogram_fixed_width([1, 2, 3], [0, 5], nbins=2),
        raises(lambda: tf.histogram_fixed_width([1.0], [5.0, 5.0]).numpy()),
        raises(lambda: tf.histogram_fixed_width([1.0], [0.0, 5.0], nbins=0)),
    ]


@program()
def sequences_and_slices(tf, np):
    x = tf.constant([[1, 2, 3], [4, 5, 6]])
    return [
        tf.reverse_sequence(x, [2, 3], seq_axis=1),
        tf.reverse_sequence(x, [2, 1, 0], seq_axis=0, batch_axis=1),
        gradients(tf, lambda v: tf.reverse_sequence(v, [2, 3], seq_axis=1) * tf.constant([1.0, 2.0, 3.0]), X),
        raises(lambda: tf.reverse_sequence(x, [2, 4], seq_axis=1).numpy()),
        raises(lambda: tf.reverse_sequence(x, [2], seq_axis=1)),
        raises(lambda: tf.reverse_sequence(x, [2, 1], seq_axis=0)),
        tf.strided_slice(x, [0, 0], [2, 3], [1, 2], begin_mask=1, end_mask=2, shrink_axis_mask=1),
        tf.strided_slice(x, [1], [2]),
        tf.strided_slice(x, [0, 0, 1], [0, 0, 2], ellipsis_mask=1, new_axis_mask=2),
        tf.strided_slice(x, [-1, -1], [-3, -4], [-1, -1]),
        gradients(tf, lambda v: tf.strided_slice(v, [0, 0], [2, 3], [1, 2]) ** 2, X),
    ]


@program()
def diagonals_and_crosses(tf, np):
    return [
        derivatives(tf, lambda x: tf.reduce_sum(tf.linalg.tensor_diag(x) ** 2), X),
        derivatives(tf, tf.linalg.tensor_diag_part, [[1.0, 2.0], [3.0, 4.0]]),
        tf.linalg.tensor_diag_part(tf.reshape(tf.range(36), [2, 3, 2, 3])),
        raises(lambda: tf.linalg.tensor_diag_part(tf.zeros([2, 3]))),
        raises(lambda: tf.linalg.tensor_diag(1.0)),
        gradients(tf, tf.linalg.cross, [1.0, 2.0, 3.0], [0.5, 1.0, -1.0]),
        raises(lambda: tf.linalg.cross([[1.0, 2.0, 3.0]], [0.0, 1.0, 0.0])),
    ]


@program()
def norms_and_distances(tf, np):
    z = [3 + 4j, 1j]
    return [
        tf.math.reduce_euclidean_norm(tf.constant([3, 4, 1])),
        gradients(tf, tf.math.reduce_euclidean_norm, z),
        gradients(tf, tf.math.squared_difference, z, [1 + 1j, 2.0]),
        gradients(tf, tf.math.squared_difference, [1.0, 2.0], [0.5, 4.0]),
    ]
