"""Models of Keras: fit, evaluate and predict, their data, callbacks, files, and training steps of one's own."""

import os
import tempfile

from conformance.keras_models import classes, history, known, numbers, perceptron
from conformance.probes import raises
from conformance.program import program


def compiled(tf, np, optimizer="sgd", metrics=("sparse_categorical_crossentropy",), **options):
    model = perceptron(tf, np)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=list(metrics), **options)
    return model


def fitted(tf, np, model, *data, **options):
    record = model.fit(*data, **{"batch_size": 32, "epochs": 2, "shuffle": False, "verbose": 0} | options)
    return [history(record), model.get_weights()]


@program()
def fit_evaluate_and_predict(tf, np):
    x, y = classes(np)
    model = compiled(tf, np, tf.keras.optimizers.Adam(0.01))
    record = fitted(tf, np, model, x, y, validation_data=(x[:40], y[:40]), epochs=3)
    return [record, model.evaluate(x, y, verbose=0), model.predict(x, verbose=0), model.predict_on_batch(x[:3])]


@program()
def ways_to_run_the_steps(tf, np):
    x, y = classes(np)
    options = [{"run_eagerly": True}, {"jit_compile": True}, {"steps_per_execution": 2}, {"jit_compile": False}]
    return [fitted(tf, np, compiled(tf, np, **each), x, y) for each in options]


@program()
def weights_of_samples_and_classes(tf, np):
    x, y = classes(np)
    weights = np.linspace(0.5, 2.0, len(x)).astype("float32")
    return [
        fitted(tf, np, compiled(tf, np), x, y, sample_weight=weights),
        fitted(tf, np, compiled(tf, np), x, y, class_weight={0: 1.0, 1: 3.0}),
        fitted(tf, np, compiled(tf, np), x, y, validation_split=0.25),
    ]


@program()
def datasets_and_generators(tf, np):
    x, y = classes(np)
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)

    def batches():
        for i in range(0, 96, 32):
            yield x[i : i + 32], y[i : i + 32]

    def forever():
        while True:
            yield from batches()

    class Pairs(tf.keras.utils.PyDataset):
        def __len__(self):
            return 3

        def __getitem__(self, i):
            return x[i * 32 : i * 32 + 32], y[i * 32 : i * 32 + 32]

    model = compiled(tf, np)
    return [
        [history(compiled(tf, np).fit(dataset, epochs=2, verbose=0)), model.evaluate(dataset, verbose=0)],
        [history(model.fit(forever(), epochs=2, steps_per_epoch=3, verbose=0)), model.predict(x[:40], verbose=0)],
        history(compiled(tf, np).fit(Pairs(), epochs=2, shuffle=False, verbose=0)),
        history(compiled(tf, np).fit(tf.constant(x), tf.constant(y), shuffle=False, verbose=0)),
    ]


@program()
def batches_of_a_number_that_is_not_known(tf, np):
    x, y = classes(np)
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).filter(lambda row, label: label > 0).batch(20)
    inputs = dataset.map(lambda rows, labels: rows)

    def batches(labels=True):
        for i in range(0, 70, 20):
            yield (x[i : i + 20], y[i : i + 20]) if labels else (x[i : i + 20],)

    model = compiled(tf, np)
    several = compiled(tf, np, steps_per_execution=3)
    return [
        [history(model.fit(dataset, epochs=3, verbose=0)), model.evaluate(dataset, verbose=0)],
        [model.predict(inputs, verbose=0).shape, model.predict(inputs, verbose=0, steps=2)],
        [history(model.fit(batches(), verbose=0)), model.evaluate(batches(), verbose=0)],
        [model.predict(batches(labels=False), verbose=0), history(model.fit(batches(), steps_per_epoch=9, verbose=0))],
        [history(several.fit(dataset, epochs=2, verbose=0)), several.evaluate(batches(), verbose=0)],
        several.predict(inputs, verbose=0),
    ]


