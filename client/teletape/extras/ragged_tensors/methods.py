"""The methods of RaggedTensor that are functions of other modules: factories, conversions, indexing, operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from teletape._generated.elementwise.arithmetic import truediv
from teletape._generated.elementwise.logic import logical_xor
from teletape.core.calls.dispatch import call, constant
from teletape.core.program.tracebacks import reports
from teletape.core.tensors.tensor import Tensor
from teletape.extras.ragged_tensors import conversions, factories
from teletape.extras.ragged_tensors.forms.of_ops import form_of
from teletape.extras.ragged_tensors.indexing import item
from teletape.extras.ragged_tensors.partition import RowPartition
from teletape.extras.ragged_tensors.tensor import RaggedTensor
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import CATALOGUE

_BINARY: Final = {
    **{name: name for name in ("add", "sub", "mul", "floordiv", "pow")},
    "mod": "floormod",
    "and": "logical_and",
    "or": "logical_or",
}
_COMPARISONS: Final = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
_UNARY: Final = {"neg": "neg", "abs": "abs", "invert": "logical_not"}


def _binary(name: str, *, reflected: bool = False) -> Callable[[Any, Any], Any]:
    op = CATALOGUE[name]

    @reports
    def operate(self: Any, other: Any) -> Any:
        return call(op, (other, self) if reflected else (self, other))

    return operate


def _unary(name: str) -> Callable[[Any], Any]:
    op = CATALOGUE[name]

    @reports
    def operate(self: Any) -> Any:
        return call(op, (self,))

    return operate


@reports
def _truediv(self: Any, other: Any) -> Any:
    return truediv(self, other)


@reports
def _rtruediv(self: Any, other: Any) -> Any:
    return truediv(other, self)


@reports
def _xor(self: Any, other: Any) -> Any:
    return logical_xor(self, other)


@reports
def _equal(self: Any, other: Any) -> Any:
    return False if other is None else call(ops.equal, (self, other))


@reports
def _not_equal(self: Any, other: Any) -> Any:
    return True if other is None else call(ops.not_equal, (self, other))


def row_lengths(self: RaggedTensor, axis: int = 1, name: str | None = None) -> Any:
    """The length of each row; for axis 2 and further the lengths of the rows in each row, a ragged tensor.

    Raises:
        ValueError: There is no such division.
    """
    if axis == 0:
        return self.nrows()
    if axis < 0 or axis >= len(self.shape):
        raise ValueError(f"axis={axis} out of bounds: expected 0<=axis<{len(self.shape)}")
    if axis == 1:
        return self.partition.lengths()
    if isinstance(self.values, RaggedTensor):
        return self.with_values(row_lengths(self.values, axis - 1))
    length = self.values.shape.as_list()[axis - 1]
    ones = call(ops.fill, (length,), shape=tuple(self.values.shape.as_list()[: axis - 1]), dtype=self.partition.dtype)
    return self.with_values(ones)


def nested_row_lengths(self: RaggedTensor, name: str | None = None) -> tuple[Tensor, ...]:
    """The length of each row of each division, the outermost one first."""
    return tuple([partition.lengths() for partition in self.partitions])


def value_rowids(self: RaggedTensor, name: str | None = None) -> Tensor:
    """The row of each value."""
    return self.partition.rowids(self.values.shape.as_list()[0])


def nested_value_rowids(self: RaggedTensor, name: str | None = None) -> tuple[Tensor, ...]:
    """The row of each value of each division, the outermost one first."""
    inner = nested_value_rowids(self.values) if isinstance(self.values, RaggedTensor) else ()
    return (value_rowids(self), *inner)


def row_starts(self: RaggedTensor, name: str | None = None) -> Tensor:
    """The index of each row's first value."""
    known = self.partition.known()
    return self.row_splits[:-1] if known is None else constant(known[:-1])


def row_limits(self: RaggedTensor, name: str | None = None) -> Tensor:
    """The index after each row's last value."""
    known = self.partition.known()
    return self.row_splits[1:] if known is None else constant(known[1:])


def _reduced(self: RaggedTensor) -> tuple[Any, ...]:
    return restored, (self.values, self.partition)


def restored(values: Any, partition: RowPartition) -> RaggedTensor:
    """Returns a ragged tensor that was pickled, with its methods in a process that has had none before."""
    if not hasattr(RaggedTensor, "form_of"):
        give_methods()
    return RaggedTensor.of(values, partition)


def give_methods() -> None:
    """Defines the methods on RaggedTensor."""
    cls = RaggedTensor
    for name, function in vars(factories).items():
        if name.startswith("from_"):
            setattr(cls, name, staticmethod(function))
    for function in (conversions.from_tensor, conversions.from_sparse):
        setattr(cls, function.__name__, staticmethod(function))
    methods: tuple[Callable[..., Any], ...] = (
        conversions.bounding_shape,
        conversions.merge_dims,
        conversions.to_sparse,
        conversions.to_tensor,
        nested_row_lengths,
        nested_value_rowids,
        row_lengths,
        row_limits,
        row_starts,
        value_rowids,
    )
    for method in methods:
        setattr(cls, method.__name__, method)
    for python, name in _BINARY.items():
        setattr(cls, f"__{python}__", _binary(name))
        setattr(cls, f"__r{python}__", _binary(name, reflected=True))
    for python, name in _COMPARISONS.items():
        setattr(cls, f"__{python}__", _binary(name))
    for python, name in _UNARY.items():
        setattr(cls, f"__{python}__", _unary(name))
    special = {
        "__eq__": _equal,
        "__ne__": _not_equal,
        "__truediv__": _truediv,
        "__rtruediv__": _rtruediv,
        "__xor__": _xor,
        "__rxor__": _xor,
        "__getitem__": reports(item),
        "__array_priority__": 100,
        "__reduce__": _reduced,
        "form_of": staticmethod(form_of),
    }
    for python, value in special.items():
        setattr(cls, python, value)
