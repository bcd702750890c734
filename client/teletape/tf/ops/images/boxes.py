"""`tf.image`: boxes on images: crops, the best of overlapping boxes, frames, glimpses.

By hand: numbers of boxes and thresholds may be tensors, whose values are read, and some results are tuples.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.tf.ops.random.stateful import OpSeed, fractions, normal
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError

_LOWEST: Final = -math.inf
_ALL: Final = (None, None, None)
#: Colors of frames, in turn, if none are passed: yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia.
_COLORS: Final = np.array(
    [
        [1, 1, 0, 1],
        [0, 0, 1, 1],
        [1, 0, 0, 1],
        [0, 1, 0, 1],
        [0.5, 0, 0.5, 1],
        [0.5, 0.5, 0, 1],
        [0.5, 0, 0, 1],
        [0, 0, 0.5, 1],
        [0, 1, 1, 1],
        [1, 0, 1, 1],
    ],
    np.float32,
)


class CombinedNonMaxSuppression(NamedTuple):
    """The result of combined_non_max_suppression."""

    nmsed_boxes: Tensor
    nmsed_scores: Tensor
    nmsed_classes: Tensor
    valid_detections: Tensor


# ---------------------------------------------------------------------------------------------------------------- crops
def crop_and_resize(
    image: to.TensorInput,
    boxes: to.TensorInput,
    box_indices: to.TensorInput,
    crop_size: to.IntsInput,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """Boxes of images, each resized to one size: float32 [n, *crop_size, channels].

    Args:
        image: [m, height, width, channels] of any numbers.
        boxes: float32 [n, 4]: y1, x1, y2, x2 in fractions of the image; they may reach outside.
        box_indices: [n]: the index of each box's image.
        crop_size: Height and width.
        method: "bilinear" or "nearest". The gradient by the boxes is that of bilinear crops, as in TensorFlow.
        extrapolation_value: The value of a crop outside the image.
        name: Without effect.

    Raises:
        InvalidArgumentError: Shapes that do not fit, an index out of range, another method.

    Example:
        tf.image.crop_and_resize([[[[1.0], [2.0]], [[3.0], [4.0]]]], [[0.0, 0.0, 1.0, 1.0]], [0], crop_size=[1, 1])
    """
    tensor = convert_to_tensor(image)
    images = tensor if tensor.dtype is dtypes.float32 else call(ops.cast, (tensor,), dtype=dtypes.float32.np)
    inputs = (images, convert_to_tensor(boxes, dtypes.float32), convert_to_tensor(box_indices, dtypes.int32))
    attrs = {"crop_size": to.ints(crop_size, "crop_size"), "extrapolation_value": float(extrapolation_value)}
    return call(ops.crop_and_resize, inputs, **attrs, method=method)


def extract_glimpse(
    input: to.TensorInput,
    size: to.IntsInput,
    offsets: to.TensorInput,
    centered: bool = True,
    normalized: bool = True,
    noise: str = "uniform",
    name: str | None = None,
) -> Tensor:
    """A part of each image, of one size, at an offset of its own: float32 [n, *size, channels].

    Args:
        input: float32 [n, height, width, channels].
        size: Height and width of the part.
        offsets: [n, 2]: y and x.
        centered: Whether offsets are from the middle of the image; else from its corner.
        normalized: Whether they are in fractions of the image; else in pixels. If both, they are those of the part's
            middle and reach from -1 to 1; else those of its corner.
        noise: The values outside the image: "uniform" numbers from the smallest to the largest of the images,
            "gaussian" ones with their mean and deviation, or "zero".
        name: Without effect.

    Raises:
        InvalidArgumentError: Shapes that do not fit, another noise.

    Example:
        tf.image.extract_glimpse(
            [[[[1.0], [2.0]], [[3.0], [4.0]]]], size=[1, 1], offsets=[[0.0, 0.0]], centered=True, normalized=True
        )
    """
    images, places = convert_to_tensor(input, dtypes.float32), convert_to_tensor(offsets, dtypes.float32)
    if noise not in ("uniform", "gaussian", "zero"):
        raise InvalidArgumentError(f"The noise could only be uniform, gaussian, or zero, got {noise}")
    attrs = {"size": to.ints(size, "size"), "centered": bool(centered), "normalized": bool(normalized)}
    parts = call(ops.extract_glimpse, (images, places), **attrs)
    if noise == "zero":
        return parts
    shape = tuple(parts.shape)
    drawn: Any
    if noise == "uniform":
        low, high = call(ops.reduce_min, (images,)), call(ops.reduce_max, (images,))
        drawn = fractions(shape, OpSeed(None)) * (high - low) + low
    else:
        drawn = normal(shape) * call(ops.reduce_std, (images,)) + call(ops.reduce_mean, (images,))
    inside = call(ops.extract_glimpse, (call(ops.ones_like, (images,)), places), **attrs)
    return call(ops.where, (call(ops.greater, (inside, 0.0)), parts, drawn))


def draw_bounding_boxes(
    images: to.TensorInput, boxes: to.TensorInput, colors: to.TensorInput | None, name: str | None = None
) -> Tensor:
    """Images with frames around boxes, one pixel thick.

    Args:
        images: [n, height, width, channels] of float32 or float16; 1, 3 or 4 channels.
        boxes: float32 [n, k, 4]: y1, x1, y2, x2 in fractions of the image.
        colors: float32 [any, channels or more], in turn; None: TensorFlow's ten.
        name: Without effect.

    Raises:
        InvalidArgumentError: Shapes that do not fit.

    Example:
        tf.image.draw_bounding_boxes(np.zeros([1, 3, 3, 1], np.float32), [[[0.0, 0.0, 1.0, 1.0]]], [[1.0]])
    """
    tensor = convert_to_tensor(images)
    palette = None if colors is None else convert_to_tensor(colors, dtypes.float32)
    if palette is None or (palette.ndim == 2 and palette.shape[0] == 0):
        gray = tensor.ndim == 4 and tuple(tensor.shape)[-1] == 1
        palette = convert_to_tensor(np.ones((1, 1), np.float32) if gray else _COLORS)
    places = convert_to_tensor(boxes, dtypes.float32)
    drawn = call(ops.draw_bounding_boxes, (tensor, places, to.cast(palette, tensor)))
    return call(ops.stop_gradient, (drawn,)) if colors is None else drawn


# ---------------------------------------------------------------------------------------------------------- suppression
def _boxes_and_scores(boxes: Any, scores: Any) -> tuple[Tensor, Tensor]:
    tensor = convert_to_tensor(boxes)
    return tensor, convert_to_tensor(scores, tensor.dtype)


def _limits(max_output_size: Any, iou_threshold: Any, score_threshold: Any) -> dict[str, Any]:
    return {
        "max_output_size": to.whole(max_output_size),
        "iou_threshold": float(iou_threshold),
        "score_threshold": float(score_threshold),
    }


def non_max_suppression(
    boxes: to.TensorInput,
    scores: to.TensorInput,
    max_output_size: to.IntInput,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST,
    name: str | None = None,
) -> Tensor:
    """The indices of the boxes that do not overlap a box with a better score too much, the best first: int32.

    Args:
        boxes: [n, 4]: two opposite corners y1, x1, y2, x2.
        scores: [n].
        max_output_size: The largest number of boxes.
        iou_threshold: The largest overlap of two boxes: the area of their intersection over that of their union.
        score_threshold: A score must be larger than this.
        name: Without effect.

    Raises:
        InvalidArgumentError: Shapes that do not fit, a threshold outside [0, 1].

    Example:
        tf.image.non_max_suppression(
            [[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.9, 1.0], [2.0, 2.0, 3.0, 3.0]], [0.9, 0.8, 0.7], max_output_size=3
        )
    """
    attrs = _limits(max_output_size, iou_threshold, score_threshold)
    places, _ = call(ops.non_max_suppression, _boxes_and_scores(boxes, scores), **attrs)
    return places


def non_max_suppression_with_scores(
    boxes: to.TensorInput,
    scores: to.TensorInput,
    max_output_size: to.IntInput,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST,
    soft_nms_sigma: Any = 0.0,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Like non_max_suppression, with the scores; a positive `soft_nms_sigma` lowers scores instead of dropping boxes.

    The factor is exp(-overlap² / (2 soft_nms_sigma)) for each better box. Bodla, Singh, Chellappa, Davis, "Soft-NMS",
    2017.

    Example:
        tf.image.non_max_suppression_with_scores(
            [[0.0, 0.0, 1.0, 1.0], [2.0, 2.0, 3.0, 3.0]], [0.9, 0.8], max_output_size=2
        )
    """
    attrs = _limits(max_output_size, iou_threshold, score_threshold) | {"soft_nms_sigma": float(soft_nms_sigma)}
    places, best = call(ops.non_max_suppression, _boxes_and_scores(boxes, scores), **attrs)
    return places, best


