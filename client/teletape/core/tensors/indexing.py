"""Python's index of a tensor, `x[1:, ..., None]`, as the attribute `index` of the op strided_slice."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from teletape_engine.errors import InvalidArgumentError

newaxis: Final = None  #: `tf.newaxis`.


def index_spec(key: Any) -> tuple[Any, ...]:
    """A Python index as the attribute `index` of strided_slice.

    Raises:
        TypeError: Something that is no integer, slice, ellipsis, newaxis or integer scalar.
    """
    parts = list(key) if isinstance(key, tuple | list) else [key]
    if sum(part is Ellipsis for part in parts) > 1:
        raise InvalidArgumentError("Multiple ellipses in slice spec not allowed")
    return tuple(_index_part(part) for part in parts)


def _index_part(part: Any) -> Any:
    if part is Ellipsis:
        return "..."
    if part is None:
        return None
    if isinstance(part, slice):
        return tuple(None if bound is None else _integer(bound) for bound in (part.start, part.stop, part.step))
    return _integer(part)


def _integer(value: Any) -> int:
    if isinstance(value, bool | np.bool_):
        raise ValueError("mask cannot be scalar.")
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        raise TypeError(
            "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors "
            f"are valid indices, got {value!r}"
        ) from None
