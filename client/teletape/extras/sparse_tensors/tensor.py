"""`tf.SparseTensor`: values at indices of a dense shape; all other elements are zero. A composite of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import as_tensor, call, constant, convert_to_tensor
from teletape.core.functions.tensor_spec import TensorSpec
from teletape.core.tensors import dtypes
from teletape.core.tensors.composite import ShapedSpec
from teletape.core.tensors.dtypes import DType
from teletape.core.tensors.indexed_slices import SparseValue
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape.core.tensors.tensor_shape import TensorShape
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op
from teletape_engine.spec import Spec

#: Functions that map 0 to 0 and that TensorFlow applies to the values of a sparse tensor.
_OF_VALUES: Final = frozenset(
    getattr(ops, name)
    for name in (
        "abs asin asinh atan atanh bessel_i1e erf identity neg sign sin sqrt square stop_gradient tan tanh".split()
    )
)


class SparseTensor(SparseValue):
    """Values [n] at `indices` [n, rank] of an array of `dense_shape`; all its other elements are zero.

    The functions of `tf.sparse` expect the indices in row-major order and none twice; `tf.sparse.reorder` sorts them.
    Gradients are those of `values`: watch them, and pass them as a source.

    Args:
        indices: int64 [n, rank]: a list, an array or a tensor.
        values: [n], of any dtype.
        dense_shape: [rank]; its numbers are read.

    Raises:
        ValueError: The shapes of the three do not fit.
        TypeError: Indices that are no integers.
    """

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        index = _int64(indices)
        elements = as_tensor(values) if isinstance(values, TensorLike) else convert_to_tensor(values)
        lengths = tuple(to.ints(dense_shape, "dense_shape"))
        if index.ndim == 1 and index.shape.as_list() == [0]:
            index = call(ops.reshape, (index,), shape=(0, len(lengths)))
        for tensor, rank in ((index, 2), (elements, 1)):
            if tensor.ndim != rank:
                raise ValueError(f"Shape {tensor.shape} must have rank {rank}")
        count, rank = index.shape.as_list()
        for a, b in ((count, elements.shape.as_list()[0]), (rank, len(lengths))):
            if a != b:
                raise ValueError(
                    f"Dimensions {a} and {b} are not compatible: indices {index.shape}, values {elements.shape}, "
                    f"dense_shape {list(lengths)}"
                )
        self._indices, self._values, self._lengths = index, elements, lengths
        self._places: HostArray | None = None

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """Returns a sparse tensor unchanged, or one made of an object with `indices`, `values` and `dense_shape`."""
        if isinstance(sparse_tensor_value, cls):
            return sparse_tensor_value
        if not all(hasattr(sparse_tensor_value, part) for part in ("indices", "values", "dense_shape")):
            raise TypeError(f"Neither a SparseTensor nor SparseTensorValue: {sparse_tensor_value}.")
        return cls(sparse_tensor_value.indices, sparse_tensor_value.values, sparse_tensor_value.dense_shape)

    @classmethod
    def of_parts(cls, values: Any, indices: Any, shape: TensorShape) -> SparseTensor:
        """Returns a sparse tensor of these parts, which are not checked."""
        tensor = cls.__new__(cls)
        tensor._indices, tensor._values, tensor._places = indices, values, None
        tensor._lengths = tuple(shape.as_list())
        return tensor

    def type_spec(self) -> SparseTensorSpec:
        """The spec that describes it."""
        return SparseTensorSpec.from_value(self)

    @classmethod
    def spec_of_parts(cls, specs: Sequence[Spec], shape: TensorShape) -> SparseTensorSpec:
        """Returns the spec of a sparse tensor whose parts have these specs."""
        return SparseTensorSpec(shape, specs[0].dtype)

    def rebuilt(self, values: Any, indices: Any = None) -> SparseTensor:
        """Returns a sparse tensor of this shape with other values, and with other indices unless they are None."""
        if indices is not None:
            return self.of_parts(values, indices, self.shape)
        tensor = self.of_parts(values, self._indices, self.shape)
        tensor._places = self._places
        return tensor

    @property
    def indices(self) -> Any:
        """The indices of the values: int64 [n, rank]."""
        return self._indices

    @property
    def values(self) -> Any:
        """The values [n]."""
        return self._values

    @property
    def dense_shape(self) -> Any:
        """The shape as a tensor, int64 [rank]."""
        return constant(np.array(self._lengths, np.int64))

    @property
    def shape(self) -> TensorShape:
        """The shape."""
        return TensorShape(self._lengths)

    def get_shape(self) -> TensorShape:
        """The shape."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Checks that the shape is compatible with this one.

        Raises:
            ValueError: It is not.
        """
        self.shape.assert_is_compatible_with(shape)

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self._values.dtype

    def consumers(self) -> list[Any]:
        """Returns an empty list: consumers are not recorded."""
        return []

    def with_values(self, new_values: Any) -> SparseTensor:
        """Returns a sparse tensor with other values at the same indices.

        Raises:
            ValueError: Their number differs.
        """
        return SparseTensor(self._indices, new_values, self._lengths)

    def applied(self, op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Returns the op's results for the values, at the same indices, if TensorFlow's op takes sparse tensors."""
        return self.rebuilt(call(op, (self._values,), **attrs)) if op in _OF_VALUES else None

    def places(self) -> HostArray:
        """Returns the indices on the host, int64 [n, rank], read once. A function that calls it is not traced."""
        if self._places is None:
            self._places = np.asarray(self._indices.numpy())
        return self._places

    def __mul__(self, other: Any) -> Any:
        return self._scaled(ops.mul, other)

    def __rmul__(self, other: Any) -> Any:
        return self._scaled(ops.mul, other) if isinstance(other, TensorLike) else NotImplemented  # as in TensorFlow

    def __truediv__(self, other: Any) -> Any:
        return self._scaled(ops.div, other)

    __div__ = __truediv__

    def _scaled(self, op: Op, other: Any) -> Any:
        """Combines each value with the element of a dense operand at the same index; the operand is broadcast."""
        if isinstance(other, SparseTensor):
            return NotImplemented
        operand = to.like(other, self._values)
        if len(operand.shape):
            operand = call(ops.broadcast_to, (operand,), shape=self._lengths)
            operand = call(ops.gather_nd, (operand, self._indices))
        return self.rebuilt(call(op, (self._values, operand)))

    def __str__(self) -> str:
        return f"SparseTensor(indices={self._indices!s}, values={self._values!s}, dense_shape={self.dense_shape!s})"

    __repr__ = __str__


