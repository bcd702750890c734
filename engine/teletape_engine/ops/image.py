"""Images: [..., height, width, channels]."""

from __future__ import annotations

import math
from typing import Any

from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.families import batch_loop
from teletape_engine.catalogue.rule import NOT_REGISTERED
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import FLOATING, Spec, half_bytes, shape_text, wide, wide_bytes


def _adjust_contrast_spec(images: Spec, contrast_factor: Spec) -> Spec:
    check_dtypes("AdjustContrastv2", (images,), FLOATING)
    if images.ndim < 3:
        raise InvalidArgumentError(f"input must be at least 3-D, got shape{shape_text(images.shape)}")
    if contrast_factor.shape != () or contrast_factor.dtype not in FLOATING:
        raise InvalidArgumentError(
            f"contrast_factor must be a floating scalar: found {contrast_factor.dtype.name} of shape "
            f"{shape_text(contrast_factor.shape)}"
        )
    return images


def _batch(record: Any, args: Any, batched: Any, attrs: Any) -> Any:
    return batch_loop(record, args, batched, attrs) if batched[1] else record(*args)


@op(
    infer=_adjust_contrast_spec,
    vjp=NOT_REGISTERED,
    batch=_batch,
    samples=[sample((2, 3, 2), ()), sample((2, 2, 3, 1), (), seed=1)],
    op_type="AdjustContrastv2",
    tf="image.adjust_contrast",
    like=(0, 0),
    workspace=lambda images, contrast_factor: wide_bytes(images) + half_bytes(images),
)
def adjust_contrast(xp: Any, images: Any, contrast_factor: Any) -> Any:
    """(x - mean) · contrast_factor + mean, with the mean of each channel of each image.

    TensorFlow registers no gradient for it: asking for one is a LookupError.
    """
    dtype = wide(images.dtype)
    # As xp.mean, without its warning for images without elements.
    mean = xp.sum(images, axis=(-3, -2), keepdims=True, dtype=dtype) / dtype.type(math.prod(images.shape[-3:-1]))
    return ((images - mean) * contrast_factor.astype(dtype) + mean).astype(images.dtype, copy=False)
