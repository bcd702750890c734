"""Training loops as people write them for TensorFlow: with Keras models, optimizers, losses, metrics and datasets."""

import os
import tempfile

from conformance.program import program
from conformance.weights import set_weights


def images(np, count=12, size=8, classes=3):
    random = np.random.default_rng(0)
    return random.normal(size=(count, size, size, 1)).astype("float32"), (np.arange(count) % classes).astype("int64")


def table(np, count=16, width=4):
    random = np.random.default_rng(1)
    x = random.normal(size=(count, width)).astype("float32")
    return x, (x @ random.normal(size=(width, 1)) + 0.3).astype("float32")


@program(rtol=2e-4, atol=1e-5)
def quickstart_for_experts(tf, np):
    x_train, y_train = images(np)
    train_ds = tf.data.Dataset.from_tensor_slices((x_train, y_train)).batch(4)

    class MyModel(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.conv1 = tf.keras.layers.Conv2D(4, 3, activation="relu")
            self.flatten = tf.keras.layers.Flatten()
            self.d1 = tf.keras.layers.Dense(8, activation="relu")
            self.d2 = tf.keras.layers.Dense(3)

        def call(self, x):
            x = self.conv1(x)
            x = self.flatten(x)
            x = self.d1(x)
            return self.d2(x)

    model = MyModel()
    model(x_train[:1])
    set_weights(np, model)
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.Adam()
    train_loss = tf.keras.metrics.Mean(name="train_loss")
    train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            predictions = model(images, training=True)
            loss = loss_object(labels, predictions)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        train_loss(loss)
        train_accuracy(labels, predictions)

    history = []
    for epoch in range(2):
        train_loss.reset_state()
        train_accuracy.reset_state()
        for batch, labels in train_ds:
            train_step(batch, labels)
        history.append([float(train_loss.result()), float(train_accuracy.result())])
    return [history, [np.sum(w) for w in model.get_weights()]]


@program(rtol=2e-4, atol=1e-5)
def batch_normalization_and_dropout(tf, np):
    x, y = table(np)
    model = tf.keras.Sequential(
        [
            tf.keras.Input(shape=(4,)),
            tf.keras.layers.Dense(8),
            tf.keras.layers.BatchNormalization(momentum=0.8),
            tf.keras.layers.LeakyReLU(negative_slope=0.2),
            tf.keras.layers.Dropout(0.0),
            tf.keras.layers.Dense(1),
        ]
    )
    set_weights(np, model)
    optimizer = tf.keras.optimizers.RMSprop(learning_rate=1e-2)
    mse = tf.keras.losses.MeanSquaredError()
    losses = []
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = mse(y, model(x, training=True))
        grads = tape.gradient(loss, model.trainable_weights)
        optimizer.apply_gradients(zip(grads, model.trainable_weights))
        losses.append(float(loss))
    bn = model.layers[1]
    return [losses, bn.moving_mean.numpy(), bn.moving_variance.numpy(), model(x[:3], training=False)]


@program(rtol=2e-4, atol=1e-5)
def compile_and_fit(tf, np):
    x, y = table(np)
    model = tf.keras.Sequential([tf.keras.layers.Dense(6, activation="tanh"), tf.keras.layers.Dense(1)])
    model.build((None, 4))
    set_weights(np, model)
    model.compile(optimizer="adam", loss="mse", metrics=["mae"])
    history = model.fit(x, y, batch_size=4, epochs=3, shuffle=False, validation_split=0.25, verbose=0)
    scores = model.evaluate(x, y, batch_size=8, verbose=0)
    return [
        {name: [float(v) for v in values] for name, values in history.history.items()},
        [float(score) for score in scores],
        model.predict(x, batch_size=5, verbose=0),
    ]


@program(rtol=2e-4, atol=1e-5)
def a_train_step_of_ones_own(tf, np):
    x, y = table(np)

    class CustomModel(tf.keras.Model):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                y_pred = self(x, training=True)
                loss = self.compute_loss(y=y, y_pred=y_pred)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            for metric in self.metrics:
                if metric.name == "loss":
                    metric.update_state(loss)
                else:
                    metric.update_state(y, y_pred)
            return {m.name: m.result() for m in self.metrics}

    inputs = tf.keras.Input(shape=(4,))
    hidden = tf.keras.layers.Dense(5, activation="relu")(inputs)
    outputs = tf.keras.layers.Dense(1)(hidden)
    model = set_weights(np, CustomModel(inputs, outputs))
    model.compile(optimizer=tf.keras.optimizers.SGD(0.05, momentum=0.9), loss="mse", metrics=["mae"])
    history = model.fit(x, y, batch_size=8, epochs=3, shuffle=False, verbose=0).history
    return [{name: [float(v) for v in values] for name, values in history.items()}, model.get_weights()]


@program(rtol=2e-4, atol=1e-5)
def gradient_accumulation_with_clipping(tf, np):
    x, y = table(np)
    model = set_weights(
        np, tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(4, "elu"), tf.keras.layers.Dense(1)])
    )
    schedule = tf.keras.optimizers.schedules.ExponentialDecay(0.1, decay_steps=2, decay_rate=0.5, staircase=True)
    optimizer = tf.keras.optimizers.SGD(schedule, momentum=0.9, nesterov=True)
    norms, rates = [], []
    for _ in range(4):
        accumulated = [tf.zeros_like(v) for v in model.trainable_variables]
        for part in range(4):
            xs, ys = x[part * 4 : part * 4 + 4], y[part * 4 : part * 4 + 4]
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.keras.losses.huber(ys, model(xs)))
            gradients = tape.gradient(loss, model.trainable_variables)
            accumulated = [a + g / 4 for a, g in zip(accumulated, gradients)]
        clipped, norm = tf.clip_by_global_norm(accumulated, 0.5)
        optimizer.apply_gradients(zip(clipped, model.trainable_variables))
        norms.append(norm)
        rates.append(float(optimizer.learning_rate))
    return [norms, rates, int(optimizer.iterations), model.get_weights()]


