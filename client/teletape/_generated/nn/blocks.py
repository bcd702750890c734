"""TensorFlow's functions of teletape_engine.ops.nn.blocks.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_SPACE_TO_DEPTH = ops.space_to_depth
_DEPTH_TO_SPACE = ops.depth_to_space
_SPACE_TO_BATCH = ops.space_to_batch
_BATCH_TO_SPACE = ops.batch_to_space
_EXTRACT_VOLUME_PATCHES = ops.extract_volume_patches


def space_to_depth(
    input: to.TensorInput, block_size: to.IntInput, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Each block of block_size × block_size pixels as one pixel with the channels of all, row by row."""
    try:
        input = to.tensor(input)
        return call(
            _SPACE_TO_DEPTH, (input,), block_size=to.whole(block_size), channels_first=to.channels_first(data_format)
        )
    except BaseException as error:
        report(error)
        raise


def depth_to_space(
    input: to.TensorInput, block_size: to.IntInput, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Each pixel's channels as a block of block_size × block_size pixels: the inverse of space_to_depth."""
    try:
        input = to.tensor(input)
        return call(
            _DEPTH_TO_SPACE, (input,), block_size=to.whole(block_size), channels_first=to.channels_first(data_format)
        )
    except BaseException as error:
        report(error)
        raise


def space_to_batch(
    input: to.TensorInput, block_shape: to.IntsInput, paddings: to.PaddingInput, name: str | None = None
) -> Tensor:
    """Moves blocks into the batch: pixels at the same position in their blocks become an image; x is padded first."""
    try:
        input = to.tensor(input)
        return call(
            _SPACE_TO_BATCH, (input,), block_shape=to.ints(block_shape, "block_shape"), paddings=to.pairs(paddings)
        )
    except BaseException as error:
        report(error)
        raise


def batch_to_space(
    input: to.TensorInput, block_shape: to.IntsInput, crops: to.PaddingInput, name: str | None = None
) -> Tensor:
    """The inverse of space_to_batch: images as pixels of blocks; the result is cropped.

    One number as `block_shape` is that of each axis that has crops.
    """
    try:
        input = to.tensor(input)
        return call(_BATCH_TO_SPACE, (input,), block_shape=to.ints(block_shape, "block_shape"), crops=to.pairs(crops))
    except BaseException as error:
        report(error)
        raise


def extract_volume_patches(
    input: to.TensorInput, ksizes: to.IntsInput, strides: to.IntsInput, padding: str, name: str | None = None
) -> Tensor:
    """The windows on volumes [n, planes, rows, columns, c] side by side: [n, …, …, …, elements of a window · c].

    `sizes` and `strides` are those of five axes, 1 for the first and the last; `padding` is SAME or VALID.
    """
    try:
        return call(
            _EXTRACT_VOLUME_PATCHES,
            (input,),
            sizes=to.ints(ksizes, "ksizes"),
            strides=to.ints(strides, "strides"),
            padding=padding,
        )
    except BaseException as error:
        report(error)
        raise
