"""What `tf.compat` holds. Written by `make reference` from teletape.namespace."""

from teletape.compat import v1 as v1

__all__ = ["v1"]
