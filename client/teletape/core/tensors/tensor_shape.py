"""`tf.TensorShape`: the static shape of a tensor, whose rank and sizes may be unknown.

The tensors of a session always know theirs; unknown dimensions come from signatures. Long because a shape and its sizes
as objects, `tf.compat.v1.Dimension`, read the same arguments.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, overload

import numpy as np

Size: TypeAlias = Any  # an int, or None if unknown: with `int | None` every use would need a check
Dims: TypeAlias = tuple[int | None, ...]


class TensorShape:
    """The sizes of a tensor's axes; an unknown size is None, and the rank may be unknown too.

    It reads like a tuple of int: indexing gives a size, slicing a TensorShape; it equals the tuple, and has its hash.
    As a bool it is True unless the rank is unknown, also for `()`.

    Args:
        dims: Sizes (integers, or None for an unknown one), one integer for a single axis, another shape, or None for
            an unknown rank.

    Raises:
        TypeError: A size is not an integer.
        ValueError: A size is negative.
    """

    __slots__ = ("_dims",)

    _dims: Dims | None

    def __init__(self, dims: Any) -> None:
        self._dims = _read(dims)

    @property
    def rank(self) -> int | None:
        """Number of axes; None when unknown."""
        return None if self._dims is None else len(self._dims)

    @property
    def ndims(self) -> int | None:
        """The same as `rank`."""
        return self.rank

    @property
    def dims(self) -> list[Dimension] | None:
        """The sizes as a list of `tf.compat.v1.Dimension`, None when the rank is unknown."""
        return None if self._dims is None else [Dimension(dim) for dim in self._dims]

    def as_list(self) -> list[Size]:
        """The sizes as a list.

        Raises:
            ValueError: The rank is unknown.
        """
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._dims)

    def filled(self, size: int) -> list[int]:
        """The sizes, with this one for unknown ones; of an unknown rank those of a scalar."""
        return [size if known is None else known for known in self._dims or ()]

    def num_elements(self) -> int | None:
        """The product of the sizes; None unless all are known."""
        if self._dims is None or None in self._dims:
            return None
        return math.prod(self._dims)  # type: ignore[arg-type]  # no None is left

    def is_fully_defined(self) -> bool:
        """Whether the rank and every size are known."""
        return self._dims is not None and None not in self._dims

    def assert_is_fully_defined(self) -> None:
        """Raise ValueError unless the rank and every size are known."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def is_compatible_with(self, other: Any) -> bool:
        """Whether some fully defined shape fits both this one and `other`."""
        theirs = as_shape(other)._dims
        if self._dims is None or theirs is None:
            return True
        return len(self._dims) == len(theirs) and all(
            a is None or b is None or a == b for a, b in zip(self._dims, theirs, strict=True)
        )

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raise ValueError unless some fully defined shape fits both this one and `other`."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are incompatible")

    def assert_same_rank(self, other: Any) -> None:
        """Raise ValueError when both ranks are known and differ."""
        other = as_shape(other)
        if self.rank is not None and other.rank is not None and self.rank != other.rank:
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

    def assert_has_rank(self, rank: int) -> None:
        """Raise ValueError unless the rank is `rank` or unknown."""
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def with_rank(self, rank: int) -> TensorShape:
        """This shape; of an unknown one, the shape of `rank` unknown sizes.

        Raises:
            ValueError: The rank is another one.
        """
        self.assert_has_rank(rank)
        return shape_of((None,) * rank) if self._dims is None else self

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """This shape; ValueError when its rank is known and smaller than `rank`."""
        if self.rank is not None and self.rank < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """This shape; ValueError when its rank is known and larger than `rank`."""
        if self.rank is not None and self.rank > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def merge_with(self, other: Any) -> TensorShape:
        """Combines this shape and `other`: each size that either of them knows.

        Raises:
            ValueError: They are not compatible.
        """
        other = as_shape(other)
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are not compatible")
        if self._dims is None or other._dims is None:
            return other if self._dims is None else self
        return shape_of(tuple(b if a is None else a for a, b in zip(self._dims, other._dims, strict=True)))

    def concatenate(self, other: Any) -> TensorShape:
        """The axes of this shape followed by those of `other`; unknown when either rank is."""
        theirs = as_shape(other)._dims
        return shape_of(None if self._dims is None or theirs is None else self._dims + theirs)

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """The sizes on which this shape and `other` agree, None elsewhere; unknown when the ranks differ."""
        return self.most_specific_common_supertype([as_shape(other)]) or shape_of(None)

    def most_specific_common_supertype(self, others: Sequence[Any]) -> TensorShape | None:
        """The sizes on which this shape and all `others` agree, None elsewhere; unknown when ranks differ.

        None when one of `others` is no TensorShape.
        """
        if not all(isinstance(other, TensorShape) for other in others):
            return None
        if self._dims is None or any(other.rank != self.rank for other in others):
            return shape_of(None)
        columns = zip(self._dims, *(other._dims for other in others), strict=True)
        return shape_of(tuple(column[0] if len(set(column)) == 1 else None for column in columns))

    def is_subtype_of(self, other: Any) -> bool:
        """Whether `other`, a TensorShape, allows every shape that this one allows."""
        if not isinstance(other, TensorShape):
            return False
        if other._dims is None:
            return True
        if self._dims is None or len(self._dims) != len(other._dims):
            return False
        return all(b is None or a == b for a, b in zip(self._dims, other._dims, strict=True))

    def __len__(self) -> int:
        if self._dims is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._dims)

    def __bool__(self) -> bool:
        return self._dims is not None

    def __iter__(self) -> Iterator[Size]:
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter(self._dims)

    @overload
    def __getitem__(self, key: slice) -> TensorShape: ...
    @overload
    def __getitem__(self, key: int) -> Size: ...
    def __getitem__(self, key: int | slice) -> Any:
        if self._dims is not None:
            return shape_of(self._dims[key]) if isinstance(key, slice) else self._dims[key]
        if not isinstance(key, slice):
            return None
        if key.step is not None:
            raise ValueError("Steps are not yet handled")
        start = 0 if key.start is None else key.start
        if key.stop is None or start < 0 or key.stop < 0:
            return shape_of(None)
        return shape_of((None,) * (key.stop - start))

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return as_shape(other).concatenate(self)

    def __eq__(self, other: object) -> bool:
        if type(other) is TensorShape:
            return self._dims == other._dims
        if type(other) is tuple and other == self._dims:
            return True
        try:
            return self._dims == _read(other)
        except TypeError:
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorShape, (self._dims,)

    def __str__(self) -> str:
        return "<unknown>" if self._dims is None else str(self._dims)

    def __repr__(self) -> str:
        return f"TensorShape({None if self._dims is None else list(self._dims)})"


