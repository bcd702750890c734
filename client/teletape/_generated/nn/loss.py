"""TensorFlow's functions of teletape_engine.ops.nn.loss.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls import checks
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_SOFTMAX_CROSS_ENTROPY = ops.softmax_cross_entropy
_SPARSE_SOFTMAX_CROSS_ENTROPY = ops.sparse_softmax_cross_entropy
_SIGMOID_CROSS_ENTROPY = ops.sigmoid_cross_entropy
_WEIGHTED_CROSS_ENTROPY = ops.weighted_cross_entropy
_LOG_POISSON_LOSS = ops.log_poisson_loss


def softmax_cross_entropy_with_logits(
    labels: to.TensorInput, logits: to.TensorInput, axis: to.IntInput = -1, name: str | None = None
) -> Tensor:
    """-Σ labels · log softmax(logits) along `axis`, which is reduced; labels are probabilities, and broadcast.

    Labels may lack first axes of the logits if `axis` is the last one.

    The gradient of the logits is softmax(logits) - labels, as in TensorFlow: exact for labels that sum to 1.
    """
    try:
        logits = to.tensor(logits)
        labels = to.cast(labels, logits)
        return call(_SOFTMAX_CROSS_ENTROPY, (labels, logits), axis=to.whole(axis))
    except BaseException as error:
        report(error)
        raise


def sparse_softmax_cross_entropy_with_logits(
    labels: to.TensorInput, logits: to.TensorInput, name: str | None = None
) -> Tensor:
    """-log softmax(logits)[label] over the last axis; labels: integers [...], logits: [..., classes].

    Raises:
        InvalidArgumentError: A label outside [0, classes).
    """
    try:
        labels = to.tensor(labels)
        logits = to.tensor(logits)
        checks.a_class_per_row(labels, logits)
        return call(_SPARSE_SOFTMAX_CROSS_ENTROPY, (labels, logits))
    except BaseException as error:
        report(error)
        raise


def sigmoid_cross_entropy_with_logits(
    labels: to.TensorInput | None = None, logits: to.TensorInput | None = None, name: str | None = None
) -> Tensor:
    """-labels·log σ(logits) - (1 - labels)·log(1 - σ(logits)), elementwise, without overflow. One shape for both."""
    try:
        logits = to.tensor(logits)
        labels = to.like(labels, logits)
        checks.same_shape(labels, logits)
        return call(_SIGMOID_CROSS_ENTROPY, (labels, logits))
    except BaseException as error:
        report(error)
        raise


def weighted_cross_entropy_with_logits(
    labels: to.TensorInput, logits: to.TensorInput, pos_weight: to.TensorInput, name: str | None = None
) -> Tensor:
    """sigmoid_cross_entropy with its first term times pos_weight, to weigh positive labels more, or less."""
    try:
        logits = to.tensor(logits)
        labels = to.like(labels, logits)
        pos_weight = to.like(pos_weight, logits)
        checks.same_shape(labels, logits, pos_weight)
        return call(_WEIGHTED_CROSS_ENTROPY, (labels, logits, pos_weight))
    except BaseException as error:
        report(error)
        raise


def log_poisson_loss(
    targets: to.TensorInput, log_input: to.TensorInput, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """exp(log_input) - targets·log_input, elementwise; the full loss adds Stirling's approximation of log(targets!)."""
    try:
        log_input = to.tensor(log_input)
        targets = to.like(targets, log_input)
        attrs: dict[str, Any] = {}
        if compute_full_loss is not False:
            attrs["compute_full_loss"] = to.flag(compute_full_loss)
        return call(_LOG_POISSON_LOSS, (targets, log_input), **attrs)
    except BaseException as error:
        report(error)
        raise
