"""TensorFlow's functions of teletape_engine.ops.nn.activations.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any

from teletape.ops import arguments as to
from teletape.ops.dispatch import call
from teletape.tensors.tensor import Tensor, TensorLike
from teletape_engine.catalogue.namespace import ops

_RELU = ops.relu
_RELU6 = ops.relu6
_LEAKY_RELU = ops.leaky_relu
_ELU = ops.elu
_SELU = ops.selu
_SILU = ops.silu
_SOFTMAX = ops.softmax
_LOG_SOFTMAX = ops.log_softmax
_L2_LOSS = ops.l2_loss


def relu(features: to.TensorInput, name: str | None = None) -> Tensor:
    """max(x, 0), elementwise. The gradient at 0 is 0; the second derivative is zero, not None."""
    return call(_RELU, (features,))


def relu6(features: to.TensorInput, name: str | None = None) -> Tensor:
    """min(max(x, 0), 6), elementwise. The gradient at 0 and at 6 is 0."""
    return call(_RELU6, (features,))


def leaky_relu(features: to.TensorInput, alpha: float | TensorLike = 0.2, name: str | None = None) -> Tensor:
    """x above zero, alpha·x elsewhere, elementwise. The gradient at 0 is alpha."""
    features = to.float_tensor(features)
    return call(_LEAKY_RELU, (features,), alpha=to.real_number(alpha))


def elu(features: to.TensorInput, name: str | None = None) -> Tensor:
    """x above zero, eˣ - 1 elsewhere, elementwise."""
    return call(_ELU, (features,))


def selu(features: to.TensorInput, name: str | None = None) -> Tensor:
    """scale · (x above zero, alpha·(eˣ - 1) elsewhere), elementwise (Klambauer et al. 2017)."""
    return call(_SELU, (features,))


def silu(features: to.TensorInput, name: str | None = None) -> Tensor:
    """x·sigmoid(x), elementwise."""
    return call(_SILU, (features,))


def softmax(logits: to.TensorInput, axis: to.IntInput | None = None, name: str | None = None) -> Tensor:
    """eˣ / Σ eˣ along `axis`, without overflow."""
    logits = to.tensor(logits)
    attrs: dict[str, Any] = {}
    if axis is not None:
        attrs["axis"] = to.whole(axis)
    return call(_SOFTMAX, (logits,), **attrs)


def log_softmax(logits: to.TensorInput, axis: to.IntInput | None = None, name: str | None = None) -> Tensor:
    """x - log Σ eˣ along `axis`, without overflow."""
    logits = to.tensor(logits)
    attrs: dict[str, Any] = {}
    if axis is not None:
        attrs["axis"] = to.whole(axis)
    return call(_LOG_SOFTMAX, (logits,), **attrs)


def l2_loss(t: to.TensorInput, name: str | None = None) -> Tensor:
    """Σ x² / 2, a scalar."""
    return call(_L2_LOSS, (t,))
