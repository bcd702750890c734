"""What `tf.keras` holds. Written by `make reference` from scripts/public_surface.py."""

from keras.tree import *