def non_max_suppression_overlaps(
    overlaps: to.TensorInput,
    scores: to.TensorInput,
    max_output_size: to.IntInput,
    overlap_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST,
    name: str | None = None,
) -> Tensor:
    """Like non_max_suppression, for boxes whose overlaps [n, n] are known, in any measure.

    Example:
        tf.image.non_max_suppression_overlaps([[1.0, 0.9], [0.9, 1.0]], [0.9, 0.8], max_output_size=2)
    """
    inputs = (convert_to_tensor(overlaps, dtypes.float32), convert_to_tensor(scores, dtypes.float32))
    limits = {"overlap_threshold": float(overlap_threshold), "score_threshold": float(score_threshold)}
    return call(ops.non_max_suppression_overlaps, inputs, max_output_size=to.whole(max_output_size), **limits)


def non_max_suppression_padded(
    boxes: to.TensorInput,
    scores: to.TensorInput,
    max_output_size: to.IntInput,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST,
    pad_to_max_output_size: bool = False,
    name: str | None = None,
    sorted_input: bool = False,
    canonicalized_coordinates: bool = False,
    tile_size: int = 512,
) -> tuple[Tensor, Tensor]:
    """Like non_max_suppression, for many images, with the number of boxes chosen in each.

    Args:
        boxes: [..., n, 4].
        scores: [..., n].
        max_output_size: The largest number of boxes in an image.
        iou_threshold: Two boxes with this overlap, or more, overlap too much.
        score_threshold: A score must be larger than this.
        pad_to_max_output_size: Whether zeros fill up the indices; needed for more than one image.
        name: Without effect.
        sorted_input: Whether the best boxes come first already.
        canonicalized_coordinates: Whether y1 <= y2 and x1 <= x2 of all boxes; else the first box decides for all.
        tile_size: Without effect.

    Raises:
        ValueError: Several images without padding.

    Example:
        tf.image.non_max_suppression_padded(
            [[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.9, 1.0]], [0.9, 0.8], max_output_size=2, pad_to_max_output_size=True
        )
    """
    places, values = _boxes_and_scores(boxes, scores)
    shape = tuple(places.shape)
    if not pad_to_max_output_size and len(shape) > 2:
        raise ValueError(f"'pad_to_max_output_size' (value {pad_to_max_output_size}) must be True for batched input")
    if len(shape) < 2:
        raise InvalidArgumentError(f"boxes must be [..., n, 4], found shape {list(shape)}")
    lead, count = shape[:-2], to.whole(max_output_size)
    images = math.prod(lead)
    numbers, valid = call(
        ops.non_max_suppression_padded,
        (
            call(ops.reshape, (places,), shape=(images, *shape[-2:])),
            call(ops.reshape, (values,), shape=(images, shape[-2])),
        ),
        **_limits(count, iou_threshold, score_threshold),
        sorted_input=bool(sorted_input),
        canonicalized_coordinates=bool(canonicalized_coordinates),
    )
    if pad_to_max_output_size:
        padded = call(ops.reshape, (numbers,), shape=(*lead, count))
        return padded, call(ops.reshape, (valid,), shape=lead)
    number = call(ops.reshape, (valid,), shape=())
    filled = call(ops.nonzero, (call(ops.less, (call(ops.range, (), limit=count), number)),))
    first = call(ops.reshape, (numbers,), shape=(count,))
    return call(ops.gather_nd, (first, filled)), number


