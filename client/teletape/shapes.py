"""TensorFlow's functions that make or rearrange tensors and take shapes, axes or lists: their conversions by hand."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from teletape import dtypes
from teletape.calling import call, constant, convert_to_tensor
from teletape.convert import host_array
from teletape.dtypes import DType
from teletape.shape import TensorShape
from teletape.tensor import EagerTensor, TensorLike
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.op import CATALOGUE

_OP = CATALOGUE


def ints(value: Any, what: str = "shape") -> tuple[int, ...]:
    """Whole numbers from a list, an array, a TensorShape or an integer tensor (whose values are read).

    Raises:
        InvalidArgumentError: Fractions, or more than one axis.
    """
    if isinstance(value, TensorShape):
        return tuple(value.as_list())
    if isinstance(value, int) and not isinstance(value, bool):
        return (value,)
    if isinstance(value, list | tuple):
        if all(type(one) is int for one in value):
            return tuple(value)
        value = [int(one) if isinstance(one, TensorLike) and one.dtype.is_integer else one for one in value]
    array = value.numpy() if isinstance(value, TensorLike) else host_array(value)
    array = np.asarray(array)
    if array.size and array.dtype.kind not in "iu":
        raise InvalidArgumentError(f"{what} must be whole numbers (int32 or int64), found {value!r}")
    return tuple(int(one) for one in array.reshape(-1))


def lengths(value: Any, op: str) -> tuple[int, ...]:
    """A shape, none of whose lengths is negative."""
    found = ints(value)
    for one in found:
        if one < 0:
            raise InvalidArgumentError(f"Dimension {one} must be >= 0 [Op:{op}]")
    return found


def _axis(value: Any) -> int:
    return value if type(value) is int else int(value)


def axes(value: Any) -> Any:
    """An axis, several, or None, from numbers, lists or tensors."""
    if value is None or type(value) is int:
        return value
    if isinstance(value, TensorLike | np.ndarray | np.generic):
        array = np.asarray(value)
        return int(array) if array.ndim == 0 else tuple(int(one) for one in array)
    return ints(value, "axis")


# ----------------------------------------------------------------------------------------------------------------- make
def fill(dims: Any, value: Any, name: str | None = None) -> EagerTensor:
    """A tensor of shape `dims`, every element `value` (a scalar)."""
    return call(_OP["fill"], (as_scalar(convert_to_tensor(value)),), shape=lengths(dims, "Fill"))


def as_scalar(tensor: EagerTensor) -> EagerTensor:
    """A tensor of one element as rank 0; InvalidArgumentError for more."""
    if tensor.shape.rank == 0:
        return tensor
    if tensor.shape.num_elements() != 1:
        raise InvalidArgumentError(f"value must be a scalar, found shape {tensor.shape}")
    return call(_OP["reshape"], (tensor,), shape=())


def _full(shape: Any, number: int, dtype: Any) -> EagerTensor:
    wanted = dtypes.as_dtype(dtype)
    dims = lengths(shape, "Fill")
    if wanted is dtypes.string:
        return constant(np.full(dims, b"", object))
    return call(_OP["fill"], (number,), shape=dims, dtype=wanted.np)


def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = None, layout: Any = None) -> EagerTensor:
    """A tensor of zeros."""
    return _full(shape, 0, dtype)


def ones(shape: Any, dtype: Any = dtypes.float32, name: str | None = None, layout: Any = None) -> EagerTensor:
    """A tensor of ones."""
    return _full(shape, 1, dtype)


def zeros_like(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> EagerTensor:
    """Zeros of the shape of `input`, and of its dtype unless another is given."""
    return _like("zeros_like", 0, input, dtype)


def ones_like(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> EagerTensor:
    """Ones of the shape of `input`, and of its dtype unless another is given."""
    return _like("ones_like", 1, input, dtype)


def _like(op: str, number: int, input: Any, dtype: Any) -> EagerTensor:
    tensor = convert_to_tensor(input)
    if dtype is None and tensor.dtype is not dtypes.string:
        return call(_OP[op], (tensor,))
    return _full(tensor.shape, number, tensor.dtype if dtype is None else dtype)


def eye(
    num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = dtypes.float32, name: str | None = None
) -> EagerTensor:
    """An identity matrix [*batch_shape, rows, columns]."""
    return call(
        _OP["eye"],
        (),
        num_rows=_axis(num_rows),
        num_columns=None if num_columns is None else _axis(num_columns),
        batch_shape=() if batch_shape is None else lengths(batch_shape, "Fill"),
        dtype=dtypes.as_dtype(dtype).np,
    )


def range(  # TensorFlow's name
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str | None = "range"
) -> EagerTensor:
    """start, start + delta, … below `limit`; `range(n)` counts from 0."""
    if limit is None:
        start, limit = 0, start
    parts = [convert_to_tensor(one).numpy() for one in (start, limit, delta)]
    if dtype is None:
        order = (dtypes.int32, dtypes.int64, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
        found = [dtypes.as_dtype(np.asarray(one).dtype) for one in parts]
        wanted: DType = max(found, key=lambda one: order.index(one) if one in order else 0)
    else:
        wanted = dtypes.as_dtype(dtype)
    first, last, step = (one.item() for one in parts)
    if step == 0:
        raise InvalidArgumentError("Requires delta != 0: 0 [Op:Range]")
    if (last - first) * step < 0:
        sign = ("<=", ">") if step > 0 else (">=", "<")
        raise InvalidArgumentError(f"Requires start {sign[0]} limit when delta {sign[1]} 0: {first}/{last} [Op:Range]")
    count = max(0, math.ceil((last - first) / step))
    return constant((first + step * np.arange(count)).astype(wanted.np))


def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: Any = 0) -> EagerTensor:
    """`num` evenly spaced values from `start` to `stop`, both included, along a new axis; integers give float64."""
    first = convert_to_tensor(start)
    last = convert_to_tensor(stop, None if isinstance(stop, TensorLike) else first.dtype)
    if first.dtype.is_integer:
        first, last = cast(first, dtypes.float64), cast(last, dtypes.float64)
    return call(_OP["linspace"], (first, last), num=_axis(num), axis=_axis(axis))


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    dtype: Any = None,
    name: str | None = None,
) -> EagerTensor:
    """`on_value` where the new axis's position is the index, `off_value` elsewhere; indices outside give a row of it."""
    number = ints(depth, "depth")[0]
    if number < 0:
        raise InvalidArgumentError(f"depth must be non-negative, got: {number} [Op:OneHot]")
    given = [convert_to_tensor(one).dtype for one in (on_value, off_value) if one is not None]
    wanted = dtypes.as_dtype(dtype) if dtype is not None else given[0] if given else dtypes.float32
    if any(one is not wanted for one in given) and dtype is not None:
        raise TypeError(f"dtype {given[0].name} of on_value does not match dtype parameter {wanted.name}")
    at = -1 if axis is None else _axis(axis)
    made = call(_OP["one_hot"], (convert_to_tensor(indices),), depth=number, axis=at, dtype=wanted.np)
    if on_value is None and off_value is None:
        return made
    on = constant(1, wanted) if on_value is None else on_value
    off = constant(0, wanted) if off_value is None else off_value
    return call(_OP["where"], (made if wanted.is_bool else cast(made, dtypes.bool), on, off))


