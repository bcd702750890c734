"""When there is no gradient: None, never zero and never an error."""

from conformance.program import program


@program()
def of_a_constant_target(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        _ = x * x
    return [tape.gradient(tf.constant(3.0), x), tape.gradient(tf.zeros([2]), [x])]


@program()
def through_an_int_cast(tf, np):
    x = tf.Variable([1.7, 2.2])
    with tf.GradientTape() as tape:
        y = tf.cast(tf.cast(x, tf.int32), tf.float32) * 2.0
    return [y, tape.gradient(y, x)]


@program()
def through_rounding(tf, np):
    x = tf.Variable([1.7, -2.2])
    with tf.GradientTape(persistent=True) as tape:
        targets = [tf.round(x), tf.floor(x), tf.math.ceil(x), x // 1.0]
    return [[target, tape.gradient(target, x)] for target in targets]


@program()
def rounding_on_one_of_two_paths(tf, np):
    x = tf.Variable([1.7, -2.2])
    with tf.GradientTape() as tape:
        y = x * tf.round(x)
    return tape.gradient(y, x)


@program()
def through_a_comparison(tf, np):
    x = tf.Variable([1.0, -2.0])
    with tf.GradientTape(persistent=True) as tape:
        mask = x > 0.0
        y = tf.cast(mask, tf.float32)
    return [tape.gradient(mask, x), tape.gradient(y, x)]


@program()
def through_argmax(tf, np):
    x = tf.Variable([1.0, 5.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.one_hot(tf.argmax(x), 3)
    return [y, tape.gradient(y, x)]


@program()
def through_numpy_and_float(tf, np):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        by_numpy = tf.constant(x.numpy() * 2.0)
        by_float = tf.constant(float(x[0])) * 3.0
        by_array = tf.reduce_sum(np.asarray(x * x))
    return [tape.gradient(target, x) for target in (by_numpy, by_float, by_array)]


@program()
def through_zeros_like_and_ones_like(tf, np):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        targets = [tf.zeros_like(x), tf.ones_like(x), tf.fill([2], 1.0)]
    return [tape.gradient(target, x) for target in targets]


@program()
def through_the_shape(tf, np):
    x = tf.Variable([[1.0, 2.0, 3.0]])
    with tf.GradientTape() as tape:
        y = tf.ones(x.shape) * float(x.shape[1])
    return [y, tape.gradient(y, x)]


@program()
def sign_is_zero_and_not_none(tf, np):
    x = tf.Variable([1.0, -2.0, 0.0])
    with tf.GradientTape() as tape:
        y = tf.sign(x)
    return tape.gradient(y, x)


@program()
def computed_before_the_tape(tf, np):
    x = tf.Variable(2.0)
    y = x * x
    with tf.GradientTape() as tape:
        z = y * 3.0
    return tape.gradient(z, x)


@program()
def computed_after_the_tape(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    z = y * 3.0
    return [tape.gradient(z, x), tape.gradient(y, x)]


@program()
def computed_from_another_tapes_watch(tf, np):
    x = tf.constant(2.0)
    with tf.GradientTape() as watching:
        watching.watch(x)
        with tf.GradientTape() as blind:
            y = x * x
    return [watching.gradient(y, x), blind.gradient(y, x)]


@program()
def an_equal_but_different_tensor(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        h = x * x
        y = h * 3.0
    return [tape.gradient(y, x * x), tape.gradient(y, tf.identity(h)), tape.gradient(y, h)]


@program()
def the_value_of_a_variable_as_source(tf, np):
    v = tf.Variable(2.0)
    outside = v.value()
    with tf.GradientTape(persistent=True) as tape:
        inside = v.value()
        y = inside * v
    return [tape.gradient(y, outside), tape.gradient(y, inside), tape.gradient(y, v)]


@program(fresh=True)
def integers(tf, np):
    v, c, x = tf.Variable(3), tf.constant(4), tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(c)
        y = v * c
        z = tf.cast(y, tf.float32) * x
    return [tape.gradient(y, [v, c]), tape.gradient(z, [v, c, x]), tape.gradient([y, z], x)]


@program()
def int_and_bool_targets(tf, np):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        targets = [tf.cast(x, tf.int32), x > 1.0, tf.argmax(x), tf.size(x), tf.reduce_any(x > 1.0)]
    return [tape.gradient(target, x) for target in targets]


@program()
def a_string_target_and_a_string_source(tf, np):
    x, word = tf.Variable(2.0), tf.constant("word")
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    return [tape.gradient(word, x), tape.gradient(y, word), tape.gradient(y, [x, word])]


@program()
def a_variable_replaced_by_a_tensor(tf, np):
    x = tf.Variable(2.0)
    gradients = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = x * x
        gradients.append(tape.gradient(loss, x))
        x = x - 0.1
    return gradients


@program()
def through_a_variable_that_was_assigned(tf, np):
    x, state = tf.Variable(2.0), tf.Variable([0.0, 0.0])
    with tf.GradientTape() as tape:
        state.assign(tf.stack([x, x * x]))
        y = tf.reduce_sum(state)
    return [y, tape.gradient(y, [x, state])]


@program()
def random_numbers(tf, np):
    scale, x = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        noise = tf.random.normal([3])
        y = tf.reduce_sum(noise * 0.0) * scale + scale
    return [tape.gradient(y, scale), tape.gradient(noise, scale), tape.gradient(y, x)]


@program()
def the_imaginary_part_of_a_real_number(tf, np):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        targets = [tf.math.imag(x), tf.math.real(x), tf.math.conj(x)]
    return [tape.gradient(target, x) for target in targets]
