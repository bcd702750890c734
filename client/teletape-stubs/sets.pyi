"""What `tf.sets` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.extras.sparse_tensors.sets import difference as difference
from teletape.extras.sparse_tensors.sets import intersection as intersection
from teletape.extras.sparse_tensors.sets import size as size
from teletape.extras.sparse_tensors.sets import union as union

__all__ = ["difference", "intersection", "size", "union"]
