"""The specs of elements after each transformation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.functions.tensor_spec import TensorSpec
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import TensorLike
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.tf.data.elements import structure
from teletape.tf.data.elements.leaves import host_of


class NoneTensorSpec:
    """The spec of a None among the leaves of an element."""

    def __repr__(self) -> str:
        return "NoneTensorSpec()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoneTensorSpec)

    def __hash__(self) -> int:
        return hash(NoneTensorSpec)


def row_spec(spec: Any) -> Any:
    """Returns the spec of a slice along the first axis."""
    if not isinstance(spec, TensorSpec):
        return spec
    return TensorSpec(None if spec.shape.rank is None else spec.shape.as_list()[1:], spec.dtype)


def with_leading(spec: Any, size: int | None) -> Any:
    """Returns the spec of a batch; None: its size is not known."""
    if not isinstance(spec, TensorSpec):
        return spec
    return TensorSpec(None if spec.shape.rank is None else [size, *spec.shape.as_list()], spec.dtype)


def merged_specs(first: Any, second: Any) -> Any:
    """Returns the spec that the elements of two datasets fit; None: there is none."""
    if not structure.same(first, second):
        return None
    merged = []
    for one_spec, other in zip(structure.flatten(first), structure.flatten(second), strict=True):
        if isinstance(one_spec, TensorSpec) and isinstance(other, TensorSpec):
            if one_spec.dtype is not other.dtype:
                return None
            merged.append(TensorSpec(one_spec.shape.most_specific_compatible_shape(other.shape), one_spec.dtype))
        elif type(one_spec) is type(other):
            merged.append(one_spec)
        else:
            return None
    return structure.pack(first, merged)


def unsized(spec: TensorSpec) -> list[None]:
    """Returns a shape of the same rank without sizes."""
    return [None] * (spec.shape.rank or 0)


def padded_shapes_of(spec: Any, shapes: Any) -> list[list[int | None]]:
    """Returns the padded shape of each leaf; None and -1: the largest in the batch."""
    if isinstance(spec, tuple):
        return [shape for pair in zip(spec, shapes, strict=True) for shape in padded_shapes_of(*pair)]
    if isinstance(spec, dict):
        return [shape for key in sorted(spec) for shape in padded_shapes_of(spec[key], shapes[key])]
    if isinstance(shapes, TensorLike):
        shapes = shapes.numpy().tolist()
    sizes = shapes.as_list() if isinstance(shapes, TensorShape) else list(shapes)
    return [[None if size is None or int(size) == -1 else int(size) for size in sizes]]


def padding_of(specs: Sequence[TensorSpec], pattern: Any, values: Any) -> list[Any]:
    """Returns the padding of each leaf.

    Raises:
        TypeError: A value has another dtype than its leaf.
    """
    if values is None:
        return [b"" if spec.dtype is dtypes.string else spec.dtype.np.type(0) for spec in specs]
    leaves = structure.flatten(values)
    if len(leaves) == 1 and not structure.same(pattern, values):
        leaves *= len(specs)
    padding = []
    for leaf, spec in zip(leaves, specs, strict=True):
        if leaf is None:
            padding.append(b"" if spec.dtype is dtypes.string else spec.dtype.np.type(0))
            continue
        tensor = convert_to_tensor(leaf)
        if tensor.dtype is not spec.dtype:
            raise TypeError(
                f"Invalid `padding_values`. `padding_values` values type <dtype: {tensor.dtype.name!r}> does not "
                f"match type <dtype: {spec.dtype.name!r}> of the corresponding input component."
            )
        padding.append(np.asarray(host_of(tensor))[()])
    return padding
