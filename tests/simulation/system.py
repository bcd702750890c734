"""The system as the programs of a simulation see it: `os`, `time`, `threading` and `secrets` in their modules.

The seam is the call of the system: nothing of the programs is made for the simulation, and what they add to the calls
they make is simulated too. Real threads, as those of other tests, get the real thing.
"""

import contextlib
import errno
import os
import random
import secrets
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import ModuleType
from typing import Any, Final

from simulation.disk import Disk
from simulation.world import Killed, Thread, World

_PROGRAMS: Final = ("teletape_server.", "teletape_engine.", "teletape_wire.", "teletape_client.", "teletape.core.")
_EPOCH: Final = 1_800_000_000.0  # Unix seconds when the time of a world is 0


class _Module:
    """A module as programs see it; whatever is not simulated is real."""

    real: ModuleType

    def __init__(self, world: World) -> None:
        self.world = world

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class Time(_Module):
    """Implements `time`."""

    real = time

    def monotonic(self) -> float:
        if self.world.thread is None:
            return time.monotonic()
        self.world.now += 1e-6  # so that no loop waits for ever
        return self.world.now

    def time(self) -> float:
        return time.time() if self.world.thread is None else _EPOCH + self.monotonic()

    def perf_counter(self) -> float:
        return time.perf_counter() if self.world.thread is None else self.monotonic()

    def thread_time(self) -> float:
        return time.thread_time() if self.world.thread is None else self.monotonic()

    def clock_gettime(self, clock: int) -> float:
        return time.clock_gettime(clock) if self.world.thread is None else self.monotonic()

    def sleep(self, seconds: float) -> None:
        if self.world.thread is None:
            time.sleep(seconds)
        else:
            self.world.wait(seconds)


class Secrets(_Module):
    """Implements `secrets`."""

    real = secrets

    def token_hex(self, length: int = 32) -> str:
        return secrets.token_hex(length) if self.world.thread is None else self.world.rng.randbytes(length).hex()

    def token_bytes(self, length: int = 32) -> bytes:
        return secrets.token_bytes(length) if self.world.thread is None else self.world.rng.randbytes(length)

    def token_urlsafe(self, length: int = 32) -> str:
        return secrets.token_urlsafe(length) if self.world.thread is None else self.token_hex(length)


# ------------------------------------------------------------------------------------------------------------- threads
class _Lock:
    def __init__(self, world: World) -> None:
        self._world, self._is_held = world, False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if self._is_held and blocking:
            self._world.wait(None if timeout < 0 else timeout, holds=lambda: not self._is_held)
        if self._is_held:
            return False
        self._is_held = True
        return True

    def release(self) -> None:
        self._is_held = False

    def locked(self) -> bool:
        return self._is_held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class _Condition:
    def __init__(self, world: World, lock: Any = None) -> None:
        self._world, self._lock = world, lock or _Lock(world)
        self._waiting: list[list[bool]] = []
        self.acquire, self.release = self._lock.acquire, self._lock.release

    def wait(self, timeout: float | None = None) -> bool:
        ticket = [False]
        self._waiting.append(ticket)
        self.release()
        try:
            self._world.wait(timeout, holds=lambda: ticket[0])
        finally:
            self.acquire()
        return ticket[0]

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        end = None if timeout is None else self._world.now + timeout
        while not predicate():
            left = None if end is None else end - self._world.now
            if left is not None and left <= 0:
                return False
            self.wait(left)
        return True

    def notify(self, n: int = 1) -> None:
        for ticket in self._waiting[:n]:
            ticket[0] = True
        del self._waiting[:n]

    def notify_all(self) -> None:
        self.notify(len(self._waiting))

    def __enter__(self) -> bool:
        return bool(self.acquire())

    def __exit__(self, *_: object) -> None:
        self.release()


class _Event:
    def __init__(self, world: World) -> None:
        self._world, self._is_set = world, False

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set:
            self._world.wait(timeout, holds=lambda: self._is_set)
        return self._is_set


class _Thread:
    def __init__(
        self,
        world: World,
        target: Callable[..., object],
        name: str = "thread",
        args: Sequence[Any] = (),
        daemon: bool = False,
    ) -> None:
        self._world, self._target, self._args, self.name = world, target, args, name
        self._thread: Thread | None = None

    def start(self) -> None:
        current = self._world.thread
        assert current is not None
        self._thread = current.process.start(lambda: self._target(*self._args), self.name)

    def is_alive(self) -> bool:
        return self._thread is not None and not self._thread.ended

    def join(self, timeout: float | None = None) -> None:
        thread = self._thread
        assert thread is not None
        if not thread.ended:
            self._world.wait(timeout, holds=lambda: thread.ended)


