"""The leaves of elements: arrays, tensors, and rows of arrays, which are copied or sent only when they are needed.

A dataset that was made from arrays passes on rows: an array and an index. Shuffling and batching move numbers only.
An iterator returns tensors; a server then gets the array once, and each batch is a `gather` of it.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from teletape.core import environment
from teletape.core.calls.dispatch import call, constant
from teletape.core.errors import DataLossError
from teletape.core.functions.tensor_spec import TensorSpec
from teletape.core.sessions.current import current
from teletape.core.sessions.session import Session
from teletape.core.tensors import dtypes
from teletape.core.tensors.convert import host_array
from teletape.core.tensors.tensor import EagerTensor, Tensor, TensorLike, from_host
from teletape.tf.ops.arrays.paddings import pad
from teletape.tf.ops.arrays.rearrange import stack
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError

_NARROW: Final = 1 << 31  #: Rows that an int32 index can count.


class Source:
    """The arrays that a dataset was made from.

    Attributes:
        nbytes: The bytes of all its arrays: they stay on a server together or not at all.
    """

    __slots__ = ("nbytes",)

    def __init__(self) -> None:
        self.nbytes = 0

    @property
    def fits(self) -> bool:
        """Whether the arrays may stay on a server."""
        return self.nbytes <= environment.dataset_bytes()


class Array:
    """An array on the host, or a tensor; leaves are its rows, or all of it.

    Args:
        value: Its elements.
        source: The arrays that it belongs to.
    """

    __slots__ = ("_home", "_recorded", "_rows_sent", "_source", "_tensor", "array", "spec")

    def __init__(self, value: HostArray | Tensor, source: Source) -> None:
        self._source, self._rows_sent = source, 0
        self._home: weakref.ref[Session] | None = None
        self._recorded: Any = None
        self.array: HostArray | None = None
        self._tensor: Tensor | None = None
        if isinstance(value, TensorLike):
            self._tensor = value
        else:
            self.array = value
            source.nbytes += value.nbytes
        self.spec = TensorSpec(value.shape, value.dtype)

    def __len__(self) -> int:
        size: int = self.spec.shape.as_list()[0]
        return size

    def host(self) -> HostArray:
        """Returns the elements on the host; those of a tensor are read once."""
        if self.array is None:
            assert self._tensor is not None
            self.array = self._tensor.session.fetch(self._tensor.recorded)
        return self.array

    def tensor(self) -> Tensor:
        """Returns all of it as a tensor, which is sent once to each session."""
        if self._tensor is not None:
            return self._tensor
        owner = current()
        home = owner.home
        if self._home is None or self._home() is not home:
            assert self.array is not None
            if owner is not home:
                return constant(self.array)  # in a trace: a part of the function
            self._recorded, self._home = constant(self.array).operand(), weakref.ref(home)
        return EagerTensor(self._recorded, home)

    def rows(self, indices: Any) -> Tensor:
        """Returns the rows at the indices, an integer or an array of them, as a tensor."""
        if self._tensor is None and not self._stays(np.size(indices)):
            assert self.array is not None
            rows = self.array[indices, ...]
            return constant(rows) if np.ndim(indices) == 0 else from_host(np.ascontiguousarray(rows))
        numbers = np.asarray(indices, np.int32 if len(self) < _NARROW else np.int64)
        return call(ops.gather, (self.tensor(), from_host(numbers.copy())), axis=0)

    @property
    def is_sent_in_parts(self) -> bool:
        """Whether a server gets only the rows that are used, because the arrays of its source are too large for it."""
        return self.array is not None and self.array.dtype != object and not self._source.fits

    def _stays(self, rows: int) -> bool:
        """Whether it stays on the server, so that only indices are sent; False in this process, which sends nothing.

        Its first rows are sent by themselves if they are few: a program may look at no others.
        """
        assert self.array is not None
        if current().home.local or self.array.dtype == object or not self._source.fits:
            return False
        first, self._rows_sent = self._rows_sent == 0, self._rows_sent + rows
        return not first or 2 * rows >= len(self)


class Lazy:
    """A leaf whose values are copied, sent or computed when they are needed."""

    __slots__ = ()
    known = False  #: Whether its values are on the host.

    def tensor(self) -> Any:
        """Returns it as a tensor."""
        raise NotImplementedError  # pragma: no cover - abstract

    def host(self) -> HostArray:
        """Returns its values on the host; the array may be a part of the dataset's own."""
        raise NotImplementedError  # pragma: no cover - abstract

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        raise NotImplementedError  # pragma: no cover - abstract

    @property
    def dtype(self) -> dtypes.DType:
        """Its dtype."""
        raise NotImplementedError  # pragma: no cover - abstract


class Rows(Lazy):
    """A leaf that is a row of an array, or rows of it in the shape of their indices."""

    __slots__ = ("array", "indices")

    def __init__(self, array: Array, indices: Any) -> None:
        self.array, self.indices = array, indices

    @property
    def known(self) -> bool:  # type: ignore[override]  # depends on the array
        """Whether its values are on the host."""
        return self.array.array is not None

    def tensor(self) -> Tensor:
        """Returns it as a tensor."""
        return self.array.rows(self.indices)

    def host(self) -> HostArray:
        """Returns its values on the host: a part of the array, if it is one row."""
        return self.array.host()[self.indices, ...]  # a row of strings stays an array

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return (*np.shape(self.indices), *self.array.spec.shape.as_list()[1:])

    @property
    def dtype(self) -> dtypes.DType:
        """Its dtype."""
        return self.array.spec.dtype


