"""What `tf.types` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.types import experimental as experimental

__all__ = ["experimental"]
