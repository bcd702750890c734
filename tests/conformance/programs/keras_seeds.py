"""Keras with a seed: first weights, masks of Dropout and random numbers."""

from conformance.program import program


@program()
def weights_masks_and_numbers(tf, np):
    keras = tf.keras
    keras.utils.set_random_seed(7)
    model = keras.Sequential(
        [
            keras.Input([4]),
            keras.layers.Dense(3, kernel_initializer="he_normal"),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(2),
        ]
    )
    return [
        *model.get_weights(),
        model(tf.ones([3, 4]), training=True),
        keras.layers.Dropout(0.5, seed=3)(tf.ones([10]), training=True),
        keras.random.normal([3], seed=5),
        keras.random.uniform([3], seed=5),
        keras.random.randint([3], 0, 10, seed=5),
    ]


@program()
def losses_and_what_is_drawn_after_a_fit(tf, np):
    keras, results = tf.keras, []
    for shuffle in (True, "batch"):
        keras.utils.set_random_seed(7)
        layers = [keras.layers.Dense(8, "tanh"), keras.layers.Dropout(0.25), keras.layers.Dense(1)]
        model = keras.Sequential([keras.Input([3]), *layers])
        model.compile("sgd", "mse")
        x = np.random.rand(43, 3).astype("float32")
        options = {"batch_size": 8, "epochs": 3, "validation_split": 0.25, "shuffle": shuffle, "verbose": 0}
        history = model.fit(x, 3 * x[:, :1], **options).history
        results += [history["loss"], history["val_loss"], np.random.rand(), tf.random.uniform([])]
    return results
