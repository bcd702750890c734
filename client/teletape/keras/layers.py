"""`tf.keras.layers`: the public names of the layers. It defines nothing, so that editors complete layers alone."""

from teletape.keras.dense import Dense
from teletape.keras.layer import Layer

__all__ = ["Dense", "Layer"]
