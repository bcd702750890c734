"""What `tf.image` holds. Written by `make reference` from teletape.namespace."""

from teletape.ops.derived.image import adjust_contrast as adjust_contrast

__all__ = ["adjust_contrast"]
