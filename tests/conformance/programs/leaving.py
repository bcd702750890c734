"""Python in the middle of a program: numpy_function, py_function, tf.print; names and devices."""

from conformance.probes import raises
from conformance.program import program

X = [1.0, 2.0, 3.0]


@program()
def numpy_function_results(tf, np):
    x = tf.constant(X)

    def call(f, out=tf.float32):
        return tf.numpy_function(f, [x], out)

    return [
        call(lambda a: a * 2), call(lambda a: (a * 2, a.sum()), [tf.float32, tf.float32]), call(lambda a: [a * 2]),
        call(lambda a: a.astype(np.float64)), call(lambda a: 2.5), call(lambda a: 2), call(lambda a: [1.0, 2.0]),
        call(lambda a: (a, [a, a])), call(lambda a: None), call(lambda a: a > 1.0, tf.bool), call(lambda a: 1j),
        call(lambda a: "abc", tf.string), call(lambda a: tf.constant([1.0])),
    ]  # fmt: skip


@program()
def numpy_function_arguments(tf, np):
    seen = []

    def look(*arrays):
        seen.extend([type(a).__name__, str(a.dtype), list(a.shape)] for a in arrays)
        return np.float32(len(arrays))

    y = tf.numpy_function(look, [tf.constant(X), 3, 2.5, [1, 2], tf.Variable(1.0), tf.constant(True)], tf.float32)
    return [y, seen, tf.numpy_function(lambda: np.float32(1.0), [], tf.float32)]


@program()
def numpy_function_gets_arrays_of_its_own(tf, np):
    x = tf.constant(X)

    def write(a):
        a[0] = 9.0
        return a

    return [tf.numpy_function(write, [x], tf.float32), x]


@program()
def numpy_function_has_no_gradient(tf, np):
    v = tf.Variable(X)
    with tf.GradientTape(persistent=True) as tape:
        y = tf.numpy_function(lambda a: a * 2, [v], tf.float32)
        z = y * v
        w = tf.reduce_sum(v * v)
    return [tape.gradient(y, v), tape.gradient(z, v), tape.gradient([y, w], v)]


@program()
def numpy_function_as_a_decorator(tf, np):
    @tf.numpy_function(Tout=tf.float32)
    def double(a):
        return a * np.float32(2.0)

    return [double(tf.constant(X)), double.__name__]


@program()
def numpy_function_mistakes(tf, np):
    x = tf.constant(X)

    def fail(a):
        raise KeyError("bad thing")

    return [
        raises(lambda: tf.numpy_function(fail, [x], tf.float32)),
        raises(lambda: tf.numpy_function(lambda a: a, x, tf.float32)),
        raises(lambda: tf.numpy_function(lambda a: a, None, tf.float32), "Missing argument `inp`"),
        raises(lambda: tf.numpy_function(lambda a: a, [x]), "Missing required argument: 'Tout'"),
        raises(lambda: tf.numpy_function(None, [x], tf.float32), "Don't set the `inp` argument"),
        raises(lambda: tf.numpy_function(3, [x], tf.float32)),
    ]


@program()
def py_function_results(tf, np):
    x = tf.constant(X)
    return [
        tf.py_function(lambda a: a * a, [x], tf.float32),
        tf.py_function(lambda a: [a, a * 2.0], [x], [tf.float32, tf.float32]),
        tf.py_function(lambda a: [a, a * 2.0], [x], tf.float32),
        tf.py_function(lambda a: a, [x], [tf.float32]),
        tf.py_function(lambda a: np.array([1.0, 2.0]), [x], tf.float32),
        tf.py_function(lambda a: 2, [x], tf.float32),
        tf.py_function(lambda a: None, [x], []),
        tf.py_function(lambda a, b, c: a - c, x, tf.float32),
        tf.py_function(lambda a, b: tf.reduce_sum(a) > b, [x, 5.0], tf.bool),
    ]


@program()
def py_function_arguments(tf, np):
    seen = []

    def look(*tensors):
        seen.extend([type(t).__name__, t.dtype.name, t.shape.as_list()] for t in tensors)
        return tensors[0]

    y = tf.py_function(look, [tf.constant(X), 3, 2.5, [1, 2], tf.Variable(1.0), tf.constant("s")], tf.float32)
    return [y, seen]


@program()
def py_function_gradients(tf, np):
    v, w = tf.Variable(X), tf.Variable(2.0)

    def branch(a, b):
        return a * b if tf.reduce_sum(a) > 0.0 else a

    with tf.GradientTape() as tape:
        y = tf.py_function(branch, [v, w], tf.float32)
        z = tf.reduce_sum(y * v)
    return [y, tape.gradient(z, [v, w])]