def shape_of(dims: Dims | None) -> TensorShape:
    """The TensorShape of valid sizes, without checks (0.1 µs instead of 0.6)."""
    shape = TensorShape.__new__(TensorShape)
    shape._dims = dims
    return shape


def as_shape(shape: Any) -> TensorShape:
    """`shape` as a TensorShape; unchanged if it is one. Arguments and errors are those of TensorShape."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def _read(dims: Any) -> Dims | None:
    if dims is None:
        return None
    if isinstance(dims, TensorShape):
        return dims._dims
    if isinstance(dims, tuple | list):
        return tuple([_size(dim) for dim in dims])
    try:
        sizes: Iterable[Any] = iter(dims)
    except TypeError:
        return (_size(dims),)
    read = []
    for dim in sizes:
        try:
            read.append(_size(dim))
        except TypeError as error:
            raise TypeError(
                f"Failed to convert '{dims!r}' to a shape: '{dim!r}'could not be converted to a dimension. "
                "A shape should either be single dimension (e.g. 10), or an iterable of dimensions "
                "(e.g. [1, 10, None])."
            ) from error
    return tuple(read)


def _size(dim: Any) -> int | None:
    if type(dim) is not int:
        if dim is None or (type(dim) is Dimension and dim.value is None):
            return None
        try:
            dim = int(dim.__index__())
        except AttributeError:
            raise TypeError(
                "Dimension value must be integer or None or have an __index__ method, "
                f"got value '{dim!r}' with type '{type(dim)!r}'"
            ) from None
    if dim < 0:
        raise ValueError(f"Dimension {dim} must be >= 0")
    return int(dim)


# ----------------------------------------------------------------------------------------------------------- dimensions
class Dimension:
    """A size of a shape as an object of TensorFlow 1: an integer, or unknown. Arithmetic with an unknown gives None.

    `TensorShape.dims` has them; indexing a shape gives integers and None.

    Args:
        value: An integer, another dimension, or None.

    Raises:
        TypeError: Something else.
        ValueError: A negative number.
    """

    __slots__ = ("_value",)
    __hash__ = None  # type: ignore[assignment]  # as TensorFlow's: two unknown sizes are not equal

    def __init__(self, value: Any) -> None:
        self._value = _size(value)

    @property
    def value(self) -> int | None:
        """The size; None if it is unknown."""
        return self._value

    def is_compatible_with(self, other: Any) -> bool:
        """Whether the two are equal, or one is unknown."""
        theirs = _size(other)
        return self._value is None or theirs is None or self._value == theirs

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raise ValueError unless the two are equal, or one is unknown."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {other} are not compatible")

    def merge_with(self, other: Any) -> Dimension:
        """Returns whichever of the two is known.

        Raises:
            ValueError: Both are, and they differ.
        """
        self.assert_is_compatible_with(other)
        return Dimension(other if self._value is None else self._value)

    def _computed(self, other: Any, function: Callable[[int, int], int], *, reverse: bool = False) -> Any:
        try:
            theirs = _size(other)
        except (TypeError, ValueError):
            return NotImplemented
        if self._value is None or theirs is None:
            return Dimension(None)
        return Dimension(function(theirs, self._value) if reverse else function(self._value, theirs))

    def __add__(self, other: Any) -> Any:
        return self._computed(other, operator.add)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._computed(other, operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return self._computed(other, operator.sub, reverse=True)

    def __mul__(self, other: Any) -> Any:
        return self._computed(other, operator.mul)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return self._computed(other, operator.floordiv)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._computed(other, operator.floordiv, reverse=True)

    def __mod__(self, other: Any) -> Any:
        return self._computed(other, operator.mod)

    def __rmod__(self, other: Any) -> Any:
        return self._computed(other, operator.mod, reverse=True)

    def __truediv__(self, other: Any) -> Any:
        raise TypeError(
            f"unsupported operand type(s) for /: 'Dimension' and '{type(other).__name__}', please use // instead"
        )

    def __rtruediv__(self, other: Any) -> Any:
        raise TypeError(
            f"unsupported operand type(s) for /: '{type(other).__name__}' and 'Dimension', please use // instead"
        )

    def _compared(self, other: Any, function: Callable[[int, int], bool]) -> Any:
        theirs = _size(other)
        return None if self._value is None or theirs is None else function(self._value, theirs)

    def __eq__(self, other: object) -> Any:
        try:
            return self._compared(other, operator.eq)
        except (TypeError, ValueError):
            return NotImplemented

    def __ne__(self, other: object) -> Any:
        try:
            return self._compared(other, operator.ne)
        except (TypeError, ValueError):
            return NotImplemented

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, operator.ge)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __int__(self) -> Any:
        return self._value  # Python raises TypeError for None

    __index__ = __int__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(operator.index(self), np.int32 if dtype is None else dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return Dimension, (self._value,)

    def __str__(self) -> str:
        return "?" if self._value is None else str(self._value)

    def __repr__(self) -> str:
        return f"Dimension({self._value})"


def dimension_value(dimension: Any) -> Any:
    """Returns the size of a Dimension; an integer or None unchanged.

    Example:
        tf.compat.dimension_value(tf.compat.v1.Dimension(2))
    """
    return dimension.value if isinstance(dimension, Dimension) else dimension


def dimension_at_index(shape: TensorShape, index: int) -> Dimension:
    """Returns a size of a shape as a Dimension; unknown if the rank is.

    Raises:
        IndexError: There is no such axis.

    Example:
        tf.compat.dimension_at_index(tf.TensorShape([2, None]), 0)
    """
    return Dimension(None) if shape.dims is None else shape.dims[index]
