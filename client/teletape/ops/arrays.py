"""TensorFlow's functions that rearrange tensors or pick from them: their axes, shapes and lists by hand."""

from __future__ import annotations

import builtins
import itertools
from typing import Any

import numpy as np

from teletape.ops.arguments import axes, axis_of, ints, lengths
from teletape.ops.dispatch import call, constant, convert_to_tensor, holds_tensors
from teletape.tensors import dtypes
from teletape.tensors.indexed_slices import IndexedSlices
from teletape.tensors.tensor import EagerTensor, TensorLike
from teletape.tensors.tensor_shape import TensorShape, as_shape
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import shape_text

__all__ = [
    "boolean_mask",
    "broadcast_to",
    "concat",
    "ensure_shape",
    "expand_dims",
    "gather",
    "identity",
    "pad",
    "rank",
    "reshape",
    "shape",
    "size",
    "slice",
    "split",
    "squeeze",
    "stack",
    "tile",
    "transpose",
    "unstack",
    "where",
]


def reshape(tensor: Any, shape: Any, name: str | None = None) -> EagerTensor:
    """The same elements in another shape; one length may be -1."""
    return call(CATALOGUE["reshape"], (tensor,), shape=ints(shape))


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> EagerTensor:
    """`input` repeated along axes of length 1 to `shape`."""
    return call(CATALOGUE["broadcast_to"], (input,), shape=lengths(shape, "BroadcastTo"))


def transpose(a: Any, perm: Any = None, conjugate: bool = False, name: str | None = None) -> EagerTensor:
    """The axes in the order `perm`, reversed by default."""
    made = call(CATALOGUE["transpose"], (a,), perm=None if perm is None else ints(perm, "perm"))
    return call(CATALOGUE["conj"], (made,)) if conjugate and made.dtype.is_complex else made


def expand_dims(input: Any, axis: Any, name: str | None = None) -> EagerTensor:
    """`input` with a new axis of length 1 at `axis`."""
    at = ints(axis, "axis")
    if len(at) != 1:
        raise InvalidArgumentError("'dim' must be a tensor with a single value [Op:ExpandDims]")
    return call(CATALOGUE["expand_dims"], (input,), axis=at[0])


def squeeze(input: Any, axis: Any = None, name: str | None = None) -> EagerTensor:
    """`input` without its axes of length 1, all or those named."""
    return call(CATALOGUE["squeeze"], (input,), axis=axes(axis))


def concat(values: Any, axis: Any, name: str | None = "concat") -> EagerTensor:
    """The tensors one behind the other along `axis`."""
    if not isinstance(values, list | tuple):
        values = [values]
    if len(values) == 1:
        return call(CATALOGUE["identity"], (convert_to_tensor(values[0]),))
    return call(CATALOGUE["concat"], values, axis=ints(axis, "axis")[0])


def stack(values: Any, axis: Any = 0, name: str = "stack") -> EagerTensor:
    """The tensors side by side along a new axis."""
    if isinstance(values, TensorLike):
        values = unstack(values)
    if not len(values):
        return constant([])
    at = axis_of(axis)
    if not holds_tensors(values):
        values = unstack(constant(values))  # numbers among themselves agree on one dtype
    first = next((one.shape.rank for one in values if isinstance(one, TensorLike)), None)
    rank = (np.ndim(values[0]) if first is None else first) + 1
    if not -rank <= at < rank:
        raise ValueError(f"Argument `axis` = {at} not in range [{-rank}, {rank})")
    return call(CATALOGUE["stack"], values, axis=at)


def unstack(value: Any, num: int | None = None, axis: Any = 0, name: str = "unstack") -> list[EagerTensor]:
    """The slices along `axis`, without it."""
    tensor = convert_to_tensor(value)
    rank = tensor.ndim
    at = axis_of(axis)
    if not -rank <= at < rank:
        raise ValueError(f"Argument `axis` = {at} not in range [{-rank}, {rank})")
    before: tuple[Any, ...] = ((None, None, None),) * (at % rank)
    count = tensor.shape.as_list()[at]
    if num is not None and num != count:
        raise InvalidArgumentError(f"Input shape axis {at} must equal {num}, got shape {tensor.shape}")
    return [call(CATALOGUE["strided_slice"], (tensor,), index=(*before, i)) for i in builtins.range(count)]


