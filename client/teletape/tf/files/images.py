"""`tf.io` and `tf.image`: images in JPEG, PNG, GIF, BMP and WebP, through Pillow, in this process. No gradients.

JPEG's colors may differ from TensorFlow's by a few of 255 levels: its decoder approximates the transform.
"""

from __future__ import annotations

import importlib
import io
from types import ModuleType
from typing import Any, Final

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.errors import InvalidArgumentError, UnimplementedError
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.tf.files.host import array_of, bytes_of

#: The weights of red, green and blue in libpng's gray, as TensorFlow uses it, in parts of 2¹⁵.
_LUMA: Final = np.array([9798, 19235, 3735], np.int32)
_PNG: Final = b"\x89PNG"
_MODES: Final = {1: "L", 3: "RGB", 4: "RGBA"}
_JPEG: Final = b"\xff\xd8\xff"


def _pillow(purpose: str) -> ModuleType:
    try:
        return importlib.import_module("PIL.Image")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"tf.io.{purpose} needs Pillow: pip install 'teletape[images]'", name=error.name
        ) from None


def _opened(contents: Any, purpose: str) -> Any:
    """The image in a string.

    Raises:
        InvalidArgumentError: No image.
    """
    pillow = _pillow(purpose)
    try:
        image = pillow.open(io.BytesIO(bytes_of(contents, "contents")))
        image.load()
    except OSError:
        raise InvalidArgumentError("Unknown image file format. One of JPEG, PNG, GIF, BMP, WebP required.") from None
    return image


def _check_channels(channels: int | None, allowed: tuple[int, ...]) -> None:
    if channels not in (None, *allowed):
        listed = ", ".join(map(str, allowed[:-1]))
        raise InvalidArgumentError(f"`channels` must be {listed} or {allowed[-1]} but got {channels}")


def _array(image: Any, channels: int | None) -> Any:
    """Returns the samples of an image, [height, width, channels]; 0 channels: those of the image."""
    deep = image.mode in ("I;16", "I;16B", "I;16L", "I")
    if deep and channels in (None, 0, 1):
        return np.asarray(image).astype(np.uint16)[..., None]
    if not channels:
        transparent = "A" in image.getbands() or "transparency" in image.info
        gray = image.mode in ("1", "L", "LA")
        channels = (4 if transparent else 3) if not gray else (2 if image.mode == "LA" else 1)
    if channels == 2:
        return np.asarray(image.convert("LA"))
    if image.mode == "RGBA" and channels in (1, 3):
        kind, image = image.format, image.convert("RGB")
        image.format = kind
    if channels == 1 and image.format == "PNG" and image.mode in ("RGB", "P"):
        return (np.asarray(image.convert("RGB"), np.int32) @ _LUMA >> 15).astype(np.uint8)[..., None]
    samples = np.asarray(image.convert(_MODES[channels]))
    return samples[..., None] if samples.ndim == 2 else samples


def _levels(samples: Any, dtype: np.dtype[Any]) -> Any:
    """Converts samples of 8 or 16 bits to the other, or to fractions of the highest."""
    if samples.dtype == dtype:
        return samples
    if dtype == np.uint8:
        return (samples >> 8).astype(np.uint8)
    if dtype == np.uint16:
        return samples.astype(np.uint16) * 257
    return (samples.astype(np.float64) / np.iinfo(samples.dtype).max).astype(dtype)


def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: to.DTypeInput = dtypes.uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """Decodes an image of any format.

    Args:
        contents: A string.
        channels: 1: gray, 3: RGB, 4: RGBA; 0 or None: those of the image.
        dtype: uint8, uint16, or a floating dtype for numbers from 0 to 1.
        name: Without effect.
        expand_animations: Whether a GIF has an axis for its frames.

    Returns:
        [height, width, channels], or [frames, height, width, channels].

    Raises:
        InvalidArgumentError: No image; another number of channels.
        ModuleNotFoundError: Pillow is not installed.

    Example:
        tf.image.decode_image(tf.image.encode_png(np.array([[[7], [9]]], np.uint8)))
    """
    _check_channels(channels, (0, 1, 3, 4))
    image = _opened(contents, "decode_image")
    if image.format == "GIF":
        samples = _frames(image)
        samples = samples if expand_animations else samples[0]
    else:
        samples = _array(image, channels)
    return convert_to_tensor(_levels(samples, dtypes.as_dtype(dtype).np))


def _frames(image: Any) -> Any:
    frames = []
    for number in range(getattr(image, "n_frames", 1)):
        image.seek(number)
        frames.append(np.asarray(image.convert("RGB")))
    return np.stack(frames)


