"""CuPy arrays on one GPU, from a memory pool of their own so that sessions do not share limits."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import numpy as np

from teletape_engine.arrays import checks
from teletape_engine.arrays.cpu import CPU, DeviceFacts
from teletape_engine.errors import ResourceExhaustedError, UnimplementedError

COPY_BYTES: Final = 4 << 20  #: Of each of the two pinned buffers: a piece of a large copy.
LARGE_BYTES: Final = 1 << 20  #: From this size on an array is copied through pinned buffers.


def gpu_facts() -> list[DeviceFacts]:
    """Returns what is known of each GPU, or why there is none. This loads the driver."""
    try:
        import cupy
    except ImportError as error:
        return [DeviceFacts("gpu", unusable=f"CuPy is not installed ({error}): install the extra teletape[gpu]")]
    except OSError as error:
        text = f"CuPy cannot be loaded ({error}): CUPY_CACHE_DIR must name a folder where it can keep compiled kernels"
        return [DeviceFacts("gpu", unusable=text)]
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
            cuda = int(runtime.driverGetVersion())  # 13000 for 13.0
        name = properties["name"]
        return DeviceFacts(
            device,
            name.decode() if isinstance(name, bytes) else str(name),
            int(total),
            int(free),
            driver_version(),
            f"{cuda // 1000}.{cuda % 1000 // 10}",
            f"{properties['major']}.{properties['minor']}",
        )
    except Exception as error:
        return DeviceFacts(device, unusable=f"it could not be opened ({error}): nvidia-smi says more")


def driver_version(path: str = "/proc/driver/nvidia/version") -> str | None:
    """Returns the version of NVIDIA's driver, such as 580.65.06, as the driver itself writes it; None: it is not known.

    CUDA and CuPy know only which version of CUDA the driver serves.
    """
    with contextlib.suppress(OSError), open(path) as file:
        match = re.search(r"NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", file.read())
        return match and match[1]
    return None


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
    block = 512  # of CuPy's memory pools

    def __init__(self, index: int) -> None:
        self.xp = _opened(index)
        self.index = index
        self.device = f"gpu:{index}"
        self._pool = self.xp.cuda.MemoryPool()
        with self.xp.cuda.Device(index):
            self._stream = self.xp.cuda.Stream(non_blocking=True)
        self._copies: _Copies | None = None
        self._allocate: Callable[[int], np.ndarray[Any, Any]] = _host_bytes

    def limit_memory(self, nbytes: int) -> None:
        """Limits the pool, with what CuPy's libraries take for themselves: an allocation beyond it is a MemoryError."""
        with self.xp.cuda.Device(self.index):
            self._pool.set_limit(size=nbytes)

    def use_host_memory(self, allocate: Callable[[int], np.ndarray[Any, Any]]) -> None:
        """Has large arrays copied to the host into memory from `allocate`."""
        self._allocate = allocate

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
            raise UnimplementedError(checks.refusal_of(array.dtype.name))
        with self.quiet():
            try:
                if array.size == 1:  # the parameter of a kernel, which no copy has to wait for
                    copy = self.xp.full(array.shape, array.item(), array.dtype)
                elif array.nbytes >= LARGE_BYTES:
                    copy = self._large().up(array)
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
            if getattr(array, "nbytes", 0) >= LARGE_BYTES and isinstance(array, self.xp.ndarray):
                return self._large().down(self.xp.ascontiguousarray(array), self._allocate(array.nbytes))
            return np.asarray(self.xp.asnumpy(array))

    def _large(self) -> _Copies:
        """What copies large arrays; the first of them takes the pinned memory."""
        if self._copies is None:
            self._copies = _Copies(self.xp, self._pool, self._stream)
        return self._copies

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


def _host_bytes(nbytes: int) -> np.ndarray[Any, Any]:
    return np.empty(nbytes, np.uint8)


