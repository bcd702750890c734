"""What `tf.raw_ops` holds. Written by `make reference` from teletape.namespace."""

from teletape.ops.derived.cast import no_gradient as no_gradient

__all__ = ["no_gradient"]
