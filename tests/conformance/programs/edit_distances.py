"""`tf.edit_distance`: how many edits lead from sparse sequences to others."""

from conformance.probes import raises
from conformance.program import program


@program()
def numbers_of_edits(tf, np):
    guesses = tf.sparse.from_dense(np.array([[1, 2, 0, 0], [3, 0, 0, 0], [4, 5, 6, 7]]))
    truths = tf.sparse.from_dense(np.array([[1, 3, 2, 0], [3, 4, 0, 0], [7, 6, 5, 4]]))
    return [tf.edit_distance(guesses, truths), tf.edit_distance(guesses, truths, normalize=False)]


@program()
def a_batch_with_two_axes_and_empty_sequences(tf, np):
    guesses = tf.SparseTensor([[0, 0, 0], [1, 0, 0]], ["a", "b"], (2, 1, 1))
    truths = tf.SparseTensor([[0, 1, 0], [1, 0, 0], [1, 0, 1], [1, 1, 0]], ["a", "b", "c", "a"], (2, 2, 2))
    return [tf.edit_distance(guesses, truths), tf.edit_distance(hypothesis=guesses, truth=truths, normalize=False)]


@program()
def in_a_function(tf, np):
    pair = [tf.SparseTensor([[0, 0], [0, 1]], [1, 2], (1, 2)), tf.SparseTensor([[0, 1]], [2], (1, 2))]
    return tf.function(lambda guess, truth: tf.edit_distance(guess, truth) * 2.0)(*pair)


@program()
def what_has_no_distance_is_refused(tf, np):
    texts, numbers = tf.SparseTensor([[0, 0]], ["a"], (1, 1)), tf.SparseTensor([[0, 0]], [1], (1, 1))
    return [
        raises(lambda: tf.edit_distance([1], numbers), "Hypothesis must be a SparseTensor"),
        raises(lambda: tf.edit_distance(numbers, [1]), "Truth must be a SparseTensor"),
        raises(lambda: tf.edit_distance(texts, numbers)),
        raises(lambda: tf.edit_distance(numbers, tf.SparseTensor([[0, 0, 0]], [1], (1, 1, 1)))),
    ]