# -------------------------------------------------------------------------------------------------------------- rearrange
def cast(x: Any, dtype: Any, name: str | None = None) -> EagerTensor:
    """`x` with another dtype; fractions are cut towards zero. A tensor that has it already comes back as it is."""
    wanted = dtypes.as_dtype(dtype)
    tensor = convert_to_tensor(x)
    if tensor.dtype is wanted:
        return tensor
    if dtypes.string in (tensor.dtype, wanted):
        from teletape.errors import UnimplementedError

        raise UnimplementedError(f"Cast {tensor.dtype.name} to {wanted.name} is not supported [Op:Cast]")
    return call(_OP["cast"], (tensor,), dtype=wanted.np)


def reshape(tensor: Any, shape: Any, name: str | None = None) -> EagerTensor:
    """The same elements in another shape; one length may be -1."""
    return call(_OP["reshape"], (tensor,), shape=ints(shape))


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> EagerTensor:
    """`input` repeated along axes of length 1 to `shape`."""
    return call(_OP["broadcast_to"], (input,), shape=lengths(shape, "BroadcastTo"))


def transpose(a: Any, perm: Any = None, conjugate: bool = False, name: str | None = None) -> EagerTensor:
    """The axes in the order `perm`, reversed by default."""
    made = call(_OP["transpose"], (a,), perm=None if perm is None else ints(perm, "perm"))
    return call(_OP["conj"], (made,)) if conjugate and made.dtype.is_complex else made


def expand_dims(input: Any, axis: Any, name: str | None = None) -> EagerTensor:
    """`input` with a new axis of length 1 at `axis`."""
    return call(_OP["expand_dims"], (input,), axis=ints(axis, "axis")[0])


def squeeze(input: Any, axis: Any = None, name: str | None = None) -> EagerTensor:
    """`input` without its axes of length 1, all or those named."""
    return call(_OP["squeeze"], (input,), axis=axes(axis))


def concat(values: Any, axis: Any, name: str | None = "concat") -> EagerTensor:
    """The tensors one behind the other along `axis`."""
    if not isinstance(values, list | tuple):
        values = [values]
    if len(values) == 1:
        return call(_OP["identity"], (convert_to_tensor(values[0]),))
    return call(_OP["concat"], values, axis=ints(axis, "axis")[0])


