"""How fast this machine computes, and from that whether an op can end before a request's time limit.

The speed is measured when this module is imported: once, in the forkserver, and inherited by all sessions' processes.
It takes some milliseconds of CPU time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from teletape_engine.catalogue.op import Kernel, Work

_RUNS: Final = 3  # of each measurement, of which the fastest counts
_DOUBT: Final = 2.0  # an op may be this much faster than the measurement: what could end in time must not be refused


def _operations_per_second(run: Callable[[], Any], operations: int) -> float:
    run()
    seconds = []
    for _ in range(_RUNS):
        began = time.thread_time()
        run()
        seconds.append(time.thread_time() - began)
    return operations / max(min(seconds), 1e-6)


def _measured() -> Mapping[Kernel, float]:
    floats, integers = np.ones((256, 256), np.float32), np.ones((96, 96), np.int32)
    elements = np.ones(1 << 18, np.float32)
    return {
        Kernel.PRODUCTS: _operations_per_second(lambda: floats @ floats, 256**3),
        Kernel.LOOPS: _operations_per_second(lambda: integers @ integers, 96**3),
        Kernel.ELEMENTS: _operations_per_second(lambda: elements + elements, 1 << 18),
    }


#: Operations that the CPU does in a second, by kernel.
SPEED: Final = _measured()


class Budget:
    """The time of one request on the CPU; a `progress.TimeBudget`.

    Args:
        limit: Seconds in all.
        deadline: When it ends, on the monotonic clock.
    """

    def __init__(self, limit: float, deadline: float) -> None:
        self.limit = limit
        self._deadline = deadline

    def left(self) -> float:
        """Returns the seconds that are left."""
        return self._deadline - time.monotonic()

    def seconds(self, work: Work) -> float:
        """Returns the seconds that the work takes at least."""
        return work.amount / (SPEED[work.kernel] * _DOUBT)
