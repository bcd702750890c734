"""Boxes of images that are drawn so that they show enough of the objects in them: TensorFlow's numbers, on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from teletape_engine.arrays import Array, ArrayModule, philox
from teletape_engine.arrays.cpu import on_host
from teletape_engine.catalogue.define import check_dtypes, on_gpu, op, sample
from teletape_engine.catalogue.families import batch_loop
from teletape_engine.catalogue.op import Trait
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.random.philox import check_state, unsigned
from teletape_engine.spec import DTYPES, FLOATING, INTEGER, Spec, shape_text

_F32, _I64 = DTYPES["float32"], DTYPES["int64"]
_WORDS: Final = 256  #: Random words that are computed together.
_RANGE: Final = 2**32


class Box(NamedTuple):
    """A rectangle of whole pixels."""

    top: int
    left: int
    bottom: int
    right: int

    def area(self) -> np.float32:
        """Its number of pixels."""
        return np.float32((self.right - self.left) * (self.bottom - self.top))

    def inside(self, other: Box) -> Box:
        """The part of it that is in another; an empty one at the corner if there is none."""
        top, left = max(self.top, other.top), max(self.left, other.left)
        bottom, right = min(self.bottom, other.bottom), min(self.right, other.right)
        return Box(0, 0, 0, 0) if left > right or top > bottom else Box(top, left, bottom, right)


def _spec(
    state: Spec,
    image_size: Spec,
    bounding_boxes: Spec,
    *,
    min_object_covered: float,
    min_aspect_ratio: float,
    max_aspect_ratio: float,
    min_area: float,
    max_area: float,
    max_attempts: int,
    use_image_if_no_bounding_boxes: bool,
) -> Spec:
    check_state(state)
    check_dtypes("SampleDistortedBoundingBoxV2", (image_size,), INTEGER)
    check_dtypes("SampleDistortedBoundingBoxV2", (bounding_boxes,), FLOATING)
    if image_size.shape != (3,):
        raise InvalidArgumentError(
            f"image_size must contain 3 elements, height, width and channels, found {shape_text(image_size.shape)}"
        )
    if bounding_boxes.ndim != 3 or bounding_boxes.shape[2] != 4:
        raise InvalidArgumentError(
            f"input boxes must be 3-dimensional [batch, num_boxes, coords], found {shape_text(bounding_boxes.shape)}"
        )
    if not bounding_boxes.size and not use_image_if_no_bounding_boxes:
        raise InvalidArgumentError(
            "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you wish to not "
            "provide any bounding boxes."
        )
    if not min_object_covered >= 0:
        raise InvalidArgumentError(f"Min object covered must be non-negative: {min_object_covered}")
    if not (min_aspect_ratio > 0 and max_aspect_ratio > 0):
        raise InvalidArgumentError(f"Aspect ratio range must be non-negative: [{min_aspect_ratio}, {max_aspect_ratio}]")
    if not (0 < min_area <= 1 and 0 < max_area <= 1):
        raise InvalidArgumentError(f"Area range must be above 0 and at most 1, found [{min_area}, {max_area}]")
    if max_attempts < 1:
        raise InvalidArgumentError(f"Max attempts must be positive: {max_attempts}")
    return Spec.of((4,), _I64)


_STATE: Final = np.array([0, 3, 7])
_OBJECTS: Final = np.array([[[0.1, 0.2, 0.6, 0.7], [0.5, 0.5, 1.0, 0.9]]])


@op(
    infer=_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_loop,
    samples=[
        sample(_STATE, np.array([40, 50, 3]), _OBJECTS),
        sample(
            _STATE,
            np.array([30, 20, 1], np.int32),
            np.zeros((1, 0, 4)),
            min_area=0.3,
            max_area=0.5,
            use_image_if_no_bounding_boxes=True,
        ),
    ],
    op_type="SampleDistortedBoundingBoxV2",
    tf=(
        by_hand(
            "image.sample_distorted_bounding_box image.stateless_sample_distorted_bounding_box",
            "there are three results",
        ),
    ),
    refuses=("image_size",),
    like=(0, 1, 2),
    workspace=lambda state, image_size, bounding_boxes, **_: (
        philox.workspace(_WORDS) + 8 * _WORDS + 500 * bounding_boxes.size
    ),
    integers=("state", "image_size"),
    traits=[Trait.RANDOM],
)
@on_gpu(down="the state and the boxes", up="the crop, which the host draws")
def philox_box(
    xp: ArrayModule,
    state: Array,
    image_size: Array,
    bounding_boxes: Array,
    *,
    min_object_covered: float = 0.1,
    min_aspect_ratio: float = 0.75,
    max_aspect_ratio: float = 1.33,
    min_area: float = 0.05,
    max_area: float = 1.0,
    max_attempts: int = 100,
    use_image_if_no_bounding_boxes: bool = False,
) -> Array:
    """A box [y, x, height, width] of an image that shows a part of an object, from a state of Philox: int64 [4].

    `image_size` is [height, width, channels]; `bounding_boxes` [m, n, 4] are objects, in fractions of the image. The
    box has a width over its height, and a share of the image's area, between two bounds each, and shows at least
    `min_object_covered` of the area of an object. It is the whole image if `max_attempts` have found none.

    Raises:
        InvalidArgumentError: A coordinate outside [0, 1], or a size that is negative or too large.
    """
    height, width = (int(length) for length in on_host(image_size)[:2])
    for what, length in (("height", height), ("width", width)):
        if not 0 <= length < np.iinfo(np.int32).max:
            raise InvalidArgumentError(f"image {what} cannot be >= int32 max, or negative: {length}")
    whole = Box(0, 0, height, width)
    objects = _objects(on_host(bounding_boxes).reshape((-1, 4)).astype(_F32), height, width) or [whole]
    words = _drawn(unsigned(state))
    low, high = np.float32(min_aspect_ratio), np.float32(max_aspect_ratio)
    areas = np.float32(min_area), np.float32(max_area)
    box = whole
    for _ in range(max_attempts):
        aspect = _fraction(next(words)) * (high - low) + low
        attempt = _attempt(width, height, areas, aspect, lambda n: _below(n, words))
        if attempt is not None and _shows(attempt, np.float32(min_object_covered), objects):
            box = attempt
            break
    sides = [box.top, box.left, box.bottom - box.top, box.right - box.left]
    return xp.asarray(np.array(sides, np.int64))


def _objects(boxes: Array, height: int, width: int) -> list[Box]:
    """Boxes [n, 4] in pixels."""
    outside = ~((boxes >= 0) & (boxes <= 1))
    if outside.any():
        raise InvalidArgumentError(f"All bounding box coordinates must be in [0.0, 1.0]: {boxes[outside][0]}")
    pixels = np.trunc(boxes * np.array([height, width] * 2, _F32)).astype(np.int64)
    return [Box(*sides) for sides in pixels.tolist()]


def _shows(box: Box, least: np.float32, objects: list[Box]) -> bool:
    """Whether a box has that share of the area of an object."""
    if box.area() < 1:
        return False
    return any(box.inside(each).area() / each.area() >= least for each in objects if each.area() >= 1)


def _attempt(
    width: int, height: int, areas: tuple[np.float32, np.float32], aspect: np.float32, below: Callable[[int], int]
) -> Box | None:
    """A box of that aspect ratio anywhere in an image; None if its area is outside `areas` times the image's."""
    if not width or not height or areas[0] > areas[1]:
        return None
    least, most = (share * np.float32(width) * np.float32(height) for share in areas)
    tall, tallest = (int(np.rint(np.sqrt(area / aspect))) for area in (least, most))
    if _across(tallest, aspect) > width:
        tallest = int(np.float32(width + 0.5 - np.float32(1e-7)) / aspect)
        if _across(tallest, aspect) > width:
            tallest -= 1
    tallest = min(tallest, height)
    tall = tall + below(tallest - tall + 1) if tall < tallest else tallest
    broad = _across(tall, aspect)
    if np.float32(broad * tall) < least:
        tall += 1
        broad = _across(tall, aspect)
    if np.float32(broad * tall) > most:
        tall -= 1
        broad = _across(tall, aspect)
    fits = least <= np.float32(broad * tall) <= most and 0 < broad <= width and 0 < tall <= height
    if not fits:
        return None
    top = below(height - tall) if tall < height else 0
    left = below(width - broad) if broad < width else 0
    return Box(top, left, top + tall, left + broad)


def _across(height: int, aspect: np.float32) -> int:
    """The width of a box of that height."""
    return int(np.rint(np.float32(height) * aspect))


def _drawn(state: philox.State) -> Iterator[int]:
    """Yields random words without end."""
    for begin in range(0, 2**62, _WORDS // philox.WORDS):
        counter = (state[0] + state[1] * 2**64 + begin) % 2**128
        yield from philox.words([counter % 2**64, counter // 2**64, state[2]], _WORDS).tolist()


def _fraction(word: int) -> np.float32:
    """A number in [0, 1) of 23 bits."""
    return np.float32((word & (2**23 - 1)) / 2**23)


def _below(n: int, words: Iterator[int]) -> int:
    """A number in [0, n): words that would favour the lowest are left out."""
    if n & (n - 1) == 0:
        return next(words) & (n - 1)
    rest = (_RANGE - 1) % n + 1
    return next(word for word in words if word >= rest) % n
