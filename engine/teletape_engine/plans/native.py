"""The walk in C: NumPy's own inner loops, called one after the other by the library that `rows.c` becomes.

NumPy hands these loops out (`_resolve_dtypes_and_context`, `_get_strided_loop`: made for Numba). The names are private:
they are used for the versions in `TESTED` alone, after a self-check, and only if the library was built. Long because it
has the layout of every record of `rows.c`, and what fills them.
"""

from __future__ import annotations

import ctypes
import warnings
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from teletape_engine.arrays.kernels import is_of_sources
from teletape_engine.plans.instructions import (
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
from teletape_engine.plans.policy import POLICY

LIBRARY: Final = Path(__file__).with_name("librows.so.1")
VERSION: Final = 2  #: Of the records below, in `rows.c` too.
TESTED: Final = frozenset(("2.1", "2.2", "2.3", "2.4", "2.5"))  #: Every test of plans has passed with them.
ROW: Final = np.dtype(
    [
        ("function", "u8"),
        ("context", "u8"),
        ("auxiliary", "u8"),
        ("data", "u8", 4),
        ("n", "i8"),
        ("strides", "i8", 4),
    ]
)
STAGE: Final = np.dtype([("object", "i8"), ("is_scalar", "i8"), ("size", "i8"), ("target", "u8")])
PATCH: Final = np.dtype([("object", "i8"), ("offset", "i8"), ("alignment", "i8"), ("target", "u8")])
PROGRAM: Final = np.dtype(
    [
        ("rows", "u8"),
        ("count", "i8"),
        ("stage_count", "i8"),
        ("patch_count", "i8"),
        ("head", "i8"),
        ("stages", "u8"),
        ("patches", "u8"),
    ]
)
MOVE: Final = np.dtype([("target", "u8"), ("step", "i8")])
TURN: Final = np.dtype(
    [
        ("condition", "u8"),
        ("body", "u8"),
        ("condition_count", "i8"),
        ("body_count", "i8"),
        ("flag", "u8"),
        ("flag_size", "i8"),
        ("move_count", "i8"),
        ("moves", "u8"),
    ]
)
PART: Final = np.dtype([("row", "i8"), ("operand", "i8"), ("base", "i8"), ("size", "i8")])
FEED: Final = np.dtype(
    [
        ("function", "u8"),
        ("context", "u8"),
        ("auxiliary", "u8"),
        ("buffer", "u8"),
        ("size", "i8"),
        ("filled", "i8"),
        ("leaf", "i8"),
        ("leaves", "u8"),
    ]
)
WORKER: Final = np.dtype([("rows", "u8"), ("feeds", "u8")])
STRETCH: Final = np.dtype([("start", "i8"), ("stop", "i8"), ("leaf", "i8")])
GROUP: Final = np.dtype(
    [
        ("row_count", "i8"),
        ("part_count", "i8"),
        ("most", "i8"),
        ("feed_count", "i8"),
        ("worker_count", "i8"),
        ("parts", "u8"),
        ("bases", "u8"),
        ("workers", "u8"),
        ("stretches", "u8"),
    ]
)
HEAD: Final = object.__basicsize__  #: Bytes of every Python object, before its own.
_MOST_LOOPS: Final = 4096  #: Loops that are remembered.
_DEPTH: Final = 6  #: Outer loops, at the most.
_CODES: Final = {"?": "b1", "B": "u1", "b": "i1", "h": "i2", "i": "i4", "l": "i8", "q": "i8", "f": "f4", "d": "f8"}
_WORD: Final = ctypes.c_ssize_t
_POINTER: Final = ctypes.c_void_p


class _Info(ctypes.Structure):
    _fields_ = (
        ("loop", _POINTER),
        ("context", _POINTER),
        ("auxiliary", _POINTER),
        ("needs_python", ctypes.c_ubyte),
        ("no_float_errors", ctypes.c_ubyte),
    )


class _Nest(ctypes.Structure):
    _fields_ = (
        ("function", _POINTER),
        ("context", _POINTER),
        ("auxiliary", _POINTER),
        ("depth", _WORD),
        ("shape", _WORD * _DEPTH),
        ("strides", (_WORD * 4) * _DEPTH),
    )


class _Product(ctypes.Structure):
    _fields_ = (
        ("function", _POINTER),
        ("context", _POINTER),
        ("auxiliary", _POINTER),
        ("lengths", _WORD * 4),
        ("strides", _WORD * 9),
    )


class _Take(ctypes.Structure):
    _fields_ = (
        ("outer", _WORD),
        ("length", _WORD),
        ("picked", _WORD),
        ("inner", _WORD),
        ("own", _WORD),
        ("index_size", _WORD),
    )


class LoopRow(NamedTuple):
    """One loop over memory.

    Attributes:
        function, context, auxiliary: Addresses.
        operands: What it reads and writes, each with bytes to be added to its address.
        n: How many elements.
        strides: Of the operands.
        owned: What the addresses belong to.
    """

    function: int
    context: int
    auxiliary: int
    operands: tuple[tuple[View, int], ...]
    n: int
    strides: tuple[int, ...]
    owned: Any


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
        self.run.argtypes = (_POINTER, ctypes.c_long)
        self.begin = library.begin
        self.begin.argtypes = (_POINTER, _POINTER)
        self.call = library.call
        self.call.argtypes = (_POINTER, _POINTER)
        self.loop_of = library.loop_of
        self.loop_of.argtypes = (_POINTER, _WORD, _POINTER)
        # The same without giving the GIL up: to get it back takes longer than a short run.
        with_gil = ctypes.PyDLL(str(LIBRARY))
        self.run_with_gil, self.call_with_gil = with_gil.run, with_gil.call
        self.run_with_gil.argtypes, self.call_with_gil.argtypes = self.run.argtypes, self.call.argtypes
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = _POINTER, (ctypes.py_object, ctypes.c_char_p)
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
            take = _Take(*instruction.extra, views[1].layout.itemsize)
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
        product = _Product(
            loop[0],
            loop[1],
            loop[2],
            (_WORD * 4)(lead[0] if lead else 1, a.shape[-2], a.shape[-1], b.shape[-1]),
            (_WORD * 9)(*[steps[0] if lead else 0 for steps in strides], *[n for steps in strides for n in steps[-2:]]),
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
        return ctypes.cast(function, _POINTER).value or 0

    def _loop(self, ufunc: Any, dtypes: tuple[Any, ...], strides: tuple[int, ...] | None) -> tuple[int, int, int, Any]:
        key = (ufunc, dtypes, strides)
        loop = self._loops.get(key)
        if loop is None:
            _, capsule = ufunc._resolve_dtypes_and_context(dtypes)
            if strides is None:
                ufunc._get_strided_loop(capsule)
            else:
                ufunc._get_strided_loop(capsule, fixed_strides=strides)
            info = _Info.from_address(self._pointer(capsule, b"numpy_1.24_ufunc_call_info"))
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
        if len(shape) - 1 > _DEPTH:
            raise Uncompiled
        nest = _Nest(function, context, auxiliary, len(shape) - 1)
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


def _load() -> tuple[Library | None, str]:
    """The library, if it does what NumPy does here; else why it does not, and what to do."""
    if ".".join(np.__version__.split(".")[:2]) not in TESTED:
        first, *_, last = sorted(TESTED)
        return None, f"NumPy is {np.__version__}, and compiled plans need {first} to {last}: install one of these"
    if not LIBRARY.exists():
        return None, f"{LIBRARY.name} was not built, because there was no C compiler: install one, and Teletape again"
    try:
        library = Library()
        if _works(library) and _begins(library):
            return library, ""
    except (OSError, ValueError, AttributeError, TypeError, Uncompiled) as error:
        return None, f"{LIBRARY.name} cannot be used ({error}): install Teletape again"
    return None, f"{LIBRARY.name} gives other numbers than NumPy {np.__version__}: install another version of NumPy"


def _works(library: Library) -> bool:
    """Whether rows of each kind give NumPy's bytes."""
    x = np.linspace(-2, 3, 35, dtype=np.float32).reshape(5, 7)
    a, b = np.ascontiguousarray(x[:, :5]), np.ascontiguousarray(x.T[:5])
    cases: list[Any] = [
        (UFUNC, np.multiply, (x, x[:, ::2][:, :1]), np.multiply(x, x[:, ::2][:, :1]), None),
        (UFUNC, np.tanh, (x[:, 1:],), np.tanh(x[:, 1:]), None),
        (REDUCE, np.add, (x,), np.add.reduce(x, (1,)), ((1,), None)),
        (REDUCE, np.maximum, (x,), np.maximum.reduce(x, (0,)), ((0,), None)),
        (MATMUL, np.matmul, (a, b), np.matmul(a, b), None),
        (COPY, None, (x.T,), np.ascontiguousarray(x.T), None),
        (SELECT, None, (x > 0, x, x * 2), np.where(x > 0, x, x * 2), None),
    ]
    for kind, function, inputs, expected, extra in cases:
        views = tuple([View(Buffer(array, constant=array), array) for array in inputs])
        output = np.full_like(expected, 7, subok=False)
        instruction = Instruction(kind, function, views, View(Buffer(output), output), extra)
        for _ in range(2):  # a loop that moves its pointers goes wrong at the second call
            rows = library.rows(instruction)
            table = np.zeros(len(rows), ROW)
            for number, row in enumerate(rows):
                data = [
                    address(output if view.buffer.layout is output else view.layout) + start
                    for view, start in row.operands
                ]
                fill(table, number, row, data)
            output.fill(7)
            if library.run(address(table), len(table)) or output.tobytes() != expected.tobytes():
                return False
    return True


def _begins(library: Library) -> bool:
    """Whether arguments are found where a program looks for them: arrays, and scalars of each dtype."""
    for char in "?bBhHiIlLqQefdFD":
        number = np.full(2, 113 if char != "?" else 1, char)
        for argument in (number[1:], number[1]):
            target = np.zeros(1, char)
            stage, where = np.zeros(1, STAGE), np.zeros(1, "u8")
            is_array = argument.__class__ is np.ndarray
            stage[0] = (0, not is_array, number.itemsize, address(target))
            patch, program = np.zeros(1, PATCH), np.zeros(1, PROGRAM)
            patch[0] = (0, 3, number.itemsize, address(where))
            program[0] = (0, 0, 1, is_array, HEAD, address(stage), address(patch))
            objects = (ctypes.c_void_p * 1)(id(argument))
            if library.call(address(program), objects) or target[0] != number[1]:
                return False
            if is_array and where[0] != address(argument) + 3:
                return False
    return True


_NONE: Final = (0, 0, 0, 0)


def words(row: LoopRow, data: list[int]) -> tuple[int, ...]:
    """A row as it lies in a table: its fields are as wide as an integer each."""
    head = row.function, row.context, row.auxiliary, *data, *_NONE[len(data) :]
    return (*head, row.n, *row.strides, *_NONE[len(row.strides) :])


def table_of(rows: list[tuple[int, ...]]) -> Any:
    """A table of rows."""
    return np.array(rows, np.int64).reshape(-1).view(ROW)


def fill(table: Any, number: int, row: LoopRow, data: list[int]) -> None:
    """Writes one row into a table."""
    table[number : number + 1] = table_of([words(row, data)])


#: The library, and why there is none: functions then run step by step in Python, several times slower.
LIBRARY_LOADED, WHY_NOT = _load()
if WHY_NOT and POLICY.compiled:
    warnings.warn(f"functions run step by step, several times slower than they could: {WHY_NOT}", stacklevel=2)
