"""TensorFlow's operators on tensors and variables: the op of each, and the conversion of the other operand."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls import checks
from teletape.core.calls.dispatch import as_tensor, call, constant, convert_to_tensor, known_elements, operand, took
from teletape.core.program.call_site import latest_code, new_call_site
from teletape.core.program.tracebacks import report, reports
from teletape.core.sessions.current import current
from teletape.core.tensors.convert import fits
from teletape.core.tensors.indexed_slices import IndexedSlices
from teletape.core.tensors.indexing import index_spec
from teletape.core.tensors.tensor import EagerTensor, Tensor, TensorLike
from teletape.core.tensors.tensor_shape import TensorShape
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.assign import cut_of
from teletape_engine.recording.values import Literal
from teletape_engine.spec import DIFFERENTIABLE, NUMERIC, Shape

_ARITHMETIC: Final = {
    **{name: name for name in ("add", "sub", "mul", "floordiv", "pow", "matmul")},
    "truediv": "div",
    "mod": "floormod",
}


def _binary(python: str, name: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    op = CATALOGUE[name]
    attrs = op.attrs({})
    division = python == "truediv"
    theirs_first = f"__r{python}__"

    def operate(self: Any, other: Any) -> Any:
        try:
            frame = _frame(1)  # `call_site.caller` written out: a call costs as much as all of this
            code = frame.f_code
            where = (code, frame.f_lasti) if code is latest_code[0] else new_call_site(frame)
            owner = current()
            mine = self.recorded if self.__class__ is EagerTensor and self.session is owner else self.operand()
            kind = other.__class__
            if kind is float or kind is int:
                dtype = mine.spec.dtype
                if dtype in DIFFERENTIABLE or (kind is int and not division and fits(other, dtype)):
                    number = Literal(other)
                    pair = (number, mine) if reflected else (mine, number)
                    if owner.numbers:
                        return took(op, pair, attrs, where)
                    return EagerTensor(owner.recorder().apply(op, pair, attrs, where), owner)
            elif kind is EagerTensor and other.session is owner:
                theirs = other.recorded
                if not division or (mine.spec.dtype is theirs.spec.dtype and mine.spec.dtype in NUMERIC):
                    return EagerTensor(owner.recorder().apply(op, (mine, theirs), attrs, where), owner)
            if isinstance(other, IndexedSlices):
                other = as_tensor(other)
            if isinstance(other, TensorLike):
                pair = (other, self) if reflected else (self, other)
                return _divided(*pair) if division else call(op, pair)
            if not reflected and hasattr(type(other), theirs_first) and not _converts(other):
                try:
                    converted = convert_to_tensor(other, dtype_hint=self.dtype)
                except (TypeError, ValueError):
                    result = getattr(other, theirs_first)(self)
                    if result is NotImplemented:
                        raise
                    return result
                return _divided(self, converted) if division else call(op, (self, converted))
            if division and not reflected:
                return _divided(self, other)
            operand_of_other = operand(op, other, mine.spec.dtype, alone=python == "add" and not reflected)
            pair = (operand_of_other, mine) if reflected else (mine, operand_of_other)
            return EagerTensor(owner.recorder().apply(op, pair, attrs, where), owner)
        except BaseException as error:
            report(error)
            raise

    return operate


_frame: Final = sys._getframe


def _converts(other: Any) -> bool:
    return isinstance(other, int | float | complex | str | bytes | list | tuple | range) or hasattr(other, "__array__")


def _compare(name: str) -> Callable[[Any, Any], Any]:
    op = CATALOGUE[name]
    unlike = name == "not_equal"

    def operate(self: Any, other: Any) -> Any:
        if other is None and isinstance(self, Tensor):  # a variable raises, as TensorFlow's does
            return unlike
        if self.recorded.spec.dtype == object:
            return _compared_texts(self, other, unlike=unlike)
        try:
            return call(op, (self, other))
        except BaseException as error:
            if isinstance(error, InvalidArgumentError) and "Incompatible shapes" in error.message:
                return constant(unlike)
            report(error)
            raise

    return operate


def _compared_texts(self: Any, other: Any, *, unlike: bool) -> Tensor:
    """Returns whether strings are equal, or whether they differ. Strings are never sent to a server."""
    texts = convert_to_tensor(other)
    if texts.dtype is not self.dtype:
        raise InvalidArgumentError(f"strings are compared with strings; found a tensor of {texts.dtype.name}")
    mine, theirs = (each.session.fetch(each.operand()) for each in (self, texts))
    try:
        same = np.asarray(np.equal(mine, theirs), bool)
    except ValueError:  # their shapes do not fit
        return constant(unlike)
    return constant(~same if unlike else same)


def _unary(name: str) -> Callable[[Any], Any]:
    op = CATALOGUE[name]

    def operate(self: Any) -> Any:
        try:
            return call(op, (self,))
        except BaseException as error:
            report(error)
            raise

    return operate


def _logical(logical: str, bitwise: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    """Combines bools logically, integers bit by bit."""
    truths, bits = CATALOGUE[logical], CATALOGUE[bitwise]

    def operate(self: Any, other: Any) -> Any:
        op = truths if self.dtype.is_bool else bits
        try:
            return call(op, (other, self) if reflected else (self, other))
        except BaseException as error:
            report(error)
            raise

    return operate


@reports
def _invert(self: Any) -> Any:
    return call(CATALOGUE["logical_not" if self.dtype.is_bool else "invert"], (self,))


def give_operators(cls: type = TensorLike) -> None:
    """Defines TensorFlow's operators on `cls`."""
    for python, name in _ARITHMETIC.items():
        setattr(cls, f"__{python}__", _binary(python, name))
        setattr(cls, f"__r{python}__", _binary(python, name, reflected=True))
    for python, name in {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}.items():
        setattr(cls, f"__{python}__", _binary(python, name))
    bits = {
        "and": ("logical_and", "bitwise_and"),
        "or": ("logical_or", "bitwise_or"),
        "xor": ("not_equal", "bitwise_xor"),
    }
    for python, names in bits.items():
        setattr(cls, f"__{python}__", _logical(*names))
        setattr(cls, f"__r{python}__", _logical(*names, reflected=True))
    for python, name in {"neg": "neg", "abs": "abs"}.items():
        setattr(cls, f"__{python}__", _unary(name))
    others = {
        "__invert__": _invert,
        "__eq__": _compare("equal"),
        "__ne__": _compare("not_equal"),
        "__getitem__": _getitem,
    }
    for python, method in others.items():
        setattr(cls, python, method)


