"""What `tf.sparse` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.extras.sparse_tensors.arithmetic import add as add
from teletape.extras.sparse_tensors.arithmetic import map_values as map_values
from teletape.extras.sparse_tensors.arithmetic import maximum as maximum
from teletape.extras.sparse_tensors.arithmetic import minimum as minimum
from teletape.extras.sparse_tensors.arithmetic import softmax as softmax
from teletape.extras.sparse_tensors.arithmetic import sparse_dense_matmul as sparse_dense_matmul
from teletape.extras.sparse_tensors.conversions import expand_dims as expand_dims
from teletape.extras.sparse_tensors.conversions import eye as eye
from teletape.extras.sparse_tensors.conversions import from_dense as from_dense
from teletape.extras.sparse_tensors.conversions import reorder as reorder
from teletape.extras.sparse_tensors.conversions import reset_shape as reset_shape
from teletape.extras.sparse_tensors.conversions import reshape as reshape
from teletape.extras.sparse_tensors.conversions import to_dense as to_dense
from teletape.extras.sparse_tensors.conversions import to_indicator as to_indicator
from teletape.extras.sparse_tensors.conversions import transpose as transpose
from teletape.extras.sparse_tensors.parts import concat as concat
from teletape.extras.sparse_tensors.parts import fill_empty_rows as fill_empty_rows
from teletape.extras.sparse_tensors.parts import mask as mask
from teletape.extras.sparse_tensors.parts import retain as retain
from teletape.extras.sparse_tensors.parts import slice as slice
from teletape.extras.sparse_tensors.parts import split as split
from teletape.extras.sparse_tensors.reductions import bincount as bincount
from teletape.extras.sparse_tensors.reductions import reduce_max as reduce_max
from teletape.extras.sparse_tensors.reductions import reduce_sum as reduce_sum
from teletape.extras.sparse_tensors.reductions import segment_mean as segment_mean
from teletape.extras.sparse_tensors.reductions import segment_sqrt_n as segment_sqrt_n
from teletape.extras.sparse_tensors.reductions import segment_sum as segment_sum
from teletape.extras.sparse_tensors.tensor import SparseTensor as SparseTensor

__all__ = [
    "SparseTensor",
    "add",
    "bincount",
    "concat",
    "expand_dims",
    "eye",
    "fill_empty_rows",
    "from_dense",
    "map_values",
    "mask",
    "maximum",
    "minimum",
    "reduce_max",
    "reduce_sum",
    "reorder",
    "reset_shape",
    "reshape",
    "retain",
    "segment_mean",
    "segment_sqrt_n",
    "segment_sum",
    "slice",
    "softmax",
    "sparse_dense_matmul",
    "split",
    "to_dense",
    "to_indicator",
    "transpose",
]