class Whole(Lazy):
    """A leaf that is a whole array: it is always the same tensor."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array

    @property
    def known(self) -> bool:  # type: ignore[override]  # depends on the array
        """Whether its values are on the host."""
        return self.array.array is not None

    def tensor(self) -> Tensor:
        """Returns it as a tensor."""
        return self.array.tensor()

    def host(self) -> HostArray:
        """Returns its values on the host."""
        return self.array.host()

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return tuple(self.array.spec.shape.as_list())

    @property
    def dtype(self) -> dtypes.DType:
        """Its dtype."""
        return self.array.spec.dtype


def as_array(value: Any, source: Source) -> Array:
    """Returns a value of which a dataset is made as an `Array`; a tensor is not moved, but cut off from any tape."""
    if isinstance(value, TensorLike):
        return Array(call(ops.stop_gradient, (value,)), source)
    return Array(host_array(value), source)


def tensor_of(leaf: Any) -> Any:
    """Returns a leaf as a tensor; a dataset and None stay."""
    if isinstance(leaf, Lazy):
        return leaf.tensor()
    return constant(leaf) if isinstance(leaf, np.ndarray | np.generic) else leaf


def host_of(leaf: Any) -> Any:
    """Returns a leaf as an array of the host; a dataset and None stay."""
    if isinstance(leaf, Lazy):
        return leaf.host()
    return leaf.session.fetch(leaf.recorded) if isinstance(leaf, TensorLike) else leaf


def on_host(leaf: Any) -> bool:
    """Whether the values of a leaf are known here."""
    return leaf.known if isinstance(leaf, Lazy) else isinstance(leaf, np.ndarray | np.generic)


def shape_of(leaf: Any) -> tuple[int, ...]:
    """Returns the shape of a leaf."""
    return tuple(leaf.shape.as_list()) if isinstance(leaf, TensorLike) else tuple(leaf.shape)


def dtype_of(leaf: Any) -> dtypes.DType:
    """Returns the dtype of a leaf."""
    return dtypes.as_dtype(leaf.dtype)


def stacked(leaves: Sequence[Any], component: int = 0) -> Any:
    """Returns leaves of one component as one leaf with a new first axis.

    Raises:
        InvalidArgumentError: Shapes that differ.
        TypeError: Datasets.
    """
    first = leaves[0]
    if isinstance(first, Rows) and all(_rows_alike(first, leaf) for leaf in leaves):
        return Rows(first.array, np.array([leaf.indices for leaf in leaves], np.int64))
    if first is None:
        return None
    if not isinstance(first, np.ndarray | np.generic | Lazy | TensorLike):
        raise TypeError(f"Batching of elements that are datasets is not possible: component {component} is {first!r}")
    shape = shape_of(first)
    for i, leaf in enumerate(leaves):
        if shape_of(leaf) != shape:
            raise InvalidArgumentError(
                f"Cannot batch tensors with different shapes in component {component}. First element had shape "
                f"{list(shape)} and element {i} had shape {list(shape_of(leaf))}."
            )
    if all(on_host(leaf) for leaf in leaves):
        return np.stack([host_of(leaf) for leaf in leaves])
    return stack([tensor_of(leaf) for leaf in leaves])


def _rows_alike(first: Rows, leaf: Any) -> bool:
    """Whether a leaf has the same number of rows of the same array."""
    return leaf.__class__ is Rows and leaf.array is first.array and np.shape(leaf.indices) == np.shape(first.indices)


def padded(leaf: Any, shape: Sequence[int], value: Any) -> Any:
    """Returns a leaf padded with `value` at the end of each axis, up to `shape`.

    Raises:
        DataLossError: It is larger already.
    """
    before = shape_of(leaf)
    if len(before) != len(shape):
        raise InvalidArgumentError(
            f"All elements in a batch must have the same rank as the padded shape: expected rank {len(shape)} but got "
            f"element with rank {len(before)}"
        )
    if any(size > wanted for size, wanted in zip(before, shape, strict=True)):
        raise DataLossError(
            f"Attempted to pad to a smaller size than the input element: the element has the shape {list(before)}, the "
            f"padded shape is {list(shape)}"
        )
    widths = [(0, wanted - size) for size, wanted in zip(before, shape, strict=True)]
    if not any(after for _, after in widths):
        return leaf
    if on_host(leaf):
        array = host_of(leaf)
        whole = np.full(tuple(shape), value, array.dtype)
        whole[tuple([slice(size) for size in before])] = array
        return whole
    return pad(tensor_of(leaf), widths, constant_values=np.asarray(value).item())


def unstacked(leaf: Any) -> list[Any]:
    """Returns the slices of a leaf along its first axis, as leaves.

    Raises:
        InvalidArgumentError: A scalar.
    """
    if not shape_of(leaf):
        raise InvalidArgumentError("Input must have at least rank 1: a scalar cannot be unbatched")
    if isinstance(leaf, Rows) and np.ndim(leaf.indices):
        return [Rows(leaf.array, index) for index in leaf.indices]
    if isinstance(leaf, Whole):
        array = leaf.array
    else:
        array = Array(host_of(leaf) if on_host(leaf) else tensor_of(leaf), Source())
    return [Rows(array, i) for i in range(len(array))]
