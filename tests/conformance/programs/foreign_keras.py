"""Keras models as people write them: own steps and losses, several inputs and outputs, models cut from models.

Long because each is a whole program.
"""

import os
import tempfile

from conformance.program import program
from conformance.weights import set_weights


def history(fit):
    return {name: [float(value) for value in values] for name, values in fit.history.items()}


@program(rtol=5e-4, atol=1e-5)
def a_step_with_sample_weights(tf, np):
    keras = tf.keras

    class CustomModel(keras.Model):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.loss_tracker = keras.metrics.Mean(name="loss")
            self.mae_metric = keras.metrics.MeanAbsoluteError(name="mae")
            self.loss_fn = keras.losses.MeanSquaredError()

        def train_step(self, data):
            if len(data) == 3:
                x, y, sample_weight = data
            else:
                sample_weight = None
                x, y = data
            with tf.GradientTape() as tape:
                y_pred = self(x, training=True)
                loss = self.loss_fn(y, y_pred, sample_weight=sample_weight)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply(gradients, self.trainable_variables)
            self.loss_tracker.update_state(loss)
            self.mae_metric.update_state(y, y_pred)
            return {"loss": self.loss_tracker.result(), "mae": self.mae_metric.result()}

        def test_step(self, data):
            x, y = data
            y_pred = self(x, training=False)
            self.loss_tracker.update_state(self.loss_fn(y, y_pred))
            self.mae_metric.update_state(y, y_pred)
            return {m.name: m.result() for m in self.metrics}

        @property
        def metrics(self):
            return [self.loss_tracker, self.mae_metric]

    inputs = keras.Input(shape=(6,))
    model = CustomModel(inputs, keras.layers.Dense(1)(inputs))
    set_weights(np, model)
    model.compile(optimizer="adam")
    rs = np.random.RandomState(3)
    x, y, weights = rs.random_sample((20, 6)), rs.random_sample((20, 1)), rs.random_sample((20, 1))
    first = model.fit(x, y, epochs=2, batch_size=8, shuffle=False, verbose=0)
    second = model.fit(x, y, sample_weight=weights, epochs=2, batch_size=8, shuffle=False, verbose=0)
    return [history(first), history(second), [float(value) for value in model.evaluate(x, y, verbose=0)]]


@program(rtol=5e-4, atol=1e-5)
def several_inputs_and_named_outputs(tf, np):
    keras, layers = tf.keras, tf.keras.layers
    title_input = keras.Input(shape=(None,), name="title")
    tags_input = keras.Input(shape=(4,), name="tags")
    features = layers.LSTM(5)(layers.Embedding(12, 3)(title_input))
    x = layers.concatenate([features, tags_input])
    model = keras.Model(
        inputs=[title_input, tags_input],
        outputs={"priority": layers.Dense(1, name="priority")(x), "department": layers.Dense(3, name="department")(x)},
    )
    set_weights(np, model)
    model.compile(
        optimizer=keras.optimizers.RMSprop(1e-2),
        loss={
            "priority": keras.losses.BinaryCrossentropy(from_logits=True),
            "department": keras.losses.CategoricalCrossentropy(from_logits=True),
        },
        loss_weights={"priority": 1.0, "department": 0.2},
        metrics={"priority": ["binary_accuracy"], "department": ["accuracy"]},
    )
    rs = np.random.RandomState(1)
    x = {"title": rs.randint(12, size=(12, 5)), "tags": rs.randint(2, size=(12, 4)).astype("float32")}
    departments = keras.utils.to_categorical(rs.randint(3, size=12), 3)
    y = {"priority": rs.randint(2, size=(12, 1)).astype("float32"), "department": departments}
    fit = model.fit(x, y, epochs=2, batch_size=4, shuffle=False, verbose=0)
    scores = model.evaluate(x, y, return_dict=True, verbose=0)
    return [history(fit), {name: float(value) for name, value in scores.items()}, model.predict(x, verbose=0)]


