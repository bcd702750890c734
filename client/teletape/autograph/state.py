"""The variables of a block: what a loop carries from one iteration to the next, and what a branch gives to the other.

A block's state is a tuple of any Python values, one for each variable. Its tensors, numbers and arrays become values of
a command; everything else (an object, None) stays as it is and must be the same afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from teletape.ops.dispatch import as_tensor, convert_to_tensor
from teletape.tensors import nest
from teletape.tensors.tensor import Tensor, TensorLike


class Undefined:
    """What a variable that has no value yet holds in converted code.

    Args:
        symbol_name: The variable's name.
    """

    __slots__ = ("symbol_name",)

    def __init__(self, symbol_name: str) -> None:
        self.symbol_name = symbol_name

    def read(self) -> Any:
        """Raises: the variable has no value.

        Raises:
            UnboundLocalError: Always.
        """
        raise UnboundLocalError(f"'{self.symbol_name}' is used before assignment")

    def __repr__(self) -> str:
        return self.symbol_name


class UndefinedReturnValue:
    """The value of a function that has not returned yet."""


def ld(value: Any) -> Any:
    """Returns the value of a variable; raises as Python does if it has none."""
    return value.read() if value.__class__ is Undefined else value


def ldu(load: Any, name: str) -> Any:
    """Returns what `load` reads (`self.x`, `d["x"]`), or Undefined."""
    try:
        return load()
    except (KeyError, AttributeError, NameError):
        return Undefined(name)


def is_undefined(value: Any) -> bool:
    """Whether a variable has no value, or None."""
    return value is None or isinstance(value, Undefined | UndefinedReturnValue)


def is_dynamic(leaf: Any) -> bool:
    """Whether a leaf becomes a value of a command."""
    return isinstance(leaf, TensorLike | bool | int | float | complex | np.ndarray | np.generic)


class Composite:
    """An object that consists of tensors, such as a TensorArray: a block carries these."""

    def parts(self) -> list[Tensor]:
        """Returns its tensors."""
        raise NotImplementedError  # pragma: no cover - abstract

    def with_parts(self, parts: Sequence[Tensor]) -> Any:
        """Returns the same object with other tensors, of the same shapes."""
        raise NotImplementedError  # pragma: no cover - abstract

    def empty(self) -> Any:
        """Returns an object of the same kind that holds no tensor of a trace."""
        raise NotImplementedError  # pragma: no cover - abstract

    def check_alike(self, name: str, later: Composite) -> None:
        """Raises unless `later`, which a variable `name` holds after an iteration, has the same kind of tensors."""
        raise NotImplementedError  # pragma: no cover - abstract


class Packing(NamedTuple):
    """How the leaves of a state are put together again.

    Attributes:
        structure: The state with None in the place of each leaf.
        leaves: For each leaf a Composite, `_VALUE` for a tensor, or what stays.
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
            elif isinstance(leaf, Composite):
                yield leaf.with_parts([next(values) for _ in leaf.parts()])
            else:
                yield leaf


class _Value:
    """Marks a leaf that is a tensor."""


_VALUE = _Value()


def tensors_of(state: Any) -> tuple[list[Tensor], Packing]:
    """Returns the tensors of a state, and how to put them back."""
    tensors: list[Tensor] = []
    leaves: list[Any] = []
    for leaf in nest.flatten(state):
        if isinstance(leaf, Composite):
            tensors += leaf.parts()
            leaves.append(leaf)
        elif is_dynamic(leaf):
            tensors.append(tensor_of(leaf))
            leaves.append(_VALUE)
        else:
            leaves.append(leaf)
    return tensors, Packing(nest.map_structure(lambda _: None, state), tuple(leaves))


def tensor_of(leaf: Any) -> Tensor:
    """Returns a leaf as a tensor."""
    return as_tensor(leaf) if isinstance(leaf, TensorLike) else convert_to_tensor(leaf)
