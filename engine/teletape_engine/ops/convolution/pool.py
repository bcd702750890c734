"""Pooling of images [n, height, width, channels] over sliding windows: the largest element, or the mean.

If elements of a window are equal, the first counts as the largest, as in TensorFlow on a CPU: only it has a gradient.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.catalogue.attributes import Ints, Pairs
from teletape_engine.catalogue.binding import by_name
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.families import batch_all, linear
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op, Reach, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import always
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.convolution import direct
from teletape_engine.ops.convolution.windows import Windows, image_lengths, windows
from teletape_engine.ops.shapes.create import zeros_like
from teletape_engine.ops.shapes.shape import reshape
from teletape_engine.spec import (
    FLOATING,
    INTEGER,
    REAL,
    DType,
    Number,
    Shape,
    Spec,
    finfo,
    shape_text,
    wide,
    wide_bytes,
)

_CACHED, _LARGE = 512 << 10, 8 << 20  # bytes


# ------------------------------------------------------------------------------------------------------------- specs
def _windows(shape: Shape, ksize: Ints, strides: Ints, padding: str, paddings: Pairs | None = None) -> Windows:
    if len(shape) != 4:
        raise InvalidArgumentError(f"tensor_in_shape must have 2 spatial dimensions, found shape {shape_text(shape)}")
    at = windows(image_lengths(shape), ksize, strides, padding, paddings, (1, 1))
    return at if all(at.counts) else at._replace(size=(1, 1))  # one that fits nowhere may be of any size


def _pooled(shape: Shape, at: dict[str, Any]) -> Shape:
    counts = _windows(shape, **at).counts  # first: it checks the rank
    return (shape[0], *counts, shape[3])


def _border(x: Spec, at: dict[str, Any]) -> int:
    """Bytes of images with their border, in the dtype that sums are computed in."""
    return _windows(x.shape, **at).border_bytes(x.with_dtype(wide(x.dtype)))


def _rows_bytes(x: Spec, at: dict[str, Any]) -> int:
    """The workspace of `_scatter_apart` for what it keeps of each window's row."""
    sliding = _windows(x.shape, **at)
    rows = x.with_shape((x.shape[0], sliding.lengths()[0], sliding.counts[1], x.shape[3]))
    return 3 * rows.nbytes + 2 * rows.size if sliding.apart else 0


def _masks_bytes(pooled: Spec) -> int:
    """The workspace of `_first_largest`."""
    return 4 * pooled.nbytes + 2 * pooled.size


def _check_pair(op_type: str, x: Spec, grad: Shape, at: dict[str, Any]) -> None:
    if grad != (expected := _pooled(x.shape, at)):
        raise InvalidArgumentError(
            f"{op_type}: pooling {shape_text(x.shape)} gives {shape_text(expected)}, found {shape_text(grad)}"
        )


def _max_spec(x: Spec, **at: Any) -> Spec:
    check_dtypes("MaxPool", (x,), REAL)
    return x.with_shape(_pooled(x.shape, at))


def _max_grad_spec(grad: Spec, x: Spec, **at: Any) -> Spec:
    check_dtypes("MaxPoolGrad", (grad, x), REAL)
    _check_pair("MaxPoolGrad", x, grad.shape, at)
    return x


def _max_pick_spec(t: Spec, x: Spec, **at: Any) -> Spec:
    check_dtypes("MaxPoolGradGrad", (t, x), REAL)
    if t.shape != x.shape:
        raise InvalidArgumentError(f"MaxPoolGradGrad: one shape, found {shape_text(t.shape)}, {shape_text(x.shape)}")
    return x.with_shape(_pooled(x.shape, at))


def _average_spec(x: Spec, **at: Any) -> Spec:
    check_dtypes("AvgPool", (x,), FLOATING)
    return x.with_shape(_pooled(x.shape, at))


def _average_grad_spec(x: Spec, *, shape: Shape, **at: Any) -> Spec:
    check_dtypes("AvgPoolGrad", (x,), FLOATING)
    _check_pair("AvgPoolGrad", x.with_shape(shape), x.shape, at)
    return x.with_shape(shape)


# ----------------------------------------------------------------------------------------------------------- kernels
def _lowest(dtype: DType) -> Number:
    """The lowest finite number, with which TensorFlow compares the first element."""
    return np.iinfo(dtype).min if dtype in INTEGER else finfo(dtype).min


