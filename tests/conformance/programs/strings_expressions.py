"""`tf.strings.regex_replace` and `regex_full_match`: what RE2's expressions match, and which it refuses."""

from conformance.probes import raises
from conformance.program import program

TEXTS = [
    "aé1_ \v\n",
    "Hello, World! 42",
    "line1\nline2\n",
    "ΑΒγ ß Äö",
    "a.b*c[d]^e",
    "",
    "日本語 text",
    "foo123bar",
    "a\n",
]


def applied(tf, patterns):
    return {
        pattern: [
            [text.decode() for text in tf.strings.regex_replace(TEXTS, pattern, "<>").numpy()],
            [text.decode() for text in tf.strings.regex_replace(TEXTS, pattern, "<\\0>", replace_global=False).numpy()],
            tf.strings.regex_full_match(TEXTS, pattern),
        ]
        for pattern in patterns
    }


@program()
def classes_know_ascii(tf, np):
    return applied(tf, [r"\w", r"\W+", r"\d+", r"\D", r"\s", r"\S+", r"\b", r"[\w.]+", r"[\D]", r"[^\s]+", r"(?i)ä"])


@program()
def categories_of_unicode(tf, np):
    return applied(tf, [r"\pL", r"\p{L}+", r"\p{Lu}", r"\P{L}", r"\p{^L}", r"\pN", r"[\pL\d]", r"[^\pL]"])


@program()
def classes_by_name(tf, np):
    return applied(
        tf, ["[[:alpha:]]+", "[[:^alpha:]]", "[[:punct:]]", "[[:space:]]", "[[:upper:][:digit:]]", "[]d]", "[[]"]
    )


@program()
def ends_of_texts_and_lines(tf, np):
    return applied(tf, ["$", "^", r"\n$", r"\z", r"\A", "(?m)$", "(?m)^", "(?s).", ".", r"a\n"])


@program()
def nothing_and_repetition(tf, np):
    return applied(tf, ["l*", "(?:ab)?", "l+?", "o{2,}", "", r"\Qa.b\E", r"\Q.*", r"\x41", r"\x{42}", "(?P<name>o)+"])


@program()
def expressions_that_there_are_not(tf, np):
    patterns = ["(", "[", r"(a)\1", "(?=a)", "(?<=a)b", "(?P=n)", "*", r"\Z", r"\p{Foo}", "[[:foo:]]", "a**", "a++"]
    patterns += ["a{2}+", "(?x)a b", "x{1001}", "(?#c)a", "[b-a]"]
    return {
        pattern: raises(lambda text=pattern: tf.strings.regex_full_match(["a"], text).numpy()) for pattern in patterns
    }


@program()
def parts_to_the_end(tf, np):
    return [
        tf.strings.substr("hello", 1, -1),
        tf.strings.substr(["abc", "defg"], [-2, 1], [-1, 2]),
        tf.strings.substr("ünï", 1, -1, unit="UTF8_CHAR").numpy().decode(),
        [tf.strings.to_number(["4000000000", "7"], dtype) for dtype in (tf.uint32, tf.uint64)],
        raises(lambda: tf.ones([2], tf.string)),
    ]


@program()
def strings_chosen_by_numbers_of_a_function(tf, np):
    words = tf.constant(["zero", "one", "two"])

    @tf.function
    def chosen(places, truths):
        return tf.gather(words, places), tf.where(truths, "yes", "no"), tf.one_hot(places, 3, "x", "-")

    return [list(chosen(tf.constant([2, 0]), tf.constant([True, False]))) for _ in range(2)]
