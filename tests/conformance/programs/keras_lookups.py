"""Keras's layers of words and categories: vocabularies given and adapted, buckets, embeddings that are trained."""

from conformance.program import program


@program()
def vocabularies(tf, np):
    layers, words = tf.keras.layers, tf.constant([["a", "z"], ["b", "a"]])
    vocabulary = ["a", "b", "c"]
    return {
        "numbers": layers.StringLookup(vocabulary=vocabulary)(words),
        "buckets": layers.StringLookup(vocabulary=vocabulary, num_oov_indices=3)(words),
        "none outside": layers.StringLookup(vocabulary=vocabulary, num_oov_indices=0)(words[1]),
        "masked": layers.StringLookup(vocabulary=vocabulary, mask_token="")(tf.constant(["", "c"])),
        "one hot": layers.StringLookup(vocabulary=vocabulary, output_mode="one_hot")(words[0]),
        "counts": layers.StringLookup(vocabulary=vocabulary, output_mode="count")(words),
        "back": layers.StringLookup(vocabulary=vocabulary, invert=True)(tf.constant([3, 0, 1])),
        "whole": layers.IntegerLookup(vocabulary=[5, -7], num_oov_indices=2)(tf.constant([-7, 5, 8, 9])),
        "hashes": layers.Hashing(7)(words),
        "salted": layers.Hashing(7, salt=[3, 4])(words),
    }


@program()
def adapted_vocabularies(tf, np):
    layer = tf.keras.layers.StringLookup(max_tokens=4)
    layer.adapt(tf.constant(["tape", "word", "tape", "server", "tape", "server"]))
    return [layer.get_vocabulary(), layer(tf.constant(["server", "word", "other"])), layer.vocabulary_size()]


@program()
def trained_embeddings(tf, np):
    lookup = tf.keras.layers.StringLookup(vocabulary=["up", "down"])
    embedding = tf.keras.layers.Embedding(3, 2)
    numbers = lookup(tf.constant([["up", "down"], ["sideways", "up"]]))
    embedding.build((None,))
    embedding.set_weights([np.arange(6.0, dtype=np.float32).reshape(3, 2)])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.sin(embedding(numbers)))
    gradient = tape.gradient(loss, embedding.trainable_variables[0])
    return [numbers, loss, tf.convert_to_tensor(gradient)]