def _getitem(self: Any, key: Any) -> Any:
    try:
        mask = _mask(key)
        if mask is not None:
            return masked(convert_to_tensor(self), convert_to_tensor(mask))
        if has_unknown_index(key):
            return _at_unknown_indices(self, list(key) if isinstance(key, tuple | list) else [key])
        return call(ops.strided_slice, (self,), index=index_spec(key))
    except BaseException as error:
        report(error)
        raise


def has_unknown_index(key: Any) -> bool:
    """Whether an index contains an integer tensor whose value is not known here: only the server knows it."""
    if current().local:
        return False
    parts = key if isinstance(key, tuple | list) else (key,)
    return any(_is_unknown(part) for part in parts)


def _is_unknown(part: Any) -> bool:
    return (
        isinstance(part, TensorLike) and part.shape.rank == 0 and part.dtype.is_integer and known_elements(part) is None
    )


def _at_unknown_indices(tensor: Any, parts: list[Any]) -> Any:
    """Returns `tensor[parts]`: first the part at the known indices, then the element at each unknown one."""
    known = [slice(None) if _is_unknown(part) else part for part in parts]
    result = call(ops.strided_slice, (tensor,), index=index_spec(tuple(known)))
    axes = sum(part is not None and part is not Ellipsis for part in parts)
    omitted = tensor.shape.rank - axes
    axis, dimension, positions = 0, 0, []
    for part in parts:
        if _is_unknown(part):
            positions.append((axis, dimension, as_tensor(part)))
        axis += omitted if part is Ellipsis else int(part is None or isinstance(part, slice) or _is_unknown(part))
        dimension += omitted if part is Ellipsis else int(part is not None)
    for axis, dimension, index in reversed(positions):
        result = element_at(result, index, axis, dimension)
    return result


