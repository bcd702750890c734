"""Permutations of which one position is computed at a time."""

from conformance.probes import raises
from conformance.program import program


@program()
def positions(tf, np):
    shuffle = tf.random.experimental.index_shuffle
    index = tf.range(10)
    return [
        shuffle(index, [5, 9], 9),
        shuffle(tf.constant(3), [5, 9], 100000),
        tf.random_index_shuffle(tf.range(2, dtype=tf.int64), tf.constant([[1, 2, 3], [3, -4, 5]]), 10**12),
        shuffle(tf.constant([1, 2]), [1, 2], tf.constant([3, 70000])),
        shuffle(tf.constant(0), [1, 2], 0),
        sorted(shuffle(tf.range(300), [8, 1], 299).numpy().tolist()) == list(range(300)),
        tf.random_index_shuffle(index, [1, 2, 3], 9),
        tf.random_index_shuffle(index, [1, 2, 3], 9, rounds=8),
    ]


@program()
def in_a_function(tf, np):
    @tf.function
    def place(i):
        return tf.random.experimental.index_shuffle(i, [3, 4], 7)

    return [place(tf.constant(i)) for i in range(8)]


@program()
def arguments_that_do_not_fit(tf, np):
    return [raises(lambda: tf.random_index_shuffle(tf.constant(1), [1, 2], 5).numpy())]
