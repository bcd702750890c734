"""Where Keras and TensorFlow meet: variables of Keras in ops, tapes, modules, functions and copies."""

import copy
import pickle

from conformance.keras_models import classes, known, numbers, perceptron
from conformance.probes import message, raises
from conformance.program import program


def variable(tf, value=(1.0, 2.0), **options):
    return tf.keras.Variable(list(value), name="v", **options)


@program()
def what_a_variable_is(tf, np):
    v = variable(tf)
    kinds = [tf.is_tensor(v), isinstance(v, tf.Variable), isinstance(v, tf.Tensor), isinstance(v.value, tf.Variable)]
    return [
        kinds,
        v.shape,
        v.dtype,
        v.ndim,
        v.name,
        v.path,
        v.value.name,
        v.trainable,
        v.numpy(),
        raises(lambda: hash(v)),
    ]


@program()
def conversions_of_a_variable(tf, np):
    v = variable(tf)
    return [
        tf.convert_to_tensor(v),
        tf.constant(v),
        tf.Variable(v),
        tf.identity(v),
        np.asarray(v.numpy()),
        raises(lambda: tf.convert_to_tensor(v, tf.float64), "Incompatible type conversion requested"),
        raises(lambda: bool(v), "cannot be used as a boolean"),
        float(variable(tf, [3.0])[0]),
    ]


@program()
def arithmetic_of_a_variable(tf, np):
    v, x = variable(tf), tf.constant([3.0, 4.0])
    return [v + 1, 1 - v, v * x, x * v, x / v, v**2, -v, abs(v), v[1], v > 1.5, v == v]


@program()
def ops_on_a_variable(tf, np):
    v = variable(tf)
    return [
        tf.tensordot(v, v, 1),
        tf.where(v > 1.5, v, 0.0),
        tf.cast(v, tf.float16),
        tf.shape(v),
        tf.map_fn(lambda x: x * 2, v),
        tf.reduce_sum(v),
        tf.einsum("i,j->ij", v, v),
        tf.clip_by_value(v, 0.0, 1.5),
        tf.nn.softmax(v),
        tf.gather(v, [1, 0]),
        tf.numpy_function(lambda x: x * 2, [v], tf.float32),
        tf.debugging.assert_all_finite(v, "finite"),
        tf.reshape(v, (2, 1)),
        tf.norm(v),
        tf.zeros_like(v),
        tf.one_hot(tf.cast(v, tf.int32), 3),
    ]


@program()
def control_flow_on_a_variable(tf, np):
    v = variable(tf)
    return [
        tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), (0, v))[1],
        tf.cond(tf.reduce_sum(v) > 2, lambda: v * 2.0, lambda: v * 3.0),
        tf.scan(lambda a, x: a + x, v),
        tf.foldl(lambda a, x: a * x, v),
        tf.vectorized_map(lambda x: x * x, v),
    ]


@program()
def sources_of_many_kinds(tf, np):
    v, w = variable(tf), tf.Variable([3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(v * v * w)
    return [
        tape.gradient(y, v),
        tape.gradient(y, [v, w]),
        tape.gradient(y, {"v": v, "inner": (w, [v])}),
        tape.gradient(y, v.value),
        tape.jacobian(y, v),
        tape.gradient(tf.constant(1.0), v),
        len(tape.watched_variables()),
    ]


@program()
def variables_that_are_not_trainable(tf, np):
    v = variable(tf, trainable=False)
    with tf.GradientTape() as tape:
        y = v * v
    first = tape.gradient(y, v)
    w = variable(tf)
    w.trainable = False
    with tf.GradientTape() as tape:
        y = w * w
    return [first, tape.gradient(y, w)]


@program()
def jacobians_of_a_layer(tf, np):
    dense = known(np, tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2, activation="tanh")]))
    x = tf.constant(numbers(np, 4, 3))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = dense(x)
    return [tape.jacobian(y, dense.trainable_variables), tape.batch_jacobian(y, x)]


