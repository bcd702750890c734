"""Sizes: the integers that a graph computes from shapes, on the host, while it runs.

A size of an axis that is open keeps that fact through arithmetic, so that a reshape to it writes -1, and a tensor of
that size is made from the tensor that has it. A traced graph so has no number of the batch in it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from teletape._generated.elementwise.logic import logical_or
from teletape._generated.shapes.cast import cast
from teletape._generated.shapes.shape import broadcast_to, reshape
from teletape.core.calls.dispatch import constant
from teletape.core.tensors.tensor import TensorLike
from teletape.tf.ops.arrays.create import zeros_like


class Source(NamedTuple):
    """The axis that has a size."""

    tensor: Any
    axis: int


class Size(int):
    """The size of an open axis, or an integer that follows from such sizes.

    Attributes:
        source: The axis that has this size; None: the integer is computed.
    """

    source: Source | None

    def __new__(cls, value: int, source: Source | None = None) -> Size:
        """Returns the integer with its source."""
        size = super().__new__(cls, value)
        size.source = source
        return size

    def _with(self, compute: Callable[[int, int], int], other: Any, neutral: int | None = None) -> Any:
        if not isinstance(other, int | np.integer):
            return compute(int(self), other)
        value = compute(int(self), int(other))
        return Size(value, self.source if not isinstance(other, Size) and int(other) == neutral else None)

    def __add__(self, other: Any) -> Any:
        return self._with(operator.add, other, 0)

    def __sub__(self, other: Any) -> Any:
        return self._with(operator.sub, other, 0)

    def __rsub__(self, other: Any) -> Any:
        return self._with(lambda x, y: y - x, other)

    def __mul__(self, other: Any) -> Any:
        return self._with(operator.mul, other, 1)

    def __floordiv__(self, other: Any) -> Any:
        return self._with(operator.floordiv, other, 1)

    def __mod__(self, other: Any) -> Any:
        return self._with(operator.mod, other)

    def __neg__(self) -> Any:
        return Size(-int(self))

    __radd__ = __add__
    __rmul__ = __mul__


def host(value: Any) -> np.ndarray[Any, Any]:
    """Returns a value as an array; sizes stay what they are, in an array of objects."""
    array = value if isinstance(value, np.ndarray) else None
    if array is None:
        array = np.empty((), object) if isinstance(value, Size) else np.asarray(value)
        if isinstance(value, Size):
            array[()] = value
    if array.dtype == object and not any(isinstance(element, Size) for element in array.flat):
        return array.astype(np.bool_ if all(isinstance(element, bool) for element in array.flat) else np.int64)
    return array


def shape_of(tensor: Any, open_axes: frozenset[int] | None) -> np.ndarray[Any, Any]:
    """Returns the shape of a tensor, with sizes in place of the lengths of its open axes."""
    shape = np.empty(len(tensor.shape), object)
    for axis, length in enumerate(tensor.shape):
        is_open = open_axes is None or axis in open_axes
        shape[axis] = Size(length, Source(tensor, axis)) if is_open else int(length)
    return host(shape) if shape.size else shape.astype(np.int64)


def tensor_of(value: Any) -> Any:
    """Returns an array as a tensor, with sizes as the numbers that they are now; tensors stay."""
    if not isinstance(value, np.ndarray):
        return value
    return constant(value.astype(np.int64) if value.dtype == object else value)


def to_shape(tensor: Any, target: Sequence[Any], open_axes: frozenset[int] | None, allowzero: bool = False) -> Any:
    """Reshapes a tensor; one open size among the lengths is written as -1."""
    own = list(shape_of(tensor, open_axes))
    lengths = [own[axis] if length == 0 and not allowzero else length for axis, length in enumerate(target)]
    open_at = [axis for axis, length in enumerate(lengths) if isinstance(length, Size)]
    total = int(np.prod([int(length) for length in own]))
    if len(open_at) == 1 and total:
        size, free = int(lengths[open_at[0]]), [axis for axis, length in enumerate(lengths) if length == -1]
        is_all = np.prod([int(length) for length in own if isinstance(length, Size)]) == size
        if free and is_all:
            lengths[free[0]] = total // int(np.prod([int(length) for length in lengths if length != -1]))
            free = []
        if not free:
            lengths[open_at[0]] = -1
    return reshape(tensor, [int(length) for length in lengths])


def to_larger(tensor: Any, target: Sequence[Any]) -> Any:
    """Broadcasts a tensor with the lengths of a shape; open ones come from the tensors that have them."""
    rank = max(len(target), len(tensor.shape))
    lengths = [1] * (rank - len(target)) + list(target)
    own = [1] * (rank - len(tensor.shape)) + [int(length) for length in tensor.shape]
    sources = {
        axis: length.source
        for axis, length in enumerate(lengths)
        if isinstance(length, Size) and length.source is not None and own[axis] == 1
    }
    known = [
        own[axis] if axis in sources or int(length) in (1, own[axis]) else int(length)
        for axis, length in enumerate(lengths)
    ]
    if known != list(tensor.shape):
        same = [axis for axis, (new, old) in enumerate(zip(known, own, strict=True)) if new == old]
        expanded = tensor if len(own) == len(tensor.shape) else tensor[(None,) * (rank - len(tensor.shape))]
        tensor = expanded if len(same) == rank else broadcast_to(expanded, known)
    for axis, source in sources.items():
        row = source.tensor[tuple([slice(None) if i == source.axis else 0 for i in range(len(source.tensor.shape))])]
        nothing = zeros_like(row)[tuple([slice(None) if i == axis else None for i in range(rank)])]
        nothing = cast(nothing, tensor.dtype)
        tensor = logical_or(tensor, nothing) if tensor.dtype.name == "bool" else tensor + nothing
    return tensor


# -------------------------------------------------------------------------------------------------------- on the host
def _gathered(data: Any, indices: Any, axis: int = 0) -> Any:
    return np.take(data, indices.astype(np.int64), axis=axis)


def _sliced(data: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    parts = [slice(None)] * data.ndim
    for number, axis in enumerate(range(len(starts)) if axes is None else axes):
        step = 1 if steps is None else int(steps[number])
        parts[axis] = slice_of(int(starts[number]), int(ends[number]), step, data.shape[axis])
    return data[tuple(parts)]


def slice_of(start: int, end: int, step: int, length: int) -> slice:
    """Returns the slice for ONNX's start and end, which may lie far outside; a whole axis has no numbers in it."""
    if step > 0:
        return slice(start if start > 0 or -length < start < 0 else None, end if end < length else None, step)
    return slice(start if start < length - 1 else None, end if end >= -length else None, step)


