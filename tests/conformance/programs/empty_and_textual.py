"""Empty lists, strings and other inputs at the edge of what maths and array functions take."""

from conformance.probes import message, raises
from conformance.program import program


@program()
def empty_lists_are_whole_numbers_where_only_those_fit(tf, np):
    return [
        tf.one_hot([], 3),
        tf.one_hot([], 2, on_value=5, off_value=1),
        tf.dynamic_partition([], [], 2),
        tf.math.invert_permutation([]),
        tf.math.unsorted_segment_sum(np.zeros((0, 2), np.float32), np.zeros(0, np.int32), 2),
        tf.repeat([], []),
        tf.gather_nd([[1.0, 2.0]], np.zeros((0, 2), np.int32)),
        tf.sequence_mask([]),
    ]


@program()
def norms_of_no_tensors_are_zero(tf, np):
    return [
        tf.linalg.global_norm([]),
        tf.linalg.global_norm([None]),
        tf.clip_by_global_norm([], 1.0),
        tf.clip_by_global_norm([None], 1.0),
    ]


@program()
def strings_are_counted_that_are_not_empty(tf, np):
    texts = [["", "a"], ["b", ""]]
    return [
        tf.math.count_nonzero(texts),
        tf.math.count_nonzero(texts, axis=0, dtype=tf.int32),
        tf.math.zero_fraction(texts),
    ]


@program()
def variances_of_whole_numbers_are_refused(tf, np):
    functions = (tf.math.reduce_variance, tf.math.reduce_std)
    values = ([1, 2], tf.constant([1, 2], tf.uint8))
    return [message(lambda f=f, v=v: f(v)) for f in functions for v in values]


@program()
def inverted_permutations_of_arrays_are_int32(tf, np):
    order = np.argsort([3.0, 1.0, 2.0])
    return [tf.math.invert_permutation(order), tf.math.invert_permutation(tf.constant(order))]


@program()
def ids_of_segments_may_have_16_bits(tf, np):
    ids = tf.constant([0, 1, 0], tf.int16)
    x = tf.Variable([1.0, 2.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        results = [
            tf.math.unsorted_segment_sum(x, ids, 2),
            tf.math.unsorted_segment_mean(x, ids, 2),
            tf.math.unsorted_segment_sqrt_n(x, ids, 2),
        ]
    return [results, [tape.gradient(result, x) for result in results]]


@program()
def the_values_of_one_hot_have_no_gradient(tf, np):
    on, off = tf.Variable(2.0), tf.Variable(0.5)
    with tf.GradientTape() as tape:
        y = tf.one_hot([0, 1], 3, on_value=on, off_value=off) * 3.0
    return [y, tape.gradient(y, [on, off])]


@program()
def saturated_casts(tf, np):
    return [
        tf.saturate_cast(tf.constant([300 + 1j, -5.0]), tf.uint8),
        tf.saturate_cast(tf.constant([1e300 - 1e300j], tf.complex128), tf.complex64),
        tf.saturate_cast([1, 2], tf.complex64),
        message(lambda: tf.saturate_cast([True], tf.int8)),
        message(lambda: tf.saturate_cast(["1"], tf.int8)),
    ]


@program()
def masks_of_lengths_with_fractions(tf, np):
    return [
        tf.sequence_mask([1.5, 0.2]),
        tf.sequence_mask([0.5, 2.0]),
        tf.sequence_mask([1.5], 3),
        raises(lambda: tf.sequence_mask(None)),
    ]


@program()
def indices_may_be_tensors_in_lists(tf, np):
    @tf.function
    def moved(i):
        return tf.tensor_scatter_nd_update([1.0, 2.0, 3.0], [[i]], [9.0]) + tf.one_hot(i, 3)

    return [moved(tf.constant(1)), tf.gather([5, 6], [tf.constant(1)]), tf.one_hot([[]], 2)]
