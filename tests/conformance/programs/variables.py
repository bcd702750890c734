"""Variables: their names, dtypes and shapes; assignments, inside tapes and outside."""

from conformance.probes import raises
from conformance.program import program


@program()
def names(tf, np):
    variables = [
        tf.Variable(1.0),
        tf.Variable(1.0, name="w"),
        tf.Variable(1.0, name="w"),
        tf.Variable(1.0, name="outer/inner"),
        tf.Variable(1.0, name=None),
    ]
    return [v.name for v in variables]


@program()
def what_a_variable_knows(tf, np):
    v = tf.Variable([[1.0, 2.0, 3.0]], trainable=False, name="v")
    return [v.shape, v.dtype, v.trainable, v.numpy(), v.get_shape(), type(v).__name__, isinstance(v, tf.Variable)]


@program()
def dtypes_of_initial_values(tf, np):
    values = [1, 1.5, True, [1, 2.5], np.array([1.5]), np.array([1], np.int8), tf.constant([2.0])]
    return [tf.Variable(value) for value in values]


@program()
def an_asked_for_dtype(tf, np):
    return [
        tf.Variable(1, dtype=tf.float64),
        tf.Variable([1.5], dtype=tf.float16),
        tf.Variable(np.array([1.5, 2.5]), dtype=tf.float32),
        raises(lambda: tf.Variable(1.5, dtype=tf.int32)),
        raises(lambda: tf.Variable(tf.constant([1]), dtype=tf.float32)),
    ]


@program()
def initial_values_that_are_none(tf, np):
    return [
        raises(lambda: tf.Variable(None)),
        raises(lambda: tf.Variable([[1.0], [2.0, 3.0]])),
        raises(lambda: tf.Variable({"a": 1.0})),
    ]


@program()
def a_variable_of_a_variable(tf, np):
    v = tf.Variable([1.0, 2.0])
    w = tf.Variable(v)
    v.assign([5.0, 6.0])
    return [v, w]


@program()
def an_initial_value_from_a_function(tf, np):
    return tf.Variable(lambda: tf.ones([2]) * 3.0)


@program()
def value_is_a_snapshot(tf, np):
    v = tf.Variable([1.0, 2.0])
    first, second = v.value(), v.read_value()
    v.assign([5.0, 6.0])
    return [first, second, v.value(), tf.convert_to_tensor(v), tf.identity(v)]


@program()
def assign(tf, np):
    v = tf.Variable([1.0, 2.0])
    steps = []
    for value in ([3, 4], np.array([5.5, 6.5]), tf.constant([7.0, 8.0]), tf.Variable([9.0, 10.0]), (1.0, 2.0)):
        v.assign(value)
        steps.append(v.numpy())
    return steps


@program()
def assign_add_and_assign_sub(tf, np):
    v = tf.Variable([1.0, 2.0])
    v.assign_add([10.0, 20.0])
    v.assign_sub(np.array([1, 1]))
    v.assign_add(v)
    return v


@program()
def an_assign_gives_the_new_value(tf, np):
    v = tf.Variable([1.0, 2.0])
    sums = [v.assign([2.0, 3.0]) + 0.0, v.assign_add([1.0, 1.0]) + 0.0, v.assign_sub([0.5, 0.5]) + 0.0]
    return [sums, v.assign([0.0, 0.0], read_value=False), v]


@program()
def the_result_of_an_assign_follows_the_variable(tf, np):
    v = tf.Variable([1.0, 2.0])
    result = v.assign([2.0, 3.0])
    v.assign_add([10.0, 10.0])
    return [result + 0.0, result.shape, result.dtype, isinstance(result, tf.Variable), result is v]


@program()
def an_int_variable_counts(tf, np):
    step = tf.Variable(0)
    for _ in range(3):
        step.assign_add(1)
    return [step, step.numpy(), int(step), step + 1]


@program()
def assignments_that_do_not_fit(tf, np):
    v = tf.Variable([1.0, 2.0])
    return [
        raises(lambda: v.assign([1.0, 2.0, 3.0])),
        raises(lambda: v.assign(1.0)),
        raises(lambda: v.assign(tf.constant([1, 2]))),
        raises(lambda: v.assign_add([[1.0, 2.0]])),
        raises(lambda: v.assign_sub(1.0)),
        raises(lambda: v.assign(None)),
        raises(lambda: tf.Variable(1).assign(1.5)),
        v,
    ]


@program()
def operators_do_not_assign(tf, np):
    v = tf.Variable(2.0)

    def increment():
        w = v
        w += 1.0

    def decrement():
        w = v
        w -= 1.0

    def scale():
        w = v
        w *= 2.0

    return [raises(increment, "assign_add"), raises(decrement, "assign_sub"), raises(scale, "assign"), v]


