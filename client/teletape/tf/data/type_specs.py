"""`tf.type_spec_from_value`: the spec of a tensor, of a value that becomes one, or of a dataset."""

from __future__ import annotations

from typing import Any

from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.functions.signature import as_spec
from teletape.core.functions.tensor_spec import TensorSpec, spec_of
from teletape.core.tensors.composite import Composite, TypeSpec
from teletape.tf.control_flow.tensor_array import TensorArray, TensorArraySpec
from teletape.tf.data.dataset import Dataset, DatasetSpec


def type_spec_from_value(value: Any) -> TypeSpec | DatasetSpec:
    """Returns the spec of a value: a TensorSpec, or the spec of a composite, of a TensorArray, of a dataset.

    Raises:
        TypeError: A value that is none of these, and does not become a tensor.

    Example:
        tf.type_spec_from_value(tf.constant([1.0, 2.0]))
    """
    if isinstance(value, Dataset):
        return DatasetSpec(value.element_spec)
    if isinstance(value, TensorArray):
        return TensorArraySpec.from_value(value)
    if isinstance(value, Composite):
        return as_spec(value)  # type: ignore[no-any-return]  # of a composite a TypeSpec
    if isinstance(value, list | tuple):
        value = convert_to_tensor(value)
    spec = spec_of(value)
    if not isinstance(spec, TensorSpec):
        raise TypeError(f"Could not build a TypeSpec for {value!r} of unsupported type {type(value)}.")
    return spec
