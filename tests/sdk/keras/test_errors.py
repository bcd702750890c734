"""An op's error inside a layer: its own words, and Keras's about the layer."""

from __future__ import annotations

import numpy as np
import pytest

import teletape as tf


class Sums(tf.keras.layers.Layer):
    """A layer whose op does not fit its input."""

    def call(self, x):
        return tf.raw_ops.ImageProjectiveTransformV3(
            images=x, transforms=tf.ones([1, 3]), output_shape=[2, 2], fill_value=0.0, interpolation="NEAREST"
        )


def test_an_error_of_an_op_says_what_was_wrong_and_which_layer_it_was():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"should be num_images x 8 or 1 x 8") as caught:
        Sums(name="turning")(np.ones((1, 4, 4, 1), np.float32))
    assert "Exception encountered when calling Sums.call()" in str(caught.value)


def test_an_error_is_made_as_in_tensorflow():
    error = tf.errors.InvalidArgumentError(None, None, "no such thing", 3)
    assert (str(error), error.message, error.node_def, error.op) == ("no such thing", "no such thing", None, None)
    assert str(tf.errors.NotFoundError(None, None, "nothing there")) == "nothing there"
