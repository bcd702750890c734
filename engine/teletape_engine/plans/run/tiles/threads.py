"""How many threads tiles run on: as many as BLAS is allowed, so that what limits the one limits the other."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from teletape_engine.plans.policy import POLICY
from teletape_engine.plans.run.c.records import MOST_THREADS


def count() -> int:
    """The number of threads, at least 1: what OpenBLAS is set to now; of another BLAS, what the policy says."""
    ask = _openblas()
    return max(1, min(ask() if ask is not None else POLICY.threads or _cores(), MOST_THREADS))


@cache
def _openblas() -> Callable[[], int] | None:
    """OpenBLAS's own number, in the library that NumPy's wheel has; None: NumPy has another BLAS."""
    for path in sorted(Path(np.__file__).parents[1].glob("numpy.libs/libscipy_openblas*")):
        try:
            library = ctypes.CDLL(str(path), mode=os.RTLD_NOW | getattr(os, "RTLD_NOLOAD", 0))
        except OSError:  # it is not what NumPy has loaded
            continue
        for name in ("scipy_openblas_get_num_threads64_", "scipy_openblas_get_num_threads"):
            function: Callable[[], int] | None = getattr(library, name, None)
            if function is not None:
                return function
    return None


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
