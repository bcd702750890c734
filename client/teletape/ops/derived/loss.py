"""TensorFlow's functions of teletape_engine.ops.nn.loss.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.ops import arguments as to
from teletape.ops import checks
from teletape.ops.dispatch import call
from teletape.program.tracebacks import report
from teletape.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_SOFTMAX_CROSS_ENTROPY = ops.softmax_cross_entropy
_SPARSE_SOFTMAX_CROSS_ENTROPY = ops.sparse_softmax_cross_entropy
_SIGMOID_CROSS_ENTROPY = ops.sigmoid_cross_entropy


def softmax_cross_entropy_with_logits(
    labels: to.TensorInput, logits: to.TensorInput, axis: to.IntInput = -1, name: str | None = None
) -> Tensor:
    """-Σ labels · log softmax(logits) along `axis`, which is reduced; labels are probabilities, and broadcast.

    The gradient of the logits is softmax(logits) - labels, as in TensorFlow: exact for labels that sum to 1.
    """
    try:
        logits = to.tensor(logits)
        labels = to.cast(labels, logits)
        return call(_SOFTMAX_CROSS_ENTROPY, (labels, logits), axis=to.whole(axis))
    except Exception as error:
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
    except Exception as error:
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
    except Exception as error:
        report(error)
        raise
