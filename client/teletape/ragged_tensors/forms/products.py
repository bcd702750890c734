"""Products of the matrices in ragged tensors: they are padded, multiplied, and cut to their lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from teletape.ops.dispatch import call
from teletape.ragged_tensors.conversions import from_tensor
from teletape.ragged_tensors.tensor import RaggedTensor, tensor_or_ragged
from teletape_engine.catalogue.op import Op
from teletape_engine.errors import InvalidArgumentError


def matmul(op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """`a @ b` for batches [batch, rows, k] and [batch, k, columns] whose matrices have several numbers of rows.

    Raises:
        ValueError: Ranks other than 3.
        InvalidArgumentError: Matrices that are ragged in their last axis; columns of several numbers.
    """
    a, b = map(tensor_or_ragged, args)
    for each in (a, b):
        if isinstance(each, RaggedTensor) and each.shape.as_list()[-1] is None:
            raise InvalidArgumentError("The matrices in `a` and `b` may not be ragged in their innermost dimension.")
        if len(each.shape) != 3:
            raise ValueError(
                f"matmul of a RaggedTensor: batches of matrices are expected, found {a.shape} and {b.shape}"
            )
    turned = [bool(attrs.get(f"transpose_{side}") or attrs.get(f"adjoint_{side}")) for side in "ab"]
    if turned[1] and isinstance(b, RaggedTensor):
        raise InvalidArgumentError(
            "matmul: the columns of a result may not have several numbers; transpose x.to_tensor()"
        )
    product = call(op, [each.to_tensor() if isinstance(each, RaggedTensor) else each for each in (a, b)], **attrs)
    return product if turned[0] or not isinstance(a, RaggedTensor) else from_tensor(product, a.partition.lengths())
