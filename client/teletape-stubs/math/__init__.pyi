"""What `tf.math` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.math import special as special

from teletape._generated.counting import count_nonzero as count_nonzero
from teletape._generated.counting import is_non_decreasing as is_non_decreasing
from teletape._generated.counting import is_strictly_increasing as is_strictly_increasing
from teletape._generated.cumulative import cumprod as cumprod
from teletape._generated.cumulative import cumsum as cumsum
from teletape._generated.cumulative import cumulative_logsumexp as cumulative_logsumexp
from teletape._generated.elementwise.arithmetic import add as add
from teletape._generated.elementwise.arithmetic import add_n as add_n
from teletape._generated.elementwise.arithmetic import atan2 as atan2
from teletape._generated.elementwise.arithmetic import divide as divide
from teletape._generated.elementwise.arithmetic import divide_no_nan as divide_no_nan
from teletape._generated.elementwise.arithmetic import floordiv as floordiv
from teletape._generated.elementwise.arithmetic import floormod as floormod
from teletape._generated.elementwise.arithmetic import floormod as mod
from teletape._generated.elementwise.arithmetic import maximum as maximum
from teletape._generated.elementwise.arithmetic import minimum as minimum
from teletape._generated.elementwise.arithmetic import multiply as multiply
from teletape._generated.elementwise.arithmetic import nextafter as nextafter
from teletape._generated.elementwise.arithmetic import pow as pow
from teletape._generated.elementwise.arithmetic import squared_difference as squared_difference
from teletape._generated.elementwise.arithmetic import subtract as subtract
from teletape._generated.elementwise.arithmetic import truediv as truediv
from teletape._generated.elementwise.bessel import bessel_i0 as bessel_i0
from teletape._generated.elementwise.bessel import bessel_i0e as bessel_i0e
from teletape._generated.elementwise.bessel import bessel_i1 as bessel_i1
from teletape._generated.elementwise.bessel import bessel_i1e as bessel_i1e
from teletape._generated.elementwise.complex import abs as abs
from teletape._generated.elementwise.complex import angle as angle
from teletape._generated.elementwise.complex import conj as conj
from teletape._generated.elementwise.complex import imag as imag
from teletape._generated.elementwise.complex import real as real
from teletape._generated.elementwise.complex import sign as sign
from teletape._generated.elementwise.integrals import betainc as betainc
from teletape._generated.elementwise.integrals import igamma as igamma
from teletape._generated.elementwise.integrals import igammac as igammac
from teletape._generated.elementwise.integrals import lbeta as lbeta
from teletape._generated.elementwise.integrals import zeta as zeta
from teletape._generated.elementwise.logic import equal as equal
from teletape._generated.elementwise.logic import greater as greater
from teletape._generated.elementwise.logic import greater_equal as greater_equal
from teletape._generated.elementwise.logic import is_finite as is_finite
from teletape._generated.elementwise.logic import is_inf as is_inf
from teletape._generated.elementwise.logic import is_nan as is_nan
from teletape._generated.elementwise.logic import less as less
from teletape._generated.elementwise.logic import less_equal as less_equal
from teletape._generated.elementwise.logic import logical_and as logical_and
from teletape._generated.elementwise.logic import logical_not as logical_not
from teletape._generated.elementwise.logic import logical_or as logical_or
from teletape._generated.elementwise.logic import logical_xor as logical_xor
from teletape._generated.elementwise.logic import not_equal as not_equal
from teletape._generated.elementwise.math import acos as acos
from teletape._generated.elementwise.math import asin as asin
from teletape._generated.elementwise.math import atan as atan
from teletape._generated.elementwise.math import ceil as ceil
from teletape._generated.elementwise.math import cos as cos
from teletape._generated.elementwise.math import cosh as cosh
from teletape._generated.elementwise.math import erf as erf
from teletape._generated.elementwise.math import exp as exp
from teletape._generated.elementwise.math import expm1 as expm1
from teletape._generated.elementwise.math import floor as floor
from teletape._generated.elementwise.math import log as log
from teletape._generated.elementwise.math import log1p as log1p
from teletape._generated.elementwise.math import negative as negative
from teletape._generated.elementwise.math import reciprocal as reciprocal
from teletape._generated.elementwise.math import rint as rint
from teletape._generated.elementwise.math import round as round
from teletape._generated.elementwise.math import rsqrt as rsqrt
from teletape._generated.elementwise.math import sigmoid as sigmoid
from teletape._generated.elementwise.math import sin as sin
from teletape._generated.elementwise.math import sinh as sinh
from teletape._generated.elementwise.math import softplus as softplus
from teletape._generated.elementwise.math import sqrt as sqrt
from teletape._generated.elementwise.math import square as square
from teletape._generated.elementwise.math import tan as tan
from teletape._generated.elementwise.math import tanh as tanh
from teletape._generated.elementwise.special import acosh as acosh
from teletape._generated.elementwise.special import asinh as asinh
from teletape._generated.elementwise.special import atanh as atanh
from teletape._generated.elementwise.special import digamma as digamma
from teletape._generated.elementwise.special import erfc as erfc
from teletape._generated.elementwise.special import erfcinv as erfcinv
from teletape._generated.elementwise.special import erfinv as erfinv
from teletape._generated.elementwise.special import lgamma as lgamma
from teletape._generated.elementwise.special import log_sigmoid as log_sigmoid
from teletape._generated.elementwise.special import multiply_no_nan as multiply_no_nan
from teletape._generated.elementwise.special import ndtri as ndtri
from teletape._generated.elementwise.special import polygamma as polygamma
from teletape._generated.elementwise.special import reciprocal_no_nan as reciprocal_no_nan
from teletape._generated.elementwise.special import xdivy as xdivy
from teletape._generated.elementwise.special import xlog1py as xlog1py
from teletape._generated.elementwise.special import xlogy as xlogy
from teletape._generated.nn.activations import log_softmax as log_softmax
from teletape._generated.nn.activations import softmax as softmax
from teletape._generated.nn.normalization import in_top_k as in_top_k
from teletape._generated.nn.normalization import l2_normalize as l2_normalize
from teletape._generated.nn.normalization import softsign as softsign
from teletape._generated.nn.normalization import zero_fraction as zero_fraction
from teletape._generated.random.sobol import sobol_sample as sobol_sample
from teletape._generated.reduce import argmax as argmax
from teletape._generated.reduce import argmin as argmin
from teletape._generated.reduce import reduce_all as reduce_all
from teletape._generated.reduce import reduce_any as reduce_any
from teletape._generated.reduce import reduce_euclidean_norm as reduce_euclidean_norm
from teletape._generated.reduce import reduce_logsumexp as reduce_logsumexp
from teletape._generated.reduce import reduce_max as reduce_max
from teletape._generated.reduce import reduce_mean as reduce_mean
from teletape._generated.reduce import reduce_min as reduce_min
from teletape._generated.reduce import reduce_prod as reduce_prod
from teletape._generated.reduce import reduce_std as reduce_std
from teletape._generated.reduce import reduce_sum as reduce_sum
from teletape._generated.reduce import reduce_variance as reduce_variance
from teletape._generated.segment import unsorted_segment_max as unsorted_segment_max
from teletape._generated.segment import unsorted_segment_mean as unsorted_segment_mean
from teletape._generated.segment import unsorted_segment_min as unsorted_segment_min
from teletape._generated.segment import unsorted_segment_prod as unsorted_segment_prod
from teletape._generated.segment import unsorted_segment_sqrt_n as unsorted_segment_sqrt_n
from teletape._generated.shapes.index import unsorted_segment_sum as unsorted_segment_sum
from teletape._generated.shapes.rearrange import invert_permutation as invert_permutation
from teletape._generated.sorting import top_k as top_k
from teletape.tf.ops.arrays.counting import bincount as bincount
from teletape.tf.ops.arrays.counting import confusion_matrix as confusion_matrix
from teletape.tf.ops.arrays.segments import segment_max as segment_max
from teletape.tf.ops.arrays.segments import segment_mean as segment_mean
from teletape.tf.ops.arrays.segments import segment_min as segment_min
from teletape.tf.ops.arrays.segments import segment_prod as segment_prod
from teletape.tf.ops.arrays.segments import segment_sum as segment_sum
from teletape.tf.ops.arrays.sorting import approx_max_k as approx_max_k
from teletape.tf.ops.arrays.sorting import approx_min_k as approx_min_k
from teletape.tf.ops.arrays.sums import accumulate_n as accumulate_n
from teletape.tf.ops.arrays.sums import polyval as polyval
from teletape.tf.ops.arrays.sums import scalar_mul as scalar_mul

__all__ = [
    "abs",
    "accumulate_n",
    "acos",
    "acosh",
    "add",
    "add_n",
    "angle",
    "approx_max_k",
    "approx_min_k",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bessel_i0",
    "bessel_i0e",
    "bessel_i1",
    "bessel_i1e",
    "betainc",
    "bincount",
    "ceil",
    "confusion_matrix",
    "conj",
    "cos",
    "cosh",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "cumulative_logsumexp",
    "digamma",
    "divide",
    "divide_no_nan",
    "equal",
    "erf",
    "erfc",
    "erfcinv",
    "erfinv",
    "exp",
    "expm1",
    "floor",
    "floordiv",
    "floormod",
    "greater",
    "greater_equal",
    "igamma",
    "igammac",
    "imag",
    "in_top_k",
    "invert_permutation",
    "is_finite",
    "is_inf",
    "is_nan",
    "is_non_decreasing",
    "is_strictly_increasing",
    "l2_normalize",
    "lbeta",
    "less",
    "less_equal",
    "lgamma",
    "log",
    "log1p",
    "log_sigmoid",
    "log_softmax",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "multiply_no_nan",
    "ndtri",
    "negative",
    "nextafter",
    "not_equal",
    "polygamma",
    "polyval",
    "pow",
    "real",
    "reciprocal",
    "reciprocal_no_nan",
    "reduce_all",
    "reduce_any",
    "reduce_euclidean_norm",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_std",
    "reduce_sum",
    "reduce_variance",
    "rint",
    "round",
    "rsqrt",
    "scalar_mul",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_prod",
    "segment_sum",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sobol_sample",
    "softmax",
    "softplus",
    "softsign",
    "special",
    "sqrt",
    "square",
    "squared_difference",
    "subtract",
    "tan",
    "tanh",
    "top_k",
    "truediv",
    "unsorted_segment_max",
    "unsorted_segment_mean",
    "unsorted_segment_min",
    "unsorted_segment_prod",
    "unsorted_segment_sqrt_n",
    "unsorted_segment_sum",
    "xdivy",
    "xlog1py",
    "xlogy",
    "zero_fraction",
    "zeta",
]
