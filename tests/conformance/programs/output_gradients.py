"""``output_gradients``: the weights that a gradient starts from."""

from conformance.probes import raises
from conformance.program import program


@program()
def weights_of_a_vector(tf, np):
    x = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        y = x * x
    return tape.gradient(y, x, output_gradients=tf.constant([1.0, 10.0, 100.0]))


@program()
def given_in_every_form(tf, np):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x**3
    forms = [
        tf.constant([2.0, 3.0]),
        tf.Variable([2.0, 3.0]),
        np.array([2.0, 3.0], dtype=np.float32),
        [tf.constant([2.0, 3.0])],
        tf.constant([[2.0, 3.0]])[0],
    ]
    return [tape.gradient(y, x, output_gradients=form) for form in forms]


@program()
def weights_of_several_targets(tf, np):
    x, w = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        targets = [x * w, x * x, w * w]
    weights = [tf.constant([1.0, -1.0]), tf.constant([10.0, 20.0]), tf.constant(0.5)]
    return tape.gradient(targets, [x, w], output_gradients=weights)


@program()
def weights_in_a_structure(tf, np):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        targets = {"b": x * 3.0, "a": x * 5.0}
    return tape.gradient(targets, x, output_gradients={"a": tf.constant([1.0, 2.0]), "b": tf.constant([10.0, 20.0])})


@program()
def zeros_and_negative_weights(tf, np):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.exp(x)
    return [tape.gradient(y, x, output_gradients=tf.constant(w)) for w in ([0.0, 0.0], [-1.0, 0.0])]


@program()
def of_a_target_that_is_a_source(tf, np):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    weights = tf.constant([3.0, 4.0])
    return [
        tape.gradient(x, x, output_gradients=weights),
        tape.gradient([y, x], x, output_gradients=[weights, weights]),
    ]


@program()
def of_an_unconnected_target(tf, np):
    x, w = tf.Variable([1.0, 2.0]), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
    return tape.gradient(y, w, output_gradients=tf.constant([1.0, 1.0]))


@program()
def seen_by_an_outer_tape(tf, np):
    x, weight = tf.Variable([1.0, 2.0]), tf.constant([3.0, -1.0])
    with tf.GradientTape() as outer:
        outer.watch(weight)
        with tf.GradientTape() as inner:
            y = x**3
        g = inner.gradient(y, x, output_gradients=weight)
    return [g, outer.gradient(g, [x, weight])]


@program()
def a_directional_derivative(tf, np):
    x, direction = tf.Variable([1.0, 2.0, 3.0]), tf.constant([0.5, 0.0, -1.0])
    with tf.GradientTape() as outer:
        seed = tf.ones([2])
        outer.watch(seed)
        with tf.GradientTape() as inner:
            y = tf.stack([tf.reduce_prod(x), tf.reduce_sum(x * x)])
        vjp = inner.gradient(y, x, output_gradients=seed)
        product = tf.reduce_sum(vjp * direction)
    return outer.gradient(product, seed)


@program()
def the_chain_rule_by_hand(tf, np):
    x = tf.Variable([0.3, 0.6])
    with tf.GradientTape() as first:
        h = tf.sin(x)
    with tf.GradientTape() as second:
        second.watch(h)
        y = tf.reduce_sum(h**2)
    dh = second.gradient(y, h)
    return [dh, first.gradient(h, x, output_gradients=dh)]


@program()
def a_shape_that_does_not_fit(tf, np):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    return [
        raises(
            lambda: tape.gradient(y, x, output_gradients=tf.constant([1.0, 2.0, 3.0])),
            "Incompatible shapes: [3] vs. [2]",
        ),
        tape.gradient(y, x),
    ]


@program()
def slices_as_a_result(tf, np):
    table = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        y = tf.gather(table, [1, 1])
    return tape.gradient(y, table, output_gradients=tf.constant([[1.0, 2.0], [30.0, 40.0]]))
