"""``tf.keras.layers.Dense``: what it builds, what it computes, and the gradients of its variables."""

from conformance.probes import raises
from conformance.program import program


def built(tf, np, units, width, **options):
    """A layer whose kernel and bias hold known numbers."""
    layer = tf.keras.layers.Dense(units, **options)
    layer(tf.zeros([1, width]))
    layer.kernel.assign(np.cos(np.arange(width * units)).reshape(width, units).astype(np.float32))
    if layer.use_bias:
        layer.bias.assign(np.linspace(-0.5, 0.5, units, dtype=np.float32))
    return layer


@program()
def the_variables_it_builds(tf, np):
    layer = tf.keras.layers.Dense(3, name="hidden")
    before = [layer.built, len(layer.weights)]
    y = layer(tf.ones([2, 4]))
    shapes = [[v.name, v.path, v.shape, v.trainable] for v in layer.weights]
    return [before, layer.built, layer.name, layer.units, y.shape, shapes, layer.bias.numpy()]


@program()
def the_lists_of_variables(tf, np):
    layer = tf.keras.layers.Dense(2)
    layer(tf.ones([1, 3]))
    kernel, bias = layer.trainable_variables
    lists = [layer.weights, layer.variables, layer.trainable_weights, layer.non_trainable_variables]
    return [
        [len(each) for each in lists],
        kernel is layer.kernel,
        bias is layer.bias,
        [w.shape for w in layer.get_weights()],
    ]


@program()
def a_kernel_within_its_bounds(tf, np):
    layer = tf.keras.layers.Dense(40)
    layer.build((None, 60))
    kernel = layer.kernel.numpy()
    limit = np.sqrt(6.0 / 100.0)
    inside = bool(np.all(np.abs(kernel) <= limit))
    return [kernel.dtype.name, inside, bool(np.abs(kernel).max() > 0.9 * limit), bool(abs(kernel.mean()) < 0.05)]


@program()
def what_it_computes(tf, np):
    layer = built(tf, np, 2, 3)
    return [layer(tf.constant([[1.0, 2.0, 3.0]])), layer(np.ones([2, 3])), layer(tf.ones([2, 1, 3]))]


@program()
def activations(tf, np):
    x = tf.constant([[1.0, -2.0, 0.5]])
    names = [None, "linear", "relu", "sigmoid", "tanh", "softmax", "softplus", "elu"]
    out = {}
    for name in names:
        layer = built(tf, np, 2, 3, activation=name)
        with tf.GradientTape() as tape:
            y = layer(x)
            loss = tf.reduce_sum(y * y)
        out[str(name)] = [y, *tape.gradient(loss, layer.trainable_variables)]
    return out


@program()
def an_activation_that_is_a_function(tf, np):
    layer = built(tf, np, 2, 3, activation=tf.nn.tanh)
    other = built(tf, np, 2, 3, activation=lambda x: x * x)
    x = tf.constant([[1.0, -2.0, 0.5]])
    return [layer(x), other(x)]


@program()
def without_a_bias(tf, np):
    layer = built(tf, np, 2, 3, use_bias=False)
    with tf.GradientTape() as tape:
        y = layer(tf.constant([[1.0, 2.0, 3.0]]))
    return [layer.bias, [v.name for v in layer.weights], y, *tape.gradient(y, layer.trainable_variables)]


@program()
def initializers(tf, np):
    zeros = tf.keras.layers.Dense(2, kernel_initializer="zeros", bias_initializer="ones")
    ones = tf.keras.layers.Dense(2, kernel_initializer="ones")
    return [zeros(tf.ones([1, 3])), ones(tf.ones([1, 3]))]


@program()
def the_gradient_of_the_input(tf, np):
    layer = built(tf, np, 2, 3, activation="sigmoid")
    x = tf.Variable([[1.0, 2.0, 3.0], [0.0, -1.0, 0.5]])
    with tf.GradientTape() as tape:
        y = layer(x)
    return tape.gradient(y, {"x": x, "kernel": layer.kernel, "bias": layer.bias})


