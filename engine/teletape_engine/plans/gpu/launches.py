"""Launches: a chain as a kernel's structure, its operands and its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from teletape_engine.plans.gpu.chains import Chain, ChainMember, same_view
from teletape_engine.plans.gpu.codes import accumulated
from teletape_engine.plans.gpu.source import COLUMNS, MAP, ROWS, THREADS, KernelOperand, KernelStructure, Line, Total
from teletape_engine.plans.ir.buffers import Buffer, View, unbacked
from teletape_engine.plans.ir.instructions import Instruction, Reduction

_MOST_BLOCKS: Final = 4096  #: Of a kernel whose threads compute several elements each.
_SHORT_INDEX: Final = 1 << 30  #: Elements and steps up to which indices have 32 bits.
_FEW_RESULTS: Final = 128  #: Results of a reduction that leave most of a GPU idle, if each is one block's.
_PART: Final = 8192  #: Elements of a part that a block reduces.
_MOST_PARTS: Final = 1024
_LANES: Final = 4  #: Elements that a thread loads at once, of arrays that keep the memory busy.
_LARGE: Final = 1 << 20  #: Elements from which on an array does.
_MOST_LOADS: Final = 8  #: Of a kernel that has registers for several elements.
_MOST_LINES: Final = 64  #: Of such a kernel.
_WIDE: Final = 1024  #: Results side by side from which on each is one thread's.


class Launch(NamedTuple):
    """One call of a kernel.

    Attributes:
        structure: Of the kernel.
        operands: For each a view of memory, or a NumPy number.
        steps: For each operand the steps that are parameters.
        lengths: The parameters after the operands.
        blocks: How many.
    """

    structure: KernelStructure
    operands: tuple[Any, ...]
    steps: tuple[tuple[int, ...], ...]
    lengths: tuple[int, ...]
    blocks: int

    @property
    def views(self) -> list[View]:
        """Views that the kernel reads, or writes."""
        return [operand for operand in self.operands if isinstance(operand, View)]


def launches_of(chain: Chain) -> list[Launch]:
    """The launches that do a chain: one; two if there are reductions whose results are few and long."""
    building = _Building(chain)
    launches = [building.launch()]
    for output, partial, name in building.partials:
        axes = (partial.layout.ndim - 1,)
        final = Chain(partial.layout.shape)
        ufunc = getattr(np, name)
        instruction = Reduction((partial,), output, ufunc, (axes, None))
        form = ChainMember(name, partial.layout.shape, axes)
        final.append(instruction, form)
        final.stored = {output.buffer}
        launches.append(_Building(final, whole=True).launch())
    return launches


class _Building:
    """Makes the launch of one chain.

    Args:
        chain: The chain.
        whole: Whether no reduction is done in parts.

    Attributes:
        partials: For each reduction that is done in parts its result, where the parts lie, and the function's name.
    """

    def __init__(self, chain: Chain, *, whole: bool = False) -> None:
        self._chain = chain
        self._operands: list[Any] = []
        self._over: list[tuple[int, ...] | None] = []  # steps along all axes
        self._lines: list[Line] = []
        self._registers: list[tuple[View, int]] = []
        self._stores: dict[Buffer, tuple[View, int]] = {}
        self.partials: list[tuple[View, View, str]] = []
        axes = chain.axes or ()
        self._remaining = [axis for axis in range(len(chain.shape)) if axis not in axes]
        self._reduced = list(axes)
        count, length = (int(np.prod([chain.shape[axis] for axis in part])) for part in (self._remaining, axes))
        self._mode, self._parts = MAP, 1
        if chain.axes is not None:
            innermost_stays = bool(self._remaining) and self._remaining[-1] == len(chain.shape) - 1
            self._mode = COLUMNS if innermost_stays and count >= _WIDE else ROWS
            if self._mode == ROWS and count < _FEW_RESULTS and not whole:
                self._parts = max(1, min(_MOST_PARTS, length // _PART))
        self._count, self._length = count, length

    def launch(self) -> Launch:
        """The launch."""
        totals: list[tuple[str, int, str, View]] = []
        for instruction, form in self._chain.members:
            if form.axes is None:
                self._note(instruction, form.name)
            else:
                totals.append(self._total(instruction, form.name))
        stores = [
            (register, self._operand(view))
            for buffer, (view, register) in self._stores.items()
            if buffer in self._chain.stored
        ]
        written = tuple([Total(name, register, char, self._result(view)) for name, register, char, view in totals])
        remaining, reduced = self._merged()
        groups = [*remaining, *reduced]
        steps = [None if over is None else [over[group[-1]] for group in groups] for over in self._over]
        lengths = [int(np.prod([self._chain.shape[axis] for axis in group])) for group in groups]
        part = -(-self._length // self._parts)
        index = "int" if self._is_short(steps) else "long long"
        operands = tuple(
            [
                KernelOperand(
                    _char_of(operand), None if each is None else tuple([n if n in (0, 1) else None for n in each])
                )
                for operand, each in zip(self._operands, steps, strict=True)
            ]
        )
        lines, lanes = tuple(self._lines), self._lanes()
        structure = KernelStructure(
            self._mode, index, len(remaining), len(reduced), operands, lines, tuple(stores), written, lanes
        )
        numbers: list[int] = [self._count]
        blocks = min(-(-self._count // (THREADS * lanes)), _MOST_BLOCKS)
        if self._mode != MAP:
            numbers.append(self._length)
        if self._mode == ROWS:
            numbers += [part, self._parts]
            blocks = self._count * self._parts
        parameters = tuple([() if each is None else tuple([n for n in each if n not in (0, 1)]) for each in steps])
        return Launch(structure, tuple(self._operands), parameters, (*numbers, *lengths), blocks)

    def _lanes(self) -> int:
        loads = sum([line.name == "load" for line in self._lines])
        fits = loads <= _MOST_LOADS and len(self._lines) <= _MOST_LINES
        return _LANES if self._mode == MAP and self._count >= _LARGE and fits else 1

    # --------------------------------------------------------------------------------------------------------- members
    def _note(self, instruction: Instruction, name: str) -> None:
        output = instruction.output
        inputs = tuple([self._register(view) for view in instruction.inputs])
        register = self._line(name, inputs, output.layout.dtype.char)
        self._registers = [each for each in self._registers if each[0].buffer is not output.buffer]
        self._registers.append((output, register))
        self._stores[output.buffer] = output, register

    def _total(self, instruction: Instruction, name: str) -> tuple[str, int, str, View]:
        register = self._register(instruction.inputs[0])
        output = instruction.output
        char = accumulated(output.layout.dtype.char)
        if accumulated(self._lines[register].char) != char:
            register = self._line("copy", (register,), char)
        if self._parts > 1:
            layout = unbacked(np.empty((*output.layout.shape, self._parts), char))
            partial = View(Buffer(layout), layout)
            self.partials.append((output, partial, name))
            layout = layout[..., 0]
            output = View(partial.buffer, layout)
        return name, register, char, output

    def _line(self, name: str, inputs: tuple[int, ...], char: str) -> int:
        self._lines.append(Line(name, inputs, char))
        return len(self._lines) - 1

    def _register(self, view: View) -> int:
        """The register with an element of a view: computed before, or loaded now."""
        for known, register in self._registers:
            if known.buffer is view.buffer and same_view(known, view):
                return register
        register = self._line("load", (self._operand(view),), view.layout.dtype.char)
        self._registers.append((view, register))
        return register

    # -------------------------------------------------------------------------------------------------------- operands
    def _operand(self, view: View) -> int:
        """The number of an operand that runs over all elements."""
        layout = view.layout
        if isinstance(view.buffer.constant, np.ndarray) and is_number(layout):
            self._over.append(None)
            self._operands.append(layout[(0,) * layout.ndim])
            return len(self._operands) - 1
        for number, (known, over) in enumerate(zip(self._operands, self._over, strict=True)):
            if over is not None and known.buffer is view.buffer and same_view(known, view):
                return number
        strides = np.broadcast_to(layout, self._chain.shape).strides
        self._over.append(_in_elements(strides, self._chain.shape, layout.dtype.itemsize))
        self._operands.append(view)
        return len(self._operands) - 1

    def _result(self, view: View) -> int:
        """The number of the operand that a reduction writes."""
        steps = [0] * len(self._chain.shape)
        size = view.layout.dtype.itemsize
        for axis, stride in zip(self._remaining, view.layout.strides, strict=True):
            steps[axis] = stride // size if self._chain.shape[axis] > 1 else 0
        self._over.append(tuple(steps))
        self._operands.append(view)
        return len(self._operands) - 1

    # ------------------------------------------------------------------------------------------------------------ axes
    def _merged(self) -> tuple[list[list[int]], list[list[int]]]:
        """The axes, those together that every operand walks as one; those of length 1 are left out."""
        remaining = self._remaining
        if self._mode == MAP:  # in the order of the memory that is written last
            first = next((over for over in reversed(self._over) if over is not None), None)
            if first is not None:
                remaining = sorted(remaining, key=lambda axis: -abs(first[axis]))
        return self._joined(remaining), self._joined(self._reduced)

    def _joined(self, axes: Sequence[int]) -> list[list[int]]:
        shape = self._chain.shape
        groups: list[list[int]] = []
        for axis in axes:
            if shape[axis] == 1:
                continue
            if groups and all(over is None or over[groups[-1][-1]] == over[axis] * shape[axis] for over in self._over):
                groups[-1].append(axis)
            else:
                groups.append([axis])
        return groups

    def _is_short(self, steps: Sequence[Sequence[int] | None]) -> bool:
        largest = max(self._count * self._parts, self._count * self._length)
        for operand, each in zip(self._operands, steps, strict=True):
            if each is not None:
                largest = max(largest, *[abs(n) for n in each], span_of(operand), 0)
        return largest < _SHORT_INDEX


def is_number(layout: Any) -> bool:
    """Whether all elements are one and the same."""
    return all(n == 1 or stride == 0 for n, stride in zip(layout.shape, layout.strides, strict=True))


def span_of(view: View) -> int:
    """Elements from the first one of a view's memory to the last one."""
    layout = view.layout
    strides = [abs(stride) for stride in layout.strides]
    last = sum([(n - 1) * stride for n, stride in zip(layout.shape, strides, strict=True)])
    return int(last // layout.dtype.itemsize + 1)


def _in_elements(strides: Sequence[int], shape: Sequence[int], size: int) -> tuple[int, ...]:
    return tuple([stride // size if n > 1 else 0 for stride, n in zip(strides, shape, strict=True)])


def _char_of(operand: Any) -> str:
    char: str = operand.layout.dtype.char if isinstance(operand, View) else operand.dtype.char
    return char
