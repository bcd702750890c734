"""Strings as numbers and in rows: hash buckets as features, fingerprints, n-grams, strings joined by ids."""

from conformance.probes import gradients, raises
from conformance.program import program

WORDS = ["", "a", "bc", "def", "ghij", "klmnopq", "rstuvwxy", "a longer word", "seventeen letters", "ä€"]


def texts():
    return [*WORDS, "x" * 32, "y" * 33, "0123456789" * 5, "z" * 64, "z" * 65, "teletape " * 15, "q" * 128, "long " * 60]


@program()
def buckets_of_words(tf, np):
    s, many = tf.strings, 2**62 + 12345
    return {
        "plain": s.to_hash_bucket(texts(), many),
        "fast": s.to_hash_bucket_fast(texts(), many),
        "strong": [s.to_hash_bucket_strong(texts(), many, key) for key in ([0, 0], [7, -5], (2**40, 3))],
        "shapes": [
            s.to_hash_bucket_fast("a", 5),
            s.to_hash_bucket_fast([["a"], ["b"]], 3),
            s.to_hash_bucket_fast(["a"], 1),
        ],
        "bytes": s.to_hash_bucket_fast(tf.constant([b"\xff\x00\x80", bytes(range(200))]), many),
        "refused": [
            raises(lambda: s.to_hash_bucket(["a"], 0), containing="must be at least minimum 1"),
            raises(lambda: s.to_hash_bucket_strong(["a"], 5, [1]), containing="Key must have 2 elements"),
            raises(lambda: s.to_hash_bucket_fast([1], 5)),
        ],
    }


@program()
def hashed_features(tf, np):
    rows = tf.constant([["red", "small"], ["blue", "large"], ["red", "large"]])
    crossed = tf.strings.join([rows[:, 0], rows[:, 1]], separator="_x_")

    def score(table):
        single = tf.reduce_sum(tf.gather(table, tf.strings.to_hash_bucket_fast(rows, 6)), 1)
        return tf.tanh(single + tf.gather(table, tf.strings.to_hash_bucket_strong(crossed, 6, [1, 2])))

    return gradients(tf, lambda table: score(table * 1.0), np.sin(np.arange(12.0)).astype(np.float32).reshape(6, 2))


@program()
def fingerprints(tf, np):
    return {
        "words": tf.fingerprint(texts()),
        "rows of words": tf.fingerprint([["a", "b"], ["c", ""]]),
        "numbers": [tf.fingerprint([1, 2]), tf.fingerprint([[1.5, 2.5], [3.0, 4.0]]), tf.fingerprint([True, False])],
        "refused": [raises(lambda: tf.fingerprint("a")), raises(lambda: tf.fingerprint(["a"], "md5"))],
    }


@program()
def neighbours_of_words(tf, np):
    ngrams, words = tf.strings.ngrams, ["a", "b", "c", "d"]
    return {
        "two": ngrams(words, 2),
        "several": ngrams(words, [2, 3], separator="-"),
        "padded": [ngrams(words[:2], 3, pad_values=("<", ">")), ngrams(words[:2], 3, pad_values="X", padding_width=1)],
        "short": [ngrams(words[:2], 3), ngrams(words[:2], (3, 4), preserve_short_sequences=True)],
        "both": ngrams(words[:2], (1, 4), pad_values=("<", ">"), padding_width=2, preserve_short_sequences=True),
        "rows": [ngrams([words[:2], words[2:]], 2), ngrams([[words[:2], words[2:]]], [1, 2])],
        "empty": ngrams(tf.constant([], tf.string), 2, pad_values="X"),
        "refused": [
            raises(lambda: ngrams("a", 2)),
            raises(lambda: ngrams(words, 0)),
            raises(lambda: ngrams(words, 2, padding_width=1)),
            raises(lambda: ngrams(words, 2, pad_values="x", padding_width=-1)),
            raises(lambda: ngrams(words, 2, pad_values=1)),
        ],
    }


@program()
def strings_joined_by_ids(tf, np):
    join, rows = tf.strings.unsorted_segment_join, [["a", "b"], ["c", "d"]]
    return {
        "vector": join(["a", "b", "c"], [1, 0, 1], 3),
        "separated": join(["a", "b", "c"], tf.constant([2, 2, 2], tf.int64), 3, ":"),
        "rows": join(rows, [1, 1], 2, separator="-"),
        "matrix": join(rows, [[1, 0], [0, 1]], 2, "-"),
        "none": join(tf.constant([], tf.string), tf.constant([], tf.int32), 2),
        "refused": [
            raises(lambda: join(["a"], [-1], 3)),
            raises(lambda: join(["a"], [3], 3)),
            raises(lambda: join(["a", "b"], [1], 3)),
            raises(lambda: join(["a"], [0], -1)),
            raises(lambda: join("a", 0, 2)),
        ],
    }


@program()
def texts_of_python(tf, np):
    compat = tf.compat
    return [
        [compat.as_text(b"\xc3\xa4"), compat.as_text("ä"), compat.as_str(b"a"), compat.as_str_any(5)],
        compat.as_str_any(b"b"),
        [compat.as_bytes("ä").hex(), compat.as_bytes(b"\xff").hex(), compat.as_bytes("ä", "latin-1").hex()],
        [raises(lambda: compat.as_text(1)), raises(lambda: compat.as_bytes(1))],
    ]
