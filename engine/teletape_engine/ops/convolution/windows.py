"""Windows that slide over images [n, height, width, channels]: their positions, and the border that they need.

Convolution and pooling share it. Padding as TensorFlow's: SAME gives ceil(length / stride) windows and puts the odd
element of the border after the image; VALID has no border; EXPLICIT takes it as `paddings`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.catalogue.attributes import Ints, Pairs
from teletape_engine.catalogue.define import check_word
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import Shape, Spec


class Windows(NamedTuple):
    """The geometry of one sliding window; pairs are (rows, columns).

    Attributes:
        size: Lengths of the window.
        strides: Steps from one window to the next.
        dilations: Steps from one element of a window to the next.
        paddings: (before, after) of the border.
        images: Lengths of the images, without the border.
        counts: Number of windows.
    """

    size: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    paddings: tuple[tuple[int, int], tuple[int, int]]
    images: tuple[int, int]
    counts: tuple[int, int]

    @property
    def padded(self) -> bool:
        """Whether there is a border."""
        return any(map(any, self.paddings))

    @property
    def apart(self) -> bool:
        """Whether no two windows overlap, if the elements of each are adjacent."""
        return all(step >= n or count <= 1 for step, n, count in zip(self.strides, self.size, self.counts, strict=True))

    def bordered(self, xp: ArrayModule, x: Array, value: Any = 0) -> Array:
        """x [n, height, width, channels] with a border of that value; x itself without a border."""
        if not self.padded:
            return x
        (top, bottom), (left, right) = self.paddings
        n, (height, width), channels = x.shape[0], self.images, x.shape[3]
        out = xp.full((n, top + height + bottom, left + width + right, channels), value, x.dtype)
        out[:, top : top + height, left : left + width] = x
        return out

    def border_bytes(self, images: Spec) -> int:
        """Bytes of such images [n, height, width, channels] with the border; 0 without a border."""
        return images.with_shape((images.shape[0], *self.lengths(), images.shape[3])).nbytes if self.padded else 0

    def inside(self, x: Array) -> Array:
        """A bordered array without its border."""
        (top, _), (left, _) = self.paddings
        return x[:, top : top + self.images[0], left : left + self.images[1]]

    def lengths(self) -> tuple[int, int]:
        """Lengths of the images with the border."""
        rows, columns = (n + sum(both) for n, both in zip(self.images, self.paddings, strict=True))
        return rows, columns

    def offsets(self) -> Iterator[tuple[int, int, tuple[slice, ...]]]:
        """(row, column, index): x[index] [n, *counts, channels] holds that row and column of all windows.

        Rows and columns at which every window lies on the border are left out, so that their number is limited by the
        images, however large the window.
        """
        rows, columns = map(self._overlapping, (0, 1))
        for i in rows:
            for j in columns:
                yield i, j, (slice(None), self._slice(0, i), self._slice(1, j))

    def slices(self, axis: int) -> list[slice]:
        """For each position along a window's axis the part of the bordered images that holds it; see `offsets`."""
        return [self._slice(axis, position) for position in self._overlapping(axis)]

    def _slice(self, axis: int, position: int) -> slice:
        first, step, count = position * self.dilations[axis], self.strides[axis], self.counts[axis]
        return slice(first, first + (count - 1) * step + 1 if count else 0, step)

    def _overlapping(self, axis: int) -> range:
        """The positions along a window's axis at which one overlaps the image: 0 <= at·d + k·s - before < length."""
        before, d = self.paddings[axis][0], self.dilations[axis]
        furthest = max(self.counts[axis] - 1, 0) * self.strides[axis]
        first, last = -((furthest - before) // d), (before + self.images[axis] - 1) // d
        return range(max(first, 0), min(last + 1, self.size[axis]))


@lru_cache(maxsize=1024)
def windows(
    images: tuple[int, int], size: tuple[int, int], strides: Ints, padding: str, paddings: Pairs | None, dilations: Ints
) -> Windows:
    """The geometry of windows of `size` on images of those lengths.

    Raises:
        InvalidArgumentError: No such padding, a length below 1, images much smaller than the window.
    """
    for what, pair in (("strides", strides), ("dilations", dilations), ("the window", size)):
        if len(pair) != 2:
            raise InvalidArgumentError(f"{what} must be two lengths, for rows and columns, found {list(pair)}")
        if min(pair) < 1:
            raise InvalidArgumentError(f"{what} must be larger than 0, found {list(pair)}")
    check_word("padding", padding, ("SAME", "VALID", "EXPLICIT"))
    if (padding == "EXPLICIT") != (paddings is not None):
        raise InvalidArgumentError(f"paddings go with padding EXPLICIT and no other, found {padding} with {paddings}")
    reach = [(n - 1) * d + 1 for n, d in zip(size, dilations, strict=True)]
    if padding == "SAME":
        count = [-(-n // s) for n, s in zip(images, strides, strict=True)]
        excess = [max((k - 1) * s + r - n, 0) for k, s, r, n in zip(count, strides, reach, images, strict=True)]
        border: Any = tuple((total // 2, total - total // 2) for total in excess)
    else:
        border = paddings or ((0, 0), (0, 0))
        if len(border) != 2:
            raise InvalidArgumentError(f"paddings must be two pairs, for rows and columns, found {list(border)}")
        if min(map(min, border)) < 0:
            raise InvalidArgumentError("All elements of explicit_paddings must be nonnegative")
        count = [_fitting(n, n + sum(both), r, s) for n, both, r, s in zip(images, border, reach, strides, strict=True)]
    # The step to a second window or element that does not exist is 1: as a step through memory it must be small.
    strides = tuple(step if n > 1 else 1 for step, n in zip(strides, count, strict=True))
    dilations = tuple(step if n > 1 else 1 for step, n in zip(dilations, size, strict=True))
    return Windows(_pair(size), _pair(strides), _pair(dilations), (border[0], border[1]), images, _pair(count))


def _fitting(length: int, bordered: int, reach: int, stride: int) -> int:
    """The number of windows that fit: 0 if a single one does not.

    Raises:
        InvalidArgumentError: It is too long by more than a stride, as in TensorFlow.
    """
    room = bordered - reach + stride
    count = room // stride if room >= 0 else -(-room // stride)
    if count < 0:
        raise InvalidArgumentError(
            f"Computed output size would be negative: {count} [input_size: {length}, effective_filter_size: {reach}, "
            f"stride: {stride}]"
        )
    return count


def _pair(lengths: Iterable[int]) -> tuple[int, int]:
    rows, columns = lengths
    return rows, columns


def image_lengths(shape: Shape) -> tuple[int, int]:
    """Height and width of images [..., height, width, channels]."""
    return shape[-3], shape[-2]
