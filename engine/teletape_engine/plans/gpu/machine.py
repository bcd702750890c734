"""A machine on a GPU: fixed memory, kernels and calls on it; consecutive kernels are one CUDA graph.

Graphs hold what allocates nothing and waits for nothing: generated kernels, CuPy's ufuncs with a place for the result,
and copies. cuBLAS, cuSOLVER and forward functions in Python may do both: they are called between graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from teletape_engine.plans.gpu.chains import same_view
from teletape_engine.plans.gpu.launches import Launch
from teletape_engine.plans.gpu.source import THREADS, Kernels
from teletape_engine.plans.ir.buffers import Buffer, View, span
from teletape_engine.plans.ir.forwards import Diverged
from teletape_engine.plans.ir.instructions import Instruction

#: What a machine runs, in order.
Step = Launch | Instruction


class Layout(NamedTuple):
    """What a machine is made from.

    Attributes:
        steps: In order.
        offsets: Where buffers lie in the arena.
        nbytes: Of the arena.
        staged: Buffers that hold copies of arguments.
        results: What is copied out after a run, or was written where it stays.
        direct: Large arguments and results: a run reads and writes them where they are, without a copy.
    """

    steps: list[Step]
    offsets: dict[Buffer, int]
    nbytes: int
    staged: list[Buffer]
    results: list[View]
    direct: set[Buffer]


class DeviceMachine:
    """Runs the steps of a plan; its memory comes from the allocator that is current when it is made.

    Args:
        xp: CuPy.
        kernels: Compiled ones.
        layout: What it is made from.

    Attributes:
        segments: Steps that are launched together, and calls between them.
    """

    def __init__(self, xp: Any, kernels: Kernels, layout: Layout) -> None:
        self._xp, self._kernels = xp, kernels
        self._arena = xp.cuda.alloc(max(layout.nbytes, 1))
        self._nbytes, self._offsets = layout.nbytes, layout.offsets
        self._constants: dict[Buffer, Any] = {}
        self._direct = {buffer: buffer.argument for buffer in layout.direct}
        self._memory: dict[Buffer, Any] = {}  # of those during a run
        self._staged = [
            (int(buffer.argument or 0), self._array(View(buffer, buffer.layout))) for buffer in layout.staged
        ]
        self._inside: list[int | None] = [None] * len(self._staged)
        self._results = [(view, None if view.buffer in self._direct else self._array(view)) for view in layout.results]
        self.segments: list[CallSegment] = []
        waiting: list[Callable[[], Any]] = []
        for step in layout.steps:
            moves = any(view.buffer in self._direct for view in views_of(step))
            call = partial(self._run_step, step) if moves else self._prepared(step)
            if not moves and is_capturable(step):
                waiting.append(call)
                continue
            if waiting:
                self.segments.append(CallSegment(xp, waiting))
            self.segments.append(CallSegment(xp, [call], captured=False))
            waiting = []
        if waiting:
            self.segments.append(CallSegment(xp, waiting))

    def run(self, started: Sequence[Any], check_cancelled: Callable[[], None]) -> list[Any]:
        """The results, in memory of their own.

        Args:
            started: The values of the arguments.
            check_cancelled: Called between two segments.
        """
        for number, (argument, array) in enumerate(self._staged):
            value = started[argument]
            if self._inside[number] != value.uid:  # elements of a value never change
                self._inside[number] = None
                self._xp.copyto(array, value.array)
                self._inside[number] = value.uid
        for buffer, number_of_argument in self._direct.items():
            if number_of_argument is None:
                self._memory[buffer] = self._xp.cuda.alloc(span(buffer.layout))
                continue
            array = started[number_of_argument].array
            if array.strides != buffer.layout.strides:
                raise Diverged
            self._memory[buffer] = array.data
        try:
            for segment in self.segments:
                check_cancelled()
                segment.run()
            return [self._array(view) if array is None else array.copy() for view, array in self._results]
        finally:
            self._memory.clear()

    def poison(self) -> None:
        """Fills the arena with bytes that are no number."""
        self._xp.ndarray((self._nbytes,), np.uint8, memptr=self._arena).fill(0xFF)
        self._inside = [None] * len(self._inside)

    # ------------------------------------------------------------------------------------------------------------ steps
    def _array(self, view: View) -> Any:
        """The array that a view is."""
        buffer, layout = view.buffer, view.layout
        if buffer.constant is not None:
            memory = self._constant(buffer).data
        else:
            memory = self._memory[buffer] if buffer in self._direct else self._arena + self._offsets[buffer]
        return self._xp.ndarray(layout.shape, layout.dtype, memptr=memory + view.offset, strides=layout.strides)

    def _constant(self, buffer: Buffer) -> Any:
        """A constant on the device, laid out as the plan has it."""
        constant = buffer.constant
        if not isinstance(constant, np.ndarray):
            return constant
        array = self._constants.get(buffer)
        if array is None:
            memory = self._xp.cuda.alloc(max(span(constant), 1))
            array = self._xp.ndarray(constant.shape, constant.dtype, memptr=memory, strides=constant.strides)
            self._xp.copyto(array, self._xp.asarray(np.ascontiguousarray(constant)))
            self._constants[buffer] = array
        return array

    def _prepared(self, step: Step) -> Callable[[], Any]:
        return self._launch(step) if isinstance(step, Launch) else self._call(step)

    def _run_step(self, step: Step) -> None:
        """Does a step whose memory is another one in each run."""
        self._prepared(step)()

    def _launch(self, launch: Launch) -> Callable[[], Any]:
        structure = launch.structure
        index = np.int32 if structure.integer == "int" else np.int64
        arguments: list[Any] = []
        for operand, steps in zip(launch.operands, launch.steps, strict=True):
            if isinstance(operand, View):
                arguments.append(self._array(operand))
            else:
                arguments.append(operand.view(np.uint16) if operand.dtype.char == "e" else operand)
            arguments += [index(step) for step in steps]
        arguments += [index(length) for length in launch.lengths]
        return partial(self._kernels.kernel(structure), (launch.blocks,), (THREADS,), tuple(arguments))

    def _call(self, instruction: Instruction) -> Callable[[], Any]:
        """What does an instruction; see `is_capturable`."""
        inputs, output = [self._array(view) for view in instruction.inputs], self._array(instruction.output)
        return instruction.device_call(self._xp, inputs, output)


def views_of(step: Step) -> Sequence[View]:
    """The views that a step reads and writes."""
    return step.views


def is_capturable(step: Step) -> bool:
    """Whether a step may be a part of a CUDA graph: it allocates nothing, and waits for nothing."""
    if isinstance(step, Launch):
        return True
    if not step.capturable:
        return False
    output = step.output  # CuPy copies an input that overlaps the result
    return all(view.buffer is not output.buffer or same_view(view, output) for view in step.inputs)


class CallSegment:
    """Calls without a decision between them.

    The first run makes them one by one, which compiles and loads kernels. The second one captures them as a graph,
    which it and later runs launch. If they cannot be captured they are made one by one for good.

    Args:
        xp: CuPy.
        calls: In order.
        captured: Whether they may become a graph.

    Attributes:
        graph: The graph, from the second run on.
        is_capturable: Whether there is to be one.
    """

    def __init__(self, xp: Any, calls: Sequence[Callable[[], Any]], *, captured: bool = True) -> None:
        self._xp, self._calls = xp, tuple(calls)
        self.is_capturable = captured and len(calls) > 1
        self._waits = 1 if self.is_capturable else -1  # runs until it is captured; negative: never
        self.graph: Any = None

    def run(self) -> None:
        """Makes the calls."""
        if self._waits == 0 and self.graph is None:
            self.graph = self._captured()
        if self.graph is not None:
            self.graph.launch()
            return
        for call in self._calls:
            call()
        self._waits -= self._waits > 0

    def _captured(self) -> Any:
        """The calls as a graph; None: they cannot be one."""
        cuda = self._xp.cuda
        stream = cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture(cuda.runtime.streamCaptureModeThreadLocal)
            try:
                for call in self._calls:
                    call()
            except Exception:  # whatever it is, the calls can be made without a graph
                self._waits = -1
            try:
                graph = stream.end_capture()
            except Exception:  # a capture that failed ends with an error
                self._waits = -1
        return None if self._waits < 0 else graph
