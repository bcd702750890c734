"""Parts of images, resized to one size: a box of an image each, with gradients by the images and by the boxes.

Each pixel of a crop is read at one place of an image, between its rows and columns. Where the place lies decides how
much each of the four pixels around it counts; the derivative by the place, a slope, has other weights for the same
four, so that derivatives of every order are the same two ops.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.arrays.scatter import add_rows, check_indices
from teletape_engine.catalogue.attributes import Ints
from teletape_engine.catalogue.define import check_dtypes, check_word, on_gpu, op, sample
from teletape_engine.catalogue.families import batch_loop
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.reduce import reduce_sum
from teletape_engine.ops.shapes.create import ones_like, zeros_like
from teletape_engine.ops.shapes.index import strided_slice
from teletape_engine.ops.shapes.shape import reshape, stack
from teletape_engine.spec import FLOATING, INTEGER, Shape, Spec, shape_text, wide

METHODS: Final = ("bilinear", "nearest")
#: For each slope the one of a further derivative along rows, and along columns; None: it is zero.
_FURTHER: Final = {"": ("rows", "columns"), "rows": (None, "both"), "columns": ("both", None), "both": (None, None)}


# -------------------------------------------------------------------------------------------------------------- weights
class CropPlaces(NamedTuple):
    """Where crops are read along one axis of images, [n, size] each.

    Attributes:
        indices: The rows, or columns, on either side.
        weights: How much each of them counts; 0 outside the image.
        inside: Whether the place is inside the image.
    """

    indices: tuple[Any, Any]
    weights: tuple[Any, Any]
    inside: Any


def _places(xp: ArrayModule, start: Array, end: Array, size: int, length: int, method: str, slope: bool) -> CropPlaces:
    """Where boxes from `start` to `end`, fractions of an axis of that length, are read for `size` pixels."""
    dtype = start.dtype
    last = dtype.type(length - 1)
    if size > 1:
        step = (end - start) * last / dtype.type(size - 1)
        at = (start * last)[:, None] + xp.arange(size, dtype=dtype) * step[:, None]
    else:
        at = (dtype.type(0.5) * (start + end) * last)[:, None]
    inside = (at >= 0) & (at <= last)
    at = xp.where(inside, at, 0)
    below, above = xp.floor(at), xp.ceil(at)
    if slope:
        weights = xp.full_like(at, -1), xp.ones_like(at)
    elif method == "nearest":
        below = above = xp.floor(at + dtype.type(0.5))
        weights = xp.ones_like(at), xp.zeros_like(at)
    else:
        weights = 1 - (at - below), at - below
    low, high = (xp.where(inside, weight, 0) for weight in weights)
    return CropPlaces((below.astype(np.int64), above.astype(np.int64)), (low, high), inside)


def _both(
    xp: ArrayModule, boxes: Array, size: Ints, lengths: Ints, method: str, slope: str
) -> tuple[CropPlaces, CropPlaces]:
    """The places along the rows and along the columns."""
    boxes = boxes.astype(wide(boxes.dtype), copy=False)
    rows = _places(xp, boxes[:, 0], boxes[:, 2], size[0], lengths[0], method, slope in ("rows", "both"))
    columns = _places(xp, boxes[:, 1], boxes[:, 3], size[1], lengths[1], method, slope in ("columns", "both"))
    return rows, columns


# ---------------------------------------------------------------------------------------------------------------- specs
def _check(image: Shape, boxes: Spec, box_indices: Spec, size: Ints, method: str, slope: str) -> None:
    check_dtypes("CropAndResize", (box_indices,), INTEGER)
    if len(image) != 4:
        raise InvalidArgumentError(f"input image must be 4-D, found shape {shape_text(image)}")
    if min(image[1:3]) < 1:
        raise InvalidArgumentError("image dimensions must be positive")
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise InvalidArgumentError(f"boxes must be [n, 4], found shape {shape_text(boxes.shape)}")
    if box_indices.shape != boxes.shape[:1]:
        raise InvalidArgumentError(
            f"box_index has incompatible shape: {boxes.shape[0]} boxes, {shape_text(box_indices.shape)} indices"
        )
    if len(size) != 2:
        raise InvalidArgumentError(f"crop_size must have two elements, found {list(size)}")
    if min(size) < 1:
        raise InvalidArgumentError(f"crop dimensions must be positive, found {list(size)}")
    check_word("method", method, METHODS)
    if slope not in _FURTHER:
        raise InvalidArgumentError(f"slope must be one of {', '.join(map(repr, _FURTHER))}, found {slope!r}")
    if slope and method != "bilinear":
        raise InvalidArgumentError(f"slopes are those of bilinear crops, found method {method!r}")


def _spec(
    image: Spec,
    boxes: Spec,
    box_indices: Spec,
    *,
    crop_size: Ints,
    method: str,
    extrapolation_value: float,
    slope: str,
) -> Spec:
    check_dtypes("CropAndResize", (image, boxes), FLOATING)
    _check(image.shape, boxes, box_indices, crop_size, method, slope)
    return image.with_shape((boxes.shape[0], *crop_size, image.shape[3]))


def _back_spec(grad: Spec, boxes: Spec, box_indices: Spec, *, shape: Shape, method: str, slope: str) -> Spec:
    check_dtypes("CropAndResizeGradImage", (grad, boxes), FLOATING)
    if grad.ndim != 4:
        raise InvalidArgumentError(f"grads image must be 4-D, found shape {shape_text(grad.shape)}")
    _check(shape, boxes, box_indices, grad.shape[1:3], method, slope)
    if grad.shape != (boxes.shape[0], *grad.shape[1:3], shape[3]):
        raise InvalidArgumentError(
            f"grads of shape {shape_text(grad.shape)} are not those of {boxes.shape[0]} crops of {shape_text(shape)}"
        )
    return grad.with_shape(shape)


def _workspace(crops: Spec) -> int:
    pixels = crops.shape[0] * (crops.shape[1] * crops.shape[2] * 40 + (crops.shape[1] + crops.shape[2]) * 120)
    return pixels + 6 * crops.size * wide(crops.dtype).itemsize


# ---------------------------------------------------------------------------------------------------------------- rules
def _moved(image: Operand, boxes: Operand, box_indices: Operand, size: Ints, slope: str) -> list[Operand | None]:
    """The crops' derivatives by the places along rows and along columns; None: zero.

    Of nearest pixels too those between them: TensorFlow's gradient by the boxes is that of bilinear crops.
    """
    return [
        None if along is None else crop_and_resize(image, boxes, box_indices, crop_size=size, slope=along)
        for along in _FURTHER[slope]
    ]


def _boxes_cotangent(
    ct: Operand, image: Operand, boxes: Operand, box_indices: Operand, size: Ints, slope: str
) -> Operand:
    """The cotangent of the boxes: what each place's is, spread over the two ends of its axis."""
    ends = []
    moved = _moved(image, boxes, box_indices, size, slope)
    for axis, (crops, other) in enumerate(zip(moved, (2, 1), strict=True)):
        if crops is None:
            zero = zeros_like(strided_slice(boxes, index=("...", 0)))
            ends.append((zero, zero))
            continue
        each = reduce_sum(ct * crops, axis=(other, 3)) * (image.shape[1 + axis] - 1)
        to_end = each * _shares(each)
        ends.append((reduce_sum(each - to_end, axis=1), reduce_sum(to_end, axis=1)))
    (top, bottom), (left, right) = ends
    return stack(top, left, bottom, right, axis=1)


