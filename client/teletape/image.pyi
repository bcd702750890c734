"""What `tf.image` holds. Written by `make reference` from teletape.namespace."""

from teletape.ops.derived.image import adjust_contrast as adjust_contrast
from teletape.ops.images import extract_patches as extract_patches

__all__ = ["adjust_contrast", "extract_patches"]