@program(rtol=5e-4, atol=1e-5)
def a_vector_quantized_autoencoder(tf, np):
    keras, layers = tf.keras, tf.keras.layers
    codes = np.random.RandomState(3).normal(size=(2, 6)).astype("float32")

    class VectorQuantizer(layers.Layer):
        def __init__(self, num_embeddings, embedding_dim, beta=0.25, **kwargs):
            super().__init__(**kwargs)
            self.embedding_dim, self.num_embeddings, self.beta = embedding_dim, num_embeddings, beta
            w_init = tf.constant_initializer(codes)
            value = w_init(shape=(self.embedding_dim, self.num_embeddings), dtype="float32")
            self.embeddings = tf.Variable(initial_value=value, trainable=True, name="embeddings_vqvae")

        def call(self, x):
            flattened = tf.reshape(x, [-1, self.embedding_dim])
            encodings = tf.one_hot(self.get_code_indices(flattened), self.num_embeddings)
            quantized = tf.reshape(tf.matmul(encodings, self.embeddings, transpose_b=True), tf.shape(x))
            commitment_loss = tf.reduce_mean((tf.stop_gradient(quantized) - x) ** 2)
            codebook_loss = tf.reduce_mean((quantized - tf.stop_gradient(x)) ** 2)
            self.add_loss(self.beta * commitment_loss + codebook_loss)
            return x + tf.stop_gradient(quantized - x)

        def get_code_indices(self, flattened):
            distances = (
                tf.reduce_sum(flattened**2, axis=1, keepdims=True)
                + tf.reduce_sum(self.embeddings**2, axis=0)
                - 2 * tf.matmul(flattened, self.embeddings)
            )
            return tf.argmin(distances, axis=1)

    class Trainer(keras.models.Model):
        def __init__(self, vqvae, variance):
            super().__init__()
            self.vqvae, self.variance = vqvae, variance
            self.total_loss_tracker = keras.metrics.Mean(name="total_loss")
            self.vq_loss_tracker = keras.metrics.Mean(name="vq_loss")

        @property
        def metrics(self):
            return [self.total_loss_tracker, self.vq_loss_tracker]

        def train_step(self, x):
            with tf.GradientTape() as tape:
                reconstructions = self.vqvae(x)
                reconstruction_loss = tf.reduce_mean((x - reconstructions) ** 2) / self.variance
                total_loss = reconstruction_loss + sum(self.vqvae.losses)
            grads = tape.gradient(total_loss, self.vqvae.trainable_variables)
            self.optimizer.apply_gradients(zip(grads, self.vqvae.trainable_variables))
            self.total_loss_tracker.update_state(total_loss)
            self.vq_loss_tracker.update_state(sum(self.vqvae.losses))
            return {m.name: m.result() for m in self.metrics}

    inputs = keras.Input(shape=(6, 6, 1))
    encoded = layers.Conv2D(2, 3, strides=2, padding="same", name="encode")(inputs)
    decoded = layers.Conv2DTranspose(1, 3, strides=2, padding="same", name="decode")
    vqvae = keras.Model(inputs, decoded(VectorQuantizer(6, 2, name="quantizer")(encoded)))
    for name in ("encode", "decode"):
        set_weights(np, vqvae.get_layer(name))
    x = np.random.RandomState(0).rand(8, 6, 6, 1).astype("float32")
    trainer = Trainer(vqvae, float(np.var(x)))
    trainer.compile(optimizer=keras.optimizers.Adam())
    fit = trainer.fit(x, epochs=2, batch_size=4, shuffle=False, verbose=0)
    return [history(fit), len(vqvae.trainable_variables), [layer.name for layer in vqvae.layers[1:]]]


