"""`tf.IndexedSlices`: a gradient that touches only some rows, made by a program or computed by a tape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from teletape.core.program.missing_names import MissingAttribute
from teletape.core.sessions.session import Session
from teletape.core.tensors import dtypes, printing
from teletape.core.tensors.composite import Composite, Structure, TypeSpec
from teletape.core.tensors.dtypes import DType
from teletape.core.tensors.tensor import EagerTensor, from_host
from teletape.core.tensors.tensor_shape import TensorShape
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.spec import Spec


class SparseValue(Composite):
    """A composite of two tensors: values and their indices."""

    @property
    def values(self) -> Any:
        """The values, a tensor; in the arguments of a trace their spec."""
        raise NotImplementedError  # pragma: no cover - abstract

    @property
    def indices(self) -> Any:
        """The indices, a tensor; in the arguments of a trace their spec."""
        raise NotImplementedError  # pragma: no cover - abstract

    @property
    def elements(self) -> Any:
        """The values."""
        return self.values

    def with_elements(self, elements: Any) -> Any:
        """Returns other values at the same indices."""
        return self.of_parts(elements, self.indices, self.shape)

    @classmethod
    def of_parts(cls, values: Any, indices: Any, shape: TensorShape) -> SparseValue:
        """The composite of two tensors, or of their specs, with this dense shape; nothing is checked."""
        raise NotImplementedError  # pragma: no cover - abstract

    @classmethod
    def spec_of_parts(cls, specs: Sequence[Spec], shape: TensorShape) -> Spec | TypeSpec:
        """Returns the spec of a result whose parts have these specs: the spec of the dense array, or a TypeSpec."""
        return specs[0].with_shape(tuple(shape.as_list()))

    def parts(self) -> tuple[Any, ...]:
        """The values and the indices."""
        return self.values, self.indices

    def structure(self) -> Structure:
        """The class and the dense shape."""
        return SparseStructure(type(self), None if self.shape.rank is None else tuple(self.shape.as_list()))


@dataclass(frozen=True)
class SparseStructure:
    """The structure of a sparse value."""

    kind: type[SparseValue]
    lengths: tuple[int | None, ...] | None

    def of(self, parts: Sequence[Any]) -> Composite:
        """The sparse value of these parts."""
        return self.kind.of_parts(parts[0], parts[1], TensorShape(self.lengths))

    def spec(self, specs: Sequence[Spec]) -> Spec | TypeSpec:
        """The spec of a result of this structure."""
        return self.kind.spec_of_parts(specs, TensorShape(self.lengths))


class IndexedSlices(SparseValue):
    """A sparse gradient: row `values[k]` belongs at row `indices[k]`; rows of one index add up.

    Attributes:
        values: Tensor [n, ...]. If a tape computed the slices, it is made when it is first used, like `indices`.
        indices: Tensor [n], int32 or int64.
        dense_shape: Tensor [rank], or None.
        recorded: The slices as a tape computed them; None if a program made them.
    """

    recorded: SlicesValue | None = None
    _session: Session

    def type_spec(self) -> IndexedSlicesSpec:
        """The spec that describes them."""
        return IndexedSlicesSpec.from_value(self)

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self._values, self._indices, self._dense_shape = values, indices, dense_shape

    @classmethod
    def _of(cls, slices: SlicesValue, owner: Session) -> IndexedSlices:
        """Returns slices that a tape computed."""
        computed = cls(None, None, None)
        computed.recorded, computed._session = slices, owner
        return computed

    @classmethod
    def of_parts(cls, values: Any, indices: Any, shape: TensorShape) -> IndexedSlices:
        """Slices of these rows and indices; without dense_shape if the shape is not known."""
        dense_shape = None if shape.rank is None else from_host(np.array(shape.as_list(), np.int32))
        return cls(values, indices, dense_shape)

    @property
    def values(self) -> Any:
        """The rows."""
        if self._values is None and self.recorded is not None:
            self._values = EagerTensor(self._session.slices_component(self.recorded, "values"), self._session)
        return self._values

    @property
    def indices(self) -> Any:
        """The indices of the rows in the dense array."""
        if self._indices is None and self.recorded is not None:
            self._indices = EagerTensor(self._session.slices_component(self.recorded, "indices"), self._session)
        return self._indices

    @property
    def dense_shape(self) -> Any:
        """The shape of the dense array."""
        if self._dense_shape is None and self.recorded is not None:
            self._dense_shape = from_host(np.array(self.recorded.dense.shape, np.int32))
        return self._dense_shape

    @property
    def dtype(self) -> DType:
        """Element type of the rows."""
        return self.values.dtype  # type: ignore[no-any-return]  # a tensor's

    @property
    def shape(self) -> TensorShape:
        """Static shape of the dense array."""
        if self.recorded is not None:
            return TensorShape(self.recorded.dense.shape)
        return TensorShape(None if self._dense_shape is None else [int(n) for n in np.asarray(self._dense_shape)])

    @property
    def device(self) -> str:
        """The device of the rows."""
        return self.values.device  # type: ignore[no-any-return]  # a tensor's

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("name", "op", "graph"):
            raise AttributeError(f"Tensor.{name} is undefined when eager execution is enabled.")
        raise AttributeError(MissingAttribute(type(self), name), name=name, obj=self)

    def __str__(self) -> str:
        return printing.slices_str(self.indices, self.values, self.dense_shape)

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self.values, self.indices, self.dense_shape)


class IndexedSlicesSpec(TypeSpec):
    """Shapes and dtypes of slices that do not exist yet.

    Args:
        shape: The dense shape: anything that TensorShape takes.
        dtype: The element type of the rows.
        indices_dtype: The dtype of the indices.
        dense_shape_dtype: The dtype of dense_shape; None if the slices have none.
        indices_shape: The shape of the indices: [number of rows].
    """

    __slots__ = ("_dense_shape_dtype", "_dtype", "_indices_dtype", "_indices_shape", "_shape")

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        indices_dtype: Any = dtypes.int64,
        dense_shape_dtype: Any = None,
        indices_shape: Any = None,
    ) -> None:
        self._shape, self._dtype = TensorShape(shape), dtypes.as_dtype(dtype)
        self._indices_dtype = dtypes.as_dtype(indices_dtype)
        self._dense_shape_dtype = None if dense_shape_dtype is None else dtypes.as_dtype(dense_shape_dtype)
        self._indices_shape = TensorShape(indices_shape).with_rank(1)

    @classmethod
    def from_value(cls, value: Any) -> IndexedSlicesSpec:
        """The spec of slices; without a dense shape the number of rows of the dense array is unknown.

        Raises:
            TypeError: Something else.
        """
        if not isinstance(value, IndexedSlices):
            raise TypeError(f"Expected IndexedSlices. Received: {value} of type {type(value).__name__}.")
        values, dense_shape = value.values, value.dense_shape
        shape = [None, *values.shape[1:]] if dense_shape is None else value.shape
        indices = value.indices
        return cls(
            shape, values.dtype, indices.dtype, None if dense_shape is None else dense_shape.dtype, indices.shape
        )

    @property
    def fields(self) -> tuple[Any, ...]:
        """The arguments that make an equal spec."""
        return self._shape, self._dtype, self._indices_dtype, self._dense_shape_dtype, self._indices_shape

    @property
    def value_type(self) -> type[IndexedSlices]:
        """IndexedSlices."""
        return IndexedSlices


def wrap(value: Any, owner: Session) -> Any:
    """A recorded value as a program sees it: a tensor, IndexedSlices, or None."""
    if value is None:
        return None
    return IndexedSlices._of(value, owner) if isinstance(value, SlicesValue) else EagerTensor(value, owner)