def combined_non_max_suppression(
    boxes: to.TensorInput,
    scores: to.TensorInput,
    max_output_size_per_class: to.IntInput,
    max_total_size: to.IntInput,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> CombinedNonMaxSuppression:
    """The best boxes of each image: non_max_suppression for each class, then the best of all classes.

    Args:
        boxes: float32 [m, n, q, 4]; q is 1 or the number of classes.
        scores: float32 [m, n, classes].
        max_output_size_per_class: The largest number of boxes of a class.
        max_total_size: The largest number of boxes of an image.
        iou_threshold: The largest overlap of two boxes of a class.
        score_threshold: A score must be larger than this.
        pad_per_class: Whether the results are no longer than the classes can fill.
        clip_boxes: Whether coordinates are kept in [0, 1].
        name: Without effect.

    Returns:
        Boxes [m, k, 4], scores and classes [m, k], filled up with zeros, and the number of boxes, int32 [m].

    Raises:
        InvalidArgumentError: Shapes that do not fit, a threshold outside [0, 1], a size that is not positive.

    Example:
        tf.image.combined_non_max_suppression(
            [[[[0.0, 0.0, 1.0, 1.0]], [[0.0, 0.0, 0.9, 1.0]]]],
            [[[0.9], [0.8]]],
            max_output_size_per_class=1,
            max_total_size=1,
        )
    """
    results = call(
        ops.combined_non_max_suppression,
        (convert_to_tensor(boxes, dtypes.float32), convert_to_tensor(scores, dtypes.float32)),
        max_output_size_per_class=to.whole(max_output_size_per_class),
        max_total_size=to.whole(max_total_size),
        iou_threshold=float(iou_threshold),
        score_threshold=float(score_threshold),
        pad_per_class=bool(pad_per_class),
        clip_boxes=bool(clip_boxes),
    )
    return CombinedNonMaxSuppression(*results)