@program()
def a_variable_does_not_hash(tf, np):
    v, w = tf.Variable(1.0), tf.Variable(1.0)
    found = {v.ref(): "v", w.ref(): "w"}
    return [raises(lambda: hash(v), "Variable is unhashable"), found[v.ref()], v.ref() == w.ref(), v.ref().deref() is v]


@program()
def a_variable_in_boolean_and_numeric_places(tf, np):
    v, i = tf.Variable(2.5), tf.Variable(3)
    return [float(v), int(v), bool(v), int(i), bool(tf.Variable(0)), np.sqrt(tf.Variable(4.0)), np.asarray(v)]


@program()
def comparisons_of_variables(tf, np):
    v, w = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 3.0])
    return [v == w, v != w, v < w, v >= 2.0, v == tf.constant([1.0, 2.0, 3.0])]


@program()
def an_assign_inside_the_tape_cuts_nothing(tf, np):
    v = tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        y = v * v
        v.assign(5.0)
        z = 3.0 * v
        w = v * v
    return [tape.gradient(y, v), tape.gradient(z, v), tape.gradient(w, v), tape.gradient([y, z, w], v)]


@program()
def an_assign_does_not_carry_the_gradient(tf, np):
    a, b = tf.Variable(2.0), tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        b.assign(a * a)
        y = b * 3.0
    return [b, tape.gradient(y, a), tape.gradient(y, b)]


@program()
def assign_add_does_not_carry_the_gradient(tf, np):
    a, b = tf.Variable(2.0), tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        result = b.assign_add(a * a)
        y = result * b
    return [y, tape.gradient(y, [a, b])]


@program()
def assign_sub_inside_the_tape(tf, np):
    v = tf.Variable([3.0, 4.0])
    with tf.GradientTape() as tape:
        before = v * v
        v.assign_sub([1.0, 1.0])
        after = v * v
        y = before - after
    return [y, tape.gradient(y, v), v]


@program()
def a_read_taken_before_the_tape(tf, np):
    v = tf.Variable(3.0)
    early = v.value()
    with tf.GradientTape() as tape:
        y = early * v
    return tape.gradient(y, [v, early])


@program()
def value_inside_the_tape_is_connected(tf, np):
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = v.value() * v.read_value() + tf.identity(v) + tf.convert_to_tensor(v)
    return tape.gradient(y, v)


@program()
def a_variable_made_inside_the_tape(tf, np):
    with tf.GradientTape() as tape:
        v = tf.Variable([1.0, 2.0])
        y = v * 3.0
    return tape.gradient(y, v)


@program()
def a_variable_made_of_a_watched_value(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        v = tf.Variable(x * 3.0)
        y = v * x
    return tape.gradient(y, [x, v])


@program()
def assign_copies_the_callers_array(tf, np):
    array = np.array([1.0, 2.0], dtype=np.float32)
    v = tf.Variable([0.0, 0.0])
    v.assign(array)
    array[:] = 9.0
    return v


@program()
def an_untrained_step_counter_in_the_loss(tf, np):
    x, step = tf.Variable(2.0), tf.Variable(0, trainable=False)
    gradients = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            step.assign_add(1)
            y = x * tf.cast(step, tf.float32)
        gradients.append(tape.gradient(y, x))
    return [gradients, step]


@program()
def exponential_moving_averages(tf, np):
    v, w, count = tf.Variable([1.0, 2.0], name="v"), tf.Variable(3.0, tf.float64), tf.Variable(1)
    average = tf.train.ExponentialMovingAverage(0.9)
    results = [average.apply([v]), average.average(w), average.average_name(v), average.name, average.average(v)]
    v.assign([2.0, 4.0])
    average.apply([v, w])
    results += [average.average(v), average.average(w), average.average(v).trainable]
    counted = tf.train.ExponentialMovingAverage(0.9, num_updates=tf.Variable(3))
    counted.apply([v])
    v.assign([0.0, 8.0])
    counted.apply([v])
    inside = tf.train.ExponentialMovingAverage(tf.constant(0.5), zero_debias=True)

    @tf.function
    def step():
        v.assign_add([1.0, 1.0])
        inside.apply([v])
        return inside.average(v)

    results += [counted.average(v), step(), step(), step()]
    return [
        *results,
        raises(lambda: average.apply([count])),
        raises(lambda: average.apply([tf.constant(1.0)])),
        average.apply(),
    ]


@program()
def timestamps(tf, np):
    first = tf.timestamp()
    read = tf.function(lambda: tf.timestamp())
    return [first.dtype.name, first > 1.6e9, read() >= first, read() <= tf.timestamp(), first.shape]