def _has_deep_colors(contents: bytes) -> bool:
    """Whether an image is a PNG of 16 bits that is not gray."""
    depth, color = contents[24:25], contents[25:26]  # of the header
    return contents.startswith(_PNG) and depth == b"\x10" and color != b"\0"


def _still(contents: Any, channels: int, dtype: to.DTypeInput, purpose: str) -> Tensor:
    image = _opened(contents, purpose)
    if dtypes.as_dtype(dtype) is dtypes.uint16 and _has_deep_colors(bytes_of(contents, "contents")):
        raise UnimplementedError(
            f"{purpose}: Pillow reads 8 of the 16 bits of a PNG with colors or transparency; decode it as uint8"
        )
    samples = _frames(image)[0] if image.format == "GIF" else _array(image, channels)
    return convert_to_tensor(_levels(samples, dtypes.as_dtype(dtype).np))


def decode_png(
    contents: Any, channels: int = 0, dtype: to.DTypeInput = dtypes.uint8, name: str | None = None
) -> Tensor:
    """Decodes a PNG, or a still image of another format; see `decode_image`. `dtype` is uint8 or uint16.

    Example:
        tf.image.decode_png(tf.image.encode_png(np.array([[[7], [9]]], np.uint8)))
    """
    _check_channels(channels, (0, 1, 3, 4))
    return _still(contents, channels, dtype, "decode_png")


def decode_webp(
    contents: Any, channels: int = 0, dtype: to.DTypeInput = dtypes.uint8, name: str | None = None
) -> Tensor:
    """Decodes a WebP; see `decode_image`.

    Example:
        tf.image.decode_webp(bytes.fromhex("524946461a000000574542505650384c0d0000002f00000010071011118888fe0700"))
    """
    _check_channels(channels, (0, 3, 4))
    return _still(contents, channels or 4, dtype, "decode_webp")


def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Tensor:
    """Decodes a BMP; see `decode_image`.

    Example:
        tf.image.decode_bmp(
            bytes.fromhex(
                "424d3a00000000000000360000002800000001000000010000000100180000000000040000000000000000000000000000000000000003020100"
            )
        )
    """
    _check_channels(channels, (0, 3, 4))
    return _still(contents, channels, dtypes.uint8, "decode_bmp")


def decode_gif(contents: Any, name: str | None = None) -> Tensor:
    """Decodes a GIF to [frames, height, width, 3]; another image has one frame.

    Example:
        tf.image.decode_gif(bytes.fromhex("47494638396101000100800000ff00000000002c00000000010001000002024401003b"))
    """
    return convert_to_tensor(_frames(_opened(contents, "decode_gif")))