@program()
def two_layers(tf, np):
    hidden, output = built(tf, np, 4, 3, activation="relu"), built(tf, np, 1, 4)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((output(hidden(tf.constant([[1.0, 2.0, 3.0], [-1.0, 0.0, 2.0]]))) - 1.0) ** 2)
    variables = hidden.trainable_variables + output.trainable_variables
    return [loss, *tape.gradient(loss, variables)]


@program()
def training(tf, np):
    layer = built(tf, np, 2, 3)
    x, labels = tf.constant([[1.0, 0.0, 0.5], [0.0, 1.0, -0.5]]), [1, 0]
    losses = []
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=layer(x)))
        for variable, gradient in zip(
            layer.trainable_variables, tape.gradient(loss, layer.trainable_variables), strict=True
        ):
            variable.assign_sub(0.5 * gradient)
        losses.append(loss)
    return [losses, *layer.get_weights()]


@program()
def second_order(tf, np):
    layer = built(tf, np, 2, 3, activation="tanh")
    x = tf.Variable([[1.0, 2.0, 3.0]])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(layer(x))
        slope = inner.gradient(y, x)
        penalty = tf.reduce_sum(slope * slope)
    return outer.gradient(penalty, layer.trainable_variables)


@program()
def called_first_inside_the_tape(tf, np):
    layer = tf.keras.layers.Dense(2, kernel_initializer="ones")
    with tf.GradientTape() as tape:
        y = layer(tf.constant([[1.0, 2.0]]))
    return [y, *tape.gradient(y, layer.trainable_variables)]


@program()
def its_variables_are_watched(tf, np):
    layer = tf.keras.layers.Dense(2, name="seen")
    with tf.GradientTape() as tape:
        layer(tf.ones([1, 3]))
    return sorted(v.name for v in tape.watched_variables())


@program()
def a_frozen_layer(tf, np):
    layer = tf.keras.layers.Dense(2, trainable=False, kernel_initializer="ones")
    x = tf.Variable([[1.0, 2.0]])
    with tf.GradientTape() as tape:
        y = layer(x)
    return [len(layer.trainable_variables), len(layer.non_trainable_variables), tape.gradient(y, [x, layer.kernel])]


@program()
def its_variables_in_expressions(tf, np):
    layer = built(tf, np, 2, 3)
    with tf.GradientTape() as tape:
        penalty = tf.reduce_sum(layer.kernel**2) + tf.reduce_sum(tf.abs(layer.bias)) * 2.0
    return [penalty, *tape.gradient(penalty, layer.trainable_variables)]


@program()
def get_and_set_weights(tf, np):
    layer = built(tf, np, 2, 3)
    layer.set_weights([np.ones([3, 2]), np.array([1.0, 2.0])])
    wrong = [raises(lambda: layer.set_weights([np.ones([3, 2])])), raises(lambda: layer.kernel.assign(np.ones([2, 3])))]
    return [*layer.get_weights(), wrong, layer.count_params()]


@program()
def inputs_that_do_not_fit(tf, np):
    layer = built(tf, np, 2, 3)
    return [raises(lambda: layer(tf.ones([1, 4]))), raises(lambda: layer(tf.ones([3])))]


@program()
def arguments_that_make_no_layer(tf, np):
    dense = tf.keras.layers.Dense
    calls = [
        lambda: dense(0),
        lambda: dense(-3),
        lambda: dense("four"),
        lambda: dense(2.0),
        lambda: dense(),
        lambda: dense(2, activation="nonsense"),
        lambda: dense(2, kernel_initializer="nonsense"),
        lambda: dense(2, nonsense=1),
        lambda: dense(2).kernel,
    ]
    return [raises(call) for call in calls]


@program(fresh=True)
def names_count_up(tf, np):
    return [tf.keras.layers.Dense(1).name for _ in range(3)] + [tf.keras.layers.Dense(1, name="mine").name]
