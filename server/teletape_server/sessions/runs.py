"""Requests without a session: each waits for its turn, and then gets a session that only such requests have.

That session begins anew with each request, and its process goes on: it waits for the next request of its owner. While
a connection of its owner is lent to it, it keeps its place, until another request waits for one.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

from teletape_server.hosts.placement import is_of
from teletape_server.ipc.durations import Durations
from teletape_server.problems import shutting_down
from teletape_server.sessions.entry import SessionEntry
from teletape_server.sessions.lifecycle import Phase
from teletape_server.sessions.quotas import Quota, RunQueue

_CALM_SECONDS: Final = 1.0  # in which no request has waited before connections are lent
IDLE_SECONDS: Final = 60.0  #: After which a session that waits for a request without one ends.


class Runs:
    """Lets requests run in the order of `RunQueue`, and keeps sessions for the next ones.

    Args:
        quota: How many may run and wait.
        wait: Seconds that a request may wait.

    Attributes:
        begun: How many have begun since the start.
        durations: How long those that have ended had their places; without those whose connections were lent.
        waited: How long they have waited for a place, by owner.
    """

    def __init__(self, quota: Quota, wait: float) -> None:
        self._quota, self._wait = quota, wait
        self._queue: RunQueue[asyncio.Future[Any]] = RunQueue(quota)
        self.begun = 0
        self._idle: list[SessionEntry] = []  # what has waited longest comes first
        self._lent: list[SessionEntry] = []  # to which a connection is lent
        self._begun_at: dict[SessionEntry, float] = {}  # those that have a place, on the loop's clock
        self._came_at: dict[asyncio.Future[Any], float] = {}  # those that wait, likewise
        self.durations = Durations()
        self.waited: defaultdict[str, Durations] = defaultdict(Durations)
        self._waited = -math.inf  # when a request had to wait, on the loop's clock

    @property
    def counts(self) -> tuple[int, int]:
        """How many run, and how many wait."""
        without = sum(not entry.note_facts().running for entry in self._lent)
        return self._queue.running - without, self._queue.waiting

    @property
    def places(self) -> int:
        """How many may run at a time."""
        return self._quota.runs

    @property
    def waiting_owners(self) -> list[str]:
        """The owner of each that waits."""
        return self._queue.waiting_owners

    @property
    def typical_seconds(self) -> float | None:
        """Seconds for which they have their places on average; None: none has ended yet."""
        return self.durations.seconds / total if (total := self.durations.total) else None

    def ahead(self, turn: asyncio.Future[Any]) -> list[str] | None:
        """Returns the owners whose requests get a place before this one; see `RunQueue.ahead`."""
        return self._queue.ahead(turn)

    def ahead_of_next(self, owner: str) -> list[str] | None:
        """Returns the owners that would come before a request of an owner that came now; see `RunQueue`."""
        return self._queue.ahead_of_next(owner)

    def waiting(self, owner: str) -> list[tuple[asyncio.Future[Any], float]]:
        """Returns the turns of an owner's requests that wait, and when they came, on the loop's clock."""
        return [(turn, self._came_at[turn]) for turn in self._queue.of_owner(owner)]

    def begun_for(self) -> list[tuple[str, float]]:
        """Returns the owner of each that has a place, and for how many seconds it has had it."""
        now = asyncio.get_running_loop().time()
        return [(entry.owner, now - began) for entry, began in self._begun_at.items()]

    async def begin(
        self,
        owner: str,
        account: str,
        device: str,
        new: Callable[[], SessionEntry],
        end: Callable[[SessionEntry], None],
        turn: asyncio.Future[Any] | None = None,
    ) -> SessionEntry:
        """Returns a session that has nothing, for one request, as soon as the request's turn has come.

        Args:
            owner: Whose request it is.
            account: Which it counts for.
            device: Where it may compute: cpu, gpu:N, gpu or auto.
            new: Returns a session that is to be woken.
            end: Ends a session that waits for requests: there are as many processes as requests may run.
            turn: Resolves when the request's turn has come, if it has to wait; it is known by it in `ahead`.

        Raises:
            Problem: overloaded, unknown_device, shutting_down.
        """
        turn = turn or asyncio.get_running_loop().create_future()
        came = asyncio.get_running_loop().time()
        if not self._queue.enter(owner, turn):
            await self._wait_for(turn, owner)
        self.waited[owner].note(asyncio.get_running_loop().time() - came)
        self.begun += 1
        entry = self._waiting_session(account, device)
        if entry is not None:
            self._begun_at[entry] = asyncio.get_running_loop().time()
            return entry
        for _ in range(len(self._idle) + self._queue.running - self._quota.runs):
            end(self._idle.pop(0))
        entry = new()
        self._begun_at[entry] = asyncio.get_running_loop().time()
        try:
            await entry.wake()
        except BaseException:
            entry.stop_waking(shutting_down())
            del self._begun_at[entry]
            self._leave(owner)
            raise
        return entry

    def lend(self, entry: SessionEntry) -> bool:
        """Returns whether a connection may be lent to a session that waits for requests; then it has a place."""
        is_calm = not self._queue.waiting and asyncio.get_running_loop().time() - self._waited > _CALM_SECONDS
        if not is_calm or entry not in self._idle or not self._queue.enter(entry.owner):
            return False
        self._idle.remove(entry)
        self._lent.append(entry)
        self._begun_at[entry] = asyncio.get_running_loop().time()
        return True

    async def recall(self, *, before: float = math.inf) -> None:
        """Reclaims the connections that are lent, to sessions that end before some time."""
        hosts = [entry.host for entry in self._lent if entry.lease.terms.ends < before]
        await asyncio.gather(*[host.recall() for host in hosts if host is not None])

    async def _wait_for(self, turn: asyncio.Future[Any], owner: str) -> None:
        self._waited = self._came_at[turn] = asyncio.get_running_loop().time()
        try:
            if self._lent:
                await self.recall()
            await asyncio.wait_for(asyncio.shield(turn), self._wait)
        except TimeoutError:
            if not turn.done():
                raise self._queue.refusal(
                    f"the request has waited {self._wait:g} s for one of the {self._quota.runs} places of POST "
                    "/v1/run, and changed nothing"
                ) from None
        except BaseException:
            if turn.done() and turn.exception() is None:
                self._leave(owner)
            raise
        finally:
            self._queue.give_up(turn)
            del self._came_at[turn]

    def _waiting_session(self, account: str, device: str) -> SessionEntry | None:
        """Returns a session of an account that waits for a request, and waits no longer; None: there is none."""
        idle = self._idle = [entry for entry in self._idle if entry.record.state.phase is Phase.LIVE]
        for entry in reversed(idle):  # its process has worked last
            if entry.account == account and is_of(entry.device, device):
                idle.remove(entry)
                return entry
        return None

    def end(self, entry: SessionEntry, *, keep: bool) -> None:
        """Notes that a request has ended; others begin.

        Args:
            entry: The session that it had.
            keep: Whether the session waits for another request.
        """
        began = self._begun_at.pop(entry)
        if entry in self._lent:
            self._lent.remove(entry)
        else:
            self.durations.note(asyncio.get_running_loop().time() - began)
        if keep:
            self._idle.append(entry)
        self._leave(entry.owner)

    def _leave(self, owner: str) -> None:
        for turn in self._queue.leave(owner):
            turn.set_result(None)

    def stop(self) -> None:
        """Refuses all that wait, since the server ends."""
        for turn in self._queue.give_up_all():
            turn.set_exception(shutting_down())
