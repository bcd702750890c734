"""What `tf.types.experimental` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.core.calls.arguments import ConvertibleToTensor as TensorLike

__all__ = ["TensorLike"]
