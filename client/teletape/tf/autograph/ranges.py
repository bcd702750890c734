"""`tf.range` in converted code: a loop over it counts, and needs no tensor of the numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.functions.tensor_spec import TensorSpec
from teletape.core.sessions.current import current
from teletape.core.tensors.tensor import EagerTensor, Tensor, TensorLike
from teletape_engine.catalogue.namespace import ops


class Range(EagerTensor):
    """The result of `tf.range` while a function is traced; its numbers are computed if an op uses them.

    Args:
        start: The first number, a scalar tensor.
        limit: The end.
        delta: The step.
        numbers: Returns the numbers as a tensor.
    """

    __slots__ = ("_numbers", "_tensor", "delta", "limit", "start")

    def __init__(self, start: Tensor, limit: Tensor, delta: Tensor, numbers: Callable[[], Tensor]) -> None:
        self.start, self.limit, self.delta, self._numbers = start, limit, delta, numbers
        self._tensor: Tensor | None = None
        self.session = current()

    @property
    def recorded(self) -> Any:
        """The recorded value."""
        if self._tensor is None:
            self._tensor = self._numbers()
        return self._tensor.recorded

    def count(self) -> int | None:
        """Returns how many numbers there are, if that is known while the function is traced."""
        hosts = [getattr(part.operand(), "host", None) for part in (self.start, self.limit, self.delta)]
        if any(host is None for host in hosts):
            return None
        first, last, step = (np.asarray(host).item() for host in hosts)
        return max(0, int(np.ceil((last - first) / step))) if step else None


def numbers_of(over: Range) -> list[Any]:
    """Returns the numbers of a range that is known while the function is traced."""
    first, step = (np.asarray(part.operand().host).item() for part in (over.start, over.delta))
    return [first + step * i for i in range(over.count() or 0)]


class Numbers:
    """The numbers of a range that is known while the function is traced, one by one.

    Args:
        over: The range.
    """

    def __init__(self, over: Range) -> None:
        self._numbers, self._dtype = numbers_of(over), over.start.dtype
        self.element_spec = TensorSpec([], self._dtype)

    def __iter__(self) -> Iterator[Tensor]:
        return (constant(number, self._dtype) for number in self._numbers)


def ranged(numbers: Callable[..., Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """Returns `tf.range(*args, **kwargs)` for converted code.

    Args:
        numbers: `tf.range`.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
    """
    names = ("start", "limit", "delta", "dtype", "name")
    named = dict(zip(names, args, strict=False)) | kwargs
    if not current().tracing or "start" not in named or not named.keys() <= set(names):
        return numbers(*args, **kwargs)
    start, limit, delta = named["start"], named.get("limit"), named.get("delta", 1)
    if limit is None:
        start, limit = 0, start
    parts = [start, limit, delta]
    wanted = named.get("dtype")
    tensors = [part for part in parts if isinstance(part, TensorLike)]
    if wanted is None and tensors:
        wanted = max((tensor.dtype for tensor in tensors), key=lambda dtype: (dtype.is_floating, dtype.size))
    if wanted is None and any(isinstance(part, float | np.floating) for part in parts):
        wanted = "float32"
    first, last, step = (_scalar(part, wanted) for part in parts)
    return Range(first, last, step, lambda: numbers(*args, **kwargs))


def _scalar(part: Any, dtype: Any) -> Tensor:
    if isinstance(part, TensorLike):
        tensor = convert_to_tensor(part)
        return tensor if dtype is None or tensor.dtype == dtype else call(ops.cast, (tensor,), dtype=dtype.name)
    return convert_to_tensor(part, dtype)
