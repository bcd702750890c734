"""Chains: elementwise instructions over one shape, and reductions of them, that become one kernel."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

from teletape_engine.plans.gpu.codes import STORED, accumulated, code_of, combining
from teletape_engine.plans.ir.buffers import Buffer, View
from teletape_engine.plans.ir.instructions import Instruction, Reduction

_MOST_MEMBERS: Final = 64  #: Of a chain: each holds a register.
_MOST_VIEWS: Final = 48  #: Of a chain, at the most: of an operand a kernel has several parameters.
_BACK: Final = 64  #: Chains that an instruction may still join.


class ChainMember(NamedTuple):
    """An instruction as a member of a chain.

    Attributes:
        name: Of its code.
        shape: Over which it runs.
        axes: That it reduces; None: it is elementwise.
    """

    name: str
    shape: tuple[int, ...]
    axes: tuple[int, ...] | None = None


class Chain:
    """Instructions of one kernel.

    Attributes:
        shape: Over which it runs.
        members: Each with its form, in order.
        axes: That its reductions reduce; None: there is none.
        stored: Buffers that it leaves in memory.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.members: list[tuple[Instruction, ChainMember]] = []
        self.axes: tuple[int, ...] | None = None
        self.stored: set[Buffer] = set()
        self._views: dict[Buffer, View | None] = {}  # None: it is touched in several ways, or comes last

    def meets(self, view: View) -> bool:
        """Whether members touch the buffer at the same elements in the same turns, if at all."""
        if view.buffer not in self._views:
            return True
        met = self._views[view.buffer]
        return met is not None and same_view(met, view)

    def takes(self, form: ChainMember) -> bool:
        """Whether it has room for an instruction of this form."""
        fits = form.shape == self.shape and len(self.members) < _MOST_MEMBERS and len(self._views) < _MOST_VIEWS
        return fits and (form.axes is None or self.axes in (None, form.axes))

    def append(self, instruction: Instruction, form: ChainMember) -> None:
        """Adds a member."""
        self.members.append((instruction, form))
        for view in instruction.inputs:
            self._views[view.buffer] = view if self.meets(view) else None
        output = instruction.output
        if form.axes is None:
            self._views[output.buffer] = output if self.meets(output) else None
        else:
            self.axes = form.axes
            self._views[output.buffer] = None

    @property
    def reads(self) -> set[Buffer]:
        """Buffers that it reads from memory."""
        buffers: set[Buffer] = set()
        written: set[Buffer] = set()
        for instruction, _ in self.members:
            buffers.update([view.buffer for view in instruction.inputs if view.buffer not in written])
            written.add(instruction.output.buffer)
        return buffers

    @property
    def writes(self) -> set[Buffer]:
        """Buffers that it computes."""
        return {instruction.output.buffer for instruction, _ in self.members}


#: A kernel, or an instruction that CuPy does.
Node = Chain | Instruction


def nodes_of(instructions: Sequence[Instruction], results: Collection[Buffer]) -> list[Node]:
    """The instructions as chains, and single ones, in an order that gives the same.

    Args:
        instructions: In order.
        results: Buffers that are read after the last of them.
    """
    nodes: list[Node] = []
    writers: dict[Buffer, int] = {}  # the last node that writes a buffer
    readers: dict[Buffer, int] = {}
    for instruction in instructions:
        if instruction.is_empty:
            continue
        form = form_of(instruction)
        if form is None:
            at = len(nodes)
            nodes.append(instruction)
        else:
            at = _first_place(nodes, instruction, writers, readers)
            chain = None
            for number in range(max(at, len(nodes) - _BACK), len(nodes)):
                node = nodes[number]
                if isinstance(node, Chain) and node.takes(form) and _joins(node, instruction, form):
                    at, chain = number, node
                    break
            if chain is None:
                at, chain = len(nodes), Chain(form.shape)
                nodes.append(chain)
            chain.append(instruction, form)
        for view in instruction.inputs:
            readers[view.buffer] = max(at, readers.get(view.buffer, 0))
        writers[instruction.output.buffer] = at
    _mark_stored(nodes, results)
    return nodes


def _first_place(
    nodes: Sequence[Node], instruction: Instruction, writers: dict[Buffer, int], readers: dict[Buffer, int]
) -> int:
    """The first node in which the instruction may run."""
    first = 0
    for view in (*instruction.inputs, instruction.output):
        touched = [writers.get(view.buffer)]
        if view is instruction.output:
            touched.append(readers.get(view.buffer))
        for number in touched:
            if number is not None:
                node = nodes[number]
                joins = isinstance(node, Chain) and node.meets(view)
                first = max(first, number if joins else number + 1)
    return first


def _joins(chain: Chain, instruction: Instruction, form: ChainMember) -> bool:
    """Whether the instruction may be a member: what members write is met at the same elements alone."""
    writes = chain.writes
    if any(view.buffer in writes and not chain.meets(view) for view in instruction.inputs):
        return False
    output = instruction.output
    if form.axes is not None:
        return output.buffer not in writes and output.buffer not in chain.reads
    return chain.meets(output)


def _mark_stored(nodes: Sequence[Node], results: Collection[Buffer]) -> None:
    """Says which buffers chains leave in memory: those that another node or the caller reads."""
    readers: dict[Buffer, set[int]] = {}
    for number, node in enumerate(nodes):
        for buffer in reads_of(node):
            readers.setdefault(buffer, set()).add(number)
    for number, node in enumerate(nodes):
        if isinstance(node, Chain):
            node.stored = {
                buffer for buffer in node.writes if buffer in results or readers.get(buffer, set()) - {number}
            }


def reads_of(node: Node) -> set[Buffer]:
    """Buffers that a node reads from memory."""
    return node.reads if isinstance(node, Chain) else {view.buffer for view in node.inputs}


def form_of(instruction: Instruction) -> ChainMember | None:
    """The instruction as a member of a chain; None: CuPy does it."""
    views, output = instruction.views, instruction.output
    if not all(_is_addressable(view) for view in views):
        return None
    if any(view.buffer is output.buffer and not same_view(view, output) for view in instruction.inputs):
        return None  # each element would be read before or after it is written
    chars = tuple([view.layout.dtype.char for view in views])
    shape = output.layout.shape
    name = instruction.device_code
    if name is not None:
        return ChainMember(name, shape) if code_of(name, chars) is not None else None
    if isinstance(instruction, Reduction):
        axes: tuple[int, ...] = instruction.extra[0]
        reducing, char = combining(instruction.function), accumulated(chars[-1])
        known = reducing is not None and code_of(reducing, (char,) * 3) and code_of("copy", (chars[0], char))
        if not known or not axes:
            return None
        assert reducing is not None
        return ChainMember(reducing, instruction.inputs[0].layout.shape, tuple(sorted(axes)))
    return None


def _is_addressable(view: View) -> bool:
    """Whether its elements lie at multiples of their size from the start of the buffer."""
    layout = view.layout
    size = layout.dtype.itemsize
    return layout.dtype.char in STORED and not any(step % size for step in (view.offset, *layout.strides))


def same_view(a: View, b: View) -> bool:
    """Whether two views of one buffer have the same elements in the same order."""
    x: Any = a.layout
    y: Any = b.layout
    return a.offset == b.offset and x.shape == y.shape and x.dtype == y.dtype and x.strides == y.strides
