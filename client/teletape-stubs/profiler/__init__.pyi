"""What `tf.profiler` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.profiler import experimental as experimental

__all__ = ["experimental"]
