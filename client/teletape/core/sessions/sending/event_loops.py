"""Waiting in an event loop of asyncio or trio. Neither is imported: a library that a program does not use runs no loop.

A `Wakeup` is what a task waits for until another thread wakes it, without a thread of its own; `in_thread` runs what
can only be waited for in a thread.
"""

from __future__ import annotations

import contextvars
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from teletape.core.sessions.sending.strands import acting, running_task

T = TypeVar("T")


class Wakeup(Protocol):
    """A task's wait."""

    def wake(self) -> None:
        """Ends the wait; from any thread, and more than once."""

    async def wait(self, until: float | None) -> bool:
        """Waits until it is woken, or until a time on the monotonic clock; returns whether it was woken."""


class _InAsyncio:
    def __init__(self, asyncio: Any) -> None:
        self._loop = asyncio.get_running_loop()
        self._woken = self._loop.create_future()

    def wake(self) -> None:
        with suppress(RuntimeError):  # the loop has ended, and with it the task
            self._loop.call_soon_threadsafe(self._end, True)

    def _end(self, is_woken: bool) -> None:  # as a loop calls it
        if not self._woken.done():
            self._woken.set_result(is_woken)

    async def wait(self, until: float | None) -> bool:
        if until is None:
            return await self._woken  # type: ignore[no-any-return]  # a future of any result
        timer = self._loop.call_later(max(0.0, until - time.monotonic()), self._end, False)
        try:
            return await self._woken  # type: ignore[no-any-return]  # as above
        finally:
            timer.cancel()


class _InTrio:
    def __init__(self, trio: Any) -> None:
        self._trio, self._token, self._event = trio, trio.lowlevel.current_trio_token(), trio.Event()

    def wake(self) -> None:
        with suppress(self._trio.RunFinishedError):
            self._token.run_sync_soon(self._event.set)

    async def wait(self, until: float | None) -> bool:
        if until is None:
            await self._event.wait()
            return True
        with self._trio.move_on_after(max(0.0, until - time.monotonic())):
            await self._event.wait()
        return self._event.is_set()  # type: ignore[no-any-return]  # a bool


def wakeup() -> Wakeup:
    """Returns a wait of the running task.

    Raises:
        RuntimeError: There is no event loop of asyncio or trio.
    """
    asyncio = _running_asyncio()
    return _InTrio(_running_trio()) if asyncio is None else _InAsyncio(asyncio)


async def in_thread(function: Callable[[], T]) -> T:
    """Runs a function in a thread, in the task's context, while the event loop goes on.

    Raises:
        RuntimeError: There is no event loop of asyncio or trio.
    """
    context = contextvars.copy_context()
    context.run(acting.set, running_task())
    asyncio, call = _running_asyncio(), context.run
    if asyncio is not None:
        result: T = await asyncio.get_running_loop().run_in_executor(None, call, function)
        return result
    return await _running_trio().to_thread.run_sync(call, function)  # type: ignore[no-any-return]  # of the function


def check_loop() -> None:
    """Checks that there is something to wait in.

    Raises:
        RuntimeError: There is no event loop of asyncio or trio.
    """
    if _running_asyncio() is None:
        _running_trio()


def runs_loop() -> bool:
    """Whether an event loop of asyncio or trio runs in this thread."""
    with suppress(RuntimeError):
        check_loop()
        return True
    return False


def _running_asyncio() -> Any:
    asyncio = sys.modules.get("asyncio")
    running = None if asyncio is None else asyncio._get_running_loop()
    return None if running is None else asyncio


def _running_trio() -> Any:
    trio = sys.modules.get("trio")
    if trio is not None:
        with suppress(RuntimeError):
            trio.lowlevel.current_trio_token()
            return trio
    raise RuntimeError("await needs the event loop of asyncio or trio")
