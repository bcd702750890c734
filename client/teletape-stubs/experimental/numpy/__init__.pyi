"""What `tf.experimental.numpy` holds. Written by `make reference` from scripts/public_surface.py."""

from numpy import bool as bool_
from numpy import bytes_ as string_
from numpy import complex64 as complex64
from numpy import complex128 as complex128
from numpy import complex128 as complex_
from numpy import float16 as float16
from numpy import float32 as float32
from numpy import float64 as float64
from numpy import float64 as float_
from numpy import inexact as inexact
from numpy import int8 as int8
from numpy import int16 as int16
from numpy import int32 as int32
from numpy import int64 as int64
from numpy import int64 as int_
from numpy import object_ as object_
from numpy import str_ as unicode_
from numpy import uint8 as uint8
from numpy import uint16 as uint16
from numpy import uint32 as uint32
from numpy import uint64 as uint64
from teletape.experimental.numpy import random as random

from teletape.core.tensors.tensor import Tensor as ndarray
from teletape.extras.numpy_api.arranging import append as append
from teletape.extras.numpy_api.arranging import argsort as argsort
from teletape.extras.numpy_api.arranging import atleast_1d as atleast_1d
from teletape.extras.numpy_api.arranging import atleast_2d as atleast_2d
from teletape.extras.numpy_api.arranging import atleast_3d as atleast_3d
from teletape.extras.numpy_api.arranging import broadcast_arrays as broadcast_arrays
from teletape.extras.numpy_api.arranging import broadcast_to as broadcast_to
from teletape.extras.numpy_api.arranging import compress as compress
from teletape.extras.numpy_api.arranging import concatenate as concatenate
from teletape.extras.numpy_api.arranging import diag as diag
from teletape.extras.numpy_api.arranging import diagflat as diagflat
from teletape.extras.numpy_api.arranging import diagonal as diagonal
from teletape.extras.numpy_api.arranging import diff as diff
from teletape.extras.numpy_api.arranging import dsplit as dsplit
from teletape.extras.numpy_api.arranging import dstack as dstack
from teletape.extras.numpy_api.arranging import expand_dims as expand_dims
from teletape.extras.numpy_api.arranging import flatten as flatten
from teletape.extras.numpy_api.arranging import flip as flip
from teletape.extras.numpy_api.arranging import fliplr as fliplr
from teletape.extras.numpy_api.arranging import flipud as flipud
from teletape.extras.numpy_api.arranging import hsplit as hsplit
from teletape.extras.numpy_api.arranging import hstack as hstack
from teletape.extras.numpy_api.arranging import meshgrid as meshgrid
from teletape.extras.numpy_api.arranging import moveaxis as moveaxis
from teletape.extras.numpy_api.arranging import ndim as ndim
from teletape.extras.numpy_api.arranging import nonzero as nonzero
from teletape.extras.numpy_api.arranging import pad as pad
from teletape.extras.numpy_api.arranging import ravel as ravel
from teletape.extras.numpy_api.arranging import repeat as repeat
from teletape.extras.numpy_api.arranging import reshape as reshape
from teletape.extras.numpy_api.arranging import roll as roll
from teletape.extras.numpy_api.arranging import rot90 as rot90
from teletape.extras.numpy_api.arranging import select as select
from teletape.extras.numpy_api.arranging import shape as shape
from teletape.extras.numpy_api.arranging import sort as sort
from teletape.extras.numpy_api.arranging import split as split
from teletape.extras.numpy_api.arranging import squeeze as squeeze
from teletape.extras.numpy_api.arranging import stack as stack
from teletape.extras.numpy_api.arranging import swapaxes as swapaxes
from teletape.extras.numpy_api.arranging import take as take
from teletape.extras.numpy_api.arranging import take_along_axis as take_along_axis
from teletape.extras.numpy_api.arranging import tile as tile
from teletape.extras.numpy_api.arranging import transpose as transpose
from teletape.extras.numpy_api.arranging import tril as tril
from teletape.extras.numpy_api.arranging import triu as triu
from teletape.extras.numpy_api.arranging import vsplit as vsplit
from teletape.extras.numpy_api.arranging import vstack as vstack
from teletape.extras.numpy_api.arranging import where as where
from teletape.extras.numpy_api.behavior import experimental_enable_numpy_behavior as experimental_enable_numpy_behavior
from teletape.extras.numpy_api.creation import arange as arange
from teletape.extras.numpy_api.creation import array as array
from teletape.extras.numpy_api.creation import asarray as asanyarray
from teletape.extras.numpy_api.creation import asarray as asarray
from teletape.extras.numpy_api.creation import asarray as ascontiguousarray
from teletape.extras.numpy_api.creation import copy as copy
from teletape.extras.numpy_api.creation import diag_indices as diag_indices
from teletape.extras.numpy_api.creation import empty as empty
from teletape.extras.numpy_api.creation import empty_like as empty_like
from teletape.extras.numpy_api.creation import eye as eye
from teletape.extras.numpy_api.creation import full as full
from teletape.extras.numpy_api.creation import full_like as full_like
from teletape.extras.numpy_api.creation import geomspace as geomspace
from teletape.extras.numpy_api.creation import identity as identity
from teletape.extras.numpy_api.creation import ix_ as ix_
from teletape.extras.numpy_api.creation import linspace as linspace
from teletape.extras.numpy_api.creation import logspace as logspace
from teletape.extras.numpy_api.creation import ones as ones
from teletape.extras.numpy_api.creation import ones_like as ones_like
from teletape.extras.numpy_api.creation import tri as tri
from teletape.extras.numpy_api.creation import vander as vander
from teletape.extras.numpy_api.creation import zeros as zeros
from teletape.extras.numpy_api.creation import zeros_like as zeros_like
from teletape.extras.numpy_api.elementwise import absolute as abs
from teletape.extras.numpy_api.elementwise import absolute as absolute
from teletape.extras.numpy_api.elementwise import add as add
from teletape.extras.numpy_api.elementwise import allclose as allclose
from teletape.extras.numpy_api.elementwise import angle as angle
from teletape.extras.numpy_api.elementwise import arccos as arccos
from teletape.extras.numpy_api.elementwise import arccosh as arccosh
from teletape.extras.numpy_api.elementwise import arcsin as arcsin
from teletape.extras.numpy_api.elementwise import arcsinh as arcsinh
from teletape.extras.numpy_api.elementwise import arctan as arctan
from teletape.extras.numpy_api.elementwise import arctan2 as arctan2
from teletape.extras.numpy_api.elementwise import arctanh as arctanh
from teletape.extras.numpy_api.elementwise import around as around
from teletape.extras.numpy_api.elementwise import around as round
from teletape.extras.numpy_api.elementwise import array_equal as array_equal
from teletape.extras.numpy_api.elementwise import bitwise_and as bitwise_and
from teletape.extras.numpy_api.elementwise import bitwise_not as bitwise_not
from teletape.extras.numpy_api.elementwise import bitwise_or as bitwise_or
from teletape.extras.numpy_api.elementwise import bitwise_xor as bitwise_xor
from teletape.extras.numpy_api.elementwise import cbrt as cbrt
from teletape.extras.numpy_api.elementwise import ceil as ceil
from teletape.extras.numpy_api.elementwise import clip as clip
from teletape.extras.numpy_api.elementwise import conjugate as conj
from teletape.extras.numpy_api.elementwise import conjugate as conjugate
from teletape.extras.numpy_api.elementwise import cos as cos
from teletape.extras.numpy_api.elementwise import cosh as cosh
from teletape.extras.numpy_api.elementwise import deg2rad as deg2rad
from teletape.extras.numpy_api.elementwise import divmod as divmod
from teletape.extras.numpy_api.elementwise import equal as equal
from teletape.extras.numpy_api.elementwise import exp as exp
from teletape.extras.numpy_api.elementwise import exp2 as exp2
from teletape.extras.numpy_api.elementwise import expm1 as expm1
from teletape.extras.numpy_api.elementwise import fabs as fabs
from teletape.extras.numpy_api.elementwise import fix as fix
from teletape.extras.numpy_api.elementwise import floor as floor
from teletape.extras.numpy_api.elementwise import floor_divide as floor_divide
from teletape.extras.numpy_api.elementwise import greater as greater
from teletape.extras.numpy_api.elementwise import greater_equal as greater_equal
from teletape.extras.numpy_api.elementwise import heaviside as heaviside
from teletape.extras.numpy_api.elementwise import hypot as hypot
from teletape.extras.numpy_api.elementwise import imag as imag
from teletape.extras.numpy_api.elementwise import isclose as isclose
from teletape.extras.numpy_api.elementwise import iscomplex as iscomplex
from teletape.extras.numpy_api.elementwise import iscomplexobj as iscomplexobj
from teletape.extras.numpy_api.elementwise import isfinite as isfinite
from teletape.extras.numpy_api.elementwise import isinf as isinf
from teletape.extras.numpy_api.elementwise import isnan as isnan
from teletape.extras.numpy_api.elementwise import isneginf as isneginf
from teletape.extras.numpy_api.elementwise import isposinf as isposinf
from teletape.extras.numpy_api.elementwise import isreal as isreal
from teletape.extras.numpy_api.elementwise import isrealobj as isrealobj
from teletape.extras.numpy_api.elementwise import isscalar as isscalar
from teletape.extras.numpy_api.elementwise import less as less
from teletape.extras.numpy_api.elementwise import less_equal as less_equal
from teletape.extras.numpy_api.elementwise import log as log
from teletape.extras.numpy_api.elementwise import log1p as log1p
from teletape.extras.numpy_api.elementwise import log2 as log2
from teletape.extras.numpy_api.elementwise import log10 as log10
from teletape.extras.numpy_api.elementwise import logaddexp as logaddexp
from teletape.extras.numpy_api.elementwise import logaddexp2 as logaddexp2
from teletape.extras.numpy_api.elementwise import logical_and as logical_and
from teletape.extras.numpy_api.elementwise import logical_not as logical_not
from teletape.extras.numpy_api.elementwise import logical_or as logical_or
from teletape.extras.numpy_api.elementwise import logical_xor as logical_xor
from teletape.extras.numpy_api.elementwise import maximum as maximum
from teletape.extras.numpy_api.elementwise import minimum as minimum
from teletape.extras.numpy_api.elementwise import multiply as multiply
from teletape.extras.numpy_api.elementwise import negative as negative
from teletape.extras.numpy_api.elementwise import nextafter as nextafter
from teletape.extras.numpy_api.elementwise import not_equal as not_equal
from teletape.extras.numpy_api.elementwise import positive as positive
from teletape.extras.numpy_api.elementwise import power as float_power
from teletape.extras.numpy_api.elementwise import power as power
from teletape.extras.numpy_api.elementwise import rad2deg as rad2deg
from teletape.extras.numpy_api.elementwise import real as real
from teletape.extras.numpy_api.elementwise import reciprocal as reciprocal
from teletape.extras.numpy_api.elementwise import remainder as mod
from teletape.extras.numpy_api.elementwise import remainder as remainder
from teletape.extras.numpy_api.elementwise import sign as sign
from teletape.extras.numpy_api.elementwise import signbit as signbit
from teletape.extras.numpy_api.elementwise import sin as sin
from teletape.extras.numpy_api.elementwise import sinc as sinc
from teletape.extras.numpy_api.elementwise import sinh as sinh
from teletape.extras.numpy_api.elementwise import sqrt as sqrt
from teletape.extras.numpy_api.elementwise import square as square
from teletape.extras.numpy_api.elementwise import subtract as subtract
from teletape.extras.numpy_api.elementwise import tan as tan
from teletape.extras.numpy_api.elementwise import tanh as tanh
from teletape.extras.numpy_api.elementwise import true_divide as divide
from teletape.extras.numpy_api.elementwise import true_divide as true_divide
from teletape.extras.numpy_api.products import cross as cross
from teletape.extras.numpy_api.products import dot as dot
from teletape.extras.numpy_api.products import einsum as einsum
from teletape.extras.numpy_api.products import gcd as gcd
from teletape.extras.numpy_api.products import inner as inner
from teletape.extras.numpy_api.products import kron as kron
from teletape.extras.numpy_api.products import lcm as lcm
from teletape.extras.numpy_api.products import matmul as matmul
from teletape.extras.numpy_api.products import outer as outer
from teletape.extras.numpy_api.products import polyval as polyval
from teletape.extras.numpy_api.products import tensordot as tensordot
from teletape.extras.numpy_api.products import trace as trace
from teletape.extras.numpy_api.products import vdot as vdot
from teletape.extras.numpy_api.reductions import all as all
from teletape.extras.numpy_api.reductions import amax as amax
from teletape.extras.numpy_api.reductions import amin as amin
from teletape.extras.numpy_api.reductions import any as any
from teletape.extras.numpy_api.reductions import argmax as argmax
from teletape.extras.numpy_api.reductions import argmin as argmin
from teletape.extras.numpy_api.reductions import average as average
from teletape.extras.numpy_api.reductions import count_nonzero as count_nonzero
from teletape.extras.numpy_api.reductions import cumprod as cumprod
from teletape.extras.numpy_api.reductions import cumsum as cumsum
from teletape.extras.numpy_api.reductions import max as max
from teletape.extras.numpy_api.reductions import mean as mean
from teletape.extras.numpy_api.reductions import min as min
from teletape.extras.numpy_api.reductions import nanmean as nanmean
from teletape.extras.numpy_api.reductions import nanprod as nanprod
from teletape.extras.numpy_api.reductions import nansum as nansum
from teletape.extras.numpy_api.reductions import prod as prod
from teletape.extras.numpy_api.reductions import ptp as ptp
from teletape.extras.numpy_api.reductions import size as size
from teletape.extras.numpy_api.reductions import std as std
from teletape.extras.numpy_api.reductions import sum as sum
from teletape.extras.numpy_api.reductions import var as var
from teletape.extras.numpy_api.types import finfo as finfo
from teletape.extras.numpy_api.types import iinfo as iinfo
from teletape.extras.numpy_api.types import issubdtype as issubdtype
from teletape.extras.numpy_api.types import promote_types as promote_types
from teletape.extras.numpy_api.types import result_type as result_type

