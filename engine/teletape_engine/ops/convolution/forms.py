"""Convolution and pooling over one, two or three axes, with channels last or first, written on the ops for images.

An axis more is a sum: the windows along it, one position of the window after the other, are images for the ops of two
axes. An axis less is an image of one row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from teletape_engine.catalogue.attributes import Ints, Pairs
from teletape_engine.catalogue.define import sample
from teletape_engine.catalogue.families import composite
from teletape_engine.catalogue.op import Sample
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.convolution.conv import conv2d, conv2d_backprop_input
from teletape_engine.ops.convolution.pool import avg_pool, max_pool
from teletape_engine.ops.convolution.windows import Windows, windows
from teletape_engine.ops.shapes.index import strided_slice, strided_slice_grad
from teletape_engine.ops.shapes.pad import pad
from teletape_engine.ops.shapes.shape import expand_dims, reshape, squeeze, transpose
from teletape_engine.spec import Shape, shape_text

_WHY = "its lengths depend on the rank and the data format"
_ALL = (None, None, None)


# ------------------------------------------------------------------------------------------------------------ lengths
def _count(what: str, x: Shape, window: int) -> int:
    """The number of axes that windows slide over.

    Raises:
        InvalidArgumentError: It is not one, two or three, or does not fit the rank of x.
    """
    if window not in (1, 2, 3) or len(x) != window + 2:
        raise InvalidArgumentError(
            f"{what}: one, two or three axes of windows, and an input with those, its batch and its channels; found "
            f"{window} axes of windows and an input of shape {shape_text(x)}"
        )
    return window


def _each(lengths: Ints, n: int, what: str) -> Ints:
    """Lengths for n axes; none: 1 each."""
    if lengths and len(lengths) != n:
        raise InvalidArgumentError(f"{what} must be {n} lengths, one for each axis of windows, found {list(lengths)}")
    return lengths or (1,) * n


def _borders(paddings: Pairs | None, n: int) -> Pairs | None:
    if paddings is not None and len(paddings) != n:
        raise InvalidArgumentError(
            f"paddings must be {n} pairs, one for each axis of windows, found {list(map(list, paddings))}"
        )
    return paddings


def _last(x: Operand) -> Operand:
    """x with the channels, which come first, last."""
    return transpose(x, perm=(0, *range(2, len(x.shape)), 1))


def _first(x: Operand) -> Operand:
    """The inverse of `_last`."""
    n = len(x.shape)
    return transpose(x, perm=(0, n - 1, *range(1, n - 1)))


def _depth(length: int, size: int, stride: int, padding: str, paddings: Pairs | None, dilation: int) -> Windows:
    """The windows along one axis, as rows of images with one column."""
    border = None if paddings is None else (paddings[0], (0, 0))
    return windows((length, 1), (size, 1), (stride, 1), padding, border, (dilation, 1))


def _planes(at: Windows, size: int) -> list[tuple[Any, ...]]:
    """For each position of a window along the first axis: the index of [n, depth, …] that holds it."""
    (stride, _), (dilation, _), (count, _) = at.strides, at.dilations, at.counts
    starts = [k * dilation for k in range(size)]
    return [(_ALL, (start, start + (count - 1) * stride + 1 if count else start, stride)) for start in starts]


def _bordered(x: Operand, at: Windows) -> Operand:
    """x [n, depth, …] with a border along the depth."""
    border = at.paddings[0]
    if not any(border):
        return x
    return pad(x, paddings=((0, 0), border, *((0, 0),) * (len(x.shape) - 2)))


def _rest(paddings: Pairs | None) -> Pairs | None:
    return None if paddings is None else paddings[1:]


def _summed(terms: Sequence[Any]) -> Operand:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


# -------------------------------------------------------------------------------------------------------- convolution
_CASES: tuple[tuple[Shape, Shape, dict[str, Any]], ...] = (
    ((2, 5, 2), (3, 2, 2), {"strides": (2,), "padding": "SAME"}),
    ((1, 6, 1), (2, 1, 2), {"dilations": (2,), "padding": "EXPLICIT", "paddings": ((1, 0),)}),
    ((1, 2, 4), (2, 2, 1), {"channels_first": True}),
    ((1, 4, 3, 2), (2, 2, 2, 2), {"padding": "SAME"}),
    ((1, 2, 3, 4), (2, 2, 2, 1), {"channels_first": True, "strides": (1, 2)}),
    ((1, 4, 3, 3, 1), (2, 2, 2, 1, 2), {"padding": "SAME", "strides": (2, 1, 1)}),
    ((1, 4, 2, 3, 2), (2, 1, 2, 1, 2), {"dilations": (2, 1, 1)}),
    ((1, 1, 3, 2, 2), (2, 1, 2, 1, 1), {"channels_first": True, "padding": "SAME"}),
)
_STACKS: tuple[tuple[Shape, Shape, dict[str, Any]], ...] = (
    ((2, 1, 4, 2), (3, 2, 2), {"padding": "SAME"}),
    ((1, 2, 2, 3, 3), (2, 2, 2, 1), {"channels_first": True}),
)


@composite(
    samples=[sample(x, filters, seed=i, **at) for i, (x, filters, at) in enumerate(_CASES + _STACKS)],
    tf=(by_hand("nn.convolution nn.conv1d nn.conv3d", _WHY),),
)
def convolution(
    x: Operand,
    filters: Operand,
    *,
    strides: Ints = (),
    padding: str = "VALID",
    paddings: Pairs | None = None,
    dilations: Ints = (),
    channels_first: bool = False,
) -> Operand:
    """Slides filters over one, two or three axes of x: conv2d for lines, images and volumes.

    x: [..., lengths, channels], or [..., channels, lengths] if `channels_first`; filters: [lengths, channels / groups,
    out]. Strides and dilations are 1 if none are given; `paddings` has a pair for each axis.
    """
    inner = len(filters.shape) - 1
    if 2 <= inner <= 4 and len(x.shape) > inner + 1:  # several axes number the lines, images or volumes
        y = convolution(
            reshape(x, shape=(math.prod(x.shape[:-inner]), *x.shape[-inner:])),
            filters,
            strides=strides,
            padding=padding,
            paddings=paddings,
            dilations=dilations,
            channels_first=channels_first,
        )
        return reshape(y, shape=(*x.shape[:-inner], *y.shape[1:]))
    n = _count("convolution", x.shape, len(filters.shape) - 2)
    at = {
        "strides": _each(strides, n, "strides"),
        "padding": padding,
        "paddings": _borders(paddings, n),
        "dilations": _each(dilations, n, "dilations"),
    }
    y = _FORWARD[n](_last(x) if channels_first else x, filters, **at)
    return _first(y) if channels_first else y


def _lines(
    x: Operand, filters: Operand, strides: Ints, padding: str, paddings: Pairs | None, dilations: Ints
) -> Operand:
    at = _row_of(strides, padding, paddings, dilations)
    return squeeze(conv2d(expand_dims(x, axis=1), expand_dims(filters, axis=0), **at), axis=1)


def _row_of(strides: Ints, padding: str, paddings: Pairs | None, dilations: Ints) -> dict[str, Any]:
    """The attributes of a convolution of lines as those of images of one row."""
    border = None if paddings is None else ((0, 0), *paddings)
    return {"strides": (1, *strides), "padding": padding, "paddings": border, "dilations": (1, *dilations)}


def _volumes(
    x: Operand, filters: Operand, strides: Ints, padding: str, paddings: Pairs | None, dilations: Ints
) -> Operand:
    size = filters.shape[0]
    at = _depth(x.shape[1], size, strides[0], padding, paddings, dilations[0])
    plane = {"strides": strides[1:], "padding": padding, "paddings": _rest(paddings), "dilations": dilations[1:]}
    deep = _bordered(x, at)
    return _summed(
        [
            conv2d(strided_slice(deep, index=index), strided_slice(filters, index=(k,)), **plane)
            for k, index in enumerate(_planes(at, size))
        ]
    )


_FORWARD: dict[int, Callable[..., Any]] = {1: _lines, 2: conv2d, 3: _volumes}


def _transposed_cases() -> list[Sample]:
    shapes = [convolution(np.zeros(x), np.zeros(filters), **at).shape for x, filters, at in _CASES]
    return [
        sample(shape, filters, shape=x, seed=i, **at)
        for i, (shape, (x, filters, at)) in enumerate(zip(shapes, _CASES, strict=True))
    ]


@composite(
    samples=_transposed_cases,
    tf=(by_hand("nn.conv_transpose nn.conv1d_transpose nn.conv3d_transpose", _WHY),),
)
def convolution_transpose(
    x: Operand,
    filters: Operand,
    *,
    shape: Shape,
    strides: Ints = (),
    padding: str = "VALID",
    paddings: Pairs | None = None,
    dilations: Ints = (),
    channels_first: bool = False,
) -> Operand:
    """The transpose of `convolution` with respect to its x, which has `shape`: the x here is of its result's shape."""
    n = _count("convolution_transpose", shape, len(filters.shape) - 2)
    _count("convolution_transpose", x.shape, n)
    at = {
        "strides": _each(strides, n, "strides"),
        "padding": padding,
        "paddings": _borders(paddings, n),
        "dilations": _each(dilations, n, "dilations"),
    }
    if not channels_first:
        return _BACKWARD[n](x, filters, shape=shape, **at)
    return _first(_BACKWARD[n](_last(x), filters, shape=(shape[0], *shape[2:], shape[1]), **at))


