"""Functions for the operators' constructors: arguments, common batches, combined hints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from teletape._generated.linalg.solve import solve
from teletape._generated.shapes.shape import broadcast_to
from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.tensors.tensor import Tensor
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.core.variables.variable import Variable
from teletape.tf.ops.arrays.rearrange import broadcast_static_shape


def parameters_of(scope: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a constructor, from its `locals()` at its beginning."""
    return {name: value for name, value in scope.items() if name not in ("self", "__class__")}


def kept(value: Any) -> Any:
    """Returns a variable unchanged, so that every use reads it anew; anything else as a tensor."""
    return value if isinstance(value, Variable) else convert_to_tensor(value)


def length(value: Any, noun: str) -> int:
    """A count of rows or columns as an int.

    Raises:
        TypeError: Not an integer.
        ValueError: Not a scalar, or negative.
    """
    array = np.asarray(convert_to_tensor(value).numpy())
    if not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"Argument {noun} must be integer type.  Found: {value}")
    if array.ndim:
        raise ValueError(f"Argument {noun} must be a 0-D Tensor.  Found: {value}")
    if array < 0:
        raise ValueError(f"Argument {noun} must be non-negative.  Found: {value}")
    return int(array)


def batch(value: Any) -> TensorShape:
    """The shape of a batch from integers, a tensor of them, or None for no batch.

    Raises:
        TypeError: Not integers.
        ValueError: Not a vector, or a size is negative.
    """
    if value is None:
        return TensorShape([])
    sizes = value.as_list() if isinstance(value, TensorShape) else value
    array = np.asarray(sizes.numpy() if isinstance(sizes, Tensor) else sizes)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"Argument batch_shape must be integer type.  Found: {value}")
    if array.ndim != 1:
        raise ValueError(f"Argument batch_shape must be a 1-D Tensor.  Found: {value}")
    if (array < 0).any():
        raise ValueError(f"Argument batch_shape must be non-negative.  Found:{value}")
    return TensorShape([int(size) for size in array])


# ------------------------------------------------------------------------------------------------------------ batches
def common_batch(shapes: Iterable[TensorShape]) -> TensorShape:
    """Returns the batch shape to which these broadcast."""
    common = TensorShape([])
    for shape in shapes:
        common = broadcast_static_shape(common, shape)
    return common


def same_batch(matrices: Iterable[Tensor]) -> list[Tensor]:
    """Returns the matrices [..., m, n], all broadcast to common batch axes."""
    matrices = list(matrices)
    common = common_batch(matrix.shape[:-2] for matrix in matrices)
    return [
        matrix if matrix.shape[:-2] == common else broadcast_to(matrix, common.concatenate(matrix.shape[-2:]).as_list())
        for matrix in matrices
    ]


def solved(matrix: Tensor, rhs: Tensor, adjoint: bool = False) -> Tensor:
    """The solution of systems whose batch axes broadcast."""
    first, second = same_batch([matrix, rhs])
    return solve(first, second, adjoint=adjoint)


# -------------------------------------------------------------------------------------------------------------- hints
def agreed(hint: bool | None, known: bool, message: str) -> bool | None:
    """Returns the hint; True if the property is known.

    Raises:
        ValueError: The property is known, and the hint is False.
    """
    if not known:
        return hint
    if hint is False:
        raise ValueError(message)
    return True
