"""Iterators over a dataset: `tf.data.Iterator` with tensors, and `tf.data.NumpyIterator` with arrays."""

from __future__ import annotations

import itertools
from collections.abc import Iterator as PythonIterator
from collections.abc import Sequence
from typing import Any

import numpy as np

from teletape.core.errors import OutOfRangeError
from teletape.core.functions.not_traceable import GOES_OVER_A_DATASET, NotTraceable
from teletape.core.functions.tensor_spec import TensorSpec
from teletape.core.program.tracebacks import reports
from teletape.core.sessions.current import current
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import EagerTensor, TensorLike
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.core.variables.trackable import Trackable
from teletape.tf.data.elements import structure
from teletape.tf.data.elements.leaves import host_of, tensor_of
from teletape.tf.data.elements.mapped import Element, is_dataset, leaves_of
from teletape.tf.data.elements.optional import Optional
from teletape_engine.spec import Spec


class Iterator(Trackable):
    """The elements of a dataset as tensors, once. A checkpoint saves how many were taken, and restores by skipping.

    Args:
        dataset: The dataset.
    """

    def __init__(self, dataset: Any) -> None:
        if current().tracing:
            raise NotTraceable(GOES_OVER_A_DATASET, "the loop outside the function, and a function for its body")
        self._dataset = dataset
        self._elements: PythonIterator[Element] = dataset._start_for_session(0)
        self._pattern: Any = None
        self._position = Position()
        self._session = current()
        self._next: list[Any] = []  # an element that `peek` returned and nothing has taken

    @property
    def element_spec(self) -> Any:
        """The spec of the elements: a TensorSpec for each tensor."""
        return self._dataset.element_spec

    def __iter__(self) -> Iterator:
        return self

    @reports
    def __next__(self) -> Any:
        session = current()
        if session.tracing and session is not self._session:
            return self._next_at_each_call(session)
        element = self._taken()
        self._position.count += 1
        return element

    def _taken(self) -> Any:
        """Returns the next element, without counting it."""
        if self._position.is_restored:
            self._skip()
        if self._next:
            return self._next.pop()
        leaves = [tensor_of(leaf) for leaf in leaves_of(next(self._elements))]
        if self._pattern is None:
            self._pattern = self._dataset.element_spec
        return structure.pack(self._pattern, leaves)

    def _next_at_each_call(self, tracing: Any) -> Any:
        """Returns the next element at each call of the function that is traced, as symbols of its trace.

        Raises:
            NotTraceable: Its sizes are not known before, or it has other leaves than numbers.
        """
        specs = structure.flatten(self.element_spec)
        if not all(isinstance(spec, TensorSpec) and spec.dtype is not dtypes.string for spec in specs) or not all(
            spec.shape.is_fully_defined() for spec in specs
        ):
            raise NotTraceable(
                "takes the next element of an iterator, whose sizes are not known", "the element as its argument"
            )
        engine_specs = [Spec.of(tuple(spec.shape.as_list()), spec.dtype.np) for spec in specs]
        results = tracing.add_host_step(_Next(self, engine_specs), [], engine_specs)
        return structure.pack(self.element_spec, [EagerTensor(result, tracing) for result in results])

    def peek(self) -> Any:
        """Returns the next element, which stays the next one; StopIteration at the end."""
        if not self._next or self._position.is_restored:
            self._next.append(self._taken())
        return self._next[0]

    def _skip(self) -> None:
        """Starts from the beginning, and skips the elements that were taken when the position was saved."""
        self._position.is_restored = False
        self._next.clear()
        self._elements = self._dataset._start_for_session(0)
        for _ in itertools.islice(self._elements, self._position.count):
            pass

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        return {"position": self._position}

    def get_next(self) -> Any:
        """Returns the next element.

        Raises:
            OutOfRangeError: There is none.
        """
        try:
            return next(self)
        except StopIteration:
            raise OutOfRangeError("End of sequence") from None

    def get_next_as_optional(self) -> Optional:
        """Returns the next element as an `Optional`, which is empty at the end."""
        try:
            return Optional.from_value(next(self))
        except StopIteration:
            return Optional.empty(self.element_spec)


class Position(Trackable):
    """The number of elements that were taken from an iterator: its state in a checkpoint.

    It has no reference to the iterator, whose threads end when the iterator is gone.
    """

    dtype, shape, name = dtypes.int64, TensorShape([]), "position"

    def __init__(self) -> None:
        self.count, self.is_restored = 0, False

    def _serialize_to_tensors(self) -> dict[str, Any]:
        return {"VARIABLE_VALUE": np.array(self.count, np.int64)}

    def _restore_from_tensors(self, restored_tensors: Any) -> None:
        (count,) = restored_tensors.values()
        self.count, self.is_restored = int(count), True


class _Next:
    """The next element of an iterator as a stage of a function.

    Args:
        iterator: The iterator.
        specs: The specs of the element's tensors.
    """

    def __init__(self, iterator: Iterator, specs: list[Spec]) -> None:
        self._iterator, self._specs = iterator, specs

    def run(self, owner: Any, inputs: Sequence[Any]) -> list[Any]:
        """Returns the element's recorded values; OutOfRangeError at the end."""
        if owner.tracing:
            return owner.add_host_step(self, inputs, self._specs)  # type: ignore[no-any-return]  # symbols
        return [leaf.operand() for leaf in structure.flatten(self._iterator.get_next())]


class NumpyIterator:
    """The elements of a dataset as NumPy arrays and scalars, once.

    Args:
        dataset: The dataset.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._elements: PythonIterator[Element] = dataset._start(0)

    def __iter__(self) -> NumpyIterator:
        return self

    @reports
    def __next__(self) -> Any:
        leaves = leaves_of(next(self._elements))
        fetch_together(leaves)
        return structure.pack(self._dataset.element_spec, [_for_numpy(leaf) for leaf in leaves])

    def next(self) -> Any:
        """Returns the next element; StopIteration at the end."""
        return next(self)


def fetch_together(leaves: Any) -> None:
    """Reads the values of tensors in one round trip: reading them afterwards sends nothing."""
    tensors = [leaf for leaf in leaves if isinstance(leaf, TensorLike)]
    owner = current()
    if len(tensors) > 1 and all(tensor.session is owner for tensor in tensors):
        owner.fetch_all([tensor.recorded for tensor in tensors])


def _for_numpy(leaf: Any) -> Any:
    array = host_of(leaf)
    if array is None:
        return None
    if is_dataset(array):
        raise TypeError(
            f"`tf.data.Dataset.as_numpy_iterator()` is not supported for datasets that produce values of type "
            f"{type(array)}: iterate over the elements, and over each of those"
        )
    return np.array(array) if array.ndim else np.asarray(array)[()]