class _Executor:
    """Implements `ThreadPoolExecutor` with one thread."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._todo: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []
        self._is_closed = False
        self._thread: _Thread | None = None

    def submit(self, call: Callable[..., Any], *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._todo.append((future, call, args))
        if self._thread is None:
            self._thread = _Thread(self._world, self._run, "executor")
            self._thread.start()
        return future

    def _run(self) -> None:
        while self._todo or not self._is_closed:
            if not self._todo:
                self._world.wait(holds=lambda: bool(self._todo) or self._is_closed)
                continue
            future, call, args = self._todo.pop(0)
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call(*args))
            except Exception as error:
                future.set_exception(error)

    def shutdown(self, wait: bool = True, cancel_futures: bool = False) -> None:
        self._is_closed = True
        if self._thread is not None and wait:
            self._thread.join()


class Threading(_Module):
    """Implements `threading`."""

    real = threading

    def Lock(self) -> Any:
        return threading.Lock() if self.world.thread is None else _Lock(self.world)

    def Condition(self, lock: Any = None) -> Any:
        return threading.Condition(lock) if self.world.thread is None else _Condition(self.world, lock)

    def Event(self) -> Any:
        return threading.Event() if self.world.thread is None else _Event(self.world)

    def Thread(self, **how: Any) -> Any:
        return threading.Thread(**how) if self.world.thread is None else _Thread(self.world, **how)


# --------------------------------------------------------------------------------------------------------------- files
class Files(_Module):
    """Implements `os`, for files on the simulated disk and for what a process has open."""

    real = os

    def __init__(self, world: World, disk: Disk) -> None:
        super().__init__(world)
        self.disk = disk

    def _call(self) -> bool:
        """Returns whether a thread of the simulation makes a call; it may be killed before it."""
        if self.world.thread is None:
            return False
        self.world.call()
        return True

    def _note(self, fd: int) -> int:
        assert self.world.thread is not None
        self.world.thread.process.files.add(fd)
        return fd

    def open(self, path: Any, flags: int, mode: int = 0o777) -> int:
        if not self._call():
            return os.open(path, flags, mode)
        path = os.path.abspath(path)
        is_here = self.disk.has(path)
        is_new = is_here and bool(flags & os.O_CREAT) and not os.path.exists(path)
        if is_new or (is_here and flags & os.O_TRUNC):
            self.disk.check(takes_space=is_new)
        fd = self._note(os.open(path, flags, mode))
        if is_here and not os.path.isdir(path):
            self.disk.opened(path, fd, is_new=is_new)
            if flags & os.O_TRUNC:
                self.disk.ended(fd)
        return fd

    def dup(self, fd: int) -> int:
        return self._note(os.dup(fd)) if self._call() else os.dup(fd)

    def memfd_create(self, name: str, flags: int = os.MFD_CLOEXEC) -> int:
        return self._note(os.memfd_create(name, flags)) if self._call() else os.memfd_create(name, flags)

    def close(self, fd: int) -> None:
        if self.world.thread is not None:
            if self.world.thread.process.is_dead:
                raise Killed
            self.world.thread.process.files.discard(fd)
        os.close(fd)

    def pwritev(self, fd: int, buffers: Sequence[Any], offset: int, flags: int = 0) -> int:
        if not self._call() or self.disk.file(fd) is None:
            return os.pwritev(fd, buffers, offset, flags)
        data = b"".join(buffers)
        most = len(data)
        if self.world.rng.random() < 0.05:  # the call writes less, or the process is killed while it writes
            most = self.world.rng.randint(1, len(data))
        is_beyond = offset + most > os.fstat(fd).st_size
        self.disk.check(takes_space=is_beyond)
        count = os.pwrite(fd, data[:most], offset)
        self.disk.wrote(fd, offset, data[:count])
        return count

    def pwrite(self, fd: int, data: Any, offset: int) -> int:
        return self.pwritev(fd, [data], offset)

    def write(self, fd: int, data: Any) -> int:
        assert not self._call() or self.disk.file(fd) is None, "a write without an offset"
        return os.write(fd, data)

    def posix_fallocate(self, fd: int, offset: int, length: int) -> None:
        if self._call() and self.disk.file(fd) is not None:
            self.disk.check()
            os.ftruncate(fd, max(os.fstat(fd).st_size, offset + length))  # in memory it takes nothing
            self.disk.ended(fd)
        else:
            os.posix_fallocate(fd, offset, length)

    def ftruncate(self, fd: int, length: int) -> None:
        if self._call() and self.disk.file(fd) is not None:
            self.disk.check(takes_space=False)
            os.ftruncate(fd, length)
            self.disk.ended(fd)
        else:
            os.ftruncate(fd, length)

    def fdatasync(self, fd: int) -> None:
        self._sync(fd, os.fdatasync)

    def fsync(self, fd: int) -> None:
        self._sync(fd, os.fsync)

    def _sync(self, fd: int, sync: Callable[[int], None]) -> None:
        if not self._call():
            sync(fd)
            return
        self.world.wait(self.world.rng.choice([0.0005, 0.002, 0.02]))
        try:
            self.disk.check(takes_space=False)
        except OSError:
            self.disk.not_synced(fd)
            raise
        self.disk.synced(fd)

    def rename(self, source: str, target: str) -> None:
        if not self._call() or not self.disk.has(target):
            os.rename(source, target)
            return
        self.disk.check(takes_space=False)
        os.rename(source, target)
        self.disk.renamed(source, target)

    replace = rename

    def unlink(self, path: str) -> None:
        if not self._call() or not self.disk.has(path):
            os.unlink(path)
            return
        self.disk.check(takes_space=False)
        os.unlink(path)
        self.disk.unlinked(path)

    remove = unlink

    def makedirs(self, path: str, mode: int = 0o777, exist_ok: bool = False) -> None:
        if not self._call() or not self.disk.has(path):
            os.makedirs(path, mode, exist_ok)
            return
        if os.path.isdir(path):
            if not exist_ok:
                raise FileExistsError(errno.EEXIST, path)
            return
        self.disk.check()
        if not os.path.isdir(os.path.dirname(path)):
            self.makedirs(os.path.dirname(path))
        os.mkdir(path, mode)
        self.disk.created(path)

    def _exit(self, status: int) -> None:
        if self.world.thread is None:
            os._exit(status)
        self.world.thread.process.kill(status)
        raise Killed


class Trees(_Module):
    """Implements `shutil`."""

    real = shutil

    def __init__(self, files: Files) -> None:
        super().__init__(files.world)
        self._files = files

    def rmtree(self, path: str, ignore_errors: bool = False) -> None:
        if self.world.thread is None or not self._files.disk.has(path):
            shutil.rmtree(path, ignore_errors=ignore_errors)
            return
        with contextlib.suppress(OSError) if ignore_errors else contextlib.nullcontext():
            for name in os.listdir(path):
                self._files.unlink(os.path.join(path, name))
            self._files.world.call()
            os.rmdir(path)
            self._files.disk.unlinked(path)


@contextlib.contextmanager
def simulated(world: World, disk: Disk) -> Iterator[None]:
    """A block in which the programs that are loaded see the system of a world."""
    files = Files(world, disk)
    parts: dict[ModuleType, _Module] = {
        part.real: part for part in (Time(world), Secrets(world), Threading(world), files, Trees(files))
    }
    changed: list[tuple[dict[str, Any], str, Any]] = []
    for module in [module for name, module in sys.modules.items() if name.startswith(_PROGRAMS)]:
        names = vars(module)
        for part in ("time", "secrets", "threading", "os", "shutil"):
            real = names.get(part)
            if isinstance(real, ModuleType) and real in parts:
                changed.append((names, part, real))
                names[part] = parts[real]
        if names.get("ThreadPoolExecutor") is ThreadPoolExecutor:
            changed.append((names, "ThreadPoolExecutor", ThreadPoolExecutor))
            names["ThreadPoolExecutor"] = lambda *how, **named: (
                ThreadPoolExecutor(*how, **named) if world.thread is None else _Executor(world)
            )
        if isinstance(names.get("_WAITS"), random.Random):
            changed.append((names, "_WAITS", names["_WAITS"]))
            names["_WAITS"] = random.Random(world.seed)
    try:
        yield
    finally:
        for names, name, real in changed:
            names[name] = real
