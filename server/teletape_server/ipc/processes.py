"""The kinds of processes that the server starts, by name: the server imports nothing of what they run."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import Any


class ProcessKind(StrEnum):
    """What a process runs: a module and a function, whose first argument is the process's `Sockets`."""

    SESSION = "teletape_server.worker.main:main"  #: The process of a session.
    GPU = "teletape_server.worker.gpu_process:main"  #: The process that the sessions of a GPU share.
    DEVICES = "teletape_server.worker.gpu_process:devices"  #: A process that finds this machine's devices, and ends.

    @property
    def module(self) -> str:
        """The module's name."""
        return self.value.partition(":")[0]


def run(kind: ProcessKind, *arguments: Any) -> None:
    """Runs what a process is for; the first thing that a new process calls."""
    getattr(import_module(kind.module), kind.value.partition(":")[2])(*arguments)
