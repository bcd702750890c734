"""TensorFlow's operators on tensors and variables: which op each is, and how it converts the other side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from teletape import session
from teletape.calling import call, constant, operand
from teletape.convert import host_array
from teletape.tensor import EagerTensor, Tensor
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.graph import Literal
from teletape_engine.op import CATALOGUE, Op
from teletape_engine.spec import DIFFERENTIABLE, INTEGER


def _binary(name: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    op = CATALOGUE[name]
    attrs = op.attrs({})
    floats = name == "div"

    def operate(self: Any, other: Any) -> Any:
        owner = session.current()
        if self.__class__ is EagerTensor and self._session is owner:
            mine = self._v
            kind = other.__class__
            if kind is EagerTensor:
                if other._session is owner:
                    pair = (other._v, mine) if reflected else (mine, other._v)
                    return EagerTensor(owner.recorder().apply(op, pair, attrs), owner)
            elif kind is float or kind is int:
                dtype = mine.spec.dtype
                if dtype in DIFFERENTIABLE or (kind is int and not floats and dtype in INTEGER):
                    number = Literal(other)
                    pair = (number, mine) if reflected else (mine, number)
                    return EagerTensor(owner.recorder().apply(op, pair, attrs), owner)
        return _slowly(op, self, other, reflected)

    return operate


def _slowly(op: Op, self: Any, other: Any, reflected: bool) -> Any:
    if other is None:
        host_array(None)
    if reflected and op.name == "add":
        op_strict = CATALOGUE["mul"]  # a reflected + converts as strictly as the other operators
        mine = self._operand()
        pair = [operand(op_strict, other, mine.spec.dtype), mine]
        owner = session.current()
        return EagerTensor(owner.recorder().apply(op, pair, op.attrs({})), owner)
    return call(op, (other, self) if reflected else (self, other))


def _compare(name: str) -> Callable[[Any, Any], Any]:
    op = CATALOGUE[name]
    unlike = name == "not_equal"

    def operate(self: Any, other: Any) -> Any:
        if other is None:
            return unlike
        try:
            return call(op, (self, other))
        except InvalidArgumentError as error:
            if "Incompatible shapes" not in error.message:
                raise
            return constant(unlike)

    return operate


def _unary(name: str) -> Callable[[Any], Any]:
    op = CATALOGUE[name]
    return lambda self: call(op, (self,))


def _logical(logical: str, bitwise: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    """Truth values are combined as such, integers bit by bit."""
    truths, bits = CATALOGUE[logical], CATALOGUE[bitwise]

    def operate(self: Any, other: Any) -> Any:
        op = truths if self.dtype.is_bool else bits
        return call(op, (other, self) if reflected else (self, other))

    return operate


def _invert(self: Any) -> Any:
    return call(CATALOGUE["logical_not" if self.dtype.is_bool else "invert"], (self,))


def give_operators(cls: type) -> None:
    """Defines TensorFlow's operators on `cls`."""
    for python, name in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floordiv"}.items():
        setattr(cls, f"__{python}__", _binary(name))
        setattr(cls, f"__r{python}__", _binary(name, reflected=True))
    for python, name in {"mod": "floormod", "pow": "pow", "matmul": "matmul"}.items():
        setattr(cls, f"__{python}__", _binary(name))
        setattr(cls, f"__r{python}__", _binary(name, reflected=True))
    for python, name in {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}.items():
        setattr(cls, f"__{python}__", _binary(name))
    bits = {"and": ("logical_and", "bitwise_and"), "or": ("logical_or", "bitwise_or"), "xor": ("not_equal", "bitwise_xor")}
    for python, names in bits.items():
        setattr(cls, f"__{python}__", _logical(*names))
        setattr(cls, f"__r{python}__", _logical(*names, reflected=True))
    for python, name in {"neg": "neg", "abs": "abs"}.items():
        setattr(cls, f"__{python}__", _unary(name))
    setattr(cls, "__invert__", _invert)
    setattr(cls, "__eq__", _compare("equal"))
    setattr(cls, "__ne__", _compare("not_equal"))


def index_spec(key: Any) -> tuple[Any, ...]:
    """A Python index as the attribute `index` of strided_slice.

    Raises:
        TypeError: Something that is no integer, slice, ellipsis, newaxis or integer scalar.
    """
    parts = list(key) if isinstance(key, tuple | list) else [key]
    return tuple(_index_part(part) for part in parts)


def _index_part(part: Any) -> Any:
    if part is Ellipsis:
        return "..."
    if part is None:
        return None
    if isinstance(part, slice):
        return tuple(None if one is None else _whole(one) for one in (part.start, part.stop, part.step))
    return _whole(part)


def _whole(value: Any) -> int:
    if isinstance(value, bool | np.bool_):
        raise ValueError("mask cannot be scalar.")
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        raise TypeError(
            "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are "
            f"valid indices, got {value!r}"
        ) from None


def _getitem(self: Any, key: Any) -> Any:
    mask = _mask(key)
    if mask is not None:
        from teletape.functions import boolean_mask

        return boolean_mask(self, mask)
    return call(CATALOGUE["strided_slice"], (self,), index=index_spec(key))


def _mask(key: Any) -> Any:
    if isinstance(key, Tensor) and key.dtype.is_bool and key.shape.rank:  # type: ignore[attr-defined]  # both kinds have it
        return key
    return key if isinstance(key, np.ndarray) and key.dtype == np.bool_ and key.ndim else None


give_operators(Tensor)
setattr(Tensor, "__getitem__", _getitem)