e: float
inf: float
newaxis: None
pi: float
__all__ = [
    "abs",
    "absolute",
    "add",
    "all",
    "allclose",
    "amax",
    "amin",
    "angle",
    "any",
    "append",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argsort",
    "around",
    "array",
    "array_equal",
    "asanyarray",
    "asarray",
    "ascontiguousarray",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "average",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "bool_",
    "broadcast_arrays",
    "broadcast_to",
    "cbrt",
    "ceil",
    "clip",
    "complex64",
    "complex128",
    "complex_",
    "compress",
    "concatenate",
    "conj",
    "conjugate",
    "copy",
    "cos",
    "cosh",
    "count_nonzero",
    "cross",
    "cumprod",
    "cumsum",
    "deg2rad",
    "diag",
    "diag_indices",
    "diagflat",
    "diagonal",
    "diff",
    "divide",
    "divmod",
    "dot",
    "dsplit",
    "dstack",
    "e",
    "einsum",
    "empty",
    "empty_like",
    "equal",
    "exp",
    "exp2",
    "expand_dims",
    "experimental_enable_numpy_behavior",
    "expm1",
    "eye",
    "fabs",
    "finfo",
    "fix",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float16",
    "float32",
    "float64",
    "float_",
    "float_power",
    "floor",
    "floor_divide",
    "full",
    "full_like",
    "gcd",
    "geomspace",
    "greater",
    "greater_equal",
    "heaviside",
    "hsplit",
    "hstack",
    "hypot",
    "identity",
    "iinfo",
    "imag",
    "inexact",
    "inf",
    "inner",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "isclose",
    "iscomplex",
    "iscomplexobj",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "isrealobj",
    "isscalar",
    "issubdtype",
    "ix_",
    "kron",
    "lcm",
    "less",
    "less_equal",
    "linspace",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logspace",
    "matmul",
    "max",
    "maximum",
    "mean",
    "meshgrid",
    "min",
    "minimum",
    "mod",
    "moveaxis",
    "multiply",
    "nanmean",
    "nanprod",
    "nansum",
    "ndarray",
    "ndim",
    "negative",
    "newaxis",
    "nextafter",
    "nonzero",
    "not_equal",
    "object_",
    "ones",
    "ones_like",
    "outer",
    "pad",
    "pi",
    "polyval",
    "positive",
    "power",
    "prod",
    "promote_types",
    "ptp",
    "rad2deg",
    "random",
    "ravel",
    "real",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "rot90",
    "round",
    "select",
    "shape",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "size",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "string_",
    "subtract",
    "sum",
    "swapaxes",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "trace",
    "transpose",
    "tri",
    "tril",
    "triu",
    "true_divide",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unicode_",
    "vander",
    "var",
    "vdot",
    "vsplit",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]
