"""Instructions: one class for each kind, which knows the call that does it from Python, on a GPU, and its rows in C.

Whatever else is asked of an instruction, what it costs, whether it runs tile by tile or in place, its class says too: a
new kind is one class here, and a place in `lower/` that notes it. Long because every kind is here, with all of that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from teletape_engine.plans.ir.buffers import Buffer, View, address
from teletape_engine.plans.ir.forwards import Diverged, python_step
from teletape_engine.plans.ir.rows import CODES, InnerLoop, LoopRow, Loops, Uncompiled, loops_over, nested
from teletape_engine.plans.ir.splitting import splits
from teletape_engine.recording.values import Literal

_SUMS: Final = "fd"  #: Dtypes whose sums are pairwise.


class Refused(Exception):
    """An op does not take the values: the interpreter raises its error."""


class Instruction:
    """One call into memory that exists.

    Args:
        inputs: What it reads.
        output: What it writes.
        function: What the class says: the ufunc, the kernel, the forward function, what takes elements.
        extra: What the class says.
        origin: The instruction of a template of which this one is a copy on other buffers; None: it is none.

    Attributes:
        row_places: Of an origin: the rows of its copies, as `run.c.native` keeps them.
        refuses: Whether it may refuse the values, and so runs even if nothing reads its output.
        in_place: Whether each element is read before it is written, so that the output may have an input's memory.
        gathers: Whether it is a sum that gets the elements of a tile, and is complete after the last tile.
        capturable: Whether it may be a part of a CUDA graph: it allocates nothing, and waits for nothing.
        device_code: The name of its code in kernels that are generated for a GPU; None: it is elementwise in none.
    """

    __slots__ = ("extra", "function", "inputs", "origin", "output", "row_places")
    refuses: ClassVar[bool] = False
    in_place: ClassVar[bool] = False
    gathers: ClassVar[bool] = False
    capturable: ClassVar[bool] = False
    device_code: str | None = None

    def __init__(
        self,
        inputs: tuple[View, ...],
        output: View,
        function: Any = None,
        extra: Any = None,
        origin: Instruction | None = None,
    ) -> None:
        self.inputs, self.output, self.function, self.extra, self.origin = inputs, output, function, extra, origin
        self.row_places: Any = None

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", "")
        shapes = [view.layout.shape for view in self.inputs]
        return f"<{type(self).__name__} {name} {shapes} -> {self.output.layout.shape}>"

    def on(self, inputs: tuple[View, ...], output: View) -> Instruction:
        """The same on other buffers."""
        return type(self)(inputs, output, self.function, self.extra, self)

    @property
    def views(self) -> tuple[View, ...]:
        """What it reads, then what it writes."""
        return *self.inputs, self.output

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.output.layout.size

    @property
    def cost(self) -> int:
        """How many elements it takes about as long as."""
        return sum([view.layout.size for view in self.views])

    @property
    def tiled_length(self) -> int:
        """Elements, if they may be computed tile by tile: elementwise, or a sum of all; else 0."""
        return 0

    def is_same_in_parts(self) -> bool:
        """Whether it gives the same bytes tile by tile, if it has a `tiled_length`."""
        return True

    def call(self) -> Callable[..., Any]:
        """The function that does it from Python; it takes the arrays of the inputs, then that of the output."""
        raise NotImplementedError(f"{self!r} has no call from Python")

    def rows(self, loops: Loops) -> list[LoopRow]:
        """The rows that do it; its memory is neither backwards, nor overlaps.

        Raises:
            Uncompiled: There are none.
        """
        raise Uncompiled

    def device_call(self, xp: Any, inputs: Sequence[Any], output: Any) -> Callable[[], Any]:
        """What does it on a GPU.

        Args:
            xp: CuPy.
            inputs: Arrays.
            output: An array.
        """
        raise NotImplementedError(f"{self!r} is not for a GPU")


class _Elementwise(Instruction):
    """What computes each element of the output from those at its place."""

    __slots__ = ()

    @property
    def tiled_length(self) -> int:
        output = self.output
        layout = output.layout
        if not layout.flags.c_contiguous or not output.whole or layout.dtype.kind == "c":
            return 0
        for view in self.inputs:
            part = view.layout
            if view.buffer is output.buffer or part.dtype.kind == "c":
                return 0
            if part.size == 1 or not any(part.strides):
                continue
            if part.shape != layout.shape or not part.flags.c_contiguous:
                return 0
        return int(layout.size)


class UfuncCall(_Elementwise):
    """A ufunc: `function`."""

    __slots__ = ()
    in_place = capturable = True

    @property
    def device_code(self) -> str:  # type: ignore[override]  # of the ufunc
        """The name of the ufunc."""
        name: str = self.function.__name__
        return name

    @property
    def tiled_length(self) -> int:
        """As of all that is elementwise; not of a power: see `rows`."""
        return 0 if self.function is np.power else super().tiled_length

    def is_same_in_parts(self) -> bool:
        """Whether the ufunc does; it is tried."""
        return splits(self.function, self.inputs, self.output)

    def call(self) -> Callable[..., Any]:
        """The ufunc."""
        return _BY_KEYWORD.get(self.function) or self.function

    def rows(self, loops: Loops) -> list[LoopRow]:
        """NumPy's loop of the ufunc."""
        if self.function is np.power:
            raise Uncompiled  # its loop squares if the exponent has a stride of 0: NumPy's choice for one element
        layouts = [view.layout for view in self.views]
        shape, strides, starts = loops_over(layouts)
        dtypes = tuple([layout.dtype for layout in layouts])
        loop = loops.loop(self.function, dtypes, tuple([steps[-1] for steps in strides]))
        return [nested(loops, loop, self.views, shape, strides, starts)]

    def device_call(self, xp: Any, inputs: Sequence[Any], output: Any) -> Callable[[], Any]:
        """CuPy's ufunc of that name."""
        return partial(getattr(xp, self.function.__name__), *inputs, out=output)


