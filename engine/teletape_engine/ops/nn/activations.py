"""Activations, softmax and biases."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.arrays.kernels import Count, applied, kernel
from teletape_engine.catalogue.attributes import Attrs, Axis
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.elementwise import elementwise, linear_map
from teletape_engine.catalogue.families import batch_axes, composite
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op, Reach, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.signature import Conversion, by_hand, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.math import exp, sigmoid, step
from teletape_engine.ops.reduce import reduce_sum
from teletape_engine.ops.shapes.shape import broadcast_to, reshape
from teletape_engine.spec import FLOATING, NUMERIC, REAL, Spec, half_bytes, shape_text, wide, wide_bytes

_ROW, _SHORT, _LARGE = 4096, 128, 1 << 14  # elements

# Klambauer et al. 2017, Self-Normalizing Neural Networks, section 2.
SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772


# ------------------------------------------------------------------------------------------------------- activations
@elementwise(
    linear_map(lambda ct, y: ops.relu_grad(ct, y)),
    args="features",
    tf="nn.relu",
    dtypes=REAL,
    traits=[Trait.SATURATES],
)
def relu(xp: ArrayModule, x: Array) -> Array:
    """max(x, 0), elementwise. The gradient at 0 is 0; the second derivative is zero, not None."""
    if x.size >= _LARGE and (loops := kernel(xp, "relu", x.dtype, Count(x.size))) is not None:
        return applied(xp, loops, (x,), x.shape)
    return xp.maximum(x, 0)


@elementwise(
    linear_map(lambda ct, features: ops.relu_grad(ct, features)),
    0,
    temporaries=1,
    dtypes=REAL,
    traits=[Trait.SATURATES],
)
def relu_grad(xp: ArrayModule, grad: Array, features: Array) -> Array:
    """grad where features > 0, and grad · 0 elsewhere, elementwise: the vjp of relu, by its input or its result."""
    dtype = (features if hasattr(features, "dtype") else grad).dtype  # one may be a number
    if not hasattr(features, "dtype"):
        features = xp.full((), features, dtype)
    if hasattr(grad, "shape") and grad.shape == features.shape and features.size >= _LARGE:
        loops = kernel(xp, "relu_grad", dtype, Count(features.size))
        if loops is not None:
            return applied(xp, loops, (grad, features), grad.shape)
    return xp.multiply(grad, xp.greater(features, 0).astype(dtype))


@elementwise(
    lambda y: step(y) * step(6 - y),
    temporaries=1,
    args="features",
    tf="nn.relu6",
    dtypes=REAL,
    domain=(-3.0, 9.0),
    traits=[Trait.SATURATES],
)
def relu6(xp: ArrayModule, x: Array) -> Array:
    """min(max(x, 0), 6), elementwise. The gradient at 0 and at 6 is 0."""
    return xp.minimum(xp.maximum(x, 0), 6)


@elementwise(
    lambda x, alpha: step(x) + alpha * (1 - step(x)),
    temporaries=2,
    tf=(function("nn.leaky_relu", Conversion.FLOAT("features"), Conversion.REAL("alpha", 0.2)),),
    dtypes=FLOATING,
    samples=[sample((2, 3)), sample((4,), alpha=0.5, seed=1), sample((), seed=2)],
    traits=[Trait.SATURATES],
)
def leaky_relu(xp: ArrayModule, x: Array, *, alpha: float = 0.2) -> Array:
    """x above zero, alpha·x elsewhere, elementwise. The gradient at 0 is alpha."""
    return xp.where(x > 0, x, x * x.dtype.type(alpha))


@elementwise(
    lambda y: 1 + ops.minimum(0.0, y),
    temporaries=2,
    args="features",
    tf="nn.elu",
    dtypes=FLOATING,
    traits=[Trait.SATURATES],
)
def elu(xp: ArrayModule, x: Array) -> Array:
    """x above zero, eˣ - 1 elsewhere, elementwise."""
    return xp.where(x > 0, x, xp.expm1(xp.minimum(x, 0)))


@elementwise(
    lambda y: (SELU_SCALE * SELU_ALPHA + ops.minimum(0.0, y)) * step(-y) + SELU_SCALE * (1 - step(-y)),
    temporaries=3,
    args="features",
    tf="nn.selu",
    dtypes=FLOATING,
    traits=[Trait.SATURATES],
)
def selu(xp: ArrayModule, x: Array) -> Array:
    """scale · (x above zero, alpha·(eˣ - 1) elsewhere), elementwise (Klambauer et al. 2017)."""
    scale, steep = x.dtype.type(SELU_SCALE), x.dtype.type(SELU_SCALE * SELU_ALPHA)
    return xp.where(x > 0, scale * x, steep * xp.expm1(xp.minimum(x, 0)))


@composite(
    tf=(
        function(
            "nn.silu nn.swish",
            Conversion.FLOAT("features"),
            Conversion.REAL("beta", 1.0),
            Conversion.IGNORED("name", None),
            shortcut="silu_of_tensor_beta",
        ),
    ),
    samples=[sample((2, 3)), sample(()), sample((2,), beta=0.5, seed=1)],
)
def silu(x: Operand, *, beta: float = 1.0) -> Operand:
    """x·sigmoid(beta·x), elementwise."""
    return x * sigmoid(x if beta == 1 else x * beta)


# ----------------------------------------------------------------------------------------------------------- softmax
def check_axis(op_type: str, x: Spec, axis: int) -> int:
    """The axis of a softmax, counted from the front."""
    check_dtypes(op_type, (x,), FLOATING)
    if x.ndim == 0:
        raise InvalidArgumentError("logits must have >= 1 dimension, got []")
    if not -x.ndim <= axis < x.ndim:
        raise InvalidArgumentError(
            f"`dim` must be in the range [{-x.ndim}, {x.ndim}) where {x.ndim} is the number of dimensions in the "
            f"input. Received: dim={axis}"
        )
    return axis % x.ndim


def _softmax_spec(op_type: str) -> Callable[..., Spec]:
    def infer(x: Spec, *, axis: int) -> Spec:
        check_axis(op_type, x, axis)
        return x

    return infer


def _rows_bytes(x: Spec, *, axis: int) -> int:
    rows = x.size // max(x.shape[axis], 1) * wide(x.dtype).itemsize
    return 2 * rows + half_bytes(x, 2)


_SOFTMAX_SAMPLES = [sample((3, 4)), sample((2, 3, 2), axis=1), sample((4,), axis=0, seed=1), sample((0, 3))]


def shifted(xp: ArrayModule, x: Array, axis: int) -> Array:
    """x - max(x) along `axis`, a new array in the dtype that sums are computed in."""
    x = x.astype(wide(x.dtype), copy=False)
    return x - (xp.max(x, axis=axis, keepdims=True) if x.size else 0)


def _softmax_vjp(ct: Operand, y: Operand, axis: int) -> Operand:
    return (ct - reduce_sum(ct * y, axis=axis, keepdims=True)) * y


@op(
    infer=_softmax_spec("Softmax"),
    vjp=_softmax_vjp,
    jvp=lambda t, y, axis: _softmax_vjp(t, y, axis),  # the Jacobian is symmetric
    batch=batch_axes,
    samples=_SOFTMAX_SAMPLES,
    tf=(function("nn.softmax math.softmax", Conversion.TENSOR("logits"), Conversion.INT("axis", None)),),
    workspace=_rows_bytes,
    traits=[Trait.SATURATES],
    reach=Reach.LINES,
)
def softmax(xp: ArrayModule, x: Array, *, axis: Axis = -1) -> Array:
    """Softmax: eˣ / Σ eˣ along `axis`, without overflow; the results add up to 1."""
    out = shifted(xp, x, axis)
    xp.exp(out, out=out)
    out /= xp.sum(out, axis=axis, keepdims=True)
    return out.astype(x.dtype, copy=False)


@op(
    infer=_softmax_spec("LogSoftmax"),
    vjp=lambda ct, y, axis: ct - reduce_sum(ct, axis=axis, keepdims=True) * exp(y),
    jvp=lambda t, y, axis: t - reduce_sum(t * exp(y), axis=axis, keepdims=True),
    batch=batch_axes,
    samples=_SOFTMAX_SAMPLES,
    tf=(function("nn.log_softmax math.log_softmax", Conversion.TENSOR("logits"), Conversion.INT("axis", None)),),
    workspace=lambda x, *, axis: wide_bytes(x) + _rows_bytes(x, axis=axis),
    traits=[Trait.SATURATES],
    reach=Reach.LINES,
)
def log_softmax(xp: ArrayModule, x: Array, *, axis: Axis = -1) -> Array:
    """The logarithm of softmax: x - log Σ eˣ along `axis`, without overflow."""
    out = shifted(xp, x, axis)
    out -= xp.log(xp.sum(xp.exp(out), axis=axis, keepdims=True))
    return out.astype(x.dtype, copy=False)


# -------------------------------------------------------------------------------------------------- biases and norms
def _bias_add_spec(value: Spec, bias: Spec) -> Spec:
    check_dtypes("BiasAdd", (value, bias), NUMERIC)
    if value.ndim < 2:
        raise InvalidArgumentError(f"Input tensor must be at least 2D: {shape_text(value.shape)}")
    if bias.ndim != 1:
        raise InvalidArgumentError(f"Biases must be 1D: {shape_text(bias.shape)}")
    if bias.shape[0] != value.shape[-1]:
        raise InvalidArgumentError(
            "Must provide as many biases as the last dimension of the input tensor: "
            f"{shape_text(bias.shape)} vs. {shape_text(value.shape)}"
        )
    return value


def _batch_bias_add(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    value, bias = args
    if not batched[1]:
        return record(value, bias)
    n, c = bias.shape
    ndim = len(value.shape) - batched[0]
    return value + reshape(bias, shape=(n, *(1,) * (ndim - 1), c))


@op(
    infer=_bias_add_spec,
    vjp=[
        lambda ct: ct,
        lambda ct, value_spec: reduce_sum(ct, axis=tuple(range(value_spec.ndim - 1))),
    ],
    jvp=[lambda t: t, lambda t, value_spec: broadcast_to(t, shape=value_spec.shape)],
    batch=_batch_bias_add,
    samples=[sample((2, 3), (3,)), sample((2, 3, 4), (4,), seed=1)],
    tf=(by_hand("nn.bias_add", "channels first are added as another shape"),),
    workspace=lambda value, bias: _ROW * bias.dtype.itemsize,
    reach=Reach.ELEMENTS,
)
def bias_add(xp: ArrayModule, value: Any, bias: Array) -> Array:
    """value [..., c] + bias [c]."""
    rows, c = value.size // max(len(bias), 1), len(bias)
    together = math.gcd(rows, _ROW // c) if 0 < c < _SHORT and value.flags.c_contiguous else 1
    if together == 1:
        return xp.add(value, bias)
    # Few channels: loops over long rows, in which the biases are repeated, instead of many short ones.
    repeated = xp.broadcast_to(bias, (together, c)).reshape(together * c)
    return xp.add(value.reshape((rows // together, together * c)), repeated).reshape(value.shape)


def _l2_loss_spec(x: Spec) -> Spec:
    check_dtypes("L2Loss", (x,), FLOATING)
    return x.with_shape(())


def _batch_l2_loss(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    (x,) = args
    return reduce_sum(x * x, axis=tuple(range(1, len(x.shape)))) / 2


@op(
    infer=_l2_loss_spec,
    vjp=lambda ct, x: ct * x,
    jvp=lambda t, x: reduce_sum(t * x),
    batch=_batch_l2_loss,
    samples=[sample((2, 3)), sample(())],
    args="t",
    tf="nn.l2_loss",
    workspace=lambda x: wide_bytes(x) + half_bytes(x),
)
def l2_loss(xp: ArrayModule, x: Array) -> Array:
    """Σ x² / 2, a scalar."""
    return (xp.sum(xp.square(x.astype(wide(x.dtype), copy=False))) / 2).astype(x.dtype, copy=False)
