"""tf.TensorArray: eager, in loops on tensors, in AutoGraph's loops, and its gradients."""

from conformance.probes import gradients, raises
from conformance.program import program


@program()
def write_read_and_stack(tf, np):
    def f(x):
        array = tf.TensorArray(tf.float32, size=3, clear_after_read=False)
        for i in range(3):
            array = array.write(i, x * (i + 1.0))
        return array.read(1) + tf.reduce_sum(array.stack(), 0), array.size()

    return [
        gradients(tf, lambda x: f(x)[0], [1.0, 2.0]),
        f(tf.constant([1.0, 2.0])),
        gradients(tf, tf.function(lambda x: f(x)[0]), [1.0, 2.0]),
    ]


@program()
def unstack_gather_and_concat(tf, np):
    def f(x):
        array = tf.TensorArray(tf.float32, size=3, clear_after_read=False).unstack(x)
        return array.gather([2, 0]) * 2.0, array.concat(), array.stack()

    x = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    return [gradients(tf, f, x), gradients(tf, tf.function(f), x)]


@program()
def scatter_and_split(tf, np):
    def f(x):
        scattered = tf.TensorArray(tf.float32, size=3).scatter([2, 0, 1], x)
        split = tf.TensorArray(tf.float32, size=2, infer_shape=False, clear_after_read=False).split(x, [1, 2])
        return scattered.stack(), split.read(1), split.concat()

    return gradients(tf, f, [1.0, 2.0, 3.0])


@program()
def dynamic_size(tf, np):
    array = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
    sizes = [array.size()]
    for i in range(4):
        array = array.write(i, i * i)
    sizes.append(array.size())
    return [sizes, array.stack(), array.dynamic_size, array.dtype, array.element_shape]


@program()
def writes_that_ignore_the_result(tf, np):
    array = tf.TensorArray(tf.float32, size=2)
    array.write(0, 1.0)
    array.write(1, 2.0)
    return array.stack()


@program()
def what_is_refused(tf, np):
    array = tf.TensorArray(tf.float32, size=2, element_shape=[2])
    array.write(0, [1.0, 2.0])
    fixed = tf.TensorArray(tf.float32, size=1)
    return [
        raises(lambda: array.write(1, [1.0])),
        raises(lambda: array.write(5, [1.0, 2.0])),
        raises(lambda: array.read(7)),
        raises(lambda: array.read(-1)),
        array.read(0),
        raises(lambda: array.read(0)),
        raises(lambda: fixed.unstack([1.0, 2.0])),
    ]


@program()
def unwritten_elements_are_zeros(tf, np):
    array = tf.TensorArray(tf.float32, size=3, element_shape=[2])
    array = array.write(1, [1.0, 2.0])
    return array.stack()


@program()
def filled_in_a_loop_on_a_range(tf, np):
    @tf.function
    def f(x):
        array = tf.TensorArray(tf.float32, size=4)
        for i in tf.range(4):
            array = array.write(i, x * tf.cast(i, tf.float32))
            x = x * 1.5
        return array.stack()

    return gradients(tf, f, [1.0, 2.0])


@program()
def grown_in_a_loop_on_a_range(tf, np):
    @tf.function
    def f(x):
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(3):
            array = array.write(i, x)
            x = x * 2.0
        return array.stack()

    return gradients(tf, f, 1.5)


@program()
def grown_in_a_loop_of_unknown_length(tf, np):
    @tf.function
    def f(x):
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        i = 0
        while x < 10.0:
            array = array.write(i, x)
            x = x * 2.0
            i += 1
        return array.stack()

    return [gradients(tf, f, 1.5), gradients(tf, f, 4.0)]


@program()
def filled_until_a_condition_holds(tf, np):
    @tf.function
    def f(x):
        array = tf.TensorArray(tf.float32, size=5, element_shape=[])
        for i in tf.range(5):
            if x > 8.0:
                break
            array = array.write(i, x)
            x = x * 2.0
        return array.stack()

    return [gradients(tf, f, 1.5), gradients(tf, f, 0.1)]


@program()
def outputs_of_a_recurrent_network(tf, np):
    random = np.random.RandomState(3)
    w = tf.Variable(random.normal(size=(3, 3)) * 0.5)
    x = tf.constant(random.normal(size=(4, 2, 3)))

    @tf.function
    def run(x):
        states = tf.TensorArray(tf.float64, size=4)
        inputs = tf.TensorArray(tf.float64, size=4).unstack(x)
        h = tf.zeros([2, 3], tf.float64)
        for t in tf.range(4):
            h = tf.tanh(inputs.read(t) + tf.matmul(h, w))
            states = states.write(t, h)
        return tf.transpose(states.stack(), [1, 0, 2])

    with tf.GradientTape() as tape:
        y = run(x)
        loss = tf.reduce_sum(y * y)
    return [y, tape.gradient(loss, w)]


@program()
def in_a_while_loop(tf, np):
    @tf.function
    def f(x):
        array = tf.TensorArray(tf.float32, size=3)
        _, array, _ = tf.while_loop(
            lambda i, array, x: i < 3,
            lambda i, array, x: (i + 1, array.write(i, x), x * x),
            (tf.constant(0), array, x),
        )
        return array.stack()

    def eager(x):
        array = tf.TensorArray(tf.float32, size=3)
        _, array, _ = tf.while_loop(
            lambda i, array, x: i < 3,
            lambda i, array, x: (i + 1, array.write(i, x), x * x),
            (tf.constant(0), array, x),
        )
        return array.stack()

    return [gradients(tf, f, 1.5), gradients(tf, eager, 1.5)]


@program()
def in_a_branch(tf, np):
    @tf.function
    def f(x):
        array = tf.TensorArray(tf.float32, size=2).unstack([1.0, 2.0])
        if x > 0.0:
            array = array.write(0, x * 3.0)
        else:
            array = array.write(1, x)
        return array.stack()

    return [gradients(tf, f, 2.0), gradients(tf, f, -2.0)]


@program()
def a_rollout_with_rewards(tf, np):
    policy = tf.Variable([0.2, -0.4])

    @tf.function
    def returns(state, discount):
        rewards = tf.TensorArray(tf.float32, size=6)
        for t in tf.range(6):
            action = tf.tanh(tf.reduce_sum(policy * state))
            state = tf.stack([state[0] + 0.1 * state[1], state[1] + 0.1 * action])
            rewards = rewards.write(t, -tf.reduce_sum(state**2))
        rewards = rewards.stack()
        totals = tf.TensorArray(tf.float32, size=6)
        total = tf.constant(0.0)
        for t in tf.range(5, -1, -1):
            total = rewards[t] + discount * total
            totals = totals.write(t, total)
        return totals.stack()

    with tf.GradientTape() as tape:
        y = returns(tf.constant([1.0, 0.5]), tf.constant(0.9))
        loss = tf.reduce_mean(y)
    return [y, tape.gradient(loss, policy)]