@program()
def py_function_of_several_results(tf, np):
    v = tf.Variable(X)
    with tf.GradientTape() as tape:
        a, n, b = tf.py_function(lambda x: (x * x, tf.size(x), tf.exp(x)), [v], [tf.float32, tf.int32, tf.float32])
        y = tf.reduce_sum(a) * 2.0 + tf.reduce_sum(b)
    return [n, tape.gradient(y, v)]


@program()
def py_function_hides_what_it_closes_over(tf, np):
    v, x = tf.Variable(X), tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.py_function(lambda a: a * v, [x], tf.float32)
    return [y, tape.gradient(y, [v, x])]


@program()
def py_function_is_differentiable_once(tf, np):
    v = tf.Variable(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.py_function(lambda a: a**3, [v], tf.float32)
        first = inner.gradient(y, v)
    return [first, outer.gradient(first, v)]


@program()
def py_function_with_numpy_inside(tf, np):
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.py_function(lambda a: a.numpy() * 2.0, [v], tf.float32)
    return [y, tape.gradient(y, v)]


@program()
def py_function_in_forward_mode(tf, np):
    v = tf.Variable(2.0)
    with tf.autodiff.ForwardAccumulator(v, tf.constant(1.0)) as acc:
        y = tf.py_function(lambda a: a**3, [v], tf.float32)
        z = tf.numpy_function(lambda a: a**3, [v], tf.float32)
    return [acc.jvp(y), acc.jvp(z)]


@program()
def py_function_mistakes(tf, np):
    x = tf.constant(X)

    def fails(kind):
        def fail(a):
            raise kind("bad thing")

        return raises(lambda: tf.py_function(fail, [x], tf.float32))

    kinds = (ValueError, TypeError, StopIteration, NotImplementedError, KeyError, RuntimeError, ZeroDivisionError)
    return [
        *[fails(kind) for kind in kinds],
        raises(
            lambda: tf.py_function(lambda a: None, [x], tf.float32), "returns 0 values, but expects to see 1 values."
        ),
        raises(lambda: tf.py_function(lambda a: [a], [x], [tf.float32] * 2), "returns 1 values, but expects to see 2"),
        raises(lambda: tf.py_function(lambda a: a, [x], tf.float64), "Tensor conversion requested dtype float64"),
        raises(lambda: tf.py_function(lambda a: 2.5, [x], tf.int32)),
        raises(lambda: tf.py_function(lambda a: tf.Variable(1.0), [x], tf.float32)),
        raises(lambda: tf.py_function(3, [x], tf.float32), "Expected func to be callable."),
        raises(lambda: tf.py_function(lambda a: a, [x]), "Missing required argument: 'Tout'"),
    ]


# ---------------------------------------------------------------------------------------------------------------- print
def printed(tf, *inputs, **kwargs):
    """What tf.print writes."""
    import os
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out")
        tf.print(*inputs, output_stream="file://" + path, **kwargs)
        with open(path, encoding="utf-8") as file:
            return file.read()


@program()
def print_numbers(tf, np):
    c = tf.constant
    values = [
        c(X), c(1.0), c(1), c(1 / 3), c(1 / 3, tf.float64), c(1e-7), c(1e10), c(123456.789), c(16777216.0), c(0.1),
        c([float("nan"), float("inf"), -float("inf")]), c(-0.0), c(1e5), c(1e6), c(99999.0), c(1234567.0),
        c([1.5, 1e-5, 1e6]), c(1e16, tf.float64), c(123456789.123, tf.float64), c([1.5, 0.1], tf.float16),
        c([0.1], tf.bfloat16), c([255], tf.uint8),
        c([2**40], tf.int64), c([True, False]), c(True), c([1 + 2j]), tf.zeros([0]), tf.zeros([2, 0]), tf.zeros([0, 2]),
    ]  # fmt: skip
    return [printed(tf, one) for one in values]


@program()
def print_shapes(tf, np):
    long, square = tf.range(20), tf.reshape(tf.range(100), [10, 10])
    return [
        printed(tf, tf.range(6)), printed(tf, tf.range(7)), printed(tf, long), printed(tf, long, summarize=-1),
        printed(tf, long, summarize=1), printed(tf, long, summarize=5), printed(tf, square),
        printed(tf, tf.reshape(tf.range(1000), [10, 10, 10]), summarize=2), printed(tf, tf.ones([2, 3, 2])),
        printed(tf, tf.ones([1, 1])), printed(tf, tf.constant(1.0), summarize=0), printed(tf, tf.range(3), summarize=0),
    ]  # fmt: skip


@program()
def print_strings(tf, np):
    c = tf.constant
    return [
        printed(tf, c("abc")), printed(tf, c(["a", "b"])), printed(tf, "x", c("abc")), printed(tf, c("é"), end="!"),
        printed(tf, c([["a", "b"], ["c", "d"]])), printed(tf, c(["q\"'\n\té\\"])), printed(tf, [c("s"), "t"]),
        printed(tf, "{}", c(1)), printed(tf, "a{b}c", [1]), printed(tf, tf.Variable("s"), 1),
    ]  # fmt: skip


@program()
def print_structures(tf, np):
    import collections

    point = collections.namedtuple("Point", "a b")
    c = tf.constant
    return [
        printed(tf, [c(1.0), c([1, 2])]), printed(tf, {"b": [1, 2], "a": c(1.0)}), printed(tf, (c(1.0),)),
        printed(tf, point(c(1), 2)), printed(tf, collections.OrderedDict([("z", c(1)), ("a", 2)])), printed(tf, []),
        printed(tf, [[c(1), [c(2)]], (3,)]), printed(tf, tf.Variable(X), [tf.Variable(1.0)]), printed(tf, {"k": None}),
        printed(tf, "a", c([1, 2]), 3, 2.5, None, True), printed(tf, "x:", c(X), "y:", c([[1, 2], [3, 4]])),
        printed(tf, {f"key{i}": c(X) for i in range(12)}), printed(tf, list(range(40))),
        printed(tf, np.array([1.0, 2.0])),
        printed(tf, tf.IndexedSlices(c([1.0]), c([0]), c([3]))), printed(tf, tf.float32, c(1.0).shape),
        printed(tf, "a", "b", sep=","), printed(tf, c(1), c(2), sep="\n"), printed(tf, "a", end="!\n"), printed(tf),
    ]  # fmt: skip


@program()
def print_mistakes(tf, np):
    return [
        raises(lambda: tf.print("x", foo=1), "Unrecognized keyword arguments for tf.print: {'foo': 1}"),
        raises(lambda: tf.print("x", output_stream="nope"), "Unsupported output stream, logging level, or file.nope."),
        tf.print("", end="") is None,
    ]


@program()
def print_does_not_stop_a_gradient(tf, np):
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        printed(tf, "y:", y)
        z = tf.reduce_sum(y)
    return tape.gradient(z, x)


# ---------------------------------------------------------------------------------------------------- names and devices
@program()
def names_inside_scopes(tf, np):
    found = []

    def note(name=None):
        found.append(tf.Variable(1.0, name=name).name)

    with tf.name_scope("a") as prefix:
        found.append(prefix)
        note()
        with tf.name_scope("b"):
            note("x")
            note("x")
        with tf.name_scope("c/"):
            note("y")
        with tf.name_scope(""):
            note("z")
    with tf.device("/CPU:0"), tf.name_scope("k"):
        note("x")
    return found


@program()
def devices_are_accepted(tf, np):
    found = []
    for name in (
        "/CPU:0",
        "CPU:0",
        "cpu",
        "/device:CPU:0",
        "/job:localhost/replica:0/task:0/device:CPU:0",
        None,
        "",
        "/GPU:0",
    ):
        with tf.device(name) as given, tf.GradientTape() as tape:
            v = tf.Variable(3.0)
            y = v * v
        found.append([given, tape.gradient(y, v)])
    with tf.device("/CPU:0"), tf.device(None):
        found.append(tf.constant(1.0) + 1.0)
    device = tf.device("CPU:0")
    with device, device:
        found.append(tf.constant(2.0))
    return found


@program()
def devices_that_are_none(tf, np):
    def enter(name):
        with tf.device(name):
            pass

    return [
        raises(lambda: enter("bad"), "Unknown attribute 'bad' is encountered while parsing the device spec: 'bad'."),
        raises(lambda: enter("/bad:0"), "Unknown attribute 'bad'"),
        raises(lambda: enter(3), "Expecting a string device name. Got <class 'int'>(3)"),
        raises(lambda: enter("CPU:x"), "invalid literal for int() with base 10: 'x'"),
        raises(lambda: tf.device(lambda op: "/CPU:0"), "tf.device does not support functions."),
    ]
