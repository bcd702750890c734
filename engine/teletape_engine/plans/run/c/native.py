"""The walk in C: NumPy's own inner loops, called one after the other by the library that `rows.c` becomes.

NumPy hands these loops out (`_resolve_dtypes_and_context`, `_get_strided_loop`: made for Numba). The names are private:
they are used as `loaded.py` says: for versions of NumPy that were tested, after a self-check, if the library was built.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any, Final

import numpy as np

from teletape_engine.arrays.kernels import is_of_sources
from teletape_engine.plans.ir.instructions import (
    CHECK,
    COPY,
    FILL,
    KERNEL,
    MATMUL,
    PYTHON,
    REDUCE,
    SELECT,
    TAKE,
    TREE,
    UFUNC,
    Buffer,
    Instruction,
    View,
    address,
)
from teletape_engine.plans.run.c.records import (
    DEPTH,
    POINTER,
    ROW,
    VERSION,
    WORD,
    Info,
    LoopRow,
    Nest,
    Product,
    Take,
)

LIBRARY: Final = Path(__file__).with_name("librows.so.1")
_MOST_LOOPS: Final = 4096  #: Loops that are remembered.
_CODES: Final = {"?": "b1", "B": "u1", "b": "i1", "h": "i2", "i": "i4", "l": "i8", "q": "i8", "f": "f4", "d": "f8"}


class Uncompiled(Exception):
    """An instruction that has no rows."""


class Library:
    """The library, loaded.

    Raises:
        OSError: There is none, or it is of another machine.
        ValueError: It is of another version of `rows.c`.
    """

    def __init__(self) -> None:
        self._library = library = ctypes.CDLL(str(LIBRARY))
        is_current = library.version() == VERSION and is_of_sources(library, LIBRARY.parent)
        if not is_current or library.row_size() != ROW.itemsize:
            raise ValueError("librows.so.1 is of another version of rows.c: run hatch_build.py")
        self.run = library.run
        self.run.argtypes = (POINTER, ctypes.c_long)
        self.begin = library.begin
        self.begin.argtypes = (POINTER, POINTER)
        self.call = library.call
        self.call.argtypes = (POINTER, POINTER)
        self.loop_of = library.loop_of
        self.loop_of.argtypes = (POINTER, WORD, POINTER)
        # The same without giving the GIL up: to get it back takes longer than a short run.
        with_gil = ctypes.PyDLL(str(LIBRARY))
        self.run_with_gil, self.call_with_gil = with_gil.run, with_gil.call
        self.run_with_gil.argtypes, self.call_with_gil.argtypes = self.run.argtypes, self.call.argtypes
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = POINTER, (ctypes.py_object, ctypes.c_char_p)
        self._pointer = get
        self._loops: dict[Any, tuple[int, int, int, Any]] = {}

    # ------------------------------------------------------------------------------------------------------------ rows
    def rows(self, instruction: Instruction) -> list[LoopRow]:
        """The rows that do an instruction. Copies of one instruction differ in their operands alone.

        Raises:
            Uncompiled: There are none.
        """
        origin = instruction.origin
        if origin is None:
            return self._rows(instruction)
        views = (*instruction.inputs, instruction.output)
        if origin.rows is not None and instruction.output.buffer not in [view.buffer for view in instruction.inputs]:
            return [
                row._replace(operands=tuple([(view if at is None else views[at], start) for at, view, start in where]))
                for row, where in origin.rows
            ]
        rows = self._rows(instruction)
        if len({id(view) for view in views}) == len(views):  # else it is not known which of them an operand is
            places = [(row, [(_position(view, views), view, start) for view, start in row.operands]) for row in rows]
            if all(at is not None or view.buffer.constant is not None for _, where in places for at, view, _ in where):
                origin.rows = places
        return rows

    def _rows(self, instruction: Instruction) -> list[LoopRow]:
        kind, views = instruction.kind, (*instruction.inputs, instruction.output)
        if kind is CHECK:
            return self._check(instruction.inputs)
        output = instruction.output
        if output.layout.size == 0 and kind is not PYTHON:
            return []
        if any(view.buffer is output.buffer and not _same(view, output) for view in instruction.inputs):
            raise Uncompiled  # where memory overlaps NumPy copies first
        if any(stride < 0 for view in views for stride in view.layout.strides):
            raise Uncompiled  # NumPy copies such inputs to a buffer: by another loop exp and log round differently
        if instruction.function is np.power:
            raise Uncompiled  # its loop squares if the exponent has a stride of 0: NumPy's choice for one element
        if kind is UFUNC:
            shape, strides, starts = loops_over([view.layout for view in views])
            dtypes = tuple([view.layout.dtype for view in views])
            loop = self._loop(instruction.function, dtypes, tuple([steps[-1] for steps in strides]))
            return [_nested(self, loop, views, shape, strides, starts)]
        if kind in (COPY, SELECT):
            return [self._moved(kind, views)]
        if kind is TREE:
            length, most = instruction.extra
            symbol = self.symbol(f"tree_{_CODES[output.layout.dtype.char]}")
            return [LoopRow(symbol, length, 0, ((views[0], 0), (output, 0)), 1, (most,), None)]
        if kind is FILL:
            return [LoopRow(self.symbol("fill"), 0, 0, ((output, 0),), output.layout.size, (1,), None)]
        if kind is REDUCE:
            return self._reduction(instruction)
        if kind is MATMUL:
            return [self._product(views)]
        if kind is TAKE:
            take = Take(*instruction.extra, views[1].layout.itemsize)
            operands = tuple([(view, 0) for view in views])
            return [LoopRow(self.symbol("take"), ctypes.addressof(take), 0, operands, 1, (0, 0, 0), take)]
        if kind is KERNEL:
            kernel: Any = instruction.function
            operands = tuple([(view, 0) for view in views])
            return [LoopRow(kernel.function, kernel.context, 0, operands, 1, (0,) * len(views), kernel)]
        raise Uncompiled

    def _check(self, views: tuple[View, ...]) -> list[LoopRow]:
        (view,) = views
        if not view.layout.size:
            return []
        if any(stride < 0 for stride in view.layout.strides):
            raise Uncompiled
        shape, strides, starts = loops_over([view.layout])
        return [_nested(self, (self.symbol("all_true"), 0, 0, None), views, shape, strides, starts)]

    def _moved(self, kind: str, views: tuple[View, ...]) -> LoopRow:
        layouts = [view.layout for view in views]
        if any(layout.shape != layouts[-1].shape for layout in layouts):
            layouts = [np.broadcast_to(layout, layouts[-1].shape) for layout in layouts]
        shape, strides, starts = loops_over(layouts)
        source, target = layouts[0].dtype, layouts[-1].dtype
        if kind is SELECT:
            loop = self.symbol("choose"), target.itemsize, 0, None
        elif source == target:
            loop = self.symbol("copy"), target.itemsize, 0, None
        else:
            loop = self.symbol(f"cast_{_CODES.get(source.char)}_{_CODES.get(target.char)}"), 0, 0, None
        return _nested(self, loop, views, shape, strides, starts)

    def _reduction(self, instruction: Instruction) -> list[LoopRow]:
        (source,), output, ufunc = instruction.inputs, instruction.output, instruction.function
        axes, _ = instruction.extra
        x, y = source.layout, output.layout
        # Of views NumPy sums through its buffer, in another order.
        if x.dtype != y.dtype or not x.flags.c_contiguous or x.dtype.char not in "fdilq":
            raise Uncompiled
        if ufunc is np.maximum or ufunc is np.minimum:
            at = tuple([0 if axis in axes else slice(None) for axis in range(x.ndim)])
            layout = x[(*at, ...)]
            first = View(source.buffer, layout, source.offset + address(layout) - address(x))
        elif ufunc is np.add or ufunc is np.multiply:
            identity = np.array(ufunc.identity, y.dtype)
            first = View(Buffer(identity, constant=identity), np.broadcast_to(identity, y.shape))
        else:
            raise Uncompiled
        start = self._moved(COPY, (first, output))
        remaining = [axis for axis in range(x.ndim) if axis not in axes]
        positions = [remaining.index(axis) if axis in remaining else -1 for axis in range(x.ndim)]
        shape, (into, over), (a, b) = loops_over([y, x], [positions, list(range(x.ndim))], reduces=True)
        loop = self._loop(ufunc, (y.dtype, x.dtype, y.dtype), None)
        views = (output, source, output)
        return [start, _nested(self, loop, views, shape, [into, over, into], [a, b, a])]

    def _product(self, views: tuple[View, ...]) -> LoopRow:
        a, b, y = [view.layout for view in views]
        lead = y.shape[:-2]
        if len(lead) > 1 or 0 in (*a.shape, *b.shape):
            raise Uncompiled
        loop = self._loop(np.matmul, (a.dtype, b.dtype, y.dtype), None)
        strides = [np.broadcast_to(x, (*lead, *x.shape[-2:])).strides for x in (a, b, y)]
        product = Product(
            loop[0],
            loop[1],
            loop[2],
            (WORD * 4)(lead[0] if lead else 1, a.shape[-2], a.shape[-1], b.shape[-1]),
            (WORD * 9)(*[steps[0] if lead else 0 for steps in strides], *[n for steps in strides for n in steps[-2:]]),
        )
        operands = tuple([(view, 0) for view in views])
        return LoopRow(self.symbol("product"), ctypes.addressof(product), 0, operands, 1, (0, 0, 0), (product, loop[3]))

    # ----------------------------------------------------------------------------------------------------------- loops
    def symbol(self, name: str) -> int:
        """The address of a function of the library."""
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise Uncompiled from None
        return ctypes.cast(function, POINTER).value or 0

    def _loop(self, ufunc: Any, dtypes: tuple[Any, ...], strides: tuple[int, ...] | None) -> tuple[int, int, int, Any]:
        key = (ufunc, dtypes, strides)
        loop = self._loops.get(key)
        if loop is None:
            _, capsule = ufunc._resolve_dtypes_and_context(dtypes)
            if strides is None:
                ufunc._get_strided_loop(capsule)
            else:
                ufunc._get_strided_loop(capsule, fixed_strides=strides)
            info = Info.from_address(self._pointer(capsule, b"numpy_1.24_ufunc_call_info"))
            if info.needs_python:
                raise Uncompiled
            if len(self._loops) >= _MOST_LOOPS:
                self._loops.clear()
            loop = self._loops[key] = (info.loop, info.context or 0, info.auxiliary or 0, capsule)
        return loop


def _position(view: View, views: tuple[View, ...]) -> int | None:
    return next((at for at, other in enumerate(views) if other is view), None)


def _same(a: View, b: View) -> bool:
    return a.offset == b.offset and a.layout.shape == b.layout.shape and a.layout.strides == b.layout.strides


def _nested(
    library: Library,
    loop: tuple[int, int, int, Any],
    views: tuple[View, ...],
    shape: tuple[int, ...],
    strides: list[tuple[int, ...]],
    starts: list[int],
) -> LoopRow:
    function, context, auxiliary, owned = loop
    if len(shape) > 1:
        if len(shape) - 1 > DEPTH:
            raise Uncompiled
        nest = Nest(function, context, auxiliary, len(shape) - 1)
        for k, n in enumerate(shape[:-1]):
            nest.shape[k] = n
            for j, steps in enumerate(strides):
                nest.strides[k][j] = steps[k]
        function, context, auxiliary, owned = library.symbol("nest"), ctypes.addressof(nest), 0, (nest, owned)
    operands = tuple(zip(views, starts, strict=True))
    return LoopRow(function, context, auxiliary, operands, shape[-1], tuple([steps[-1] for steps in strides]), owned)


def loops_over(
    layouts: list[Any], op_axes: list[list[int]] | None = None, *, reduces: bool = False
) -> tuple[tuple[int, ...], list[tuple[int, ...]], list[int]]:
    """The loops that NumPy makes over arrays: lengths, strides of each array, and bytes from its first element.

    An array that runs backwards along an axis may be walked from its other end.
    """
    if op_axes is None:
        whole = layouts[-1]
        n = whole.size
        if all((layout.flags.c_contiguous and layout.shape == whole.shape) or layout.size == 1 for layout in layouts):
            return (
                (n,),
                [(layout.itemsize if layout.size > 1 or n == 1 else 0,) for layout in layouts],
                [0] * len(layouts),
            )
    nditer: Any = np.nditer
    iterator = nditer(
        layouts,
        flags=["external_loop", "zerosize_ok", *(["reduce_ok"] if reduces else [])],
        op_flags=[["readwrite"] if reduces and i == 0 else ["readonly"] for i in range(len(layouts))],
        op_axes=op_axes,
    )
    views = iterator.itviews
    starts = [address(view) - address(layout) for view, layout in zip(views, layouts, strict=True)]
    if not views[0].ndim:
        return (1,), [(0,)] * len(views), starts
    return views[0].shape, [view.strides for view in views], starts