def _pixels_moved(t: Operand, x: Operand, axis: int, length: int) -> Operand:
    """By how many pixels the places of crops x move along rows (axis 0) or columns for a tangent of their boxes."""
    start, end = (strided_slice(t, index=("...", (k, k + 1, None))) for k in (axis, axis + 2))
    flat = reduce_sum(x, axis=(2, 3) if axis == 0 else (1, 3))  # for its shape
    at = (start + (end - start) * _shares(flat)) * (length - 1)
    n, size = flat.shape
    return reshape(at, shape=(n, size, 1, 1) if axis == 0 else (n, 1, size, 1))


def _boxes_tangent(t: Operand, image: Operand, boxes: Operand, box_indices: Operand, size: Ints, slope: str) -> Operand:
    """The tangent of crops for that of their boxes."""
    total = zeros_like(crop_and_resize(image, boxes, box_indices, crop_size=size))
    for axis, crops in enumerate(_moved(image, boxes, box_indices, size, slope)):
        if crops is not None:
            total = total + crops * _pixels_moved(t, crops, axis, image.shape[1 + axis])
    return total


def _back_tangent(
    t: Operand, grad: Operand, boxes: Operand, box_indices: Operand, shape: Shape, method: str, slope: str
) -> Operand:
    """The tangent of the transpose for that of the boxes: the transposes of the slopes, of grads times the moves."""
    total = ops.crop_and_resize_backprop(zeros_like(grad), boxes, box_indices, shape=shape)
    for axis, along in enumerate(_FURTHER[slope] if method == "bilinear" else ()):
        if along is not None:
            moved = grad * _pixels_moved(t, grad, axis, shape[1 + axis])
            total = total + ops.crop_and_resize_backprop(moved, boxes, box_indices, shape=shape, slope=along)
    return total