@program(rtol=5e-4, atol=1e-5)
def a_siamese_network_with_triplets(tf, np):
    keras, layers = tf.keras, tf.keras.layers
    image = layers.Input((6, 6, 3))
    x = layers.Flatten()(layers.Conv2D(4, 3, activation="relu")(image))
    embedding = keras.Model(image, layers.Dense(3)(layers.BatchNormalization()(x)), name="Embedding")
    set_weights(np, embedding)

    class DistanceLayer(layers.Layer):
        def call(self, anchor, positive, negative):
            ap_distance = tf.reduce_sum(tf.square(anchor - positive), -1)
            an_distance = tf.reduce_sum(tf.square(anchor - negative), -1)
            return (ap_distance, an_distance)

    sides = [layers.Input(name=name, shape=(6, 6, 3)) for name in ("anchor", "positive", "negative")]
    network = keras.Model(inputs=sides, outputs=DistanceLayer()(*[embedding(side) for side in sides]))

    class SiameseModel(keras.Model):
        def __init__(self, siamese_network, margin=0.5):
            super().__init__()
            self.siamese_network, self.margin = siamese_network, margin
            self.loss_tracker = keras.metrics.Mean(name="loss")

        def train_step(self, data):
            with tf.GradientTape() as tape:
                loss = self.loss_of(data)
            gradients = tape.gradient(loss, self.siamese_network.trainable_weights)
            self.optimizer.apply_gradients(zip(gradients, self.siamese_network.trainable_weights))
            self.loss_tracker.update_state(loss)
            return {"loss": self.loss_tracker.result()}

        def test_step(self, data):
            self.loss_tracker.update_state(self.loss_of(data))
            return {"loss": self.loss_tracker.result()}

        def loss_of(self, data):
            ap_distance, an_distance = self.siamese_network(data)
            return tf.maximum(ap_distance - an_distance + self.margin, 0.0)

        @property
        def metrics(self):
            return [self.loss_tracker]

    rs = np.random.RandomState(0)
    data = tuple(tf.data.Dataset.from_tensor_slices(rs.rand(12, 6, 6, 3).astype("float32")) for _ in range(3))
    dataset = tf.data.Dataset.zip(data).batch(4).prefetch(tf.data.AUTOTUNE)
    model = SiameseModel(network)
    model.compile(optimizer=keras.optimizers.Adam(0.001))
    fit = model.fit(dataset.take(2), epochs=2, validation_data=dataset.skip(2), verbose=0)
    anchor, positive, negative = (embedding(side) for side in next(iter(dataset)))
    similarity = keras.metrics.CosineSimilarity()
    return [history(fit), float(similarity(anchor, positive)), float(similarity(anchor, negative))]


@program(rtol=5e-4, atol=1e-5)
def a_distilled_student(tf, np):
    keras, layers, ops = tf.keras, tf.keras.layers, tf.keras.ops

    class Distiller(keras.Model):
        def __init__(self, student, teacher):
            super().__init__()
            self.teacher, self.student = teacher, student

        def compile(self, optimizer, metrics, student_loss_fn, distillation_loss_fn, alpha=0.1, temperature=3):
            super().compile(optimizer=optimizer, metrics=metrics)
            self.student_loss_fn, self.distillation_loss_fn = student_loss_fn, distillation_loss_fn
            self.alpha, self.temperature = alpha, temperature

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, allow_empty=False, training=True):
            teacher_pred = self.teacher(x, training=False)
            student_loss = self.student_loss_fn(y, y_pred)
            distillation_loss = self.distillation_loss_fn(
                ops.softmax(teacher_pred / self.temperature, axis=1), ops.softmax(y_pred / self.temperature, axis=1)
            ) * (self.temperature**2)
            return self.alpha * student_loss + (1 - self.alpha) * distillation_loss

        def call(self, x):
            return self.student(x)

    def network(filters):
        stack = [keras.Input((6, 6, 1)), layers.Conv2D(filters, 3, strides=2, padding="same")]
        model = keras.Sequential([*stack, layers.LeakyReLU(negative_slope=0.2), layers.Flatten(), layers.Dense(4)])
        set_weights(np, model)
        return model

    rs = np.random.RandomState(0)
    x, y = rs.rand(12, 6, 6, 1).astype("float32"), rs.randint(0, 4, 12)
    distiller = Distiller(student=network(2), teacher=network(5))
    distiller.compile(
        optimizer=keras.optimizers.Adam(),
        metrics=[keras.metrics.SparseCategoricalAccuracy()],
        student_loss_fn=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        distillation_loss_fn=keras.losses.KLDivergence(),
        temperature=10,
    )
    fit = distiller.fit(x, y, epochs=2, batch_size=4, shuffle=False, verbose=0)
    return [history(fit), [float(value) for value in distiller.evaluate(x, y, verbose=0)]]


