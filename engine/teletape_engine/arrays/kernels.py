"""Loops in C of convolution, pooling, rectifiers and recurrences: the library that `kernels.c` becomes.

Without it, as with a compiler absent or another kind of array, NumPy does the same; results may differ in the last
digits. A kernel is called by a forward function, or noted by a plan, which then calls the same function of the library.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy._core._multiarray_umath import __cpu_features__  # type: ignore[import-not-found]  # it is written in C

from teletape_engine.c_library import PREFIX, SharedRecords, load

LIBRARY: Final = Path(__file__).with_name("libkernels.so.1")
_SUFFIXES: Final = {np.dtype(np.float32): "f4", np.dtype(np.float64): "f8"}
_POINTER: Final = ctypes.c_void_p
_OPERANDS: Final = 4
_NAMES: Final = (
    *("convolve", "convolve_filters", "max_pool", "max_pool_grad", "max_pool_pick"),
    *("relu", "relu_grad", "tanh_grad", "recurrence"),
)


class Geometry(NamedTuple):
    """Windows on images; `geometry` in C has its fields.

    Attributes:
        images, height, width, channels: Lengths of the images.
        out: Channels of the result.
        rows, columns: Lengths of a window.
        count_rows, count_columns: Numbers of windows.
        row_stride, column_stride: Steps from one window to the next.
        row_dilation, column_dilation: Steps from one element of a window to the next.
        top, left: Lengths of the border before an image.
        whole_height, whole_width: Lengths of an image with its border.
        turned: 1 if the filters are those of the transpose, turned by half a turn.
        apart: 1 if no two windows overlap.
    """

    images: int
    height: int
    width: int
    channels: int
    out: int
    rows: int
    columns: int
    count_rows: int
    count_columns: int
    row_stride: int
    column_stride: int
    row_dilation: int
    column_dilation: int
    top: int
    left: int
    whole_height: int
    whole_width: int
    turned: int
    apart: int

    @property
    def fits(self) -> bool:
        """Whether no length is 0, and every window lies inside the images with their border."""
        rows = (self.count_rows - 1) * self.row_stride + (self.rows - 1) * self.row_dilation + 1
        columns = (self.count_columns - 1) * self.column_stride + (self.columns - 1) * self.column_dilation + 1
        inside = rows <= self.whole_height and columns <= self.whole_width
        bordered = self.top + self.height <= self.whole_height and self.left + self.width <= self.whole_width
        return inside and bordered and min(self[:13]) > 0 and min(self.top, self.left) >= 0

    @property
    def work(self) -> int:
        """Multiply-adds of a convolution, or comparisons of a pool."""
        windows = self.images * self.count_rows * self.count_columns
        return windows * self.rows * self.columns * self.channels * self.out


class Count(NamedTuple):
    """Elements of arrays of one shape."""

    elements: int

    @property
    def fits(self) -> bool:
        """Whether there are any."""
        return self.elements > 0

    @property
    def work(self) -> int:
        """One step for each."""
        return self.elements


class Lines(NamedTuple):
    """Lines along the middle one of three axes; `lines` in C has its fields.

    Attributes:
        outer, length, inner: Lengths of the axes.
        backward: 1 if a line is run through from its end.
        own: 1 if the factor of an element is its own, not that of the element before.
    """

    outer: int
    length: int
    inner: int
    backward: int
    own: int

    @property
    def fits(self) -> bool:
        """Whether there are any elements."""
        return self.work > 0

    @property
    def work(self) -> int:
        """One step for each element."""
        return self.outer * self.length * self.inner


RECORDS: Final = SharedRecords(
    "kernels.py",
    {"geometry": f"word {', '.join(Geometry._fields)};", "lines": f"word {', '.join(Lines._fields)};"},
)


class LibraryKernel:
    """A function of the library for one geometry, one number of elements or one form of lines.

    Attributes:
        function: Its address.
        context: The address of the geometry or number.
        work: Multiply-adds, or comparisons.
    """

    __slots__ = ("__name__", "_call", "_owned", "context", "function", "work")

    def __init__(self, name: str, call: Any, context: Geometry | Count | Lines) -> None:
        self.__name__, self._call, self.work = name, call, context.work
        self._owned = (ctypes.c_ssize_t * len(context))(*context)
        self.context = ctypes.addressof(self._owned)
        self.function = ctypes.cast(call, _POINTER).value or 0

    def __call__(self, *arrays: Any) -> None:
        """Reads all arrays but the last one, which it writes: row-major, aligned and of one dtype."""
        addresses = [array.__array_interface__["data"][0] for array in arrays]
        if self._call(self.context, (_POINTER * _OPERANDS)(*addresses), None, None, None):
            raise MemoryError("no memory for the buffers of a kernel")

    def on_any(self, *arrays: Any) -> None:
        """The same; what it reads may have any strides, and may be NumPy's scalars."""
        self(*[array if _is_plain(array) else _plain(array) for array in arrays[:-1]], arrays[-1])