@program()
def inputs_that_may_be_none(tf, np):
    class Sum(tf.keras.layers.Layer):
        def call(self, first, second=None):
            return first if second is None else first + second

        def compute_output_shape(self, shape):
            return shape

    x, _ = classes(np)
    first = tf.keras.Input((6,), name="first")
    second = tf.keras.Input((6,), name="second", optional=True)
    outputs = tf.keras.layers.Dense(2)(Sum()(first, second))
    model = known(np, tf.keras.Model({"first": first, "second": second}, outputs))
    model.compile("sgd", "mse")

    def batches(other):
        for i in range(0, 60, 20):
            yield {"first": x[i : i + 20], "second": other}, x[i : i + 20, :2]

    return [history(model.fit(batches(other), verbose=0)) for other in (None, x[:20])]


@program()
def single_batches(tf, np):
    x, y = classes(np)
    model = compiled(tf, np)
    losses = [model.train_on_batch(x[:32], y[:32]) for _ in range(2)]
    return [losses, model.test_on_batch(x, y, return_dict=True), model.get_weights()]


@program()
def inputs_and_outputs_by_name(tf, np):
    layers = tf.keras.layers
    a, b = tf.keras.Input((6,), name="a"), tf.keras.Input((3,), name="b")
    hidden = layers.Concatenate()([layers.Dense(5, activation="tanh")(a), b])
    outputs = {"c": layers.Dense(2, name="c")(hidden), "d": layers.Dense(1, name="d")(hidden)}
    model = known(np, tf.keras.Model({"a": a, "b": b}, outputs))
    model.compile("sgd", {"c": "mse", "d": "mae"}, loss_weights={"c": 1.0, "d": 0.5})
    x, _ = classes(np)
    data = {"a": x, "b": x[:, :3]}, {"c": x[:, :2], "d": x[:, :1]}
    return [fitted(tf, np, model, *data), model.predict({"a": x[:4], "b": x[:4, :3]}, verbose=0)]


@program()
def a_functional_model_with_shared_layers(tf, np):
    a, b = tf.keras.Input((4,)), tf.keras.Input((4,))
    shared = tf.keras.layers.Dense(3, activation="relu")
    merged = tf.keras.layers.Subtract()([shared(a), shared(b)])
    model = tf.keras.Model([a, b], [merged, tf.keras.ops.mean(merged * 2.0, axis=-1)])
    known(np, model)
    lines = []
    model.summary(print_fn=lambda line: lines.append(line))
    shapes = [list(shape) for shape in model.output_shape]
    symbolic = raises(lambda: tf.reduce_sum(merged), "A KerasTensor cannot be used as input to a TensorFlow function")
    outputs = model([numbers(np, 7, 4), numbers(np, 4, 7).T])
    return [outputs, shapes, model.count_params(), len(lines) > 0, symbolic]


@program()
def a_subclassed_model_in_a_function(tf, np):
    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.hidden, self.out = tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(2)

        def call(self, x, training=False):
            return self.out(self.hidden(x))

    model = Model()
    model(numbers(np, 3, 5))
    known(np, model)
    optimizer = tf.keras.optimizers.SGD(0.1)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    losses = [step(tf.constant(numbers(np, 3, 5)), tf.constant(numbers(np, 3, 2))) for _ in range(3)]
    return [losses, model.get_weights(), step.experimental_get_tracing_count()]


@program()
def a_training_step_of_ones_own(tf, np):
    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = tf.keras.layers.Dense(2)
            self.mean = tf.keras.metrics.Mean(name="mean")

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = self.compute_loss(y=y, y_pred=self(x, training=True))
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply(gradients, self.trainable_variables)
            self.mean.update_state(loss)
            return {"mean": self.mean.result(), "norm": tf.linalg.global_norm(gradients)}

    x, y = classes(np)
    model = Model()
    model(x[:1])
    known(np, model)
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return fitted(tf, np, model, x, y)


@program()
def losses_that_layers_add(tf, np):
    class Penalty(tf.keras.layers.Layer):
        def call(self, x):
            self.add_loss(0.1 * tf.reduce_mean(tf.square(x)))
            return x

    layers, regular = tf.keras.layers, tf.keras.regularizers
    dense = layers.Dense(3, kernel_regularizer=regular.L2(0.01), activity_regularizer="l1")
    model = known(np, tf.keras.Sequential([tf.keras.Input((6,)), dense, Penalty(), layers.Dense(2)]))
    x, y = classes(np)
    model(x)
    before = [float(loss) for loss in model.losses]
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return [before, fitted(tf, np, model, x, y)]


