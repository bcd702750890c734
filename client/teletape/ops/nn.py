"""`tf.nn` functions whose arguments TensorFlow checks or orders in a way of its own."""

from __future__ import annotations

from typing import Any

from teletape.ops.arguments import axes as axes_of
from teletape.ops.arrays import gather, squeeze
from teletape.ops.cast import cast
from teletape.ops.dispatch import call, convert_to_tensor
from teletape.ops.random import uniform
from teletape.tensors import dtypes
from teletape.tensors.tensor import EagerTensor, TensorLike
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import InvalidArgumentError

__all__ = [
    "batch_normalization",
    "dropout",
    "embedding_lookup",
    "leaky_relu",
    "log_softmax",
    "moments",
    "sigmoid_cross_entropy_with_logits",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits",
]


def _axis(name: str, logits: EagerTensor, axis: Any) -> int:
    rank, at = logits.ndim, -1 if axis is None else int(axis)
    if rank and not -rank <= at < rank:
        raise InvalidArgumentError(
            f"`dim` must be in the range [{-rank}, {rank}) where {rank} is the number of dimensions in the input. "
            f"Received: dim={at}"
        )
    if not rank:
        raise InvalidArgumentError(f"logits must have >= 1 dimension, got [] [Op:{name}]")
    return at


def softmax(logits: Any, axis: Any = None, name: str | None = None) -> EagerTensor:
    """exp(logits) over its sum along `axis` (default: the last)."""
    tensor = convert_to_tensor(logits)
    return call(CATALOGUE["softmax"], (tensor,), axis=_axis("Softmax", tensor, axis))


def log_softmax(logits: Any, axis: Any = None, name: str | None = None) -> EagerTensor:
    """logits minus the logarithm of the sum of their exponentials along `axis` (default: the last)."""
    tensor = convert_to_tensor(logits)
    return call(CATALOGUE["log_softmax"], (tensor,), axis=_axis("LogSoftmax", tensor, axis))


def softmax_cross_entropy_with_logits(labels: Any, logits: Any, axis: Any = -1, name: str | None = None) -> EagerTensor:
    """-sum(labels * log_softmax(logits)) along `axis`, which the result has no more."""
    scores = convert_to_tensor(logits)
    if not isinstance(labels, TensorLike):
        labels = convert_to_tensor(labels, scores.dtype)
    return call(CATALOGUE["softmax_cross_entropy"], (cast(labels, scores.dtype), scores), axis=int(axis))


def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> EagerTensor:
    """-log_softmax(logits) at the class that `labels` (int32 or int64, one axis less) names."""
    scores, classes = convert_to_tensor(logits), convert_to_tensor(labels)
    if scores.ndim != classes.ndim + 1:
        raise ValueError(
            "`labels.shape.rank` must equal `logits.shape.rank - 1`. Received: labels.shape="
            f"{classes.shape} of rank {classes.ndim} and logits.shape={scores.shape} of rank {scores.ndim}"
        )
    if classes.shape.as_list() != scores.shape.as_list()[:-1]:
        raise ValueError(
            "`labels.shape` must equal `logits.shape` except for the last dimension. Received: labels.shape="
            f"{classes.shape} and logits.shape={scores.shape}"
        )
    return call(CATALOGUE["sparse_softmax_cross_entropy"], (classes, scores))


def sigmoid_cross_entropy_with_logits(labels: Any = None, logits: Any = None, name: str | None = None) -> EagerTensor:
    """-labels * log(sigmoid(logits)) - (1 - labels) * log(1 - sigmoid(logits)), elementwise, in a stable form."""
    scores = convert_to_tensor(logits)
    wanted = labels if isinstance(labels, TensorLike) else convert_to_tensor(labels, scores.dtype)
    if wanted.shape.as_list() != scores.shape.as_list():
        raise ValueError(
            f"`logits` and `labels` must have the same shape, received ({scores.shape} vs {wanted.shape})."
        )
    return call(CATALOGUE["sigmoid_cross_entropy"], (wanted, scores))


def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> EagerTensor:
    """`features` above zero, `alpha` times them below; integers as float32."""
    tensor = convert_to_tensor(features)
    if tensor.dtype.is_integer:
        tensor = cast(tensor, dtypes.float32)
    return call(CATALOGUE["leaky_relu"], (tensor,), alpha=alpha)


def moments(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[EagerTensor, EagerTensor]:
    """Mean and variance over `axes`; `shift` has no effect. 16-bit floats are computed in float32."""
    given = convert_to_tensor(x)
    tensor = cast(given, dtypes.float32) if given.dtype in (dtypes.float16, dtypes.bfloat16) else given
    over = axes_of(axes)
    mean = call(CATALOGUE["reduce_mean"], (tensor,), axis=over, keepdims=True)
    squares = call(CATALOGUE["squared_difference"], (tensor, call(CATALOGUE["stop_gradient"], (mean,))))
    variance = call(CATALOGUE["reduce_mean"], (squares,), axis=over, keepdims=True)
    if not keepdims:
        mean, variance = squeeze(mean, over), squeeze(variance, over)
    return cast(mean, given.dtype), cast(variance, given.dtype)


def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any, name: str | None = None
) -> EagerTensor:
    """scale * (x - mean) / sqrt(variance + variance_epsilon) + offset; None for no scale or no offset."""
    tensor = convert_to_tensor(x)
    factor = call(CATALOGUE["rsqrt"], (convert_to_tensor(variance) + variance_epsilon,))
    if scale is not None:
        factor = factor * scale
    moved: Any = -mean * factor if offset is None else offset - mean * factor
    result: EagerTensor = tensor * cast(factor, tensor.dtype) + cast(moved, tensor.dtype)
    return result


def dropout(x: Any, rate: Any, noise_shape: Any = None, seed: Any = None, name: str | None = None) -> EagerTensor:
    """Zeros with probability `rate`, and what stays scaled by 1 / (1 - rate); one draw an element of `noise_shape`.

    Raises:
        ValueError: `x` holds no floating numbers; a rate outside [0, 1).
    """
    tensor = convert_to_tensor(x)
    if not tensor.dtype.is_floating:
        raise ValueError(
            f"`x.dtype` must be a floating point tensor as `x` will be scaled. Received: x_dtype={tensor.dtype}"
        )
    number = float(rate)
    if not 0 <= number < 1:
        raise ValueError(f"`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate={rate}")
    if number == 0:
        return tensor
    shape = (
        tensor.shape
        if noise_shape is None
        else [
            length if wanted is None else wanted
            for wanted, length in zip(noise_shape, tensor.shape.as_list(), strict=True)
        ]
    )
    keep = call(CATALOGUE["greater_equal"], (uniform(shape, seed=seed, dtype=tensor.dtype), number))
    scaled = tensor * (1.0 / (1.0 - number))
    return call(CATALOGUE["where"], (keep, scaled, call(CATALOGUE["zeros_like"], (scaled,))))


def embedding_lookup(params: Any, ids: Any, max_norm: Any = None, name: str | None = None) -> EagerTensor:
    """Rows of `params` at `ids`; the gradient of a variable is IndexedSlices."""
    if max_norm is not None:
        raise InvalidArgumentError("embedding_lookup: max_norm is not offered; clip the looked-up rows instead")
    if isinstance(params, list | tuple) and len(params) == 1:  # TensorFlow's lists of shards, of which one is common
        (params,) = params
    return gather(params, ids)
