"""Suppression of boxes of many images, and of many classes, in one call. On the host, as for one image."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.arrays.cpu import on_host
from teletape_engine.catalogue.define import check_dtypes, on_gpu, op, sample
from teletape_engine.catalogue.families import batch_loop
from teletape_engine.catalogue.rule import NOT_REGISTERED
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.images.suppression import (
    BOXES,
    SCORES,
    UNCONVERTED,
    check_count,
    check_threshold,
    suppressed,
    workspace_of,
)
from teletape_engine.spec import DTYPES, FLOATING, Spec, shape_text

_F32, _I32 = DTYPES["float32"], DTYPES["int32"]


# ---------------------------------------------------------------------------------------------------------- many images
def _padded_spec(boxes: Spec, scores: Spec, *, max_output_size: int, **_: Any) -> tuple[Spec, Spec]:
    check_dtypes("NonMaxSuppressionV4", (boxes, scores), FLOATING)
    if boxes.ndim != 3 or boxes.shape[2] != 4 or scores.shape != boxes.shape[:2]:
        raise InvalidArgumentError(
            f"boxes must be [m, n, 4] and scores [m, n], found {shape_text(boxes.shape)} and {shape_text(scores.shape)}"
        )
    check_count("max_output_size", max_output_size)
    return Spec.of((boxes.shape[0], max_output_size), _I32), Spec.of((boxes.shape[0],), _I32)


@op(
    infer=_padded_spec,
    vjp=NOT_REGISTERED,
    batch=batch_loop,
    samples=[
        sample(BOXES[None], SCORES[None], max_output_size=3),
        sample(np.stack([BOXES, BOXES[::-1]]), np.stack([SCORES, SCORES]), max_output_size=6, sorted_input=True),
        sample(BOXES[None], SCORES[None], max_output_size=3, score_threshold=0.7, canonicalized_coordinates=True),
    ],
    op_type="NonMaxSuppressionV4",
    results="places valid",
    tf=(by_hand("image.non_max_suppression_padded", UNCONVERTED),),
    workspace=workspace_of,
)
@on_gpu(down="the boxes and scores", up="the chosen ones, which the host finds")
def non_max_suppression_padded(
    xp: ArrayModule,
    boxes: Array,
    scores: Array,
    *,
    max_output_size: int,
    iou_threshold: float = 0.5,
    score_threshold: float = -math.inf,
    sorted_input: bool = False,
    canonicalized_coordinates: bool = False,
) -> tuple[Array, Array]:
    """The places [m, k] of boxes [m, n, 4] that overlap no better one too much, of each image, and how many [m]: int32.

    k is `max_output_size`: places that are left over are 0. As TensorFlow's function of that name: boxes suppress from
    `iou_threshold` on; the corners of the first box decide which of all boxes' are the lower ones, unless
    `canonicalized_coordinates`; a box without a positive coordinate is never chosen. With `sorted_input` the best boxes
    come first, whatever their scores.
    """
    boxes, scores = on_host(boxes), on_host(scores)
    m, n = scores.shape
    places, valid = np.zeros((m, max_output_size), _I32), np.zeros(m, _I32)
    if not m or not n:
        return xp.asarray(places), xp.asarray(valid)
    if score_threshold != -math.inf:
        high = scores > scores.dtype.type(score_threshold)
        boxes, scores = boxes * high[..., None], np.where(high, scores, 0)
    if not canonicalized_coordinates:
        first = boxes[0, 0]
        rows, columns = ((0, 2) if first[0] <= first[2] else (2, 0)), ((1, 3) if first[1] <= first[3] else (3, 1))
        boxes = boxes[..., [rows[0], columns[0], rows[1], columns[1]]]
    boxes = boxes.astype(_F32)
    for number in range(m):
        order = np.arange(n) if sorted_input else np.argsort(-scores[number], kind="stable")
        left = order[(boxes[number, order] > 0).any(axis=1)]
        chosen: list[int] = []
        while left.size and len(chosen) < max_output_size:
            best, left = int(left[0]), left[1:]
            chosen.append(best)
            left = left[_overlap_of_any(boxes[number, best], boxes[number, left]) < _F32.type(iou_threshold)]
        places[number, : len(chosen)], valid[number] = chosen, len(chosen)
    return xp.asarray(places), xp.asarray(valid)


def _overlap_of_any(box: Array, boxes: Array) -> Array:
    """The overlap of a box [4] with boxes [n, 4] as TensorFlow's padded function computes it, also if turned over."""
    sides = np.maximum(np.minimum(boxes[:, 2:], box[2:]) - np.maximum(boxes[:, :2], box[:2]), 0)
    both = sides[:, 0] * sides[:, 1]
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    return both / (areas + (box[2] - box[0]) * (box[3] - box[1]) - both + _F32.type(1e-8))


