"""Projective transforms of images: rotations, shears, shifts and what a camera does."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.catalogue.attributes import Ints
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.families import batch_loop
from teletape_engine.catalogue.rule import NOT_REGISTERED
from teletape_engine.catalogue.signature import Conversion, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import DTYPES, FLOATING, REAL, Spec, shape_text, wide

_F32 = DTYPES["float32"]
FILL_MODES = ("CONSTANT", "REFLECT", "WRAP", "NEAREST")
INTERPOLATIONS = ("NEAREST", "BILINEAR")


def _spec(
    images: Spec, transforms: Spec, *, output_shape: Ints, interpolation: str, fill_mode: str, fill_value: float
) -> Spec:
    check_dtypes("ImageProjectiveTransformV3", (images,), REAL)
    check_dtypes("ImageProjectiveTransformV3", (transforms,), FLOATING)
    if images.ndim != 4:
        raise InvalidArgumentError(f"input images must be 4-dimensional, found shape {shape_text(images.shape)}")
    if transforms.ndim != 2 or transforms.shape[1] != 8 or transforms.shape[0] not in (1, images.shape[0]):
        raise InvalidArgumentError(
            f"Input transform should be num_images x 8 or 1 x 8, found shape {shape_text(transforms.shape)}"
        )
    if len(output_shape) != 2 or min(output_shape) < 0:
        raise InvalidArgumentError(f"output_shape must be two lengths, height and width, found {list(output_shape)}")
    if interpolation not in INTERPOLATIONS:
        raise InvalidArgumentError(f"Invalid interpolation {interpolation}. Supported: {', '.join(INTERPOLATIONS)}")
    if fill_mode not in FILL_MODES:
        raise InvalidArgumentError(f"Invalid mode {fill_mode}. Supported: {', '.join(FILL_MODES)}")
    return images.with_shape((images.shape[0], *output_shape, images.shape[3]))


def _workspace(images: Spec, transforms: Spec, *, output_shape: Ints, **_: Any) -> int:
    pixels = images.shape[0] * output_shape[0] * output_shape[1]
    return pixels * (30 * 8 + 5 * images.shape[3] * wide(images.dtype).itemsize)


def _inside(xp: ArrayModule, at: Array, length: int, mode: str) -> Array:
    """Coordinates as those of elements, by the rule for places outside."""
    if mode == "CONSTANT":
        return at
    if mode == "REFLECT":
        double = 2.0 * length
        low = xp.where(at < -double, at + double * xp.trunc(-at / double), at)
        low = xp.where(low < -length, low + double, -low - 1)
        high = at - double * xp.trunc(at / double)
        high = xp.where(high >= length, double - high - 1, high)
        at = xp.where(at < 0, low, xp.where(at > length - 1, high, at)) if length > 1 else xp.zeros_like(at)
    elif mode == "WRAP":
        turns = max(length - 1, 1)
        low = at + length * (xp.trunc(-at / turns) + 1)
        high = at - length * xp.trunc(at / turns)
        at = xp.where(at < 0, low, xp.where(at > length - 1, high, at)) if length > 1 else xp.zeros_like(at)
    return xp.clip(at, 0, length - 1)


@op(
    infer=_spec,
    vjp=NOT_REGISTERED,
    batch=batch_loop,
    samples=[
        sample(
            (2, 3, 4, 2),
            np.array([[0.9, 0.2, 0.3, -0.1, 1.1, 0.2, 0.0, 0.01]]),
            output_shape=(3, 4),
            interpolation="BILINEAR",
        ),
        sample(
            (1, 3, 3, 1),
            np.array([[0.0, 1.0, -1.2, 1.0, 0.0, 2.4, 0.0, 0.0]]),
            output_shape=(2, 4),
            interpolation="NEAREST",
            fill_mode="REFLECT",
        ),
    ],
    op_type="ImageProjectiveTransformV3",
    tf=(
        function(
            "raw_ops.ImageProjectiveTransformV3",
            Conversion.TENSOR("images"),
            Conversion.TENSOR("transforms"),
            Conversion.INTS("output_shape"),
            Conversion.REAL("fill_value"),
            Conversion.AS_IS("interpolation"),
            Conversion.AS_IS("fill_mode", "CONSTANT"),
        ),
    ),
    like=(0, 1),
    workspace=_workspace,
)
def projective_transform(
    xp: ArrayModule,
    images: Array,
    transforms: Array,
    *,
    output_shape: Ints,
    interpolation: str,
    fill_mode: str = "CONSTANT",
    fill_value: float = 0.0,
) -> Array:
    """Images [n, height, width, c] seen through projective transforms [n or 1, 8], in the size `output_shape`.

    The pixel (x, y) of the result is that of the image at ((a₀x + a₁y + a₂) / k, (b₀x + b₁y + b₂) / k), with k = c₀x +
    c₁y + 1 and the transform a₀, a₁, a₂, b₀, b₁, b₂, c₀, c₁. Outside, `fill_mode` decides: CONSTANT (`fill_value`),
    REFLECT, WRAP or NEAREST. `interpolation` is NEAREST or BILINEAR. It has no gradient here: asking is a LookupError.
    """
    n, height, width, channels = images.shape
    shape = (n, *output_shape, channels)
    if not height or not width:
        return xp.full(shape, fill_value).astype(images.dtype)
    a0, a1, a2, b0, b1, b2, c0, c1 = (transforms.astype(_F32)[:, k, None, None] for k in range(8))
    y, x = (xp.arange(length, dtype=_F32) for length in output_shape)
    y = y[:, None]
    k = c0 * x + c1 * y + 1
    safe = xp.where(k == 0, 1, k)
    across = _inside(xp, (a0 * x + a1 * y + a2) / safe, width, fill_mode)
    down = _inside(xp, (b0 * x + b1 * y + b2) / safe, height, fill_mode)
    numbers = xp.arange(n)[:, None, None]
    values = images.astype(wide(images.dtype), copy=False)
    fill = values.dtype.type(fill_value)

    def read(row: Array, column: Array) -> Array:
        """The pixels at these places, the fill outside."""
        valid = (row >= 0) & (row < height) & (column >= 0) & (column < width) & (k != 0)
        rows = xp.where(valid, row, 0).astype(np.int64)
        columns = xp.where(valid, column, 0).astype(np.int64)
        return xp.where(valid[..., None], values[numbers, rows, columns], fill)

    if interpolation == "NEAREST":
        result = read(_rounded(xp, down), _rounded(xp, across))
    else:
        above, left = xp.floor(down), xp.floor(across)
        low, right = (down - above)[..., None], (across - left)[..., None]
        upper = (1 - right) * read(above, left) + right * read(above, left + 1)
        lower = (1 - right) * read(above + 1, left) + right * read(above + 1, left + 1)
        result = xp.where((k != 0)[..., None], (1 - low) * upper + low * lower, fill)
    return xp.broadcast_to(result, shape).astype(images.dtype)


def _rounded(xp: ArrayModule, x: Array) -> Array:
    """The nearest whole numbers; halves away from zero."""
    return xp.sign(x) * xp.floor(xp.abs(x) + _F32.type(0.5))
