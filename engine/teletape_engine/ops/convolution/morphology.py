"""Windows on images whose largest element counts: grayscale dilation, and max_pool with the places of its elements."""

from __future__ import annotations

import numpy as np

from teletape_engine.catalogue.attributes import Ints
from teletape_engine.catalogue.define import check_dtypes, check_word, sample
from teletape_engine.catalogue.families import composite
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Sample
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.convolution.windows import image_lengths, windows
from teletape_engine.ops.elementwise.logic import equal, where
from teletape_engine.ops.nn.blocks import extract_patches
from teletape_engine.ops.reduce import reduce_max
from teletape_engine.ops.shapes.cast import stop_gradient
from teletape_engine.ops.shapes.create import ones_like
from teletape_engine.ops.shapes.index import gather
from teletape_engine.ops.shapes.shape import expand_dims, reshape, squeeze, transpose
from teletape_engine.spec import DTYPES, FLOATING, INDEX, INTEGER, REAL, DType, Spec, finfo, shape_text

_I32, _I64 = DTYPES["int32"], DTYPES["int64"]


def lowest(dtype: DType) -> float | int:
    """The lowest finite number of a dtype, with which TensorFlow begins to compare."""
    return int(np.iinfo(dtype).min) if dtype in INTEGER else float(finfo(dtype).min)


def largest_place(elements: Operand, inside: Operand | None = None) -> Operand:
    """The place of the first largest element inside along the last axis, NaN below all others: int64."""
    last, constant = len(elements.shape) - 1, stop_gradient(elements)
    if elements.dtype in FLOATING:
        constant = where(equal(constant, constant), constant, lowest(elements.dtype))
    if inside is None:
        return ops.argmax(constant, axis=last)
    constant = where(inside, constant, lowest(elements.dtype))
    # The border counts as the lowest number: an element of that value inside is taken before it.
    largest = equal(constant, reduce_max(constant, axis=last, keepdims=True))
    return ops.argmax(ops.cast(ops.logical_and(largest, inside), dtype=_I32), axis=last)


def at_places(elements: Operand, places: Operand) -> Operand:
    """The element at its place along the last axis."""
    n = len(elements.shape) - 1
    return squeeze(gather(elements, expand_dims(places, axis=n), axis=n, batch_dims=n), axis=(n,))


def _windows_last(x: Operand, size: Ints, strides: Ints, rates: Ints, padding: str) -> Operand:
    """The windows on images as [n, rows, columns, channels, elements of a window]."""
    patches = extract_patches(x, sizes=size, strides=strides, rates=rates, padding=padding)
    apart = reshape(patches, shape=(*patches.shape[:3], size[0] * size[1], x.shape[3]))
    return transpose(apart, perm=(0, 1, 2, 4, 3))


def _inside(x: Operand, size: Ints, strides: Ints, rates: Ints, padding: str) -> Operand | None:
    """Which elements of those windows are no border; None: all."""
    check_word("padding", padding, ("SAME", "VALID"))
    if not windows(image_lengths(x.shape), size, strides, padding, None, rates).padded:
        return None
    ones = _windows_last(ones_like(x), size, strides, rates, padding)
    return equal(ones, ones_like(ones))


def _samples() -> list[Sample]:
    # Elements further apart than any filter's, so that no sums are equal, not even in bfloat16.
    apart = np.random.default_rng(0).permutation(40) / 4 - 4
    return [
        sample(apart[:24].reshape(1, 4, 3, 2), apart[:8].reshape(2, 2, 2) / 8),
        sample(apart.reshape(2, 5, 4, 1), apart[:6].reshape(3, 2, 1) / 8, strides=(2, 1), padding="SAME"),
        sample(apart[:30].reshape(1, 6, 5, 1), apart[:4].reshape(2, 2, 1) / 8, rates=(2, 3), padding="SAME"),
        sample(apart[:25].reshape(1, 5, 5, 1), apart[:4].reshape(2, 2, 1) / 8, rates=(3, 2)),
    ]


