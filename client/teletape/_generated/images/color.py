"""TensorFlow's functions of teletape_engine.ops.images.color.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.core.calls import arguments as to
from teletape.core.calls import checks
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_RGB_TO_HSV = ops.rgb_to_hsv
_HSV_TO_RGB = ops.hsv_to_rgb
_RGB_TO_YUV = ops.rgb_to_yuv
_YUV_TO_RGB = ops.yuv_to_rgb
_RGB_TO_YIQ = ops.rgb_to_yiq
_YIQ_TO_RGB = ops.yiq_to_rgb


def rgb_to_hsv(images: to.TensorInput, name: str | None = None) -> Tensor:
    """Red, green and blue in [0, 1] as hue, saturation and value in [0, 1]."""
    try:
        images = to.single_tensor(images)
        checks.three_channels(images)
        return call(_RGB_TO_HSV, (images,))
    except BaseException as error:
        report(error)
        raise


def hsv_to_rgb(images: to.TensorInput, name: str | None = None) -> Tensor:
    """Hue, saturation and value in [0, 1] as red, green and blue in [0, 1]: the inverse of rgb_to_hsv."""
    try:
        images = to.single_tensor(images)
        checks.three_channels(images)
        return call(_HSV_TO_RGB, (images,))
    except BaseException as error:
        report(error)
        raise


def rgb_to_yuv(images: to.TensorInput, name: str | None = None) -> Tensor:
    """Red, green and blue in [0, 1] as luma Y in [0, 1] and the colour differences U and V."""
    try:
        images = to.tensor(images)
        return call(_RGB_TO_YUV, (images,))
    except BaseException as error:
        report(error)
        raise


def yuv_to_rgb(images: to.TensorInput, name: str | None = None) -> Tensor:
    """Luma Y and the colour differences U and V as red, green and blue: the inverse of rgb_to_yuv."""
    try:
        images = to.tensor(images)
        return call(_YUV_TO_RGB, (images,))
    except BaseException as error:
        report(error)
        raise


def rgb_to_yiq(images: to.TensorInput, name: str | None = None) -> Tensor:
    """Red, green and blue in [0, 1] as luma Y in [0, 1] and the colour differences I and Q."""
    try:
        images = to.tensor(images)
        return call(_RGB_TO_YIQ, (images,))
    except BaseException as error:
        report(error)
        raise


def yiq_to_rgb(images: to.TensorInput, name: str | None = None) -> Tensor:
    """Luma Y and the colour differences I and Q as red, green and blue: the inverse of rgb_to_yiq."""
    try:
        images = to.tensor(images)
        return call(_YIQ_TO_RGB, (images,))
    except BaseException as error:
        report(error)
        raise
