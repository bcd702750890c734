"""What `tf.compat.v1` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.compat.v1 import image as image

from teletape.core.tensors.tensor_shape import Dimension as Dimension
from teletape.core.tensors.tensor_shape import dimension_at_index as dimension_at_index
from teletape.core.tensors.tensor_shape import dimension_value as dimension_value
from teletape.core.variables.name_scope import name_scope_v1 as name_scope
from teletape.extras.sparse_tensors.conversions import (
    convert_to_tensor_or_sparse_tensor as convert_to_tensor_or_sparse_tensor,
)
from teletape.extras.sparse_tensors.tensor import SparseTensorValue as SparseTensorValue
from teletape.tf.control_flow.compat_v1 import cond as cond
from teletape.tf.control_flow.compat_v1 import while_loop as while_loop
from teletape.tf.control_flow.eager import case as case
from teletape.tf.control_flow.eager import switch_case as switch_case
from teletape.tf.control_flow.folds import foldl as foldl
from teletape.tf.control_flow.folds import foldr as foldr
from teletape.tf.control_flow.folds import scan as scan
from teletape.tf.control_flow.maps import map_fn as map_fn
from teletape.tf.ops.arrays.create import placeholder_with_default as placeholder_with_default
from teletape.tf.ops.random.stateful import set_seed as set_random_seed
from teletape.tf.summary.events import SummaryMetadata as SummaryMetadata

__all__ = [
    "Dimension",
    "SparseTensorValue",
    "SummaryMetadata",
    "case",
    "cond",
    "convert_to_tensor_or_sparse_tensor",
    "dimension_at_index",
    "dimension_value",
    "foldl",
    "foldr",
    "image",
    "map_fn",
    "name_scope",
    "placeholder_with_default",
    "scan",
    "set_random_seed",
    "switch_case",
    "while_loop",
]
