"""What `tf.linalg.experimental` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.extras.linear_operators.conjugate_gradient import conjugate_gradient as conjugate_gradient

__all__ = ["conjugate_gradient"]
