"""map_fn, scan, foldl, foldr and vectorized_map: functions over the leading axis, and their gradients."""

from conformance.probes import derivatives, logged, message, raises
from conformance.program import program


@program()
def map_of_one_tensor(tf, np):
    return derivatives(tf, lambda x: tf.map_fn(lambda row: row * tf.reduce_sum(row), x), [[1.0, 2.0], [3.0, 4.0]])


@program()
def map_over_many_elements(tf, np):
    x = tf.Variable(np.linspace(-1.0, 2.0, 23).astype(np.float32))
    with tf.GradientTape() as tape:
        y = tf.map_fn(lambda one: tf.sin(one) * one, x)
        total = tf.reduce_sum(y * y)
    return [y, tape.gradient(total, x)]


@program()
def map_of_structures(tf, np):
    x, n = tf.Variable([1.0, 2.0, 3.0]), tf.constant([4, 5, 6])
    with tf.GradientTape() as tape:
        pair = tf.map_fn(lambda e: (e[0] * 2.0, e[1] + 1), (x, n))
        one = tf.map_fn(
            lambda e: e["a"] * tf.cast(e["b"], tf.float32), {"a": x, "b": n}, fn_output_signature=tf.float32
        )
        two = tf.map_fn(lambda e: (e, [e * e]), x, fn_output_signature=(tf.float32, [tf.float32]))
    return [pair, one, two, tape.gradient([pair[0], one, two], x)]


@program()
def map_with_a_signature(tf, np):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    return [
        tf.map_fn(lambda row: tf.cast(row, tf.int32), x, dtype=tf.int32),
        tf.map_fn(lambda row: tf.size(row), x, fn_output_signature="int32"),
        tf.map_fn(lambda row: row[:1], x, fn_output_signature=tf.TensorSpec([1], tf.float32)),
        tf.map_fn(lambda row: 1.5, x),
        tf.map_fn(lambda row: 1, x),
    ]


@program()
def map_over_nothing(tf, np):
    calls = []
    nothing = tf.zeros([0, 3])
    return [
        tf.map_fn(lambda row: calls.append(row), nothing),
        tf.map_fn(lambda row: row, nothing, fn_output_signature=tf.int32),
        tf.map_fn(lambda row: row, nothing, fn_output_signature=tf.TensorSpec([2], tf.float64)),
        calls,
    ]


@program()
def map_calls_python_for_each_element(tf, np):
    calls = []

    def f(one):
        calls.append("called")
        return one * len(calls)

    return [tf.map_fn(f, tf.constant([3, 1, 2])), calls]


@program()
def map_with_a_captured_variable(tf, np):
    w, x = tf.Variable([2.0, 3.0]), tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with tf.GradientTape() as tape:
        y = tf.map_fn(lambda row: tf.tensordot(row, w, 1) ** 2, x)
    return [y, tape.gradient(y, [w, x])]


@program()
def wrong_maps(tf, np):
    x, n = tf.constant([1.0, 2.0, 3.0]), tf.constant([1, 2, 3])
    return [
        message(lambda: tf.map_fn(3, x)),
        message(lambda: tf.map_fn(lambda e: e, 3.0)),
        message(lambda: tf.map_fn(lambda e: e, [1.0, 2.0])),
        message(lambda: tf.map_fn(lambda e: e, [])),
        message(lambda: tf.map_fn(lambda e: e, ())),
        message(lambda: tf.map_fn(lambda e: e[0], (x, x[:2]), fn_output_signature=tf.float32)),
        message(lambda: tf.map_fn(lambda e: e[0], (x, 1.0), fn_output_signature=tf.float32)),
        message(lambda: tf.map_fn(lambda e: tf.cast(e, tf.int32), x)),
        message(lambda: tf.map_fn(lambda e: e > 1.0, x)),
        message(lambda: tf.map_fn(lambda e: 1.5, n)),
        message(lambda: tf.map_fn(lambda e: tf.range(e), n)),
        message(lambda: tf.map_fn(lambda e: (e, e), x)),
        message(lambda: tf.map_fn(lambda e: [e], x, fn_output_signature=(tf.float32,))),
        message(lambda: tf.map_fn(lambda e: None, x)),
        message(lambda: tf.map_fn(lambda e: e, x, fn_output_signature=tf.TensorSpec([1], tf.float32))),
        raises(lambda: tf.map_fn(lambda e: tf.range(e), n, infer_shape=False)),
    ]