@program(rtol=5e-4, atol=1e-5)
def super_resolution(tf, np):
    keras, layers, ops = tf.keras, tf.keras.layers, tf.keras.ops

    def process_input(image, size):
        y, _, _ = tf.split(tf.image.rgb_to_yuv(image), 3, axis=len(image.shape) - 1)
        return tf.image.resize(y, [size, size], method="area")

    def process_target(image):
        y, _, _ = tf.split(tf.image.rgb_to_yuv(image), 3, axis=len(image.shape) - 1)
        return y

    class DepthToSpace(layers.Layer):
        def __init__(self, block_size):
            super().__init__()
            self.block_size = block_size

        def call(self, input):
            batch, height, width, depth = ops.shape(input)
            depth = depth // (self.block_size**2)
            x = ops.reshape(input, [batch, height, width, self.block_size, self.block_size, depth])
            x = ops.transpose(x, [0, 1, 3, 2, 4, 5])
            return ops.reshape(x, [batch, height * self.block_size, width * self.block_size, depth])

    images = np.random.RandomState(0).rand(8, 8, 8, 3).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices(images).batch(4)
    dataset = dataset.map(lambda image: (process_input(image, 4), process_target(image))).prefetch(32)
    inputs = keras.Input(shape=(None, None, 1))
    x = layers.Conv2D(4, 3, activation="relu", padding="same")(inputs)
    model = keras.Model(inputs, DepthToSpace(2)(layers.Conv2D(4, 3, padding="same")(x)))
    set_weights(np, model)
    model.compile(optimizer=keras.optimizers.Adam(learning_rate=0.001), loss=keras.losses.MeanSquaredError())
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.keras")
        best = keras.callbacks.ModelCheckpoint(path, monitor="loss", mode="min", save_best_only=True)
        fit = model.fit(dataset, epochs=2, callbacks=[best], validation_data=dataset, verbose=0)
        model.load_weights(path)
    enlarged = model.predict(process_input(tf.constant(images[:2]), 4), verbose=0)
    return [history(fit), enlarged, tf.image.psnr(enlarged, process_target(tf.constant(images[:2])), max_val=1.0)]


@program(rtol=5e-4, atol=1e-5)
def a_sequence_model_cut_for_inference(tf, np):
    keras, layers = tf.keras, tf.keras.layers
    rs = np.random.RandomState(0)
    source = np.eye(5, dtype="float32")[rs.randint(0, 5, (12, 4))]
    target = np.eye(6, dtype="float32")[rs.randint(0, 6, (12, 5))]
    encoder_inputs, decoder_inputs = keras.Input(shape=(None, 5)), keras.Input(shape=(None, 6))
    _, state_h, state_c = layers.LSTM(4, return_state=True)(encoder_inputs)
    decoder = layers.LSTM(4, return_sequences=True, return_state=True)
    outputs, _, _ = decoder(decoder_inputs, initial_state=[state_h, state_c])
    model = keras.Model([encoder_inputs, decoder_inputs], layers.Dense(6, activation="softmax")(outputs))
    set_weights(np, model)
    model.compile(optimizer="rmsprop", loss="categorical_crossentropy", metrics=["accuracy"])
    shifted = np.concatenate([target[:, 1:], target[:, :1]], 1)
    fit = model.fit([source, target], shifted, batch_size=4, epochs=2, shuffle=False, verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s2s_model.keras")
        model.save(path)
        model = keras.models.load_model(path)
    _, state_h, state_c = model.layers[2].output
    encoder = keras.Model(model.input[0], [state_h, state_c])
    states = [keras.Input(shape=(4,)), keras.Input(shape=(4,))]
    outputs, state_h, state_c = model.layers[3](model.input[1], initial_state=states)
    decoder = keras.Model([model.input[1], *states], [model.layers[4](outputs), state_h, state_c])
    values, token, likely = encoder.predict(source[:1], verbose=0), np.eye(6)[[[0]]], []
    for _ in range(4):
        tokens, *values = decoder.predict([token, *values], verbose=0)
        likely.append(tokens[0, -1])
        token = np.eye(6)[[[int(np.argmax(tokens[0, -1, :]))]]]
    return [history(fit), likely]


@program(rtol=5e-4, atol=1e-5)
def a_recommender_of_embeddings(tf, np):
    keras, layers = tf.keras, tf.keras.layers

    class RecommenderNet(keras.Model):
        def __init__(self, num_users, num_movies, embedding_size, **kwargs):
            super().__init__(**kwargs)
            l2 = keras.regularizers.l2(1e-3)
            self.user_embedding = layers.Embedding(num_users, embedding_size, embeddings_regularizer=l2)
            self.user_bias = layers.Embedding(num_users, 1)
            self.movie_embedding = layers.Embedding(num_movies, embedding_size, embeddings_regularizer=l2)
            self.movie_bias = layers.Embedding(num_movies, 1)

        def call(self, inputs):
            user_vector, user_bias = self.user_embedding(inputs[:, 0]), self.user_bias(inputs[:, 0])
            movie_vector, movie_bias = self.movie_embedding(inputs[:, 1]), self.movie_bias(inputs[:, 1])
            return tf.nn.sigmoid(tf.tensordot(user_vector, movie_vector, 2) + user_bias + movie_bias)

    rs = np.random.RandomState(0)
    x, y = np.stack([rs.randint(0, 5, 16), rs.randint(0, 7, 16)], 1), rs.rand(16)
    results = {}
    for name in ("adam", "rmsprop", "adagrad", "nadam"):
        model = RecommenderNet(5, 7, 3)
        model(x[:2])
        set_weights(np, model)
        model.compile(loss=keras.losses.BinaryCrossentropy(), optimizer=name)
        fit = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, validation_data=(x, y), verbose=0)
        results[name] = [history(fit), model.predict(x, verbose=0).flatten()]
    return results


