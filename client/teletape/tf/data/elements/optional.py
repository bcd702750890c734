"""`tf.experimental.Optional`: a value or none, as iterators and the steps of Keras's training loops return it."""

from __future__ import annotations

from typing import Any

from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.errors import InvalidArgumentError
from teletape.core.functions.tensor_spec import TensorSpec
from teletape.core.tensors import nest
from teletape.core.tensors.tensor import TensorLike


class Optional:
    """A value, or none. Made by `from_value` and `empty`."""

    __slots__ = ("_spec", "_values")

    def __init__(self, values: tuple[Any, ...], spec: Any) -> None:
        self._values, self._spec = values, spec

    @staticmethod
    def from_value(value: Any) -> Optional:
        """Returns an optional that has `value`, a structure of tensors or of values that become tensors."""
        tensors = nest.map_structure(
            lambda leaf: leaf if isinstance(leaf, TensorLike) or leaf is None else convert_to_tensor(leaf), value
        )
        return Optional((tensors,), None)

    @staticmethod
    def empty(element_spec: Any) -> Optional:
        """Returns an optional without a value; `element_spec` is the spec that a value would have."""
        return Optional((), element_spec)

    def has_value(self, name: str | None = None) -> bool:
        """Whether it has a value."""
        return bool(self._values)

    def get_value(self, name: str | None = None) -> Any:
        """Returns the value.

        Raises:
            InvalidArgumentError: It has none.
        """
        if not self._values:
            raise InvalidArgumentError("The given optional does not have a value.")
        return self._values[0]

    @property
    def element_spec(self) -> Any:
        """The specs of the value's tensors."""
        if not self._values:
            return self._spec
        return nest.map_structure(TensorSpec.from_tensor, self._values[0])
