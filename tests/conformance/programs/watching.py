"""Which values a tape watches: by itself, when it is told to, and what it says of them."""

from conformance.program import program


@program()
def trainable_variables_are_watched(tf, np):
    a, b = tf.Variable(2.0, name="a"), tf.Variable(3.0, name="b", trainable=False)
    with tf.GradientTape() as tape:
        y = a * b
    return {"g": tape.gradient(y, [a, b]), "names": [v.name for v in tape.watched_variables()]}


@program()
def an_untrainable_variable_can_be_watched(tf, np):
    v = tf.Variable([1.0, 2.0], trainable=False, name="frozen")
    with tf.GradientTape() as tape:
        tape.watch(v)
        y = v * v
    return [tape.gradient(y, v), [w.name for w in tape.watched_variables()]]


@program()
def constants_are_not_watched(tf, np):
    c = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = c * c
    return [tape.gradient(y, c), list(tape.watched_variables())]


@program()
def a_sum_with_a_variable_is_not_a_variable(tf, np):
    moved = tf.Variable(2.0) + 1.0
    with tf.GradientTape() as tape:
        y = moved**2
    return [type(moved).__name__, tape.gradient(y, moved)]


@program()
def watching_off(tf, np):
    a, b = tf.Variable(2.0), tf.Variable(3.0, name="b")
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        early = b * b
        tape.watch(b)
        y = a * b + early
    return {"g": tape.gradient(y, {"a": a, "b": b}), "names": [v.name for v in tape.watched_variables()]}


@program()
def watching_off_and_nothing_watched(tf, np):
    v = tf.Variable(2.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        y = v * v
    return [tape.gradient(y, v), list(tape.watched_variables())]


@program()
def watch_takes_lists_tuples_and_dicts(tf, np):
    a, b, c, d = (tf.constant(float(i)) for i in range(1, 5))
    with tf.GradientTape() as tape:
        tape.watch([a, (b, {"deep": c})])
        y = a * b * c * d
    return tape.gradient(y, [a, b, c, d])


@program()
def watch_nothing(tf, np):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        tape.watch([])
        y = x * x
    return tape.gradient(y, x)


@program()
def watching_twice_counts_once(tf, np):
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        tape.watch(x)
        y = x * x
    return tape.gradient(y, x)


@program()
def watched_after_its_use(tf, np):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        before = x * 3.0
        tape.watch(x)
        after = x * 5.0
    return [tape.gradient(before, x), tape.gradient(after, x)]


@program()
def watch_an_intermediate_result(tf, np):
    a = tf.constant(2.0)
    b = a * a
    with tf.GradientTape() as tape:
        tape.watch(b)
        y = b**3
    return tape.gradient(y, [a, b])


@program()
def watch_a_result_inside_the_tape(tf, np):
    a = tf.constant(2.0)
    with tf.GradientTape() as tape:
        b = a * a
        tape.watch(b)
        y = b * 7.0
    return tape.gradient(y, [a, b])


@program()
def two_constants_of_the_same_value(tf, np):
    a, b = tf.constant(2.0), tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = a * b + b
    return tape.gradient(y, [a, b])


@program()
def watched_variables_in_order_of_creation(tf, np):
    a, b, c = (tf.Variable(1.0, name=name) for name in "abc")
    with tf.GradientTape() as tape:
        _ = c * a
        _ = b + c
    watched = tape.watched_variables()
    return [type(watched).__name__, [v.name for v in watched]]


@program()
def watched_variables_while_recording(tf, np):
    a, b = tf.Variable(1.0, name="a"), tf.Variable(1.0, name="b")
    counts = []
    with tf.GradientTape() as tape:
        counts.append(len(tape.watched_variables()))
        _ = a * 1.0
        counts.append(len(tape.watched_variables()))
        _ = b * a
        counts.append(len(tape.watched_variables()))
    return counts


@program()
def watched_variables_are_the_variables(tf, np):
    a = tf.Variable(4.0, name="a")
    with tf.GradientTape() as tape:
        y = a * a
    (found,) = tape.watched_variables()
    found.assign_add(1.0)
    return [found is a, a, tape.gradient(y, found)]


@program()
def a_variable_that_is_gone_is_still_listed(tf, np):
    with tf.GradientTape() as tape:
        v = tf.Variable(3.0, name="gone")
        y = v * v
        del v
    return [[v.name for v in tape.watched_variables()], tape.gradient(y, tape.watched_variables())]


@program()
def reading_outside_does_not_watch(tf, np):
    a, b = tf.Variable(2.0, name="a"), tf.Variable(3.0, name="b")
    with tf.GradientTape() as tape:
        y = a * 2.0
    _ = b * 2.0
    return [v.name for v in tape.watched_variables()]


@program()
def printing_a_variable_inside_the_tape(tf, np):
    v = tf.Variable(2.0, name="v")
    with tf.GradientTape() as tape:
        text = str(v)
        y = v * 3.0
    return [text, tape.gradient(y, v)]


@program()
def an_inner_tape_watches_for_itself(tf, np):
    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            y = x * x
    return [outer.gradient(y, x), inner.gradient(y, x)]


@program()
def the_first_of_two_tapes_left_first(tf, np):
    x = tf.Variable(2.0)
    first, second = tf.GradientTape(), tf.GradientTape()
    first.__enter__()
    second.__enter__()
    y = x * x
    first.__exit__(None, None, None)
    z = y * x
    second.__exit__(None, None, None)
    return [first.gradient(y, x), second.gradient(z, x)]


@program()
def a_tape_entered_again_goes_on(tf, np):
    x = tf.Variable(2.0)
    tape = tf.GradientTape(persistent=True)
    with tape:
        y = x * x
    between = y * 10.0
    with tape:
        z = y * x
    return [tape.gradient(z, x), tape.gradient(between, x)]


@program()
def reset_forgets_everything(tf, np):
    x, c = tf.Variable(2.0), tf.constant(5.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(c)
        before = x * c
        tape.reset()
        after = x * c
    watched = [v.name for v in tape.watched_variables()]
    return [tape.gradient(before, x), tape.gradient(after, x), tape.gradient(after, c), watched]


@program()
def reset_in_the_middle_of_a_loss(tf, np):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        loss = x * x
        tape.reset()
        loss += x
    return tape.gradient(loss, x)


@program()
def stop_recording_leaves_a_hole(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        a = x * x
        with tape.stop_recording():
            b = a * x
        c = a * b
    return [tape.gradient(target, x) for target in (a, b, c)]


@program()
def stop_recording_ends_with_an_exception(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        try:
            with tape.stop_recording():
                raise KeyError("inside")
        except KeyError:
            pass
        y = x * x
    return tape.gradient(y, x)


@program()
def stop_recording_of_one_of_two(tf, np):
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        with inner.stop_recording():
            y = x * x
        z = y * x
    return [outer.gradient(z, x), inner.gradient(z, x)]


@program()
def an_exception_ends_the_tape(tf, np):
    x = tf.Variable(2.0)
    tape = tf.GradientTape()
    try:
        with tape:
            y = x * x
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    _ = x * 5.0
    return [tape.gradient(y, x), len(tape.watched_variables())]


@program()
def a_failing_op_inside_the_tape(tf, np):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * x
        try:
            _ = x + tf.constant([1.0, 2.0, 3.0])
        except Exception as error:
            name = type(error).__name__
        z = y * 2.0
    return [name, tape.gradient(z, x)]
