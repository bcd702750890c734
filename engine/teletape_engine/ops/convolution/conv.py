"""Convolution of images, and its transposes with respect to the images and to the filters.

Each of the three is linear in both its inputs and the derivatives of one are the other two, so that every order of
derivative stays among them. If filters have fewer input channels than the images, the convolution is grouped: channels
are divided into groups, each with its own filters; batched filters are computed as such groups.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.catalogue.attributes import Attrs, Ints, Pairs
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Cut, Op, Reach, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.convolution import depthwise, direct
from teletape_engine.ops.convolution.patches import (
    MOST_BYTES,
    columns,
    convolved,
    grouped,
    images_of,
    joined,
    parts,
    patches_of,
    split,
    transposed,
    turned,
)
from teletape_engine.ops.convolution.windows import image_lengths, windows
from teletape_engine.ops.shapes.shape import reshape, transpose
from teletape_engine.spec import DTYPES, FLOATING, DType, Shape, Spec, shape_text, wide

_TAKES = FLOATING | {DTYPES["int32"]}


# ---------------------------------------------------------------------------------------------------------- geometry


def _check(images: Shape, filters: Shape) -> None:
    if len(images) < 4:
        raise InvalidArgumentError(f"convolution input must be 4-dimensional: {shape_text(images)}")
    if len(filters) != 4:
        raise InvalidArgumentError(f"convolution filter must be 4-dimensional: {shape_text(filters)}")
    channels, depth, out = images[-1], filters[2], filters[3]
    if depth == 0 or channels % depth:
        raise InvalidArgumentError(f"input depth must be evenly divisible by filter depth: {channels} vs {depth}")
    if out % max(channels // depth, 1):
        raise InvalidArgumentError(
            f"output depth must be evenly divisible by number of groups: {out} vs {channels // depth}"
        )


def _groups(images: Shape, filters: Shape) -> int:
    """The number of groups of channels, at least 1 also without channels."""
    return max(images[-1] // max(filters[2], 1), 1)


def _result(images: Shape, filters: Shape, at: dict[str, Any]) -> Shape:
    _check(images, filters)
    return (*images[:-3], *windows(image_lengths(images), filters[:2], **at).counts, filters[3])


def _spec(x: Spec, filters: Spec, **attrs: Any) -> Spec:
    check_dtypes("Conv2D", (x, filters), _TAKES)
    return x.with_shape(_result(x.shape, filters.shape, attrs))


def _input_spec(ct: Spec, filters: Spec, *, shape: Shape, **attrs: Any) -> Spec:
    check_dtypes("Conv2DBackpropInput", (ct, filters), _TAKES)
    _fits("Conv2DBackpropInput", ct.shape, _result(shape, filters.shape, attrs))
    return ct.with_shape(shape)


def _filter_spec(x: Spec, ct: Spec, *, shape: Shape, **attrs: Any) -> Spec:
    check_dtypes("Conv2DBackpropFilter", (x, ct), _TAKES)
    _fits("Conv2DBackpropFilter", ct.shape, _result(x.shape, shape, attrs))
    return x.with_shape(shape)


def _fits(op_type: str, shape: Shape, expected: Shape) -> None:
    if shape != expected:
        raise InvalidArgumentError(
            f"{op_type}: the convolution of these shapes gives {shape_text(expected)}, found {shape_text(shape)}"
        )


# ------------------------------------------------------------------------------------------------------------ prices
def _workspace(images: Shape, filters: Shape, dtype: DType, at: dict[str, Any]) -> int:
    sliding, channels, n = windows(image_lengths(images), filters[:2], **at), images[-1], math.prod(images[:-3])
    row = sliding.counts[1] * math.prod(filters[:2]) * channels
    bordered, counted = n * math.prod(sliding.lengths()) * channels, n * math.prod(sliding.counts)
    sliding.border_bytes(Spec.of((n, *images[-3:]), wide(dtype)))  # refuses what cannot be addressed
    most = max(MOST_BYTES // wide(dtype).itemsize, row)
    size = 2 * bordered + min(counted * row, most) + counted * (channels + 2 * filters[3]) + 3 * math.prod(filters)
    products = depthwise.workspace(sliding, filters[3], wide(dtype).itemsize)
    return size * wide(dtype).itemsize + max(direct.buffer_bytes(sliding, channels), products)


def _input_workspace(images: Shape, filters: Shape, dtype: DType, at: dict[str, Any]) -> int:
    """The same of the transpose with respect to the images."""
    workspace = _workspace(images, filters, dtype, at)
    back = transposed(windows(image_lengths(images), filters[:2], **at), filters[2])
    if back is None:
        return workspace
    n, out = math.prod(images[:-3]), filters[3]
    row = back.counts[1] * math.prod(filters[:2]) * out
    patches = min(n * back.counts[0] * row, max(MOST_BYTES // wide(dtype).itemsize, row))
    bordered, rows = n * math.prod(back.lengths()) * out, n * math.prod(back.counts) * (images[-1] + out)
    size = bordered + patches + 2 * rows + 4 * math.prod(filters)
    return max(workspace, size * wide(dtype).itemsize + direct.buffer_bytes(back, out))


def _work(result: Shape, filters: Shape) -> int:
    """Multiply-adds of a convolution with that result, or of one of its transposes."""
    return math.prod(result) * math.prod(filters[:3])


# ---------------------------------------------------------------------------------------------------------- batching
def _fold(x: Operand, axis: int, groups: int) -> Operand:
    """[b, …] with the batch axis merged into another axis, before the entries of each group there."""
    b, *shape = x.shape
    at = axis % len(shape)
    apart = reshape(x, shape=(b, *shape[:at], groups, shape[at] // groups, *shape[at + 1 :]))
    order = (*range(1, at + 2), 0, *range(at + 2, len(shape) + 2))
    return reshape(transpose(apart, perm=order), shape=(*shape[:at], b * shape[at], *shape[at + 1 :]))


def _unfold(y: Operand, axis: int, groups: int, b: int) -> Operand:
    """The inverse of `_fold`."""
    shape = list(y.shape)
    at = axis % len(shape)
    each = shape[at] // (groups * b)
    apart = reshape(y, shape=(*shape[:at], groups, b, each, *shape[at + 1 :]))
    moved = transpose(apart, perm=(at + 1, *(i for i in range(len(shape) + 2) if i != at + 1)))
    return reshape(moved, shape=(b, *shape[:at], groups * each, *shape[at + 1 :]))


def _batch(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    x, filters = args
    if not batched[1]:
        return record(x, filters, **attrs)  # leading axes number images
    b = filters.shape[0]
    if batched[0]:
        result = record(_fold(x, -1, 1), _fold(filters, -1, 1), **attrs)
        return _unfold(result, -1, 1, b)
    groups = max(x.shape[-1] // filters.shape[3], 1)
    return _unfold(record(x, _fold(filters, -1, groups), **attrs), -1, groups, b)


def _batch_input(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Mapping[str, Any]) -> Operand:
    ct, filters = args
    *lead, height, width, channels = attrs["shape"]
    if not batched[1]:
        return record(ct, filters, **{**attrs, "shape": (ct.shape[0], *attrs["shape"])})
    b = filters.shape[0]
    attrs = {**attrs, "shape": (*lead, height, width, b * channels)}
    if batched[0]:
        return _unfold(record(_fold(ct, -1, 1), _fold(filters, -1, 1), **attrs), -1, 1, b)
    return _unfold(record(ct, _fold(filters, 2, 1), **attrs), -1, channels // filters.shape[3], b)


def _batch_filter(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    x, ct = args
    kh, kw, depth, out = attrs["shape"]
    groups = max(x.shape[-1] // depth, 1)
    if all(batched):
        b = x.shape[0]
        result = record(_fold(x, -1, 1), _fold(ct, -1, 1), **{**attrs, "shape": (kh, kw, depth, b * out)})
        return _unfold(result, -1, 1, b)
    if batched[0]:
        b = x.shape[0]
        result = record(_fold(x, -1, groups), ct, **{**attrs, "shape": (kh, kw, b * depth, out)})
        return _unfold(result, 2, 1, b)
    b = ct.shape[0]
    result = record(x, _fold(ct, -1, groups), **{**attrs, "shape": (kh, kw, depth, b * out)})
    return _unfold(result, -1, groups, b)


# --------------------------------------------------------------------------------------------------------------- ops
_CASES: tuple[tuple[Shape, Shape, dict[str, Any]], ...] = (
    ((2, 4, 5, 2), (2, 3, 2, 3), {}),
    ((1, 5, 4, 2), (3, 2, 2, 2), {"padding": "SAME", "strides": (2, 1)}),
    ((1, 5, 5, 1), (2, 2, 1, 2), {"dilations": (2, 1), "strides": (1, 2)}),
    ((1, 3, 4, 1), (2, 2, 1, 1), {"padding": "EXPLICIT", "paddings": ((1, 2), (0, 1))}),
    ((1, 3, 3, 4), (2, 2, 2, 4), {"padding": "SAME"}),
    ((2, 4, 3, 2), (2, 3, 1, 2), {"padding": "SAME", "strides": (2, 1)}),
    ((1, 4, 4, 2), (2, 1, 1, 4), {"dilations": (2, 1)}),
    ((2, 1, 3, 3, 1), (2, 2, 1, 2), {}),
    ((1, 4, 3, 1), (1, 1, 1, 2), {"strides": (3, 2)}),
    ((1, 2, 2, 1), (3, 3, 1, 1), {}),
    ((1, 0, 3, 1), (1, 2, 1, 2), {}),
)


def _whole(at: dict[str, Any]) -> dict[str, Any]:
    return {"strides": (1, 1), "padding": "VALID", "paddings": None, "dilations": (1, 1)} | at


@op(
    infer=_spec,
    vjp=[
        lambda ct, filters, x_spec, **at: ops.conv2d_backprop_input(ct, filters, shape=x_spec.shape, **at),
        lambda ct, x, filters_spec, **at: ops.conv2d_backprop_filter(x, ct, shape=filters_spec.shape, **at),
    ],
    jvp=[
        lambda t, filters, **at: ops.conv2d(t, filters, **at),
        lambda t, x, **at: ops.conv2d(x, t, **at),
    ],
    batch=_batch,
    samples=[sample(images, filters, seed=i, **at) for i, (images, filters, at) in enumerate(_CASES)],
    op_type="Conv2D",
    tf=(by_hand("nn.conv2d", "its lengths depend on the data format"),),
    like=(0, 0),
    workspace=lambda x, filters, **at: _workspace(x.shape, filters.shape, x.dtype, at),
    work=lambda x, filters, **at: _work(_result(x.shape, filters.shape, at), filters.shape),
    cut=lambda x, filters, **at: Cut(0, {0: 0}) if x.ndim > 3 else None,
    traits=[Trait.MULTIPLIES],
    reach=Reach.WINDOWS,
)
def conv2d(
    xp: ArrayModule,
    x: Array,
    filters: Array,
    *,
    strides: Ints = (1, 1),
    padding: str = "VALID",
    paddings: Pairs | None = None,
    dilations: Ints = (1, 1),
) -> Array:
    """Slides filters f over images: y[i, j, o] = Σ x[i·stride + k·dilation, j·stride + l·dilation, c] · f[k, l, c, o].

    x: [..., height, width, channels]; filters: [height, width, channels / groups, out]; the result: [..., rows,
    columns, out]. `padding` is SAME, VALID, or EXPLICIT with `paddings` [[top, bottom], [left, right]].
    """
    at = windows(image_lengths(x.shape), filters.shape[:2], strides, padding, paddings, dilations)
    groups, out = _groups(x.shape, filters.shape), filters.shape[3]
    images = images_of(x)
    filters = filters.astype(images.dtype, copy=False)
    y = direct.convolved(xp, images, filters, at, (images.shape[0], *at.counts, out), groups=groups)
    if y is None:
        bordered, apart = at.bordered(xp, images), depthwise.applies(x.shape[-1], groups)
        y = depthwise.convolved(xp, bordered, filters, at) if apart else convolved(xp, bordered, filters, at, groups)
    return y.reshape((*x.shape[:-3], *at.counts, out)).astype(x.dtype, copy=False)


@op(
    infer=_input_spec,
    vjp=[
        lambda ct, filters, shape, **at: conv2d(ct, filters, **at),
        lambda ct, grad, filters_spec, shape, **at: ops.conv2d_backprop_filter(
            ct, grad, shape=filters_spec.shape, **at
        ),
    ],
    jvp=[
        lambda t, filters, **at: ops.conv2d_backprop_input(t, filters, **at),
        lambda t, grad, **at: ops.conv2d_backprop_input(grad, t, **at),
    ],
    batch=_batch_input,
    samples=[
        sample(_result(images, filters, _whole(at)), filters, shape=images, seed=i, **at)
        for i, (images, filters, at) in enumerate(_CASES)
    ],
    op_type="Conv2DBackpropInput",
    tf=(by_hand("nn.conv2d_transpose", "its lengths depend on the data format"),),
    like=(0, 0),
    workspace=lambda grad, filters, *, shape, **at: _input_workspace(shape, filters.shape, grad.dtype, at),
    work=lambda grad, filters, **_: _work(grad.shape, filters.shape),
    traits=[Trait.MULTIPLIES],
    reach=Reach.WINDOWS,
)
def conv2d_backprop_input(
    xp: ArrayModule,
    grad: Array,
    filters: Array,
    *,
    shape: Shape,
    strides: Ints = (1, 1),
    padding: str = "VALID",
    paddings: Pairs | None = None,
    dilations: Ints = (1, 1),
) -> Array:
    """The transpose of conv2d with respect to its images, which have `shape`: grad is of the shape of its result."""
    at = windows(image_lengths(shape), filters.shape[:2], strides, padding, paddings, dilations)
    groups, channels = _groups(shape, filters.shape), shape[-1]
    grads = images_of(grad)
    if depthwise.applies(channels, groups):
        out = depthwise.images_from(xp, grads, filters.astype(grads.dtype, copy=False), at, channels)
        return at.inside(out).reshape(shape).astype(grad.dtype, copy=False)
    back = transposed(at, channels // groups)
    if back is not None and grads.size:
        filters = filters.astype(grads.dtype, copy=False)
        images = direct.convolved(
            xp, grads, filters, back, (grads.shape[0], *back.counts, channels), groups=groups, turned=True
        )
        if images is None:
            images = convolved(xp, back.bordered(xp, grads), turned(xp, filters, groups), back, groups)
        return images.reshape(shape).astype(grad.dtype, copy=False)
    out = xp.zeros((grads.shape[0], *at.lengths(), channels), grads.dtype)
    if grads.size and out.size:
        rows, weights = grouped(grads, groups, 3), filters.astype(grads.dtype, copy=False)
        for i, j, index in at.offsets():
            matrices = split(weights[i : i + 1, j : j + 1], groups)  # [groups, channels, out], each a part
            out[index] += joined(xp, xp.matmul(rows, xp.swapaxes(matrices, 1, 2)), (*grads.shape[:3], channels))
    return at.inside(out).reshape(shape).astype(grad.dtype, copy=False)


@op(
    infer=_filter_spec,
    vjp=[
        lambda ct, grad, x_spec, shape, **at: conv2d_backprop_input(grad, ct, shape=x_spec.shape, **at),
        lambda ct, x, shape, **at: conv2d(x, ct, **at),
    ],
    jvp=[
        lambda t, grad, **at: ops.conv2d_backprop_filter(t, grad, **at),
        lambda t, x, **at: ops.conv2d_backprop_filter(x, t, **at),
    ],
    batch=_batch_filter,
    samples=[
        sample(images, _result(images, filters, _whole(at)), shape=filters, seed=i, **at)
        for i, (images, filters, at) in enumerate(_CASES)
    ],
    op_type="Conv2DBackpropFilter",
    workspace=lambda x, grad, *, shape, **at: _workspace(x.shape, shape, x.dtype, at),
    work=lambda x, grad, *, shape, **_: _work(grad.shape, shape),
    traits=[Trait.MULTIPLIES],
)
def conv2d_backprop_filter(
    xp: ArrayModule,
    x: Array,
    grad: Array,
    *,
    shape: Shape,
    strides: Ints = (1, 1),
    padding: str = "VALID",
    paddings: Pairs | None = None,
    dilations: Ints = (1, 1),
) -> Array:
    """The transpose of conv2d with respect to its filters, which have `shape`: grad is of the shape of its result."""
    at = windows(image_lengths(x.shape), shape[:2], strides, padding, paddings, dilations)
    groups, out = _groups(x.shape, shape), shape[3]
    images, grads = images_of(x), images_of(grad)
    filters = direct.filters_from(xp, images, grads, at, shape, groups=groups)
    if filters is not None:
        return filters.astype(x.dtype, copy=False)
    images = at.bordered(xp, images)
    if depthwise.applies(images.shape[3], groups):
        return depthwise.filters_from(xp, images, grads, at, shape).astype(x.dtype, copy=False)
    total = xp.zeros((groups, math.prod(shape[:3]), out // groups), images.dtype)
    patches = patches_of(xp, images, at)
    if groups == 1:
        for part, matrix in columns(xp, patches):
            total[0] += xp.matmul(matrix.T, grads[part].reshape((len(matrix), out)))
    else:
        for part in parts(xp, patches):
            matrices = xp.swapaxes(grouped(patches[part], groups, 3), 1, 2)
            total += xp.matmul(matrices, grouped(grads[part], groups, 3))
    return joined(xp, total, shape).astype(x.dtype, copy=False)
