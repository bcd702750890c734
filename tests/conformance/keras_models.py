"""What the programs about Keras share: known numbers, known weights, a small model with its data."""

from __future__ import annotations

from typing import Any


def numbers(np: Any, *shape: int) -> Any:
    """Normal float32 numbers of a shape: the same ones for the same shape."""
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")


def known(np: Any, layer: Any, seed: int = 1) -> Any:
    """Gives each floating weight of a built layer or model its own numbers, variances positive ones; returns it."""
    random = np.random.default_rng(seed)
    arrays = []
    for variable, array in zip(layer.weights, layer.get_weights(), strict=True):
        drawn = random.normal(0, 0.3, array.shape)
        if array.dtype.kind == "f":
            array = (np.abs(drawn) + 0.1 if "variance" in variable.name else drawn).astype(array.dtype)
        arrays.append(array)
    layer.set_weights(arrays)
    return layer


def gradients(tf: Any, layer: Any, x: Any, *args: Any, **kwargs: Any) -> list[Any]:
    """The output of a layer, and the gradients of the sum of its squares for its input and its variables."""
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, *args, **kwargs)
        loss = tf.reduce_sum(tf.square(tf.cast(y, "float32")))
    return [y, *map(tf.convert_to_tensor, tape.gradient(loss, [x, *layer.trainable_variables]))]


def classes(np: Any) -> tuple[Any, Any]:
    """96 rows of six numbers, and whether their sum is positive."""
    x = np.random.default_rng(5).normal(size=(96, 6)).astype("float32")
    return x, (x.sum(-1) > 0).astype("int64")


def perceptron(tf: Any, np: Any) -> Any:
    """A model of two classes, with batch normalization and known weights."""
    layers = tf.keras.layers
    parts = [tf.keras.Input((6,)), layers.Dense(8, activation="relu"), layers.BatchNormalization(), layers.Dense(2)]
    return known(np, tf.keras.Sequential(parts))


def history(record: Any) -> dict[str, list[float]]:
    """The history of a fit."""
    return {name: [float(number) for number in values] for name, values in record.history.items()}
