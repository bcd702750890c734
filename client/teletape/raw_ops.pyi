"""What `tf.raw_ops` holds. Written by `make reference` from teletape.namespace."""

from teletape.ops.derived.blocks import extract_volume_patches as ExtractVolumePatches
from teletape.ops.derived.cast import no_gradient as no_gradient
from teletape.ops.derived.projective import ImageProjectiveTransformV3 as ImageProjectiveTransformV3
from teletape.ops.derived.sorting import Bucketize as Bucketize

__all__ = ["Bucketize", "ExtractVolumePatches", "ImageProjectiveTransformV3", "no_gradient"]
