"""`tf.random.stateless_parameterized_truncated_normal`: normal numbers between bounds, each with parameters of its own.

By hand: it takes several ops. The numbers are not TensorFlow's, which draws until a number is between the bounds: here
each is one uniform number, mapped by the inverse of the distribution function.
"""

from __future__ import annotations

import math
from typing import Final

from teletape._generated.elementwise.arithmetic import clip_by_value, maximum
from teletape._generated.elementwise.logic import logical_and
from teletape._generated.elementwise.math import exp, log, sqrt
from teletape._generated.elementwise.special import erfc, ndtri
from teletape._generated.shapes.cast import cast, stop_gradient
from teletape._generated.shapes.shape import broadcast_to
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.tf.ops.arrays.rearrange import where
from teletape.tf.ops.random import stateful
from teletape.tf.ops.random.stateless import state
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError

#: Bounds that are both further out than this, in standard deviations, lie where the distribution function of float64
#: is 0. There exp(-z² / 2) is nearly z exp(-z² / 2), whose inverse is elementary: the error of a share is 1 / 30².
_FAR: Final = -30.0
_FARTHEST: Final = 1e100  #: Its square is finite.
_HALF_STEP: Final = 2.0**-53  #: Of uniform numbers of float64, so that none is 0: its number would be infinite.


def stateless_parameterized_truncated_normal(
    shape: to.IntsInput,
    seed: to.TensorInput,
    means: to.TensorInput = 0.0,
    stddevs: to.TensorInput = 1.0,
    minvals: to.TensorInput = -2.0,
    maxvals: to.TensorInput = 2.0,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers between bounds. The parameters broadcast to `shape`, and have gradients.

    The numbers are not TensorFlow's, but of the same distribution. The gradients are TensorFlow's: a number moves with
    its mean and deviation, at a fixed share of the distribution between the bounds.

    Args:
        shape: Of the result.
        seed: Integers [2].
        means: Floating; the dtype of the result.
        stddevs: More than 0, of that dtype.
        minvals: Less than `maxvals`, of that dtype; may be -inf.
        maxvals: May be inf.
        name: Accepted, without effect.

    Raises:
        InvalidArgumentError: A parameter has another dtype, does not broadcast to `shape`, or is out of range.

    Example:
        tf.random.stateless_parameterized_truncated_normal([3], seed=[1, 2], minvals=0.0, maxvals=[1.0, 2.0, 9.0])
    """
    mean = to.float_tensor(means)
    deviation, lowest, highest = (to.like(value, mean) for value in (stddevs, minvals, maxvals))
    for value, argument in ((deviation, "stddevs"), (lowest, "minvals"), (highest, "maxvals")):
        if value.dtype is not mean.dtype:
            raise InvalidArgumentError(f"{argument} must be {mean.dtype.name} as means are, found {value.dtype.name}")
    valid = logical_and(deviation > 0, lowest < highest)
    call(ops.ensure, (valid,), message="Invalid parameters")
    dims = stateful.dims_of(shape)
    wide = [broadcast_to(cast(value, dtypes.float64), dims) for value in (mean, deviation, lowest, highest)]
    centre, spread = (stop_gradient(value) for value in wide[:2])
    low, high = ((value - centre) / spread for value in wide[2:])
    share = stateful.fractions(dims, state(seed), dtypes.float64) + _HALF_STEP
    standard = _between(low, high, share)
    drawn = wide[0] + wide[1] * standard
    return cast(clip_by_value(drawn, stop_gradient(wide[2]), stop_gradient(wide[3])), mean.dtype)


def _between(low: Tensor, high: Tensor, share: Tensor) -> Tensor:
    """The standard normal numbers below which lies this share of the distribution between the bounds; all float64."""
    is_right = low + high > 0  # mirrored: the distribution function is exact on the left
    left, right = where(is_right, -high, low), where(is_right, -low, high)
    is_far = right < _FAR
    near = _near(where(is_far, -1.0, left), where(is_far, 1.0, right), share)
    far = _far(where(is_far, left, _FAR - 1), where(is_far, right, _FAR), share)
    standard = where(is_far, far, near)
    return where(is_right, -standard, standard)


def _near(low: Tensor, high: Tensor, share: Tensor) -> Tensor:
    below, above = (_distribution(bound) for bound in (low, high))
    return ndtri(below + share * (above - below))


def _distribution(x: Tensor) -> Tensor:
    """The distribution function of the standard normal distribution at x."""
    return 0.5 * erfc(-x / math.sqrt(2.0))


def _far(low: Tensor, high: Tensor, share: Tensor) -> Tensor:
    finite = maximum(low, -_FARTHEST)
    reached = exp((high * high - finite * finite) / 2)  # of the density at `high` what is left at `low`
    return -sqrt(high * high - 2.0 * log(reached + share * (1.0 - reached)))
