"""What `tf.keras` holds. Written by `make reference` from teletape.namespace."""

from keras._tf_keras.keras.saving import *