@program()
def second_order(tf, np):
    dense = known(np, tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2, activation="tanh")]))
    x = tf.constant(numbers(np, 4, 3))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(dense(x))
        slope = inner.gradient(y, x)
        penalty = tf.reduce_sum(tf.square(slope))
    return [slope, outer.gradient(penalty, dense.trainable_variables)]


@program()
def hessian_of_a_kernel(tf, np):
    dense = known(np, tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1, activation="sigmoid")]))
    kernel = dense.trainable_variables[0]
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(dense(numbers(np, 3, 2)))
        slope = inner.gradient(y, kernel)
    return outer.jacobian(slope, kernel)


@program()
def forward_mode_through_a_layer(tf, np):
    dense = known(np, tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2, activation="tanh")]))
    x, kernel = tf.constant(numbers(np, 4, 3)), dense.trainable_variables[0]
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as by_input:
        first = by_input.jvp(dense(x))
    with tf.autodiff.ForwardAccumulator(kernel.value, tf.ones(kernel.shape)) as by_kernel:
        second = by_kernel.jvp(dense(x))
    return [first, second]


@program()
def layers_inside_a_module(tf, np):
    class Owner(tf.Module):
        def __init__(self):
            super().__init__()
            self.dense = tf.keras.layers.Dense(2)
            self.dense.build((None, 3))
            self.own, self.keras = tf.Variable(1.0, name="own"), variable(tf)

        @tf.function
        def __call__(self, x):
            return self.dense(x) * self.own

    owner = Owner()
    known(np, owner.dense)
    return [[v.name for v in owner.variables], len(owner.submodules), owner(numbers(np, 4, 3))]


@program()
def variables_of_tensorflow_inside_a_layer(tf, np):
    class Scale(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.scale = tf.Variable([1.0, 2.0])
            self.shift = self.add_weight(shape=(2,), initializer="ones", name="shift")

        def call(self, x):
            return x * self.scale + self.shift

    layer = Scale()
    x = tf.constant(numbers(np, 3, 2))
    with tf.GradientTape() as tape:
        y = layer(x)
    found = tape.gradient(y, [layer.scale, layer.shift])
    return [y, found, len(layer.trainable_variables)]


@program()
def deep_copies(tf, np):
    model = perceptron(tf, np)
    again = copy.deepcopy(model)
    again.layers[0].kernel.assign(again.layers[0].kernel * 2.0)
    x = numbers(np, 3, 6)
    v = variable(tf)
    w = copy.deepcopy(v)
    w.assign([5.0, 5.0])
    return [model(x), again(x), v.numpy(), w.numpy()]


@program()
def pickles(tf, np):
    model = perceptron(tf, np)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301  # its own bytes
    return [again(numbers(np, 3, 6))]


@program()
def assignments(tf, np):
    v = variable(tf)
    results = [v.assign([3, 4]), v.assign_add([1.0, 1.0]), v.assign_sub(tf.constant([0.5, 0.5]))]
    v.value.assign([7.0, 8.0])
    return [
        *map(tf.convert_to_tensor, results),
        v.numpy(),
        raises(lambda: v.assign([1.0]), "must match"),
        tf.Variable([0.0, 0.0]).assign(v),
    ]


@program()
def a_function_assigns(tf, np):
    v = variable(tf)

    @tf.function
    def step(x):
        v.assign_add(x)
        return v * 2.0

    return [step(tf.ones(2)), step(tf.ones(2)), v.numpy(), step.experimental_get_tracing_count()]


@program()
def a_variable_as_an_argument_of_a_function(tf, np):
    @tf.function
    def double(x):
        return x * 2.0

    return [double(variable(tf)), double(variable(tf, [5.0, 6.0]))]


@program()
def a_layer_made_in_a_function(tf, np):
    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = tf.keras.layers.Dense(2, kernel_initializer="ones")

        @tf.function
        def call(self, x):
            return self.dense(x)

    model = Model()
    return [model(tf.ones((1, 3))), model(tf.ones((2, 3))), len(model.trainable_variables)]


@program()
def custom_gradients_in_layers(tf, np):
    @tf.custom_gradient
    def clipped(x):
        return x, lambda dy: tf.clip_by_value(dy, -0.1, 0.1)

    model = perceptron(tf, np)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(clipped(model(numbers(np, 3, 6)))))
    return tape.gradient(loss, model.trainable_variables)


