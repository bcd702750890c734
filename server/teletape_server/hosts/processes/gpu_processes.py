"""The processes of a server's GPUs: one for each GPU that has sessions, and for a while after its last has ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from multiprocessing.process import BaseProcess
from typing import Final

from teletape_server.hosts.processes.gpu_seats import GpuProcess, Seat
from teletape_server.ipc.control import Sockets

_IDLE_SECONDS: Final = 60.0  #: A process without sessions has a GPU's memory for this long: to start one takes seconds.


class GpuProcesses:
    """Starts the processes, and ends those without sessions.

    Args:
        start: Starts a process of `ProcessKind.GPU`, and returns it with the server's ends of its sockets.
    """

    def __init__(self, start: Callable[[], Awaitable[tuple[BaseProcess, Sockets]]]) -> None:
        self._start = start
        self._by_device: dict[str, GpuProcess] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._ending: list[GpuProcess] = []

    async def seat(self, device: str) -> tuple[Seat, Sockets]:
        """Returns a seat in the process of a GPU, which is started if there is none.

        Raises:
            OSError: There are too many files or processes.
        """
        async with self._locks.setdefault(device, asyncio.Lock()):
            process = self._by_device.get(device)
            if process is not None:
                if process.is_alive():
                    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has just ended
                        return process.seat()
                self._end(device)
            process = self._by_device[device] = GpuProcess(*await self._start())
            return process.seat()

    def end_idle(self, now: float) -> None:
        """Ends the processes that have had no session for a while; called at regular times."""
        for device, process in [*self._by_device.items()]:
            if process.seats:
                continue
            process.idle_since = now if process.idle_since is None else process.idle_since
            if now - process.idle_since > _IDLE_SECONDS or not process.is_alive():
                self._end(device)
        for process in [*self._ending]:
            if not process.seats and not process.is_alive():
                self._ending.remove(process)
                process.close()

    def close(self) -> None:
        """Ends every process."""
        for device in [*self._by_device]:
            self._end(device)

    def _end(self, device: str) -> None:
        process = self._by_device.pop(device)
        process.end()
        self._ending.append(process)
