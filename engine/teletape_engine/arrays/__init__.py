"""The backends that hold arrays: NumPy on the CPU, CuPy on a GPU. Nothing else in the engine imports CuPy.

Forward functions get the array namespace `xp` and use what NumPy and CuPy share. What differs between the two is in
the modules of this folder.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from teletape_engine.arrays.cpu import CPU, DeviceFacts, cpu_facts
from teletape_engine.arrays.gpu import Gpu, gpu_facts
from teletape_engine.errors import UnimplementedError

HostArray: TypeAlias = np.ndarray[Any, Any]
Array: TypeAlias = np.ndarray[Any, Any]  # or NumPy's scalar, or CuPy's array, which have what is used of it


class ArrayModule(Protocol):
    """NumPy, CuPy, or what notes their calls for a plan: functions of arrays under NumPy's names."""

    __name__: str
    nan: float
    inf: float
    pi: float
    linalg: ArrayModule
    fft: ArrayModule
    lib: Any
    add: Any
    maximum: Any
    minimum: Any

    def __getattr__(self, name: str) -> Callable[..., Array]: ...


@runtime_checkable
class Backend(Protocol):
    """One kind of device: its namespace, and how bytes come and go."""

    name: str
    device: str
    xp: Any
    refused: frozenset[str]  #: Names of the dtypes that its arrays cannot have.
    block: int  #: The fewest bytes that memory is taken in.

    def put(self, array: HostArray) -> Array:
        """A device array with the same values; shares memory with `array` if it can."""

    def get(self, array: Array) -> HostArray:
        """The values as a NumPy array that the engine still owns: read only."""

    def quiet(self) -> AbstractContextManager[Any]:
        """A block on this device: division by zero, overflow and invalid values give inf and nan without a warning."""

    def kernel_call(self) -> Callable[..., Any]:
        """A new function that calls another one as inside `quiet`, for one thread: cheap enough for each op.

        Its result raises RuntimeError if it is called while it runs: see `runs_already`.
        """

    def limit_memory(self, nbytes: int) -> None:
        """Limits what arrays may take, as far as the device can; the engine counts them, and refuses before."""

    def use_host_memory(self, allocate: Callable[[int], HostArray]) -> None:
        """Has large arrays copied to the host into memory from `allocate`: from a number of bytes to as many, uint8."""

    def broken(self) -> str:
        """Why this process can no longer compute on the device; empty: it can."""

    def base(self, array: Array) -> tuple[int, int]:
        """Identity and bytes of the buffer that the array keeps alive."""


def runs_already(error: Exception) -> bool:
    """Whether a result of `Backend.kernel_call` has refused to be called while it runs; it has called nothing.

    A finalizer or a signal handler of the program can run inside a kernel, and may call ops.
    """
    return error.__class__ is RuntimeError and str(error).startswith("cannot enter context")


def namespace(args: Iterable[Any]) -> Any:
    """The array namespace of the first device array among `args`; NumPy if there is none."""
    cupy = sys.modules.get("cupy")
    if cupy is not None:
        for arg in args:
            if isinstance(arg, cupy.ndarray):
                return cupy
    return np


def backend(device: str = "cpu") -> Backend:
    """The backend for a device: `cpu`, `gpu`, `gpu:N` or `auto`.

    `gpu` is the GPU with the most free memory, and so is `auto` if there is a GPU that can be used, else the CPU.

    Raises:
        UnimplementedError: No such device here, or no SciPy; the message says what is missing.
    """
    kind, _, index = str(device).partition(":")
    if "scipy" not in sys.modules and not _has_scipy():
        raise UnimplementedError("no session can compute here: SciPy is not installed (pip install 'teletape[local]')")
    if kind == "cpu" and not index:
        return CPU
    if kind == "gpu" and index.isdigit():
        return Gpu(int(index))
    if device in ("gpu", "auto"):
        return _freest(device)
    raise UnimplementedError(f"unknown device {device!r}: it must be cpu, gpu, gpu:N or auto")


@cache
def _has_scipy() -> bool:
    """Whether SciPy can be imported; not again, since looking through the folders takes longer than a small batch."""
    return importlib.util.find_spec("scipy") is not None


def _freest(device: str) -> Backend:
    """The GPU with the most free memory; for `auto` the CPU if there is none."""
    usable = [facts for facts in gpu_facts() if not facts.unusable]
    if usable:
        return backend(max(usable, key=lambda facts: facts.free_bytes or 0).device)
    return backend("cpu" if device == "auto" else "gpu:0")  # which says why there is none


def devices() -> list[DeviceFacts]:
    """What is known of the devices of this machine, the CPU first."""
    return [cpu_facts(), *gpu_facts()]