def stack(values: Any, axis: Any = 0, name: str = "stack") -> EagerTensor:
    """The tensors side by side along a new axis."""
    if isinstance(values, TensorLike):
        values = unstack(values)
    if not len(values):
        return constant([])
    at = _axis(axis)
    first = next((one.shape.rank for one in values if isinstance(one, TensorLike)), None)
    rank = (np.ndim(values[0]) if first is None else first) + 1
    if not -rank <= at < rank:
        raise ValueError(f"Argument `axis` = {at} not in range [{-rank}, {rank})")
    return call(_OP["stack"], values, axis=at)


def unstack(value: Any, num: int | None = None, axis: Any = 0, name: str = "unstack") -> list[EagerTensor]:
    """The slices along `axis`, without it."""
    tensor = convert_to_tensor(value)
    rank = tensor.ndim
    at = _axis(axis)
    if not -rank <= at < rank:
        raise ValueError(f"Argument `axis` = {at} not in range [{-rank}, {rank})")
    before: tuple[Any, ...] = ((None, None, None),) * (at % rank)
    count = tensor.shape.as_list()[at]
    if num is not None and num != count:
        raise InvalidArgumentError(f"axis {at} has length {count}, num is {num}")
    return [call(_OP["strided_slice"], (tensor,), index=(*before, i)) for i in builtins.range(count)]


def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list[EagerTensor]:
    """Pieces along `axis`: so many of equal size, or of the sizes listed (one may be -1)."""
    tensor = convert_to_tensor(value)
    rank, at = tensor.ndim, _axis(axis)
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
            raise InvalidArgumentError(f"the sizes {sizes} do not add up to {size}, the length of axis {at} [Op:SplitV]")
    before: tuple[Any, ...] = ((None, None, None),) * at
    starts = np.cumsum([0, *sizes]).tolist()
    return [
        call(_OP["strided_slice"], (tensor,), index=(*before, (a, b, None)))
        for a, b in zip(starts, starts[1:], strict=False)
    ]


def slice_(input_: Any, begin: Any, size: Any, name: str | None = None) -> EagerTensor:
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
    return call(_OP["strided_slice"], (tensor,), index=tuple(index))


def tile(input: Any, multiples: Any, name: str | None = None) -> EagerTensor:
    """`input` repeated `multiples` times along each axis."""
    return call(_OP["tile"], (input,), multiples=ints(multiples, "multiples"))


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
        return call(_OP["mirror_pad"], (tensor,), paddings=rows, mode=mode)
    return call(_OP["pad"], (tensor,), paddings=rows, constant_value=number)


def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: Any = 0,
    name: str | None = None,
) -> EagerTensor:
    """Rows of `params` at `indices` along `axis`. The gradient of params on axis 0 is IndexedSlices."""
    batch = _axis(batch_dims)
    at = batch if axis is None else _axis(axis)
    return call(_OP["gather"], (params, convert_to_tensor(indices)), axis=at, batch_dims=batch)


def boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: str = "boolean_mask") -> EagerTensor:
    """The elements of `tensor` where `mask` holds; the mask covers the leading axes."""
    values, held = convert_to_tensor(tensor), convert_to_tensor(mask)
    rank = held.ndim
    if rank == 0:
        raise ValueError("mask cannot be scalar.")
    at = 0 if axis is None else _axis(axis)
    shape = values.shape.as_list()
    if shape[at : at + rank] != held.shape.as_list():
        raise ValueError(f"Shapes {TensorShape(shape[at : at + rank])} and {held.shape} are incompatible")
    flat = reshape(values, [*shape[:at], -1, *shape[at + rank :]])
    places = squeeze(call(_OP["nonzero"], (reshape(held, [-1]),)), 1)
    return gather(flat, places, axis=at)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> EagerTensor:
    """`x` where the condition holds, else `y`; with the condition alone, where it holds: int64 [n, rank]."""
    if (x is None) != (y is None):
        raise ValueError("x and y must both be non-None or both be None.")
    if x is None:
        return call(_OP["nonzero"], (convert_to_tensor(condition),))
    return call(_OP["where"], (convert_to_tensor(condition), x, y))


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


def identity(input: Any, name: str | None = None) -> EagerTensor:
    """A tensor with the same values."""
    return call(_OP["identity"], (convert_to_tensor(input) if not isinstance(input, TensorLike) else input,))



#: The functions of this module that are TensorFlow's, by name.
PUBLIC = (
    "boolean_mask",
    "broadcast_to",
    "cast",
    "concat",
    "expand_dims",
    "eye",
    "fill",
    "gather",
    "identity",
    "linspace",
    "one_hot",
    "ones",
    "ones_like",
    "pad",
    "range",
    "rank",
    "reshape",
    "shape",
    "size",
    "split",
    "squeeze",
    "stack",
    "tile",
    "transpose",
    "unstack",
    "where",
    "zeros",
    "zeros_like",
)
