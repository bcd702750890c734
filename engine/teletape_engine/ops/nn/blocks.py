"""Images cut into blocks: blocks as channels, as images of their own, and as patches that may overlap."""

from __future__ import annotations

import itertools
import math

from teletape_engine.catalogue.attributes import Ints, Pairs
from teletape_engine.catalogue.define import sample
from teletape_engine.catalogue.families import composite
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.signature import Conversion, PublicFunction, by_hand, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.convolution.windows import windows
from teletape_engine.ops.shapes.index import strided_slice
from teletape_engine.ops.shapes.pad import pad
from teletape_engine.ops.shapes.shape import concat, reshape, transpose
from teletape_engine.spec import shape_text


# --------------------------------------------------------------------------------------------------- blocks, channels
def _images(what: str, x: Operand, block_size: int, channels_first: bool) -> Operand:
    """x with channels last; InvalidArgumentError unless it is images, and blocks have a size."""
    if len(x.shape) != 4:
        raise InvalidArgumentError(f"{what}: Input rank should be 4 instead of {len(x.shape)}")
    if block_size < 2:
        raise InvalidArgumentError(f"{what}: Block size should be > 1, but was: {block_size}")
    return transpose(x, perm=(0, 2, 3, 1)) if channels_first else x


def _placed(y: Operand, channels_first: bool) -> Operand:
    return transpose(y, perm=(0, 3, 1, 2)) if channels_first else y


def _named(name: str) -> tuple[PublicFunction]:
    return (
        function(
            name,
            Conversion.TENSOR("input"),
            Conversion.INT("block_size"),
            Conversion.CHANNELS_FIRST("data_format", "NHWC", to="channels_first"),
        ),
    )


@composite(
    samples=[sample((1, 4, 2, 3), block_size=2), sample((1, 1, 2, 4), block_size=2, channels_first=True)],
    tf=_named("nn.space_to_depth"),
)
def space_to_depth(x: Operand, *, block_size: int, channels_first: bool = False) -> Operand:
    """Each block of block_size × block_size pixels as one pixel with the channels of all, row by row."""
    x = _images("SpaceToDepth", x, block_size, channels_first)
    n, height, width, channels = x.shape
    if height % block_size or width % block_size:
        raise InvalidArgumentError(
            f"Image width {width} and height {height} should be divisible by block_size: {block_size}"
        )
    rows, columns = height // block_size, width // block_size
    apart = reshape(x, shape=(n, rows, block_size, columns, block_size, channels))
    together = transpose(apart, perm=(0, 1, 3, 2, 4, 5))
    return _placed(reshape(together, shape=(n, rows, columns, block_size**2 * channels)), channels_first)


@composite(
    samples=[sample((1, 2, 1, 8), block_size=2), sample((1, 4, 1, 2), block_size=2, channels_first=True)],
    tf=_named("nn.depth_to_space"),
)
def depth_to_space(x: Operand, *, block_size: int, channels_first: bool = False) -> Operand:
    """Each pixel's channels as a block of block_size × block_size pixels: the inverse of space_to_depth."""
    x = _images("DepthToSpace", x, block_size, channels_first)
    n, rows, columns, depth = x.shape
    if depth % block_size**2:
        raise InvalidArgumentError(f"Dimension size must be evenly divisible by {block_size**2} but is {depth}")
    channels = depth // block_size**2
    apart = reshape(x, shape=(n, rows, columns, block_size, block_size, channels))
    together = transpose(apart, perm=(0, 1, 3, 2, 4, 5))
    return _placed(reshape(together, shape=(n, rows * block_size, columns * block_size, channels)), channels_first)


# -------------------------------------------------------------------------------------------------- blocks, the batch
def _check_blocks(x: Operand, block_shape: Ints, pairs: Pairs, what: str) -> int:
    n = len(block_shape)
    if len(pairs) != n or len(x.shape) < n + 1:
        raise InvalidArgumentError(
            f"{what}: {n} blocks need {n} pairs and an input of {n + 1} axes at least, found {len(pairs)} pairs and "
            f"shape {shape_text(x.shape)}"
        )
    if any(block < 1 for block in block_shape) or any(min(pair) < 0 for pair in pairs):
        raise InvalidArgumentError(f"{what}: blocks must be positive, and no border negative")
    return n


