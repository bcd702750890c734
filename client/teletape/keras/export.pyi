"""What `tf.keras` holds. Written by `make reference` from teletape.namespace."""

from keras.export import *