def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list[EagerTensor]:
    """Pieces along `axis`: so many of equal size, or of the sizes listed (one may be -1)."""
    tensor = convert_to_tensor(value)
    rank, at = tensor.ndim, axis_of(axis)
    if not -rank <= at < rank:
        raise InvalidArgumentError(f"-input rank(-{rank}) <= split_dim < input rank ({rank}), but got {at} [Op:Split]")
    at %= rank
    size = tensor.shape.as_list()[at]
    given = num_or_size_splits
    if isinstance(given, int) or (isinstance(given, TensorLike) and not given.shape.rank):
        count = int(given)
        if count < 1 or size % count:
            raise InvalidArgumentError(
                "Number of ways to split should evenly divide the split dimension, but got split_dim "
                f"{at} (size = {size}) and num_split {count} [Op:Split]"
            )
        sizes = [size // count] * count
    else:
        sizes = list(ints(given, "num_or_size_splits"))
        rest = size - sum(one for one in sizes if one >= 0)
        sizes = [rest if one == -1 else one for one in sizes]
        if sum(sizes) != size or min(sizes, default=0) < 0:
            raise InvalidArgumentError(
                f"the sizes {sizes} do not add up to {size}, the length of axis {at} [Op:SplitV]"
            )
    before: tuple[Any, ...] = ((None, None, None),) * at
    starts = np.cumsum([0, *sizes]).tolist()
    return [
        call(CATALOGUE["strided_slice"], (tensor,), index=(*before, (a, b, None)))
        for a, b in itertools.pairwise(starts)
    ]


def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> EagerTensor:
    """The block from `begin` of `size` elements an axis; -1: to the end."""
    tensor = convert_to_tensor(input_)
    shape = tensor.shape.as_list()
    starts, counts = ints(begin, "begin"), ints(size, "size")
    index = []
    for at, (a, n, full) in enumerate(zip(starts, counts, shape, strict=True)):
        stop = full if n == -1 else a + n
        if a < 0 or stop > full or stop < a:
            raise InvalidArgumentError(f"Expected size[{at}] in [0, {full - a}], but got {n} [Op:Slice]")
        index.append((a, stop, None))
    return call(CATALOGUE["strided_slice"], (tensor,), index=tuple(index))


def tile(input: Any, multiples: Any, name: str | None = None) -> EagerTensor:
    """`input` repeated `multiples` times along each axis."""
    return call(CATALOGUE["tile"], (input,), multiples=ints(multiples, "multiples"))


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: str | None = None
) -> EagerTensor:
    """`tensor` with so many elements before and after along each axis; `paddings` [rank, 2]."""
    mode = mode.upper()
    if mode not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
        raise ValueError(
            'Value of argument `mode` expected to be one of "CONSTANT", "REFLECT", or "SYMMETRIC". '
            f"Received `mode` = {mode}"
        )
    table = np.asarray(paddings.numpy() if isinstance(paddings, TensorLike) else paddings)
    if table.ndim != 2 or table.shape[1] != 2:
        raise InvalidArgumentError(f"paddings must be a matrix with 2 columns: {list(table.shape)} [Op:Pad]")
    number = constant_values.numpy().item() if isinstance(constant_values, TensorLike) else constant_values
    rows = tuple((int(a), int(b)) for a, b in table)
    if mode != "CONSTANT":
        return call(CATALOGUE["mirror_pad"], (tensor,), paddings=rows, mode=mode)
    return call(CATALOGUE["pad"], (tensor,), paddings=rows, constant_value=number)


def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: Any = 0,
    name: str | None = None,
) -> EagerTensor:
    """Rows of `params` at `indices` along `axis`. The gradient of params on axis 0 is IndexedSlices."""
    batch = axis_of(batch_dims)
    at = batch if axis is None else axis_of(axis)
    return call(CATALOGUE["gather"], (params, convert_to_tensor(indices)), axis=at, batch_dims=batch)


def boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: str = "boolean_mask") -> EagerTensor:
    """The elements of `tensor` where `mask` holds; the mask covers the leading axes."""
    values, held = convert_to_tensor(tensor), convert_to_tensor(mask)
    rank = held.ndim
    if rank == 0:
        raise ValueError("mask cannot be scalar.")
    at = 0 if axis is None else axis_of(axis)
    shape = values.shape.as_list()
    if shape[at : at + rank] != held.shape.as_list():
        raise ValueError(f"Shapes {TensorShape(shape[at : at + rank])} and {held.shape} are incompatible")
    flat = reshape(values, [*shape[:at], -1, *shape[at + rank :]])
    places = squeeze(call(CATALOGUE["nonzero"], (reshape(held, [-1]),)), 1)
    return gather(flat, places, axis=at)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> EagerTensor:
    """`x` where the condition holds, else `y`; with the condition alone, where it holds: int64 [n, rank]."""
    if (x is None) != (y is None):
        raise ValueError("x and y must both be non-None or both be None.")
    if x is None:
        return call(CATALOGUE["nonzero"], (convert_to_tensor(condition),))
    return call(CATALOGUE["where"], (convert_to_tensor(condition), x, y))


def shape(input: Any, out_type: Any = None, name: str | None = None) -> EagerTensor:
    """The shape as a tensor, int32 by default."""
    dtype = dtypes.int32 if out_type is None else dtypes.as_dtype(out_type)
    return constant(np.array(convert_to_tensor(input).shape.as_list(), dtype.np))


def size(input: Any, out_type: Any = None, name: str | None = None) -> EagerTensor:
    """The number of elements as a tensor, int32 by default."""
    dtype = dtypes.int32 if out_type is None else dtypes.as_dtype(out_type)
    return constant(np.array(convert_to_tensor(input).shape.num_elements(), dtype.np))


def rank(input: Any, name: str | None = None) -> EagerTensor:
    """The number of axes as an int32 tensor."""
    return constant(convert_to_tensor(input).ndim)


def identity(input: Any, name: str | None = None) -> Any:
    """A tensor with the same values; IndexedSlices stay such."""
    if isinstance(input, IndexedSlices):
        return IndexedSlices(identity(input.values), identity(input.indices), input.dense_shape)
    return call(CATALOGUE["identity"], (convert_to_tensor(input) if not isinstance(input, TensorLike) else input,))


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> EagerTensor:
    """`x`, if its shape is compatible with `shape`, which may hold None for any length.

    Raises:
        InvalidArgumentError: It is not.
    """
    tensor, wanted = convert_to_tensor(x), as_shape(shape)
    if not tensor.shape.is_compatible_with(wanted):
        expected = (
            "<unknown>" if wanted.dims is None else "[" + ",".join("?" if n is None else str(n) for n in wanted) + "]"
        )
        raise InvalidArgumentError(
            f"Shape of tensor input {shape_text(tuple(tensor.shape))} is not compatible with expected shape {expected}."
        )
    return call(CATALOGUE["identity"], (tensor,))
