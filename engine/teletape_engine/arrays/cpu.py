"""NumPy arrays in this process's memory."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import Context
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

_MMAP_THRESHOLD, _TRIM_THRESHOLD = (-3, 32 << 20), (-1, 64 << 20)  # parameters of mallopt, and bytes


class DeviceFacts(NamedTuple):
    """What is known of a device.

    Attributes:
        device: cpu or gpu:N; gpu if there is none.
        name: Its model; empty if there is none.
        memory_bytes: Of its memory; None: not known.
        free_bytes: Of it that nothing uses.
        driver: The version of NVIDIA's driver, such as 580.65.06; None: it is no GPU, or not known.
        cuda: The newest version of CUDA that its driver serves, such as 13.0; None: it is no GPU.
        compute_capability: Of a GPU, such as 9.0.
        unusable: Why it cannot be used, and what to do; empty: it can.
        interpreted: Why functions run without compiled code there, and what to do; empty: they are compiled.
    """

    device: str
    name: str = ""
    memory_bytes: int | None = None
    free_bytes: int | None = None
    driver: str | None = None
    cuda: str | None = None
    compute_capability: str | None = None
    unusable: str = ""
    interpreted: str = ""


def cpu_facts() -> DeviceFacts:
    """Returns what is known of this machine's processor and memory."""
    name = ""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        name = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "")
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        memory, free = (page * os.sysconf(pages) for pages in ("SC_PHYS_PAGES", "SC_AVPHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # another system than Linux
        return DeviceFacts("cpu", name or platform.processor())
    return DeviceFacts("cpu", name or platform.processor(), memory, free)


def on_host(array: Any) -> np.ndarray[Any, Any]:
    """An array of a device, or a number, as an array of NumPy's."""
    return np.asarray(array.get() if hasattr(array, "get") else array)


class Cpu:
    """The CPU backend; see `Backend`."""

    name = "cpu"
    device = "cpu"
    xp: Any = np
    refused: frozenset[str] = frozenset()
    block = 1

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

    def limit_memory(self, nbytes: int) -> None:
        """Does nothing: the host limits its process."""

    def use_host_memory(self, allocate: Callable[[int], np.ndarray[Any, Any]]) -> None:
        """Does nothing: arrays are on the host."""

    def broken(self) -> str:
        """Returns nothing: an op on the CPU breaks none after it."""
        return ""

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
    was freed. With another C library this does nothing. Nothing in the engine calls it, since it is for the whole
    process: the SDK does, and a server's workers.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(*_MMAP_THRESHOLD)
            mallopt(*_TRIM_THRESHOLD)