@program()
def a_gradient_that_stops(tf, np):
    model = perceptron(tf, np)
    x = numbers(np, 3, 6)
    with tf.GradientTape() as tape:
        hidden = tf.stop_gradient(model.layers[0](x))
        loss = tf.reduce_sum(tf.square(model.layers[2](hidden)))
    return tape.gradient(loss, model.trainable_variables)


@program()
def recomputed_layers(tf, np):
    model = perceptron(tf, np)
    x = tf.constant(numbers(np, 3, 6))

    @tf.recompute_grad
    def forward(value):
        return model.layers[0](value)

    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(tf.square(forward(x)))
    return tape.gradient(loss, [x, *model.layers[0].trainable_variables])


@program()
def ops_of_keras(tf, np):
    ops = tf.keras.ops
    x = tf.constant(numbers(np, 3, 4))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = ops.sum(ops.square(ops.relu(ops.matmul(x, ops.transpose(x)))))
    return [
        tape.gradient(y, x),
        ops.mean(x, axis=0),
        ops.var(x),
        ops.std(x, axis=1),
        ops.concatenate([x, x], axis=1),
        ops.stack([x, x]),
        ops.where(x > 0, x, 0.0),
        ops.logsumexp(x, axis=1),
        ops.one_hot([1, 2], 4),
        ops.shape(x),
        ops.convert_to_numpy(x),
        ops.stop_gradient(x),
        ops.cast(x, "int32"),
        ops.scatter([[1]], [[1.0, 2.0]], (3, 2)),
        ops.slice(x, (1, 1), (2, 2)),
        ops.slice_update(x, (1, 1), ops.ones((2, 2))),
        ops.cond(True, lambda: x, lambda: -x),
        ops.fori_loop(0, 3, lambda i, v: v + 1.0, x),
        ops.while_loop(lambda i: i < 5, lambda i: i + 1, 0),
        ops.vectorized_map(lambda v: v * 2, x),
        ops.map(lambda v: v * 2, x),
        ops.einsum("ij,kj->ik", x, x),
        ops.expand_dims(x, 0),
        ops.clip(x, -1, 1),
        ops.normalize(x),
        ops.norm(x),
        [ops.argmax(x), ops.nanargmin(x), ops.argmin(x, axis=1)],
    ]


@program()
def scans_and_branches_of_keras(tf, np):
    ops = tf.keras.ops
    x, w = tf.constant(numbers(np, 5, 3)), variable(tf)
    start = tf.zeros(3)

    def step(carry, row):
        carry = ops.tanh(carry * 0.5 + row)
        return carry, carry * row

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        last, outputs = ops.scan(step, start, x)
        total = ops.sum(last) + ops.sum(outputs)
        product = ops.sum(ops.associative_scan(lambda a, b: a * b, x))
    recurrent = tf.function(lambda rows: ops.scan(step, start, rows, reverse=True))
    return [
        [last, outputs, tape.gradient(total, x), tape.gradient(product, x)],
        recurrent(x),
        ops.scan(lambda carry, _: (carry * 2.0, carry), tf.constant(1.0), length=4),
        ops.scan(step, start, x, unroll=2)[0],
        ops.associative_scan(lambda a, b: a + b, x, reverse=True, axis=1),
        [ops.switch(i, [lambda v: v * 2, lambda v: v - 1], w) for i in (0, 1)],
        ops.fori_loop(0, 4, lambda i, v: v + ops.cast(i, "float32"), w.value),
    ]


