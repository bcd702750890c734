"""Cross-entropies of logits against labels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.arrays.checks import within
from teletape_engine.catalogue.attributes import Attrs, Axis
from teletape_engine.catalogue.define import check_dtypes, on_gpu, op, sample
from teletape_engine.catalogue.elementwise import sum_to
from teletape_engine.catalogue.families import batch_all, composite
from teletape_engine.catalogue.op import Op, Reach, Sample
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.catalogue.signature import Conversion, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.logic import logical_and, where
from teletape_engine.ops.elementwise.math import exp, log, log1p
from teletape_engine.ops.nn.activations import check_axis, log_softmax, shifted, softmax
from teletape_engine.ops.reduce import reduce_sum
from teletape_engine.ops.shapes.create import one_hot, ones_like, zeros_like
from teletape_engine.ops.shapes.shape import broadcast_to, expand_dims, reshape
from teletape_engine.spec import FLOATING, INDEX, KERNEL_NAMES, Spec, broadcast, shape_text, wide_bytes


# ------------------------------------------------------------------------------------------------------------ softmax
def _dense_spec(labels: Spec, logits: Spec, *, axis: int) -> Spec:
    check_dtypes("SoftmaxCrossEntropyWithLogits", (labels, logits), FLOATING)
    at = check_axis("SoftmaxCrossEntropyWithLogits", logits, axis)
    try:
        fits = broadcast(labels.shape, logits.shape)
    except InvalidArgumentError:
        fits = ()
    alike = labels.ndim == logits.ndim or (0 < labels.ndim < logits.ndim and at == logits.ndim - 1)
    if not fits or not alike:
        raise InvalidArgumentError(
            f"logits and labels must be broadcastable: logits_size={shape_text(logits.shape)} "
            f"labels_size={shape_text(labels.shape)}"
        )
    return logits.with_shape((*fits[:at], *fits[at + 1 :]))


def _joint(labels_spec: Spec, logits_spec: Spec) -> tuple[int, ...]:
    return broadcast(labels_spec.shape, logits_spec.shape)


def _to_labels(ct: Operand, logits: Operand, labels_spec: Spec, logits_spec: Spec, axis: int) -> Operand:
    rows = expand_dims(ct, axis=axis) * -log_softmax(_stretched(logits, labels_spec, logits_spec), axis=axis)
    return sum_to(rows, labels_spec.shape)


def _to_logits(
    ct: Operand, labels: Operand, logits: Operand, labels_spec: Spec, logits_spec: Spec, axis: int
) -> Operand:
    difference = softmax(_stretched(logits, labels_spec, logits_spec), axis=axis) - labels
    return sum_to(expand_dims(ct, axis=axis) * difference, logits_spec.shape)


def _stretched(logits: Operand, labels_spec: Spec, logits_spec: Spec) -> Operand:
    shape = _joint(labels_spec, logits_spec)
    return logits if logits_spec.shape == shape else broadcast_to(logits, shape=shape)


def _from_labels(t: Operand, logits: Operand, labels_spec: Spec, logits_spec: Spec, axis: int) -> Operand:
    return reduce_sum(t * -log_softmax(_stretched(logits, labels_spec, logits_spec), axis=axis), axis=axis)


def _from_logits(
    t: Operand, labels: Operand, logits: Operand, labels_spec: Spec, logits_spec: Spec, axis: int
) -> Operand:
    difference = softmax(_stretched(logits, labels_spec, logits_spec), axis=axis) - labels
    return reduce_sum(t * difference, axis=axis)


def _batch_dense(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    labels, logits = batch_all(args, batched)
    axis, missing = attrs["axis"], len(logits.shape) - len(labels.shape)
    if missing:  # the labels have fewer axes than the logits: they broadcast after the axis of the batch
        labels = reshape(labels, shape=(labels.shape[0], *(1,) * missing, *labels.shape[1:]))
    return record(labels, logits, axis=axis if axis < 0 else axis + 1)


def _label_samples() -> list[Sample]:
    random = np.random.default_rng(0)

    def labels(*shape: int, axis: int = -1) -> Operand:
        raw = random.uniform(0.1, 1.0, shape)
        return raw / raw.sum(axis=axis, keepdims=True)

    return [
        sample(labels(2, 3), (2, 3)),
        sample(labels(2, 3, 2, axis=1), (2, 3, 2), axis=1),
        sample(labels(3), (3,), axis=0, seed=1),
        sample(labels(1, 3), (2, 3), seed=2),
        sample(labels(3), (2, 2, 3), seed=3),
    ]


@op(
    infer=_dense_spec,
    vjp=[_to_labels, _to_logits],
    jvp=[_from_labels, _from_logits],
    batch=_batch_dense,
    samples=_label_samples,
    op_type="SoftmaxCrossEntropyWithLogits",
    tf=(
        function(
            "nn.softmax_cross_entropy_with_logits",
            Conversion.CAST("labels", of="logits"),
            Conversion.TENSOR("logits"),
            Conversion.INT("axis", -1),
        ),
    ),
    workspace=lambda labels, logits, **_: wide_bytes(logits.with_shape(_joint(labels, logits)), 4),
    reach=Reach.LINES,
)
def softmax_cross_entropy(xp: ArrayModule, labels: Array, logits: Array, *, axis: Axis = -1) -> Array:
    """-Σ labels · log softmax(logits) along `axis`, which is reduced; labels are probabilities, and broadcast.

    Labels may lack first axes of the logits if `axis` is the last one.

    The gradient of the logits is softmax(logits) - labels, as in TensorFlow: exact for labels that sum to 1.
    """
    dtype = logits.dtype
    logs = shifted(xp, logits, axis)
    logs = logs - xp.log(xp.sum(xp.exp(logs), axis=axis, keepdims=True))
    # 0 · -inf is 0 here: a class of no probability costs nothing.
    terms = xp.where(labels == 0, logs.dtype.type(0), labels * logs)
    return (-xp.sum(terms, axis=axis)).astype(dtype, copy=False)


# ------------------------------------------------------------------------------------------------- labels as indices
def _sparse_spec(labels: Spec, logits: Spec) -> Spec:
    op_type = "SparseSoftmaxCrossEntropyWithLogits"
    check_axis(op_type, logits, -1)
    if labels.dtype not in INDEX:
        raise InvalidArgumentError(
            f"Value for attr 'Tlabels' of {KERNEL_NAMES[labels.dtype]} is not in the list of allowed values: "
            "int32, int64"
        )
    if labels.ndim != logits.ndim - 1:
        raise InvalidArgumentError(
            f"`labels.shape.rank` must equal `logits.shape.rank - 1`. Received: labels.shape={_tuple(labels)} of rank "
            f"{labels.ndim} and logits.shape={_tuple(logits)} of rank {logits.ndim}"
        )
    if labels.shape != logits.shape[:-1]:
        raise InvalidArgumentError(
            f"`labels.shape` must equal `logits.shape` except for the last dimension. Received: "
            f"labels.shape={_tuple(labels)} and logits.shape={_tuple(logits)}"
        )
    return logits.with_shape(labels.shape)


def _tuple(spec: Spec) -> str:
    return str(tuple(spec.shape))


def _slope(labels: Operand, logits: Operand, logits_spec: Spec) -> Operand:
    classes = logits_spec.shape[-1]
    return softmax(logits) - one_hot(labels, depth=classes, dtype=logits_spec.dtype)


@op(
    infer=_sparse_spec,
    vjp=[
        NON_DIFFERENTIABLE,
        lambda ct, labels, logits, logits_spec: expand_dims(ct, axis=-1) * _slope(labels, logits, logits_spec),
    ],
    jvp=[
        NON_DIFFERENTIABLE,
        lambda t, labels, logits, logits_spec: reduce_sum(t * _slope(labels, logits, logits_spec), axis=-1),
    ],
    batch=lambda record, args, batched, attrs: record(*batch_all(args, batched)),
    samples=[
        sample(np.array([2, 0]), (2, 3)),
        sample(np.array([[1], [2]], np.int32), (2, 1, 3), seed=1),
        sample(np.array(1), (3,), seed=2),
    ],
    op_type="SparseSoftmaxCrossEntropyWithLogits",
    refuses=("labels",),
    integers=("labels",),
    tf=(
        function(
            "nn.sparse_softmax_cross_entropy_with_logits",
            Conversion.TENSOR("labels"),
            Conversion.TENSOR("logits"),
            check="a_class_per_row",
        ),
    ),
    workspace=lambda labels, logits: wide_bytes(logits, 2),
    reach=Reach.LINES,
)
@on_gpu(waits="a check of the labels, unless the host knows their bounds")
def sparse_softmax_cross_entropy(xp: ArrayModule, labels: Array, logits: Array) -> Array:
    """-log softmax(logits)[label] over the last axis; labels: integers [...], logits: [..., classes].

    Raises:
        InvalidArgumentError: A label outside [0, classes).
    """
    dtype, classes = logits.dtype, logits.shape[-1]
    if not within(labels, classes):
        listed = labels.reshape(-1).tolist()
        wrong = next(label for label in listed if not 0 <= label < classes)
        raise InvalidArgumentError(
            f"Received a label value of {wrong} which is outside the valid range of [0, {classes}).  "
            f"Label values: {' '.join(map(str, listed))}"
        )
    logs = shifted(xp, logits, -1)
    chosen = xp.take_along_axis(logs, labels[..., None].astype(np.int64, copy=False), axis=-1)[..., 0]
    return (xp.log(xp.sum(xp.exp(logs), axis=-1)) - chosen).astype(dtype, copy=False)


# ------------------------------------------------------------------------------------------------------------ sigmoid
@composite(
    op_type="SigmoidCrossEntropyWithLogits",
    tf=(
        function(
            "nn.sigmoid_cross_entropy_with_logits",
            Conversion.LIKE("labels", None, of="logits"),
            Conversion.TENSOR("logits", None),
            check="same_shape",
        ),
    ),
    samples=[sample((2, 3), (2, 3)), sample((), (), seed=1)],
)
def sigmoid_cross_entropy(labels: Operand, logits: Operand) -> Operand:
    """-labels·log σ(logits) - (1 - labels)·log(1 - σ(logits)), elementwise, without overflow. One shape for both."""
    if labels.shape != logits.shape:
        raise InvalidArgumentError(
            f"`logits` and `labels` must have the same shape, received ({logits.shape} vs {labels.shape})."
        )
    positive = logits >= zeros_like(logits)
    return where(positive, logits, zeros_like(logits)) - logits * labels + log1p(exp(where(positive, -logits, logits)))


@composite(
    tf=(
        function(
            "nn.weighted_cross_entropy_with_logits",
            Conversion.LIKE("labels", of="logits"),
            Conversion.TENSOR("logits"),
            Conversion.LIKE("pos_weight", of="logits"),
            check="same_shape",
        ),
    ),
    samples=[sample((2, 3), (2, 3), ()), sample((2, 2), (2, 2), (2,), seed=1)],
)
def weighted_cross_entropy(labels: Operand, logits: Operand, pos_weight: Operand) -> Operand:
    """sigmoid_cross_entropy with its first term times pos_weight, to weigh positive labels more, or less."""
    weight = labels * (pos_weight - 1) + 1
    positive = logits >= zeros_like(logits)
    overflow = log1p(exp(where(positive, -logits, logits))) + where(positive, zeros_like(logits), -logits)
    return (1 - labels) * logits + weight * overflow


@composite(
    tf=(
        function(
            "nn.log_poisson_loss",
            Conversion.LIKE("targets", of="log_input"),
            Conversion.TENSOR("log_input"),
            Conversion.FLAG("compute_full_loss", False),
        ),
    ),
    samples=[sample((2, 3), (2, 3)), sample((3,), (3,), compute_full_loss=True, low=1.2, high=4.0, seed=1)],
)
def log_poisson_loss(targets: Operand, log_input: Operand, *, compute_full_loss: bool = False) -> Operand:
    """exp(log_input) - targets·log_input, elementwise; the full loss adds Stirling's approximation of log(targets!)."""
    loss = exp(log_input) - log_input * targets
    if not compute_full_loss:
        return loss
    stirling = targets * log(targets) - targets + log(targets * (2 * math.pi)) * 0.5
    small = logical_and(targets >= zeros_like(targets), targets <= ones_like(targets))
    return loss + where(small, zeros_like(targets), stirling)