def _keyword_out(ufunc: Any) -> Callable[..., Any]:
    def call(a: Any, b: Any, out: Any) -> Any:
        return ufunc(a, b, out=out)

    return call


#: NumPy deprecates the position of `out` for these.
_BY_KEYWORD: Final[dict[Any, Callable[..., Any]]] = {ufunc: _keyword_out(ufunc) for ufunc in (np.maximum, np.minimum)}


class Copy(_Elementwise):
    """A copy, or a conversion of the dtype."""

    __slots__ = ()
    capturable = True
    device_code = "copy"

    def call(self) -> Callable[..., Any]:
        """`copyto`, whatever the dtypes."""
        return _copy

    def rows(self, loops: Loops) -> list[LoopRow]:
        """A copy in C."""
        return [_copying(loops, self.views)]

    def device_call(self, xp: Any, inputs: Sequence[Any], output: Any) -> Callable[[], Any]:
        """CuPy's `copyto`."""
        return partial(xp.copyto, output, *inputs, casting="unsafe")


def _copy(source: Any, output: Any) -> None:
    np.copyto(output, source, "unsafe")


def _copying(loops: Loops, views: tuple[View, ...]) -> LoopRow:
    source, target = views[0].layout.dtype, views[-1].layout.dtype
    if source == target:
        return _walked(loops, InnerLoop(loops.symbol("copy"), target.itemsize, 0, None), views)
    symbol = loops.symbol(f"cast_{CODES.get(source.char)}_{CODES.get(target.char)}")
    return _walked(loops, InnerLoop(symbol, 0, 0, None), views)


def _walked(loops: Loops, loop: InnerLoop, views: tuple[View, ...]) -> LoopRow:
    """A loop of `rows.c` over views that are as large as the last one, or are repeated to be."""
    layouts = [view.layout for view in views]
    if any(layout.shape != layouts[-1].shape for layout in layouts):
        layouts = [np.broadcast_to(layout, layouts[-1].shape) for layout in layouts]
    return nested(loops, loop, views, *loops_over(layouts))


class Choice(_Elementwise):
    """A selection, as of `where`: of the second input where the first is true, else of the third."""

    __slots__ = ()
    device_code = "select"

    def call(self) -> Callable[..., Any]:
        """Two copies."""
        return _choose

    def rows(self, loops: Loops) -> list[LoopRow]:
        """A selection in C."""
        loop = InnerLoop(loops.symbol("choose"), self.output.layout.itemsize, 0, None)
        return [_walked(loops, loop, self.views)]

    def device_call(self, xp: Any, inputs: Sequence[Any], output: Any) -> Callable[[], Any]:
        """CuPy's `where`."""
        return lambda: xp.copyto(output, xp.where(*inputs))


def _choose(condition: Any, a: Any, b: Any, output: Any) -> None:
    np.copyto(output, b)
    np.copyto(output, a, where=condition)