@program()
def models_in_functions_of_tensorflow(tf, np):
    model = known(np, tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2, activation="tanh")]))
    x = tf.constant(numbers(np, 4, 3))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = model(x)
    columns = tf.vectorized_map(lambda row: model(row[None])[0], x)
    rows = tf.map_fn(lambda row: model(row[None])[0], x)
    mapped = list(tf.data.Dataset.from_tensor_slices(x).batch(2).map(model))
    repeated = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v + model(x)), (0, tf.zeros((4, 2))))[1]
    branch = tf.cond(tf.reduce_sum(x) > 0, lambda: model(x), lambda: -model(x))
    return [tape.batch_jacobian(y, x), columns, rows, mapped, repeated, branch]


@program()
def structures_of_inputs_and_outputs(tf, np):
    layers = tf.keras.layers
    a, b = tf.keras.Input((2,), name="a"), tf.keras.Input((2,), name="b")
    outputs = {"sum": layers.Add()([a, b]), "pair": [a * 2.0, (b, layers.Dense(1, use_bias=False)(a))]}
    model = known(np, tf.keras.Model({"first": a, "rest": [b]}, outputs))
    x = numbers(np, 3, 2)
    inner = tf.keras.Model(a, model({"first": a, "rest": [a]})["pair"])
    return [
        model({"first": x, "rest": [x * 2]}),
        inner(x),
        tf.nest.map_structure(np.shape, inner.predict(x, verbose=0)),
    ]


@program()
def layers_with_adapters_of_low_rank(tf, np):
    layer = tf.keras.layers.Dense(3)
    layer.build((None, 4))
    layer.enable_lora(2)
    known(np, layer)
    x = tf.constant(numbers(np, 2, 4))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(x) ** 2)
    names = [v.name for v in layer.trainable_variables]
    return [loss, names, [tf.convert_to_tensor(g) for g in tape.gradient(loss, layer.trainable_variables)]]


@program()
def layers_that_prepare_data(tf, np):
    layers = tf.keras.layers
    rows = numbers(np, 6, 2)
    normalization, discretization = layers.Normalization(), layers.Discretization(bin_boundaries=[-0.5, 0.0, 0.5])
    normalization.adapt(rows)
    other = layers.Normalization()
    other.adapt(tf.data.Dataset.from_tensor_slices(rows).batch(4))
    image = tf.constant(numbers(np, 1, 4, 4, 3))
    return [
        normalization(rows),
        other(rows),
        normalization.mean,
        discretization(rows),
        layers.CategoryEncoding(num_tokens=4, output_mode="multi_hot")([[0, 2], [1, 1]]),
        layers.Rescaling(2.0, offset=1.0)(image),
        layers.CenterCrop(2, 2)(image),
        layers.RandomFlip()(image, training=False),
    ]


@program()
def gradients_by_keras_alone(tf, np):
    model = perceptron(tf, np)
    x, y = classes(np)
    loss = tf.keras.losses.get("sparse_categorical_crossentropy")
    with tf.GradientTape() as tape:
        value = tf.reduce_mean(loss(y, tf.nn.softmax(model(x, training=True))))
    return [value, tape.gradient(value, model.trainable_weights), [v.numpy() for v in model.non_trainable_weights]]


@program()
def stateless_calls(tf, np):
    model = perceptron(tf, np)
    x = numbers(np, 3, 6)
    outputs, state = model.stateless_call(
        [v.value for v in model.trainable_variables], [v.value * 0.5 for v in model.non_trainable_variables], x
    )
    return [outputs, [tf.convert_to_tensor(each) for each in state]]


@program()
def names_that_are_unique(tf, np):
    tf.keras.backend.clear_session()
    layers = [tf.keras.layers.Dense(2), tf.keras.layers.Dense(2), tf.keras.layers.BatchNormalization()]
    for layer in layers:
        layer.build((None, 3))
    return [[layer.name for layer in layers], [v.path for layer in layers for v in layer.weights]]


