"""What `tf.compat.v1.image` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.tf.ops.images.resize_v1 import ResizeMethod as ResizeMethod
from teletape.tf.ops.images.resize_v1 import resize as resize
from teletape.tf.ops.images.resize_v1 import resize as resize_images

__all__ = ["ResizeMethod", "resize", "resize_images"]
