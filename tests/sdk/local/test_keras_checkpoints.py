"""Checkpoints of Keras models and optimizers: built or not yet, and what the optimizer has remembered."""

import numpy as np
import pytest

import teletape as tf

X = np.linspace(-1.0, 1.0, 8, dtype=np.float32).reshape(4, 2)


def sequential(*, built):
    layers = [tf.keras.layers.Dense(3), tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(1)]
    return tf.keras.Sequential([tf.keras.Input((2,)), *layers] if built else layers)


def with_containers():
    """A model with layers in attributes, a list and a dict, and weights; Keras is only imported here."""

    class WithContainers(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.first = tf.keras.layers.Dense(2)
            self.rest = [tf.keras.layers.Dense(2), tf.keras.layers.Dense(2)]
            self.heads = {"out": tf.keras.layers.Dense(1)}
            self.scale = self.add_weight(shape=(1,), initializer="ones", name="scale")

        def call(self, x):
            for layer in [self.first, *self.rest]:
                x = layer(x)
            return self.heads["out"](x) * self.scale

    return WithContainers()


def train(model, optimizer):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(model(X, training=True) - 1.0))
    optimizer.apply_gradients(
        zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
    )
    return loss.numpy()


@pytest.mark.parametrize("built", [True, False])
def test_a_model_and_its_optimizer_go_on_as_if_they_had_not_stopped(tmp_path, built):
    tf.keras.utils.set_random_seed(7)  # a step from some weights goes too far, and the loss grows
    model, optimizer = sequential(built=True), tf.keras.optimizers.Adam(0.1)
    first = train(model, optimizer)
    path = tf.train.Checkpoint(model=model, optimizer=optimizer).save(tmp_path / "ckpt")
    losses = [train(model, optimizer) for _ in range(3)]
    again, its_optimizer = sequential(built=built), tf.keras.optimizers.Adam(0.1)
    status = tf.train.Checkpoint(model=again, optimizer=its_optimizer).restore(path)
    np.testing.assert_allclose([train(again, its_optimizer) for _ in range(3)], losses, rtol=1e-6)
    status.assert_consumed()
    assert losses[0] < first


def test_layers_in_lists_and_dicts_are_restored_when_they_are_built(tmp_path):
    model = with_containers()
    expected = model(X)
    path = tf.train.Checkpoint(model).write(tmp_path / "weights")
    other = with_containers()
    tf.train.Checkpoint(other).read(path)
    np.testing.assert_array_equal(other(X), expected)


def test_the_names_are_those_of_the_program(tmp_path):
    model = sequential(built=True)
    path = tf.train.Checkpoint(net=model).write(tmp_path / "weights")
    names = [name.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE") for name, _ in tf.train.list_variables(path)]
    assert names == [
        "net/layers/0/_kernel",
        "net/layers/0/bias",
        "net/layers/1/beta",
        "net/layers/1/gamma",
        "net/layers/1/moving_mean",
        "net/layers/1/moving_variance",
        "net/layers/2/_kernel",
        "net/layers/2/bias",
    ]
