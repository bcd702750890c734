"""What `tf.autodiff` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.derivatives.forward import ForwardAccumulator as ForwardAccumulator
from teletape.derivatives.tape import GradientTape as GradientTape

__all__ = ["ForwardAccumulator", "GradientTape"]
