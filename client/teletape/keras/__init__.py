"""`tf.keras`, as far as a program of dense layers uses it: layers, initializers, activations and their variables.

Names, paths and errors are those of Keras 3.15; the maths is `teletape`'s.
"""

from teletape.keras import activations, initializers, layers
from teletape.keras.variable import Variable

__all__ = ["Variable", "activations", "initializers", "layers"]
