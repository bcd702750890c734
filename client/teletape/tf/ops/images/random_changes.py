"""`tf.image.random_…` and `stateless_random_…`: changes of images by random numbers.

By hand: they take several ops. Random numbers are not read.
"""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.tf.ops.arrays.places import entries_at
from teletape.tf.ops.images import colors
from teletape.tf.ops.images.sizes import flip_left_right, flip_up_down, pixels
from teletape.tf.ops.random.stateful import Draw, OpSeed, fractions, within
from teletape.tf.ops.random.stateless import state
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError


def _between(low: float, high: float, draw: Draw) -> Any:
    """One number evenly distributed in [low, high)."""
    return fractions((), draw) * (high - low) + low


# --------------------------------------------------------------------------------------------------------------- flips
def random_flip_left_right(image: to.TensorInput, seed: int | None = None) -> Tensor:
    """Mirrors each image from left to right, or not, with equal probability.

    Example:
        tf.image.random_flip_left_right(np.ones([4, 4, 1], np.float32))
    """
    return _flipped(image, flip_left_right, OpSeed(seed))


def stateless_random_flip_left_right(image: to.TensorInput, seed: to.TensorInput) -> Tensor:
    """Like random_flip_left_right; the change follows from the seed, two integers.

    Example:
        tf.image.stateless_random_flip_left_right([[[1.0], [2.0]]], seed=[1, 2])
    """
    return _flipped(image, flip_left_right, state(seed))


def random_flip_up_down(image: to.TensorInput, seed: int | None = None) -> Tensor:
    """Mirrors each image from top to bottom, or not, with equal probability.

    Example:
        tf.image.random_flip_up_down(np.ones([4, 4, 1], np.float32))
    """
    return _flipped(image, flip_up_down, OpSeed(seed))


def stateless_random_flip_up_down(image: to.TensorInput, seed: to.TensorInput) -> Tensor:
    """Like random_flip_up_down; the change follows from the seed, two integers.

    Example:
        tf.image.stateless_random_flip_up_down([[[1.0]], [[2.0]]], seed=[1, 2])
    """
    return _flipped(image, flip_up_down, state(seed))


def _flipped(image: Any, flip: Any, draw: Draw) -> Tensor:
    tensor = pixels(image)
    if tensor.ndim == 3:
        turned = call(ops.less, (fractions((), draw), 0.5))
    else:  # as in TensorFlow, which rounds the numbers of a batch
        turned = call(ops.greater, (fractions((tensor.shape.as_list()[0], 1, 1, 1), draw), 0.5))
    return call(ops.where, (turned, flip(tensor), tensor))


# ---------------------------------------------------------------------------------------------------------------- crops
def random_crop(value: to.TensorInput, size: to.IntsInput, seed: int | None = None, name: str | None = None) -> Tensor:
    """A part of `value` of that size, at a random position.

    Example:
        tf.image.random_crop(np.ones([8, 8, 1], np.float32), size=[4, 4, 1])
    """
    return _cropped(value, size, OpSeed(seed))


def stateless_random_crop(
    value: to.TensorInput, size: to.IntsInput, seed: to.TensorInput, name: str | None = None
) -> Tensor:
    """Like random_crop; the position follows from the seed, two integers.

    Example:
        tf.image.stateless_random_crop([[[1.0], [2.0], [3.0]]], size=[1, 2, 1], seed=[1, 2])
    """
    return _cropped(value, size, state(seed))


def _cropped(value: Any, size: Any, draw: Draw) -> Tensor:
    tensor, wanted = convert_to_tensor(value), to.ints(size, "size")
    shape = tuple(tensor.shape)
    if len(wanted) != len(shape) or any(length > own for length, own in zip(wanted, shape, strict=True)):
        raise InvalidArgumentError(f"Need value.shape >= size, got {list(shape)} and {list(wanted)}")
    limits = [own - length + 1 for length, own in zip(wanted, shape, strict=True)]
    numbers = within((len(shape),), 0, dtypes.int32.max, dtypes.int32, draw)
    starts = call(ops.floormod, (numbers, convert_to_tensor(limits, dtypes.int32)))
    for axis, (length, own) in enumerate(zip(wanted, shape, strict=True)):
        if length == own:
            continue
        first = call(ops.strided_slice, (starts,), index=(axis,))
        indices = call(ops.add, (call(ops.range, (), limit=length), first))
        tensor = call(ops.gather, (tensor, indices), axis=axis) if axis else entries_at(tensor, indices)
    return tensor