@composite(
    samples=_samples,
    op_type="Dilation2D",
    tf=(by_hand("nn.dilation2d nn.erosion2d", "lengths are those of four axes; an erosion dilates negatives"),),
)
def dilation2d(
    x: Operand, filters: Operand, *, strides: Ints = (1, 1), rates: Ints = (1, 1), padding: str = "VALID"
) -> Operand:
    """The largest sum of an image and a filter [height, width, c] in each window on images [n, rows, columns, c].

    Grayscale dilation. Of equal sums the first counts: only its terms have a gradient. A border has no effect; NaN is
    never the largest.
    """
    check_dtypes("Dilation2D", (Spec.of(x.shape, x.dtype), Spec.of(filters.shape, filters.dtype)), REAL)
    if len(x.shape) != 4:
        raise InvalidArgumentError(f"input must be 4-dimensional: {shape_text(x.shape)}")
    if len(filters.shape) != 3:
        raise InvalidArgumentError(f"filter must be 3-dimensional: {shape_text(filters.shape)}")
    height, width, depth = filters.shape
    if depth != x.shape[3]:
        raise InvalidArgumentError(f"input and filter must have the same depth: {x.shape[3]} vs {depth}")
    inside = _inside(x, (height, width), strides, rates, padding)
    weights = transpose(reshape(filters, shape=(height * width, depth)), perm=(1, 0))
    sums = _windows_last(x, (height, width), strides, rates, padding) + weights
    if x.dtype in FLOATING:
        number = equal(sums, sums)
        inside = number if inside is None else ops.logical_and(inside, number)
    if inside is not None:
        sums = where(inside, sums, lowest(x.dtype))
    return at_places(sums, largest_place(sums))


@composite(
    samples=[
        sample((2, 4, 4, 2), ksize=(2, 2), strides=(2, 2)),
        sample((2, 5, 4, 2), ksize=(3, 2), strides=(2, 1), padding="SAME", include_batch_in_index=True),
    ],
    op_type="MaxPoolWithArgmax",
    results="output argmax",
    tf=(by_hand("nn.max_pool_with_argmax", "its lengths may be those of four axes"),),
)
def max_pool_with_argmax(
    x: Operand,
    *,
    ksize: Ints,
    strides: Ints,
    padding: str = "VALID",
    include_batch_in_index: bool = False,
    index_type: DType = DTYPES["int64"],
) -> tuple[Operand, Operand]:
    """The largest element of each window, as max_pool, and the place of the first of them: [n, rows, columns, c].

    A place in the image [height, width, c] as one number, or in all images if `include_batch_in_index`.
    """
    if index_type not in INDEX:
        raise InvalidArgumentError(
            f"Value for attr 'Targmax' of {index_type.name} is not in the list of allowed values: int32, int64"
        )
    check_dtypes("MaxPoolWithArgmax", (Spec.of(x.shape, x.dtype),), REAL)
    if len(x.shape) != 4:
        raise InvalidArgumentError(f"tensor_in must be 4-dimensional, found shape {shape_text(x.shape)}")
    inside = _inside(x, ksize, strides, (1, 1), padding)
    elements = _windows_last(stop_gradient(x), ksize, strides, (1, 1), padding)
    n, height, width, depth = x.shape
    ones = ops.cast(ones_like(stop_gradient(x)), dtype=_I64)
    if include_batch_in_index:
        numbers = ops.cumsum(reshape(ones, shape=(n * height * width * depth,)), axis=0, exclusive=True)
    else:
        numbers = ops.cumsum(reshape(ones, shape=(n, height * width * depth)), axis=1, exclusive=True)
    indices = _windows_last(reshape(numbers, shape=x.shape), ksize, strides, (1, 1), padding)
    places = at_places(indices, largest_place(elements, inside))
    return ops.max_pool(x, ksize=ksize, strides=strides, padding=padding), ops.cast(places, dtype=index_type)
