"""What `tf.experimental.dlpack` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.core.tensors.dlpack import from_dlpack as from_dlpack
from teletape.core.tensors.dlpack import to_dlpack as to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
