"""Layers of Keras with known weights: what they compute, and the gradients of their inputs and variables."""

from conformance.keras_models import gradients, known, numbers
from conformance.program import program


def built(tf, np, layer, *shape):
    layer.build((None, *shape))
    return known(np, layer)


@program()
def dense_with_each_activation(tf, np):
    names = "relu sigmoid tanh softmax softplus elu selu gelu silu mish exponential leaky_relu relu6 hard_sigmoid"
    layers = {name: built(tf, np, tf.keras.layers.Dense(3, activation=name), 4) for name in names.split()}
    return {name: gradients(tf, layer, numbers(np, 5, 4)) for name, layer in layers.items()}


@program()
def embedding_and_layer_normalization(tf, np):
    embedding = built(tf, np, tf.keras.layers.Embedding(10, 4), 3)
    norm = built(tf, np, tf.keras.layers.LayerNormalization(), 3, 4)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(norm(embedding(np.array([[1, 2, 3], [4, 1, 9]])))))
    found = tape.gradient(loss, embedding.trainable_variables + norm.trainable_variables)
    return [loss, *map(tf.convert_to_tensor, found)]


@program()
def batch_normalization_in_training_and_after(tf, np):
    norm = built(tf, np, tf.keras.layers.BatchNormalization(), 6)
    x = numbers(np, 10, 6)
    return [gradients(tf, norm, x, training=True), gradients(tf, norm, x, training=False), norm.get_weights()]


@program()
def normalizations(tf, np):
    layers = tf.keras.layers
    x = numbers(np, 3, 6)
    return [
        gradients(tf, built(tf, np, layers.UnitNormalization(), 6), x),
        gradients(tf, built(tf, np, layers.RMSNormalization(), 6), x),
        gradients(tf, built(tf, np, layers.Normalization(mean=1.0, variance=2.0), 6), x),
        gradients(tf, built(tf, np, layers.GroupNormalization(3), 2, 6), numbers(np, 3, 2, 6)),
    ]


@program()
def small_layers(tf, np):
    layers = tf.keras.layers
    x, image = numbers(np, 2, 5), numbers(np, 2, 8, 8, 3)
    return [
        layers.Softmax()(x),
        gradients(tf, built(tf, np, layers.PReLU(), 5), x),
        layers.ReLU(max_value=1.0, negative_slope=0.1, threshold=0.2)(x),
        layers.LeakyReLU()(x),
        layers.ELU(0.5)(x),
        layers.Permute((2, 1))(numbers(np, 2, 4, 3)),
        layers.Reshape((-1, 2))(numbers(np, 2, 4, 3)),
        layers.Flatten()(numbers(np, 2, 4, 3)),
        layers.Rescaling(0.5, 1.0)(x),
        layers.ZeroPadding2D()(image)[:, ::4, ::4],
        layers.Cropping2D(3)(image),
        layers.GlobalAveragePooling2D()(image),
        layers.GlobalMaxPooling2D()(image),
        layers.AveragePooling2D(2)(image)[0],
        layers.MaxPooling2D(3, 2, "same")(image)[0],
        gradients(tf, built(tf, np, layers.EinsumDense("ab,bc->ac", 4), 5), x),
        layers.CategoryEncoding(4, output_mode="one_hot")(np.array([1, 3])),
        layers.ActivityRegularization(0.1)(x),
        layers.Dropout(0.0)(x, training=True),
        layers.Dropout(0.5)(x),
        layers.Identity()(x),
        layers.Lambda(lambda value: value * 2)(x),
    ]


@program()
def merging_layers(tf, np):
    layers = tf.keras.layers
    a, b = numbers(np, 2, 3, 4), numbers(np, 3, 2, 4)[:2].repeat(2, axis=1)[:, :3]
    merges = [layers.Add(), layers.Subtract(), layers.Multiply(), layers.Average(), layers.Maximum(), layers.Minimum()]
    merges += [layers.Concatenate(), layers.Concatenate(axis=1), layers.Dot(axes=2), layers.Dot((2, 2), normalize=True)]
    return [layer([a, b]) for layer in merges]


@program()
def attention(tf, np):
    layer = tf.keras.layers.MultiHeadAttention(2, 4)
    layer.build((None, 5, 8), (None, 5, 8))
    known(np, layer)
    x = tf.constant(numbers(np, 2, 5, 8))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y, scores = layer(x, x, use_causal_mask=True, return_attention_scores=True)
        loss = tf.reduce_sum(tf.square(y))
    found = tape.gradient(loss, [x, *layer.trainable_variables])
    plain = tf.keras.layers.Attention()([numbers(np, 2, 3, 4), numbers(np, 2, 5, 4)])

    return [y, scores, *found, plain]