def _combined_size(classes: int, per_class: int, total: int, pad_per_class: bool) -> int:
    return min(total, per_class * classes) if pad_per_class else total


def _combined_spec(
    boxes: Spec,
    scores: Spec,
    *,
    max_output_size_per_class: int,
    max_total_size: int,
    iou_threshold: float,
    pad_per_class: bool,
    **_: Any,
) -> tuple[Spec, ...]:
    check_dtypes("CombinedNonMaxSuppression", (boxes, scores), FLOATING)
    if boxes.ndim != 4 or boxes.shape[3] != 4:
        raise InvalidArgumentError(f"boxes must be 4-D, [m, n, q, 4], found shape {shape_text(boxes.shape)}")
    if scores.ndim != 3:
        raise InvalidArgumentError(f"scores must be 3-D, [m, n, classes], found shape {shape_text(scores.shape)}")
    if scores.shape[:2] != boxes.shape[:2]:
        raise InvalidArgumentError(
            f"boxes {shape_text(boxes.shape)} and scores {shape_text(scores.shape)} must agree in images and boxes"
        )
    if boxes.shape[2] not in (1, scores.shape[2]):
        raise InvalidArgumentError(
            f"third dimension of boxes must be either 1 or equal to the third dimension of scores, found "
            f"{boxes.shape[2]} and {scores.shape[2]}"
        )
    check_count("max_size_per_class", max_output_size_per_class, 1)
    check_count("max_total_size", max_total_size, 1)
    check_threshold(iou_threshold)
    size = _combined_size(scores.shape[2], max_output_size_per_class, max_total_size, pad_per_class)
    best = boxes.with_shape((boxes.shape[0], size))
    return boxes.with_shape((*best.shape, 4)), best, best, Spec.of(best.shape[:1], _I32)


@op(
    infer=_combined_spec,
    vjp=NOT_REGISTERED,
    batch=batch_loop,
    samples=[
        sample(
            BOXES[None, :, None], np.stack([SCORES, SCORES[::-1]], 1)[None], max_output_size_per_class=2,
            max_total_size=6,
        ),
        sample(
            np.stack([BOXES, BOXES * 0.5], 1)[None], np.stack([SCORES, SCORES[::-1]], 1)[None],
            max_output_size_per_class=2, max_total_size=6, pad_per_class=True, clip_boxes=False, score_threshold=0.55,
        ),
    ],
    op_type="CombinedNonMaxSuppression",
    results="chosen best classes valid",
    tf=(by_hand("image.combined_non_max_suppression", UNCONVERTED),),
    workspace=lambda boxes, scores, **_: 400 * scores.size + 64,
)  # fmt: skip
@on_gpu(down="the boxes and scores", up="the chosen ones, which the host finds")
def combined_non_max_suppression(
    xp: ArrayModule,
    boxes: Array,
    scores: Array,
    *,
    max_output_size_per_class: int,
    max_total_size: int,
    iou_threshold: float = 0.5,
    score_threshold: float = -math.inf,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
) -> tuple[Any, ...]:
    """The best boxes [m, k, 4] of all classes of each image, their scores and classes [m, k], and how many [m].

    Of boxes [m, n, q, 4], with q 1 or the number of classes, and scores [m, n, classes] those of each class are chosen
    as non_max_suppression does, at most `max_output_size_per_class`; the best of them all, at most `max_total_size`,
    are the result, and zeros follow. k is `max_total_size`, or what the classes can fill if that is less and
    `pad_per_class`. Coordinates are kept in [0, 1] if `clip_boxes`.
    """
    places, values = on_host(boxes), on_host(scores)
    (m, _, q, _), classes = places.shape, values.shape[2]
    size = _combined_size(classes, max_output_size_per_class, max_total_size, pad_per_class)
    chosen_boxes, valid = np.zeros((m, size, 4), places.dtype), np.zeros(m, _I32)
    of_scores, of_classes = np.zeros((2, m, size), places.dtype)
    for number in range(m):
        best: list[tuple[Any, int, int]] = []
        for kind in range(classes):
            own, of_kind = places[number, :, kind if q > 1 else 0], values[number, :, kind]
            chosen, best_scores = suppressed(
                own, of_kind, max_output_size_per_class, iou_threshold, score_threshold, 0.0
            )
            best += [(score, kind, place) for score, place in zip(best_scores, chosen, strict=True)]
        best.sort(key=lambda entry: -entry[0])
        for row, (score, kind, place) in enumerate(best[:size]):
            box = places[number, place, kind if q > 1 else 0]
            chosen_boxes[number, row] = np.clip(box, 0, 1) if clip_boxes else box
            of_scores[number, row], of_classes[number, row] = score, kind
        valid[number] = min(len(best), size)
    return tuple(map(xp.asarray, (chosen_boxes, of_scores, of_classes, valid)))
