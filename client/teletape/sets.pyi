"""What `tf.sets` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.sparse_tensors.sets import difference as difference
from teletape.sparse_tensors.sets import intersection as intersection
from teletape.sparse_tensors.sets import size as size
from teletape.sparse_tensors.sets import union as union

__all__ = ["difference", "intersection", "size", "union"]
