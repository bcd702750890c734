"""How fast this machine computes, and from that whether an op can end before a request's time limit.

The speed is measured when this module is imported: once, in the forkserver, and inherited by all sessions' processes.
It takes some milliseconds of CPU time.
"""

from __future__ import annotations

import time
from typing import Final

from teletape_engine.catalogue.op import Work
from teletape_engine.derivatives.reports.speed import operations

_DOUBT: Final = 2.0  # an op may be this much faster than the measurement: what could end in time must not be refused

#: Operations that the CPU does in a second, by kernel.
SPEED: Final = operations(time.thread_time)


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