def _lines_back(
    x: Operand, filters: Operand, shape: Shape, strides: Ints, padding: str, paddings: Pairs | None, dilations: Ints
) -> Operand:
    at = _row_of(strides, padding, paddings, dilations)
    row = (shape[0], 1, *shape[1:])
    return squeeze(conv2d_backprop_input(expand_dims(x, axis=1), expand_dims(filters, axis=0), shape=row, **at), axis=1)


def _volumes_back(
    x: Operand, filters: Operand, shape: Shape, strides: Ints, padding: str, paddings: Pairs | None, dilations: Ints
) -> Operand:
    size = filters.shape[0]
    at = _depth(shape[1], size, strides[0], padding, paddings, dilations[0])
    plane = {"strides": strides[1:], "padding": padding, "paddings": _rest(paddings), "dilations": dilations[1:]}
    images, deep = (shape[0], at.counts[0], *shape[2:]), (shape[0], at.lengths()[0], *shape[2:])
    total = _summed(
        [
            strided_slice_grad(
                conv2d_backprop_input(x, strided_slice(filters, index=(k,)), shape=images, **plane),
                index=index,
                shape=deep,
            )
            for k, index in enumerate(_planes(at, size))
        ]
    )
    before = at.paddings[0][0]
    return strided_slice(total, index=(_ALL, (before, before + shape[1], None))) if at.padded else total


