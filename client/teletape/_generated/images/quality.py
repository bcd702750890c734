"""TensorFlow's functions of teletape_engine.ops.images.quality.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.core.calls import arguments as to
from teletape.core.calls import checks
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_TOTAL_VARIATION = ops.total_variation
_SOBEL_EDGES = ops.sobel_edges


def total_variation(images: to.TensorInput, name: str | None = None) -> Tensor:
    """The sum of the differences between neighbouring pixels, for each image."""
    try:
        images = to.tensor(images)
        checks.one_or_many_images(images)
        return call(_TOTAL_VARIATION, (images,))
    except BaseException as error:
        report(error)
        raise


def sobel_edges(image: to.TensorInput, name: str | None = None) -> Tensor:
    """Sobel's filters for differences along rows and columns of images: [n, height, width, channels, 2]."""
    try:
        image = to.tensor(image)
        return call(_SOBEL_EDGES, (image,))
    except BaseException as error:
        report(error)
        raise
