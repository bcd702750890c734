"""Gives sessions the machine's memory, one after the other: others give back what they do not use, or are parked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from teletape_server.problems import Problem
from teletape_server.sessions.hosting.ledger import Reservation
from teletape_server.sessions.hosting.places import Places

_GIVING_BACK: Final = 0.05  # seconds that processes which run nothing may take to give memory back
_LOOK: Final = 0.005  # between two looks at whether they have
_LONGEST: Final = 15.0  # seconds for which others are parked for a request that runs

T = TypeVar("T")


class Growth:
    """The machine's memory as a session's host gets it: implements `Reserved`.

    Args:
        places: Admits it.
        reservation: Of the host.
        limit: Returns the bytes that it may have reserved, given those that it needs in all; raises a problem.
        park: Begins to park the session that is idle for longest, for the reason given; None: there is none.
    """

    def __init__(
        self,
        places: Places,
        reservation: Reservation,
        limit: Callable[[int], int],
        park: Callable[[str], asyncio.Task[None] | None],
    ) -> None:
        self._places, self._reservation, self._limit, self._park = places, reservation, limit, park

    @property
    def reserved(self) -> int:
        """Bytes."""
        return self._reservation.reserved

    @property
    def look(self) -> Callable[[], tuple[int, int]]:
        """Looks at the host; see `Reserved`."""
        return self._reservation.look

    @look.setter
    def look(self, look: Callable[[], tuple[int, int]]) -> None:
        self._reservation.look = look

    @property
    def give_back(self) -> Callable[[], bool]:
        """Has the host give memory back; see `Reserved`."""
        return self._reservation.give_back

    @give_back.setter
    def give_back(self, give_back: Callable[[], bool]) -> None:
        self._reservation.give_back = give_back

    async def extend(self, needed: int) -> None:
        """Has the bytes that are needed in all reserved; see `Reserved`."""
        places, reservation = self._places, self._reservation
        limit = self._limit(needed)
        if needed <= reservation.reserved:  # it would have more to spare: none is parked for that
            places.extend_if_free(reservation, needed, limit)
            return
        why = "another session needs more memory"
        await with_room(lambda: places.extend(reservation, needed, limit), places, self._park, why, _LONGEST)

    def note_started(self, device: str) -> None:
        """Notes that the process has started, and on which device: what it takes itself is in the machine's memory."""
        self._reservation.start_bytes = 0
        if device != "cpu":  # its arrays are not
            self._reservation.reserved = 0

    def release(self) -> None:
        """Ends the reservation, when the host has ended."""
        self._places.release(self._reservation)


async def with_room(
    admitted: Callable[[], T],
    places: Places,
    park: Callable[[str], asyncio.Task[None] | None],
    why: str,
    seconds: float = float("inf"),
) -> T:
    """Returns what a function returns, as soon as the machine has the memory for it.

    Args:
        admitted: Raises a problem if it has not.
        places: Has memory given back that is reserved and not used.
        park: See `Growth`.
        why: For the log.
        seconds: After which no session is parked any more.

    Raises:
        Problem: As of the function; no session can be parked.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while True:
        try:
            return admitted()
        except Problem:
            if places.reclaim():
                end = loop.time() + _GIVING_BACK
                while places.reclaim() and loop.time() < end:  # noqa: ASYNC110  # a process writes it into its page
                    await asyncio.sleep(_LOOK)
                try:
                    return admitted()
                except Problem:
                    pass
            if loop.time() > until or (parking := park(why)) is None:
                raise
            await asyncio.wait([parking], timeout=max(until - loop.time(), 0.0) if seconds < float("inf") else None)
