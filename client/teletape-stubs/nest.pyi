"""What `tf.nest` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.core.tensors.nest import assert_same_structure as assert_same_structure
from teletape.core.tensors.nest import flatten as flatten
from teletape.core.tensors.nest import is_nested as is_nested
from teletape.core.tensors.nest import map_structure as map_structure
from teletape.core.tensors.nest import pack_sequence_as as pack_sequence_as

__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]
