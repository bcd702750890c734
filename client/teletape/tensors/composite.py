"""Composites: values made of several tensors, each one leaf of structures, and one argument and result of functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Protocol

from teletape.tensors.dtypes import DType
from teletape.tensors.tensor_shape import TensorShape
from teletape_engine.catalogue.op import Op
from teletape_engine.spec import Spec


class TypeSpec:
    """The base of specs: what a value is like that does not exist yet. `isinstance(x, tf.TypeSpec)` holds for them."""

    __slots__ = ()


class Structure(Protocol):
    """A composite without its tensors; hashable. Composites of one structure and of the same specs are traced once."""

    def of(self, parts: Sequence[Any]) -> Composite:
        """The composite of these tensors, or of their specs; nothing is checked."""

    def spec(self, specs: Sequence[Spec]) -> Spec | TypeSpec:
        """What a result of this structure is said to be: the spec of a dense array, or a TypeSpec."""


class Composite:
    """What SparseTensor, IndexedSlices and RaggedTensor share."""

    @property
    def shape(self) -> TensorShape:
        """The dense shape, with None for a length that differs from row to row."""
        raise NotImplementedError  # pragma: no cover - abstract

    @property
    def dtype(self) -> DType:
        """Of the values."""
        raise NotImplementedError  # pragma: no cover - abstract

    @property
    def elements(self) -> Any:
        """The tensor of its elements, whose gradients are the composite's."""
        raise NotImplementedError  # pragma: no cover - abstract

    def with_elements(self, elements: Any) -> Any:
        """The same composite with other elements in the same places."""
        raise NotImplementedError  # pragma: no cover - abstract

    def parts(self) -> tuple[Any, ...]:
        """Its tensors; in the arguments of a trace their specs."""
        raise NotImplementedError  # pragma: no cover - abstract

    def structure(self) -> Structure:
        """What it is without them."""
        raise NotImplementedError  # pragma: no cover - abstract

    def applied(self, op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """What an op gives for arguments of which this composite is the first; None: it is made dense before.

        Raises:
            NotDense: The op does not take it.
        """
        return None


class RaggedValue(Composite):
    """The base of RaggedTensor, which is defined above what must know of it."""

    @property
    def flat_values(self) -> Any:
        """The values of all rows, one after the other."""
        raise NotImplementedError  # pragma: no cover - abstract

    @property
    def elements(self) -> Any:
        """The flat values."""
        return self.flat_values

    def with_elements(self, elements: Any) -> Any:
        """Rows of the same lengths."""
        return self.with_flat_values(elements)

    def refuse_conversion(self) -> NoReturn:
        """Raises NotDense; it says what to do."""
        raise NotImplementedError  # pragma: no cover - abstract

    def with_flat_values(self, new_values: Any) -> Any:
        """Rows of the same lengths with other values."""
        raise NotImplementedError  # pragma: no cover - abstract


class NotDense(TypeError, ValueError):
    """A composite where a dense tensor is needed. TensorFlow raises one of the two, depending on the function."""
