"""The signature of a call of a `tf.function`: specs of tensors and variables, Python values, structure."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from teletape.core.calls.dispatch import as_tensor, constant, convert_to_tensor
from teletape.core.functions.tensor_spec import TensorSpec
from teletape.core.tensors import nest
from teletape.core.tensors.composite import Composite, TypeSpec
from teletape.core.tensors.indexed_slices import IndexedSlices, IndexedSlicesSpec
from teletape.core.tensors.tensor import EagerTensor, TensorLike
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.core.tensors.variable_wrapper import VariableWrapper
from teletape.core.variables.variable import Variable
from teletape_engine.spec import Spec


def key_of(value: Any, leaves: list[Any], variables: dict[int, int], *, general: bool = False) -> Any:
    """Returns a hashable key of the arguments' signature, and appends their tensors and variables to `leaves`.

    `general`: TensorSpecs may have sizes that are not known.
    """
    if isinstance(value, EagerTensor):
        if value.recorded.spec.dtype == object:
            return ("text", value.recorded.spec.shape, tuple(np.asarray(value.numpy()).reshape(-1).tolist()))
        leaves.append(value)
        return value.recorded.spec
    if isinstance(value, Variable):
        leaves.append(value)
        alias = variables.setdefault(value.recorded.uid, len(variables))
        return ("variable", value.recorded.spec, value.trainable, alias)
    if isinstance(value, VariableWrapper):  # the function uses this very object
        return ("wrapper", value.ref())
    if isinstance(value, TensorSpec):
        leaves.append(value)
        return GeneralSpec(value.dtype.np, shape_key(value.shape)) if general else spec_of_leaf(value)
    if isinstance(value, Composite):
        leaves.append(value)
        return (value.structure(), *(key_of(part, [], variables, general=general) for part in value.parts()))
    if nest.is_nested(value):
        children = value.items() if isinstance(value, Mapping) else enumerate(value)
        ordered = sorted(children) if isinstance(value, dict) and len(value) > 1 else list(children)
        names = tuple([name for name, _ in ordered]) if isinstance(value, Mapping) else ()
        return (type(value), names, tuple([key_of(child, leaves, variables, general=general) for _, child in ordered]))
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return ("value", value)
    try:
        return ("object", weakref.ref(value))
    except TypeError:
        return ("object", type(value), value if isinstance(value, type) or value.__hash__ else id(value))


class GeneralSpec(NamedTuple):
    """A dtype, and a shape of which sizes (None), or all of it (None), are not known."""

    dtype: Any
    shape: tuple[int | None, ...] | None


class ForValues(NamedTuple):
    """The key of a signature for values of integers among the arguments, by position."""

    signature: Any
    known: tuple[tuple[int, int], ...]


def shape_key(shape: TensorShape) -> tuple[int | None, ...] | None:
    """Returns a shape as a tuple; None: its rank is not known."""
    return None if shape.rank is None else tuple(shape.as_list())


def shapes_of(leaf: Any) -> list[TensorShape]:
    """Returns the shapes of a tensor, a variable, a TensorSpec, or of the parts of a composite."""
    if isinstance(leaf, TensorSpec):
        return [leaf.shape]
    if isinstance(leaf, Composite):
        return [shape for part in leaf.parts() for shape in shapes_of(part)]
    return [TensorShape(spec.shape) for spec in specs_of(leaf)]


def specs_of(leaf: Any) -> list[Spec]:
    """Returns the specs of a tensor, a variable or a composite."""
    if isinstance(leaf, Composite):
        return [part.recorded.spec for part in leaf.parts()]
    if isinstance(leaf, TensorSpec):
        return [spec_of_leaf(leaf)]
    return [leaf.recorded.spec]


def spec_of_leaf(leaf: Any) -> Any:
    """Returns a leaf as `trace` takes it: the spec of a tensor; other leaves unchanged."""
    if isinstance(leaf, EagerTensor):
        return leaf if leaf.recorded.spec.dtype == object else leaf.recorded.spec
    if isinstance(leaf, Composite):
        return leaf.structure().of([spec_of_leaf(part) for part in leaf.parts()])
    if isinstance(leaf, TensorSpec):
        if not leaf.shape.is_fully_defined():
            raise ValueError(
                f"{leaf!r}: every size of a shape must be known here, since functions are traced for one shape"
            )
        return Spec.of(tuple(leaf.shape.as_list()), leaf.dtype.np)
    return leaf


def in_parts(leaf: Any) -> Any:
    """Returns a spec of a composite as a composite of the TensorSpecs of its parts; other leaves unchanged.

    Raises:
        ValueError: The rank of a sparse tensor, or the shape of slices, is unknown.
        TypeError: A function cannot be traced for this kind of spec.
    """
    if isinstance(leaf, IndexedSlicesSpec):
        shape, dtype, indices_dtype, _, indices_shape = leaf.fields
        if not shape.is_fully_defined():
            raise ValueError(f"{leaf!r}: every size of the dense shape must be known here")
        values = TensorSpec(indices_shape.concatenate(shape[1:]), dtype)
        return IndexedSlices.of_parts(values, TensorSpec(indices_shape, indices_dtype), shape)
    return leaf.in_parts() if isinstance(leaf, TypeSpec) else leaf


def as_spec(leaf: Any, name: str | None = None) -> Any:
    """Returns the spec of a tensor or composite, and a TensorSpec with this label; other leaves unchanged."""
    if isinstance(leaf, Composite):
        return leaf.type_spec()
    if isinstance(leaf, TensorLike):
        return TensorSpec(leaf.shape, leaf.dtype, name)
    return TensorSpec.from_spec(leaf, name) if isinstance(leaf, TensorSpec) else leaf


def array_as_tensor(leaf: Any) -> Any:
    """Returns an array or NumPy scalar as a tensor; other leaves unchanged."""
    return constant(leaf) if isinstance(leaf, np.ndarray | np.generic) else leaf


def cast_to(value: Any, spec: Any) -> Any:
    """Returns an argument as a tensor of a signature's spec.

    Raises:
        TypeError: It does not fit.
    """
    if not isinstance(spec, TensorSpec):
        if isinstance(spec, TypeSpec) and not spec.is_compatible_with(value):
            raise TypeError(f"Can not cast {value!r} to {spec!r}")
        return value
    tensor = as_tensor(value) if isinstance(value, TensorLike) else convert_to_tensor(value, dtype_hint=spec.dtype)
    if tensor.dtype is not spec.dtype or not spec.shape.is_compatible_with(tensor.shape):
        raise TypeError(f"Can not cast {TensorSpec(tensor.shape, tensor.dtype)!r} to {spec!r}")
    return tensor


def leaves_like(pattern: Any, value: Any) -> list[Any]:
    """Returns the parts of a value at a structure's leaves, in `nest.flatten`'s order.

    Args:
        pattern: The structure.
        value: A value with this structure; a list at a leaf is one part.

    Raises:
        ValueError: The value has another structure.
    """
    if not nest.is_nested(pattern):
        return [value]
    if isinstance(pattern, Mapping):
        if not isinstance(value, Mapping) or set(value) != set(pattern):
            raise ValueError("other keys")
        return [leaf for key in sorted(pattern) for leaf in leaves_like(pattern[key], value[key])]
    if isinstance(pattern, list | tuple):
        if not isinstance(value, list | tuple | np.ndarray) or len(value) != len(pattern):
            raise ValueError("another length")
        return [leaf for pair in zip(pattern, value, strict=True) for leaf in leaves_like(*pair)]
    nest.assert_same_structure(pattern, value)
    return nest.flatten(value)


def as_result(leaf: Any) -> Any:
    """Returns a result of a function that ran op by op as a tensor, as TensorFlow's functions do."""
    if isinstance(leaf, Variable):
        return as_tensor(leaf)
    convertible = isinstance(leaf, bool | int | float | complex | str | bytes | np.ndarray | np.generic)
    return constant(leaf) if convertible else leaf
