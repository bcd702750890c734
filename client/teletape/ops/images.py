"""`tf.image` functions that are more than one call of an op, or whose arguments need more than a conversion."""

from __future__ import annotations

from teletape.ops import arguments as to
from teletape.ops.dispatch import call, convert_to_tensor
from teletape.ops.windows import lengths, word
from teletape.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

__all__ = ["extract_patches"]


def extract_patches(
    images: to.TensorInput,
    sizes: to.IntsInput,
    strides: to.IntsInput,
    rates: to.IntsInput,
    padding: str,
    name: str | None = None,
) -> Tensor:
    """The windows on images [n, height, width, c] as rows of height of window · width · c elements."""
    attrs = {"sizes": lengths(sizes, 2, "sizes"), "strides": lengths(strides, 2, "strides")}
    rate = lengths(rates, 2, "rates")
    return call(ops.extract_patches, (convert_to_tensor(images),), **attrs, rates=rate, padding=word(padding))
