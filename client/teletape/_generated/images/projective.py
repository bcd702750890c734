"""TensorFlow's functions of teletape_engine.ops.images.projective.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape_engine.catalogue.namespace import ops

_PROJECTIVE_TRANSFORM = ops.projective_transform


def ImageProjectiveTransformV3(
    images: to.TensorInput,
    transforms: to.TensorInput,
    output_shape: to.IntsInput,
    fill_value: float | TensorLike,
    interpolation: str,
    fill_mode: str = "CONSTANT",
    name: str | None = None,
) -> Tensor:
    """Images [n, height, width, c] seen through projective transforms [n or 1, 8], in the size `output_shape`.

    The pixel (x, y) of the result is that of the image at ((a₀x + a₁y + a₂) / k, (b₀x + b₁y + b₂) / k), with k = c₀x +
    c₁y + 1 and the transform a₀, a₁, a₂, b₀, b₁, b₂, c₀, c₁. Outside, `fill_mode` decides: CONSTANT (`fill_value`),
    REFLECT, WRAP or NEAREST. `interpolation` is NEAREST or BILINEAR. It has no gradient here: asking is a LookupError.
    """
    try:
        images = to.tensor(images)
        transforms = to.tensor(transforms)
        return call(
            _PROJECTIVE_TRANSFORM,
            (images, transforms),
            output_shape=to.ints(output_shape, "output_shape"),
            fill_value=to.real_number(fill_value),
            interpolation=interpolation,
            fill_mode=fill_mode,
        )
    except BaseException as error:
        report(error)
        raise