class Reduction(Instruction):
    """A reduction by a ufunc, `function`; `extra` has the axes, and the dtype in which it is computed."""

    __slots__ = ()
    gathers = True

    @property
    def tiled_length(self) -> int:
        """The length of what it sums, if it is all of a buffer."""
        (source,) = self.inputs
        x, y = source.layout, self.output.layout
        whole = self.function is np.add and len(self.extra[0]) == x.ndim and y.size == 1
        fits = x.dtype == y.dtype and x.dtype.char in _SUMS and x.flags.c_contiguous and source.is_all
        return int(x.size) if whole and fits else 0

    def call(self) -> Callable[..., Any]:
        """The ufunc's `reduce`."""
        reduce, (axes, dtype) = self.function.reduce, self.extra
        return lambda x, output: reduce(x, axes, dtype, output)

    def rows(self, loops: Loops) -> list[LoopRow]:
        """A row that begins, and one that goes on."""
        (source,), output, ufunc = self.inputs, self.output, self.function
        axes, _ = self.extra
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
        start = _copying(loops, (first, output))
        remaining = [axis for axis in range(x.ndim) if axis not in axes]
        positions = [remaining.index(axis) if axis in remaining else -1 for axis in range(x.ndim)]
        shape, (into, over), (a, b) = loops_over([y, x], [positions, list(range(x.ndim))], reduces=True)
        loop = loops.loop(ufunc, (y.dtype, x.dtype, y.dtype), None)
        return [start, nested(loops, loop, (output, source, output), shape, [into, over, into], [a, b, a])]

    def device_call(self, xp: Any, inputs: Sequence[Any], output: Any) -> Callable[[], Any]:
        """CuPy's function for it."""
        axes, dtype = self.extra
        reduce = getattr(xp, _REDUCING[self.function])
        keywords = {"dtype": dtype} if self.function in (np.add, np.multiply) else {}
        return lambda: xp.copyto(output, reduce(*inputs, axis=axes, **keywords))


_REDUCING: Final = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_or: "any",
    np.logical_and: "all",
}


class MatrixProduct(Instruction):
    """A matrix product, or a stack of them."""

    __slots__ = ()

    @property
    def cost(self) -> int:
        """Of the multiply-adds too."""
        return super().cost + int(self.output.layout.size * self.inputs[0].layout.shape[-1]) // 8

    def call(self) -> Callable[..., Any]:
        """`matmul`."""
        return np.matmul

    def rows(self, loops: Loops) -> list[LoopRow]:
        """NumPy's loop of `matmul`, which has BLAS do it."""
        a, b, y = [view.layout for view in self.views]
        lead = y.shape[:-2]
        if len(lead) > 1 or 0 in (*a.shape, *b.shape):
            raise Uncompiled
        function, context, auxiliary, owned = loops.loop(np.matmul, (a.dtype, b.dtype, y.dtype), None)
        strides = [np.broadcast_to(x, (*lead, *x.shape[-2:])).strides for x in (a, b, y)]
        product = loops.record(
            "product",
            function=function,
            context=context,
            auxiliary=auxiliary,
            lengths=(lead[0] if lead else 1, a.shape[-2], a.shape[-1], b.shape[-1]),
            strides=(*[steps[0] if lead else 0 for steps in strides], *[n for steps in strides for n in steps[-2:]]),
        )
        return [_once(loops.symbol("product"), address(product), self.views, (product, owned))]

    def device_call(self, xp: Any, inputs: Sequence[Any], output: Any) -> Callable[[], Any]:
        """CuPy's `matmul`."""
        return partial(xp.matmul, *inputs, out=output)


def _once(function: int, context: int, views: tuple[View, ...], owned: Any) -> LoopRow:
    """A row whose context says what it does with all of its views at once."""
    return LoopRow(function, context, 0, tuple([(view, 0) for view in views]), 1, (0,) * len(views), owned)


class PythonCall(Instruction):
    """A forward function in Python; `extra` has the pattern of the arguments, and whether the layout is foreseen."""

    __slots__ = ()
    refuses = True
    is_empty = False  #: It may refuse the values.

    def call(self) -> Callable[..., Any]:
        """The forward function."""
        pattern, foreseen = self.extra
        return python_step(self.function, pattern, self.output.layout, foreseen=foreseen)

    def device_call(self, xp: Any, inputs: Sequence[Any], output: Any) -> Callable[[], Any]:
        """The forward function, on CuPy's arrays."""
        return partial(_run_on_device, xp, self.function, self.extra[0], inputs, output)


