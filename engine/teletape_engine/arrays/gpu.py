"""CuPy arrays on one GPU, from a memory pool of their own so that sessions do not share limits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from teletape_engine.arrays import checks
from teletape_engine.arrays.cpu import CPU, DeviceFacts
from teletape_engine.errors import ResourceExhaustedError, UnimplementedError


def gpu_facts() -> list[DeviceFacts]:
    """Returns what is known of each GPU, or why there is none. This loads the driver."""
    try:
        import cupy
    except ImportError as error:
        return [DeviceFacts("gpu", unusable=f"CuPy is not installed ({error}): install the extra teletape[gpu]")]
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
        problem = "there is none"
    except Exception as error:  # CuPy's own error classes cannot be named if CuPy is missing
        count, problem = 0, str(error)
    if not count:
        text = (
            f"CuPy finds no GPU ({problem}): it needs NVIDIA's driver on the machine, and a "
            "container needs access to the GPUs (docker run --gpus all)"
        )
        return [DeviceFacts("gpu", unusable=text)]
    return [_facts(cupy, index) for index in range(count)]


def _facts(cupy: Any, index: int) -> DeviceFacts:
    runtime, device = cupy.cuda.runtime, f"gpu:{index}"
    try:
        with cupy.cuda.Device(index):
            properties = runtime.getDeviceProperties(index)
            free, total = runtime.memGetInfo()
            driver = int(runtime.driverGetVersion())  # 13000 for 13.0
        name = properties["name"]
        return DeviceFacts(
            device,
            name.decode() if isinstance(name, bytes) else str(name),
            int(total),
            int(free),
            f"{driver // 1000}.{driver % 1000 // 10}",
            f"{properties['major']}.{properties['minor']}",
        )
    except Exception as error:
        return DeviceFacts(device, unusable=f"it could not be opened ({error}): nvidia-smi says more")


def _opened(index: int) -> Any:
    """CuPy, if there is a GPU of that number.

    Raises:
        UnimplementedError: There is none; the message says why.
    """
    try:
        import cupy

        count = int(cupy.cuda.runtime.getDeviceCount())
    except Exception:  # without CuPy, or one of CuPy's own
        count = 0
    if not count:
        raise UnimplementedError(f"no device gpu:{index}: {gpu_facts()[0].unusable}, or use device cpu")
    if index >= count:
        raise UnimplementedError(f"no device gpu:{index}: this machine has gpu:0 to gpu:{count - 1}")
    return cupy


class Gpu:
    """One GPU, with a memory pool and a stream of its own; see `Backend`."""

    name = "gpu"
    refused: frozenset[str] = frozenset(("bfloat16",))

    def __init__(self, index: int) -> None:
        self.xp = _opened(index)
        self.index = index
        self.device = f"gpu:{index}"
        self._pool = self.xp.cuda.MemoryPool()
        with self.xp.cuda.Device(index):
            self._stream = self.xp.cuda.Stream(non_blocking=True)

    def limit_memory(self, nbytes: int) -> None:
        """Limits the pool, with what CuPy's libraries take for themselves: an allocation beyond it is a MemoryError."""
        with self.xp.cuda.Device(self.index):
            self._pool.set_limit(size=nbytes)

    def broken(self) -> str:
        """Waits for all work, and returns the error after which CUDA refuses everything here; empty: there is none."""
        try:
            with self.quiet():
                self.xp.cuda.runtime.deviceSynchronize()
        except Exception as error:  # CuPy's CUDARuntimeError
            return f"{self.device} failed: {error}"
        return ""

    def put(self, array: np.ndarray[Any, Any]) -> Any:
        """Copies to the GPU; strings stay on the host."""
        if array.dtype.kind == "O":
            return array
        if array.dtype.name in self.refused:
            raise UnimplementedError(f"{array.dtype.name} is not available on device gpu; use float16 or float32")
        with self.quiet():
            try:
                if array.size == 1:  # the parameter of a kernel, which no copy has to wait for
                    copy = self.xp.full(array.shape, array.item(), array.dtype)
                else:
                    copy = self.xp.asarray(array)
            except self.xp.cuda.memory.OutOfMemoryError as error:
                raise ResourceExhaustedError(f"the GPU has no room for {array.nbytes} bytes: {error}") from None
        known = checks.read_bounds(array)
        if known is not None:
            checks.note_bounds(copy, known)
        return copy

    def get(self, array: Any) -> np.ndarray[Any, Any]:
        """Copies to the host."""
        with self.quiet():  # on the stream that computes it
            return np.asarray(self.xp.asnumpy(array))

    def quiet(self) -> AbstractContextManager[Any]:
        """Selects the device and this session's pool and stream; CuPy itself gives no warnings."""
        return _Selected(self.xp, self.index, self._pool, self._stream)

    def kernel_call(self) -> Callable[..., Any]:
        """Selects device and pool for each call."""
        return self._selected

    def _selected(self, function: Callable[..., Any], *args: Any) -> Any:
        with self.quiet():
            return function(*args)

    def base(self, array: Any) -> tuple[int, int]:
        """The pool's block that the array lies in."""
        if isinstance(array, np.ndarray):  # of strings
            return CPU.base(array)
        memory = array.data.mem
        return int(memory.ptr), int(memory.size)


class _Selected:
    """Device, allocator and stream of one session, for the length of a batch."""

    def __init__(self, cupy: Any, index: int, pool: Any, stream: Any) -> None:
        self._device: AbstractContextManager[Any] = cupy.cuda.Device(index)
        self._stream: AbstractContextManager[Any] = stream
        self._allocator: AbstractContextManager[Any] = cupy.cuda.using_allocator(pool.malloc) if pool else nullcontext()

    def __enter__(self) -> None:
        self._device.__enter__()
        self._allocator.__enter__()
        self._stream.__enter__()

    def __exit__(self, *exc: Any) -> None:
        self._stream.__exit__(*exc)
        self._allocator.__exit__(*exc)
        self._device.__exit__(*exc)
