"""`tf.type_spec_from_value`: the spec of a value, be it a tensor, what becomes one, or a dataset."""

from __future__ import annotations

from typing import Any

from teletape.data.dataset import Dataset, DatasetSpec
from teletape.functions.tensor_spec import TensorSpec, spec_of
from teletape.ops.dispatch import convert_to_tensor
from teletape.ragged_tensors.spec import RaggedTensorSpec
from teletape.tensors.composite import RaggedValue, TypeSpec

__all__ = ["type_spec_from_value"]


def type_spec_from_value(value: Any) -> TypeSpec | DatasetSpec:
    """Returns the spec of a value: a TensorSpec, of a ragged tensor a RaggedTensorSpec, of a dataset a DatasetSpec.

    Raises:
        TypeError: A value that is neither a dataset nor becomes a tensor; there are no specs of sparse tensors.

    Example:
        tf.type_spec_from_value(tf.constant([1.0, 2.0]))
    """
    if isinstance(value, Dataset):
        return DatasetSpec(value.element_spec)
    if isinstance(value, RaggedValue):
        return RaggedTensorSpec.from_value(value)
    if isinstance(value, list | tuple):
        value = convert_to_tensor(value)
    spec = spec_of(value)
    if not isinstance(spec, TensorSpec):
        raise TypeError(f"Could not build a TypeSpec for {value!r} of unsupported type {type(value)}.")
    return spec
