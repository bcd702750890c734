"""Limits on sessions, memory, bodies and waiting requests: functions of counts that the caller passes.

And the order in which requests without a session run.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from teletape_server.problems import Problem, overloaded

_RETRY_SECONDS: Final = 10  # after which a creation that found no place is best sent again

_NAMED: Final = 5  # owners that a refusal names, those with most places

Request = TypeVar("Request")


@dataclass(frozen=True)
class Quota:
    """The limits of this server.

    Attributes:
        sessions: Sessions in all that have a place: live ones, and those that start, wake or recover.
        memory_limit: Bytes of arrays in one session.
        bodies_per_key: Bytes of one owner's request bodies that are being received or not answered yet.
        bodies: The same of all owners.
        waiting: Unanswered requests of one session.
        keys: Returns how many owners there can be now.
        lasting_per_key: Sessions of one owner that outlive their processes.
        room_after: Seconds without work after which a session may end to make room for another owner's.
        parks_after: Seconds without work after which one that outlives its process may be parked to make room.
        runs: Requests without a session that run at a time.
        waiting_runs: Such requests of one owner that wait for their turn.
        disk_limit: Bytes of the files of one session.
    """

    sessions: int
    memory_limit: int
    bodies_per_key: int
    bodies: int
    waiting: int = 128
    keys: Callable[[], int] = field(default_factory=lambda: lambda: 1)
    lasting_per_key: int = 1000
    room_after: float = 300.0
    parks_after: float = 5.0
    runs: int = 8
    waiting_runs: int = 128
    disk_limit: int = 16 << 30

    def admit(self, mine: int, all_sessions: int, owners: int) -> None:
        """Checks that the server has a place for one more session of an owner.

        Args:
            mine: Live sessions of the owner.
            all_sessions: Live sessions of all owners.
            owners: Owners that have a session.

        Raises:
            Problem: overloaded.
        """
        if self.sessions_left(mine, all_sessions, owners) <= 0:
            reserved = self._reserved(mine, owners)
            reserve = f", and {reserved} places are kept for keys that have no session" if reserved else ""
            advice = "End one of yours that you no longer need (GET /v1/sessions), or send" if mine else "Send"
            raise Problem(
                "overloaded",
                f"this server has {all_sessions} sessions, the limit is {self.sessions}{reserve}; none has been idle "
                f"for {self.room_after:g} s whose key has more than yours. {advice} the request again later",
                headers={"Retry-After": str(_RETRY_SECONDS)},
                found=all_sessions,
                limit=self.sessions,
            )

    def admit_lasting(self, mine: int) -> None:
        """Checks that an owner with `mine` sessions that outlive their processes may have one more of them.

        Raises:
            Problem: too_many_sessions.
        """
        if mine >= self.lasting_per_key:
            raise Problem(
                "too_many_sessions",
                f"you have {mine} sessions with files, parked ones too, the limit is {self.lasting_per_key}: end those "
                "that you no longer need (GET /v1/sessions)",
                found=mine,
                limit=self.lasting_per_key,
            )

    def sessions_left(self, mine: int, all_sessions: int, owners: int) -> int:
        """Returns how many more places an owner may take now; the arguments are those of `admit`."""
        of_all = self.sessions - self._reserved(mine, owners) - all_sessions
        if not mine:  # the reserve is for this first one
            of_all = max(of_all, min(self.sessions - all_sessions, 1))
        return max(of_all, 0)

    def _reserved(self, mine: int, owners: int) -> int:
        """Returns the places for sessions of keys that have none, apart from the owner's own."""
        without = self.keys() - owners - (mine == 0)
        return max(min(without, self.sessions // 2), 0)

    def makes_room(self, mine: int, idle: float, sessions: int) -> bool:
        """Returns whether a session may end to make room for one more of another owner.

        Args:
            mine: Live sessions of the owner that wants one.
            idle: Seconds for which the session has not worked.
            sessions: Live sessions of its owner.
        """
        return idle >= self.room_after and (mine == 0 or sessions > mine + 1)

    def requests_left(self, waiting: int) -> int:
        """Returns how many more requests a session with `waiting` ones may take now."""
        return max(self.waiting - waiting, 0)

    def memory(self, requested: int | None) -> int:
        """Returns the memory limit of a new session in bytes.

        Args:
            requested: Bytes; None: the most that a session may have.

        Raises:
            Problem: invalid_request, for more than that.
        """
        if requested is None:
            return self.memory_limit
        if requested > self.memory_limit:
            raise Problem(
                "invalid_request",
                f"memory_limit {requested} is too large: a session may have {self.memory_limit} bytes",
                found=requested,
                limit=self.memory_limit,
            )
        return requested

    def disk(self, left: float) -> int:
        """Returns the bytes that the files of a session may have; `left`: those that its account leaves for it."""
        return int(min(self.disk_limit, max(left, 0)))

    def queue(self, waiting: int) -> None:
        """Checks that a session with `waiting` requests, received or not yet, may take one more.

        Raises:
            Problem: busy.
        """
        if waiting >= self.waiting:
            raise Problem(
                "busy",
                f"this session has {waiting} unanswered requests, the limit: send the next one after an answer",
                headers={"Retry-After": "1"},
                waiting=waiting,
            )

    def body(self, length: int, mine: int, all_bytes: int) -> None:
        """Checks that an owner may send a body of `length` bytes; one is always allowed if there is no other.

        Args:
            length: Bytes of the body.
            mine: Bytes of the owner's bodies that are being received or not answered yet.
            all_bytes: The same of all owners.

        Raises:
            Problem: busy, resource_exhausted.
        """
        for code, under_way, of_whom, limit, remedy in (
            ("busy", mine, "of your requests", self.bodies_per_key, "Send it after an answer"),
            ("resource_exhausted", all_bytes, "of requests to this server", self.bodies, "Send it again later"),
        ):
            if under_way and under_way + length > limit:
                raise Problem(
                    code,
                    f"a body of {length} bytes is too much now: {under_way} bytes {of_whom} are under way, the limit "
                    f"is {limit}. {remedy}",
                    headers={"Retry-After": "1"},
                    found=under_way,
                    limit=limit,
                )


class RunQueue(Generic[Request]):
    """The order of requests without a session: a number of them runs at a time, the others wait.

    A free place goes to the owner with the fewest running ones, and of several to whoever came first. While there are
    owners without a running one, the last places are theirs, also before they ask.

    Args:
        quota: How many may run and wait.
    """

    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        self._running: Counter[str] = Counter()  # by owner; none is zero
        self._waiting: dict[str, dict[Request, int]] = {}  # by owner, in order of arrival, which is numbered
        self._last = 0

    @property
    def running(self) -> int:
        """How many run."""
        return self._running.total()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return sum(map(len, self._waiting.values()))

    @property
    def waiting_owners(self) -> list[str]:
        """The owner of each that waits."""
        return [owner for owner, mine in self._waiting.items() for _ in mine]

    def of_owner(self, owner: str) -> list[Request]:
        """Returns an owner's requests that wait, in order of arrival."""
        return [*self._waiting.get(owner, ())]

    def ahead(self, request: Request) -> list[str] | None:
        """Returns the owners whose requests get a place before this one, in that order; None: it does not wait.

        As if none came meanwhile, and each free place had been that of the owner with the most.
        """
        if not any(request in mine for mine in self._waiting.values()):
            return None
        running = self._running.copy()
        waiting = {owner: deque(mine.items()) for owner, mine in self._waiting.items()}
        owners: list[str] = []
        while True:
            for most in running.most_common(1):
                running[most[0]] -= 1
            owner = min(waiting, key=lambda key: (running[key], waiting[key][0][1]))
            if waiting[owner].popleft()[0] == request:
                return owners
            owners.append(owner)
            running[owner] += 1
            if not waiting[owner]:
                del waiting[owner]

    def enter(self, owner: str, request: Request | None = None) -> bool:
        """Returns whether a request may run now; otherwise it waits until `leave` returns it, unless it is None.

        Raises:
            Problem: overloaded, if too many of the owner wait.
        """
        if owner not in self._waiting and self._has_place(owner):
            self._running[owner] += 1
            return True
        if request is None:
            return False
        self._check_waiting(owner)
        self._last += 1
        self._waiting.setdefault(owner, {})[request] = self._last
        return False

    def ahead_of_next(self, owner: str) -> list[str] | None:
        """Returns what `ahead` would return of a request of an owner that came now; None: it would run.

        Raises:
            Problem: overloaded, if too many of the owner wait.
        """
        if owner not in self._waiting and self._has_place(owner):
            return None
        self._check_waiting(owner)
        mine = self._waiting.setdefault(owner, {})
        next_one: Any = object()
        mine[next_one] = self._last + 1
        owners = self.ahead(next_one)
        self.give_up(next_one)
        return owners

    def _check_waiting(self, owner: str) -> None:
        mine = len(self._waiting.get(owner, ()))
        if mine >= self._quota.waiting_runs:
            raise self.refusal(
                f"{mine} of your requests wait for one of the {self._quota.runs} places of POST /v1/run, the limit"
            )

    def refusal(self, why: str) -> Problem:
        """Returns the problem of a request that gets no place: it says who has them."""
        most = self._running.most_common(_NAMED)
        users = ", ".join(f"{owner} has {count}" for owner, count in most)
        problem = overloaded(f"{why}. Of the places, {users or 'none is taken'}")
        problem.details = {
            "limit": self._quota.runs,
            "waiting": self.waiting,
            "owners": [{"owner": owner, "running": count} for owner, count in most],
        }
        return problem

    def leave(self, owner: str) -> list[Request]:
        """Notes that a running request of an owner has ended; returns those that run from now on."""
        self._running[owner] -= 1
        if not self._running[owner]:
            del self._running[owner]
        begun = []
        while owners := [owner for owner in self._waiting if self._has_place(owner)]:
            next_owner = min(
                owners, key=lambda owner: (self._running[owner], next(iter(self._waiting[owner].values())))
            )
            request = next(iter(self._waiting[next_owner]))
            self.give_up(request)
            begun.append(request)
            self._running[next_owner] += 1
        return begun

    def give_up(self, request: Request) -> None:
        """Notes that a request does not wait any longer."""
        for owner, mine in self._waiting.items():
            if mine.pop(request, None) is not None:
                if not mine:
                    del self._waiting[owner]
                return

    def give_up_all(self) -> list[Request]:
        """Returns the requests that wait; they do not any longer."""
        waiting = [request for mine in self._waiting.values() for request in mine]
        self._waiting.clear()
        return waiting

    def _has_place(self, owner: str) -> bool:
        free = self._quota.runs - self.running
        if not self._running[owner]:
            return free > 0
        others = self._quota.keys() - len(self._running)
        return free > min(others, self._quota.runs // 4)
