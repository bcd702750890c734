"""`tf.image.…_jpeg_quality`: encodes images as JPEG and decodes them, by Pillow, in this process. No gradients."""

from __future__ import annotations

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.errors import InvalidArgumentError
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.tf.files.images import decode_jpeg, encode_jpeg
from teletape.tf.ops.images.colors import convert_image_dtype
from teletape.tf.ops.random.stateful import Draw, OpSeed, within
from teletape.tf.ops.random.stateless import state


def adjust_jpeg_quality(
    image: to.TensorInput, jpeg_quality: to.IntInput, dct_method: str = "", name: str | None = None
) -> Tensor:
    """Encodes an image as JPEG and decodes it, with the loss of that quality. No gradient passes through it.

    Args:
        image: [height, width, channels] of any numbers; 1 or 3 channels. Floats are in [0, 1].
        jpeg_quality: 0 to 100.
        dct_method: Without effect.
        name: Without effect.

    Raises:
        InvalidArgumentError: A quality, a rank or a number of channels that JPEG does not have.
        ModuleNotFoundError: Pillow is not installed.

    Example:
        tf.image.adjust_jpeg_quality(np.full([8, 8, 3], 0.5, np.float32), jpeg_quality=75)
    """
    tensor = convert_to_tensor(image)
    quality = to.whole(jpeg_quality)
    if not 0 <= quality <= 100:
        raise InvalidArgumentError(f"quality must be in [0,100], got {quality}")
    samples = convert_image_dtype(tensor, dtypes.uint8, saturate=True)
    contents = encode_jpeg(samples, quality=quality)
    return convert_image_dtype(decode_jpeg(contents, tuple(tensor.shape)[-1]), tensor.dtype, saturate=True)


def random_jpeg_quality(
    image: to.TensorInput, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> Tensor:
    """Applies adjust_jpeg_quality with a random quality in [min_jpeg_quality, max_jpeg_quality).

    Example:
        tf.image.random_jpeg_quality(np.zeros([8, 8, 3], np.uint8), min_jpeg_quality=60, max_jpeg_quality=90)
    """
    return adjust_jpeg_quality(image, _quality(min_jpeg_quality, max_jpeg_quality, OpSeed(seed)))


def stateless_random_jpeg_quality(
    image: to.TensorInput, min_jpeg_quality: int, max_jpeg_quality: int, seed: to.TensorInput
) -> Tensor:
    """Like random_jpeg_quality; the quality follows from the seed, two integers.

    Example:
        tf.image.stateless_random_jpeg_quality(np.zeros([8, 8, 3], np.uint8), 60, 90, seed=[1, 2])
    """
    return adjust_jpeg_quality(image, _quality(min_jpeg_quality, max_jpeg_quality, state(seed)))


def _quality(low: int, high: int, draw: Draw) -> Tensor:
    if not (0 <= low <= 100 and 0 <= high <= 100):
        raise ValueError("jpeg encoding range must be between 0 and 100.")
    if low >= high:
        raise ValueError("`min_jpeg_quality` must be less than `max_jpeg_quality`.")
    return within((), low, high, dtypes.int32, draw)
