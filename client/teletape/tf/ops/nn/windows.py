"""Arguments of convolution and pooling as attributes of ops: lengths for each axis, borders, the axis of channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from teletape.core.calls import arguments as to
from teletape.core.tensors.tensor import TensorLike
from teletape_engine.errors import InvalidArgumentError, UnimplementedError

_FORMATS: Final = {1: ("NWC", "NCW", "NHWC", "NCHW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


def channels_first(data_format: Any, n: int) -> bool:
    """Whether channels come before the n axes of windows; ValueError for an unknown format."""
    if data_format is None:
        return False
    if data_format not in _FORMATS[n]:
        raise ValueError(
            f"`data_format` must be one of {', '.join(_FORMATS[n])} for {n} spatial dimensions, found {data_format!r}"
        )
    return bool(data_format.startswith("NC"))


def lengths(x: Any, n: int, what: str, first: bool = False) -> tuple[int, ...]:
    """One length for each of n axes: from one, n, or n + 2 lengths. None: 1 each.

    Raises:
        UnimplementedError: Lengths other than 1 along the batch or the channels.
        ValueError: Another count of lengths.
    """
    if x is None:
        return (1,) * n
    numbers = (int(x),) if isinstance(x, int | float) else to.ints(x, what)
    if len(numbers) == 1:
        return numbers * n
    if len(numbers) == n:
        return numbers
    if len(numbers) != n + 2:
        raise ValueError(f"{what} should be of length 1, {n} or {n + 2}. Received: {what}={x} of length {len(numbers)}")
    inner, outer = (numbers[2:], numbers[:2]) if first else (numbers[1:-1], (numbers[0], numbers[-1]))
    if outer != (1, 1):
        raise UnimplementedError(
            f"Current implementation does not yet support {what} in the batch and depth dimensions."
        )
    return inner


def border(x: Any, n: int, first: bool = False) -> dict[str, Any]:
    """The attributes of a padding: a word, or n + 2 pairs [before, after], zero for the batch and the channels."""
    if isinstance(x, str):
        return {"padding": x}
    if isinstance(x, TensorLike):
        x = x.numpy().tolist()
    if not isinstance(x, Sequence) or len(x) != n + 2:
        size = f" of size {len(x)}" if isinstance(x, Sequence) else ""
        raise ValueError(f"When padding is a list, it must be of size {n + 2}. Received: padding={x}{size}")
    pairs = tuple((int(before), int(after)) for before, after in x)
    inner, outer = (pairs[2:], pairs[:2]) if first else (pairs[1:-1], (pairs[0], pairs[-1]))
    if any(map(any, outer)):
        raise InvalidArgumentError("Nonzero explicit padding in the batch or depth dimensions is not supported")
    return {"padding": "EXPLICIT", "paddings": inner}


def word(x: Any) -> str:
    """A word such as "SAME"; TypeError for anything else."""
    if not isinstance(x, str):
        raise TypeError(f"Expected string for argument 'padding' not {x!r}.")
    return x
