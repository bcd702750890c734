"""What `teletape` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape import audio as audio
from teletape import autodiff as autodiff
from teletape import autograph as autograph
from teletape import bitwise as bitwise
from teletape import compat as compat
from teletape import config as config
from teletape import data as data
from teletape import debugging as debugging
from teletape import distribute as distribute
from teletape import dtypes as dtypes
from teletape import errors as errors
from teletape import experimental as experimental
from teletape import image as image
from teletape import io as io
from teletape import keras as keras
from teletape import linalg as linalg
from teletape import lookup as lookup
from teletape import math as math
from teletape import nest as nest
from teletape import nn as nn
from teletape import onnx as onnx
from teletape import profiler as profiler
from teletape import ragged as ragged
from teletape import random as random
from teletape import raw_ops as raw_ops
from teletape import saved_model as saved_model
from teletape import sets as sets
from teletape import signal as signal
from teletape import sparse as sparse
from teletape import stablehlo as stablehlo
from teletape import strings as strings
from teletape import summary as summary
from teletape import test as test
from teletape import train as train
from teletape import types as types
from teletape import version as version
from teletape._generated.counting import histogram_fixed_width as histogram_fixed_width
from teletape._generated.counting import histogram_fixed_width_bins as histogram_fixed_width_bins
from teletape._generated.cumulative import cumsum as cumsum
from teletape._generated.elementwise.arithmetic import add as add
from teletape._generated.elementwise.arithmetic import add_n as add_n
from teletape._generated.elementwise.arithmetic import atan2 as atan2
from teletape._generated.elementwise.arithmetic import clip_by_value as clip_by_value
from teletape._generated.elementwise.arithmetic import divide as divide
from teletape._generated.elementwise.arithmetic import maximum as maximum
from teletape._generated.elementwise.arithmetic import minimum as minimum
from teletape._generated.elementwise.arithmetic import multiply as multiply
from teletape._generated.elementwise.arithmetic import pow as pow
from teletape._generated.elementwise.arithmetic import saturate_cast as saturate_cast
from teletape._generated.elementwise.arithmetic import subtract as subtract
from teletape._generated.elementwise.arithmetic import truediv as realdiv
from teletape._generated.elementwise.arithmetic import truediv as truediv
from teletape._generated.elementwise.arithmetic import truncatediv as truncatediv
from teletape._generated.elementwise.arithmetic import truncatemod as truncatemod
from teletape._generated.elementwise.complex import abs as abs
from teletape._generated.elementwise.complex import complex as complex
from teletape._generated.elementwise.complex import sign as sign
from teletape._generated.elementwise.logic import equal as equal
from teletape._generated.elementwise.logic import greater as greater
from teletape._generated.elementwise.logic import greater_equal as greater_equal
from teletape._generated.elementwise.logic import less as less
from teletape._generated.elementwise.logic import less_equal as less_equal
from teletape._generated.elementwise.logic import logical_and as logical_and
from teletape._generated.elementwise.logic import logical_not as logical_not
from teletape._generated.elementwise.logic import logical_or as logical_or
from teletape._generated.elementwise.logic import not_equal as not_equal
from teletape._generated.elementwise.math import acos as acos
from teletape._generated.elementwise.math import asin as asin
from teletape._generated.elementwise.math import atan as atan
from teletape._generated.elementwise.math import cos as cos
from teletape._generated.elementwise.math import cosh as cosh
from teletape._generated.elementwise.math import exp as exp
from teletape._generated.elementwise.math import floor as floor
from teletape._generated.elementwise.math import negative as negative
from teletape._generated.elementwise.math import round as round
from teletape._generated.elementwise.math import sigmoid as sigmoid
from teletape._generated.elementwise.math import sin as sin
from teletape._generated.elementwise.math import sinh as sinh
from teletape._generated.elementwise.math import sqrt as sqrt
from teletape._generated.elementwise.math import square as square
from teletape._generated.elementwise.math import tan as tan
from teletape._generated.elementwise.math import tanh as tanh
from teletape._generated.elementwise.special import acosh as acosh
from teletape._generated.elementwise.special import asinh as asinh
from teletape._generated.elementwise.special import atanh as atanh
from teletape._generated.linalg.eigen import eig as eig
from teletape._generated.linalg.einsum import einsum as einsum
from teletape._generated.linalg.matrix_functions import sqrtm as matrix_square_root
from teletape._generated.linalg.products import matmul as matmul
from teletape._generated.nn.blocks import batch_to_space as batch_to_space
from teletape._generated.nn.blocks import extract_volume_patches as extract_volume_patches
from teletape._generated.nn.blocks import space_to_batch as space_to_batch
from teletape._generated.nn.blocks import space_to_batch as space_to_batch_nd
from teletape._generated.reduce import argmax as argmax
from teletape._generated.reduce import argmin as argmin
from teletape._generated.reduce import reduce_all as reduce_all
from teletape._generated.reduce import reduce_any as reduce_any
from teletape._generated.reduce import reduce_logsumexp as reduce_logsumexp
from teletape._generated.reduce import reduce_max as reduce_max
from teletape._generated.reduce import reduce_mean as reduce_mean
from teletape._generated.reduce import reduce_min as reduce_min
from teletape._generated.reduce import reduce_prod as reduce_prod
from teletape._generated.reduce import reduce_sum as reduce_sum
from teletape._generated.shapes.cast import bitcast as bitcast
from teletape._generated.shapes.cast import cast as cast
from teletape._generated.shapes.cast import ensure_shape as ensure_shape
from teletape._generated.shapes.cast import stop_gradient as stop_gradient
from teletape._generated.shapes.create import eye as eye
from teletape._generated.shapes.index import gather as gather
from teletape._generated.shapes.nd import tensor_scatter_nd_update as tensor_scatter_nd_update
from teletape._generated.shapes.rearrange import reverse as reverse
from teletape._generated.shapes.rearrange import reverse_sequence as reverse_sequence
from teletape._generated.shapes.rearrange import roll as roll
from teletape._generated.shapes.rearrange import unravel_index as unravel_index
from teletape._generated.shapes.shape import broadcast_to as broadcast_to
from teletape._generated.shapes.shape import expand_dims as expand_dims
from teletape._generated.shapes.shape import reshape as reshape
from teletape._generated.shapes.shape import squeeze as squeeze
from teletape._generated.shapes.shape import tile as tile
from teletape._generated.shapes.shape import transpose as transpose
from teletape._generated.sorting import argsort as argsort
from teletape._generated.sorting import searchsorted as searchsorted
from teletape._generated.sorting import sort as sort
from teletape.core.calls.dispatch import constant as constant
from teletape.core.calls.dispatch import convert_to_tensor as convert_to_tensor
from teletape.core.calls.dispatch import is_symbolic_tensor as is_symbolic_tensor
from teletape.core.calls.dispatch import is_tensor as is_tensor
from teletape.core.derivatives.arguments import AggregationMethod as AggregationMethod
from teletape.core.derivatives.arguments import UnconnectedGradients as UnconnectedGradients
from teletape.core.derivatives.custom_gradient import custom_gradient as custom_gradient
from teletape.core.derivatives.custom_gradient import grad_pass_through as grad_pass_through
from teletape.core.derivatives.custom_gradient import recompute_grad as recompute_grad
from teletape.core.derivatives.registered_gradient import RegisterGradient as RegisterGradient
from teletape.core.derivatives.tape import GradientTape as GradientTape
from teletape.core.derivatives.tape import gradients as gradients
from teletape.core.functions.function import function as function
from teletape.core.functions.function import init_scope as init_scope
from teletape.core.functions.tensor_spec import TensorSpec as TensorSpec
from teletape.core.program.logs import get_logger as get_logger
from teletape.core.program.registered_conversions import (
    register_tensor_conversion_function as register_tensor_conversion_function,
)
from teletape.core.sessions.current import connect as connect
from teletape.core.tensors.composite import TypeSpec as TypeSpec
from teletape.core.tensors.dtypes import DType as DType
from teletape.core.tensors.dtypes import as_dtype as as_dtype
from teletape.core.tensors.dtypes import bfloat16 as bfloat16
from teletape.core.tensors.dtypes import bool as bool
from teletape.core.tensors.dtypes import complex64 as complex64
from teletape.core.tensors.dtypes import complex128 as complex128
from teletape.core.tensors.dtypes import double as double
from teletape.core.tensors.dtypes import float16 as float16
from teletape.core.tensors.dtypes import float32 as float32
from teletape.core.tensors.dtypes import float64 as float64
from teletape.core.tensors.dtypes import half as half
from teletape.core.tensors.dtypes import int8 as int8
from teletape.core.tensors.dtypes import int16 as int16
from teletape.core.tensors.dtypes import int32 as int32
from teletape.core.tensors.dtypes import int64 as int64
from teletape.core.tensors.dtypes import string as string
from teletape.core.tensors.dtypes import uint8 as uint8
from teletape.core.tensors.dtypes import uint16 as uint16
from teletape.core.tensors.dtypes import uint32 as uint32
from teletape.core.tensors.dtypes import uint64 as uint64
from teletape.core.tensors.indexed_slices import IndexedSlices as IndexedSlices
from teletape.core.tensors.indexed_slices import IndexedSlicesSpec as IndexedSlicesSpec
from teletape.core.tensors.tensor import Tensor as Tensor
from teletape.core.tensors.tensor_shape import TensorShape as TensorShape
from teletape.core.variables.module import Module as Module
from teletape.core.variables.name_scope import get_current_name_scope as get_current_name_scope
from teletape.core.variables.name_scope import name_scope as name_scope
from teletape.core.variables.variable import Variable as Variable
from teletape.extras.distribution.reductions import VariableAggregation as VariableAggregation
from teletape.extras.distribution.reductions import VariableSynchronization as VariableSynchronization
from teletape.extras.ragged_tensors.spec import RaggedTensorSpec as RaggedTensorSpec
from teletape.extras.ragged_tensors.tensor import RaggedTensor as RaggedTensor
from teletape.extras.sparse_tensors.distances import edit_distance as edit_distance
from teletape.extras.sparse_tensors.tensor import SparseTensor as SparseTensor
from teletape.extras.sparse_tensors.tensor import SparseTensorSpec as SparseTensorSpec
from teletape.extras.text.buckets import fingerprint as fingerprint
from teletape.extras.text.strings import as_string as as_string
from teletape.keras import initializers as initializers
from teletape.keras import losses as losses
from teletape.keras import metrics as metrics
from teletape.keras import optimizers as optimizers
from teletape.tf.configuration.devices import device as device
from teletape.tf.control_flow.eager import case as case
from teletape.tf.control_flow.eager import cond as cond
from teletape.tf.control_flow.eager import switch_case as switch_case
from teletape.tf.control_flow.eager import while_loop as while_loop
from teletape.tf.control_flow.folds import foldl as foldl
from teletape.tf.control_flow.folds import foldr as foldr
from teletape.tf.control_flow.folds import scan as scan
from teletape.tf.control_flow.maps import map_fn as map_fn
from teletape.tf.control_flow.maps import vectorized_map as vectorized_map
from teletape.tf.control_flow.ordering import control_dependencies as control_dependencies
from teletape.tf.control_flow.ordering import group as group
from teletape.tf.control_flow.ordering import no_op as no_op
from teletape.tf.control_flow.ordering import tuple as tuple
from teletape.tf.control_flow.tensor_array import TensorArray as TensorArray
from teletape.tf.control_flow.tensor_array import TensorArraySpec as TensorArraySpec
from teletape.tf.data.type_specs import type_spec_from_value as type_spec_from_value
from teletape.tf.debugging import Assert as Assert
from teletape.tf.debugging import assert_equal as assert_equal
from teletape.tf.debugging import assert_greater as assert_greater
from teletape.tf.debugging import assert_less as assert_less
from teletape.tf.debugging import assert_rank as assert_rank
from teletape.tf.files.tensor_proto import make_ndarray as make_ndarray
from teletape.tf.files.tensor_proto import make_tensor_proto as make_tensor_proto
from teletape.tf.gradient_accumulator import GradientAccumulator as GradientAccumulator
from teletape.tf.gradient_parts import GradientPart as GradientPart
from teletape.tf.gradient_parts import GradientParts as GradientParts
from teletape.tf.numeric_gradient import numeric_gradient as numeric_gradient
from teletape.tf.ops.arrays.counting import sequence_mask as sequence_mask
from teletape.tf.ops.arrays.create import fill as fill
from teletape.tf.ops.arrays.create import linspace as linspace
from teletape.tf.ops.arrays.create import meshgrid as meshgrid
from teletape.tf.ops.arrays.create import one_hot as one_hot
from teletape.tf.ops.arrays.create import ones as ones
from teletape.tf.ops.arrays.create import ones_like as ones_like
from teletape.tf.ops.arrays.create import range as range
from teletape.tf.ops.arrays.create import zeros as zeros
from teletape.tf.ops.arrays.create import zeros_like as zeros_like
from teletape.tf.ops.arrays.paddings import pad as pad
from teletape.tf.ops.arrays.paddings import required_space_to_batch_paddings as required_space_to_batch_paddings
from teletape.tf.ops.arrays.partitions import dynamic_partition as dynamic_partition
from teletape.tf.ops.arrays.partitions import dynamic_stitch as dynamic_stitch
from teletape.tf.ops.arrays.partitions import strided_slice as strided_slice
from teletape.tf.ops.arrays.places import gather_nd as gather_nd
from teletape.tf.ops.arrays.places import scatter_nd as scatter_nd
from teletape.tf.ops.arrays.places import tensor_scatter_nd_add as tensor_scatter_nd_add
from teletape.tf.ops.arrays.places import tensor_scatter_nd_max as tensor_scatter_nd_max
from teletape.tf.ops.arrays.places import tensor_scatter_nd_min as tensor_scatter_nd_min
from teletape.tf.ops.arrays.places import tensor_scatter_nd_sub as tensor_scatter_nd_sub
from teletape.tf.ops.arrays.rearrange import boolean_mask as boolean_mask
from teletape.tf.ops.arrays.rearrange import broadcast_dynamic_shape as broadcast_dynamic_shape
from teletape.tf.ops.arrays.rearrange import broadcast_static_shape as broadcast_static_shape
from teletape.tf.ops.arrays.rearrange import concat as concat
from teletape.tf.ops.arrays.rearrange import guarantee_const as guarantee_const
from teletape.tf.ops.arrays.rearrange import identity as identity
from teletape.tf.ops.arrays.rearrange import identity_n as identity_n
from teletape.tf.ops.arrays.rearrange import parallel_stack as parallel_stack
from teletape.tf.ops.arrays.rearrange import rank as rank
from teletape.tf.ops.arrays.rearrange import shape as shape
from teletape.tf.ops.arrays.rearrange import shape_n as shape_n
from teletape.tf.ops.arrays.rearrange import size as size
from teletape.tf.ops.arrays.rearrange import slice as slice
from teletape.tf.ops.arrays.rearrange import split as split
from teletape.tf.ops.arrays.rearrange import stack as stack
from teletape.tf.ops.arrays.rearrange import unstack as unstack
from teletape.tf.ops.arrays.rearrange import where as where
from teletape.tf.ops.arrays.sorting import repeat as repeat
from teletape.tf.ops.arrays.sorting import unique as unique
from teletape.tf.ops.arrays.sorting import unique_with_counts as unique_with_counts
from teletape.tf.ops.arrays.sums import scalar_mul as scalar_mul
from teletape.tf.ops.initializers import constant_initializer as constant_initializer
from teletape.tf.ops.initializers import ones_initializer as ones_initializer
from teletape.tf.ops.initializers import random_normal_initializer as random_normal_initializer
from teletape.tf.ops.initializers import random_uniform_initializer as random_uniform_initializer
from teletape.tf.ops.initializers import zeros_initializer as zeros_initializer
from teletape.tf.ops.linalg.clip import clip_by_global_norm as clip_by_global_norm
from teletape.tf.ops.linalg.clip import clip_by_norm as clip_by_norm
from teletape.tf.ops.linalg.decompositions import eigvals as eigvals
from teletape.tf.ops.linalg.norms import norm as norm
from teletape.tf.ops.linalg.norms import tensordot as tensordot
from teletape.tf.ops.nn.convolutions import conv as conv
from teletape.tf.ops.random.stateless import random_index_shuffle as random_index_shuffle
from teletape.tf.ops.signal.spectral import fftnd as fftnd
from teletape.tf.ops.signal.spectral import ifftnd as ifftnd
from teletape.tf.ops.signal.spectral import irfftnd as irfftnd
from teletape.tf.ops.signal.spectral import rfftnd as rfftnd
from teletape.tf.per_example_gradients import NormStatistics as NormStatistics
from teletape.tf.per_example_gradients import PerExampleGradients as PerExampleGradients
from teletape.tf.print_op import tf_print as print
from teletape.tf.python_calls import numpy_function as numpy_function
from teletape.tf.python_calls import py_function as py_function
from teletape.tf.python_calls import timestamp as timestamp
from teletape.tf.sessions.functions import executing_eagerly as executing_eagerly
from teletape.tf.sessions.functions import inside_function as inside_function
from teletape.tf.sessions.functions import no_gradient as no_gradient
from teletape.tf.sessions.functions import session as session
from teletape.tf.sessions.functions import sync as sync
from teletape.tf.sessions.functions import sync_async as sync_async
from teletape.tf.sessions.pool import SessionPool as SessionPool
from teletape.tf.sessions.publishing import Published as Published
from teletape.tf.sessions.publishing import publish as publish
from teletape.tf.sessions.reading import fetch as fetch
from teletape.tf.sessions.reading import gather_values as gather_values
from teletape.tf.sessions.reading import get_static_value as get_static_value
from teletape.tf.sessions.session_list import sessions as sessions

__version__: str
__git_version__: str
__compiler_version__: str
newaxis: None
__all__ = [
    "AggregationMethod",
    "Assert",
    "DType",
    "GradientAccumulator",
    "GradientPart",
    "GradientParts",
    "GradientTape",
    "IndexedSlices",
    "IndexedSlicesSpec",
    "Module",
    "NormStatistics",
    "PerExampleGradients",
    "Published",
    "RaggedTensor",
    "RaggedTensorSpec",
    "RegisterGradient",
    "SessionPool",
    "SparseTensor",
    "SparseTensorSpec",
    "Tensor",
    "TensorArray",
    "TensorArraySpec",
    "TensorShape",
    "TensorSpec",
    "TypeSpec",
    "UnconnectedGradients",
    "Variable",
    "VariableAggregation",
    "VariableSynchronization",
    "abs",
    "acos",
    "acosh",
    "add",
    "add_n",
    "argmax",
    "argmin",
    "argsort",
    "as_dtype",
    "as_string",
    "asin",
    "asinh",
    "assert_equal",
    "assert_greater",
    "assert_less",
    "assert_rank",
    "atan",
    "atan2",
    "atanh",
    "audio",
    "autodiff",
    "autograph",
    "batch_to_space",
    "bfloat16",
    "bitcast",
    "bitwise",
    "bool",
    "boolean_mask",
    "broadcast_dynamic_shape",
    "broadcast_static_shape",
    "broadcast_to",
    "case",
    "cast",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "compat",
    "complex",
    "complex64",
    "complex128",
    "concat",
    "cond",
    "config",
    "connect",
    "constant",
    "constant_initializer",
    "control_dependencies",
    "conv",
    "convert_to_tensor",
    "cos",
    "cosh",
    "cumsum",
    "custom_gradient",
    "data",
    "debugging",
    "device",
    "distribute",
    "divide",
    "double",
    "dtypes",
    "dynamic_partition",
    "dynamic_stitch",
    "edit_distance",
    "eig",
    "eigvals",
    "einsum",
    "ensure_shape",
    "equal",
    "errors",
    "executing_eagerly",
    "exp",
    "expand_dims",
    "experimental",
    "extract_volume_patches",
    "eye",
    "fetch",
    "fftnd",
    "fill",
    "fingerprint",
    "float16",
    "float32",
    "float64",
    "floor",
    "foldl",
    "foldr",
    "function",
    "gather",
    "gather_nd",
    "gather_values",
    "get_current_name_scope",
    "get_logger",
    "get_static_value",
    "grad_pass_through",
    "gradients",
    "greater",
    "greater_equal",
    "group",
    "guarantee_const",
    "half",
    "histogram_fixed_width",
    "histogram_fixed_width_bins",
    "identity",
    "identity_n",
    "ifftnd",
    "image",
    "init_scope",
    "inside_function",
    "int8",
    "int16",
    "int32",
    "int64",
    "io",
    "irfftnd",
    "is_symbolic_tensor",
    "is_tensor",
    "less",
    "less_equal",
    "linalg",
    "linspace",
    "logical_and",
    "logical_not",
    "logical_or",
    "lookup",
    "make_ndarray",
    "make_tensor_proto",
    "map_fn",
    "math",
    "matmul",
    "matrix_square_root",
    "maximum",
    "meshgrid",
    "minimum",
    "multiply",
    "name_scope",
    "negative",
    "nest",
    "newaxis",
    "nn",
    "no_gradient",
    "no_op",
    "norm",
    "not_equal",
    "numeric_gradient",
    "numpy_function",
    "one_hot",
    "ones",
    "ones_initializer",
    "ones_like",
    "onnx",
    "pad",
    "parallel_stack",
    "pow",
    "print",
    "profiler",
    "publish",
    "py_function",
    "ragged",
    "random",
    "random_index_shuffle",
    "random_normal_initializer",
    "random_uniform_initializer",
    "range",
    "rank",
    "raw_ops",
    "realdiv",
    "recompute_grad",
    "reduce_all",
    "reduce_any",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "register_tensor_conversion_function",
    "repeat",
    "required_space_to_batch_paddings",
    "reshape",
    "reverse",
    "reverse_sequence",
    "rfftnd",
    "roll",
    "round",
    "saturate_cast",
    "saved_model",
    "scalar_mul",
    "scan",
    "scatter_nd",
    "searchsorted",
    "sequence_mask",
    "session",
    "sessions",
    "sets",
    "shape",
    "shape_n",
    "sigmoid",
    "sign",
    "signal",
    "sin",
    "sinh",
    "size",
    "slice",
    "sort",
    "space_to_batch",
    "space_to_batch_nd",
    "sparse",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stablehlo",
    "stack",
    "stop_gradient",
    "strided_slice",
    "string",
    "strings",
    "subtract",
    "summary",
    "switch_case",
    "sync",
    "sync_async",
    "tan",
    "tanh",
    "tensor_scatter_nd_add",
    "tensor_scatter_nd_max",
    "tensor_scatter_nd_min",
    "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update",
    "tensordot",
    "test",
    "tile",
    "timestamp",
    "train",
    "transpose",
    "truediv",
    "truncatediv",
    "truncatemod",
    "tuple",
    "type_spec_from_value",
    "types",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unique",
    "unique_with_counts",
    "unravel_index",
    "unstack",
    "vectorized_map",
    "version",
    "where",
    "while_loop",
    "zeros",
    "zeros_initializer",
    "zeros_like",
]
