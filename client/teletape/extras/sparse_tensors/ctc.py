"""Connectionist temporal classification: the loss, decoders, whose labels are sparse, and forms of labels.

The decoders read the values of their inputs, and run in this process: their labels have no gradient. The search for the
best paths is that of Graves and Jaitly, "Towards End-to-End Speech Recognition with Recurrent Neural Networks", 2014.
"""

from __future__ import annotations

import heapq
import math
from typing import Any

import numpy as np

from teletape._generated.shapes.shape import transpose
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.errors import FailedPreconditionError
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.extras.sparse_tensors.tensor import SparseTensor
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError

_NEVER = -math.inf

Labels = tuple[int, ...]


def ctc_loss(
    labels: to.TensorInput | SparseTensor,
    logits: to.TensorInput,
    label_length: to.TensorInput | None,
    logit_length: to.TensorInput,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """-log of the probability that the frames of each sequence spell its labels: [batch].

    By hand: its defaults, the order of its axes, and labels in two forms.

    Args:
        labels: [batch, length] without blanks: dense, with padding after a sequence's length; or sparse int32, with the
            labels of each row in order.
        logits: [frames, batch, classes], or [batch, frames, classes] if `logits_time_major` is False.
        label_length: [batch]; without effect for sparse labels.
        logit_length: [batch]; the frames that count.
        logits_time_major: The order of the axes of `logits`.
        unique: Without effect.
        blank_index: The class of the blank; a negative one counts from the end. None: 0, for dense labels.
        name: Without effect.

    Raises:
        ValueError: Sparse labels of another dtype or without `blank_index`; dense ones without `label_length`.

    Example:
        tf.nn.ctc_loss(
            [[0, 1]], [[[2.0, 0.0, 1.0]], [[0.0, 2.0, 1.0]]], label_length=[2], logit_length=[2], blank_index=2
        )
    """
    frames = convert_to_tensor(logits)
    if not logits_time_major:
        frames = transpose(frames, [1, 0, 2])
    if isinstance(labels, SparseTensor):
        if blank_index is None:
            raise ValueError("Argument `blank_index` must be provided when `labels` is a `SparseTensor`.")
        labels, label_length = _rows_of_labels(labels)
    inputs = [convert_to_tensor(each) for each in (labels, label_length, logit_length)]
    result: Tensor = call(ops.ctc_loss, (frames, *inputs), blank=0 if blank_index is None else int(blank_index))
    return result


def _rows_of_labels(labels: SparseTensor) -> tuple[Tensor, Tensor]:
    """Returns the labels of each row from its first column on, and their number; indices are in order."""
    if labels.dtype is not dtypes.int32:
        raise ValueError(f"Tensor conversion requested dtype int32 for labels with dtype {labels.dtype.name}")
    batch, width = labels.shape.as_list()
    rows = convert_to_tensor(labels.indices)[:, 0]
    numbers = constant(np.arange(rows.shape[0], dtype=np.int64))
    columns: Any = numbers - call(ops.searchsorted, (rows, rows), out_type=dtypes.int64.np)
    places = call(ops.stack, (rows, columns), axis=1)
    dense = call(ops.scatter_nd, (places, convert_to_tensor(labels.values)), shape=(batch, width))
    lengths = call(ops.unsorted_segment_sum, (call(ops.ones_like, (rows,)), rows), num_segments=batch)
    return dense, lengths


def _read(inputs: Any, sequence_length: Any) -> tuple[HostArray, list[int]]:
    """Returns the logits and the lengths on the host.

    Raises:
        InvalidArgumentError: Another dtype or rank.
        FailedPreconditionError: Lengths that do not fit.
    """
    logits = convert_to_tensor(inputs)
    if logits.dtype not in (dtypes.float32, dtypes.float64):
        raise InvalidArgumentError(
            f"Value for attr 'T' of {logits.dtype.name} is not in the list of allowed values: float, double"
        )
    if logits.ndim != 3:
        raise InvalidArgumentError("inputs is not a 3-Tensor")
    lengths = list(to.ints(sequence_length, "sequence_length"))
    frames, batch, _ = logits.shape.as_list()
    if len(lengths) != batch:
        raise FailedPreconditionError(
            f"len(sequence_length) != batch_size.  len(sequence_length):  {len(lengths)} batch_size: {batch}"
        )
    for row, length in enumerate(lengths):
        if length > frames:
            raise FailedPreconditionError(f"sequence_length({row}) <= {frames}")
    return np.asarray(logits.numpy()), lengths


def _sparse(sequences: list[list[int]]) -> SparseTensor:
    """Returns the labels [batch, longest] of the sequences as a sparse tensor, int64."""
    places = [(row, column) for row, labels in enumerate(sequences) for column in range(len(labels))]
    values = [label for labels in sequences for label in labels]
    longest = max((len(labels) for labels in sequences), default=0)
    return SparseTensor(
        np.array(places, np.int64).reshape(-1, 2), np.array(values, np.int64), [len(sequences), longest]
    )


# ----------------------------------------------------------------------------------------------------------- decoders
def ctc_greedy_decoder(
    inputs: to.TensorInput,
    sequence_length: to.IntsInput,
    merge_repeated: bool = True,
    blank_index: int | None = None,
) -> tuple[list[SparseTensor], Tensor]:
    """The most probable class of each frame, without blanks: ([labels], the negated sums of their logits [batch, 1]).

    Args:
        inputs: Logits [frames, batch, classes], float32 or float64.
        sequence_length: int [batch]: the frames that count.
        merge_repeated: Whether a class in consecutive frames is one label.
        blank_index: The class of the blank: the last one if it is None; a negative one counts from the end.

    Raises:
        InvalidArgumentError: Another dtype or rank, or no such class.
        FailedPreconditionError: Lengths that do not fit.

    Example:
        tf.nn.ctc_greedy_decoder([[[2.0, 0.0, 1.0]], [[0.0, 2.0, 1.0]]], [2])
    """
    logits, lengths = _read(inputs, sequence_length)
    classes = logits.shape[2]
    blank = -1 if blank_index is None else int(blank_index)
    if not -classes <= blank < classes:
        raise InvalidArgumentError(
            f"blank_index expected to be between {-classes} and {classes - 1} but was {blank_index}"
        )
    chosen, best = logits.argmax(axis=2), logits.max(axis=2)
    sequences = []
    for row, length in enumerate(lengths):
        path = chosen[:length, row].tolist()
        before = [None, *path][:length] if merge_repeated else [None] * length
        sequences.append(
            [label for label, last in zip(path, before, strict=True) if label != blank % classes and label != last]
        )
    sums = [-best[:length, row].sum() for row, length in enumerate(lengths)]
    return [_sparse(sequences)], constant(np.array(sums, logits.dtype).reshape(-1, 1))


def ctc_beam_search_decoder(
    inputs: to.TensorInput, sequence_length: to.IntsInput, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Tensor]:
    """The most probable labels of each sequence, over all paths that spell them: (labels, log probabilities).

    After each frame the `beam_width` most probable prefixes stay.

    Args:
        inputs: Logits [frames, batch, classes], float32 or float64; softmax is part of it, the last class is the blank.
        sequence_length: int [batch]: the frames that count.
        beam_width: The number of prefixes that stay.
        top_paths: The number of results: a list of as many sparse labels, and log probabilities [batch, top_paths].

    Raises:
        InvalidArgumentError: Another dtype or rank; more results than the beam's width, or than exist.
        FailedPreconditionError: Lengths that do not fit.

    Example:
        tf.nn.ctc_beam_search_decoder([[[2.0, 0.0, 1.0]], [[0.0, 2.0, 1.0]]], [2], beam_width=2)
    """
    logits, lengths = _read(inputs, sequence_length)
    if top_paths > beam_width:
        raise InvalidArgumentError("requested more paths than the beam width.")
    wide = logits.astype(np.float64)
    top = wide.max(axis=2, keepdims=True)
    logs = wide - top - np.log(np.exp(wide - top).sum(axis=2, keepdims=True))
    results = [_beams(logs[:length, row], beam_width) for row, length in enumerate(lengths)]
    if any(len(beams) < top_paths for beams in results):
        raise InvalidArgumentError("Less leaves in the beam search than requested.")
    labels = [_sparse([list(beams[k][0]) for beams in results]) for k in range(top_paths)]
    scores = [[beams[k][1] for k in range(top_paths)] for beams in results]
    return labels, constant(np.array(scores, logits.dtype).reshape(-1, top_paths))


def _beams(logs: HostArray, width: int) -> list[tuple[Labels, float]]:
    """Returns the most probable prefixes and their log probabilities, the best first, from frames [frames, classes].

    A prefix has two probabilities: that of the paths that end with a blank, and that of those with its last label.
    """
    beams: dict[Labels, tuple[float, float]] = {(): (0.0, _NEVER)}
    for frame in logs:
        stayed = {labels: _continued(labels, beams, frame) for labels in beams}
        beams = _extended(beams, stayed, frame, width)
    totals = [(labels, _added(*parts)) for labels, parts in beams.items()]
    return sorted(totals, key=lambda pair: -pair[1])


def _continued(labels: Labels, beams: dict[Labels, tuple[float, float]], frame: HostArray) -> tuple[float, float]:
    """Returns the probabilities of the paths that still spell `labels` after a frame."""
    with_blank, with_label = beams[labels]
    blank = _added(with_blank, with_label) + float(frame[-1])
    if not labels:
        return blank, _NEVER
    if labels[:-1] in beams:
        parent = beams[labels[:-1]]
        same = len(labels) > 1 and labels[-1] == labels[-2]
        with_label = _added(with_label, parent[0] if same else _added(*parent))
    return blank, with_label + float(frame[labels[-1]])


def _extended(
    before: dict[Labels, tuple[float, float]],
    stayed: dict[Labels, tuple[float, float]],
    frame: HostArray,
    width: int,
) -> dict[Labels, tuple[float, float]]:
    """Returns the most probable of the prefixes and of their extensions by one label.

    The order is TensorFlow's, which matters: a prefix that leaves the beam before its turn is not extended.
    """
    beams, old = dict(stayed), dict(before)
    heap = [(_added(*parts), labels) for labels, parts in beams.items()]
    heapq.heapify(heap)
    children: dict[Labels, set[int]] = {}
    for labels in before:
        if labels:
            children.setdefault(labels[:-1], set()).add(labels[-1])

    def least() -> float:
        return heap[0][0] if len(heap) == width else _NEVER

    for labels in sorted(before, key=lambda labels: -_added(*before[labels])):
        total = _added(*old[labels])
        if total <= least():
            continue
        label_scores = frame[:-1] + total
        if labels:
            label_scores[labels[-1]] = frame[labels[-1]] + old[labels][0]
        for label in sorted({*np.nonzero(label_scores > least())[0].tolist(), *children.get(labels, ())}):
            longer, score = (*labels, label), float(label_scores[label])
            if longer in beams:
                continue
            if score > least():
                if len(heap) == width:
                    del beams[heapq.heappop(heap)[1]]
                heapq.heappush(heap, (score, longer))
                beams[longer] = _NEVER, score
            elif longer in old:
                old[longer] = _NEVER, _NEVER
    return beams


def _added(a: float, b: float) -> float:
    """log(exp(a) + exp(b))."""
    low, high = (a, b) if a < b else (b, a)
    return high if low == _NEVER else high + math.log1p(math.exp(low - high))


# ------------------------------------------------------------------------------------------------------------- labels
def ctc_unique_labels(labels: to.TensorInput, name: str | None = None) -> list[Tensor]:
    """The distinct labels of each row in their order, then zeros, int64; and each label's index among them, int32.

    Args:
        labels: [batch, length], integers; they are read.
        name: Accepted, without effect.

    Example:
        tf.nn.ctc_unique_labels([[3, 3, 5]])
    """
    rows = np.asarray(convert_to_tensor(labels).numpy())
    different, places = np.zeros(rows.shape, np.int64), np.zeros(rows.shape, np.int32)
    for row, values in enumerate(rows.tolist()):
        order = {label: place for place, label in enumerate(dict.fromkeys(values))}
        different[row, : len(order)] = list(order)
        places[row] = [order[label] for label in values]
    return [constant(different), constant(places)]


def collapse_repeated(
    labels: to.TensorInput, seq_length: to.TensorInput, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The labels with each run of equal ones as one, then zeros, [batch, longest]; and their number by row, [batch].

    Args:
        labels: [batch, length]; they are read.
        seq_length: int [batch]: the number of labels of a row.
        name: Accepted, without effect.

    Example:
        tf.nn.collapse_repeated([[1, 1, 2]], [3])
    """
    rows, lengths = (np.asarray(convert_to_tensor(each).numpy()) for each in (labels, seq_length))
    counted = np.ones(rows.shape, bool)
    counted[:, 1:] = rows[:, 1:] != rows[:, :-1]
    counted &= np.arange(rows.shape[1]) < lengths[:, None]
    counts = counted.sum(axis=1)
    collapsed = np.zeros((len(rows), counts.max(initial=0)), rows.dtype)
    collapsed[np.arange(collapsed.shape[1]) < counts[:, None]] = rows[counted]
    return constant(collapsed), constant(counts.astype(lengths.dtype))
