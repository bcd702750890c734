"""Tensors of strings: what rearranges, picks, joins and compares them."""

from conformance.probes import message
from conformance.program import program


def _text(tensor):
    value = tensor.numpy().tolist() if tensor.shape.rank else tensor.numpy()
    return [tensor.dtype.name, tensor.shape.as_list(), str(value)]


def _words(tf):
    return tf.constant(["a", "bb", "c"]), tf.constant([["a", "b"], ["c", "d"]])


@program()
def rearranged(tf, np):
    s, m = _words(tf)
    results = {
        "identity": tf.identity(s),
        "reshape": tf.reshape(m, [4]),
        "transpose": tf.transpose(m),
        "expand_dims": tf.expand_dims(s, 0),
        "squeeze": tf.squeeze(s[None]),
        "tile": tf.tile(s, [2]),
        "concat": tf.concat([s, s], 0),
        "stack": tf.stack([s, s]),
        "broadcast_to": tf.broadcast_to(s, [2, 3]),
        "fill": tf.fill([2], "q"),
        "zeros_like": tf.zeros_like(s),
        "zeros": tf.zeros([2], tf.string),
        "stop_gradient": tf.stop_gradient(s),
    }
    return {name: _text(result) for name, result in results.items()}


@program()
def picked(tf, np):
    s, m = _words(tf)
    results = {
        "index": s[0],
        "index of a matrix": m[1, 0],
        "slice": s[1:],
        "row": m[1],
        "gather": tf.gather(s, [2, 0]),
        "gather of one": tf.gather(s, 1),
        "gather with computed indices": tf.gather(s, tf.cast(2.0 * tf.ones([20]), tf.int32)),
        "gather_nd": tf.gather_nd(m, [[0, 1]]),
        "where": tf.where([True, False, True], s, "z"),
        "where with a computed condition": tf.where(tf.random.uniform([3]) < 2.0, s, "z"),
        "boolean_mask": tf.boolean_mask(s, [True, False, True]),
    }
    lists = {"split": tf.split(s, 3), "unstack": tf.unstack(m), "iteration": list(s)}
    return [
        {name: _text(result) for name, result in results.items()},
        {name: [_text(part) for part in parts] for name, parts in lists.items()},
    ]


@program()
def joined_and_compared(tf, np):
    s, m = _words(tf)
    results = {
        "+": s + s,
        "+ a word": s + "x",
        "a word +": "x" + s,
        "add": tf.add(s, s),
        "broadcast": m + tf.constant(["x", "y"]),
        "==": s == "a",
        "!=": s != "a",
        "equal": tf.equal(s, tf.constant(["a", "b", "c"])),
        "count": tf.reduce_sum(tf.cast(tf.equal(s, "bb"), tf.int32)),
    }
    texts = {name: _text(result) for name, result in results.items()}
    mistakes = (lambda: s * s, lambda: s - s, lambda: s < s, lambda: tf.reduce_sum(s))
    refused = [message(call)["error"] for call in mistakes]
    return [texts, refused]


@program()
def variables(tf, np):
    v = tf.Variable(["a", "b"])
    before = [_text(v[0]), _text(v + "c")]
    v.assign(["c", "d"])
    return [*before, _text(v.read_value()), _text(tf.concat([v, ["e"]], 0))]


@program()
def functions(tf, np):
    s, _ = _words(tf)
    greet = tf.function(lambda words: tf.concat([words, ["end"]], 0))
    choose = tf.function(lambda words: tf.where([True, False, True], words, "z"))
    return [_text(greet(s)), _text(choose(s)), _text(tf.function(lambda words: words + "!")(s))]


@program()
def beside_a_tape(tf, np):
    s, x = tf.constant(["a", "b"]), tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        chosen = tf.where(s == "b", x, 0.0)
        y = tf.reduce_sum(chosen * chosen)
    return tape.gradient(y, x)