@program(fresh=True)
def parallel_iterations_are_said_to_have_no_effect(tf, np):
    x = tf.constant([1.0, 2.0])
    with logged(tf) as lines:
        tf.map_fn(lambda e: e, x, parallel_iterations=4)
        tf.map_fn(lambda e: e, x, parallel_iterations=4)
        tf.map_fn(lambda e: e, x, parallel_iterations=1)
    return lines


@program()
def scans(tf, np):
    x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    return {
        "plain": derivatives(tf, lambda x: tf.scan(lambda a, e: a * e, x), x),
        "reverse": derivatives(tf, lambda x: tf.scan(lambda a, e: a * e, x, reverse=True), x),
        "initializer": derivatives(tf, lambda x, i: tf.scan(lambda a, e: a * e + e, x, i), x, 1.5),
        "both": derivatives(tf, lambda x, i: tf.scan(lambda a, e: a * e + e, x, i, reverse=True), x, 1.5),
    }


@program()
def scans_of_structures(tf, np):
    x, w = tf.Variable([1.0, 2.0, 3.0]), tf.Variable([[1.0, 0.5], [0.25, 2.0]])
    with tf.GradientTape() as tape:
        sums, products = tf.scan(lambda a, e: (a[0] + e, a[1] * e), x, (tf.constant(0.0), tf.constant(1.0)))
        states = tf.scan(lambda h, e: tf.tanh(tf.linalg.matvec(w, h) + e), x, tf.zeros([2]))
        dots = tf.scan(lambda a, e: a + e[0] * e[1], (x, x * x), 0.0)
        pairs = tf.scan(lambda a, e: [a[0] + e[0], a[1] * e[1]], [x, x])
    return [sums, products, states, dots, pairs, tape.gradient([sums, products, states, dots, pairs], [x, w])]


@program()
def scans_of_little(tf, np):
    calls = []
    return [
        tf.scan(lambda a, e: calls.append(1), tf.constant([5.0])),
        tf.scan(lambda a, e: a + e, tf.zeros([0]), 1.0),
        tf.scan(lambda a, e: a + e, tf.zeros([0, 2]), tf.zeros([2])),
        calls,
        message(lambda: tf.scan(lambda a, e: a + e, tf.zeros([0]))),
        message(lambda: tf.scan(lambda a, e: a + e, tf.zeros([0]), reverse=True)),
    ]


@program()
def wrong_scans(tf, np):
    x = tf.constant([1.0, 2.0, 3.0])
    return [
        message(lambda: tf.scan(None, x)),
        message(lambda: tf.scan(lambda a, e: a, 3.0)),
        message(lambda: tf.scan(lambda a, e: a, [1, 2])),
        message(lambda: tf.scan(lambda a, e: a, [])),
        message(lambda: tf.scan(lambda a, e: (a, e), x)),
        message(lambda: tf.scan(lambda a, e: [a[0]], x, (0.0,))),
        message(lambda: tf.scan(lambda a, e: tf.stack([a, e]), x)),
        message(lambda: tf.scan(lambda a, e: tf.cast(e, tf.int32), x)),
        message(lambda: tf.scan(lambda a, e: a + e, x, 0)),
        message(lambda: tf.scan(lambda a, e: a, (x, x[:2]), 0.0)),
        message(lambda: tf.scan(lambda a, e: a, (x[:2], x), 0.0)),
        raises(lambda: tf.scan(lambda a, e: tf.stack([tf.reduce_sum(a), e]), x, infer_shape=False)),
    ]


@program()
def folds(tf, np):
    x = [1.0, 2.0, 3.0, 4.0, 5.0]
    return {
        "l": derivatives(tf, lambda x: tf.foldl(lambda a, e: a * 2.0 - e * a, x), x),
        "r": derivatives(tf, lambda x: tf.foldr(lambda a, e: a * 2.0 - e * a, x), x),
        "li": derivatives(tf, lambda x, i: tf.foldl(lambda a, e: a * e - e, x, i), x, 0.5),
        "ri": derivatives(tf, lambda x, i: tf.foldr(lambda a, e: a * e - e, x, i), x, 0.5),
    }


@program()
def folds_of_structures(tf, np):
    x, v = tf.Variable([1.0, 2.0, 3.0]), tf.Variable(0.5)
    with tf.GradientTape() as tape:
        found = tf.foldl(lambda a, e: {"s": a["s"] + e * v, "n": a["n"] + 1}, x, {"s": 0.0, "n": 0})
        grown = tf.foldr(lambda a, e: tf.concat([a, [e]], 0), x, tf.zeros([0]))
        pair = tf.foldl(lambda a, e: [a[0] + e[0], a[1]], [x, x * v])
        first = tf.foldr(lambda a, e: a + e, x, v)
    return [found, grown, pair, first, tape.gradient([found["s"], grown, pair, first], [x, v])]


