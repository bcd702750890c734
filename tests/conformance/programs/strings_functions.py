"""tf.strings, and tensors as strings: serialize_tensor and parse_tensor."""

from conformance.probes import message, raises
from conformance.program import program


def _text(tensor):
    value = tensor.numpy().tolist() if tensor.shape.rank else tensor.numpy()
    return [tensor.dtype.name, tensor.shape.as_list(), str(value)]


@program()
def cases_lengths_and_parts(tf, np):
    s = tf.strings
    words = tf.constant(["ABCÉ", "  a b\t\n", "", "hello"])
    return [
        _text(s.lower(words)),
        _text(s.lower(words, encoding="utf-8")),
        _text(s.upper("abcé")),
        _text(s.upper("abcé", "utf-8")),
        _text(s.strip(words)),
        s.length(words),
        s.length(words, unit="UTF8_CHAR"),
        _text(s.substr(["hello", "ab"], 1, 3)),
        _text(s.substr(["hello", "abc"], [-3, 0], [2, 5])),
        _text(s.substr("hello", [0, 1, 2], [1, 2, 3])),
        _text(s.substr("héllo", 1, 2, unit="UTF8_CHAR")),
        message(lambda: s.substr(["hello", "ab"], 5, 3)),
        message(lambda: s.substr(["hello"], -7, 3)),
        raises(lambda: s.length(words, unit="X")),
        raises(lambda: s.lower(3)),
    ]


@program()
def regular_expressions(tf, np):
    s = tf.strings
    return [
        _text(s.regex_replace(["a1b22", "x"], "[0-9]+", r"<\0>")),
        _text(s.regex_replace(["a1b22"], "([a-z])([0-9])", r"\2\1", replace_global=False)),
        _text(s.regex_replace("a.b\\c", r"\.|\\", r"\\")),
        _text(s.regex_replace(["aé.b"], ".", "X")),
        _text(s.regex_replace(["a"], "a", r"\5")),
        s.regex_full_match(["abc", "abcd"], "a.c"),
        raises(lambda: s.regex_replace("a", "(?=x)", "y"), "Invalid pattern"),
        raises(lambda: s.regex_full_match("a", "(ab"), "Invalid pattern: (ab"),
        raises(lambda: s.regex_full_match("aa", r"(a)\1"), "Invalid pattern"),
    ]


@program()
def joined_and_split(tf, np):
    s, m = tf.strings, tf.constant([["a", "b"], ["c", "d"]])
    return [
        _text(s.join(["a", ["b", "c"]], separator="-")),
        _text(s.join([m, m])),
        _text(s.join(["a", "b"], " ")),
        message(lambda: s.join([["a", "b"], ["c", "d", "e"]])),
        message(lambda: s.join([[["a"], ["b"]], ["c", "d"]])),
        *[_text(s.reduce_join(m, axis=axis, separator="+")) for axis in (0, 1, -1, [0, 1], [1, 0], None)],
        _text(s.reduce_join(m, axis=[1, 0], keepdims=True)),
        raises(lambda: s.reduce_join(m, axis=2)),
        _text(s.split("a b  c")),
        _text(s.split("a,b,,c", sep=",")),
        _text(s.split("a,b,,c", ",", maxsplit=1)),
        _text(s.bytes_split("hé")),
    ]


@program()
def numbers_from_strings(tf, np):
    to_number = tf.strings.to_number
    refused = [("1.5", tf.int32), ("x", tf.float32), (str(2**40), tf.int32), ("1_000", tf.float32), ("", tf.float32)]
    return [
        to_number(["1.5", " 2 ", "-3e4", "nan", "inf", "0x10"]),
        to_number([["1", "-20"]], tf.int64),
        to_number("0.1", tf.float64),
        [message(lambda text=text, dtype=dtype: to_number(text, dtype)) for text, dtype in refused],
        raises(lambda: to_number("1", tf.uint8)),
    ]


