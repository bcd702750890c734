"""How fast this machine computes on its CPU, measured with a host's clock: the engine has none."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Kernel

_RUNS: Final = 5  # of each measurement, of which the fastest counts
_CALLS: Final = 100  # of a small op


class Speed(NamedTuple):
    """What the CPU does in a second.

    Attributes:
        operations: By kernel: multiply-adds of products and loops, elements of the fastest functions.
        elements: Of a usual mixture of functions: as many of products as of exponentials.
        calls: Of ops on a few elements.
    """

    operations: Mapping[Kernel, float]
    elements: float
    calls: float


@functools.cache
def measured(clock: Callable[[], float]) -> Speed:
    """The speed by a clock that returns seconds. The first call for a clock measures, for some milliseconds."""
    floats, integers = np.ones((256, 256), np.float32), np.ones((96, 96), np.int32)
    elements, few = np.ones(1 << 18, np.float32), np.ones(3, np.float32)

    def per_second(run: Callable[[], Any], count: int) -> float:
        run()
        seconds = []
        for _ in range(_RUNS):
            began = clock()
            run()
            seconds.append(clock() - began)
        return count / max(min(seconds), 1e-6)

    return Speed(
        {
            Kernel.PRODUCTS: per_second(lambda: floats @ floats, 256**3),
            Kernel.LOOPS: per_second(lambda: integers @ integers, 96**3),
            Kernel.ELEMENTS: per_second(lambda: elements + elements, 1 << 18),
        },
        per_second(lambda: elements * np.exp(elements), 2 << 18),
        per_second(lambda: [ops.add(few, few) for _ in range(_CALLS)], _CALLS),
    )
