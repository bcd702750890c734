"""What `tf.autodiff` holds. Written by `make reference` from teletape.namespace."""

from teletape.derivatives.forward import ForwardAccumulator as ForwardAccumulator
from teletape.derivatives.tape import GradientTape as GradientTape

__all__ = ["ForwardAccumulator", "GradientTape"]
