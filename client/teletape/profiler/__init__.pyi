"""What `tf.profiler` holds. Written by `make reference` from teletape.namespace."""

from teletape.profiler import experimental as experimental

__all__ = ["experimental"]
