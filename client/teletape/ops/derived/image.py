"""TensorFlow's functions of teletape_engine.ops.image.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.ops import arguments as to
from teletape.ops.dispatch import call
from teletape.program.tracebacks import report
from teletape.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_ADJUST_CONTRAST = ops.adjust_contrast


def adjust_contrast(images: to.TensorInput, contrast_factor: to.TensorInput, name: str | None = None) -> Tensor:
    """(x - mean) · contrast_factor + mean, with the mean of each channel of each image.

    TensorFlow registers no gradient for it: asking for one is a LookupError.
    """
    try:
        return call(_ADJUST_CONTRAST, (images, contrast_factor))
    except Exception as error:
        report(error)
        raise
