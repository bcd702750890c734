"""The way to the tables of keys, limits, use and audit: one thing at a time, in threads, and no caller waits for long.

A database may be away, or take a question and never answer. After some seconds who waits is refused; what was begun
goes on, and counts when it is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from teletape_server.identity.keys import StoreError
from teletape_server.problems import Problem

if TYPE_CHECKING:
    from teletape_server.identity.store import Store

T = TypeVar("T")

_SECONDS: Final = 10.0  # that a request waits for the database


class StoreTurns:
    """Does things with a store.

    Args:
        store: The store; None: there is none.
    """

    def __init__(self, store: Store | None) -> None:
        self.store = store
        self._turn = asyncio.Lock()

    async def do(
        self, work: Callable[[Store], T], take: Callable[[T], None] | None = None, *, is_patient: bool = False
    ) -> T:
        """Does something with the store in a thread: the event loop does not wait for a disk.

        Args:
            work: Is called with the store.
            take: Is called with what that returns, also if nobody waits for it any more.
            is_patient: Whether to wait however long it takes.

        Raises:
            Problem: invalid_request: there is no store; overloaded: it does not answer.
        """
        store = self.store
        if store is None:
            raise Problem(
                "invalid_request",
                "this server has no place for keys and for an audit: start it with a folder for data (--data-dir), or "
                "name a database (TELETAPE_KEY_DATABASE)",
            )
        if is_patient:
            await self._turn.acquire()
            return await self._do(store, work, take)
        loop = asyncio.get_running_loop()
        until = loop.time() + _SECONDS
        try:
            await asyncio.wait_for(self._turn.acquire(), _SECONDS)
        except TimeoutError:
            raise _no_answer("nothing was changed") from None
        doing = loop.create_task(self._do(store, work, take))
        done, _ = await asyncio.wait([doing], timeout=max(until - loop.time(), 0.0))
        if not done:
            doing.add_done_callback(_ignored)
            raise _no_answer("what was asked for may still be done")
        return doing.result()

    async def _do(self, store: Store, work: Callable[[Store], T], take: Callable[[T], None] | None) -> T:
        try:
            result = await asyncio.to_thread(work, store)
        except StoreError as error:
            raise _no_answer("nothing was changed") from error
        finally:
            self._turn.release()
        if take is not None:
            take(result)
        return result


def _no_answer(what: str) -> Problem:
    known = "the keys and limits that are known count"
    text = f"the database of keys does not answer, and {what}; {known}: try again later"
    return Problem("overloaded", text, headers={"Retry-After": "5"})


def _ignored(task: asyncio.Task[Any]) -> None:
    """Lets a failure pass of which its caller does not learn any more."""
    if not task.cancelled():
        task.exception()
