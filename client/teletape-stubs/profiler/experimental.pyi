"""What `tf.profiler.experimental` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.core.profiling.annotations import Trace as Trace

__all__ = ["Trace"]