_BACKWARD: dict[int, Callable[..., Any]] = {1: _lines_back, 2: conv2d_backprop_input, 3: _volumes_back}


@composite(
    samples=[
        sample((2, 4, 3, 2), (2, 2, 2, 3), padding="SAME"),
        sample((1, 2, 3, 3), (2, 2, 2, 1), channels_first=True, strides=(1, 2)),
        sample((1, 4, 4, 1), (2, 2, 1, 2), dilations=(2, 1)),
    ],
    tf=(by_hand("nn.depthwise_conv2d", _WHY),),
)
def depthwise_conv2d(
    x: Operand,
    filters: Operand,
    *,
    strides: Ints = (),
    padding: str = "VALID",
    paddings: Pairs | None = None,
    dilations: Ints = (),
    channels_first: bool = False,
) -> Operand:
    """Slides filters of its own over each channel of images: filters [height, width, channels, m] give channels · m.

    The attributes are those of `convolution`.
    """
    if len(filters.shape) != 4 or len(x.shape) != 4:
        raise InvalidArgumentError(
            f"depthwise_conv2d takes images and filters with four axes, found {shape_text(x.shape)} and "
            f"{shape_text(filters.shape)}"
        )
    height, width, channels, times = filters.shape
    if x.shape[1 if channels_first else 3] != channels:
        raise InvalidArgumentError(
            f"input depth must be equal to filter depth: {x.shape[1 if channels_first else 3]} vs {channels}"
        )
    apart = reshape(filters, shape=(height, width, 1, channels * times))
    at = {"strides": strides, "padding": padding, "paddings": paddings, "dilations": dilations}
    return convolution(x, apart, channels_first=channels_first, **at)


