"""Starts processes from a forkserver that has the worker's modules loaded, each with its ends of two socket pairs.

The forkserver and its processes have the environment that the server has when the first of them starts: without keys.
A forkserver that does not answer, or is stopped, is ended; the next start begins a new one. The processes that it has
started go on.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import multiprocessing.forkserver
import multiprocessing.process
import os
import signal
import sys
import threading
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any, Final

from teletape_engine.arrays.cpu import DeviceFacts, cpu_facts
from teletape_server.ipc.channel import Channel
from teletape_server.ipc.control import Sockets, socket_pairs
from teletape_server.ipc.processes import ProcessKind, run

_DEVICES_SECONDS: Final = 60.0  # a GPU's driver can take long to start
_START_LIMIT: Final = 30.0  # seconds that a start may take: the first one loads the worker's modules

#: Threads of a worker's linear algebra. Two workers with a thread for each core slow each other down 60 times.
_ONE_THREAD: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")

#: Variables with keys: removed even where the server is a part of another program.
_SECRET: Final = ("TELETAPE_API_KEYS", "TELETAPE_API_KEY")

#: What the forkserver imports besides: its processes inherit that, and what it does. What each of them imported itself
#: would take 2 MB of its own.
_INHERITED: Final = (
    "multiprocessing.popen_forkserver",
    "teletape_server.ipc.processes",
    "teletape_server.worker.speed",
    "teletape_server.hosts.processes.inherited",
)

log = logging.getLogger("teletape")

_fork_lock = threading.Lock()  # locked while a process starts


def begin() -> None:
    """Starts the forkserver if there is none: it loads its modules while the server loads its own.

    Raises:
        OSError: There are too many files or processes.
    """
    _context()
    multiprocessing.forkserver.ensure_running()


def _context() -> Any:
    """Returns what starts processes from the forkserver, once its environment and its modules are set."""
    for name in _SECRET:
        os.environ.pop(name, None)
    for name in _ONE_THREAD:
        os.environ.setdefault(name, "1")  # the forkserver inherits it when it starts
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([ProcessKind.SESSION.module, *_INHERITED])
    return context


def start_process(kind: ProcessKind, *arguments: Any) -> tuple[BaseProcess, Sockets]:
    """Starts a process on its ends of two socket pairs; returns the process and the other ends.

    Args:
        kind: What the process runs.
        arguments: What it takes besides its `Sockets`.

    Raises:
        OSError: There are too many files or processes, or the forkserver ended or did not answer in time.
    """
    context = _context()
    ours, theirs = socket_pairs()
    with contextlib.closing(theirs), _fork_lock:
        process = context.Process(target=run, args=(kind, theirs, *arguments), daemon=True)
        limit = threading.Timer(_START_LIMIT, end_stuck_start, (f"did not start a process in {_START_LIMIT:g} s",))
        limit.daemon = True
        limit.start()
        try:
            with _without_main():
                process.start()
            _disown(process)
        except EOFError:
            ours.close()
            raise ChildProcessError("the forkserver ended before it started the process; a new one begins") from None
        except BaseException:
            ours.close()
            raise
        finally:
            limit.cancel()
            limit.join()  # or it could end the forkserver of the next start
    return process, ours


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """A block in which the program has no main module, which each process would run first, with all that it imports."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _disown(process: BaseProcess) -> None:
    """Takes a process from those that multiprocessing knows: its caller alone reads its status, and closes it.

    The start of another process reads the status of all that multiprocessing knows, in its own thread: it would meet
    one that is just being closed, or take away a status before the caller has read it.
    """
    children: set[BaseProcess] = getattr(multiprocessing.process, "_children")  # noqa: B009  # not in the stubs
    children.discard(process)


def end_stuck_start(reason: str) -> None:
    """Ends the forkserver if a process is starting now: that start fails, and the next one begins a new forkserver.

    Args:
        reason: What the forkserver did, for the log.
    """
    if _fork_lock.locked():
        _end(_pid(), reason)


def is_stopped() -> bool:
    """Returns whether the forkserver is stopped, as by SIGSTOP, so that the next start would have to end it first."""
    pid = _pid()
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "T"
    except OSError:  # it has not started yet, or it has ended: the next start begins one
        return False


def end_stopped() -> None:
    """Ends the forkserver if it is stopped and no process is starting; the next start begins a new one."""
    if _fork_lock.acquire(blocking=False):  # else the limit of that start ends it
        try:
            if is_stopped():
                _end(_pid(), "was stopped")
        finally:
            _fork_lock.release()


def _pid() -> int | None:
    pid: int | None = getattr(multiprocessing.forkserver, "_forkserver")._forkserver_pid  # noqa: B009  # not in the stubs
    return pid


def _end(pid: int | None, reason: str) -> None:
    if pid is None:
        return
    log.warning("the forkserver, process %d, %s: it is ended, and the next start begins a new one", pid, reason)
    with contextlib.suppress(ProcessLookupError, ChildProcessError):  # it has ended meanwhile
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # the next start reads its status, and so learns of its end


def present_devices() -> list[DeviceFacts]:
    """Returns what a process of its own finds of this machine's devices: this one never loads a GPU's driver."""
    process, sockets = start_process(ProcessKind.DEVICES)
    sockets.requests.settimeout(_DEVICES_SECONDS)
    channel = Channel(sockets.requests)
    try:
        message = channel.receive()
    except TimeoutError:
        message = None
    finally:
        channel.close()
        sockets.close()
        process.kill()
        process.join()
        process.close()
    if message is None:
        text = f"its driver did not answer in {_DEVICES_SECONDS:g} s: nvidia-smi says more"
        return [cpu_facts(), DeviceFacts("gpu", unusable=text)]
    return [DeviceFacts(*facts) for facts in message[0]]
