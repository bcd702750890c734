"""Rows of instructions: NumPy's inner loops over memory, one after the other, as `run/c/` walks them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from teletape_engine.plans.ir.buffers import View, address

DEPTH: Final = 6  #: Outer loops of a row, at the most.
#: The part of the name of a function in `rows.c` that says a dtype.
CODES: Final = {"?": "b1", "B": "u1", "b": "i1", "h": "i2", "i": "i4", "l": "i8", "q": "i8", "f": "f4", "d": "f8"}


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


class InnerLoop(NamedTuple):
    """A loop that rows call.

    Attributes:
        function, context, auxiliary: Addresses.
        owned: What they belong to.
    """

    function: int
    context: int
    auxiliary: int
    owned: Any


class Loops(Protocol):
    """What rows are made of: the loops of NumPy, the functions of `rows.c` and its records."""

    def symbol(self, name: str) -> int:
        """The address of a function of `rows.c`.

        Raises:
            Uncompiled: There is none.
        """

    def loop(self, ufunc: Any, dtypes: tuple[Any, ...], strides: tuple[int, ...] | None) -> InnerLoop:
        """NumPy's loop of a ufunc.

        Args:
            ufunc: The ufunc.
            dtypes: Of its inputs, then of its output.
            strides: Of the operands, if they are the same in every call.

        Raises:
            Uncompiled: It touches Python objects.
        """

    def record(self, name: str, **fields: Any) -> Any:
        """A record of `rows.c` with these fields, others 0: an array that has its address."""


def nested(
    loops: Loops,
    loop: InnerLoop,
    views: tuple[View, ...],
    shape: tuple[int, ...],
    strides: list[tuple[int, ...]],
    starts: list[int],
) -> LoopRow:
    """A loop inside others, which are all but the last of `shape` and of `strides`."""
    depth = len(shape) - 1
    if depth:
        if depth > DEPTH:
            raise Uncompiled
        function, context, auxiliary, owned = loop
        nest = loops.record("nest", function=function, context=context, auxiliary=auxiliary, depth=depth)
        nest["shape"][0, :depth] = shape[:-1]
        nest["strides"][0, :depth, : len(strides)] = np.array(strides)[:, :-1].T
        loop = InnerLoop(loops.symbol("nest"), address(nest), 0, (nest, owned))
    operands = tuple(zip(views, starts, strict=True))
    steps = tuple([steps[-1] for steps in strides])
    return LoopRow(loop.function, loop.context, loop.auxiliary, operands, shape[-1], steps, loop.owned)


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
