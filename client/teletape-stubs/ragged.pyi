"""What `tf.ragged` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.extras.ragged_tensors.forms.gathering import boolean_mask as boolean_mask
from teletape.extras.ragged_tensors.functions import constant as constant
from teletape.extras.ragged_tensors.functions import map_flat_values as map_flat_values
from teletape.extras.ragged_tensors.functions import range as range
from teletape.extras.ragged_tensors.functions import row_splits_to_segment_ids as row_splits_to_segment_ids
from teletape.extras.ragged_tensors.functions import segment_ids_to_row_splits as segment_ids_to_row_splits
from teletape.extras.ragged_tensors.functions import stack as stack
from teletape.extras.ragged_tensors.functions import stack_dynamic_partitions as stack_dynamic_partitions

__all__ = [
    "boolean_mask",
    "constant",
    "map_flat_values",
    "range",
    "row_splits_to_segment_ids",
    "segment_ids_to_row_splits",
    "stack",
    "stack_dynamic_partitions",
]