@program()
def attention_of_sequences_padded_on_either_side(tf, np):
    x = tf.constant(numbers(np, 2, 5, 8))
    padded = np.array([[0, 0, 1, 1, 1], [1, 1, 1, 0, 0]], bool)
    masks = {"keys": padded[:, None, :], "both": padded[:, None, :] & padded[:, :, None]}
    results = {}
    for name, mask in masks.items():
        for causal in (False, True):
            layer = tf.keras.layers.MultiHeadAttention(2, 4)
            layer.build((None, 5, 8), (None, 5, 8))
            known(np, layer)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = layer(x, x, attention_mask=tf.constant(mask), use_causal_mask=causal)
                loss = tf.reduce_sum(tf.sin(y))
            results[f"{name} {causal}"] = [y, tape.gradient(loss, x)]
    return results


def recurrent(tf, np, kind, *args, **options):
    layer = getattr(tf.keras.layers, kind)(5, recurrent_initializer="zeros", **options)
    return gradients(tf, built(tf, np, layer, 6, 3), numbers(np, 2, 6, 3), *args)


@program()
def recurrent_layers(tf, np):
    return {kind: recurrent(tf, np, kind) for kind in ("SimpleRNN", "LSTM", "GRU")}


@program()
def recurrent_layers_with_all_outputs_backwards(tf, np):
    options = {"return_sequences": True, "go_backwards": True}
    return {kind: recurrent(tf, np, kind, **options) for kind in ("SimpleRNN", "LSTM", "GRU")}


@program()
def recurrent_layers_that_are_unrolled(tf, np):
    return {kind: recurrent(tf, np, kind, unroll=True) for kind in ("LSTM", "GRU")}


@program()
def recurrent_layers_with_a_mask(tf, np):
    mask = np.array([[1, 1, 0, 1, 0, 0], [0, 1, 1, 1, 1, 1]], bool)
    found = {}
    for kind in ("SimpleRNN", "LSTM", "GRU"):
        for options in ({}, {"return_sequences": True}, {"return_sequences": True, "zero_output_for_mask": True}):
            layer = built(tf, np, getattr(tf.keras.layers, kind)(4, recurrent_initializer="zeros", **options), 6, 3)
            found[f"{kind} {sorted(options)}"] = gradients(tf, layer, numbers(np, 2, 6, 3), mask=tf.constant(mask))
    return found


@program()
def the_states_of_recurrent_layers(tf, np):
    layers = tf.keras.layers
    lstm = built(tf, np, layers.LSTM(4, return_state=True, recurrent_initializer="zeros"), 6, 3)
    x = numbers(np, 2, 6, 3)
    y, h, c = lstm(x)
    again = lstm(x, initial_state=[h, c])

    return [y, h, c, *again]


@program()
def stacked_and_bidirectional(tf, np):
    layers = tf.keras.layers
    inner = {"recurrent_initializer": "zeros"}
    both = layers.Bidirectional(layers.LSTM(3, **inner), merge_mode="sum")
    cells = layers.RNN([layers.GRUCell(4, **inner), layers.LSTMCell(3, **inner)], return_sequences=True)
    distributed = layers.TimeDistributed(layers.Dense(2))
    return [gradients(tf, built(tf, np, layer, 6, 3), numbers(np, 2, 6, 3)) for layer in (both, cells, distributed)]


@program()
def a_cell_of_ones_own(tf, np):
    class Cell(tf.keras.layers.Layer):
        def __init__(self, units):
            super().__init__()
            self.state_size = units

        def build(self, input_shape):
            self.kernel = self.add_weight(shape=(input_shape[-1], self.state_size), name="kernel")
            self.inner = self.add_weight(shape=(self.state_size, self.state_size), name="inner")
            self.built = True

        def call(self, inputs, states):
            output = tf.tanh(tf.matmul(inputs, self.kernel) + tf.matmul(states[0], self.inner))
            return output, [output]

    layer = tf.keras.layers.RNN(Cell(4))
    layer(numbers(np, 2, 6, 3))
    return gradients(tf, known(np, layer), numbers(np, 2, 6, 3))


@program()
def masks_go_through_models(tf, np):
    layers = tf.keras.layers
    lstm = layers.LSTM(3, recurrent_initializer="zeros")
    parts = [tf.keras.Input((5,), dtype="int32"), layers.Embedding(10, 4, mask_zero=True), layers.Bidirectional(lstm)]
    model = known(np, tf.keras.Sequential([*parts, layers.Dense(1)]))
    return model(np.array([[1, 2, 0, 0, 0], [3, 4, 5, 6, 0]]))
