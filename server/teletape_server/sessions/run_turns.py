"""The turns of requests without a session: each waits until one more may run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from teletape_server.problems import overloaded, shutting_down
from teletape_server.sessions.quotas import Quota, RunQueue


class RunTurns:
    """Lets requests run in the order of `RunQueue`.

    Args:
        quota: How many may run and wait.
        wait: Seconds that a request may wait.
    """

    def __init__(self, quota: Quota, wait: float) -> None:
        self._quota, self._wait = quota, wait
        self._queue: RunQueue[asyncio.Future[None]] = RunQueue(quota)

    @property
    def counts(self) -> tuple[int, int]:
        """How many run, and how many wait."""
        return self._queue.running, self._queue.waiting

    async def enter(self, owner: str) -> None:
        """Waits until one more request of an owner may run; it does until `leave`.

        Raises:
            Problem: overloaded, shutting_down.
        """
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._queue.enter(owner, turn):
            return
        try:
            await asyncio.wait_for(asyncio.shield(turn), self._wait)
        except TimeoutError:
            if not turn.done():
                raise overloaded(
                    f"the request has waited {self._wait:g} s for one of the {self._quota.runs} places of POST "
                    "/v1/run: it changed nothing"
                ) from None
        except BaseException:
            if turn.done() and turn.exception() is None:
                self.leave(owner)
            raise
        finally:
            self._queue.give_up(turn)

    def leave(self, owner: str) -> None:
        """Notes that a running request of an owner has ended; others begin."""
        _begin(self._queue.leave(owner))

    def stop(self) -> None:
        """Refuses all that wait, since the server ends."""
        for turn in self._queue.give_up_all():
            turn.set_exception(shutting_down())


def _begin(turns: Iterable[asyncio.Future[None]]) -> None:
    for turn in turns:
        turn.set_result(None)