class SparseTensorValue(NamedTuple):
    """`tf.compat.v1.SparseTensorValue`: the three parts of a sparse tensor as arrays."""

    indices: Any
    values: Any
    dense_shape: Any


class SparseTensorSpec(ShapedSpec):
    """Dense shape and dtype of a sparse tensor that does not exist yet, with any number of values.

    Args:
        shape: Anything that TensorShape takes; None if the rank is unknown.
        dtype: The element type.
    """

    __slots__ = ()

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32) -> None:
        self._shape, self._dtype = TensorShape(shape), dtypes.as_dtype(dtype)

    @classmethod
    def from_value(cls, value: Any) -> SparseTensorSpec:
        """The spec of a sparse tensor.

        Raises:
            TypeError: Something else.
        """
        if not isinstance(value, SparseTensor):
            raise TypeError(f"Expected SparseTensor. Received: {value} of type {type(value).__name__}.")
        return cls(value.shape, value.dtype)

    @property
    def fields(self) -> tuple[Any, ...]:
        """The constructor arguments of an equal spec."""
        return self._shape, self._dtype

    def in_parts(self) -> SparseTensor:
        """Returns a sparse tensor of the specs of its parts.

        Raises:
            ValueError: The rank is unknown.
        """
        if self._shape.rank is None:
            raise ValueError(f"{self!r}: the rank must be known here, since functions are traced for one shape")
        indices = TensorSpec([None, self._shape.rank], dtypes.int64)
        return SparseTensor.of_parts(TensorSpec([None], self._dtype), indices, self._shape)

    def filled(self, size: int) -> SparseTensorSpec:
        """Returns a spec with this size for unknown ones; a shape without a rank becomes that of a scalar."""
        return SparseTensorSpec(self._shape.filled(size), self._dtype)

    @property
    def value_type(self) -> type[SparseTensor]:
        """The type of the values: SparseTensor."""
        return SparseTensor


def _int64(indices: Any) -> Tensor:
    if isinstance(indices, TensorLike):
        tensor = as_tensor(indices)
        return tensor if tensor.dtype is dtypes.int64 else call(ops.cast, (tensor,), dtype=dtypes.int64.np)
    return convert_to_tensor(indices, dtypes.int64)


def sparse(value: Any) -> SparseTensor:
    """Returns an argument that must be a sparse tensor.

    Raises:
        TypeError: It is no sparse tensor.
    """
    if isinstance(value, SparseTensor):
        return value
    if isinstance(value, TensorLike) or not hasattr(value, "dense_shape"):
        raise TypeError(f"Input must be a SparseTensor, found {type(value).__name__}: {value!r}")
    return SparseTensor.from_value(value)
