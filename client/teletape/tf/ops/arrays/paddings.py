"""`tf.pad`, and the paddings for blocks. By hand: the mode chooses between two ops, and paddings are read."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.convert import wrapped
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import INTEGER
from teletape_engine.suggestions import with_nearest

_MODES: Final = ("CONSTANT", "REFLECT", "SYMMETRIC")


def pad(
    tensor: to.TensorInput,
    paddings: to.PaddingInput,
    mode: str = "CONSTANT",
    constant_values: to.NumberInput = 0,
    name: str | None = None,
) -> Tensor:
    """`tensor` with elements added at both ends of each axis. By hand: the mode chooses between two ops.

    Args:
        tensor: The tensor.
        paddings: [rank, 2]: how many elements before and after, along each axis.
        mode: CONSTANT, REFLECT or SYMMETRIC.
        constant_values: The added elements of CONSTANT.
        name: Accepted, without effect.

    Raises:
        ValueError: Another mode.
        InvalidArgumentError: Paddings of another shape.

    Example:
        tf.pad([1.0, 2.0], [[1, 2]])
    """
    mode = mode.upper()
    if mode not in _MODES:
        refusal = (
            'Value of argument `mode` expected to be one of "CONSTANT", "REFLECT", or "SYMMETRIC". '
            f"Received `mode` = {mode}"
        )
        raise ValueError(with_nearest(refusal, mode, _MODES))
    table = np.asarray(paddings.numpy() if isinstance(paddings, TensorLike) else paddings)
    if table.ndim != 2 or table.shape[1] != 2:
        raise InvalidArgumentError(f"paddings must be a matrix with 2 columns: {list(table.shape)} [Op:Pad]")
    pairs = tuple((int(before), int(after)) for before, after in table)
    if mode != "CONSTANT":
        return call(ops.mirror_pad, (tensor,), paddings=pairs, mode=mode)
    inner = convert_to_tensor(tensor)
    if inner.dtype is dtypes.string:  # no attribute of an op holds a string
        filler = convert_to_tensor(b"" if isinstance(constant_values, int) else constant_values)
        return _with_borders(inner, pairs, filler)
    return call(ops.pad, (tensor,), paddings=pairs, constant_value=_padding(tensor, constant_values))


def _with_borders(tensor: Tensor, pairs: tuple[tuple[int, int], ...], filler: Tensor) -> Tensor:
    """The tensor with copies of a scalar before and after it along each axis."""
    for axis, lengths in enumerate(pairs):
        shape = tensor.shape.as_list()
        borders = [
            call(ops.broadcast_to, (filler,), shape=(*shape[:axis], length, *shape[axis + 1 :])) for length in lengths
        ]
        tensor = call(ops.concat, (borders[0], tensor, borders[1]), axis=axis)
    return tensor


def _padding(tensor: Any, value: to.NumberInput) -> Any:
    """The added elements as a Python number; an integer outside the range of the tensor's dtype is wrapped into it."""
    number = to.number(value)
    dtype = convert_to_tensor(tensor).dtype.np
    if dtype in INTEGER and isinstance(number, float):
        raise TypeError(f"Cannot convert {number} to EagerTensor of dtype {dtype.name}")
    return wrapped(number, dtype) if type(number) is int and dtype in INTEGER else number


def required_space_to_batch_paddings(
    input_shape: to.IntsInput, block_shape: to.IntsInput, base_paddings: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The paddings for space_to_batch that make each length a multiple of its block, and the crops that undo them.

    Args:
        input_shape: [n] lengths.
        block_shape: [n] lengths of the blocks.
        base_paddings: [n, 2] the smallest paddings; None: zeros.
        name: Accepted, without effect.

    Returns:
        Paddings and crops: int32 [n, 2] each.

    Raises:
        ValueError: Not as many lengths as blocks.

    Example:
        tf.required_space_to_batch_paddings([5], [2])
    """
    lengths, blocks = (np.array(to.ints(part), np.int32) for part in (input_shape, block_shape))
    if lengths.shape != blocks.shape:
        raise ValueError(f"Shapes {lengths.shape} and {blocks.shape} are incompatible")
    table = to.pairs(base_paddings) if base_paddings is not None else ((0, 0),) * len(blocks)
    base = np.array(table, np.int32).reshape((len(blocks), 2))
    missing = -(lengths + base.sum(1)) % np.maximum(blocks, 1)
    zeros = np.zeros_like(missing)
    paddings, crops = np.stack((base[:, 0], base[:, 1] + missing), 1), np.stack((zeros, missing), 1)
    return constant(paddings.astype(np.int32)), constant(crops.astype(np.int32))