@program()
def strings_from_numbers(tf, np):
    as_string, fractions, whole = tf.strings.as_string, [1.5, 1 / 3, 1e10, 1e-7, float("nan")], [1, -20, 300]
    return [
        _text(as_string(fractions)),
        _text(as_string(tf.constant(fractions, tf.float64))),
        _text(as_string(tf.constant([1.5, 3.0], tf.float16))),
        _text(as_string(fractions, precision=2)),
        _text(as_string(fractions, precision=2, scientific=True)),
        _text(as_string(fractions, shortest=True)),
        _text(as_string(fractions, precision=2, width=10, fill="0")),
        *[_text(as_string(whole, width=5, fill=fill)) for fill in ("", "0", " ", "-", "+")],
        _text(as_string(tf.constant(200, tf.uint8))),
        _text(as_string([True, False])),
        _text(as_string([1 + 2j])),
        _text(as_string("a")),
        raises(lambda: as_string(whole, precision=2)),
        raises(lambda: as_string(whole, scientific=True)),
        raises(lambda: as_string(fractions, scientific=True, shortest=True)),
        raises(lambda: as_string(fractions, fill="x")),
    ]


@program()
def formatted(tf, np):
    form = tf.strings.format
    return [
        _text(form("x {} y {}", [tf.constant([1, 2, 3]), tf.constant(1.5)])),
        _text(form("{}", tf.range(10))),
        _text(form("{}", tf.range(10), summarize=-1)),
        _text(form("%s", tf.constant([[1.5, 1e10], [1 / 3, 4]]), placeholder="%s")),
        _text(form("{}", tf.constant(["a", "b"]))),
        message(lambda: form("{} {}", tf.constant(1))),
    ]


@program()
def serialized_tensors(tf, np):
    values = [
        tf.constant([[1, 2], [3, 4]]),
        tf.constant(1.5, tf.float16),
        tf.constant([True]),
        tf.constant(1 + 2j),
        tf.constant([1.5], tf.bfloat16),
        tf.zeros([0, 300], tf.int64),
        tf.constant([["a", "bb"]]),
        tf.constant([7], tf.uint64),
    ]
    texts = [tf.io.serialize_tensor(value) for value in values]
    again = [tf.io.parse_tensor(text, value.dtype) for text, value in zip(texts, values, strict=True)]
    return [
        [_text(text) for text in texts],
        [bool(np.array_equal(a.numpy(), b.numpy())) for a, b in zip(values, again, strict=True)],
        [[tensor.dtype, tensor.shape] for tensor in again],
        message(lambda: tf.io.parse_tensor(texts[0], tf.float32)),
        raises(lambda: tf.io.parse_tensor(b"xx", tf.float32)),
    ]


@program()
def padded(tf, np):
    words = tf.constant(["a", "b"])
    return [
        _text(tf.pad(words, [[1, 2]])),
        _text(tf.pad(words[None], [[0, 1], [1, 0]], constant_values="z")),
        _text(tf.pad(words, [[1, 1]], "REFLECT")),
    ]


@program()
def inside_a_function(tf, np):
    @tf.function
    def clean(text):
        return tf.strings.join([tf.strings.lower(tf.strings.strip(text)), "!"])

    return [_text(clean(tf.constant([" A ", "b"]))), _text(clean(tf.constant([" C"])))]


@program()
def numbers_in_the_place_of_strings(tf, np):
    functions = [
        tf.strings.lower,
        tf.strings.length,
        tf.strings.to_number,
        tf.io.decode_base64,
        lambda value: tf.strings.regex_replace(value, "a", "b"),
        lambda value: tf.strings.to_hash_bucket_fast(value, 3),
    ]
    return [
        [raises(lambda: function(value)) for value in (tf.constant([1]), [1], tf.constant(1.5))]
        + [raises(lambda: tf.function(function)(tf.constant([1])))]
        for function in functions
    ]
