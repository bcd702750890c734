"""The errors and warnings of a tape, word for word."""

from conformance.probes import logged, message
from conformance.program import program


@program()
def a_second_gradient(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
    return [tape.gradient(y, x), message(lambda: tape.gradient(y, x)), message(lambda: tape.gradient(y, []))]


@program()
def a_second_gradient_after_none(tf, np):
    x, w = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    return [tape.gradient(y, w), message(lambda: tape.gradient(y, x))]


@program()
def a_second_gradient_inside_the_block(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
        first = tape.gradient(y, x)
        second = message(lambda: tape.gradient(y, x))
    return [first, second]


@program()
def a_tape_that_was_never_entered(tf, np):
    x = tf.Variable(2.0)
    tape = tf.GradientTape()
    return {
        "gradient": message(lambda: tape.gradient(x, x)),
        "watch": message(lambda: tape.watch(x)),
        "reset": message(tape.reset),
        "stop": message(lambda: tape.stop_recording().__enter__()),
        "watched": list(tape.watched_variables()),
    }


@program()
def a_persistent_tape_that_was_never_entered(tf, np):
    x = tf.Variable(2.0)
    tape = tf.GradientTape(persistent=True)
    return [message(lambda: tape.watch(x)), message(tape.reset), message(lambda: tape.stop_recording().__enter__())]


@program()
def a_tape_that_is_over(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    return [message(tape.reset), message(lambda: tape.stop_recording().__enter__()), tape.gradient(y, x)]


@program()
def entered_while_active(tf, np):
    with tf.GradientTape() as tape:
        again = message(tape.__enter__)
    return again


@program()
def stopped_twice(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        with tape.stop_recording():
            inside = [message(lambda: tape.stop_recording().__enter__()), message(tape.reset)]
        y = x * x
    return [inside, tape.gradient(y, x)]


@program()
def a_target_of_none(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    return [message(lambda: tape.gradient(None, x)), message(lambda: tape.gradient([y, None], x)), tape.gradient(y, x)]


@program()
def sources_of_none(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    return [message(lambda: tape.gradient(y, source)) for source in (None, [x, None], {"a": None})]


@program()
def a_source_that_is_a_string(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    return message(lambda: tape.gradient(y, "x"))


@program()
def an_unknown_word_for_unconnected_gradients(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    words = ("zeros", "ZERO", None, 0)
    return [message(lambda word=word: tape.gradient(y, x, unconnected_gradients=word)) for word in words]


@program()
def watching_what_is_not_a_tensor(tf, np):
    with tf.GradientTape() as tape:
        things = [3.0, 3, "words", None, np.array([1.5, 2.5]), np.float32(1.0), tf.TensorShape([2])]
        return [message(lambda thing=thing: tape.watch(thing)) for thing in things]


@program()
def watching_a_list_with_a_number_in_it(tf, np):
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        text = message(lambda: tape.watch([x, 1.0]))
        y = x * x
    return [text, tape.gradient(y, x)]


@program()
def arguments_that_do_not_exist(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    return [message(lambda: tape.gradient(y))["error"], message(lambda: tf.GradientTape(forever=True))["error"]]


@program(fresh=True)
def an_int_that_is_watched(tf, np):
    with logged(tf) as lines, tf.GradientTape() as tape:
        tape.watch(tf.constant(3))
        tape.watch(tf.constant([True]))
        tape.watch(tf.constant("words"))
        tape.watch(tf.Variable(3, trainable=False))
    return lines


@program(fresh=True)
def five_times_at_most(tf, np):
    with logged(tf) as lines:
        for number in range(8):
            with tf.GradientTape() as tape:
                tape.watch(tf.constant(number))
    return lines


@program(fresh=True)
def what_is_watched_without_a_warning(tf, np):
    dtypes = [tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.complex64, tf.complex128]
    with logged(tf) as lines, tf.GradientTape() as tape:
        for dtype in dtypes:
            tape.watch(tf.zeros([2], dtype))
        tape.watch(tf.Variable(1.0))
    return lines


@program(fresh=True)
def int_variables_targets_and_sources_warn_of_nothing(tf, np):
    v, x = tf.Variable(3), tf.Variable(2.0)
    with logged(tf) as lines:
        with tf.GradientTape(persistent=True) as tape:
            y = v * v
            z = x * x
        gradients = [tape.gradient(y, v), tape.gradient(y, x), tape.gradient(z, v)]
    return [lines, gradients]


@program(fresh=True)
def a_persistent_tape_asked_inside_its_context(tf, np):
    x = tf.Variable(2.0)
    with logged(tf) as lines:
        with tf.GradientTape(persistent=True) as tape:
            y = x**3
            g = tape.gradient(y, x)
    return [lines, g]


@program(fresh=True)
def no_warning_outside_or_while_stopped(tf, np):
    x = tf.Variable(2.0)
    with logged(tf) as lines:
        with tf.GradientTape() as once:
            y = x**3
            first = once.gradient(y, x)
        with tf.GradientTape(persistent=True) as tape:
            y = x**3
            with tape.stop_recording():
                second = tape.gradient(y, x)
        third = tape.gradient(y, x)
    return [lines, first, second, third]
