"""Convolutions, pooling and images in Keras, with the gradients of their weights; metrics that sort and count."""

from conformance.keras_models import classes, gradients, history, known, numbers, perceptron
from conformance.program import program


def built(tf, np, layer, *shape):
    layer.build((None, *shape))
    return known(np, layer)


@program()
def convolutions(tf, np):
    layers, image = tf.keras.layers, (6, 6, 3)
    made = [
        (layers.Conv1D(4, 3, padding="causal", dilation_rate=2), (8, 3)),
        (layers.Conv2D(4, 3, padding="same", activation="relu"), image),
        (layers.Conv2D(4, 3, strides=2, groups=1), image),
        (layers.Conv2D(6, 3, groups=3), image),
        (layers.DepthwiseConv2D(3, depth_multiplier=2), image),
        (layers.SeparableConv2D(4, 3), image),
        (layers.Conv2DTranspose(4, 3, strides=2), image),
        (layers.Conv3D(2, 2), (4, 4, 4, 3)),
    ]
    return {
        f"{i} {type(layer).__name__}": gradients(tf, built(tf, np, layer, *shape), numbers(np, 2, *shape))
        for i, (layer, shape) in enumerate(made)
    }


@program()
def pooling_and_sizes(tf, np):
    layers, image, row = tf.keras.layers, numbers(np, 2, 6, 6, 3), numbers(np, 2, 6, 3)
    made = [layers.MaxPooling2D(), layers.AveragePooling2D(3, 2, "same"), layers.UpSampling2D(), layers.Resizing(4, 4)]
    found = [gradients(tf, layer, image) for layer in made[:3]] + [made[3](image)]
    return [*found, layers.MaxPooling1D()(row), layers.AveragePooling1D(3)(row), layers.UpSampling1D()(row)]


@program()
def more_layers(tf, np):
    layers, image = tf.keras.layers, numbers(np, 2, 4, 4, 3)
    spectral = built(tf, np, layers.SpectralNormalization(layers.Dense(2)), 5)
    both = layers.Bidirectional(layers.LSTM(3, return_sequences=True, recurrent_initializer="zeros"))
    return [
        spectral(numbers(np, 2, 5), training=False),
        layers.RepeatVector(3)(numbers(np, 2, 4)),
        gradients(tf, built(tf, np, both, 6, 3), numbers(np, 2, 6, 3)),
        gradients(tf, built(tf, np, layers.Dense(2, activation="softsign"), 4), numbers(np, 2, 4)),
        layers.GroupNormalization(3)(image),
    ]


@program()
def a_convolutional_network(tf, np):
    layers = tf.keras.layers
    parts = [layers.Conv2D(4, 3, padding="same", activation="relu"), layers.MaxPooling2D(), layers.BatchNormalization()]
    parts += [layers.Conv2D(2, 3, strides=2), layers.Flatten(), layers.Dense(3)]
    model = known(np, tf.keras.Sequential([tf.keras.Input((8, 8, 3)), *parts]))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.SGD(0.01), loss, metrics=["accuracy"])
    x, y = numbers(np, 24, 8, 8, 3), np.arange(24) % 3
    record = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    return [history(record), model.get_weights(), model.predict(x[:2], verbose=0)]


@program()
def training_with_accuracy(tf, np):
    x, y = classes(np)
    model = perceptron(tf, np)
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    record = model.fit(x, y, batch_size=32, epochs=3, shuffle=False, verbose=0, validation_data=(x[:40], y[:40]))
    return [history(record), model.evaluate(x, y, verbose=0)]


@program()
def metrics_that_sort_and_count(tf, np):
    metrics = tf.keras.metrics
    labels = np.array([0, 2, 1, 1])
    logits = np.random.default_rng(7).normal(size=(4, 3)).astype("float32")
    probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    one_hot = np.eye(3, dtype="float32")[labels]
    made = [
        (metrics.SparseCategoricalAccuracy(), labels, probabilities),
        (metrics.CategoricalAccuracy(), one_hot, probabilities),
        (metrics.SparseTopKCategoricalAccuracy(k=2), labels, probabilities),
        (metrics.TopKCategoricalAccuracy(k=2), one_hot, probabilities),
        (metrics.AUC(), one_hot, probabilities),
        (metrics.AUC(curve="PR", num_thresholds=50), one_hot, probabilities),
        (metrics.PrecisionAtRecall(0.5), one_hot, probabilities),
        (metrics.MeanIoU(num_classes=3), labels, probabilities.argmax(-1)),
        (metrics.SparseCategoricalCrossentropy(), labels, probabilities),
    ]
    found = []
    for metric, target, prediction in made:
        for _ in range(2):
            metric.update_state(target, prediction)
        found.append(metric.result())
    return found


@program()
def weights_that_are_orthogonal(tf, np):
    initializer = tf.keras.initializers.Orthogonal(seed=3)
    square, wide = np.asarray(initializer((4, 4))), np.asarray(initializer((3, 6)))
    lstm = tf.keras.layers.LSTM(4)
    lstm.build((None, 5, 3))
    near = [np.allclose(w @ w.T, np.eye(len(w)), atol=1e-5) for w in (square, wide)]
    return [*near, list(lstm(numbers(np, 2, 5, 3)).shape), bool(np.array_equal(square, initializer((4, 4))))]
