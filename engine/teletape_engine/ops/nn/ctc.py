"""Connectionist temporal classification: the loss of a sequence of labels whose places in the frames are not known.

Graves, Fernández, Gomez, Schmidhuber: Connectionist Temporal Classification (ICML 2006), section 4.1.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from teletape_engine.catalogue.define import check_dtypes, sample
from teletape_engine.catalogue.families import composite
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.cumulative import cumsum
from teletape_engine.ops.elementwise.arithmetic import maximum
from teletape_engine.ops.elementwise.logic import equal, greater, logical_or, where
from teletape_engine.ops.nn.activations import log_softmax
from teletape_engine.ops.reduce import reduce_logsumexp
from teletape_engine.ops.shapes.cast import cast
from teletape_engine.ops.shapes.create import ones_like, zeros_like
from teletape_engine.ops.shapes.index import gather, strided_slice
from teletape_engine.ops.shapes.pad import pad
from teletape_engine.ops.shapes.shape import expand_dims, reshape, stack, transpose
from teletape_engine.spec import DTYPES, FLOATING, HALF, INDEX, shape_text

#: The logarithm of the probability of what cannot be, as in TensorFlow: a loss stays finite.
_NEVER: Final = math.log(1e-307)
_ALL: Final = (None, None, None)


def _check(logits: Operand, labels: Operand, lengths: tuple[Any, Any]) -> None:
    check_dtypes("CTCLoss", (logits,), FLOATING)
    if len(logits.shape) != 3 or len(labels.shape) != 2 or labels.shape[0] != logits.shape[1]:
        raise InvalidArgumentError(
            "logits must be [frames, batch, classes] and labels [batch, length], found "
            f"{shape_text(logits.shape)} and {shape_text(labels.shape)}"
        )
    for name, length in zip(("label_length", "logit_length"), lengths, strict=True):
        if tuple(length.shape) != (logits.shape[1],):
            raise InvalidArgumentError(
                f"{name} must have a number for each of the {logits.shape[1]} sequences, found shape "
                f"{shape_text(length.shape)}"
            )
    if any(each.dtype not in INDEX for each in (labels, *lengths)):
        raise InvalidArgumentError("labels and lengths must be int32 or int64")
    if not logits.shape[0] or not logits.shape[2]:
        raise InvalidArgumentError(f"logits must have frames and classes, found {shape_text(logits.shape)}")


@composite(
    samples=[
        sample(
            (4, 2, 3),
            np.array([[1, 2], [1, 1]]),
            np.array([2, 1]),
            np.array([4, 3]),
        ),
        sample((3, 1, 3), np.array([[0, 1]]), np.array([2]), np.array([3]), blank=2, seed=1),
        sample((2, 2, 2), np.zeros((2, 0), np.int64), np.array([0, 0]), np.array([2, 1]), seed=2),
    ],
    op_type="CTCLoss",
    like=(0, 1, 2, 3),
    integers=("labels", "label_length", "logit_length"),
    tf=(by_hand("nn.ctc_loss", "its defaults, the order of its axes, and labels in two forms"),),
)
def ctc_loss(
    logits: Operand, labels: Operand, label_length: Operand, logit_length: Operand, *, blank: int = 0
) -> Operand:
    """-log of the probability that frames of `logits` spell `labels`: [batch], in float32 at least.

    A path through the frames spells what is left of it when repeated classes count once and blanks are removed. The
    states of a path are the labels with a blank before, between and after them; α, computed from frame to frame, is the
    logarithm of the probability of all paths to a state. A label below zero is padding.

    Args:
        logits: [frames, batch, classes]; softmax is part of the op.
        labels: int32 or int64 [batch, length], without blanks; those after the first `label_length` are padding.
        label_length: int32 or int64 [batch].
        logit_length: int32 or int64 [batch]: the frames that count; of none the loss is 0 without labels, and that of
            what cannot be with some.
        blank: The class of the blank; a negative one counts from the end.
    """
    _check(logits, labels, (label_length, logit_length))
    frames, batch, classes = logits.shape
    length = labels.shape[1]
    if not -classes <= blank < classes:
        raise InvalidArgumentError(f"blank_index must be a class of {classes}, found {blank}")
    logs = log_softmax(cast(logits, dtype=_F32) if logits.dtype in HALF else logits)
    labels = maximum(cast(labels, dtype=_I64), zeros_like(cast(labels, dtype=_I64)))

    blanks = zeros_like(labels) + blank % classes
    pairs = reshape(stack(blanks, labels, axis=2), shape=(batch, 2 * length))
    states = pad(pairs, paddings=((0, 0), (0, 1)), constant_value=blank % classes)
    observed = gather(transpose(logs, perm=(1, 0, 2)), states, axis=2, batch_dims=1)

    number = cumsum(ones_like(states), axis=1) - 1
    two_before = pad(states, paddings=((0, 0), (2, 0)), constant_value=blank % classes)
    same = equal(states, strided_slice(two_before, index=(_ALL, (0, 2 * length + 1, None))))
    zeros = zeros_like(_frame(observed, 0))
    # A blank is never jumped over to the next one, nor between two equal labels.
    jump = where(same, zeros - math.inf, zeros)

    first_frame = _frame(observed, 0) + where(greater(number, zeros_like(number) + 1), zeros + _NEVER, zeros)
    no_frame = where(greater(number, zeros_like(number)), zeros - math.inf, zeros)
    has_frames = expand_dims(greater(logit_length, zeros_like(logit_length)), axis=1)
    alpha = where(has_frames, first_frame, no_frame)
    for t in range(1, frames):
        before = pad(alpha, paddings=((0, 0), (2, 0)), constant_value=-math.inf)
        ways = stack(
            alpha,
            strided_slice(before, index=(_ALL, (1, 2 * length + 2, None))),
            strided_slice(before, index=(_ALL, (0, 2 * length + 1, None))) + jump,
            axis=0,
        )
        has_frames = expand_dims(greater(logit_length, zeros_like(logit_length) + t), axis=1)
        alpha = where(has_frames, reduce_logsumexp(ways, axis=0) + _frame(observed, t), alpha)

    last = expand_dims(cast(label_length, dtype=_I64) * 2, axis=1)
    ends = logical_or(equal(last, number), equal(last - 1, number))
    final = alpha + where(ends, zeros, zeros + _NEVER)
    return cast(-reduce_logsumexp(final, axis=1), dtype=logits.dtype)


def _frame(observed: Operand, t: int) -> Operand:
    """Row t of [batch, frames, states]."""
    return strided_slice(observed, index=(_ALL, t))


_F32, _I64 = DTYPES["float32"], DTYPES["int64"]
