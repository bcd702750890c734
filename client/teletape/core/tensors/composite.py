"""Composites: values made of several tensors, each one leaf of structures, and one argument and result of functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Protocol

from teletape.core.tensors.dtypes import DType
from teletape.core.tensors.tensor_shape import TensorShape
from teletape_engine.catalogue.op import Op
from teletape_engine.spec import Spec


class TypeSpec:
    """The base class of specs, which describe values that do not exist yet; programs use it for `isinstance`.

    Two specs are compared part by part: shapes by what they allow, all other parts by equality.
    """

    __slots__ = ()

    @property
    def fields(self) -> tuple[Any, ...]:
        """The constructor arguments of an equal spec."""
        raise NotImplementedError  # pragma: no cover - abstract

    @property
    def value_type(self) -> Any:
        """The class of the values that the spec describes."""
        raise NotImplementedError  # pragma: no cover - abstract

    @classmethod
    def from_value(cls, value: Any) -> TypeSpec:
        """The spec of a value.

        Raises:
            TypeError, ValueError: The value is of another class.
        """
        raise NotImplementedError  # pragma: no cover - abstract

    def in_parts(self) -> Any:
        """Returns a composite of the TensorSpecs of its parts, for which a function can be traced.

        Raises:
            ValueError: A size that must be known is not.
            TypeError: A function cannot be traced for this kind of spec.
        """
        raise TypeError(f"{self!r}: a tf.function is not traced for such a spec. Call it with the value itself")

    def filled(self, size: int) -> Any:
        """Returns a spec whose shape has this size for unknown ones."""
        return self

    def rows(self) -> Any:
        """Returns a collector without values: `write` appends one of this spec, `stack` makes one value of them."""
        raise NotImplementedError  # pragma: no cover - abstract

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a spec, or a value, fits this spec; a size that one of the two does not know fits."""
        other = spec_or_value
        if not isinstance(other, TypeSpec):
            try:
                other = self.from_value(other)
            except (TypeError, ValueError):
                return False
        return type(other) is type(self) and all(map(_compatible, self.fields, other.fields))

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every value that fits this spec also fits `other`."""
        return type(other) is type(self) and all(map(_is_subtype, self.fields, other.fields))

    def most_specific_common_supertype(self, others: Sequence[Any]) -> Any:
        """The spec that all values of this spec and of `others` fit; None if there is none."""
        if any(type(other) is not type(self) for other in others):
            return None
        fields: list[Any] = []
        for field, *further in zip(self.fields, *(other.fields for other in others), strict=True):
            if isinstance(field, TensorShape):
                fields.append(field.most_specific_common_supertype(further))
            elif all(field == other for other in further):
                fields.append(field)
            else:
                return None
        return type(self)(*fields)

    def most_specific_compatible_type(self, other: Any) -> Any:
        """The spec that the values of both specs fit.

        Raises:
            ValueError: There is none.
        """
        common = self.most_specific_common_supertype([other])
        if common is None:
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        return common

    def __eq__(self, other: object) -> bool:
        # Shapes without a rank are equal to nothing, not even to each other, so their meanings are compared.
        return isinstance(other, TypeSpec) and self.is_subtype_of(other) and other.is_subtype_of(self)

    def __hash__(self) -> int:
        return hash((type(self), self.fields))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.fields

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.fields))})"


class ShapedSpec(TypeSpec):
    """The base class of specs with a shape and a dtype."""

    __slots__ = ("_dtype", "_shape")
    _shape: TensorShape
    _dtype: DType

    @property
    def shape(self) -> TensorShape:
        """The shape; None for a size that is unknown, or that differs from row to row."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._dtype


def _compatible(field: Any, other: Any) -> bool:
    return field.is_compatible_with(other) if isinstance(field, TensorShape) else bool(field == other)


def _is_subtype(field: Any, other: Any) -> bool:
    return field.is_subtype_of(other) if isinstance(field, TensorShape) else bool(field == other)


class Structure(Protocol):
    """A composite without its tensors; hashable. Composites of one structure and of the same specs are traced once."""

    def of(self, parts: Sequence[Any]) -> Composite:
        """The composite of these tensors, or of their specs; nothing is checked."""

    def spec(self, specs: Sequence[Spec]) -> Spec | TypeSpec:
        """The spec of a result of this structure: the spec of a dense array, or a TypeSpec."""


class Composite:
    """The common base class of SparseTensor, IndexedSlices and RaggedTensor."""

    @property
    def shape(self) -> TensorShape:
        """The dense shape, with None for a length that differs from row to row."""
        raise NotImplementedError  # pragma: no cover - abstract

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        raise NotImplementedError  # pragma: no cover - abstract

    @property
    def elements(self) -> Any:
        """The tensor of its elements, whose gradients are the composite's."""
        raise NotImplementedError  # pragma: no cover - abstract

    def with_elements(self, elements: Any) -> Any:
        """Returns the same composite with other elements."""
        raise NotImplementedError  # pragma: no cover - abstract

    def parts(self) -> tuple[Any, ...]:
        """Its tensors; in the arguments of a trace their specs."""
        raise NotImplementedError  # pragma: no cover - abstract

    def structure(self) -> Structure:
        """The structure: the composite without its tensors."""
        raise NotImplementedError  # pragma: no cover - abstract

    def type_spec(self) -> TypeSpec:
        """The spec that describes it."""
        raise NotImplementedError  # pragma: no cover - abstract

    def applied(self, op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Returns an op's result for arguments of which this composite is the first; None: it is made dense instead.

        Raises:
            NotDense: The op does not take it.
        """
        return None


class RaggedValue(Composite):
    """The base class of RaggedTensor, for modules that may not import RaggedTensor."""

    @property
    def flat_values(self) -> Any:
        """The values of all rows, one after the other."""
        raise NotImplementedError  # pragma: no cover - abstract

    @property
    def elements(self) -> Any:
        """The flat values."""
        return self.flat_values

    def with_elements(self, elements: Any) -> Any:
        """Returns a ragged tensor of the same row lengths."""
        return self.with_flat_values(elements)

    def row_spec(self) -> TypeSpec:
        """The spec of its rows."""
        raise NotImplementedError  # pragma: no cover - abstract

    def to_list(self) -> list[Any]:
        """Returns the rows as nested lists of Python values."""
        raise NotImplementedError  # pragma: no cover - abstract

    def refuse_conversion(self) -> NoReturn:
        """Raises NotDense, whose message says what to do."""
        raise NotImplementedError  # pragma: no cover - abstract

    def with_flat_values(self, new_values: Any) -> Any:
        """Returns a ragged tensor of the same row lengths with other values."""
        raise NotImplementedError  # pragma: no cover - abstract


class NotDense(TypeError, ValueError):
    """A composite where a dense tensor is needed; both TypeError and ValueError, as TensorFlow raises either."""