def _shares(x: Operand) -> Operand:
    """How far each of the places [n, size] is from the start of its box to the end, in [0, 1]."""
    ones, size = ones_like(x), x.shape[1]
    return ops.cumsum(ones, axis=1, exclusive=True) / (size - 1) if size > 1 else ones * 0.5


_IMAGES: Final = ((2, 4, 5, 2), np.array([[0.1, 0.23, 0.83, 0.71], [0.9, 0.14, 0.2, 0.95], [-0.3, 0.4, 0.6, 1.3]]))
_WHICH: Final = np.array([1, 0, 1], np.int32)
_FLAT: Final = np.ones((1, 3, 3, 2)) * np.array([0.3, -0.7])


@op(
    infer=_spec,
    vjp=[
        lambda ct, image_spec, boxes, box_indices, method, slope: ops.crop_and_resize_backprop(
            ct, boxes, box_indices, shape=image_spec.shape, method=method, slope=slope
        ),
        lambda ct, image, boxes, box_indices, crop_size, slope: _boxes_cotangent(
            ct, image, boxes, box_indices, crop_size, slope
        ),
        NON_DIFFERENTIABLE,
    ],
    jvp=[
        lambda t, boxes, box_indices, crop_size, method, slope: ops.crop_and_resize(
            t, boxes, box_indices, crop_size=crop_size, method=method, slope=slope
        ),
        lambda t, image, boxes, box_indices, crop_size, slope: _boxes_tangent(
            t, image, boxes, box_indices, crop_size, slope
        ),
        NON_DIFFERENTIABLE,
    ],
    batch=batch_loop,
    samples=[
        sample(*_IMAGES, _WHICH, crop_size=(3, 2)),
        sample((1, 3, 4, 1), np.array([[0.1, 0.2, 0.7, 0.9]]), np.array([0]), crop_size=(1, 3), seed=1),
        sample(*_IMAGES, _WHICH, crop_size=(2, 3), extrapolation_value=0.5, seed=2),
        sample(*_IMAGES, _WHICH, crop_size=(2, 1), slope="rows", seed=3),
        sample(*_IMAGES, _WHICH, crop_size=(2, 3), slope="both", seed=4),
        # By nearest pixels the gradient by the boxes is an approximation, of images that change.
        sample(_FLAT, np.array([[0.1, 0.23, 0.81, 0.7]]), np.array([0]), crop_size=(2, 3), method="nearest"),
    ],
    refuses=("box_indices",),
    integers=("box_indices",),
    like=(0, 0, 2),
    traits=[Trait.SELECTS],
    tf=(by_hand("image.crop_and_resize", "images of other dtypes are converted to float32"),),
    workspace=lambda image, boxes, box_indices, *, crop_size, **_: _workspace(
        image.with_shape((boxes.shape[0], *crop_size, image.shape[3]))
    ),
)
@on_gpu(waits="a check of the numbers of the images, unless the host knows their bounds")
def crop_and_resize(
    xp: ArrayModule,
    image: Array,
    boxes: Array,
    box_indices: Array,
    *,
    crop_size: Ints,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    slope: str = "",
) -> Array:
    """Boxes of images [m, height, width, c], each resized to `crop_size` [rows, columns]: [n, rows, columns, c].

    A box [y1, x1, y2, x2] of `boxes` [n, 4] is in fractions of the image that `box_indices` [n] names, from the middle
    of its first row or column, 0, to that of its last, 1; y1 may be more than y2, which turns it over. Outside the
    image a crop has the `extrapolation_value`. `method` is bilinear or nearest. `slope` (rows, columns or both) asks
    for the derivative of bilinear crops by the place along these axes, in pixels.

    Raises:
        InvalidArgumentError: `box_indices[0] = 2 is not in [0, 2)`.
    """
    check_indices(xp, box_indices, image.shape[0], what="box_indices")
    rows, columns = _both(xp, boxes, crop_size, image.shape[1:3], method, slope)
    values = image.astype(wide(image.dtype), copy=False)
    which, total = box_indices[:, None, None], xp.zeros((), values.dtype)
    for row, high in zip(rows.indices, rows.weights, strict=True):
        for column, broad in zip(columns.indices, columns.weights, strict=True):
            term = values[which, row[:, :, None], column[:, None, :]]
            term *= (high[:, :, None] * broad[:, None, :])[..., None].astype(values.dtype, copy=False)
            total = total + term
            if method == "nearest":
                break
        if method == "nearest":
            break
    if extrapolation_value and not slope:
        inside = rows.inside[:, :, None] & columns.inside[:, None, :]
        total = xp.where(inside[..., None], total, values.dtype.type(extrapolation_value))
    return total.astype(image.dtype, copy=False)


