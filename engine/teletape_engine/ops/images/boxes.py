"""Boxes on images: frames drawn around them, and parts taken at offsets. The places are read on the host."""

from __future__ import annotations

import math

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.arrays.cpu import on_host
from teletape_engine.catalogue.attributes import Ints
from teletape_engine.catalogue.define import check_dtypes, on_gpu, op, sample
from teletape_engine.catalogue.families import batch_loop
from teletape_engine.catalogue.rule import NOT_REGISTERED
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import DTYPES, FLOATING, Spec, shape_text

_F32 = DTYPES["float32"]


# -------------------------------------------------------------------------------------------------------------- drawing
def _draw_spec(images: Spec, boxes: Spec, colors: Spec) -> Spec:
    check_dtypes("DrawBoundingBoxesV2", (images, colors), FLOATING)
    check_dtypes("DrawBoundingBoxesV2", (boxes,), FLOATING)
    if images.ndim != 4:
        raise InvalidArgumentError(f"The rank of the images should be 4, found shape {shape_text(images.shape)}")
    if images.shape[3] not in (1, 3, 4):
        raise InvalidArgumentError(
            f"Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), found {images.shape[3]}"
        )
    if boxes.ndim != 3 or boxes.shape[0] != images.shape[0] or boxes.shape[2] != 4:
        raise InvalidArgumentError(
            f"boxes must be [{images.shape[0]}, n, 4], as many as images, found shape {shape_text(boxes.shape)}"
        )
    if colors.ndim != 2 or not colors.shape[0] or colors.shape[1] < images.shape[3]:
        raise InvalidArgumentError(
            f"colors must be [n, {images.shape[3]} or more] with at least one color, found {shape_text(colors.shape)}"
        )
    return images


@op(
    infer=_draw_spec,
    vjp=NOT_REGISTERED,
    batch=batch_loop,
    samples=[
        sample((1, 6, 5, 3), np.array([[[0.1, 0.2, 0.7, 0.9], [-0.2, 0.3, 0.5, 1.4]]]), (2, 4)),
        sample((2, 4, 4, 1), np.array([[[0.3, 0.1, 0.9, 0.8]], [[0.9, 0.1, 0.3, 0.8]]]), (1, 1), seed=1),
    ],
    op_type="DrawBoundingBoxesV2",
    like=(0, 1, 0),
    tf=(by_hand("image.draw_bounding_boxes", "without colors it has its own"),),
)
@on_gpu(down="the boxes")
def draw_bounding_boxes(xp: ArrayModule, images: Array, boxes: Array, colors: Array) -> Array:
    """Images [m, height, width, c] with frames around boxes [m, n, 4], one pixel thick, in colors [k, c] that repeat.

    A box [y1, x1, y2, x2] is in fractions of the image; one whose y2 is less than y1, or that is outside, is left out.
    """
    out = images.copy()
    m, height, width, channels = images.shape
    if not height or not width:
        return out
    corners = np.trunc(on_host(boxes).astype(_F32) * np.array([height - 1, width - 1] * 2, _F32))
    for number in range(m):
        for k, box in enumerate(corners[number].tolist()):
            if not all(map(math.isfinite, box)):
                continue
            top, left, bottom, right = map(int, box)
            outside = top >= height or bottom < 0 or left >= width or right < 0
            if top > bottom or left > right or outside:
                continue
            color = colors[k % colors.shape[0], :channels]
            rows = slice(max(top, 0), min(bottom, height - 1) + 1)
            columns = slice(max(left, 0), min(right, width - 1) + 1)
            for row in (top, bottom):
                if 0 <= row < height:
                    out[number, row, columns] = color
            for column in (left, right):
                if 0 <= column < width:
                    out[number, rows, column] = color
    return out


# ------------------------------------------------------------------------------------------------------------- glimpses
def _glimpse_spec(images: Spec, offsets: Spec, *, size: Ints, centered: bool, normalized: bool) -> Spec:
    check_dtypes("ExtractGlimpseV2", (images,), FLOATING)
    check_dtypes("ExtractGlimpseV2", (offsets,), FLOATING)
    if images.ndim != 4:
        raise InvalidArgumentError(f"input must be 4-dimensional, found shape {shape_text(images.shape)}")
    if len(size) != 2 or min(size) < 1:
        raise InvalidArgumentError(f"size must be two positive lengths, height and width, found {list(size)}")
    if offsets.shape != (images.shape[0], 2):
        raise InvalidArgumentError(
            f"offsets must be [{images.shape[0]}, 2], a place for each image, found shape {shape_text(offsets.shape)}"
        )
    return images.with_shape((images.shape[0], *size, images.shape[3]))


@op(
    infer=_glimpse_spec,
    vjp=NOT_REGISTERED,
    batch=batch_loop,
    samples=[
        sample((2, 5, 4, 1), np.array([[0.1, -0.4], [0.7, 0.9]]), size=(3, 2)),
        sample((1, 4, 4, 2), np.array([[1.2, -1.0]]), size=(2, 3), centered=False, normalized=False, seed=1),
    ],
    op_type="ExtractGlimpseV2",
    like=(0, 1),
    tf=(by_hand("image.extract_glimpse", "outside the image there may be noise"),),
)
@on_gpu(down="the centres")
def extract_glimpse(
    xp: ArrayModule, images: Array, offsets: Array, *, size: Ints, centered: bool = True, normalized: bool = True
) -> Array:
    """A part of that size of each image [n, height, width, c], at offsets [n, 2], 0 outside: [n, *size, c].

    An offset is that of the part's corner from the image's; from the image's middle, if `centered`. It is in pixels, or
    in fractions of the image if `normalized`. If both, it is that of the part's middle, from -1 to 1.
    """
    n, height, width, channels = images.shape
    out = xp.zeros((n, *size, channels), images.dtype)
    at = on_host(offsets).astype(_F32)
    if normalized:
        at = at * np.array([height, width], _F32)
    if centered:
        half = _F32.type(0.5)
        at = at * half - np.array(size, _F32) * half if normalized else at
        at = at + np.array([height, width], _F32) * half
    for number in range(n):
        if not np.isfinite(at[number]).all():
            continue
        parts, places = [], []
        for start, length, own in zip(np.trunc(at[number]).tolist(), size, (height, width), strict=True):
            first = int(start)
            low, high = min(max(first, 0), own), max(min(first + length, own), 0)
            parts.append(slice(low, max(high, low)))
            places.append(slice(low - first, max(high, low) - first) if high > low else slice(0, 0))
        if all(part.stop > part.start for part in parts):
            out[number, places[0], places[1]] = images[number, parts[0], parts[1]]
    return out
