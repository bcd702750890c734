"""Waits for a session's process to end, and ends it if it does not by itself."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from typing import Final, Protocol

_UNKNOWN_STATUS: Final = 255  # of a process whose forkserver has ended: it may still run
_LOOK_SECONDS: Final = 0.01  # between two looks at whether such a process has ended

log = logging.getLogger("teletape")


class ProcessOfHost(Protocol):
    """What a host needs of its process: one of its own, or a seat in one that several sessions share."""

    @property
    def pid(self) -> int | None:
        """The process id."""

    @property
    def sentinel(self) -> int:
        """A file descriptor that becomes readable when it has ended."""

    @property
    def exitcode(self) -> int | None:
        """Its status; None: it runs."""

    def join(self, timeout: float | None = None) -> None:
        """Reads the status of a process that has ended."""

    def kill(self) -> None:
        """Ends it."""

    def close(self) -> None:
        """Closes the files that show its end, after it."""


class Reaper:
    """Waits for one process.

    Args:
        process: The process.

    Attributes:
        gone: Resolves after it has ended, and those who wait for `reap` know.
    """

    def __init__(self, process: ProcessOfHost) -> None:
        self._process, self._pid = process, process.pid
        self._loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._reaping: asyncio.Task[int | None] | None = None

    def reap(self, grace: float) -> asyncio.Task[int | None]:
        """Waits for the process, kills it if it does not end within `grace` seconds.

        The task returns its exit status, or None if that cannot be known. It does not fail: callers wait for it.
        """
        if self._reaping is None:
            self._reaping = self._loop.create_task(self._wait_or_kill(grace))
            self._reaping.add_done_callback(lambda _: self._loop.call_soon(self.gone.set_result, None))
        return self._reaping

    async def _wait_or_kill(self, grace: float) -> int | None:
        try:
            if not (has_ended := await self._exits_in_time(grace)):
                self._process.kill()
                has_ended = await self._exits_in_time(grace)
            status = self._process.exitcode
            if status == _UNKNOWN_STATUS and self._pid is not None:
                await _end_orphan(self._pid, grace)
            if has_ended:  # a host lies in reference cycles: its files would stay open until these are collected
                self._process.close()
        except Exception:
            log.exception("the session's process %s could not be ended", self._pid)
            return None
        return status

    async def _exits_in_time(self, grace: float) -> bool:
        """Waits until the process has ended, or the grace is over; no thread waits, so a hanging process costs none."""
        exited = asyncio.Event()
        sentinel = self._process.sentinel
        self._loop.add_reader(sentinel, exited.set)
        try:
            await asyncio.wait_for(exited.wait(), grace)
        except TimeoutError:
            return False
        finally:
            self._loop.remove_reader(sentinel)
        self._process.join(0)  # reads the exit status
        return True


async def _end_orphan(pid: int, grace: float) -> None:
    """Ends a process whose forkserver has ended, and reads its status: it is a child of a server that adopts such."""
    with contextlib.suppress(ProcessLookupError):  # it has ended by itself
        os.kill(pid, signal.SIGKILL)
    for _ in range(int(grace / _LOOK_SECONDS)):
        if _has_been_read(pid):
            return
        await asyncio.sleep(_LOOK_SECONDS)


def _has_been_read(pid: int) -> bool:
    """Reads the status of a process if it has ended; False: it has not."""
    try:
        return os.waitpid(pid, os.WNOHANG) != (0, 0)
    except ChildProcessError:  # it is not a child of this process
        return True