# -------------------------------------------------------------------------------------------------------------- colours
def random_brightness(image: to.TensorInput, max_delta: float, seed: int | None = None) -> Tensor:
    """Applies adjust_brightness with a random number in [-max_delta, max_delta).

    Example:
        tf.image.random_brightness(np.ones([4, 4, 1], np.float32), max_delta=0.2)
    """
    return _brightness(image, max_delta, OpSeed(seed))


def stateless_random_brightness(image: to.TensorInput, max_delta: float, seed: to.TensorInput) -> Tensor:
    """Like random_brightness; the change follows from the seed, two integers.

    Example:
        tf.image.stateless_random_brightness([[[0.2], [0.5]]], max_delta=0.2, seed=[1, 2])
    """
    return _brightness(image, max_delta, state(seed))


def _brightness(image: Any, max_delta: float, draw: Draw) -> Tensor:
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return colors.adjust_brightness(image, _between(-max_delta, max_delta, draw))


def random_contrast(image: to.TensorInput, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """Applies adjust_contrast with a random factor in [lower, upper).

    Example:
        tf.image.random_contrast(np.ones([4, 4, 1], np.float32), lower=0.5, upper=1.5)
    """
    return colors.adjust_contrast(image, _factor(lower, upper, OpSeed(seed)))


def stateless_random_contrast(image: to.TensorInput, lower: float, upper: float, seed: to.TensorInput) -> Tensor:
    """Like random_contrast; the change follows from the seed, two integers.

    Example:
        tf.image.stateless_random_contrast([[[1.0], [3.0]]], lower=0.5, upper=1.5, seed=[1, 2])
    """
    return colors.adjust_contrast(image, _factor(lower, upper, state(seed)))


def random_saturation(image: to.TensorInput, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """Applies adjust_saturation with a random factor in [lower, upper).

    Example:
        tf.image.random_saturation(np.ones([4, 4, 3], np.float32), lower=0.5, upper=1.5)
    """
    return colors.adjust_saturation(image, _factor(lower, upper, OpSeed(seed)))


def stateless_random_saturation(
    image: to.TensorInput, lower: float, upper: float, seed: to.TensorInput | None = None
) -> Tensor:
    """Like random_saturation; the change follows from the seed, two integers.

    Example:
        tf.image.stateless_random_saturation([[[1.0, 0.5, 0.0]]], lower=0.5, upper=1.5, seed=[1, 2])
    """
    return colors.adjust_saturation(image, _factor(lower, upper, state(seed)))


def _factor(lower: float, upper: float, draw: Draw) -> Any:
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")
    return _between(lower, upper, draw)


def random_hue(image: to.TensorInput, max_delta: float, seed: int | None = None) -> Tensor:
    """Applies adjust_hue with a random number in [-max_delta, max_delta).

    Example:
        tf.image.random_hue(np.ones([4, 4, 3], np.float32), max_delta=0.1)
    """
    return _hue(image, max_delta, OpSeed(seed))


def stateless_random_hue(image: to.TensorInput, max_delta: float, seed: to.TensorInput) -> Tensor:
    """Like random_hue; the change follows from the seed, two integers.

    Example:
        tf.image.stateless_random_hue([[[1.0, 0.5, 0.0]]], max_delta=0.1, seed=[1, 2])
    """
    return _hue(image, max_delta, state(seed))


def _hue(image: Any, max_delta: float, draw: Draw) -> Tensor:
    if max_delta > 0.5:
        raise ValueError("max_delta must be <= 0.5.")
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return colors.adjust_hue(image, _between(-max_delta, max_delta, draw))
