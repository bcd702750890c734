"""`tf.data`: datasets over arrays of this process. Slicing, shuffling and batching happen here, not on a server.

As in TensorFlow, no gradient passes through a dataset: its elements are constants.
"""

from __future__ import annotations

import copy
import itertools
import operator
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

import numpy as np

from teletape.ops import random
from teletape.ops.arrays import stack
from teletape.ops.dispatch import call, constant, convert_to_tensor
from teletape.tensors import nest
from teletape.tensors.convert import host_array
from teletape.tensors.tensor import TensorLike
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError

__all__ = ["AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "Dataset"]

AUTOTUNE: Final = -1
INFINITE_CARDINALITY: Final = -1
UNKNOWN_CARDINALITY: Final = -2


class Dataset:
    """A sequence of elements, each a tensor or a tuple or dict of tensors, which every iteration creates anew.

    Start with `from_tensor_slices` or `from_tensors`; every method gives a new dataset and leaves this one as it is.
    """

    def __init__(self, elements: Callable[[], Iterator[Any]], cardinality: int) -> None:
        self._elements = elements
        self._cardinality = cardinality

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """The slices of `tensors` along their first axis.

        Args:
            tensors: An array, tensor or list, or tuples and dicts of them; all with the same first size. Their values
                are read and copied now.

        Raises:
            ValueError: Nothing to slice, a scalar, or first sizes that differ.
        """
        columns = _each(host_array, tensors)
        arrays = _leaves(columns)
        if any(array.ndim == 0 for array in arrays):
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        size = len(arrays[0])
        for array in arrays:
            if len(array) != size:
                raise ValueError(f"Dimensions {size} and {len(array)} are not compatible")

        def elements() -> Iterator[Any]:
            for i in range(size):
                yield _each(operator.itemgetter(i), columns)

        return Dataset(elements, size)

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """One element: `tensors` whole. The argument is `from_tensor_slices`'s, scalars allowed."""
        element = _each(host_array, tensors)
        _leaves(element)
        return Dataset(lambda: iter([element]), 1)

    def batch(self, batch_size: int, drop_remainder: bool = False) -> Dataset:
        """Elements stacked along a new first axis, `batch_size` at a time.

        Args:
            batch_size: At least 1.
            drop_remainder: Leave out a last batch that is smaller.

        Raises:
            InvalidArgumentError: `batch_size` is less than 1.
        """
        size = _count(batch_size)
        if size < 1:
            raise InvalidArgumentError(f"Batch size must be greater than zero. It is {size}.")

        def elements() -> Iterator[Any]:
            source = self._elements()
            while taken := list(itertools.islice(source, size)):
                if len(taken) == size or not drop_remainder:
                    yield nest.map_structure(_stacked, *taken)

        if self._cardinality == INFINITE_CARDINALITY:
            return Dataset(elements, INFINITE_CARDINALITY)
        whole, rest = divmod(self._cardinality, size)
        return Dataset(elements, whole + bool(rest and not drop_remainder))

    def shuffle(
        self, buffer_size: int, seed: int | None = None, reshuffle_each_iteration: bool | None = None
    ) -> Dataset:
        """Elements in random order: each is drawn from a buffer that the following ones refill.

        Args:
            buffer_size: Elements held back; shuffles evenly when it is at least the size of the dataset.
            seed: For the same order in every run; TensorFlow's orders are other ones. None: the same after
                `tf.random.set_seed` only.
            reshuffle_each_iteration: False for the same order in every iteration of this dataset.

        Raises:
            InvalidArgumentError: `buffer_size` is less than 1.
        """
        size = _count(buffer_size)
        if size < 1:
            raise InvalidArgumentError(f"buffer_size must be greater than zero. It is {size}.")
        # The program's own draw is what tf.random.set_seed makes repeatable.
        root = operator.index(seed) if seed is not None else random.next_draw()
        epochs = itertools.repeat(0) if reshuffle_each_iteration is False else itertools.count()

        def elements() -> Iterator[Any]:
            draw = Random(f"{root}/{next(epochs)}").randrange
            source = self._elements()
            buffer = list(itertools.islice(source, size))
            for element in source:
                at = draw(len(buffer))
                yield buffer[at]
                buffer[at] = element
            while buffer:
                at = draw(len(buffer))
                buffer[at], buffer[-1] = buffer[-1], buffer[at]
                yield buffer.pop()

        return Dataset(elements, self._cardinality)

    def repeat(self, count: int | None = None) -> Dataset:
        """This dataset `count` times over; without end when `count` is None or negative."""
        times = -1 if count is None else _count(count)
        epochs: Callable[[], Iterator[int]] = itertools.count if times < 0 else lambda: iter(range(times))

        def elements() -> Iterator[Any]:
            for _ in epochs():
                empty = True
                for element in self._elements():
                    empty = False
                    yield element
                if empty:  # and so would every later round be
                    return

        if self._cardinality == 0 or times == 0:
            return Dataset(elements, 0)
        if times < 0 or self._cardinality == INFINITE_CARDINALITY:
            return Dataset(elements, INFINITE_CARDINALITY)
        return Dataset(elements, self._cardinality * times)

    def take(self, count: int) -> Dataset:
        """The first `count` elements; all when `count` is negative or there are fewer."""
        wanted = _count(count)
        if wanted < 0:
            return self
        size = wanted if self._cardinality == INFINITE_CARDINALITY else min(wanted, self._cardinality)
        return Dataset(lambda: itertools.islice(self._elements(), wanted), size)

    def map(
        self, map_func: Callable[..., Any], num_parallel_calls: int | None = None, deterministic: bool | None = None
    ) -> Dataset:
        """`map_func` of every element; a tuple is passed as several arguments.

        The function runs as Python on every element (TensorFlow traces it once); a list that it returns counts as a
        tuple. Nothing that it computes is connected to a tape outside. It runs in this thread, in order:
        `num_parallel_calls` and `deterministic` change nothing.

        Raises:
            ValueError: `map_func` is not callable.
        """
        if not callable(map_func):
            raise ValueError(f"Argument `func` must be a callable. Received func={map_func} (of type {type(map_func)})")

        def elements() -> Iterator[Any]:
            for element in self:
                result = map_func(*element) if type(element) is tuple else map_func(element)
                yield _each(_cut_off, tuple(result) if type(result) is list else result)

        return Dataset(elements, self._cardinality)

    def enumerate(self, start: int = 0) -> Dataset:
        """Pairs of a count from `start`, a scalar int64, and the element."""
        first = _count(start)

        def elements() -> Iterator[Any]:
            for i, element in enumerate(self._elements(), first):
                yield np.int64(i), element

        return Dataset(elements, self._cardinality)

    def prefetch(self, buffer_size: int) -> Dataset:
        """This dataset: its elements are in memory already."""
        return self

    def cardinality(self) -> Any:
        """The number of elements, a scalar int64 tensor: `tf.data.INFINITE_CARDINALITY` (-1) when without end."""
        return constant(np.int64(self._cardinality))

    def __len__(self) -> int:
        if self._cardinality == INFINITE_CARDINALITY:
            raise TypeError("The dataset is infinite.")
        return self._cardinality

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        for element in self._elements():
            yield nest.map_structure(_tensor, element)


def _each(function: Callable[[Any], Any], structure: Any) -> Any:
    """`function` of each leaf, where lists are leaves, unlike in `tf.nest`."""
    if isinstance(structure, tuple):
        parts = [_each(function, part) for part in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    if isinstance(structure, dict):
        mapping = copy.copy(structure)  # keeps the type, and the factory of a defaultdict
        mapping.update({key: _each(function, part) for key, part in structure.items()})
        return mapping
    return function(structure)


def _leaves(columns: Any) -> list[Any]:
    leaves = nest.flatten(columns)
    if not leaves:
        raise ValueError("Invalid `element`. `element` should not be empty.")
    return leaves


def _stacked(*leaves: Any) -> Any:
    return stack(leaves) if isinstance(leaves[0], TensorLike) else np.stack(leaves)


def _tensor(leaf: Any) -> Any:
    return leaf if isinstance(leaf, TensorLike) else constant(leaf)


def _cut_off(result: Any) -> Any:
    return call(ops.stop_gradient, (convert_to_tensor(result),))


def _count(value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype int64") from None