@program()
def frozen_layers(tf, np):
    x, y = classes(np)
    model = perceptron(tf, np)
    model.layers[0].trainable = False
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    names = [v.path.rpartition("/")[2] for v in model.trainable_variables]
    return [names, fitted(tf, np, model, x, y), len(model.non_trainable_variables)]


@program()
def callbacks(tf, np):
    x, y = classes(np)
    c = tf.keras.callbacks
    seen = []
    with tempfile.TemporaryDirectory() as folder:
        parts = [
            c.EarlyStopping(patience=1, restore_best_weights=True, min_delta=0.05),
            c.ModelCheckpoint(os.path.join(folder, "best.keras"), save_best_only=True),
            c.ReduceLROnPlateau(patience=1),
            c.CSVLogger(os.path.join(folder, "log.csv")),
            c.LearningRateScheduler(lambda epoch, rate: rate * 0.9),
            c.TerminateOnNaN(),
            c.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append([batch, sorted(logs)])),
        ]
        model = compiled(tf, np, tf.keras.optimizers.SGD(0.05))
        record = model.fit(x, y, epochs=8, verbose=0, shuffle=False, validation_split=0.25, callbacks=parts)
        files = sorted(os.listdir(folder))
    return [history(record), model.get_weights(), len(seen), seen[0], files]


@program()
def files(tf, np):
    x, y = classes(np)
    model = compiled(tf, np, "adam")
    fitted(tf, np, model, x, y, epochs=1)
    with tempfile.TemporaryDirectory() as folder:
        model.save(os.path.join(folder, "m.keras"))
        model.save_weights(os.path.join(folder, "m.weights.h5"))
        again = tf.keras.models.load_model(os.path.join(folder, "m.keras"))
        other = perceptron(tf, np)
        other.load_weights(os.path.join(folder, "m.weights.h5"))
        same = [np.array_equal(*pair) for pair in zip(model.get_weights(), again.get_weights())]
        same += [np.array_equal(*pair) for pair in zip(model.get_weights(), other.get_weights())]
        continued = fitted(tf, np, again, x, y, epochs=1)
        missing = raises(lambda: tf.keras.models.load_model(os.path.join(folder, "no.keras")), "File not found")
    return [all(same), int(again.optimizer.iterations), continued, missing]


@program()
def copies_of_models(tf, np):
    model = perceptron(tf, np)
    again = tf.keras.models.clone_model(model)
    again.set_weights(model.get_weights())
    parsed = tf.keras.models.model_from_json(model.to_json())
    parsed.set_weights(model.get_weights())
    x = numbers(np, 4, 6)
    refused = raises(lambda: model.set_weights(model.get_weights()[1:]), "weight list of length")
    return [again(x), parsed(x), refused]


@program()
def mixed_precision(tf, np):
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        dense = tf.keras.layers.Dense(4)
        dense.build((None, 3))
        known(np, dense)
        y = dense(numbers(np, 2, 3))
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.cast(dense(numbers(np, 2, 3)), tf.float32))
        found = tape.gradient(loss, dense.trainable_variables)
        return [y, dense.kernel.dtype, [tf.convert_to_tensor(each).dtype for each in found], found]
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")


@program()
def errors_of_training(tf, np):
    x, y = classes(np)
    model = perceptron(tf, np)
    compiled(tf, np)
    return [
        raises(lambda: model.fit(x, y, verbose=0), "You must call `compile()`"),
        raises(lambda: model(np.ones((2, 5), np.float32)), "expected axis -1 of input shape to have value 6"),
        raises(lambda: tf.keras.layers.Dense(-1), "Received an invalid value for `units`"),
        raises(lambda: compiled(tf, np).fit(x, y[:5], verbose=0), "Data cardinality is ambiguous"),
    ]
