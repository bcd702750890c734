"""What `tf.autodiff` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.core.derivatives.forward import ForwardAccumulator as ForwardAccumulator
from teletape.core.derivatives.tape import GradientTape as GradientTape

__all__ = ["ForwardAccumulator", "GradientTape"]