def _images_at_a_time(xp: ArrayModule, x: Array) -> int:
    """As many images as a CPU's second cache holds; on a GPU all."""
    return max(_CACHED * len(x) // max(x.nbytes, 1), 1) if xp is np else max(len(x), 1)


def _largest(xp: ArrayModule, x: Array, at: Windows) -> Array:
    """The largest element of each window of bordered images; the lowest number if there is none (NaN)."""
    lowest = _lowest(x.dtype)
    out = xp.full((x.shape[0], *at.counts, x.shape[3]), lowest, x.dtype)
    images = len(x) if x.nbytes < _LARGE else _images_at_a_time(xp, x)
    for first in range(0, len(x), max(images, 1)):
        part = slice(first, first + images)
        largest, some = out[part], x[part]
        for _, _, index in at.offsets():
            xp.fmax(largest, some[index], out=largest)
    return out


def _bits(x: Array) -> Array:
    """The same memory as integers."""
    return x.view(f"i{x.dtype.itemsize}")


def _mask(condition: Array, bits: Array) -> Array:
    """All bits set where the condition is true. `where` takes four times as long as this and a bitwise `and`."""
    return (-condition.view(np.int8)).astype(bits)


def _first_largest(xp: ArrayModule, x: Array, at: Windows) -> Iterator[tuple[tuple[slice, ...], Any]]:
    """(index, mask) for each position in a window; the mask has all bits set for windows whose first largest it is."""
    largest = _largest(xp, x, at)
    bits = _bits(largest).dtype
    missing = _mask(largest > _lowest(x.dtype), bits)
    for _, _, index in at.offsets():
        mask = _mask(x[index] == largest, bits)
        mask &= missing
        missing ^= mask
        yield index, mask


def _scatter_apart(xp: ArrayModule, out: Array, grad: Array, x: Array, at: Windows) -> None:
    """Writes the bits of each window's grad at its first largest element, if windows do not overlap; x is bordered.

    First to the row of each window that has it, then within the row: loops over long rows, and half the comparisons.
    """
    rows, columns = (at.slices(axis) for axis in (0, 1))
    if not rows or not columns:
        return
    lowest = _lowest(x.dtype)
    in_row = xp.fmax(x[:, :, columns[0]], x[:, :, columns[-1]])  # the largest of each window's row
    for column in columns[1:-1]:
        xp.fmax(in_row, x[:, :, column], out=in_row)
    xp.fmax(in_row, lowest, out=in_row)
    largest = in_row[:, rows[0]].copy()
    for row in rows[1:]:
        xp.fmax(largest, in_row[:, row], out=largest)
    bits = out.dtype
    left = _mask(largest > lowest, bits)
    left &= grad
    of_row = xp.zeros(in_row.shape, bits)
    for row in rows[:-1]:
        mask = _mask(in_row[:, row] == largest, bits)
        mask &= left
        left ^= mask
        of_row[:, row] = mask
    of_row[:, rows[-1]] = left
    for column in columns[:-1]:
        mask = _mask(x[:, :, column] == in_row, bits)
        mask &= of_row
        of_row ^= mask
        out[:, :, column] = mask
    out[:, :, columns[-1]] = of_row


def _fraction(xp: ArrayModule, at: Windows, dtype: DType) -> Array:
    """One over the number of elements of each window without the border, [rows, columns, 1]."""
    lengths = []
    for n, size, stride, (before, _), count in zip(at.images, at.size, at.strides, at.paddings, at.counts, strict=True):
        starts = xp.arange(count) * stride - before
        lengths.append(xp.minimum(starts + size, n) - xp.maximum(starts, 0))
    return (1 / xp.maximum(xp.outer(*lengths), 1))[:, :, None].astype(dtype)


def _batch(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Mapping[str, Any]) -> Operand:
    """The batch rule: the batch axis is merged into the axis of the images."""
    args = batch_all(args, batched)
    n, images = args[0].shape[:2]
    if "shape" in attrs:
        attrs = {**attrs, "shape": (n * attrs["shape"][0], *attrs["shape"][1:])}
    y = record(*[reshape(arg, shape=(n * images, *arg.shape[2:])) for arg in args], **attrs)
    return reshape(y, shape=(n, images, *y.shape[1:]))


# ----------------------------------------------------------------------------------------------------------- maximum
_CASES: tuple[tuple[Shape, dict[str, Any]], ...] = (
    ((2, 4, 4, 2), {"ksize": (2, 2), "strides": (2, 2)}),
    ((1, 5, 4, 2), {"ksize": (3, 2), "strides": (2, 1), "padding": "SAME"}),
    ((1, 3, 3, 1), {"ksize": (2, 2), "strides": (1, 1), "padding": "EXPLICIT", "paddings": ((1, 1), (0, 1))}),
    ((1, 2, 2, 1), {"ksize": (3, 3), "strides": (1, 1)}),
)


def _whole(at: dict[str, Any]) -> dict[str, Any]:
    return {"padding": "VALID", "paddings": None} | at


@op(
    infer=_max_spec,
    vjp=lambda ct, x, **at: ops.max_pool_backprop(ct, x, **at),
    jvp=lambda t, x, **at: ops.max_pool_pick(t, x, **at),
    batch=_batch,
    samples=[sample(shape, seed=i, **at) for i, (shape, at) in enumerate(_CASES)],
    tf=(by_hand("nn.max_pool2d nn.max_pool", "its lengths depend on the rank and the data format"),),
    workspace=lambda x, **at: _border(x, at) + 4 * x.with_shape(_pooled(x.shape, at)).nbytes,
    traits=[Trait.SELECTS],
    reach=Reach.IMAGES,
)
def max_pool(
    xp: ArrayModule, x: Array, *, ksize: Ints, strides: Ints, padding: str = "VALID", paddings: Pairs | None = None
) -> Array:
    """The largest element of each window of `ksize` [rows, columns], `strides` apart; a border has no effect.

    `padding` is SAME, VALID, or EXPLICIT with `paddings` [[top, bottom], [left, right]]. NaN is never the largest, as
    in TensorFlow.
    """
    at = _windows(x.shape, ksize, strides, padding, paddings)
    largest = direct.pooled(xp, "max_pool", x, (x,), at, (x.shape[0], *at.counts, x.shape[3]))
    return largest if largest is not None else _largest(xp, at.bordered(xp, x, _lowest(x.dtype)), at)


@op(
    infer=_max_grad_spec,
    vjp=[
        lambda ct, x, **at: ops.max_pool_pick(ct, x, **at),
        by_name(lambda ct, x: zeros_like(x), zero=always),
    ],
    jvp=[
        lambda t, x, **at: ops.max_pool_backprop(t, x, **at),
        lambda t, x: zeros_like(x),
    ],
    batch=_batch,
    samples=[sample(_pooled(shape, _whole(at)), shape, seed=i, **at) for i, (shape, at) in enumerate(_CASES)],
    op_type="MaxPoolGrad",
    workspace=lambda grad, x, **at: 2 * _border(x, at) + _rows_bytes(x, at) + _masks_bytes(grad),
    traits=[Trait.SELECTS],
    reach=Reach.IMAGES,
)
def max_pool_backprop(
    xp: ArrayModule,
    grad: Array,
    x: Array,
    *,
    ksize: Ints,
    strides: Ints,
    padding: str = "VALID",
    paddings: Pairs | None = None,
) -> Array:
    """Each window's grad at the index of its first largest element in x: the transpose of max_pool_pick."""
    at = _windows(x.shape, ksize, strides, padding, paddings)
    spread = direct.pooled(xp, "max_pool_grad", x, (grad, x), at, x.shape)
    if spread is not None:
        return spread
    out = xp.zeros((x.shape[0], *at.lengths(), x.shape[3]), x.dtype)
    x, grad = at.bordered(xp, x, _lowest(x.dtype)), _bits(grad)
    if at.apart:
        bits, images = _bits(out), _images_at_a_time(xp, x)
        for first in range(0, len(x), images):
            part = slice(first, first + images)
            _scatter_apart(xp, bits[part], grad[part], x[part], at)
    else:
        for index, mask in _first_largest(xp, x, at):
            mask &= grad
            out[index] += mask.view(out.dtype)
    return xp.ascontiguousarray(at.inside(out))


@op(
    infer=_max_pick_spec,
    vjp=[
        lambda ct, x, **at: max_pool_backprop(ct, x, **at),
        by_name(lambda ct, x: zeros_like(x), zero=always),
    ],
    jvp=[
        lambda t, x, **at: ops.max_pool_pick(t, x, **at),
        lambda t, y: zeros_like(y),
    ],
    batch=_batch,
    samples=[sample(shape, shape, seed=i, **at) for i, (shape, at) in enumerate(_CASES)],
    op_type="MaxPoolGradGrad",
    workspace=lambda t, x, **at: 2 * _border(x, at) + _masks_bytes(x.with_shape(_pooled(x.shape, at))),
    traits=[Trait.SELECTS],
    reach=Reach.IMAGES,
)
def max_pool_pick(
    xp: ArrayModule,
    t: Array,
    x: Array,
    *,
    ksize: Ints,
    strides: Ints,
    padding: str = "VALID",
    paddings: Pairs | None = None,
) -> Array:
    """The elements of t at the index of each window's first largest element in x: the tangent of max_pool."""
    at = _windows(x.shape, ksize, strides, padding, paddings)
    chosen = direct.pooled(xp, "max_pool_pick", x, (t, x), at, (x.shape[0], *at.counts, x.shape[3]))
    if chosen is not None:
        return chosen
    out = xp.zeros((x.shape[0], *at.counts, x.shape[3]), t.dtype)
    x, t = at.bordered(xp, x, _lowest(x.dtype)), _bits(at.bordered(xp, t))
    picked = _bits(out)
    for index, mask in _first_largest(xp, x, at):
        mask &= t[index]
        picked |= mask
    return out


# -------------------------------------------------------------------------------------------------------------- mean
def _average_bytes(images: Spec, pooled: Spec, at: dict[str, Any]) -> int:
    """The workspace of a mean and of its transpose."""
    fractions = 3 * 8 * pooled.shape[1] * pooled.shape[2]
    return _border(images, at) + wide_bytes(images, 3) + wide_bytes(pooled, 2) + fractions


@linear(
    infer=_average_spec,
    vjp=lambda ct, x_spec, **at: ops.avg_pool_backprop(ct, shape=x_spec.shape, **at),
    batch=_batch,
    samples=[sample(shape, seed=i, **at) for i, (shape, at) in enumerate(_CASES)],
    tf=(by_hand("nn.avg_pool2d nn.avg_pool", "its lengths depend on the rank and the data format"),),
    workspace=lambda x, **at: _average_bytes(x, x.with_shape(_pooled(x.shape, at)), at),
    reach=Reach.IMAGES,
)
def avg_pool(
    xp: ArrayModule, x: Array, *, ksize: Ints, strides: Ints, padding: str = "VALID", paddings: Pairs | None = None
) -> Array:
    """The mean of each window of `ksize` [rows, columns], `strides` apart, over its elements inside the image."""
    at, dtype = _windows(x.shape, ksize, strides, padding, paddings), wide(x.dtype)
    images = at.bordered(xp, x.astype(dtype, copy=False))
    out = xp.zeros((x.shape[0], *at.counts, x.shape[3]), dtype)
    for _, _, index in at.offsets():
        out += images[index]
    out *= _fraction(xp, at, dtype)
    return out.astype(x.dtype, copy=False)


@linear(
    infer=_average_grad_spec,
    vjp=lambda ct, shape, **at: avg_pool(ct, **at),
    batch=_batch,
    samples=[sample(_pooled(shape, _whole(at)), shape=shape, seed=i, **at) for i, (shape, at) in enumerate(_CASES)],
    op_type="AvgPoolGrad",
    workspace=lambda x, *, shape, **at: _average_bytes(x.with_shape(shape), x, at),
    reach=Reach.IMAGES,
)
def avg_pool_backprop(
    xp: ArrayModule,
    x: Array,
    *,
    shape: Shape,
    ksize: Ints,
    strides: Ints,
    padding: str = "VALID",
    paddings: Pairs | None = None,
) -> Array:
    """The transpose of avg_pool for images of `shape`: each window's x spread evenly over its elements."""
    at, dtype = _windows(shape, ksize, strides, padding, paddings), wide(x.dtype)
    share = x.astype(dtype, copy=False) * _fraction(xp, at, dtype)
    out = xp.zeros((shape[0], *at.lengths(), shape[3]), dtype)
    for _, _, index in at.offsets():
        out[index] += share
    return xp.ascontiguousarray(at.inside(out)).astype(x.dtype, copy=False)
