"""TensorFlow's functions of teletape_engine.ops.nn.normalization.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape_engine.catalogue.namespace import ops

_CRELU = ops.crelu
_SOFTSIGN = ops.softsign
_L2_NORMALIZE = ops.l2_normalize
_LOCAL_RESPONSE_NORMALIZATION = ops.local_response_normalization
_ZERO_FRACTION = ops.zero_fraction
_IN_TOP_K = ops.in_top_k


def crelu(features: to.TensorInput, axis: to.IntInput = -1, name: str | None = None) -> Tensor:
    """relu(x) and relu(-x) side by side along `axis`."""
    try:
        features = to.tensor(features)
        return call(_CRELU, (features,), axis=to.whole(axis))
    except BaseException as error:
        report(error)
        raise


def softsign(features: to.TensorInput, name: str | None = None) -> Tensor:
    """x / (1 + |x|), elementwise; at an infinity nan, and the gradient 0."""
    try:
        return call(_SOFTSIGN, (features,))
    except BaseException as error:
        report(error)
        raise


def l2_normalize(
    x: to.TensorInput,
    axis: to.IntsInput | None = None,
    epsilon: float | TensorLike = 1e-12,
    name: str | None = None,
    dim: Any = None,
) -> Tensor:
    """x divided by the square root of the sum of its squares over `axis`, which counts as `epsilon` at least."""
    try:
        to.not_offered(dim, "l2_normalize", "dim")
        x = to.tensor(x)
        attrs: dict[str, Any] = {"epsilon": to.real_number(epsilon)}
        if axis is not None:
            attrs["axis"] = to.axes(axis)
        return call(_L2_NORMALIZE, (x,), **attrs)
    except BaseException as error:
        report(error)
        raise


def local_response_normalization(
    input: to.TensorInput,
    depth_radius: to.IntInput = 5,
    bias: float | TensorLike = 1.0,
    alpha: float | TensorLike = 1.0,
    beta: float | TensorLike = 0.5,
    name: str | None = None,
) -> Tensor:
    """x / (bias + alpha · s)ᵝ, with s the sum of the squares of the channels at most `depth_radius` away."""
    try:
        input = to.single_tensor(input)
        return call(
            _LOCAL_RESPONSE_NORMALIZATION,
            (input,),
            depth_radius=to.whole(depth_radius),
            bias=to.real_number(bias),
            alpha=to.real_number(alpha),
            beta=to.real_number(beta),
        )
    except BaseException as error:
        report(error)
        raise


def zero_fraction(value: to.TensorInput, name: str | None = None) -> Tensor:
    """The fraction of the elements that are zero, float32."""
    try:
        return call(_ZERO_FRACTION, (value,))
    except BaseException as error:
        report(error)
        raise


def in_top_k(targets: to.TensorInput, predictions: to.TensorInput, k: to.IntInput, name: str | None = None) -> Tensor:
    """Whether fewer than k predictions of a row exceed that of its target; classes that tie are all among the top.

    False for a target that is no class, or whose prediction is not finite.
    """
    try:
        targets = to.tensor(targets)
        predictions = to.tensor(predictions)
        return call(_IN_TOP_K, (targets, predictions), k=to.whole(k))
    except BaseException as error:
        report(error)
        raise
