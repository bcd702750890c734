"""What `tf.lookup.experimental` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.extras.lookup_tables.mutable import DenseHashTable as DenseHashTable
from teletape.extras.lookup_tables.mutable import MutableHashTable as MutableHashTable

__all__ = ["DenseHashTable", "MutableHashTable"]