class _Copies:
    """Copies large arrays in pieces through two pinned buffers, on a stream of its own: the GPU computes meanwhile.

    An array that comes up lies in memory that only such arrays have, and that is used again when the work is done that
    was under way as the last of them was freed.

    Args:
        cupy: CuPy.
        pool: The session's memory pool.
        stream: The session's stream, on which everything is computed.
    """

    def __init__(self, cupy: Any, pool: Any, stream: Any) -> None:
        self._cupy, self._pool, self._computing = cupy, pool, stream
        cuda = cupy.cuda
        self._stream = cuda.Stream(non_blocking=True)
        self._buffers = [cuda.alloc_pinned_memory(COPY_BYTES) for _ in range(2)]
        self._pieces = [np.frombuffer(buffer, np.uint8, COPY_BYTES) for buffer in self._buffers]
        self._copied = [cuda.Event(disable_timing=True) for _ in range(2)]
        self._freed = _Freed(cuda.Event(disable_timing=True), stream)
        self._lock = threading.Lock()

    def up(self, array: np.ndarray[Any, Any]) -> Any:
        """Returns a copy on the GPU; the session's later work waits for it, and this thread does not."""
        source = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        with self._lock, self._stream:
            block = self._pool.malloc(array.nbytes)
            self._stream.wait_event(self._freed.event())  # recorded before the block was free
            for number, start in enumerate(range(0, source.size, COPY_BYTES)):
                piece = source[start : start + COPY_BYTES]
                buffer = number % 2
                self._copied[buffer].synchronize()
                self._pieces[buffer][: piece.size] = piece
                self._copy(block.ptr + start, self._buffers[buffer].ptr, piece.size, up=True)
                self._copied[buffer].record(self._stream)
            self._computing.wait_event(self._stream.record())
        owner = _Block(block, self._freed)
        memory = self._cupy.cuda.UnownedMemory(block.ptr, array.nbytes, owner)
        return self._cupy.ndarray(array.shape, array.dtype, self._cupy.cuda.MemoryPointer(memory, 0))

    def down(self, array: Any, target: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Copies a contiguous array to the host when the work before it is done.

        Args:
            array: On the GPU.
            target: Bytes of the host, as many as the array has.

        Returns:
            These bytes as an array of its shape and dtype.
        """
        starts = range(0, target.size, COPY_BYTES)
        with self._lock, self._stream:
            for event in self._copied:
                event.synchronize()
            self._stream.wait_event(self._computing.record())
            for number in range(len(starts) + 1):
                if number < len(starts):
                    size = min(COPY_BYTES, target.size - starts[number])
                    self._copy(self._buffers[number % 2].ptr, array.data.ptr + starts[number], size, up=False)
                    self._copied[number % 2].record(self._stream)
                if number:
                    before = number - 1
                    self._copied[before % 2].synchronize()
                    part = target[starts[before] : starts[before] + COPY_BYTES]
                    part[...] = self._pieces[before % 2][: part.size]
        result: np.ndarray[Any, Any] = target.view(array.dtype).reshape(array.shape)
        return result

    def _copy(self, to: int, source: int, size: int, *, up: bool) -> None:
        runtime = self._cupy.cuda.runtime
        kind = runtime.memcpyHostToDevice if up else runtime.memcpyDeviceToHost
        runtime.memcpyAsync(to, source, size, kind, self._stream.ptr)


class _Freed:
    """The end of the work that was under way when memory of an upload was last freed."""

    def __init__(self, event: Any, computing: Any) -> None:
        self._event, self._computing = event, computing
        self._missed = False  #: Memory was freed during a capture, whose events no other stream can wait for.

    def record(self) -> None:
        if self._computing.is_capturing():
            self._missed = True
        else:
            self._event.record(self._computing)

    def event(self) -> Any:
        """The event to wait for."""
        if self._missed:
            self._missed = False
            self._event.record(self._computing)
        return self._event


class _Block:
    """Memory of an array that came up; the session's work so far may still read it when it is freed."""

    def __init__(self, block: Any, freed: _Freed) -> None:
        self._block, self._freed = block, freed

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # CUDA may have been shut down
            self._freed.record()


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