def _quotient(x: Any, y: Any) -> Any:
    if x.dtype.kind in "iu":
        return (np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))).astype(x.dtype)
    return x // y if x.dtype == object or y.dtype == object else x / y


def _as_type(x: Any, *, to: str) -> Any:
    return x if x.dtype == object and to in ("int64", "int32") else x.astype(to)


def _without(x: Any, axes: Any = None) -> Any:
    return np.squeeze(x, None if axes is None else tuple(int(axis) for axis in axes))


def _with_axes(x: Any, axes: Any) -> Any:
    rank = x.ndim + len(axes)
    return np.expand_dims(x, tuple(int(axis) % rank for axis in axes))


def _reduced(reduce: Any) -> Callable[..., Any]:
    def compute(x: Any, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
        if not np.size(axes if axes is not None else ()) and noop_with_empty_axes:
            return x
        axis = tuple(int(axis) for axis in axes) if axes is not None and np.size(axes) else None
        return reduce.reduce(x, axis=axis if axis is not None else tuple(range(x.ndim)), keepdims=bool(keepdims))

    return compute


def _filled(shape: Any, value: Any = None) -> Any:
    if shape.dtype == object:
        return NotImplemented
    value = np.zeros(1, np.float32) if value is None else value
    return np.full(shape.tolist(), value[0], value.dtype)


def _reshaped(x: Any, shape: Any, allowzero: int = 0) -> Any:
    lengths = [x.shape[axis] if length == 0 and not allowzero else int(length) for axis, length in enumerate(shape)]
    return np.reshape(x, lengths)


#: Operators on values that are known on the host.
_ON_HOST: Final[dict[str, Callable[..., Any]]] = {
    "Add": operator.add,
    "And": np.logical_and,
    "Cast": _as_type,
    "Concat": lambda *arrays, axis: np.concatenate(arrays, axis),
    "ConstantOfShape": _filled,
    "Div": _quotient,
    "Equal": np.equal,
    "Gather": _gathered,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Identity": lambda x: x,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Max": lambda *arrays: np.maximum.reduce(np.broadcast_arrays(*arrays)) if len(arrays) > 1 else arrays[0],
    "Min": lambda *arrays: np.minimum.reduce(np.broadcast_arrays(*arrays)) if len(arrays) > 1 else arrays[0],
    "Mul": operator.mul,
    "Neg": operator.neg,
    "Not": lambda x: np.logical_not(x.astype(bool)),
    "Or": np.logical_or,
    "Range": lambda start, limit, delta: np.arange(start[()], limit[()], delta[()], dtype=_plain(start)),
    "ReduceMax": _reduced(np.maximum),
    "ReduceMin": _reduced(np.minimum),
    "ReduceProd": _reduced(np.multiply),
    "ReduceSum": _reduced(np.add),
    "Reshape": _reshaped,
    "Slice": _sliced,
    "Sqrt": np.sqrt,
    "Squeeze": _without,
    "Sub": operator.sub,
    "Unsqueeze": _with_axes,
    "Where": lambda condition, x, y: np.where(condition.astype(bool), x, y),
}


def _plain(array: Any) -> Any:
    return np.int64 if array.dtype == object else array.dtype


def folded(name: str, inputs: Sequence[Any], attributes: dict[str, Any]) -> np.ndarray[Any, Any] | None:
    """Returns the result of an operator whose inputs are all known on the host; None: it is no such operator."""
    compute = _ON_HOST.get(name)
    if compute is None or any(isinstance(value, TensorLike) for value in inputs):
        return None
    if name in ("Sqrt", "ConstantOfShape") and any(value is not None and value.dtype == object for value in inputs):
        return None
    result = compute(*inputs, **attributes)
    return host(result)
