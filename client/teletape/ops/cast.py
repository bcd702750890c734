"""`tf.cast` and its like: from one dtype to another."""

from __future__ import annotations

from typing import Any

from teletape.ops.dispatch import call, constant, convert_to_tensor
from teletape.tensors import dtypes
from teletape.tensors.convert import c_name
from teletape.tensors.tensor import EagerTensor
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import UnimplementedError

__all__ = ["cast", "saturate_cast"]


def cast(x: Any, dtype: Any, name: str | None = None) -> EagerTensor:
    """`x` with another dtype; fractions are cut towards zero. A tensor that has it already comes back as it is."""
    wanted = dtypes.as_dtype(dtype)
    tensor = convert_to_tensor(x)
    if tensor.dtype is wanted:
        return tensor
    if dtypes.string in (tensor.dtype, wanted):
        raise UnimplementedError(f"Cast {c_name(tensor.dtype)} to {c_name(wanted)} is not supported [Op:Cast]")
    return call(CATALOGUE["cast"], (tensor,), dtype=wanted.np)


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> EagerTensor:
    """`value` with another dtype; what lies outside its range becomes its smallest or largest value."""
    wanted = dtypes.as_dtype(dtype)
    tensor = convert_to_tensor(value)
    if tensor.dtype is wanted or not (tensor.dtype.is_integer or tensor.dtype.is_floating) or wanted.is_complex:
        return cast(tensor, wanted)
    low, high = max(tensor.dtype.min, wanted.min), min(tensor.dtype.max, wanted.max)
    bounds = [constant(one, tensor.dtype) for one in (low, high)]
    return cast(call(CATALOGUE["clip_by_value"], (tensor, *bounds)), wanted)