def decode_jpeg(
    contents: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """Decodes a JPEG, or a still image of another format; see `decode_image`.

    Args:
        contents: A string.
        channels: 1: gray, 3: RGB; 0: those of the image.
        ratio: 1, 2, 4 or 8: height and width are divided by it.
        fancy_upscaling: Without effect.
        try_recover_truncated: Without effect: a truncated image is refused.
        acceptable_fraction: Without effect.
        dct_method: Without effect.
        name: Without effect.

    Raises:
        InvalidArgumentError: No image; another number of channels; another ratio.
        ModuleNotFoundError: Pillow is not installed.

    Example:
        tf.image.decode_jpeg(tf.image.encode_jpeg(np.zeros([2, 2, 1], np.uint8)))
    """
    _check_channels(channels, (0, 1, 3, 4))
    if ratio not in (1, 2, 4, 8):
        raise InvalidArgumentError(f"ratio must be 1, 2, 4, or 8, got {ratio}")
    image = _opened(contents, "decode_jpeg")
    image = image if ratio == 1 else image.reduce(ratio)
    return convert_to_tensor(_levels(_array(image, channels), np.dtype(np.uint8)))


def decode_and_crop_jpeg(
    contents: Any,
    crop_window: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """Decodes a part of a JPEG; see `decode_jpeg`. `crop_window` is [y, x, height, width].

    Raises:
        InvalidArgumentError: The part is not inside the image.

    Example:
        tf.image.decode_and_crop_jpeg(tf.image.encode_jpeg(np.zeros([8, 8, 1], np.uint8)), [0, 0, 2, 2])
    """
    image = decode_jpeg(contents, channels, ratio).numpy()
    y, x, height, width = (int(number) for number in np.asarray(crop_window))
    if min(y, x) < 0 or min(height, width) < 1 or y + height > image.shape[0] or x + width > image.shape[1]:
        raise InvalidArgumentError("Invalid JPEG data or crop window")
    return convert_to_tensor(image[y : y + height, x : x + width])


def extract_jpeg_shape(contents: Any, output_type: to.DTypeInput = dtypes.int32, name: str | None = None) -> Tensor:
    """Returns the height, width and number of channels of a JPEG.

    Example:
        tf.image.extract_jpeg_shape(tf.image.encode_jpeg(np.zeros([2, 3, 1], np.uint8)))
    """
    image = _opened(contents, "extract_jpeg_shape")
    shape = [image.height, image.width, len(image.getbands())]
    return convert_to_tensor(np.array(shape, dtypes.as_dtype(output_type).np))


def is_jpeg(contents: Any, name: str | None = None) -> Tensor:
    """Whether a string is a JPEG.

    Example:
        tf.image.is_jpeg(tf.image.encode_jpeg(np.zeros([2, 2, 1], np.uint8)))
    """
    return convert_to_tensor(bytes_of(contents, "contents").startswith(_JPEG))


def _samples(image: Any, allowed: tuple[Any, ...]) -> Any:
    tensor = convert_to_tensor(image)
    if tensor.dtype.np not in allowed:
        listed = ", ".join(np.dtype(dtype).name for dtype in allowed)
        raise InvalidArgumentError(f"an image of {tensor.dtype.name} cannot be encoded; its dtype is {listed}")
    return array_of(tensor)


def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Tensor:
    """Encodes images as PNG.

    Args:
        image: [..., height, width, channels] of uint8, or of uint16 with one channel; 1, 2, 3 or 4 channels.
        compression: 0 to 9; -1: chosen by the library.
        name: Without effect.

    Returns:
        A string for each image.

    Raises:
        InvalidArgumentError: Another dtype, rank or number of channels.
        ModuleNotFoundError: Pillow is not installed.

    Example:
        tf.image.encode_png(np.zeros([2, 2, 3], np.uint8))
    """
    samples = _samples(image, (np.uint8, np.uint16))
    if samples.ndim < 3:
        raise InvalidArgumentError(f"images must be at least rank 3{list(samples.shape)}")
    if samples.shape[-1] not in (1, 2, 3, 4) or (samples.dtype == np.uint16 and samples.shape[-1] != 1):
        raise InvalidArgumentError(
            f"an image has 1, 2, 3 or 4 channels of uint8 or 1 of uint16, not {samples.shape[-1]} of {samples.dtype}"
        )
    options = {} if compression < 0 else {"compress_level": compression}
    results = np.empty(samples.shape[:-3], object)
    for place in np.ndindex(results.shape):
        results[place] = _encoded(samples[place], "PNG", "encode_png", options)
    return convert_to_tensor(results)


def encode_jpeg(
    image: Any,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
    name: str | None = None,
) -> Tensor:
    """Encodes an image as JPEG.

    Args:
        image: [height, width, channels] of uint8; 1 or 3 channels.
        format: "grayscale", "rgb" or "": by the channels.
        quality: 0 to 100.
        progressive: Whether it can be shown before all of it is loaded.
        optimize_size: Whether the encoder takes longer to make it smaller.
        chroma_downsampling: Whether colors have half the resolution.
        density_unit: Without effect.
        x_density: Without effect.
        y_density: Without effect.
        xmp_metadata: Without effect.
        name: Without effect.

    Raises:
        InvalidArgumentError: Another dtype, rank or number of channels.
        ModuleNotFoundError: Pillow is not installed.

    Example:
        tf.image.encode_jpeg(np.zeros([2, 2, 3], np.uint8), quality=90)
    """
    samples = _samples(image, (np.uint8,))
    if samples.ndim != 3 or samples.shape[-1] not in (1, 3):
        raise InvalidArgumentError(f"image must be 3-dimensional with 1 or 3 channels, got shape {list(samples.shape)}")
    options = {
        "quality": quality,
        "progressive": progressive,
        "optimize": optimize_size,
        "subsampling": 2 if chroma_downsampling else 0,
    }
    return convert_to_tensor(_encoded(samples, "JPEG", "encode_jpeg", options))


def _encoded(samples: Any, kind: str, purpose: str, options: dict[str, Any]) -> bytes:
    pillow = _pillow(purpose)
    contents = io.BytesIO()
    pillow.fromarray(samples[..., 0] if samples.shape[-1] == 1 else samples).save(contents, kind, **options)
    return contents.getvalue()