@program()
def wrong_folds(tf, np):
    x = tf.constant([1.0, 2.0, 3.0])
    out = []
    for fold in (tf.foldl, tf.foldr):
        out += [
            message(lambda fold=fold: fold(3, x)),
            message(lambda fold=fold: fold(lambda a, e: a, 3.0)),
            message(lambda fold=fold: fold(lambda a, e: a, tf.zeros([0]))),
            message(lambda fold=fold: fold(lambda a, e: (a, e), x)),
            message(lambda fold=fold: fold(lambda a, e: None, x)),
            message(lambda fold=fold: fold(lambda a, e: a + e[1], (x, x[:2]), 0.0)),
            message(lambda fold=fold: fold(lambda a, e: a + e[1], (x[:2], x), 0.0)),
            fold(lambda a, e: a - e, tf.zeros([0]), 10.0),
            fold(lambda a, e: a - e, tf.zeros([0]), tf.Variable(1.0)),
        ]
    return out


@program()
def vectorized_maps(tf, np):
    w = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    x = tf.Variable([[1.0, 2.0], [3.0, 5.0], [0.5, 0.25]])
    with tf.GradientTape() as tape:
        y = tf.vectorized_map(lambda row: tf.tanh(tf.linalg.matvec(w, row)) * tf.reduce_sum(row), x)
        z = tf.vectorized_map(lambda e: {"s": e[0] + e[1], "p": [e[0] * e[1]]}, (x, x[:, ::-1]))
        b = tf.vectorized_map(lambda e: e[0] * e[1], (x, tf.constant([[2.0, 3.0]])))
    return [y, z, b, tape.gradient([y, z, b], [w, x])]


@program()
def vectorized_maps_of_constants(tf, np):
    x = tf.constant([1.0, 2.0, 3.0])
    return [
        tf.vectorized_map(lambda e: tf.constant([1.0, 2.0]), x),
        tf.vectorized_map(lambda e: 1, x),
        tf.vectorized_map(lambda e: None, x),
        tf.vectorized_map(lambda e: e * 2.0, tf.zeros([0, 2])),
        tf.vectorized_map(lambda e: e + 1.0, tf.Variable(x)),
    ]


@program()
def a_gradient_inside_a_vectorized_map(tf, np):
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x**3 + tf.sin(x)
        return tape.gradient(y, x)

    return tf.vectorized_map(slope, tf.constant([0.5, 1.0, 2.0]))


@program()
def control_flow_inside_a_vectorized_map(tf, np):
    x = tf.constant([1.0, 2.0, 3.0])
    return [
        tf.vectorized_map(lambda e: tf.cond(e > 1.5, lambda: e * e, lambda: -e), x),
        tf.vectorized_map(lambda e: tf.while_loop(lambda y: y < 10.0, lambda y: (y * 2.0,), (e,)), x),
        tf.vectorized_map(lambda e: tf.where(e > 1.5, e, 0.0), x),
    ]


@program()
def wrong_vectorized_maps(tf, np):
    x = tf.constant([1.0, 2.0, 3.0])
    return [
        message(lambda: tf.vectorized_map(lambda e: e, tf.constant(3.0))),
        message(lambda: tf.vectorized_map(lambda e: e, [1, 2])),
        message(lambda: tf.vectorized_map(lambda e: e, [])),
        raises(lambda: tf.vectorized_map(3, x)),
        raises(lambda: tf.vectorized_map(lambda e: e[0] * e[1], (x, x[:2]))),
    ]


@program()
def jacobians_through_scans_and_maps(tf, np):
    x = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.scan(lambda a, e: a * 0.5 + e * e, x)
        z = tf.vectorized_map(lambda e: tf.sin(e) * x, x)
    return [tape.jacobian(y, x), tape.jacobian(z, x)]


@program()
def forward_mode_through_loops(tf, np):
    x = tf.constant(1.3)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as accumulator:
        (y,) = tf.while_loop(lambda y: y < 20.0, lambda y: (y * x,), (x,))
        z = tf.scan(lambda a, e: a * x + e, tf.constant([1.0, 2.0, 3.0]))
    return [y, z, accumulator.jvp(y), accumulator.jvp(z)]
