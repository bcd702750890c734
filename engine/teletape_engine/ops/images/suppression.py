"""Suppression of boxes that overlap a better one. On the host: each choice needs the last.

A box [y1, x1, y2, x2] is any two opposite corners of a rectangle. How much two boxes overlap is the area of both over
the area of either (intersection over union).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.arrays.cpu import on_host
from teletape_engine.catalogue.define import check_dtypes, on_gpu, op, sample
from teletape_engine.catalogue.rule import NOT_REGISTERED
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import DTYPES, FLOATING, Shape, Spec, shape_text

_F32, _I32 = DTYPES["float32"], DTYPES["int32"]
BOXES: Final = np.array(
    [[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.9, 1.0, 0.0, -0.1], [0.5, 0.2, 0.9, 0.6], [0.0, 2.0, 1.0, 3.0]]
)
SCORES: Final = np.array([0.9, 0.75, 0.6, 0.95, 0.5])
UNCONVERTED = "thresholds and numbers of boxes may be tensors"


# --------------------------------------------------------------------------------------------------------------- checks
def check_threshold(iou_threshold: float) -> None:
    """Raises InvalidArgumentError unless a threshold of overlap is in [0, 1]."""
    if not 0 <= iou_threshold <= 1:
        raise InvalidArgumentError(f"iou_threshold must be in [0, 1], found {iou_threshold}")


def check_count(what: str, count: int, least: int = 0) -> None:
    """Raises InvalidArgumentError if a number of boxes is below `least`, 0 or 1."""
    if count < least:
        raise InvalidArgumentError(f"{what} must be {'positive' if least else 'non-negative'}, found {count}")


def _check_scores(boxes: Shape, scores: Shape) -> None:
    if len(scores) != 1:
        raise InvalidArgumentError(f"scores must be 1-D, found shape {shape_text(scores)}")
    if scores[0] != boxes[0]:
        raise InvalidArgumentError(f"scores has incompatible shape: {boxes[0]} boxes and {scores[0]} scores")


def _check_boxes(boxes: Spec, scores: Spec, max_output_size: int) -> None:
    check_dtypes("NonMaxSuppressionV5", (boxes, scores), FLOATING)
    if boxes.ndim != 2:
        raise InvalidArgumentError(f"boxes must be 2-D, found shape {shape_text(boxes.shape)}")
    if boxes.shape[1] != 4:
        raise InvalidArgumentError(f"boxes must have 4 columns, found shape {shape_text(boxes.shape)}")
    _check_scores(boxes.shape, scores.shape)
    check_count("output size", max_output_size)


def _chosen_spec(
    boxes: Spec, scores: Spec, *, max_output_size: int, iou_threshold: float, **_: Any
) -> tuple[Spec, Spec]:
    _check_boxes(boxes, scores, max_output_size)
    check_threshold(iou_threshold)
    places = Spec.of((min(max_output_size, boxes.shape[0]),), _I32)
    return places, places.with_dtype(scores.dtype)


def _overlaps_spec(overlaps: Spec, scores: Spec, *, max_output_size: int, **_: Any) -> Spec:
    check_dtypes("NonMaxSuppressionWithOverlaps", (overlaps, scores), FLOATING)
    if overlaps.ndim != 2 or overlaps.shape[0] != overlaps.shape[1]:
        raise InvalidArgumentError(f"overlaps must be 2-D and square, found shape {shape_text(overlaps.shape)}")
    _check_scores(overlaps.shape, scores.shape)
    check_count("output size", max_output_size)
    return Spec.of((min(max_output_size, overlaps.shape[0]),), _I32)


def workspace_of(boxes: Spec, scores: Spec, **_: Any) -> int:
    """Bytes that a suppression takes: orders, corners and overlaps of all boxes."""
    return 200 * scores.size + 64


# -------------------------------------------------------------------------------------------------------------- overlap
def _corners(boxes: Array) -> Array:
    """Boxes [..., 4] in float32, with the lower coordinates first."""
    boxes = boxes.astype(_F32)
    low, high = np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])
    return np.concatenate([low, high], axis=-1)


def _overlap(box: Array, boxes: Array) -> Array:
    """How much a box [4] overlaps each of boxes [n, 4], corners in order; 0 if one of the two is empty."""
    own = (box[2] - box[0]) * (box[3] - box[1])
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    sides = np.minimum(boxes[:, 2:], box[2:]) - np.maximum(boxes[:, :2], box[:2])
    both = np.maximum(sides, 0).prod(axis=1, dtype=_F32)
    full = (areas > 0) & (own > 0)
    return np.where(full, both / np.where(full, own + areas - both, 1), _F32.type(0))


def _hard(
    overlaps: Callable[[int, Array], Array], scores: Array, count: int, threshold: float, least: float
) -> list[int]:
    """The places of at most `count` scores above `least`, the best first, none overlapping a better one too much.

    overlaps: a function of a place, and of an array of places, that says how much those overlap.
    """
    left = np.argsort(-scores, kind="stable")
    left = left[scores[left] > scores.dtype.type(least)]
    chosen: list[int] = []
    while left.size and len(chosen) < count:
        best, left = int(left[0]), left[1:]
        chosen.append(best)
        left = left[~(overlaps(best, left) > threshold)]
    return chosen


def _soft(corners: Array, scores: Array, count: int, least: float, sigma: float) -> tuple[list[int], list[Any]]:
    """As `_hard`, but a score shrinks by its overlap with each choice (Bodla et al. 2017); also the scores then."""
    kind = scores.dtype.type
    scale = kind(-0.5) / kind(sigma)
    queue = [(-score, place, 0) for place, score in enumerate(scores) if score > kind(least)]
    heapq.heapify(queue)
    chosen: list[int] = []
    chosen_scores: list[Any] = []
    shrunk: list[Any] = []  # for each choice the factor of each other score
    while queue and len(chosen) < count:
        negative, place, begin = heapq.heappop(queue)
        score = original = -negative
        for factors in reversed(shrunk[begin:]):
            score = score * factors[place]
            if score <= kind(least):
                break
        if score == original:
            chosen.append(place)
            chosen_scores.append(score)
            overlap = _overlap(corners[place], corners).astype(scores.dtype)
            shrunk.append(np.exp(scale * overlap * overlap))
        elif score > kind(least):
            heapq.heappush(queue, (-score, place, len(chosen)))
    return chosen, chosen_scores


def suppressed(
    boxes: Array, scores: Array, count: int, threshold: float, least: float, sigma: float
) -> tuple[list[int], list[Any]]:
    """The places of the chosen boxes [n, 4], and their scores.

    Args:
        boxes: On the host.
        scores: [n], on the host.
        count: How many at most.
        threshold: Above which boxes overlap too much.
        least: Above which a score must be.
        sigma: If positive, how slowly scores shrink by overlaps instead.
    """
    corners = _corners(boxes)
    if sigma > 0:
        return _soft(corners, scores, count, least, sigma)
    limit = float(boxes.dtype.type(threshold))

    def overlaps(place: int, others: Array) -> Array:
        return _overlap(corners[place], corners[others]).astype(boxes.dtype)

    chosen = _hard(overlaps, scores, count, limit, least)
    return chosen, [scores[place] for place in chosen]


# ------------------------------------------------------------------------------------------------------------ one image
@op(
    infer=_chosen_spec,
    vjp=NOT_REGISTERED,
    batch=None,
    samples=[
        sample(BOXES, SCORES, max_output_size=4),
        sample(BOXES, SCORES, max_output_size=2, iou_threshold=0.1),
        sample(BOXES, SCORES, max_output_size=5, score_threshold=0.7),
        sample(BOXES, SCORES, max_output_size=5, soft_nms_sigma=0.5, score_threshold=0.2),
    ],
    op_type="NonMaxSuppressionV5",
    results="places best",
    dynamic=True,
    tf=(by_hand("image.non_max_suppression image.non_max_suppression_with_scores", UNCONVERTED),),
    workspace=workspace_of,
)
@on_gpu(down="the boxes and scores", up="the chosen ones, which the host finds")
def non_max_suppression(
    xp: ArrayModule,
    boxes: Array,
    scores: Array,
    *,
    max_output_size: int,
    iou_threshold: float = 0.5,
    score_threshold: float = -math.inf,
    soft_nms_sigma: float = 0.0,
) -> tuple[Array, Array]:
    """The places of boxes [n, 4] that overlap no better one too much, int32, and their `scores` [n], the best first.

    At most `max_output_size`, with scores above `score_threshold`; two overlap too much above `iou_threshold`. With a
    positive `soft_nms_sigma` a score shrinks by exp(-overlap² / (2 sigma)) for each better box instead.
    """
    places, best = suppressed(
        on_host(boxes), on_host(scores), max_output_size, iou_threshold, score_threshold, soft_nms_sigma
    )
    return xp.asarray(np.array(places, _I32)), xp.asarray(np.array(best, scores.dtype))


@op(
    infer=_overlaps_spec,
    vjp=NOT_REGISTERED,
    batch=None,
    samples=[
        sample(np.array([[1.0, 0.6, 0.1], [0.6, 1.0, 0.3], [0.1, 0.3, 1.0]]), SCORES[:3], max_output_size=3),
        sample(np.eye(3), SCORES[:3], max_output_size=2, score_threshold=0.7),
    ],
    op_type="NonMaxSuppressionWithOverlaps",
    dynamic=True,
    tf=(by_hand("image.non_max_suppression_overlaps", UNCONVERTED),),
    workspace=workspace_of,
)
@on_gpu(down="the overlaps and scores", up="the chosen ones, which the host finds")
def non_max_suppression_overlaps(
    xp: ArrayModule,
    overlaps: Array,
    scores: Array,
    *,
    max_output_size: int,
    overlap_threshold: float = 0.5,
    score_threshold: float = -math.inf,
) -> Array:
    """As non_max_suppression, for boxes whose overlaps [n, n] are known, in any measure."""
    table = on_host(overlaps)
    limit = float(table.dtype.type(overlap_threshold))

    def of_places(place: int, others: Array) -> Array:
        return table[others, place]

    chosen = _hard(of_places, on_host(scores), max_output_size, limit, score_threshold)
    return xp.asarray(np.array(chosen, _I32))
