"""Counts and masks: elements that are not zero, bins, confusion matrices, lengths."""

from conformance.probes import raises
from conformance.program import program


@program()
def not_zero(tf, np):
    x = tf.constant([[0.0, 1.0, 2.0], [0.0, 0.0, -1.0]])
    return [
        tf.math.count_nonzero(x),
        tf.math.count_nonzero(x, axis=0, keepdims=True, dtype=tf.int32),
        tf.math.count_nonzero([True, False, True]),
        tf.math.count_nonzero([0, 3], dtype=tf.float32),
    ]


@program()
def bins(tf, np):
    return [
        tf.math.bincount([1, 1, 3]),
        tf.math.bincount([1, 1, 3], minlength=6),
        tf.math.bincount([1, 1, 3, 5], maxlength=4),
        tf.math.bincount([1, 1, 3], minlength=2, maxlength=2),
        tf.math.bincount([1, 1, 3], weights=[0.5, 1.0, 2.0]),
        tf.math.bincount([[1, 1], [3, 0]]),
        tf.math.bincount([[1, 1], [3, 0]], axis=-1),
        tf.math.bincount([[1, 1], [3, 0]], axis=-1, weights=[[0.5, 1.0], [2.0, 3.0]]),
        tf.math.bincount([[1, 1], [3, 0]], axis=-1, binary_output=True),
        tf.math.bincount(tf.constant([1, 2], tf.int64), dtype=tf.float32),
        tf.math.bincount(tf.constant([], tf.int32)),
        raises(lambda: tf.math.bincount([-1, 2]).numpy()),
    ]


@program()
def confusion(tf, np):
    return [
        tf.math.confusion_matrix([1, 2, 4], [2, 2, 4]),
        tf.math.confusion_matrix([0, 1, 1], [0, 0, 1], num_classes=3, dtype=tf.float32),
        tf.math.confusion_matrix([0, 1, 1], [0, 0, 1], weights=[1.0, 2.0, 0.5], dtype=tf.float32),
        tf.math.confusion_matrix([[0], [1]], [0, 0]),
        raises(lambda: tf.math.confusion_matrix([5], [0], num_classes=2).numpy()),
    ]


@program()
def masks(tf, np):
    return [
        tf.sequence_mask([1, 3, 0]),
        tf.sequence_mask([1, 3, 0], 2),
        tf.sequence_mask([[1, 3], [2, 0]], maxlen=tf.constant(4), dtype=tf.float32),
        tf.sequence_mask(2, 3),
        tf.sequence_mask(tf.constant([2, 0], tf.int64), dtype=tf.int32),
    ]
