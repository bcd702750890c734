"""What `tf.types.experimental` holds. Written by `make reference` from teletape.namespace."""

from teletape.ops.arguments import ConvertibleToTensor as TensorLike

__all__ = ["TensorLike"]
