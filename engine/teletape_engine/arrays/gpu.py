"""CuPy arrays on one GPU, from a memory pool of their own so that sessions do not share limits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from teletape_engine.arrays import checks
from teletape_engine.arrays.cpu import CPU
from teletape_engine.errors import ResourceExhaustedError, UnimplementedError


def _cupy() -> Any:
    try:
        import cupy
    except ImportError as error:
        raise UnimplementedError(
            f"device gpu: CuPy is not installed here ({error}); install the extra teletape[gpu], or use device cpu"
        ) from None
    return cupy


def count() -> int:
    """The number of GPUs that CuPy can use; 0 without CuPy or without a driver."""
    try:
        return int(_cupy().cuda.runtime.getDeviceCount())
    except Exception:  # CuPy's own error classes cannot be named if CuPy is missing
        return 0


class Gpu:
    """One GPU; see `Backend`."""

    name = "gpu"
    refused: frozenset[str] = frozenset(("bfloat16",))

    def __init__(self, index: int) -> None:
        self.xp = _cupy()
        usable = count()
        if index >= usable:
            raise UnimplementedError(f"device gpu:{index}: this machine has {usable} usable GPUs")
        self.index = index
        self.device = f"gpu:{index}"
        self._pool = self.xp.cuda.MemoryPool()

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
        return np.asarray(self.xp.asnumpy(array))

    def quiet(self) -> AbstractContextManager[Any]:
        """Selects the device and this session's pool; CuPy itself gives no warnings."""
        return _Selected(self.xp, self.index, self._pool)

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
    """Device and allocator of one session, for the length of a batch."""

    def __init__(self, cupy: Any, index: int, pool: Any) -> None:
        self._device: AbstractContextManager[Any] = cupy.cuda.Device(index)
        self._allocator: AbstractContextManager[Any] = cupy.cuda.using_allocator(pool.malloc) if pool else nullcontext()

    def __enter__(self) -> None:
        self._device.__enter__()
        self._allocator.__enter__()

    def __exit__(self, *exc: Any) -> None:
        self._allocator.__exit__(*exc)
        self._device.__exit__(*exc)
