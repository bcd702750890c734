"""An optimizer that gets None for a gradient says why, in the words and with the code of the explanation."""

from typing import Any

import numpy as np
import pytest

import teletape as tf
from teletape.core.variables import none_gradients

X = np.ones((2, 3), np.float32)


def model() -> Any:
    layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(2, name="lost"), tf.keras.layers.Dense(1, name="near")]
    return tf.keras.Sequential(layers)


def loss_of(network: Any, cut: Any) -> Any:
    return tf.reduce_sum(network.layers[1](cut(network.layers[0](X))))


def test_a_warning_names_the_reason_of_each_variable(connected: Any) -> None:
    network, optimizer = model(), tf.keras.optimizers.SGD(0.1)
    with tf.GradientTape() as tape:
        loss = loss_of(network, tf.round)
    gradients = tape.gradient(loss, network.trainable_variables)
    with pytest.warns(UserWarning, match="Gradients do not exist for variables") as caught:
        optimizer.apply_gradients(zip(gradients, network.trainable_variables, strict=True))
    text = str(caught[0].message)
    assert "lost/kernel: op 'round' is declared non-differentiable: it has no gradient [non_differentiable_op]" in text
    assert text.count("[non_differentiable_op]") == 2
    assert int(optimizer.iterations) == 1


def test_an_error_names_the_reason(connected: Any) -> None:
    network, optimizer = model(), tf.keras.optimizers.Adam(0.1)
    with tf.GradientTape() as tape:
        loss = tf.stop_gradient(loss_of(network, tf.identity))
    gradients = tape.gradient(loss, network.trainable_variables)
    with pytest.raises(ValueError, match=r"for any variable\.\n\w+/lost/kernel: .*\[stop_gradient\]"):
        optimizer.apply(gradients, network.trainable_variables)


def test_inside_a_function_too(connected: Any) -> None:
    network, optimizer = model(), tf.keras.optimizers.SGD(0.1)
    optimizer.build(network.trainable_variables)

    @tf.function
    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(network, lambda x: tf.cast(tf.cast(x, tf.int32), tf.float32))
        gradients = tape.gradient(loss, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables, strict=True))
        return loss

    with pytest.warns(UserWarning, match=r"lost/bias: .* \[integer_or_bool\]"):
        step()


def test_without_the_tape_the_message_is_that_of_keras() -> None:
    variable = tf.keras.Variable(1.0)
    with pytest.raises(ValueError, match=r"^No gradients provided for any variable\.$"):
        tf.keras.optimizers.SGD(0.1).apply([None], [variable])
    with tf.GradientTape() as tape:
        target = tf.constant(1.0)
    assert tape.gradient(target, variable) is None
    assert none_gradients.explanation(variable).code == "unconnected"
    del tape
    assert none_gradients.explanation(variable) is None
    assert none_gradients.explanation(tf.constant(1.0)) is None
