"""tf.lookup: words as rows of an embedding, numbers of words outside a vocabulary, tables that a program changes."""

import os
import tempfile

from conformance.probes import gradients, raises
from conformance.program import program


def entries(tf, keys, values):
    return tf.lookup.KeyValueTensorInitializer(keys, values)


def longs(tf, values):
    return tf.constant(values, tf.int64)


@program()
def embeddings_of_words(tf, np):
    table = tf.lookup.StaticHashTable(entries(tf, ["tape", "server", "word"], [1, 2, 3]), default_value=0)
    words = tf.constant([["tape", "unknown"], ["word", "tape"]])
    weights = np.sin(np.arange(8.0)).astype(np.float32).reshape(4, 2)

    def score(weights):
        return tf.reduce_sum(tf.gather(weights * 1.0, table.lookup(words)), 1) ** 2

    return [gradients(tf, score, weights), table.size(), table[words], table.default_value]


@program()
def static_tables(tf, np):
    table = tf.lookup.StaticHashTable
    whole = table(entries(tf, longs(tf, [5, -7]), ["five", "minus seven"]), "?")
    real = table(entries(tf, ["a", "b"], [1.5, 2.5]), -1.0)
    keys, values = real.export()
    return {
        "whole": whole.lookup(longs(tf, [[-7], [8]])),
        "real": [real.lookup(tf.constant("b")), real.lookup(tf.constant([], tf.string))],
        "all": dict(zip(keys.numpy().tolist(), values.numpy().tolist())),
        "dtypes": [whole.key_dtype, whole.value_dtype],
        "twice": table(entries(tf, ["a", "a"], [1, 1]), 0).size(),
        "refused": [
            raises(lambda: table(entries(tf, ["a", "a"], [1, 2]), 0), containing="different value for same key"),
            raises(lambda: table(entries(tf, ["a", "b"], [1]), 0)),
            raises(lambda: table(entries(tf, ["a"], [1]), "x")),
            raises(lambda: real.lookup(tf.constant([1]))),
        ],
    }


@program()
def numbers_of_words(tf, np):
    table = tf.lookup.StaticVocabularyTable
    words = table(entries(tf, ["the", "of", "and"], longs(tf, [0, 1, 2])), num_oov_buckets=4)
    whole = table(entries(tf, longs(tf, [5, 7]), longs(tf, [0, 1])), 3, lookup_key_dtype=tf.int64)
    hashed = table(None, 5, lookup_key_dtype=tf.string)
    texts = tf.constant([["of", "tape", "and"], ["server", "the", "gradient"]])
    return {
        "words": [words.lookup(texts), words.size(), words.key_dtype, words.value_dtype],
        "numbers": [whole.lookup(longs(tf, [5, 7, 8, 9, -10])), whole.size()],
        "hashed": [hashed.lookup(texts), hashed.size()],
        "refused": [
            raises(lambda: table(entries(tf, ["a"], longs(tf, [0])), 0)),
            raises(lambda: table(entries(tf, ["a"], [0]), 1)),
            raises(lambda: words.lookup(tf.constant([1]))),
        ],
    }


@program()
def tables_that_change(tf, np):
    counts = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, default_value=0)
    for word in ["a", "b", "a", "c", "a"]:
        key = tf.constant([word])
        counts.insert(key, counts.lookup(key) + 1)
    counts.remove(tf.constant(["c", "never"]))
    vectors = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, [0.0, 1.0])
    vectors.insert(longs(tf, [3, 3]), [[1.0, 2.0], [5.0, 6.0]])
    return {
        "counts": [counts.lookup(tf.constant([["a", "b"], ["c", "d"]])), counts.size()],
        "vectors": [vectors.lookup(longs(tf, [3, 4])), list(vectors.export())],
        "defaults": counts.lookup(tf.constant(["b", "z"]), dynamic_default_values=longs(tf, [7, 8])),
        "refused": [
            raises(lambda: vectors.insert(longs(tf, [1, 2]), [[1.0, 2.0]])),
            raises(lambda: vectors.lookup(tf.constant(["a"]))),
        ],
    }


@program()
def dense_tables(tf, np):
    table = tf.lookup.experimental.DenseHashTable(
        tf.int64, tf.int64, default_value=-1, empty_key=-9, deleted_key=-8, initial_num_buckets=4
    )
    table.insert(longs(tf, [1, 2]), longs(tf, [4, 5]))
    table.remove(longs(tf, [2]))
    return [
        table.lookup(longs(tf, [[1], [2]])),
        table.size(),
        raises(lambda: table.insert(longs(tf, [-9]), longs(tf, [4]))),
        raises(lambda: table.lookup(longs(tf, [-8]))),
    ]


@program()
def tables_of_files(tf, np):
    table, read, at = tf.lookup.StaticHashTable, tf.lookup.TextFileInitializer, tf.lookup.TextFileIndex
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "words.txt")
        tf.io.write_file(path, "one\t1\t0.5\ntwo\t2\t1.5\nthree\t3\t2.5\n")
        keys = tf.constant(["two", "four"])
        return {
            "columns": table(read(path, tf.string, 0, tf.float32, 2), -1.0).lookup(keys),
            "numbers": table(read(path, tf.string, 0, tf.int64, at.LINE_NUMBER), -1).lookup(keys),
            "lines": table(read(path, tf.int64, at.LINE_NUMBER, tf.string, at.WHOLE_LINE), "").lookup(
                longs(tf, [2, 9])
            ),
            "some": table(read(path, tf.string, 0, tf.int64, 1, vocab_size=2), -1).size(),
            "refused": [
                raises(lambda: table(read(path, tf.string, 0, tf.int64, 5), -1)),
                raises(lambda: table(read(path, tf.string, 0, tf.int32, at.LINE_NUMBER), -1)),
                raises(lambda: table(read(path, tf.string, -3, tf.int64, 1), -1)),
                raises(lambda: table(read(path + "x", tf.string, 0, tf.int64, 1), -1)),
                raises(lambda: table(read("", tf.string, 0, tf.int64, 1), -1)),
            ],
        }


@program()
def tables_in_functions_and_datasets(tf, np):
    table = tf.lookup.StaticHashTable(entries(tf, ["cat", "dog"], [0, 1]), -1)

    @tf.function
    def classes(words):
        return table.lookup(words) * 10

    dataset = tf.data.Dataset.from_tensor_slices(["dog", "bird", "cat"]).map(table.lookup)
    return [classes(tf.constant(["dog", "cow"])), [item.numpy().item() for item in dataset]]


@program()
def a_sparse_tensor_of_words(tf, np):
    table = tf.lookup.StaticVocabularyTable(entries(tf, ["x", "y"], longs(tf, [0, 1])), 2)
    words = tf.SparseTensor([[0, 1], [2, 0]], ["y", "other"], [3, 2])
    numbers = table.lookup(words)
    return [numbers.indices, numbers.values, numbers.dense_shape]
