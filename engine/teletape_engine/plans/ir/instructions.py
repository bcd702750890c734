"""What lowering gives: buffers, operands that are views of them, and instructions in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

#: Kinds of instructions: a ufunc; a reduction by a ufunc; a matrix product; a copy or a conversion of the dtype; a
#: selection (`where`); a forward function in Python.
UFUNC: Final = "ufunc"
REDUCE: Final = "reduce"
MATMUL: Final = "matmul"
COPY: Final = "copy"
SELECT: Final = "select"
PYTHON: Final = "python"
#: A function of `arrays.kernels`.
KERNEL: Final = "kernel"
#: The elements of an array at indices; `extra` is a `TakeGeometry`.
TAKE: Final = "take"
#: Fails unless all elements of its input are true. Its output is never read.
CHECK: Final = "check"
#: The sum of the sums of tiles, by halves; see `tiles`.
TREE: Final = "tree"
#: Of a plan that is debugged: fills memory that nothing reads any more with bytes that are no number.
FILL: Final = "fill"

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


class TakeGeometry(NamedTuple):
    """What is taken from an array of shape [outer, length, inner], C-contiguous, as the indices are.

    Attributes:
        outer, length: Of the array.
        picked: Indices of each of the `outer` parts.
        inner: Bytes of an entry.
        own: Whether each part has indices of its own.
    """

    outer: int
    length: int
    picked: int
    inner: int
    own: bool


class Instruction:
    """One call into memory that exists.

    Attributes:
        kind: See above.
        function: The ufunc, or the forward function.
        inputs: What it reads.
        output: What it writes.
        extra: Of a reduction (axes, dtype); of a tree the length, and the most elements of a tile; of a
            forward function what `forwards.python_step` says.
        origin: The instruction of a template of which this one is a copy on other buffers; None: it is none.
        rows: Of an origin: what `native` knows of the rows of its copies.
    """

    __slots__ = ("extra", "function", "inputs", "kind", "origin", "output", "rows")

    def __init__(
        self,
        kind: str,
        function: Callable[..., Any] | None,
        inputs: tuple[View, ...],
        output: View,
        extra: Any = None,
        origin: Instruction | None = None,
    ) -> None:
        self.kind, self.function, self.inputs, self.output, self.extra = kind, function, inputs, output, extra
        self.origin = origin
        self.rows: Any = None

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", "")
        return f"<{self.kind} {name} {[view.layout.shape for view in self.inputs]} -> {self.output.layout.shape}>"


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
