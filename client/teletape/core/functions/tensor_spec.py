"""`tf.TensorSpec`: the shape and dtype of a tensor that does not exist yet."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape.core.tensors import dtypes
from teletape.core.tensors.composite import Composite, ShapedSpec, TypeSpec
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape.core.tensors.tensor_shape import TensorShape


class TensorSpec(ShapedSpec):
    """Shape and dtype of a tensor; sizes of the shape may be unknown.

    Args:
        shape: Anything that TensorShape takes; None if the rank is unknown.
        dtype: The element type.
        name: A label.

    Raises:
        TypeError: No shape, or no dtype.
    """

    __slots__ = ("_name",)

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> None:
        self._shape = TensorShape(shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._name = name

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """Returns the spec of a tensor or variable.

        Raises:
            ValueError: Something else.
        """
        if not isinstance(tensor, TensorLike):
            raise ValueError(f"`tensor` should be a tf.Tensor, but got type {type(tensor)}.")
        return cls(tensor.shape, tensor.dtype, name)

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> TensorSpec:
        """Returns the same shape and dtype with a name; None: the spec's own."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    @property
    def name(self) -> str | None:
        """The label."""
        return self._name

    @property
    def fields(self) -> tuple[Any, ...]:
        """The constructor arguments of an equal spec."""
        return self._shape, self._dtype, self._name

    def in_parts(self) -> TensorSpec:
        """Returns it unchanged: a tensor is one part."""
        return self

    def filled(self, size: int) -> TensorSpec:
        """Returns a spec with this size for unknown ones; a shape without a rank becomes that of a scalar."""
        return TensorSpec(self._shape.filled(size), self._dtype, self._name)

    @property
    def value_type(self) -> type[Tensor]:
        """The type of the values: Tensor."""
        return Tensor

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Whether a spec, or a value that becomes a tensor, fits this spec; labels do not count."""
        if not isinstance(spec_or_tensor, TensorSpec | TensorLike):
            spec_or_tensor = spec_of(spec_or_tensor)
        return self._dtype is spec_or_tensor.dtype and self._shape.is_compatible_with(spec_or_tensor.shape)

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every tensor that fits this spec also fits `other`; a spec without a label fits any label."""
        return (
            isinstance(other, TensorSpec)
            and self._dtype is other._dtype
            and self._name in (other._name, None)
            and self._shape.is_subtype_of(other._shape)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and (self._shape.is_subtype_of(other._shape), self._dtype, self._name) == (
            other._shape.is_subtype_of(self._shape),
            other._dtype,
            other._name,
        )

    def __hash__(self) -> int:
        return hash((self._shape, self._dtype))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r})"


def spec_of(value: Any) -> Any:
    """Returns the TensorSpec of a value that becomes a tensor; None, specs and composites stay.

    Raises:
        TypeError: The value cannot become a tensor.
    """
    if value is None or isinstance(value, TypeSpec | Composite):
        return value
    if isinstance(value, TensorLike):
        return TensorSpec(value.shape, value.dtype)
    try:
        if isinstance(value, bool | int | float | complex | str | bytes | np.generic | np.ndarray):
            array = np.asarray(value)
            python = {int: "int32", float: "float32", complex: "complex128", str: "string", bytes: "string"}
            return TensorSpec(array.shape, python.get(type(value), array.dtype))
    except TypeError:
        pass
    raise TypeError(f"Could not build a TypeSpec for {value!r} of unsupported type {type(value)}.")
