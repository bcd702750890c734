"""`tf.RegisterGradient`: what no recorded program of TensorFlow's shows."""

import numpy as np
import pytest

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession


@pytest.fixture(autouse=True)
def session():
    yield use(LocalSession())
    use(LocalSession())


def gradient(f, *sources):
    with tf.GradientTape() as tape:
        y = f(*sources)
    return tape.gradient(y, list(sources))


IMAGE = np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3)


def test_registering_belongs_to_the_session():
    tf.RegisterGradient("AdjustContrastv2")(lambda op, dy: (dy, None))
    use(LocalSession())
    x = tf.Variable(IMAGE)
    with pytest.raises(LookupError, match="gradient registry has no entry for: AdjustContrastv2"):
        gradient(lambda x: tf.image.adjust_contrast(x, 2.0), x)


@pytest.mark.parametrize("inputs", [lambda dy: dy, lambda dy: (dy, dy, dy)])
def test_another_count_than_the_inputs(inputs):
    tf.RegisterGradient("AdjustContrastv2")(lambda op, dy: inputs(dy))
    with pytest.raises(tf.errors.OpError, match=r"returned too few gradients\. Expected 2 but received"):
        gradient(lambda x: tf.image.adjust_contrast(x, 2.0), tf.Variable(IMAGE))


def test_none_is_none_and_an_attribute_that_is_not_there():
    seen = []

    @tf.RegisterGradient("AdjustContrastv2")
    def grad(op, dy):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Attribute 'N' does not exist for this operation"):
            op.get_attr("N")
        seen.append([op.get_attr("T"), op.inputs[0].numpy().tolist(), float(op.inputs[1])])
        return None, None

    assert gradient(lambda x: tf.image.adjust_contrast(x, 2.0), tf.Variable(IMAGE)) == [None]
    assert seen == [[tf.float32, IMAGE.tolist(), 2.0]]


def test_a_jacobian_through_a_registered_op_goes_row_by_row():
    tf.RegisterGradient("AdjustContrastv2")(lambda op, dy: (dy * op.inputs[1], None))
    x = tf.Variable(IMAGE)
    with tf.GradientTape() as tape:
        y = tf.image.adjust_contrast(x, 2.0)
    assert np.array_equal(tape.jacobian(y, x).numpy().reshape(12, 12), 2.0 * np.eye(12))
