"""What `tf.profiler.experimental` holds. Written by `make reference` from teletape.namespace."""

from teletape.profiling.annotations import Trace as Trace

__all__ = ["Trace"]
