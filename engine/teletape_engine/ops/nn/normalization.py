"""Normalization by lengths and by neighbouring channels, and what else networks compute from their features."""

from __future__ import annotations

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.catalogue.attributes import Axes, Axis
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.elementwise import elementwise
from teletape_engine.catalogue.families import batch_loop, composite
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.catalogue.signature import Conversion, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.arithmetic import maximum, pow_
from teletape_engine.ops.elementwise.complex import abs_
from teletape_engine.ops.elementwise.logic import equal, logical_not
from teletape_engine.ops.elementwise.math import rsqrt, square
from teletape_engine.ops.nn.activations import relu
from teletape_engine.ops.reduce import reduce_mean, reduce_sum
from teletape_engine.ops.shapes.cast import cast
from teletape_engine.ops.shapes.create import zeros_like
from teletape_engine.ops.shapes.index import strided_slice
from teletape_engine.ops.shapes.pad import pad
from teletape_engine.ops.shapes.shape import concat
from teletape_engine.spec import BOOL, COMPLEX, DTYPES, FLOATING, INDEX, Spec, shape_text

_F32 = DTYPES["float32"]


# ------------------------------------------------------------------------------------------------------- activations
@composite(
    samples=[sample((2, 3)), sample((2, 2, 3), axis=1, seed=1)],
    tf=(function("nn.crelu", Conversion.TENSOR("features"), Conversion.INT("axis", -1)),),
)
def crelu(x: Operand, *, axis: Axis = -1) -> Operand:
    """relu(x) and relu(-x) side by side along `axis`."""
    if not x.shape:
        raise InvalidArgumentError("crelu puts two halves side by side along an axis; the features are a scalar")
    return concat(relu(x), relu(-x), axis=axis)


@elementwise(
    lambda x: square(1 / (abs_(x) + 1)),
    temporaries=2,
    args="features",
    tf="nn.softsign math.softsign",
    dtypes=FLOATING,
)
def softsign(xp: ArrayModule, x: Array) -> Array:
    """x / (1 + |x|), elementwise; at an infinity nan, and the gradient 0."""
    return x / (xp.abs(x) + 1)


# ----------------------------------------------------------------------------------------------------- normalization
@composite(
    samples=[sample((2, 3), axis=1), sample((2, 2, 3), axis=(0, 2), seed=1), sample((3,), epsilon=0.5)],
    tf=(
        function(
            "math.l2_normalize linalg.l2_normalize nn.l2_normalize",
            Conversion.TENSOR("x"),
            Conversion.AXES("axis", None),
            Conversion.REAL("epsilon", 1e-12),
            Conversion.IGNORED("name", None),
            Conversion.NOT_OFFERED("dim", None),
        ),
    ),
)
def l2_normalize(x: Operand, *, axis: Axes = None, epsilon: float = 1e-12) -> Operand:
    """x divided by the square root of the sum of its squares over `axis`, which counts as `epsilon` at least."""
    real = abs_(x) if x.dtype in COMPLEX else x
    scale = rsqrt(maximum(reduce_sum(square(real), axis=axis, keepdims=True), epsilon))
    return x * (cast(scale, dtype=x.dtype) if x.dtype in COMPLEX else scale)


@composite(
    samples=[
        sample((1, 2, 2, 4), depth_radius=1),
        sample((1, 1, 2, 3), depth_radius=2, bias=2.0, alpha=0.5, beta=0.75, seed=1),
    ],
    op_type="LRN",
    args="input depth_radius bias alpha beta",
    tf=(
        function(
            "nn.local_response_normalization nn.lrn",
            Conversion.SINGLE("input"),
            Conversion.INT("depth_radius", 5),
            Conversion.REAL("bias", 1.0),
            Conversion.REAL("alpha", 1.0),
            Conversion.REAL("beta", 0.5),
        ),
    ),
)
def local_response_normalization(
    x: Operand, *, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5
) -> Operand:
    """x / (bias + alpha · s)ᵝ, with s the sum of the squares of the channels at most `depth_radius` away."""
    if len(x.shape) != 4:
        raise InvalidArgumentError(f"in must be 4-dimensional, found shape {shape_text(x.shape)}")
    if depth_radius < 0:
        raise InvalidArgumentError(f"depth_radius must not be negative, found {depth_radius}")
    channels = x.shape[-1]
    reach = min(depth_radius, max(channels - 1, 0))
    bordered = pad(square(x), paddings=((0, 0), (0, 0), (0, 0), (reach, reach)))
    total = strided_slice(bordered, index=("...", (0, channels, None)))
    for first in range(1, 2 * reach + 1):
        total = total + strided_slice(bordered, index=("...", (first, first + channels, None)))
    return x * pow_(total * alpha + bias, -beta)


# -------------------------------------------------------------------------------------------------------- statistics
@composite(samples=[sample(np.array([[0.0, 1.0], [2.0, 0.0]]))], tf="nn.zero_fraction math.zero_fraction", args="value")
def zero_fraction(x: Operand) -> Operand:
    """The fraction of the elements that are zero, float32."""
    zero = logical_not(x) if x.dtype is BOOL else equal(x, zeros_like(x))
    return reduce_mean(cast(zero, dtype=_F32))


def _in_top_k_spec(targets: Spec, predictions: Spec, *, k: int) -> Spec:
    check_dtypes("InTopKV2", (predictions,), FLOATING)
    if targets.dtype not in INDEX:
        raise InvalidArgumentError(f"targets must be int32 or int64, found {targets.dtype.name}")
    if predictions.ndim != 2 or targets.shape != predictions.shape[:1]:
        raise InvalidArgumentError(
            f"predictions must be a matrix, and targets one class for each of its rows, found "
            f"{shape_text(predictions.shape)} and {shape_text(targets.shape)}"
        )
    return Spec.of(targets.shape, BOOL)


@op(
    infer=_in_top_k_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_loop,
    samples=[sample(np.array([2, 0]), (2, 3), k=2), sample(np.array([5, 1, 0], np.int32), (3, 2), k=1, seed=1)],
    op_type="InTopKV2",
    like=(0, 1),
    integers=("targets",),
    tf=(
        function(
            "nn.in_top_k math.in_top_k",
            Conversion.TENSOR("targets"),
            Conversion.TENSOR("predictions"),
            Conversion.INT("k"),
        ),
    ),
    workspace=lambda targets, predictions, *, k: 3 * predictions.size + 16 * targets.size + predictions.nbytes,
)
def in_top_k(xp: ArrayModule, targets: Array, predictions: Array, *, k: int) -> Array:
    """Whether fewer than k predictions of a row exceed that of its target; classes that tie are all among the top.

    False for a target that is no class, or whose prediction is not finite.
    """
    classes = predictions.shape[1]
    valid = (targets >= 0) & (targets < classes)
    if not predictions.size:
        return xp.zeros(targets.shape, bool)
    chosen = xp.take_along_axis(predictions, xp.where(valid, targets, 0).astype(np.int64)[:, None], axis=1)
    above = xp.sum(predictions > chosen, axis=1)
    return valid & xp.isfinite(chosen[:, 0].astype(_F32)) & (above < k)