@composite(
    samples=[
        sample((1, 4, 3, 2), block_shape=(2, 2), paddings=((0, 0), (1, 0))),
        sample((2, 4), block_shape=(2,), paddings=((1, 1),), seed=1),
    ],
    op_type="SpaceToBatchND",
    tf=(
        function(
            "space_to_batch space_to_batch_nd nn.space_to_batch",
            Conversion.TENSOR("input"),
            Conversion.INTS("block_shape"),
            Conversion.PAIRS("paddings"),
        ),
    ),
)
def space_to_batch(x: Operand, *, block_shape: Ints, paddings: Pairs) -> Operand:
    """Moves blocks into the batch: pixels at the same position in their blocks become an image; x is padded first."""
    n = _check_blocks(x, block_shape, paddings, "SpaceToBatchND")
    deep = len(x.shape) - n - 1
    if any(map(any, paddings)):
        x = pad(x, paddings=((0, 0), *paddings, *((0, 0),) * deep))
    batch, *lengths = x.shape
    if any(length % block for length, block in zip(lengths[:n], block_shape, strict=True)):
        raise InvalidArgumentError(
            f"padded_shape={lengths[:n]} is not divisible by block_shape={list(block_shape)} in each axis"
        )
    counts = [length // block for length, block in zip(lengths[:n], block_shape, strict=True)]
    split = [number for pair in zip(counts, block_shape, strict=True) for number in pair]
    apart = reshape(x, shape=(batch, *split, *lengths[n:]))
    order = (*range(2, 2 * n + 1, 2), 0, *range(1, 2 * n, 2), *range(2 * n + 1, 2 * n + 1 + deep))
    return reshape(transpose(apart, perm=order), shape=(batch * math.prod(block_shape), *counts, *lengths[n:]))


@composite(
    samples=[
        sample((4, 2, 2, 2), block_shape=(2, 2), crops=((0, 0), (1, 0))),
        sample((4, 3), block_shape=(2,), crops=((1, 1),), seed=1),
    ],
    op_type="BatchToSpaceND",
    tf=(
        function(
            "batch_to_space",
            Conversion.TENSOR("input"),
            Conversion.INTS("block_shape"),
            Conversion.PAIRS("crops"),
        ),
    ),
)
def batch_to_space(x: Operand, *, block_shape: Ints, crops: Pairs) -> Operand:
    """The inverse of space_to_batch: images as pixels of blocks; the result is cropped.

    One number as `block_shape` is that of each axis that has crops.
    """
    if len(block_shape) == 1:
        block_shape = block_shape * len(crops)
    n = _check_blocks(x, block_shape, crops, "BatchToSpaceND")
    many, *lengths = x.shape
    blocks = math.prod(block_shape)
    if many % blocks:
        raise InvalidArgumentError(
            f"Input batch dimension ({many}) is not divisible by product of block sizes ({blocks})"
        )
    batch, deep = many // blocks, len(lengths) - n
    apart = reshape(x, shape=(*block_shape, batch, *lengths))
    pairs = [axis for i in range(n) for axis in (n + 1 + i, i)]
    together = transpose(apart, perm=(n, *pairs, *range(2 * n + 1, 2 * n + 1 + deep)))
    whole = [length * block for length, block in zip(lengths[:n], block_shape, strict=True)]
    for i, (length, (before, after)) in enumerate(zip(whole, crops, strict=True)):
        if before + after > length:
            raise InvalidArgumentError(f"cropped_shape[{i}]={length - before - after} must be non-negative")
    result = reshape(together, shape=(batch, *whole, *lengths[n:]))
    if not any(map(any, crops)):
        return result
    inside = [(before, length - after, None) for length, (before, after) in zip(whole, crops, strict=True)]
    return strided_slice(result, index=((None, None, None), *inside))


# ------------------------------------------------------------------------------------------------------------ patches
@composite(
    samples=[
        sample((1, 4, 4, 2), sizes=(2, 2), strides=(2, 2)),
        sample((1, 5, 4, 1), sizes=(2, 3), strides=(1, 2), padding="SAME"),
        sample((1, 5, 5, 1), sizes=(2, 2), strides=(1, 1), rates=(2, 1)),
    ],
    op_type="ExtractImagePatches",
    tf=(by_hand("image.extract_patches", "its lengths are those of four axes"),),
)
def extract_patches(x: Operand, *, sizes: Ints, strides: Ints, rates: Ints = (1, 1), padding: str = "VALID") -> Operand:
    """The windows on images [n, height, width, c] side by side: [n, rows, columns, height of window · width · c]."""
    if len(x.shape) != 4:
        raise InvalidArgumentError(f"input must be 4-dimensional, found shape {shape_text(x.shape)}")
    n, height, width, channels = x.shape
    at = windows((height, width), sizes, strides, padding, None, rates)
    (rows, columns), (high, wide) = at.counts, at.size
    if at.strides == at.size and at.dilations == (1, 1) and not at.padded and rows and columns:
        inside = strided_slice(x, index=((None, None, None), (0, rows * high, None), (0, columns * wide, None)))
        apart = reshape(inside, shape=(n, rows, high, columns, wide, channels))
        return reshape(transpose(apart, perm=(0, 1, 3, 2, 4, 5)), shape=(n, rows, columns, high * wide * channels))
    if at.padded:
        x = pad(x, paddings=((0, 0), *at.paddings, (0, 0)))
    (down, right), (tall, broad) = at.strides, at.dilations
    parts = [
        strided_slice(x, index=((None, None, None), _every(i * tall, down, rows), _every(j * broad, right, columns)))
        for i in range(high)
        for j in range(wide)
    ]
    return concat(*parts, axis=3)


def _every(first: int, step: int, count: int) -> tuple[int, int, int]:
    return first, first + (count - 1) * step + 1 if count else first, step


@composite(
    samples=[
        sample((1, 3, 4, 2, 2), sizes=(1, 2, 2, 1, 1), strides=(1, 1, 2, 1, 1), padding="VALID"),
        sample((2, 2, 3, 3, 1), sizes=(1, 2, 2, 2, 1), strides=(1, 2, 1, 2, 1), padding="SAME"),
    ],
    op_type="ExtractVolumePatches",
    tf="extract_volume_patches raw_ops.ExtractVolumePatches",
    args="input ksizes strides padding",
)
def extract_volume_patches(x: Operand, *, sizes: Ints, strides: Ints, padding: str) -> Operand:
    """The windows on volumes [n, planes, rows, columns, c] side by side: [n, …, …, …, elements of a window · c].

    `sizes` and `strides` are those of five axes, 1 for the first and the last; `padding` is SAME or VALID.
    """
    if len(x.shape) != 5:
        raise InvalidArgumentError(f"input must be 5-dimensional{shape_text(x.shape)}")
    for what, lengths in (("ksizes", sizes), ("strides", strides)):
        if len(lengths) != 5 or lengths[0] != 1 or lengths[-1] != 1 or min(lengths) < 1:
            raise InvalidArgumentError(f"{what} must be [1, planes, rows, columns, 1], found {list(lengths)}")
    # The geometry of two axes at a time: windows know rows and columns.
    first = windows(x.shape[1:3], sizes[1:3], strides[1:3], padding, None, (1, 1))
    second = windows(x.shape[2:4], sizes[2:4], strides[2:4], padding, None, (1, 1))
    border = (first.paddings[0], *second.paddings)
    counts, steps = (first.counts[0], *second.counts), (first.strides[0], *second.strides)
    if any(map(any, border)):
        x = pad(x, paddings=((0, 0), *border, (0, 0)))
    parts = [
        strided_slice(
            x, index=((None, None, None), *(_every(*each) for each in zip(place, steps, counts, strict=True)))
        )
        for place in itertools.product(*map(range, sizes[1:4]))
    ]
    return concat(*parts, axis=4)