@program(rtol=5e-4, atol=1e-5)
def a_neural_decision_forest(tf, np):
    keras, layers = tf.keras, tf.keras.layers

    class NeuralDecisionTree(keras.Model):
        def __init__(self, depth, mask, num_classes):
            super().__init__()
            self.depth, self.num_leaves = depth, 2**depth
            self.used_features_mask = tf.convert_to_tensor(mask, dtype=tf.float32)
            self.pi = self.add_weight(shape=[self.num_leaves, num_classes], dtype="float32", trainable=True)
            self.decision_fn = layers.Dense(units=self.num_leaves, activation="sigmoid", name="decision")

        def call(self, features):
            batch_size = tf.shape(features)[0]
            features = tf.matmul(features, self.used_features_mask, transpose_b=True)
            decisions = tf.expand_dims(self.decision_fn(features), axis=2)
            decisions = layers.concatenate([decisions, 1 - decisions], axis=2)
            mu = tf.ones([batch_size, 1, 1])
            begin, end = 1, 2
            for level in range(self.depth):
                mu = tf.tile(tf.reshape(mu, [batch_size, -1, 1]), (1, 1, 2)) * decisions[:, begin:end, :]
                begin, end = end, end + 2 ** (level + 1)
            return tf.matmul(tf.reshape(mu, [batch_size, self.num_leaves]), tf.nn.softmax(self.pi))

    class NeuralDecisionForest(keras.Model):
        def __init__(self, masks):
            super().__init__()
            self.ensemble = [NeuralDecisionTree(3, mask, 3) for mask in masks]

        def call(self, inputs):
            outputs = tf.zeros([tf.shape(inputs)[0], 3])
            for tree in self.ensemble:
                outputs += tree(inputs)
            return outputs / len(self.ensemble)

    inputs = layers.Input((4,))
    forest = NeuralDecisionForest([np.eye(4)[[0, 2]], np.eye(4)[[3, 1]]])
    model = keras.Model(inputs, forest(layers.BatchNormalization()(inputs)))
    set_weights(np, model)
    rs = np.random.RandomState(0)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(), metrics=["accuracy"])
    x, y = rs.rand(12, 4).astype("float32"), rs.randint(0, 3, 12)
    fit = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
    return [history(fit), model.count_params(), model.predict(x, verbose=0)]


@program(rtol=5e-4, atol=1e-5)
def windows_of_a_series(tf, np):
    keras, layers = tf.keras, tf.keras.layers
    series = np.random.RandomState(0).rand(40, 2).astype("float32")
    windows = keras.utils.timeseries_dataset_from_array(
        series[:-3], series[3:, :1], sequence_length=6, sampling_rate=2, batch_size=8
    )
    batches, targets = next(iter(windows))
    left, right = keras.utils.split_dataset(tf.data.Dataset.from_tensor_slices(series), left_size=0.25)
    model = keras.Sequential([keras.Input((6, 2)), layers.Conv1D(3, 3), layers.GRU(3), layers.Dense(1)])
    set_weights(np, model)
    model.compile(optimizer="adam", loss="mse")
    stop = keras.callbacks.EarlyStopping(monitor="val_loss", patience=1)
    fit = model.fit(windows, epochs=2, validation_data=windows, callbacks=[stop], verbose=0)
    return [batches, targets, len(list(left)), np.stack([row.numpy() for row in right])[:3], history(fit)]
