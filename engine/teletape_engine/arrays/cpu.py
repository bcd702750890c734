"""NumPy arrays in this process's memory."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import Context
from functools import cache
from typing import Any, Final

import numpy as np

_MMAP_THRESHOLD, _TRIM_THRESHOLD = (-3, 32 << 20), (-1, 64 << 20)  # parameters of mallopt, and bytes


class Cpu:
    """The CPU backend; see `Backend`."""

    name = "cpu"
    device = "cpu"
    xp: Any = np
    refused: frozenset[str] = frozenset()

    def put(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The array itself."""
        return array

    def get(self, array: Any) -> np.ndarray[Any, Any]:
        """The array itself, a NumPy scalar as a 0-d array."""
        return np.asarray(array)

    def quiet(self) -> AbstractContextManager[Any]:
        """NumPy's error state, everything ignored."""
        return np.errstate(all="ignore")

    def kernel_call(self) -> Callable[..., Any]:
        """Runs functions in a context of their own: 0.06 µs, where `np.errstate` takes 1 µs."""
        return _QUIET.copy().run

    def base(self, array: Any) -> tuple[int, int]:
        """Walks to the array that owns the memory: NumPy chains views of views."""
        while getattr(array, "base", None) is not None and isinstance(array.base, np.ndarray):
            array = array.base
        return id(array), int(array.nbytes)


#: NumPy's error state is a context variable; in this context everything is ignored. Programs keep their own.
_QUIET: Final = Context()
_QUIET.run(np.seterr, all="ignore")

CPU: Final = Cpu()


@cache
def reuse_freed_memory() -> None:
    """Lets glibc keep up to 64 MiB of freed memory of this process, for the next arrays.

    Otherwise it returns memory to the system between two ops, and a third of the time of a step with arrays of some
    megabytes goes into page faults. These are the values that glibc itself arrives at after the first array of 32 MiB
    was freed. With another C library this does nothing.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(*_MMAP_THRESHOLD)
            mallopt(*_TRIM_THRESHOLD)
