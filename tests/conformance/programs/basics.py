"""Gradients of plain expressions, and the small training loops that people write first."""

from conformance.program import program


@program()
def cube_of_a_scalar(tf, np):
    x = tf.Variable(1.5)
    with tf.GradientTape() as tape:
        y = x**3
    return [y, tape.gradient(y, x)]


@program()
def result_is_a_tensor_with_shape_and_dtype(tf, np):
    x = tf.Variable([[1.0, 2.0, 3.0]])
    with tf.GradientTape() as tape:
        y = x * x + x
    g = tape.gradient(y, x)
    return {"g": g, "shape": g.shape, "dtype": g.dtype, "list": g.shape.as_list(), "numpy": g.numpy()}


@program()
def product_rule(tf, np):
    a, b = tf.Variable(3.0), tf.Variable(-2.0)
    with tf.GradientTape() as tape:
        y = a * b * a
    return tape.gradient(y, [a, b])


@program()
def quotient_rule(tf, np):
    a, b = tf.Variable([3.0, 1.0]), tf.Variable([-2.0, 4.0])
    with tf.GradientTape() as tape:
        y = (a - b) / (a + b)
    return [y, *tape.gradient(y, [a, b])]


@program()
def chain_of_functions(tf, np):
    x = tf.constant([0.1, 0.7, -1.2])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.exp(tf.sin(tf.tanh(x) * 2.0)) + tf.math.log1p(x * x)
    return [y, tape.gradient(y, x)]


@program()
def a_value_used_three_times(tf, np):
    x = tf.Variable(0.4)
    with tf.GradientTape() as tape:
        h = tf.sin(x)
        y = h * h + h / (1.0 + h)
    return [y, tape.gradient(y, x)]


@program()
def a_deep_chain(tf, np):
    x = tf.Variable(0.3)
    with tf.GradientTape() as tape:
        y = x
        for _ in range(150):
            y = y + 0.01 * tf.sin(y)
    return [y, tape.gradient(y, x)]


@program()
def a_wide_sum(tf, np):
    xs = [tf.Variable(float(i)) for i in range(12)]
    with tf.GradientTape() as tape:
        y = tf.add_n([x * float(i) for i, x in enumerate(xs)])
    return [y, *tape.gradient(y, xs)]


@program()
def broadcasting_sums_the_gradient(tf, np):
    row, column = tf.Variable([1.0, 2.0, 3.0]), tf.Variable([[10.0], [20.0]])
    with tf.GradientTape() as tape:
        y = row * column + row
    return [y, *tape.gradient(y, [row, column])]


@program()
def a_scalar_against_a_matrix(tf, np):
    s, m = tf.Variable(2.0), tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(m)
        y = s * m - s
    return tape.gradient(y, [s, m])


@program()
def a_length_one_axis(tf, np):
    a, b = tf.Variable([[[1.0]], [[2.0]]]), tf.Variable([[1.0, 2.0, 3.0]])
    with tf.GradientTape() as tape:
        y = a * b
    return [y.shape, *tape.gradient(y, [a, b])]


@program()
def a_python_function_in_between(tf, np):
    def smooth(z, steps):
        return z if steps == 0 else smooth(0.5 * (z + 2.0 / z), steps - 1)

    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = smooth(x, 4)
    return [y, tape.gradient(y, x)]


@program()
def a_list_comprehension(tf, np):
    x = tf.Variable([1.0, -2.0, 0.5])
    with tf.GradientTape() as tape:
        y = sum(x[i] * float(i + 1) for i in range(3))
    return [y, tape.gradient(y, x)]


@program()
def iterating_over_a_tensor(tf, np):
    x = tf.constant([2.0, 3.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = 1.0
        for part in x:
            y = y * part
    return [y, tape.gradient(y, x)]


@program()
def an_empty_tensor(tf, np):
    x = tf.Variable(tf.zeros([0, 3]))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x * 2.0)
    return [y, tape.gradient(y, x)]


@program()
def polynomial_at_several_points(tf, np):
    out = []
    for value in (-1.0, 0.0, 2.5):
        x = tf.constant(value)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = 4.0 * x**3 - 2.0 * x**2 + x - 7.0
        out.append([y, tape.gradient(y, x)])
    return out


@program()
def descent_on_a_quadratic(tf, np):
    x = tf.Variable([4.0, -3.0])
    path = []
    for _ in range(12):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(x - [1.0, 2.0]) * [0.5, 2.0])
        x.assign_sub(0.2 * tape.gradient(loss, x))
        path.append(float(loss))
    return {"x": x, "path": path}


