"""Takes the tensors out of the state that a loop carries or a branch returns, and puts them back into it.

A state is any nested Python value. Its tensors, numbers and arrays become values of a command, also those of its
TensorArrays; everything else (an object, None) stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from teletape.core.calls.dispatch import as_tensor, convert_to_tensor
from teletape.core.functions.trace import trace
from teletape.core.tensors import nest
from teletape.core.tensors.composite import Composite, Structure
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.tf.control_flow.growth import MOST_ELEMENTS, numbers_of
from teletape.tf.control_flow.tensor_array import TensorArray


class _Value:
    """Marks a leaf that is a tensor."""


_VALUE = _Value()


class Whole(NamedTuple):
    """Marks a leaf that is a composite.

    Attributes:
        structure: The composite's structure, without its tensors.
        tensors: The number of its tensors.
    """

    structure: Structure
    tensors: int


class Packing(NamedTuple):
    """Puts tensors back into the structure of a state.

    Attributes:
        structure: The state with None in the place of each leaf.
        leaves: For each leaf a TensorArray, `_VALUE` for a tensor, `Whole` for a composite, or the leaf itself.
    """

    structure: Any
    leaves: tuple[Any, ...]

    def state(self, values: Sequence[Tensor]) -> Any:
        """Returns the state with these tensors."""
        return nest.pack_sequence_as(self.structure, list(self._filled(iter(values))))

    def _filled(self, values: Iterator[Tensor]) -> Iterator[Any]:
        for leaf in self.leaves:
            if leaf is _VALUE:
                yield next(values)
            elif isinstance(leaf, TensorArray):
                yield leaf.with_parts([next(values) for _ in range(leaf.part_count)])
            elif isinstance(leaf, Whole):
                yield leaf.structure.of([next(values) for _ in range(leaf.tensors)])
            else:
                yield leaf


def is_dynamic(leaf: Any) -> bool:
    """Whether a leaf becomes a value of a command."""
    return isinstance(leaf, TensorLike | bool | int | float | complex | np.ndarray | np.generic)


def tensor_of(leaf: Any) -> Tensor:
    """Returns a leaf as a tensor."""
    return as_tensor(leaf) if isinstance(leaf, TensorLike) else convert_to_tensor(leaf)


def tensors_of(state: Any) -> tuple[list[Tensor], Packing]:
    """Returns the tensors of a state, and the packing that puts them back."""
    tensors: list[Tensor] = []
    leaves: list[Any] = []
    for leaf in nest.flatten(state):
        if isinstance(leaf, TensorArray):
            tensors += leaf.parts()
            leaves.append(leaf)
        elif isinstance(leaf, Composite):
            tensors += leaf.parts()
            leaves.append(Whole(leaf.structure(), len(leaf.parts())))
        elif is_dynamic(leaf):
            tensors.append(tensor_of(leaf))
            leaves.append(_VALUE)
        else:
            leaves.append(leaf)
    return tensors, Packing(nest.map_structure(lambda _: None, state), tuple(leaves))


def has_unknown_elements(state: Any) -> bool:
    """Whether a state has a TensorArray whose elements have no shape yet."""
    return any(isinstance(leaf, TensorArray) and not leaf.elements_are_known for leaf in nest.flatten(state))


def with_room(state: Any, body: Callable[[Any], Any], count: int | None) -> Any:
    """Returns a state whose TensorArrays of dynamic size have room for all writes of a loop.

    Args:
        state: The loop variables before the loop.
        body: Returns them after an iteration; it is traced once more.
        count: The largest number of iterations; None: not known.

    Raises:
        NotTraceable: It is not known what the index of a write may be.
    """
    if count is None or count > MOST_ELEMENTS or not any(map(_may_grow, nest.flatten(state))):
        return state
    noting = nest.map_structure(lambda leaf: leaf.noting_writes() if _may_grow(leaf) else leaf, state)

    def rooms(entries: Sequence[Any], after: Sequence[Any]) -> list[tuple[int, TensorShape] | None]:
        numbers = numbers_of(nest.flatten(noting), entries, after, count)
        return [
            (last.room(entry, numbers, count), last.element_shape)
            if isinstance(entry, TensorArray) and isinstance(last, TensorArray) and entry.notes_writes
            else None
            for entry, last in zip(entries, after, strict=True)
        ]

    return _adapted(
        state,
        _iterated(noting, body, rooms),
        lambda array, room: array.with_room(*room) if room[1].is_fully_defined() else array,
    )


def _may_grow(leaf: Any) -> bool:
    return isinstance(leaf, TensorArray) and leaf.may_grow


def with_known_elements(state: Any, body: Callable[[Any], Any]) -> Any:
    """Returns a state whose TensorArrays know the shape of their elements: that of the elements an iteration writes.

    Args:
        state: The loop variables before the loop.
        body: Returns them after an iteration; it is traced once more.
    """
    if not has_unknown_elements(state):
        return state

    def shapes(_: Sequence[Any], after: Sequence[Any]) -> list[Any]:
        return [leaf.element_shape if isinstance(leaf, TensorArray) else None for leaf in after]

    return _adapted(state, _iterated(state, body, shapes), lambda array, shape: array.of_shape(shape))


def _iterated(
    state: Any, body: Callable[[Any], Any], look: Callable[[Sequence[Any], Sequence[Any]], list[Any]]
) -> list[Any]:
    """Traces one iteration, and returns `look` of each leaf of the state before and after it.

    The result is empty if the body returns another number of leaves.
    """
    tensors, packing = tensors_of(state)
    seen: list[Any] = []

    def iteration(*values: Tensor) -> None:
        before = packing.state(values)
        entries, after = nest.flatten(before), nest.flatten(body(before))
        if len(entries) == len(after):
            seen.extend(look(entries, after))

    trace(iteration, [tensor.recorded.spec for tensor in tensors])
    return seen


def _adapted(state: Any, facts: Sequence[Any], adapt: Callable[[TensorArray, Any], TensorArray]) -> Any:
    """Returns a state with each TensorArray adapted to the fact about it, if there is one."""
    leaves = nest.flatten(state)
    if len(leaves) != len(facts):
        return state
    return nest.pack_sequence_as(
        state,
        [
            leaf if fact is None or not isinstance(leaf, TensorArray) else adapt(leaf, fact)
            for leaf, fact in zip(leaves, facts, strict=True)
        ],
    )