def kernel(xp: Any, name: str, dtype: Any, context: Geometry | Count | Lines) -> LibraryKernel | None:
    """The function of that name in `kernels.c` without its suffix; None if there is none for these arrays."""
    if LIBRARY_LOADED is None or dtype not in _SUFFIXES or not (xp is np or hasattr(type(xp), "noted")):
        return None
    return _kernel(name, dtype, context)


def applied(xp: Any, kernel: LibraryKernel, inputs: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """The result of a kernel, of that shape and of the dtype of its first input."""
    dtype = inputs[0].dtype
    if xp is not np:
        return xp.noted(kernel, inputs, shape, dtype)
    out = np.empty(shape, dtype)
    kernel.on_any(*inputs, out)
    return out


def _is_plain(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.flags.c_contiguous and array.flags.aligned


def _plain(array: Any) -> Any:
    return np.require(array, None, ("C", "A"))


@lru_cache(maxsize=1024)
def _kernel(name: str, dtype: Any, context: Geometry | Count | Lines) -> LibraryKernel | None:
    call = getattr(LIBRARY_LOADED, f"{PREFIX}{name}_{_SUFFIXES[dtype]}")
    return LibraryKernel(name, call, context) if context.fits else None


def _most_level() -> int:
    """The level of x86-64 (4 has AVX-512, 3 AVX2) up to which NumPy uses its own kernels, as a user may have set."""
    has = __cpu_features__  # before NumPy 2.4 by the second names
    if not has.get("X86_V3", has.get("AVX2")):
        return 2
    return 4 if has.get("X86_V4", has.get("AVX512_SKX")) else 3


def _load() -> ctypes.CDLL | None:
    """The library, if it is there, of this version of `kernels.c`, and computes what it should."""
    try:
        library = load(LIBRARY, RECORDS)
        for name in _NAMES:
            for suffix in _SUFFIXES.values():
                getattr(library, f"{PREFIX}{name}_{suffix}").argtypes = (_POINTER,) * 5
        library.teletape_limit_level.argtypes = (ctypes.c_ssize_t,)
        library.teletape_limit_level(_most_level())
    except (OSError, AttributeError, ValueError):
        return None
    return library if _works(library) else None


def _works(library: ctypes.CDLL) -> bool:
    """Whether kernels of each kind give what they should: small integers, which no order of sums rounds."""
    windows = Geometry(1, 3, 4, 1, 1, 2, 2, 2, 3, 1, 1, 1, 1, 0, 0, 3, 4, 0, 0)
    dtype: Any
    for dtype, suffix in _SUFFIXES.items():
        x, filters = np.arange(-6, 6, dtype=dtype).reshape(3, 4), np.array([[1, -2], [3, 5]], dtype)
        parts = [[x[i : i + 2, j : j + 3] for j in range(2)] for i in range(2)]
        ones = np.ones(12, dtype)
        cases: list[tuple[str, Geometry | Count | Lines, tuple[Any, ...], Any]] = [
            ("convolve", windows, (x, filters), sum(filters[i, j] * parts[i][j] for i in range(2) for j in range(2))),
            ("max_pool", windows, (x,), parts[1][1]),
            ("relu", Count(12), (x,), np.maximum(x, 0)),
            ("recurrence", Lines(3, 4, 1, 0, 1), (x, ones), np.cumsum(x, 1)),
        ]
        for name, context, inputs, expected in cases:
            result = np.full_like(expected, 7, dtype)
            LibraryKernel(name, getattr(library, f"{PREFIX}{name}_{suffix}"), context)(*inputs, result)
            if not np.array_equal(result, expected):
                return False
    return True


LIBRARY_LOADED: Final = _load()