def _run_on_device(
    xp: Any, forward: Callable[..., Any], pattern: Sequence[Any], inputs: Sequence[Any], output: Any
) -> None:
    """Calls a forward function, and leaves its result in memory that exists.

    Raises:
        Diverged: It gives another shape or dtype than when the plan was built.
    """
    arrays = iter(inputs)
    result = forward(xp, *[entry.array if entry.__class__ is Literal else next(arrays) for entry in pattern])
    if result.shape != output.shape or result.dtype != output.dtype:
        raise Diverged
    xp.copyto(output, result)


class KernelCall(Instruction):
    """A function of `arrays.kernels`: `function`."""

    __slots__ = ()

    @property
    def cost(self) -> int:
        """Of the multiply-adds too."""
        return super().cost + int(self.function.work) // 8

    def call(self) -> Callable[..., Any]:
        """The kernel, on arrays with any strides."""
        on_any: Callable[..., Any] = self.function.on_any
        return on_any

    def rows(self, loops: Loops) -> list[LoopRow]:
        """The kernel, which is a loop as those of `rows.c` are."""
        return [_once(self.function.function, self.function.context, self.views, self.function)]


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


class Take(Instruction):
    """The elements of an array at indices; `function` takes them, `extra` is a `TakeGeometry`."""

    __slots__ = ()

    def call(self) -> Callable[..., Any]:
        """NumPy's function."""
        take: Callable[..., Any] = self.function
        return take

    def rows(self, loops: Loops) -> list[LoopRow]:
        """Copies in C."""
        record = loops.record("take", **self.extra._asdict(), index_size=self.inputs[1].layout.itemsize)
        return [_once(loops.symbol("take"), address(record), self.views, record)]

    def device_call(self, xp: Any, inputs: Sequence[Any], output: Any) -> Callable[[], Any]:
        """CuPy's function."""
        return partial(_take_on_device, xp, self.extra, inputs, output)


def _take_on_device(xp: Any, geometry: TakeGeometry, inputs: Sequence[Any], output: Any) -> None:
    """Takes elements at indices that were checked before."""
    x, indices = inputs
    x = x.reshape((geometry.outer, geometry.length, -1))
    if geometry.own:
        elements = xp.take_along_axis(x[..., 0], indices.reshape((geometry.outer, geometry.picked)), axis=-1)
    else:
        elements = xp.take(x, indices.reshape(-1), axis=1)
    xp.copyto(output, elements.reshape(output.shape))


class TruthCheck(Instruction):
    """Fails unless all elements of its input are true. Its output is never read."""

    __slots__ = ()
    refuses = True

    def call(self) -> Callable[..., Any]:
        """Raises Refused if one is false."""
        return _check

    def rows(self, loops: Loops) -> list[LoopRow]:
        """A loop that fails."""
        (view,) = self.inputs
        if not view.layout.size:
            return []
        loop = InnerLoop(loops.symbol("all_true"), 0, 0, None)
        return [nested(loops, loop, self.inputs, *loops_over([view.layout]))]

    def device_call(self, xp: Any, inputs: Sequence[Any], output: Any) -> Callable[[], Any]:
        """Waits for the device."""
        return partial(_check, *inputs)


def _check(condition: Any, output: Any = None) -> None:
    """Waits for the condition, if it is on a device.

    Raises:
        Refused: It is not true everywhere.
    """
    if not bool(condition.all()):
        raise Refused


class TreeSum(Instruction):
    """The sum of the sums of tiles, by halves, see `run.tiles`; `extra` has the length, and the most of a tile."""

    __slots__ = ()

    def rows(self, loops: Loops) -> list[LoopRow]:
        """A sum in C."""
        length, most = self.extra
        symbol = loops.symbol(f"tree_{CODES[self.output.layout.dtype.char]}")
        return [LoopRow(symbol, length, 0, ((self.inputs[0], 0), (self.output, 0)), 1, (most,), None)]


class Fill(Instruction):
    """Of a plan that is debugged: fills memory that nothing reads any more with bytes that are no number."""

    __slots__ = ()

    def call(self) -> Callable[..., Any]:
        """`fill`."""
        return _fill

    def rows(self, loops: Loops) -> list[LoopRow]:
        """A fill in C."""
        return [LoopRow(loops.symbol("fill"), 0, 0, ((self.output, 0),), self.output.layout.size, (1,), None)]


def _fill(output: Any) -> None:
    output.fill(0xFF)
