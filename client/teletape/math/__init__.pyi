"""What `tf.math` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.math import special as special
from teletape.ops.arrays.counting import bincount as bincount
from teletape.ops.arrays.counting import confusion_matrix as confusion_matrix
from teletape.ops.arrays.segments import segment_max as segment_max
from teletape.ops.arrays.segments import segment_mean as segment_mean
from teletape.ops.arrays.segments import segment_min as segment_min
from teletape.ops.arrays.segments import segment_prod as segment_prod
from teletape.ops.arrays.segments import segment_sum as segment_sum
from teletape.ops.arrays.sorting import approx_max_k as approx_max_k
from teletape.ops.arrays.sorting import approx_min_k as approx_min_k
from teletape.ops.arrays.sorting import top_k as top_k
from teletape.ops.arrays.sums import accumulate_n as accumulate_n
from teletape.ops.arrays.sums import polyval as polyval
from teletape.ops.arrays.sums import scalar_mul as scalar_mul
from teletape.ops.derived.counting import count_nonzero as count_nonzero
from teletape.ops.derived.counting import is_non_decreasing as is_non_decreasing
from teletape.ops.derived.counting import is_strictly_increasing as is_strictly_increasing
from teletape.ops.derived.cumulative import cumprod as cumprod
from teletape.ops.derived.cumulative import cumsum as cumsum
from teletape.ops.derived.cumulative import cumulative_logsumexp as cumulative_logsumexp
from teletape.ops.derived.elementwise.arithmetic import add as add
from teletape.ops.derived.elementwise.arithmetic import add_n as add_n
from teletape.ops.derived.elementwise.arithmetic import atan2 as atan2
from teletape.ops.derived.elementwise.arithmetic import divide as divide
from teletape.ops.derived.elementwise.arithmetic import divide_no_nan as divide_no_nan
from teletape.ops.derived.elementwise.arithmetic import floordiv as floordiv
from teletape.ops.derived.elementwise.arithmetic import floormod as floormod
from teletape.ops.derived.elementwise.arithmetic import floormod as mod
from teletape.ops.derived.elementwise.arithmetic import maximum as maximum
from teletape.ops.derived.elementwise.arithmetic import minimum as minimum
from teletape.ops.derived.elementwise.arithmetic import multiply as multiply
from teletape.ops.derived.elementwise.arithmetic import nextafter as nextafter
from teletape.ops.derived.elementwise.arithmetic import pow as pow
from teletape.ops.derived.elementwise.arithmetic import squared_difference as squared_difference
from teletape.ops.derived.elementwise.arithmetic import subtract as subtract
from teletape.ops.derived.elementwise.arithmetic import truediv as truediv
from teletape.ops.derived.elementwise.bessel import bessel_i0 as bessel_i0
from teletape.ops.derived.elementwise.bessel import bessel_i0e as bessel_i0e
from teletape.ops.derived.elementwise.bessel import bessel_i1 as bessel_i1
from teletape.ops.derived.elementwise.bessel import bessel_i1e as bessel_i1e
from teletape.ops.derived.elementwise.complex import abs as abs
from teletape.ops.derived.elementwise.complex import angle as angle
from teletape.ops.derived.elementwise.complex import conj as conj
from teletape.ops.derived.elementwise.complex import imag as imag
from teletape.ops.derived.elementwise.complex import real as real
from teletape.ops.derived.elementwise.complex import sign as sign
from teletape.ops.derived.elementwise.integrals import betainc as betainc
from teletape.ops.derived.elementwise.integrals import igamma as igamma
from teletape.ops.derived.elementwise.integrals import igammac as igammac
from teletape.ops.derived.elementwise.integrals import lbeta as lbeta
from teletape.ops.derived.elementwise.integrals import zeta as zeta
from teletape.ops.derived.elementwise.logic import equal as equal
from teletape.ops.derived.elementwise.logic import greater as greater
from teletape.ops.derived.elementwise.logic import greater_equal as greater_equal
from teletape.ops.derived.elementwise.logic import is_finite as is_finite
from teletape.ops.derived.elementwise.logic import is_inf as is_inf
from teletape.ops.derived.elementwise.logic import is_nan as is_nan
from teletape.ops.derived.elementwise.logic import less as less
from teletape.ops.derived.elementwise.logic import less_equal as less_equal
from teletape.ops.derived.elementwise.logic import logical_and as logical_and
from teletape.ops.derived.elementwise.logic import logical_not as logical_not
from teletape.ops.derived.elementwise.logic import logical_or as logical_or
from teletape.ops.derived.elementwise.logic import logical_xor as logical_xor
from teletape.ops.derived.elementwise.logic import not_equal as not_equal
from teletape.ops.derived.elementwise.math import acos as acos
from teletape.ops.derived.elementwise.math import asin as asin
from teletape.ops.derived.elementwise.math import atan as atan
from teletape.ops.derived.elementwise.math import ceil as ceil
from teletape.ops.derived.elementwise.math import cos as cos
from teletape.ops.derived.elementwise.math import cosh as cosh
from teletape.ops.derived.elementwise.math import erf as erf
from teletape.ops.derived.elementwise.math import exp as exp
from teletape.ops.derived.elementwise.math import expm1 as expm1
from teletape.ops.derived.elementwise.math import floor as floor
from teletape.ops.derived.elementwise.math import log as log
from teletape.ops.derived.elementwise.math import log1p as log1p
from teletape.ops.derived.elementwise.math import negative as negative
from teletape.ops.derived.elementwise.math import reciprocal as reciprocal
from teletape.ops.derived.elementwise.math import rint as rint
from teletape.ops.derived.elementwise.math import round as round
from teletape.ops.derived.elementwise.math import rsqrt as rsqrt
from teletape.ops.derived.elementwise.math import sigmoid as sigmoid
from teletape.ops.derived.elementwise.math import sin as sin
from teletape.ops.derived.elementwise.math import sinh as sinh
from teletape.ops.derived.elementwise.math import softplus as softplus
from teletape.ops.derived.elementwise.math import sqrt as sqrt
from teletape.ops.derived.elementwise.math import square as square
from teletape.ops.derived.elementwise.math import tan as tan
from teletape.ops.derived.elementwise.math import tanh as tanh
from teletape.ops.derived.elementwise.special import acosh as acosh
from teletape.ops.derived.elementwise.special import asinh as asinh
from teletape.ops.derived.elementwise.special import atanh as atanh
from teletape.ops.derived.elementwise.special import digamma as digamma
from teletape.ops.derived.elementwise.special import erfc as erfc
from teletape.ops.derived.elementwise.special import erfcinv as erfcinv
from teletape.ops.derived.elementwise.special import erfinv as erfinv
from teletape.ops.derived.elementwise.special import lgamma as lgamma
from teletape.ops.derived.elementwise.special import log_sigmoid as log_sigmoid
from teletape.ops.derived.elementwise.special import multiply_no_nan as multiply_no_nan
from teletape.ops.derived.elementwise.special import ndtri as ndtri
from teletape.ops.derived.elementwise.special import polygamma as polygamma
from teletape.ops.derived.elementwise.special import reciprocal_no_nan as reciprocal_no_nan
from teletape.ops.derived.elementwise.special import xdivy as xdivy
from teletape.ops.derived.elementwise.special import xlog1py as xlog1py
from teletape.ops.derived.elementwise.special import xlogy as xlogy
from teletape.ops.derived.nn.activations import log_softmax as log_softmax
from teletape.ops.derived.nn.activations import softmax as softmax
from teletape.ops.derived.nn.normalization import in_top_k as in_top_k
from teletape.ops.derived.nn.normalization import l2_normalize as l2_normalize
from teletape.ops.derived.nn.normalization import softsign as softsign
from teletape.ops.derived.nn.normalization import zero_fraction as zero_fraction
from teletape.ops.derived.random.sobol import sobol_sample as sobol_sample
from teletape.ops.derived.reduce import argmax as argmax
from teletape.ops.derived.reduce import argmin as argmin
from teletape.ops.derived.reduce import reduce_all as reduce_all
from teletape.ops.derived.reduce import reduce_any as reduce_any
from teletape.ops.derived.reduce import reduce_euclidean_norm as reduce_euclidean_norm
from teletape.ops.derived.reduce import reduce_logsumexp as reduce_logsumexp
from teletape.ops.derived.reduce import reduce_max as reduce_max
from teletape.ops.derived.reduce import reduce_mean as reduce_mean
from teletape.ops.derived.reduce import reduce_min as reduce_min
from teletape.ops.derived.reduce import reduce_prod as reduce_prod
from teletape.ops.derived.reduce import reduce_std as reduce_std
from teletape.ops.derived.reduce import reduce_sum as reduce_sum
from teletape.ops.derived.reduce import reduce_variance as reduce_variance
from teletape.ops.derived.segment import unsorted_segment_max as unsorted_segment_max
from teletape.ops.derived.segment import unsorted_segment_mean as unsorted_segment_mean
from teletape.ops.derived.segment import unsorted_segment_min as unsorted_segment_min
from teletape.ops.derived.segment import unsorted_segment_prod as unsorted_segment_prod
from teletape.ops.derived.segment import unsorted_segment_sqrt_n as unsorted_segment_sqrt_n
from teletape.ops.derived.shapes.index import unsorted_segment_sum as unsorted_segment_sum
from teletape.ops.derived.shapes.rearrange import invert_permutation as invert_permutation

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
