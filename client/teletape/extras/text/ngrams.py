"""`tf.strings.ngrams` and `tf.strings.unsorted_segment_join`: strings joined with their neighbours, or by their ids.

Each reads the values of its tensors, like all functions of strings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.errors import InvalidArgumentError
from teletape.core.tensors.tensor import Tensor
from teletape.tf.files.host import array_of, strings_of
from teletape_engine.spec import shape_text


def ngrams(
    data: Any,
    ngram_width: int | Iterable[int],
    separator: str = " ",
    pad_values: Any = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Tensor:
    """Returns the n-grams of each row: neighbouring strings, joined.

    Args:
        data: Strings [..., n].
        ngram_width: The number of strings that are joined; or several numbers, whose results follow each other.
        separator: Between two strings.
        pad_values: A string to add before and after each row, or a pair of them; None: no padding.
        padding_width: The number of added strings, at most ngram_width - 1; None: that number.
        preserve_short_sequences: Whether a row that is too short is joined as a whole.
        name: Without effect.

    Returns:
        Strings [..., m].

    Raises:
        ValueError: A scalar, a width below 1, or a padding width without a padding value.
        TypeError: A padding value that is no string.

    Example:
        tf.strings.ngrams(["a", "b", "c"], 2)
    """
    strings = strings_of(data, "data")
    if not strings.ndim:
        raise ValueError("Data must have rank>0")
    widths = list(ngram_width) if isinstance(ngram_width, Iterable) else [to.whole(ngram_width)]
    if any(width < 1 for width in widths):
        raise ValueError(f"All ngram_widths must be greater than 0. Got {ngram_width}")
    before, after = _paddings(pad_values)
    if padding_width is not None:
        if pad_values is None:
            raise ValueError("pad_values must be provided if padding_width is set.")
        if padding_width < 0:
            raise ValueError("padding_width must be greater than 0.")
    most = 0 if pad_values is None else max(widths) if padding_width is None else padding_width
    between = separator.encode()
    rows = strings.reshape(-1, strings.shape[-1]) if strings.size else np.empty((0, 0), object)
    results = []
    for row in rows:
        words = row.tolist()
        joined = [ngram for width in widths for ngram in _joined(words, width, most, before, after, between)]
        if preserve_short_sequences and not joined:
            joined = _joined(words, len(words) + 2 * most, most, before, after, between)
        results.append(joined)
    count = len(results[0]) if results else 0
    flat = np.empty(len(results) * count, object)
    flat[:] = [ngram for joined in results for ngram in joined]
    return convert_to_tensor(flat.reshape(*strings.shape[:-1], count))


def _paddings(values: Any) -> tuple[bytes, bytes]:
    """Returns the strings to add before and after each row."""
    pair = values if isinstance(values, list | tuple) else (values, values)
    if values is None:
        return b"", b""
    if len(pair) != 2 or not all(isinstance(value, str | bytes) for value in pair):
        raise TypeError("pad_values must be a string, tuple of strings, or None.")
    before, after = (value.encode() if isinstance(value, str) else value for value in pair)
    return before, after


def _joined(words: list[bytes], width: int, most: int, before: bytes, after: bytes, between: bytes) -> list[bytes]:
    """Returns each `width` neighbouring words, joined, with at most width - 1 paddings at both ends."""
    padding = min(most, width - 1)
    row = [before] * padding + words + [after] * padding
    return [between.join(row[start : start + width]) for start in range(len(row) - width + 1)]


def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: Any, separator: str = "", name: str | None = None
) -> Tensor:
    """Joins the strings that share an id, in their order; an id without strings gives an empty string.

    Args:
        inputs: Strings [*segment_ids.shape, *rest].
        segment_ids: Whole numbers in [0, num_segments).
        num_segments: The number of segments.
        separator: Between two strings.
        name: Without effect.

    Returns:
        Strings [num_segments, *rest].

    Raises:
        InvalidArgumentError: An id out of range, or shapes that do not fit.

    Example:
        tf.strings.unsorted_segment_join(["a", "b", "c"], [0, 1, 0], 2, separator="-")
    """
    strings, ids, count = strings_of(inputs, "inputs"), array_of(convert_to_tensor(segment_ids)), to.whole(num_segments)
    if count < 0:
        raise InvalidArgumentError(f"Number of segments must be non-negative but got {count}")
    if not ids.ndim:
        raise InvalidArgumentError("Segment_id cannot have rank 0")
    if ids.dtype.kind not in "iu":
        raise InvalidArgumentError(f"segment_ids must be whole numbers, found {ids.dtype}")
    if strings.shape[: ids.ndim] != ids.shape:
        raise InvalidArgumentError(
            f"Segment dimension is {shape_text(ids.shape)} while input dimension is {shape_text(strings.shape)}"
        )
    if ids.size and (ids.min() < 0 or ids.max() >= count):
        raise InvalidArgumentError("segment_ids are not allowed to exceed num_segments or to have negative values.")
    rest = strings.shape[ids.ndim :]
    width = math.prod(rest)
    rows = strings.reshape(ids.size, width)
    joined = np.full((count, width), b"", object)
    between, flat = separator.encode(), ids.reshape(-1)
    for segment in np.unique(flat).tolist():
        for column, texts in enumerate(rows[flat == segment].T):
            joined[segment, column] = between.join(texts)
    return convert_to_tensor(joined.reshape(count, *rest))
