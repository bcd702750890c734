"""Shapes that Keras infers without values, also of functions that only fit some numbers of rows."""

from conformance.probes import raises
from conformance.program import program


def output_shape(tf, shape, function):
    return list(tf.keras.layers.Lambda(function)(tf.keras.Input(shape)).shape)


@program()
def functions_of_tensorflow_in_a_lambda_layer(tf, np):
    return [
        output_shape(tf, (5,), lambda x: tf.reshape(x, (-1, 7))),
        output_shape(tf, (5,), lambda x: tf.reshape(x, (-1, 11, 5))),
        output_shape(tf, (None, 9), lambda x: tf.reshape(x, (tf.shape(x)[0], -1, 3))),
        output_shape(tf, (None,), lambda x: tf.split(x, 7, axis=1)[2]),
        output_shape(tf, (9,), lambda x: x[:, : x.shape[1] // 2]),
        output_shape(tf, (None,), lambda x: x[:, : tf.shape(x)[1] // 2]),
        output_shape(tf, (None,), lambda x: x[:, ::2]),
        output_shape(tf, (None,), lambda x: x[:, 200]),
        output_shape(tf, (None, None, 1), lambda x: tf.nn.space_to_depth(x, 7)),
        output_shape(tf, (None, None, 2), lambda x: tf.nn.conv2d(x, tf.ones((3, 3, 2, 4)), 2, "VALID")),
        output_shape(tf, (None, None, 2), lambda x: tf.nn.conv2d(x, tf.ones((200, 200, 2, 4)), 2, "VALID")),
        output_shape(tf, (3,), lambda x: tf.concat([x, x], 0)),
        output_shape(tf, (3,), lambda x: tf.map_fn(lambda row: row * 2, x)),
        output_shape(tf, (3,), lambda x: tf.range(tf.shape(x)[0])),
        output_shape(tf, (4,), lambda x: tf.unstack(x, axis=1)[0]),
        output_shape(tf, (4,), lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x, lambda: -x)),
        raises(
            lambda: output_shape(tf, (4,), lambda x: tf.matmul(x, tf.ones((3, 2)))), "infer the shape of the Lambda"
        ),
    ]


@program()
def layers_of_any_length(tf, np):
    layers, inputs = tf.keras.layers, tf.keras.Input

    def shape(layer, *sizes):
        return list(layer(inputs(sizes)).shape)

    sequence = inputs((None, 6))
    return [
        shape(layers.Reshape((-1, 7)), None),
        shape(layers.Flatten(), None, 3),
        shape(layers.Permute((2, 1)), None, 3),
        shape(layers.UpSampling2D(3), None, None, 2),
        shape(layers.LSTM(3, return_sequences=True), None, 5),
        shape(layers.Bidirectional(layers.GRU(3)), None, 5),
        shape(layers.TimeDistributed(layers.Dense(3)), None, 5),
        shape(layers.GlobalAveragePooling2D(), None, None, 3),
        shape(layers.Conv2DTranspose(3, 3, 2), None, None, 3),
        shape(layers.Embedding(9, 3), None),
        shape(layers.GroupNormalization(3), None, None, 9),
        shape(layers.ZeroPadding2D(3), None, None, 9),
        shape(layers.Cropping2D(3), None, None, 9),
        shape(layers.AveragePooling1D(3), None, 3),
        shape(layers.Resizing(8, 8), None, None, 3),
        list(layers.MultiHeadAttention(2, 3)(sequence, sequence).shape),
    ]


@program()
def a_model_of_any_size_computes(tf, np):
    inputs = tf.keras.Input((None, None, 1))
    halves = tf.keras.layers.Lambda(lambda x: tf.image.resize(x, (tf.shape(x)[1] // 2, tf.shape(x)[2] // 2)))(inputs)
    rows = tf.keras.layers.Lambda(lambda x: tf.reshape(x, (tf.shape(x)[0], -1)))(halves)
    model = tf.keras.Model(inputs, [halves, rows])
    image = np.arange(70, dtype="float32").reshape(1, 10, 7, 1)
    return [list(halves.shape), list(rows.shape), model(image)]