# ------------------------------------------------------------------------------------------------------------ pooling
_POOLS: tuple[tuple[Shape, dict[str, Any]], ...] = (
    ((2, 5, 2), {"ksize": (2,), "strides": (2,)}),
    ((1, 4, 1), {"ksize": (3,), "strides": (1,), "padding": "SAME"}),
    ((1, 2, 4), {"ksize": (2,), "strides": (1,), "channels_first": True}),
    ((1, 4, 3, 2), {"ksize": (2, 2), "strides": (1, 2), "padding": "SAME"}),
    ((1, 3, 4, 3, 1), {"ksize": (2, 2, 2), "strides": (2, 1, 1), "padding": "SAME"}),
    ((1, 1, 4, 2, 2), {"ksize": (2, 1, 2), "strides": (1, 1, 1), "channels_first": True}),
)


def _pooled(name: str, x: Operand, pool: Callable[..., Any], at: dict[str, Any]) -> Operand:
    """Pooling of lines, images or volumes by the op for images; volumes along the depth after the planes."""
    ksize, first = at["ksize"], at.pop("channels_first")
    n = _count(name, x.shape, len(ksize))
    at["strides"], at["paddings"] = _each(at["strides"], n, "strides"), _borders(at["paddings"], n)
    if first:
        x = _last(x)
    if n == 1:
        border = None if at["paddings"] is None else ((0, 0), *at["paddings"])
        row = {"ksize": (1, *ksize), "strides": (1, *at["strides"]), "padding": at["padding"], "paddings": border}
        y = squeeze(pool(expand_dims(x, axis=1), **row), axis=1)
    elif n == 2:
        y = pool(x, **at)
    else:
        plane = {**at, "ksize": ksize[1:], "strides": at["strides"][1:], "paddings": _rest(at["paddings"])}
        images = pool(reshape(x, shape=(math.prod(x.shape[:2]), *x.shape[2:])), **plane)
        rows = reshape(images, shape=(*x.shape[:2], 1, math.prod(images.shape[1:])))
        border = None if at["paddings"] is None else (at["paddings"][0], (0, 0))
        depth = {"ksize": (ksize[0], 1), "strides": (at["strides"][0], 1), "padding": at["padding"], "paddings": border}
        deep = pool(rows, **depth)
        y = reshape(deep, shape=(*deep.shape[:2], *images.shape[1:]))
    return _first(y) if first else y


@composite(
    samples=[sample(x, seed=i, **at) for i, (x, at) in enumerate(_POOLS)],
    tf=(by_hand("nn.max_pool1d nn.max_pool3d", _WHY),),
)
def max_pooling(
    x: Operand,
    *,
    ksize: Ints,
    strides: Ints = (),
    padding: str = "VALID",
    paddings: Pairs | None = None,
    channels_first: bool = False,
) -> Operand:
    """The largest element of each window over one, two or three axes of x: max_pool for lines, images and volumes.

    x: [n, lengths, channels], or [n, channels, lengths] if `channels_first`.
    """
    at = {
        "ksize": ksize,
        "strides": strides,
        "padding": padding,
        "paddings": paddings,
        "channels_first": channels_first,
    }
    return _pooled("max_pooling", x, max_pool, at)


@composite(
    samples=[sample(x, seed=i, **at) for i, (x, at) in enumerate(_POOLS)],
    tf=(by_hand("nn.avg_pool1d nn.avg_pool3d", _WHY),),
)
def avg_pooling(
    x: Operand,
    *,
    ksize: Ints,
    strides: Ints = (),
    padding: str = "VALID",
    paddings: Pairs | None = None,
    channels_first: bool = False,
) -> Operand:
    """The mean of each window over one, two or three axes of x, of its elements inside: avg_pool for lines and volumes.

    x: [n, lengths, channels], or [n, channels, lengths] if `channels_first`.
    """
    at = {
        "ksize": ksize,
        "strides": strides,
        "padding": padding,
        "paddings": paddings,
        "channels_first": channels_first,
    }
    return _pooled("avg_pooling", x, avg_pool, at)