@program()
def global_settings(tf, np):
    backend = tf.keras.backend
    return [
        backend.backend(),
        backend.floatx(),
        backend.epsilon(),
        backend.image_data_format(),
        tf.keras.config.dtype_policy().name,
    ]


@program()
def numbers_drawn_with_one_seed_are_the_same(tf, np):
    def draw():
        tf.keras.utils.set_random_seed(7)
        dense = tf.keras.layers.Dense(3)
        dense.build((None, 4))
        dropped = tf.keras.layers.Dropout(0.5)(np.ones((20, 20), np.float32), training=True)
        drawn = [tf.keras.random.normal((3,)), tf.keras.random.uniform((3,)), tf.keras.random.randint((3,), 0, 9)]
        return [*dense.get_weights(), *(np.asarray(each) for each in (dropped, *drawn))]

    first, second = draw(), draw()
    same = [bool(np.array_equal(*pair)) for pair in zip(first, second)]
    generator = tf.keras.random.SeedGenerator(3)
    other = [np.asarray(tf.keras.random.normal((2,), seed=generator)) for _ in range(2)]
    return [same, bool(np.array_equal(*other)), sorted(set(np.asarray(first[2]).ravel().tolist()))]


@program()
def initializers(tf, np):
    i = tf.keras.initializers
    fixed = [i.Zeros(), i.Ones(), i.Constant(2.0), i.Identity(2.0), "zeros", "ones"]
    drawn = [i.GlorotUniform(1), i.HeNormal(1), i.TruncatedNormal(seed=1), i.RandomUniform(seed=1), i.LecunNormal(1)]
    values = [np.asarray(each((400, 300))) for each in drawn]
    return [
        [i.get(each)((2, 2)) for each in fixed],
        [[bool(abs(v.mean()) < 0.02), round(float(v.std()), 2)] for v in values],
        [bool(np.array_equal(each((3, 4)), each((3, 4)))) for each in drawn],
    ]


@program()
def dropout_layers(tf, np):
    ones = np.ones((50, 50), np.float32)
    layers = [tf.keras.layers.Dropout(0.25, seed=1), tf.keras.layers.GaussianDropout(0.25, seed=1)]
    outputs = [np.asarray(layer(ones, training=True)) for layer in layers]
    kept = outputs[0] > 0
    return [
        [bool(abs(output.mean() - 1) < 0.1) for output in outputs],
        bool(np.allclose(outputs[0][kept], 1 / 0.75)),
        bool(abs(kept.mean() - 0.75) < 0.05),
        [layer(ones[:2, :2], training=False) for layer in layers],
    ]


@program()
def the_message_of_a_wrong_shape(tf, np):
    dense = tf.keras.layers.Dense(2)
    dense.build((None, 3))
    return [
        raises(lambda: dense(np.ones((2, 4), np.float32)), "is incompatible with the layer"),
        raises(lambda: tf.keras.layers.Add()([np.ones((2, 3)), np.ones((2, 4))])),
        message(lambda: tf.keras.layers.Dense(2)("text"))["error"],
        raises(lambda: tf.keras.layers.Layer().fit),
    ]


@program()
def saved_configurations(tf, np):
    layers = tf.keras.layers
    made = [layers.Dense(3, activation="relu", name="d"), layers.LSTM(2, name="l"), layers.Dropout(0.1, name="o")]
    again = [type(layer).from_config(layer.get_config()) for layer in made]
    whole = tf.keras.layers.deserialize(tf.keras.layers.serialize(made[0]))
    return [[a.get_config() == b.get_config() for a, b in zip(made, again)], whole.units, whole.activation.__name__]


