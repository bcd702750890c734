"""The kinds of processes that the server starts, by name: the server imports nothing of what they run."""

from __future__ import annotations

import multiprocessing.forkserver
import os
import signal
import time
from contextlib import suppress
from enum import StrEnum
from importlib import import_module
from typing import Any, Final

_PROCESS_CLOCK: Final = 2  # CPUCLOCK_SCHED of a process: clock_getcpuclockid(3) returns such a number


class ProcessKind(StrEnum):
    """What a process runs: a module and a function, whose first argument is the process's `Sockets`."""

    SESSION = "teletape_server.worker.main:main"  #: The process of a session.
    GPU = "teletape_server.worker.gpu_process:main"  #: The process that the sessions of a GPU share.
    DEVICES = "teletape_server.worker.gpu_process:devices"  #: A process that finds this machine's devices, and ends.

    @property
    def module(self) -> str:
        """The module's name."""
        return self.value.partition(":")[0]


class CpuClock:
    """The CPU time of all threads of a process, as the kernel counts it: no process can change what it says.

    Args:
        pid: Of the process; None: its time is not looked at.
    """

    def __init__(self, pid: int | None) -> None:
        self._pid, self._before, self._last = pid, 0.0, 0.0

    def begin(self) -> None:
        """Counts from now on."""
        self._before += self.seconds()
        self._last = 0.0

    def seconds(self) -> float:
        """Returns the seconds since `begin`; those of the last time, if the process has ended."""
        if self._pid is not None:
            with suppress(OSError):
                self._last = time.clock_gettime(~self._pid << 3 | _PROCESS_CLOCK) - self._before
        return self._last


def _let_forkserver_end() -> None:
    """Closes this process's end of what the forkserver lives by: then that ends with the server, and not after this."""
    starter: Any = getattr(multiprocessing.forkserver, "_forkserver")  # noqa: B009  # not in the stubs
    if starter._forkserver_alive_fd is not None:
        os.close(starter._forkserver_alive_fd)
        starter._forkserver_alive_fd = None


def run(kind: ProcessKind, *arguments: Any) -> None:
    """Runs what a process is for; the first thing that a new process calls.

    Ctrl-C, and the end of a terminal, reach the whole process group: the server ends its processes by their sockets.
    """
    _let_forkserver_end()
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    getattr(import_module(kind.module), kind.value.partition(":")[2])(*arguments)
