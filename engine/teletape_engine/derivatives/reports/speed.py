"""How fast this machine computes on its CPU, measured with a host's clock: the engine has none."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from teletape_engine.arrays import backend
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import WorkKind
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.tape import Tape

_RUNS: Final = 15  # of each measurement, of which the fastest counts: a busy machine slows most of them
_NODES: Final = 100  # of a tape of small ops
_MANY: Final = 1 << 20  # elements: more than caches close to a core hold, in memory that each result is given anew


class Speed(NamedTuple):
    """What the CPU does in a second.

    Attributes:
        operations: By kernel: multiply-adds of products and loops, elements of the fastest functions.
        elements: Of large results of a usual mixture of functions: as many of products as of exponentials.
        calls: Of ops on a few elements in a backward pass.
    """

    operations: Mapping[WorkKind, float]
    elements: float
    calls: float

    def seconds(self, work: Mapping[WorkKind, int], written: int, calls: int) -> float:
        """About how long calls of ops take.

        Args:
            work: What they compute, by kernel.
            written: Elements of their results.
            calls: How many there are.
        """
        heavy = sum(work[kernel] / self.operations[kernel] for kernel in (WorkKind.PRODUCTS, WorkKind.LOOPS))
        return heavy + written / self.elements + calls / self.calls


def _per_second(clock: Callable[[], float], run: Callable[[], Any], count: int) -> float:
    run()
    seconds = []
    for _ in range(_RUNS):
        began = clock()
        run()
        seconds.append(clock() - began)
    return count / max(min(seconds), 1e-6)


@functools.cache
def operations(clock: Callable[[], float]) -> Mapping[WorkKind, float]:
    """The operations of a second, by a clock that returns seconds: the most that it can be, on arrays in the cache.

    The first call for a clock measures, for some milliseconds.
    """
    floats, integers = np.ones((256, 256), np.float32), np.ones((96, 96), np.int32)
    elements = np.ones(1 << 18, np.float32)
    one_thread = floats[:64, :64].copy()  # BLAS's threads wait for each other for long where cores are busy
    return {
        WorkKind.PRODUCTS: max(
            _per_second(clock, lambda: floats @ floats, 256**3),
            _per_second(clock, lambda: [one_thread @ one_thread for _ in range(16)], 16 * 64**3),
        ),
        WorkKind.LOOPS: _per_second(clock, lambda: integers @ integers, 96**3),
        WorkKind.ELEMENTS: _per_second(clock, lambda: elements + elements, 1 << 18),
    }


@functools.cache
def measured(clock: Callable[[], float]) -> Speed:
    """The speed by a clock that returns seconds. The first call for a clock measures, for some tens of milliseconds."""
    elements = np.ones(_MANY, np.float32)
    recorder, tape = Executor(backend("cpu"), Memory(None, lambda: 0)), Tape(persistent=True)
    source = recorder.constant(np.ones(3, np.float32))
    tape.watch(source)
    target = source
    recorder.context.open(tape)
    for _ in range(_NODES):
        target = recorder.apply(ops.square, [target], ops.square.attrs({}))
    recorder.context.pause(tape)
    query = GradientQuery(tape, [target], [source])
    return Speed(
        operations(clock),
        _per_second(clock, lambda: elements * np.exp(elements), 2 * _MANY),
        _per_second(clock, lambda: gradient(recorder, query), 2 * _NODES),  # a square's gradient takes two ops
    )
