"""What `tf.types` holds. Written by `make reference` from teletape.namespace."""

from teletape.types import experimental as experimental

__all__ = ["experimental"]