@program()
def a_training_loop_with_accumulated_gradients(tf, np):
    model, (x, y) = perceptron(tf, np), classes(np)
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    sums = [tf.Variable(tf.zeros(v.shape)) for v in model.trainable_variables]
    for i in range(0, 96, 32):
        with tf.GradientTape() as tape:
            value = loss(y[i : i + 32], model(x[i : i + 32], training=True))
        for total, grad in zip(sums, tape.gradient(value, model.trainable_variables)):
            total.assign_add(grad / 3.0)
    optimizer.apply_gradients(zip(sums, model.trainable_variables))
    return model.get_weights()


@program()
def two_models_and_two_tapes(tf, np):
    def model(seed, width):
        layers = [tf.keras.Input((width,)), tf.keras.layers.Dense(5, activation="tanh"), tf.keras.layers.Dense(4)]
        return known(np, tf.keras.Sequential(layers), seed)

    maker, judge = model(1, 4), model(2, 4)
    by_maker, by_judge = tf.keras.optimizers.Adam(0.01), tf.keras.optimizers.Adam(0.01)

    @tf.function
    def step(noise, real):
        with tf.GradientTape() as of_maker, tf.GradientTape() as of_judge:
            fake = maker(noise, training=True)
            judged = tf.reduce_mean(judge(fake))
            lost = tf.reduce_mean(tf.nn.softplus(judge(fake))) + tf.reduce_mean(tf.nn.softplus(-judge(real)))
        first = of_maker.gradient(judged, maker.trainable_variables)
        second = of_judge.gradient(lost, judge.trainable_variables)
        by_maker.apply_gradients(zip(first, maker.trainable_variables))
        by_judge.apply_gradients(zip(second, judge.trainable_variables))
        return judged, lost

    losses = [step(tf.constant(numbers(np, 6, 4)), tf.constant(numbers(np, 4, 6).T)) for _ in range(3)]
    return [losses, maker.get_weights(), judge.get_weights()]


@program()
def an_inner_loop_of_meta_learning(tf, np):
    dense = known(np, tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)]))
    kernel, bias = dense.trainable_variables
    x, y = tf.constant(numbers(np, 8, 3)), tf.constant(numbers(np, 8, 1))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            loss = tf.reduce_mean(tf.square(dense(x) - y))
        slopes = inner.gradient(loss, [kernel, bias])
        fast = [v - 0.1 * slope for v, slope in zip((kernel, bias), slopes)]
        after = tf.reduce_mean(tf.square(tf.matmul(x, fast[0]) + fast[1] - y))
    return [loss, after, outer.gradient(after, [kernel, bias])]


@program()
def moving_averages_of_weights(tf, np):
    model, target = perceptron(tf, np), perceptron(tf, np)
    model.layers[0].kernel.assign(model.layers[0].kernel + 1.0)
    for mine, other in zip(target.trainable_variables, model.trainable_variables):
        mine.assign(0.9 * mine + 0.1 * other)
    return target.get_weights()


@program()
def gradients_for_inputs_of_a_model(tf, np):
    model = perceptron(tf, np)
    x, y = classes(np)
    images = tf.Variable(x[:5])
    with tf.GradientTape() as tape:
        loss = tf.keras.losses.sparse_categorical_crossentropy(y[:5], model(images), from_logits=True)
    return [loss, tf.sign(tape.gradient(loss, images))]


@program()
def layers_of_a_model_one_by_one(tf, np):
    model = perceptron(tf, np)
    inner = tf.keras.Model(model.inputs, [layer.output for layer in model.layers])
    return [inner(numbers(np, 3, 6)), [layer.name.rstrip("_0123456789") for layer in model.layers], len(model.layers)]


@program()
def utilities(tf, np):
    utils = tf.keras.utils
    return [
        utils.to_categorical([0, 2, 1], 3),
        utils.normalize(np.array([[3.0, 4.0]])),
        utils.pad_sequences([[1], [2, 3, 4]], maxlen=3),
        utils.pad_sequences([[1], [2, 3, 4]], padding="post"),
    ]
