"""TensorFlow's functions of teletape_engine.ops.nn.activations.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls import checks
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor, TensorLike
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
    try:
        return call(_RELU, (features,))
    except BaseException as error:
        report(error)
        raise


def relu6(features: to.TensorInput, name: str | None = None) -> Tensor:
    """min(max(x, 0), 6), elementwise. The gradient at 0 and at 6 is 0."""
    try:
        return call(_RELU6, (features,))
    except BaseException as error:
        report(error)
        raise


def leaky_relu(features: to.TensorInput, alpha: float | TensorLike = 0.2, name: str | None = None) -> Tensor:
    """x above zero, alpha·x elsewhere, elementwise. The gradient at 0 is alpha."""
    try:
        features = to.float_tensor(features)
        return call(_LEAKY_RELU, (features,), alpha=to.real_number(alpha))
    except BaseException as error:
        report(error)
        raise


def elu(features: to.TensorInput, name: str | None = None) -> Tensor:
    """x above zero, eˣ - 1 elsewhere, elementwise."""
    try:
        return call(_ELU, (features,))
    except BaseException as error:
        report(error)
        raise


def selu(features: to.TensorInput, name: str | None = None) -> Tensor:
    """scale · (x above zero, alpha·(eˣ - 1) elsewhere), elementwise (Klambauer et al. 2017)."""
    try:
        return call(_SELU, (features,))
    except BaseException as error:
        report(error)
        raise


def silu(features: to.TensorInput, beta: float | TensorLike = 1.0, name: str | None = None) -> Tensor:
    """x·sigmoid(beta·x), elementwise."""
    try:
        features = to.float_tensor(features)
        result = checks.silu_of_tensor_beta(features, beta)
        if result is not None:
            return result
        return call(_SILU, (features,), beta=to.real_number(beta))
    except BaseException as error:
        report(error)
        raise


def softmax(logits: to.TensorInput, axis: to.IntInput | None = None, name: str | None = None) -> Tensor:
    """Softmax: eˣ / Σ eˣ along `axis`, without overflow; the results add up to 1."""
    try:
        logits = to.tensor(logits)
        attrs: dict[str, Any] = {}
        if axis is not None:
            attrs["axis"] = to.whole(axis)
        return call(_SOFTMAX, (logits,), **attrs)
    except BaseException as error:
        report(error)
        raise


def log_softmax(logits: to.TensorInput, axis: to.IntInput | None = None, name: str | None = None) -> Tensor:
    """The logarithm of softmax: x - log Σ eˣ along `axis`, without overflow."""
    try:
        logits = to.tensor(logits)
        attrs: dict[str, Any] = {}
        if axis is not None:
            attrs["axis"] = to.whole(axis)
        return call(_LOG_SOFTMAX, (logits,), **attrs)
    except BaseException as error:
        report(error)
        raise


def l2_loss(t: to.TensorInput, name: str | None = None) -> Tensor:
    """Σ x² / 2, a scalar."""
    try:
        return call(_L2_LOSS, (t,))
    except BaseException as error:
        report(error)
        raise