def cut_at(shape: Shape, key: Any) -> tuple[Any, tuple[int, ...]]:
    """Returns start, step and count of an index along each axis, as an array or a tensor; and the counts.

    Args:
        shape: The shape of the indexed tensor.
        key: The index, without masks.
    """
    parts = list(key) if isinstance(key, tuple | list) else [key]
    unknown = [not current().local and _is_unknown(part) for part in parts]
    index = index_spec([0 if absent else part for part, absent in zip(parts, unknown, strict=True)])
    cut = cut_of(shape, index)
    numbers: Any = np.array(cut, np.int64).reshape(-1, 3)
    axis, omitted = 0, len(shape) - sum(part is not None and part is not Ellipsis for part in parts)
    for part, absent in zip(parts, unknown, strict=True):
        if absent:
            start = element_index(as_tensor(part), shape[axis], axis)
            at_start = np.zeros_like(cut)
            at_start[axis, 0] = 1
            numbers = call(
                ops.add, (call(ops.mul, (call(ops.cast, (start,), dtype=at_start.dtype), at_start)), numbers)
            )
        axis += omitted if part is Ellipsis else int(part is not None)
    return numbers, tuple(count for _, _, count in cut)


def element_at(tensor: Tensor, index: Tensor, axis: int = 0, dimension: int | None = None) -> Tensor:
    """Returns the element along an axis at a scalar index, which may be negative; its gradient is dense.

    Args:
        tensor: The tensor.
        index: The index, an integer scalar.
        axis: The axis.
        dimension: The axis that a message names; None: `axis`.
    """
    from_front = element_index(index, tensor.shape.as_list()[axis], axis if dimension is None else dimension)
    return entry(tensor, from_front, axis)


def element_index(index: Tensor, length: int, dimension: int) -> Tensor:
    """Returns an index as a nonnegative one; the server refuses it outside of this axis of the tensor."""
    message = f"slice index {{index}} of dimension {dimension} out of bounds."
    return call(ops.element_index, (index,), length=length, wraps=True, message=message)


def entry(tensor: Tensor, index: Tensor, axis: int = 0) -> Tensor:
    """Returns the element along an axis at a nonnegative index; its gradient is dense."""
    inner = call(ops.expand_dims, (tensor,), axis=0)
    return call(ops.squeeze, (call(ops.gather, (inner, index), axis=axis + 1),), axis=(0,))


def masked(values: Tensor, flags: Tensor, axis: int = 0) -> Tensor:
    """Returns the elements where the flags, which cover the axes from `axis` on, are true.

    Raises:
        ValueError: The flags' shape is not that of these axes.
    """
    rank, shape = flags.ndim, values.shape.as_list()
    if shape[axis : axis + rank] != flags.shape.as_list():
        raise ValueError(f"Shapes {TensorShape(shape[axis : axis + rank])} and {flags.shape} are incompatible")
    flat = call(ops.reshape, (values,), shape=(*shape[:axis], -1, *shape[axis + rank :]))
    positions = call(ops.nonzero, (call(ops.reshape, (flags,), shape=(-1,)),))
    return call(ops.gather, (flat, call(ops.squeeze, (positions,), axis=1)), axis=axis, batch_dims=0)


def _divided(x: Any, y: Any) -> Tensor:
    x = to.value(x)
    y = to.hinted(y, x)
    checks.same_numeric_dtype(x, y)
    return call(ops.div, (x, y))


def _mask(key: Any) -> Any:
    if isinstance(key, TensorLike) and key.dtype.is_bool and key.shape.rank:
        return key
    return key if isinstance(key, np.ndarray) and key.dtype == np.bool_ and key.ndim else None
