"""``tf.stop_gradient``: the value passes, the gradient does not."""

from conformance.program import program


@program()
def a_factor_held_constant(tf, np):
    x = tf.Variable([2.0, -3.0])
    with tf.GradientTape() as tape:
        y = tf.stop_gradient(x) * x
    return [y, tape.gradient(y, x)]


@program()
def everything_stopped(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.stop_gradient(x**3)
    return [y, tape.gradient(y, x)]


@program()
def the_straight_through_estimator(tf, np):
    x = tf.Variable([0.2, 0.7, 1.6])
    with tf.GradientTape() as tape:
        y = x + tf.stop_gradient(tf.round(x) - x)
    return [y, tape.gradient(y, x)]


@program()
def a_target_network(tf, np):
    online, target = tf.Variable([[0.5], [1.0]]), tf.Variable([[0.4], [1.1]])
    state, following = tf.constant([[1.0, 2.0]]), tf.constant([[0.5, -1.0]])
    with tf.GradientTape() as tape:
        goal = tf.stop_gradient(1.0 + 0.9 * tf.matmul(following, target))
        loss = tf.reduce_mean((goal - tf.matmul(state, online)) ** 2)
    return [loss, *tape.gradient(loss, [online, target])]


@program()
def a_stable_logsumexp(tf, np):
    x = tf.Variable([1000.0, 999.0, 0.0])
    with tf.GradientTape() as tape:
        top = tf.stop_gradient(tf.reduce_max(x))
        y = tf.math.log(tf.reduce_sum(tf.exp(x - top))) + top
    return [y, tape.gradient(y, x)]


@program()
def the_stopped_value_as_source(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        h = tf.stop_gradient(x * x)
        y = h * x
    return [tape.gradient(y, x), tape.gradient(y, h)]


@program()
def a_watched_stopped_value(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        h = tf.stop_gradient(x * x)
        tape.watch(h)
        y = h * x
    return [tape.gradient(y, x), tape.gradient(y, h)]


@program()
def of_a_list_and_of_ints(tf, np):
    return [tf.stop_gradient([1.0, 2.0]), tf.stop_gradient(tf.constant([1, 2])), tf.stop_gradient(tf.Variable(3.0))]


@program()
def second_order(tf, np):
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x**2 * tf.stop_gradient(x)
        g = inner.gradient(y, x)
    return [g, outer.gradient(g, x)]


@program()
def around_an_inner_gradient(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x**3
        z = tf.stop_gradient(inner.gradient(y, x)) * x
    return [z, outer.gradient(z, x)]