@program()
def descent_with_momentum(tf, np):
    x, velocity = tf.Variable(5.0), tf.Variable(0.0, trainable=False)
    for _ in range(10):
        with tf.GradientTape() as tape:
            loss = x**2 + tf.sin(3.0 * x)
        velocity.assign(0.8 * velocity - 0.05 * tape.gradient(loss, x))
        x.assign_add(velocity)
    return [x, velocity]


@program()
def linear_regression(tf, np):
    x = tf.constant([[0.0], [1.0], [2.0], [3.0]])
    y = tf.constant([[1.0], [3.1], [4.9], [7.2]])
    w, b = tf.Variable([[0.0]]), tf.Variable([0.0])
    for _ in range(15):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ w + b - y) ** 2)
        for variable, gradient in zip([w, b], tape.gradient(loss, [w, b]), strict=True):
            variable.assign_sub(0.1 * gradient)
    return {"w": w, "b": b, "loss": loss}


@program()
def logistic_regression(tf, np):
    x = np.array([[0.2, 1.0], [1.5, -0.3], [-0.7, 0.4], [0.9, 0.9]], dtype=np.float32)
    labels = np.array([[1.0], [0.0], [1.0], [0.0]], dtype=np.float32)
    w, b = tf.Variable(tf.zeros([2, 1])), tf.Variable(0.0)
    for _ in range(10):
        with tf.GradientTape() as tape:
            logits = tf.matmul(x, w) + b
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
        dw, db = tape.gradient(loss, [w, b])
        w.assign_sub(0.7 * dw)
        b.assign_sub(0.7 * db)
    return [w, b, loss]


@program()
def two_layer_classifier(tf, np):
    x = np.linspace(-1.0, 1.0, 20, dtype=np.float32).reshape(5, 4)
    labels = [0, 2, 1, 1, 0]
    w1 = tf.Variable(np.cos(np.arange(24.0)).reshape(4, 6).astype(np.float32))
    w2 = tf.Variable(np.sin(np.arange(18.0)).reshape(6, 3).astype(np.float32))
    b1, b2 = tf.Variable(tf.zeros([6])), tf.Variable(tf.zeros([3]))
    losses = []
    for _ in range(4):
        with tf.GradientTape() as tape:
            hidden = tf.nn.relu(tf.matmul(x, w1) + b1)
            logits = tf.matmul(hidden, w2) + b2
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        variables = [w1, b1, w2, b2]
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(0.3 * gradient)
        losses.append(loss)
    return {"losses": losses, "w2": w2, "b1": b1, "correct": tf.equal(tf.argmax(logits, axis=1), labels)}


@program()
def gradient_with_respect_to_the_input(tf, np):
    image = tf.Variable([[0.1, 0.5], [0.9, 0.3]])
    w = tf.constant([[1.0, -2.0], [0.5, 3.0]])
    with tf.GradientTape() as tape:
        score = tf.reduce_sum(tf.tanh(image @ w)[:, 1])
    return tape.gradient(score, image)


@program()
def the_callers_array_may_change_afterwards(tf, np):
    array = np.array([1.0, 2.0], dtype=np.float32)
    x, v = tf.constant(array), tf.Variable(array)
    array[:] = 100.0
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * v
    array[:] = -5.0
    return [y, *tape.gradient(y, [x, v])]


@program()
def a_result_may_be_changed_by_the_caller(tf, np):
    x = tf.Variable([1.0, 2.0])
    mine = x.numpy()
    mine[:] = 50.0
    with tf.GradientTape() as tape:
        y = x * x
    return [x, tape.gradient(y, x)]