@program(rtol=2e-4, atol=1e-5)
def fine_tuning_frozen_layers(tf, np):
    x, y = images(np)
    base = tf.keras.Sequential(
        [
            tf.keras.Input((8, 8, 1)),
            tf.keras.layers.Conv2D(3, 3, padding="same", activation="relu"),
            tf.keras.layers.MaxPooling2D(),
        ]
    )
    base.trainable = False
    inputs = tf.keras.Input((8, 8, 1))
    features = base(inputs, training=False)
    pooled = tf.keras.layers.GlobalAveragePooling2D()(features)
    classes = tf.keras.layers.Dense(3, name="classes")(pooled)
    size = tf.keras.layers.Dense(1, name="size")(pooled)
    model = set_weights(np, tf.keras.Model(inputs, [classes, size]))
    counts = [len(model.trainable_weights), len(model.non_trainable_weights)]
    optimizer = tf.keras.optimizers.Adam(0.01)
    before = [w.numpy() for w in base.weights]
    for step in range(4):
        if step == 2:
            base.trainable = True
            optimizer = tf.keras.optimizers.Adam(0.001)
        with tf.GradientTape() as tape:
            logits, sizes = model(x, training=True)
            loss = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(y, logits, from_logits=True))
            loss += 0.1 * tf.reduce_mean(tf.square(sizes - 1.0))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
    moved = [float(np.abs(a - b.numpy()).max()) for a, b in zip(before, base.weights)]
    return [counts, len(model.trainable_weights), loss, moved]


@program(rtol=5e-4, atol=1e-5)
def text_classification_with_an_lstm(tf, np):
    tokens = np.array([[1, 4, 2, 0, 0], [3, 3, 1, 2, 0], [5, 0, 0, 0, 0], [2, 2, 2, 2, 2]])
    labels = np.array([[1.0], [0.0], [1.0], [0.0]], "float32")
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Embedding(6, 4, mask_zero=True),
            tf.keras.layers.Bidirectional(tf.keras.layers.LSTM(3, return_sequences=True)),
            tf.keras.layers.GRU(3),
            tf.keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model(tokens)
    set_weights(np, model)
    bce = tf.keras.losses.BinaryCrossentropy()
    optimizer = tf.keras.optimizers.Adam(0.05)
    accuracy = tf.keras.metrics.BinaryAccuracy()
    losses = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            predictions = model(tokens, training=True)
            loss = bce(labels, predictions)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        accuracy.update_state(labels, predictions)
        losses.append(loss)
    return [losses, accuracy.result(), model(tokens)]


@program(rtol=2e-4, atol=1e-5)
def regularization_losses_and_callbacks(tf, np):
    x, y = table(np)
    model = tf.keras.Sequential(
        [
            tf.keras.Input((4,)),
            tf.keras.layers.Dense(6, activation="relu", kernel_regularizer=tf.keras.regularizers.l2(0.01)),
            tf.keras.layers.Dense(1, kernel_regularizer=tf.keras.regularizers.L1(0.001)),
        ]
    )
    set_weights(np, model)
    penalties = [float(penalty) for penalty in model.losses]
    rates = []

    class Rates(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            rates.append([epoch, float(self.model.optimizer.learning_rate), float(logs["loss"])])

    model.compile(tf.keras.optimizers.SGD(0.1), loss=tf.keras.losses.MeanSquaredError())
    halve = tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate if epoch < 2 else rate * 0.5)
    stop = tf.keras.callbacks.EarlyStopping(monitor="loss", min_delta=10.0, patience=2)
    model.fit(x, y, batch_size=16, epochs=8, shuffle=False, verbose=0, callbacks=[Rates(), halve, stop])
    return [penalties, rates]


