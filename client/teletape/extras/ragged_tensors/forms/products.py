"""Products of the matrices in ragged tensors: they are padded, multiplied, and cut to their lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from teletape.core.calls.dispatch import call, tensor_or_ragged
from teletape.extras.ragged_tensors.conversions import from_tensor
from teletape.extras.ragged_tensors.rows import uniform
from teletape.extras.ragged_tensors.tensor import RaggedTensor
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.op import Op
from teletape_engine.errors import InvalidArgumentError


def matmul(op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """`a @ b` for batches [batch, rows, k] and [batch, k, columns], of which at least one is ragged.

    Returns:
        A ragged tensor: its matrices have as many rows as those of `a`, or the same number if `a` is transposed.

    Raises:
        ValueError: Ranks other than 3, other numbers of matrices.
        InvalidArgumentError: Matrices that are ragged in their last axis; columns of several numbers; other lengths k.
    """
    a, b = map(tensor_or_ragged, args)
    for each in (a, b):
        if isinstance(each, RaggedTensor) and each.shape.as_list()[-1] is None:
            raise InvalidArgumentError("The matrices in `a` and `b` may not be ragged in their innermost dimension.")
        if len(each.shape) != 3:
            raise ValueError(
                f"matmul of a RaggedTensor: batches of matrices are expected, found {a.shape} and {b.shape}"
            )
    batches = [each.shape.as_list()[0] for each in (a, b)]
    if batches[0] != batches[1]:
        raise ValueError(f"Dimensions {batches[0]} and {batches[1]} are not compatible")
    turned = [bool(attrs.get(f"transpose_{side}") or attrs.get(f"adjoint_{side}")) for side in "ab"]
    if turned[1] and isinstance(b, RaggedTensor):
        raise InvalidArgumentError(
            "matmul: the columns of a result may not have several numbers; transpose x.to_tensor()"
        )
    contracted = _lengths(a, 1 if turned[0] else 2), _lengths(b, 2 if turned[1] else 1)
    differing = np.flatnonzero(contracted[0] != contracted[1])
    if differing.size:
        first = int(differing[0])
        raise InvalidArgumentError(
            f"Matrix size-incompatible: the matrices {first} of `a` and `b` have the lengths {contracted[0][first]} "
            f"and {contracted[1][first]} along the axes that are summed over"
        )
    dtype = (a if isinstance(a, RaggedTensor) else b).row_splits.dtype
    product = call(op, [each.to_tensor() if isinstance(each, RaggedTensor) else each for each in (a, b)], **attrs)
    if turned[0] or not isinstance(a, RaggedTensor):
        return uniform(product, 1, dtype.np)
    return from_tensor(product, a.partition.lengths(), row_splits_dtype=dtype)


def _lengths(value: Any, axis: int) -> HostArray:
    """The length of each matrix of a batch along an axis of the batch, 1 or 2."""
    length = value.shape.as_list()[axis]
    if length is None:
        return np.diff(value.partition.numbers())
    return np.full(value.shape.as_list()[0], length)
