"""A plan on a GPU: the instructions of a function as kernels, graphs and calls on fixed memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from teletape_engine.plans.gpu.chains import Chain, nodes_of
from teletape_engine.plans.gpu.launches import launches_of
from teletape_engine.plans.gpu.machine import DeviceMachine, Layout, Step, views_of
from teletape_engine.plans.gpu.source import Kernels
from teletape_engine.plans.ir.buffers import Buffer, Unplaceable, span
from teletape_engine.plans.ir.fitting import ALIGNMENT, Block, fit
from teletape_engine.plans.ir.forwards import Diverged
from teletape_engine.plans.run.plan import Plan
from teletape_engine.plans.session_plans import SessionPlans
from teletape_engine.recording.executor import Executor

_MOST_IDLE: Final = 2  #: Machines that are kept for the next calls.
_LARGE_BYTES: Final = 1 << 24  #: Of an argument or a result that is not copied, though no graph can have it then.
MOST_IDLE_BYTES: Final = 1 << 30  #: Of the arena of one that is kept: only such a machine comes to have graphs.
_kernels: Final[dict[int, Kernels]] = {}


def kernels_of(xp: Any) -> Kernels:
    """The compiled kernels of this process."""
    return _kernels.setdefault(id(xp), Kernels(xp))


class DevicePlan(Plan):
    """A function on a GPU, on arguments of certain layouts.

    Args:
        lowering: A `DeviceLowering`.
        arguments: As of `Plan`.
        started: As of `Plan`.
        results: As of `Plan`.

    Raises:
        Unplaceable: An array that no fixed memory can hold.

    Attributes:
        steps: Kernels, and calls of CuPy, in order.
    """

    def _place(self, started: Sequence[Any], returned: set[Buffer]) -> None:
        self.steps: list[Step] = []
        for node in nodes_of(self.instructions, returned):
            self.steps += launches_of(node) if isinstance(node, Chain) else [node]
        starts: dict[Buffer, int] = {}
        ends: dict[Buffer, int] = dict.fromkeys(returned, len(self.steps))
        for number, step in enumerate(self.steps):
            for buffer in [view.buffer for view in views_of(step)]:
                starts.setdefault(buffer, number)
                ends[buffer] = max(number, ends.get(buffer, 0))
        for buffer in returned:
            starts.setdefault(buffer, 0)
        staged = [buffer for buffer in starts if buffer.argument is not None]
        for buffer in staged:  # arguments stay: the next call may have the same ones
            if _overlaps_itself(buffer.layout):
                raise Unplaceable("an argument with elements that are several")
            starts[buffer], ends[buffer] = -1, len(self.steps)
        direct = {buffer for buffer in starts if self._is_direct(buffer, returned)}
        staged = [buffer for buffer in staged if buffer not in direct]
        blocks = {
            buffer: Block(-(-max(span(buffer.layout), 1) // ALIGNMENT) * ALIGNMENT, start, ends[buffer])
            for buffer, start in sorted(starts.items(), key=lambda entry: entry[1])
            if buffer.constant is None and buffer not in direct
        }
        nbytes = fit(list(blocks.values()), len(self.steps))
        offsets = {buffer: block.offset for buffer, block in blocks.items()}
        self._layout = Layout(self.steps, offsets, nbytes, staged, self._views, direct)
        self._machines: list[DeviceMachine] = []
        self._no_names = (None,) * len(started)
        self.price = sum(view.layout.nbytes for view in self._views)

    def _is_direct(self, buffer: Buffer, returned: set[Buffer]) -> bool:
        """Whether a run uses a buffer's own memory: a large argument, or a large result that is all of its buffer."""
        if buffer.constant is not None or span(buffer.layout) < _LARGE_BYTES:
            return False
        views = [view for view in self._views if view.buffer is buffer]
        if buffer.argument is not None:
            return not views
        return buffer in returned and len(views) == 1 and views[0].layout.nbytes == span(buffer.layout)

    @property
    def nbytes(self) -> int:
        """Bytes of the machines that wait for the next calls."""
        return len(self._machines) * self._layout.nbytes

    def release(self) -> None:
        """Ends the machines that wait for the next calls."""
        self._machines.clear()

    def compute(self, recorder: Executor, started: Sequence[Any], *, poisoned: bool = False) -> list[Any]:
        """As of `Plan`."""
        for bound in self._long_calls:
            recorder.admit_work(bound)
        recorder.memory.spend(self.price, "a plan")
        call = recorder.kernel_call
        if call is None:
            return self._run(recorder, started, poisoned)
        results: list[Any] = call(self._run, recorder, started, poisoned)
        return results

    def _run(self, recorder: Executor, started: Sequence[Any], poisoned: bool) -> list[Any]:
        try:
            machine = self._machines.pop()
        except IndexError:
            machine = self._new_machine(recorder)
        if poisoned:
            machine.poison()
        results = machine.run(started, recorder.check_cancelled)
        # After an error the machine is not used again: what CuPy's streams still do in it is not known.
        if len(self._machines) < _MOST_IDLE and self._layout.nbytes <= MOST_IDLE_BYTES:
            self._machines.append(machine)
        return results

    def _new_machine(self, recorder: Executor) -> DeviceMachine:
        recorder.memory.spend(self._layout.nbytes, "a plan")
        if self._layout.nbytes <= MOST_IDLE_BYTES:
            recorder.memory.caches.add(self)
            SessionPlans.of(recorder.memory).trim(self, self._layout.nbytes)
        xp = recorder.backend.xp
        try:
            return DeviceMachine(xp, kernels_of(xp), self._layout)
        except MemoryError:  # CuPy's OutOfMemoryError is one
            raise
        except Exception as error:  # CuPy lacks a function, say: the interpreter runs every call
            raise Diverged from error


def _overlaps_itself(layout: Any) -> bool:
    return any(n > 1 and stride == 0 for n, stride in zip(layout.shape, layout.strides, strict=True))