@op(
    infer=_back_spec,
    vjp=[
        lambda ct, grad_spec, boxes, box_indices, method, slope: crop_and_resize(
            ct, boxes, box_indices, crop_size=grad_spec.shape[1:3], method=method, slope=slope
        ),
        lambda ct, grad, boxes, box_indices, method, slope: (
            zeros_like(boxes)
            if method == "nearest"
            else _boxes_cotangent(grad, ct, boxes, box_indices, grad.shape[1:3], slope)
        ),
        NON_DIFFERENTIABLE,
    ],
    jvp=[
        lambda t, boxes, box_indices, shape, method, slope: ops.crop_and_resize_backprop(
            t, boxes, box_indices, shape=shape, method=method, slope=slope
        ),
        lambda t, grad, boxes, box_indices, shape, method, slope: _back_tangent(
            t, grad, boxes, box_indices, shape, method, slope
        ),
        NON_DIFFERENTIABLE,
    ],
    batch=batch_loop,
    samples=[
        sample((3, 3, 2, 2), _IMAGES[1], _WHICH, shape=(2, 4, 5, 2)),
        sample((1, 1, 3, 1), np.array([[0.1, 0.2, 0.7, 0.9]]), np.array([0]), shape=(1, 3, 4, 1), seed=1),
        sample((3, 2, 3, 1), _IMAGES[1], _WHICH, shape=(2, 3, 3, 1), slope="columns", seed=2),
    ],
    op_type="CropAndResizeGradImage",
    refuses=("box_indices",),
    integers=("box_indices",),
    like=(0, 0, 2),
    traits=[Trait.SELECTS],
    workspace=lambda grad, boxes, box_indices, *, shape, **_: (
        3 * _workspace(grad) + 6 * 8 * math.prod(shape) * wide(grad.dtype).itemsize
    ),
)
@on_gpu(waits="a check of the numbers of the images, unless the host knows their bounds")
def crop_and_resize_backprop(
    xp: ArrayModule,
    grad: Array,
    boxes: Array,
    box_indices: Array,
    *,
    shape: Shape,
    method: str = "bilinear",
    slope: str = "",
) -> Array:
    """The transpose of crop_and_resize for images of `shape`: each pixel of a crop spread over those it was read from.

    Raises:
        InvalidArgumentError: `box_indices[0] = 2 is not in [0, 2)`.
    """
    count, height, width, channels = shape
    check_indices(xp, box_indices, count, what="box_indices")
    rows, columns = _both(xp, boxes, grad.shape[1:3], (height, width), method, slope)
    values = grad.astype(wide(grad.dtype), copy=False)
    which, parts, ids = box_indices.astype(np.int64)[:, None, None], [], []
    for row, high in zip(rows.indices, rows.weights, strict=True):
        for column, broad in zip(columns.indices, columns.weights, strict=True):
            weights = (high[:, :, None] * broad[:, None, :])[..., None].astype(values.dtype, copy=False)
            parts.append((values * weights).reshape((-1, channels) if values.size else (0, channels)))
            pixels = (which * height + row[:, :, None]) * width + column[:, None, :]
            ids.append(pixels.reshape(-1) if values.size else xp.zeros(0, np.int64))
    spread = add_rows(xp, xp.concatenate(parts), xp.concatenate(ids), count * height * width)
    return spread.reshape(shape).astype(grad.dtype, copy=False)
