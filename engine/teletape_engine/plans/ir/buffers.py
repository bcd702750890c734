"""Buffers of plans, views of them, and the layouts of arrays: shape, dtype and strides without elements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import as_strided

CHARS: Final = frozenset("?bBhHiIlLqQefdFD")  #: Dtypes whose loops and casts are NumPy's own.
_SMALL: Final = 1024  #: Bytes of a layout that keeps its memory.


class Buffer:
    """Memory that instructions read and write.

    Attributes:
        layout: An array of its shape, dtype and strides. Its elements are never read or written.
        constant: The array itself, if its elements are known and never change.
        argument: The number of the argument that it is, if it is one.
    """

    __slots__ = ("argument", "constant", "layout")

    def __init__(self, layout: Any, constant: Any = None, argument: int | None = None) -> None:
        self.layout, self.constant, self.argument = layout, constant, argument

    @property
    def fixed(self) -> bool:
        """Whether no instruction may write into it."""
        return self.constant is not None or self.argument is not None


class View:
    """A part of a buffer.

    Attributes:
        buffer: The buffer.
        layout: An array with the shape, dtype and strides; its elements are never read or written.
        offset: Bytes from the first element of the buffer to the first element of the view.
    """

    __slots__ = ("buffer", "layout", "offset")

    def __init__(self, buffer: Buffer, layout: Any, offset: int = 0) -> None:
        self.buffer, self.layout, self.offset = buffer, layout, offset

    @property
    def whole(self) -> bool:
        """Whether it is all of its buffer, laid out as the buffer is."""
        layout, whole = self.layout, self.buffer.layout
        return layout is whole or (
            not self.offset
            and layout.shape == whole.shape
            and layout.strides == whole.strides
            and layout.dtype == whole.dtype
        )

    @property
    def is_all(self) -> bool:
        """Whether it has all elements of its buffer in their order, perhaps in another shape."""
        layout = self.layout
        return not self.offset and layout.size == self.buffer.layout.size and bool(layout.flags.c_contiguous)


def address(array: Any) -> int:
    """Where an array's first element is."""
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]  # an integer


def is_dense(layout: Any) -> bool:
    """Whether the elements fill the memory without gaps, in some order of the axes."""
    flags = layout.flags
    return bool(flags.c_contiguous or flags.f_contiguous or np.empty_like(layout).strides == layout.strides)


def same_layout(a: Any, b: Any) -> bool:
    """Whether two arrays have one shape and dtype, and strides that differ at most along axes of length 1."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.strides == b.strides or a.size == 0:
        return True
    return all(n <= 1 or s == t for n, s, t in zip(a.shape, a.strides, b.strides, strict=True))


def same_numbers(a: Any, b: Any) -> bool:
    """Whether two arrays of one shape and dtype have the same bytes; of a NaN its sign and payload do not count.

    Of two NaNs, NumPy's loops for contiguous and for other arrays return different ones as their sum.
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.tobytes() == b.tobytes():
        return True
    if a.dtype.kind not in "fc":
        return False
    x, y = (np.ascontiguousarray(array).reshape(-1).view(array.real.dtype) for array in (a, b))
    without = np.isnan(x)
    return bool((without == np.isnan(y)).all() and x[~without].tobytes() == y[~without].tobytes())


def first_difference(pairs: Iterable[tuple[Any, Any]]) -> int | None:
    """The number of the first pair of arrays whose classes, layouts or numbers are not the same; None: all are."""
    for number, (a, b) in enumerate(pairs):
        if type(a) is not type(b) or not same_layout(a, b) or not same_numbers(a, b):
            return number
    return None


def span(layout: Any) -> int:
    """Bytes from the first byte of an array to its last.

    Raises:
        Unplaceable: It walks backwards.
    """
    if layout.size == 0:
        return 0
    if layout.flags.c_contiguous:
        return int(layout.nbytes)
    last = 0
    for n, stride in zip(layout.shape, layout.strides, strict=True):
        if n > 1 and stride < 0:
            raise Unplaceable("an array that walks backwards")
        last += (n - 1) * max(stride, 0)
    return int(last + layout.dtype.itemsize)


class Unplaceable(Exception):
    """A layout that no memory of a plan can have."""


def layout_of(array: Any) -> Any:
    """The layout of an array: one of the same shape, dtype and strides, without memory for its elements."""
    if isinstance(array, np.generic):
        return np.empty((), array.dtype)
    return unbacked(array, always=True)


def unbacked(layout: Any, *, always: bool = False) -> Any:
    """A layout without memory for its elements, which are never read or written; a small one as it is.

    Args:
        layout: An array.
        always: Whether a small one is replaced too, since it is more than a layout.
    """
    if layout.nbytes <= _SMALL and not always:
        return layout
    if layout.dtype.hasobject or not layout.size:
        return np.empty_like(layout, subok=False)
    return as_strided(np.empty(1, layout.dtype), layout.shape, layout.strides)


def memory_like(layout: Any) -> Any:
    """New memory of that layout."""
    if layout.flags.c_contiguous:
        return np.empty(layout.shape, layout.dtype)
    array = np.empty_like(layout, subok=False)
    if array.strides == layout.strides:
        return array
    return np.ndarray(layout.shape, layout.dtype, np.empty(span(layout), np.uint8), 0, layout.strides)


def view_of(array: Any, view: View) -> Any:
    """The part of an array that a view of its buffer is."""
    if view.whole:
        return array
    layout = view.layout
    array = np.asarray(array)
    if array.flags.c_contiguous:
        return np.ndarray(layout.shape, layout.dtype, array, view.offset, layout.strides)
    return np.asarray(_Memory(array, view)).view(layout.dtype)


class _Memory:
    """A part of an array without contiguous memory, as NumPy's array interface describes one."""

    def __init__(self, array: Any, view: View) -> None:
        self._array = array  # keeps the memory alive
        start, read_only = array.__array_interface__["data"]
        self.__array_interface__ = {
            "data": (start + view.offset, read_only),
            "shape": view.layout.shape,
            "strides": view.layout.strides,
            "typestr": view.layout.dtype.str,
            "version": 3,
        }
