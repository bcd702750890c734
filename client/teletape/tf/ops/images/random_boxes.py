"""`tf.image`: random boxes around objects. By hand: there are three results. Random numbers are not read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.tf.ops.random.stateful import next_state
from teletape.tf.ops.random.stateless import state
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError


class SampleDistortedBoundingBox(NamedTuple):
    """The result of sample_distorted_bounding_box, for tf.slice and for draw_bounding_boxes."""

    begin: Tensor
    size: Tensor
    bboxes: Tensor


def sample_distorted_bounding_box(
    image_size: to.TensorInput,
    bounding_boxes: to.TensorInput,
    seed: int = 0,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Sequence[float] | None = None,
    area_range: Sequence[float] | None = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> SampleDistortedBoundingBox:
    """Draws a random box of an image that shows a part of an object; the whole image if there is no such box.

    Args:
        image_size: [height, width, channels], integers.
        bounding_boxes: float32 [m, n, 4]: objects, y1, x1, y2, x2 in fractions of the image.
        seed: The box follows from it and from the program's seed; 0: another box at each call.
        min_object_covered: The smallest share of an object that it shows.
        aspect_ratio_range: Bounds of its width over its height; None: 0.75 and 1.33.
        area_range: Bounds of its share of the image; None: 0.05 and 1.
        max_attempts: The number of random boxes that are tried; None: 100.
        use_image_if_no_bounding_boxes: Whether the image is the object if there is none.
        name: Without effect.

    Returns:
        begin [y, x, 0] and size [height, width, -1] for tf.slice, and float32 [1, 1, 4] for draw_bounding_boxes.

    Raises:
        InvalidArgumentError: Shapes that do not fit, a coordinate outside [0, 1], bounds out of range.

    Example:
        tf.image.sample_distorted_bounding_box(
            [8, 8, 3],
            np.zeros([1, 0, 4], np.float32),
            area_range=[1.0, 1.0],
            aspect_ratio_range=[1.0, 1.0],
            use_image_if_no_bounding_boxes=True,
        )
    """
    attempts = 100 if max_attempts is None else int(max_attempts)
    drawn = next_state("sample_distorted_bounding_box", max(attempts, 0), seed or None)
    options = _options(min_object_covered, aspect_ratio_range, area_range, attempts, use_image_if_no_bounding_boxes)
    return _sampled(drawn, image_size, bounding_boxes, options)


def stateless_sample_distorted_bounding_box(
    image_size: to.TensorInput,
    bounding_boxes: to.TensorInput,
    seed: to.TensorInput,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Sequence[float] | None = None,
    area_range: Sequence[float] | None = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> SampleDistortedBoundingBox:
    """Like sample_distorted_bounding_box; the box follows from the seed, two integers.

    Example:
        tf.image.stateless_sample_distorted_bounding_box(
            [8, 8, 3], np.zeros([1, 0, 4], np.float32), seed=[1, 2], use_image_if_no_bounding_boxes=True
        )
    """
    attempts = 100 if max_attempts is None else int(max_attempts)
    options = _options(min_object_covered, aspect_ratio_range, area_range, attempts, use_image_if_no_bounding_boxes)
    return _sampled(state(seed), image_size, bounding_boxes, options)


def _options(covered: Any, aspects: Any, areas: Any, attempts: int, whole: Any) -> dict[str, Any]:
    bounds = []
    for what, numbers, default in (("Aspect ratio", aspects, (0.75, 1.33)), ("Area", areas, (0.05, 1.0))):
        pair = tuple(default if numbers is None else numbers)
        if len(pair) != 2:
            raise InvalidArgumentError(f"{what} range field must specify 2 dimensions, found {list(pair)}")
        bounds += [float(bound) for bound in pair]
    return {
        "min_object_covered": float(covered),
        "min_aspect_ratio": bounds[0],
        "max_aspect_ratio": bounds[1],
        "min_area": bounds[2],
        "max_area": bounds[3],
        "max_attempts": attempts,
        "use_image_if_no_bounding_boxes": bool(whole),
    }


def _sampled(draw: Tensor, image_size: Any, bounding_boxes: Any, options: dict[str, Any]) -> SampleDistortedBoundingBox:
    size = convert_to_tensor(image_size)
    objects = convert_to_tensor(bounding_boxes, dtypes.float32)
    box = call(ops.philox_box, (draw, size, objects), **options)
    first, sides = (call(ops.strided_slice, (box,), index=((k, k + 2, None),)) for k in (0, 2))
    begin, length = (call(ops.cast, (part,), dtype=size.dtype.np) for part in (first, sides))
    begin = call(ops.pad, (begin,), paddings=((0, 1),))
    length = call(ops.pad, (length,), paddings=((0, 1),), constant_value=-1)
    ends = call(ops.cast, (call(ops.concat, (first, first + sides), axis=0),), dtype=dtypes.float32.np)
    lengths = call(ops.strided_slice, (size,), index=((0, 2, None),))
    whole = call(ops.cast, (call(ops.concat, (lengths, lengths), axis=0),), dtype=dtypes.float32.np)
    places = call(ops.reshape, (call(ops.div, (ends, whole)),), shape=(1, 1, 4))
    return SampleDistortedBoundingBox(begin, length, places)
