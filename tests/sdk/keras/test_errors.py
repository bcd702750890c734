"""An op's error inside a layer: its own words, and Keras's about the layer."""

from __future__ import annotations

import traceback

import numpy as np
import pytest

import teletape as tf
from teletape.core.program.call_site import PACKAGES


def sums(**options):
    """A layer whose op does not fit its input; Keras is imported here, which takes seconds."""

    class Sums(tf.keras.layers.Layer):
        def call(self, x):
            return tf.raw_ops.ImageProjectiveTransformV3(
                images=x, transforms=tf.ones([1, 3]), output_shape=[2, 2], fill_value=0.0, interpolation="NEAREST"
            )

    return Sums(**options)


def test_an_error_of_an_op_says_what_was_wrong_and_which_layer_it_was():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"should be num_images x 8 or 1 x 8") as caught:
        sums(name="turning")(np.ones((1, 4, 4, 1), np.float32))
    assert "Exception encountered when calling Sums.call()" in str(caught.value)


def test_an_error_is_made_as_in_tensorflow():
    error = tf.errors.InvalidArgumentError(None, None, "no such thing", 3)
    assert (str(error), error.message, error.node_def, error.op) == ("no such thing", "no such thing", None, None)
    assert str(tf.errors.NotFoundError(None, None, "nothing there")) == "nothing there"


def outside(_, y_pred):
    """A loss whose positions are outside of what it gathers from."""
    far = tf.cast(9.0 * tf.ones(20), tf.int32)
    return tf.reduce_mean(tf.gather(y_pred, far))


@pytest.mark.parametrize("eagerly", [False, True])
def test_an_error_of_fit_shows_no_line_of_teletape(connected, eagerly):
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", outside, run_eagerly=eagerly)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[0\] = 9 is") as caught:
        model.fit(np.ones((4, 2), np.float32), np.ones((4, 1), np.float32), batch_size=2, verbose=0)
    files = [entry.filename for entry in traceback.extract_tb(caught.value.__traceback__)]
    assert files[0] == __file__
    assert not [file for file in files if file.startswith(tuple(PACKAGES))]