@program(rtol=2e-4, atol=1e-5)
def checkpoints_go_on_where_they_stopped(tf, np):
    x, y = table(np)

    def parts():
        model = set_weights(
            np, tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(3), tf.keras.layers.Dense(1)])
        )
        return model, tf.keras.optimizers.Adam(0.05), tf.Variable(0, dtype=tf.int64)

    def train(model, optimizer, step, count):
        for _ in range(count):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(x) - y) ** 2)
            optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
            step.assign_add(1)
        return float(loss)

    with tempfile.TemporaryDirectory() as folder:
        model, optimizer, step = parts()
        checkpoint = tf.train.Checkpoint(step=step, optimizer=optimizer, net=model)
        manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
        first = train(model, optimizer, step, 3)
        manager.save()
        there = train(model, optimizer, step, 2)
        again, optimizer, step = parts()
        optimizer.build(again.trainable_variables)
        checkpoint = tf.train.Checkpoint(step=step, optimizer=optimizer, net=again)
        latest = tf.train.latest_checkpoint(folder)
        checkpoint.restore(latest)
        here = train(again, optimizer, step, 2)
        name = os.path.basename(latest)
    return [first, there, here, int(step), name, abs(there - here) < 1e-6]


@program(rtol=5e-4, atol=1e-5)
def a_transformer_block(tf, np):
    class TransformerBlock(tf.keras.layers.Layer):
        def __init__(self, embed_dim, num_heads, ff_dim, rate=0.0):
            super().__init__()
            self.att = tf.keras.layers.MultiHeadAttention(num_heads=num_heads, key_dim=embed_dim)
            self.ffn = tf.keras.Sequential(
                [tf.keras.layers.Dense(ff_dim, activation="gelu"), tf.keras.layers.Dense(embed_dim)]
            )
            self.layernorm1 = tf.keras.layers.LayerNormalization(epsilon=1e-6)
            self.layernorm2 = tf.keras.layers.LayerNormalization(epsilon=1e-6)
            self.dropout1 = tf.keras.layers.Dropout(rate)

        def call(self, inputs, training=False):
            attention = self.att(inputs, inputs, use_causal_mask=True)
            out1 = self.layernorm1(inputs + self.dropout1(attention, training=training))
            return self.layernorm2(out1 + self.ffn(out1))

    class Positions(tf.keras.layers.Layer):
        def __init__(self, length, words, width):
            super().__init__()
            self.words = tf.keras.layers.Embedding(words, width)
            self.places = tf.keras.layers.Embedding(length, width)

        def call(self, x):
            return self.words(x) + self.places(tf.range(tf.shape(x)[-1]))

    inputs = tf.keras.Input(shape=(5,), dtype="int32")
    x = Positions(5, 7, 4)(inputs)
    x = TransformerBlock(4, 2, 6)(x)
    model = set_weights(np, tf.keras.Model(inputs, tf.keras.layers.Dense(7)(x)))
    tokens = np.array([[1, 2, 3, 4, 5], [6, 5, 4, 3, 2]], "int32")
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.AdamW(0.01, weight_decay=0.004)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_fn(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    return [[step(tokens, np.roll(tokens, -1, 1)) for _ in range(4)], model(tokens)[:, -1]]


@program(rtol=2e-4, atol=1e-5)
def a_loop_over_a_dataset_inside_a_function(tf, np):
    x, y = table(np)
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(4)
    w, b = tf.Variable(tf.zeros([4, 1])), tf.Variable(tf.zeros([1]))
    optimizer = tf.keras.optimizers.SGD(0.1)
    optimizer.build([w, b])

    @tf.function
    def epoch(dataset):
        total, count = tf.constant(0.0), tf.constant(0)
        for xs, ys in dataset:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(xs @ w + b - ys))
            gradients = tape.gradient(loss, [w, b])
            optimizer.apply_gradients(zip(gradients, [w, b]))
            if loss > 0.5:
                count += 1
            total += loss
        return total, count

    return [[epoch(dataset) for _ in range(3)], w, b]


@program(rtol=2e-4, atol=1e-5)
def fit_from_a_generator(tf, np):
    x, y = images(np)

    def batches():
        while True:
            for start in range(0, 12, 4):
                yield x[start : start + 4].reshape(4, -1), y[start : start + 4]

    model = tf.keras.Sequential(
        [
            tf.keras.Input((64,)),
            tf.keras.layers.Dense(6, activation="swish"),
            tf.keras.layers.Dense(3, activation="softmax"),
        ]
    )
    set_weights(np, model)
    model.compile(
        optimizer=tf.keras.optimizers.Nadam(0.01), loss="sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    history = model.fit(batches(), steps_per_epoch=3, epochs=2, shuffle=False, verbose=0)
    return [{k: [float(v) for v in values] for k, values in history.history.items()}, model.get_weights()[-1]]
