"""What ``gradient`` gives back: for several targets and sources, for structures, from a tape used more than once."""

from conformance.program import program


@program()
def the_structure_of_the_sources(tf, np):
    a, b, c = tf.Variable(2.0), tf.Variable(3.0), tf.Variable(4.0)
    with tf.GradientTape(persistent=True) as tape:
        y = a * b * c
    return {
        "one": tape.gradient(y, a),
        "list": tape.gradient(y, [a, b]),
        "tuple": tape.gradient(y, (a, b)),
        "dict": tape.gradient(y, {"second": b, "first": a}),
        "nested": tape.gradient(y, {"deep": [a, (b, {"c": c})], "again": a}),
    }


@program()
def empty_structures(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    return [tape.gradient(y, []), tape.gradient(y, ()), tape.gradient(y, {}), tape.gradient([], x)]


@program()
def keys_in_any_order(tf, np):
    variables = {key: tf.Variable(float(i + 1)) for i, key in enumerate("zax")}
    with tf.GradientTape() as tape:
        y = variables["a"] * 10.0 + variables["z"] * 20.0 + variables["x"] * 30.0
    g = tape.gradient(y, variables)
    return {"keys": list(g), "g": g}


@program()
def the_same_source_twice(tf, np):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    return tape.gradient(y, [x, x])


@program()
def a_vector_target_is_summed(tf, np):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.stack([x * x, x * 10.0, x])
    return tape.gradient(y, x)


@program()
def several_targets_are_summed(tf, np):
    x, w = tf.Variable(2.0), tf.Variable(5.0)
    with tf.GradientTape(persistent=True) as tape:
        a, b = x * x, x * w
    return {
        "list": tape.gradient([a, b], [x, w]),
        "nested": tape.gradient({"k": [a], "l": (b, a)}, [x, w]),
        "twice": tape.gradient([a, a], x),
    }


@program()
def targets_of_different_shapes(tf, np):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        targets = [tf.reduce_sum(x), x * x, tf.reshape(x, [2, 1]) * x]
    return tape.gradient(targets, x)


@program()
def one_target_is_not_connected(tf, np):
    x, other = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        targets = [x * 3.0, other * 2.0, tf.constant(1.0)]
    return tape.gradient(targets, x)


@program()
def a_target_that_is_a_source(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    return [tape.gradient(x, x), tape.gradient([y, x], x), tape.gradient(y, y)]


@program()
def a_constant_with_respect_to_itself(tf, np):
    c, other = tf.constant([3.0, 4.0]), tf.constant([3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        pass
    return [tape.gradient(c, c), tape.gradient(c, other)]


@program()
def a_variable_that_was_never_read(tf, np):
    v, w = tf.Variable(2.0), tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        pass
    return [tape.gradient(v, v), tape.gradient(v, w)]


@program()
def with_respect_to_an_intermediate(tf, np):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        h = x * x
        y = tf.sin(h)
        z = y * h
    return {"h": tape.gradient(z, h), "y": tape.gradient(z, y), "both": tape.gradient(z, [x, h, y])}


@program()
def a_later_value_as_source(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
        z = y * x
    return tape.gradient(y, z)


@program()
def a_persistent_tape_answers_again(tf, np):
    x = tf.Variable([1.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
        z = y * y
    first = [tape.gradient(z, x), tape.gradient(y, x), tape.gradient(z, y)]
    return {"first": first, "again": [tape.gradient(z, x), tape.gradient(z, [x, y])]}


@program()
def a_persistent_tape_after_an_assign(tf, np):
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    before = tape.gradient(y, x)
    x.assign(100.0)
    return [before, tape.gradient(y, x)]


@program()
def a_persistent_tape_that_goes_out_of_use(tf, np):
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    g = tape.gradient(y, x)
    del tape
    return [g, y]


@program()
def a_result_of_one_tape_in_another(tf, np):
    x = tf.Variable(3.0)
    with tf.GradientTape() as first:
        y = x * x
    g = first.gradient(y, x)
    with tf.GradientTape() as second:
        second.watch(g)
        z = g * g * x
    return second.gradient(z, [g, x])


@program()
def two_tapes_of_one_computation(tf, np):
    x, c = tf.Variable(2.0), tf.constant(7.0)
    with tf.GradientTape() as first, tf.GradientTape() as second:
        second.watch(c)
        y = x * c
    return [first.gradient(y, [x, c]), second.gradient(y, [x, c])]


@program()
def a_tape_gives_the_gradient_inside_its_block(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x**3
        g = tape.gradient(y, x)
        after = x * 5.0
    return [g, after]


@program()
def many_tapes_in_a_row(tf, np):
    x = tf.Variable(1.1)
    gradients = []
    for power in range(1, 7):
        with tf.GradientTape() as tape:
            y = x**power
        gradients.append(tape.gradient(y, x))
    return gradients
