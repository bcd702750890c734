"""The places and the memory that sessions take, and which session is parked, or ends, to make room for another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Final

from teletape_server.budgets.budgets import Budgets, Room
from teletape_server.budgets.limits import Present
from teletape_server.problems import Problem, overloaded
from teletape_server.sessions.entry import SessionEntry
from teletape_server.sessions.quotas import Quota

_PROCESS_BYTES: Final = 64 << 20  # of a process that has no arrays yet
_NAMED: Final = 5  # accounts that a refusal names, those with most memory
_LEAST_FREE: Final = 256 << 20  # bytes of the machine's memory that no session is started into


class Places:
    """Holds the sessions of all owners to a quota, and the machine to the memory that it has.

    Args:
        quota: What an owner may have.
        entries: Returns all sessions, also those that start, without those of single requests.
        free: Returns the bytes of memory that processes can still take.
        budgets: What its keys may have.
    """

    def __init__(
        self,
        quota: Quota,
        entries: Callable[[], Collection[SessionEntry]],
        free: Callable[[], int],
        budgets: Budgets,
    ) -> None:
        self._quota, self._entries, self._free, self._budgets = quota, entries, free, budgets
        self._reserved = 0  # bytes, of the hosts that start now

    def _counts(self, owner: str) -> tuple[int, int, Counter[str]]:
        """Returns the sessions of an owner that have a place, those of all, and how many each owner has."""
        sessions = Counter(entry.owner for entry in self._entries() if entry.has_place)
        return sessions[owner], sessions.total(), sessions

    # --------------------------------------------------------------------------------------------------------- places
    def _room(self, account: str) -> Room | None:
        """Returns the room that an account has for sessions; see `Budgets.tightest`."""
        return self._budgets.tightest(account, (entry.account for entry in self._entries() if entry.has_place))

    def admit(self, owner: str, account: str) -> None:
        """Checks that one more session of an owner may have a place, and count for an account.

        Raises:
            Problem: too_many_sessions, overloaded; over_budget, resource_exhausted: the account has used too much.
        """
        mine, all_sessions, sessions = self._counts(owner)
        self._budgets.check_room(self._room(account))
        self._quota.admit(mine, all_sessions, len(sessions))
        self._budgets.check_work(account)
        self._budgets.check_memory(account)

    def admit_lasting(self, owner: str) -> None:
        """Checks that an owner may have one more session that outlives its process.

        Raises:
            Problem: too_many_sessions.
        """
        self._quota.admit_lasting(sum(entry.owner == owner and entry.lasts for entry in self._entries()))

    def left(self, owner: str, account: str) -> tuple[int, int]:
        """Returns how many sessions an owner may have with an account, and how many more can be created now."""
        mine, all_sessions, sessions = self._counts(owner)
        left, room = self._quota.sessions_left(mine, all_sessions, len(sessions)), self._room(account)
        return (self._quota.sessions, left) if room is None else (room.limit, min(room.left, left))

    def frees(self, account: str, now: float, *, has_parking: bool) -> float | None:
        """Returns when the next session of an account gives up what it has, if it gets no request.

        Args:
            account: Of a key, an owner or a group.
            now: Unix seconds, as what is returned. None: no session is idle.
            has_parking: Whether a session that lasts is parked for it, as for a place, before it has no time left.
        """
        times = []
        for entry in self._entries():
            if entry.has_place and not entry.running and account in self._budgets.chain(entry.account):
                times.append(entry.lease.expires_at(now))
                if has_parking and entry.is_quiet() and (idle := entry.lease.idle(now)):
                    times.append(now + max(self._quota.parks_after - idle, 0.0))
        return min(times, default=None)

    def to_park(self, owner: str, account: str, now: float) -> SessionEntry | None:
        """Returns the session whose parking gives an owner a place; None: there is a free one, or no such session.

        It is the one that is idle for longest; beyond the number of an account's sessions it is one of that account.

        Args:
            owner: Who wants one more.
            account: Which it would count for.
            now: Unix seconds.
        """
        mine, all_sessions, sessions = self._counts(owner)
        room = self._room(account)
        is_full = room is not None and not room.left
        if self._quota.sessions_left(mine, all_sessions, len(sessions)) and not is_full:
            return None

        def helps(entry: SessionEntry) -> bool:
            if is_full and room is not None and room.account not in self._budgets.chain(entry.account):
                return False
            is_own = entry.owner == owner
            owners = len(sessions) - (sessions[entry.owner] == 1)
            return bool(self._quota.sessions_left(mine - is_own, all_sessions - 1, owners))

        return self.longest_idle(now, helps)

    def longest_idle(self, now: float, allowed: Callable[[SessionEntry], bool] = lambda _: True) -> SessionEntry | None:
        """Returns the session that is idle for longest, and can be parked; None: there is none.

        Args:
            now: Unix seconds.
            allowed: Which come into question.
        """
        idle = {
            entry: entry.lease.idle(now)
            for entry in self._entries()
            if entry.is_quiet() and self.can_write_down(entry) and allowed(entry)
        }
        longest = max(idle, key=lambda entry: idle[entry], default=None)
        return longest if longest is not None and idle[longest] >= self._quota.parks_after else None

    def to_end(self, owner: str, account: str, now: float) -> tuple[SessionEntry, str] | None:
        """Returns the session that ends, since an owner has a better right to its place, and why; None: no session.

        Args:
            owner: Who wants one more.
            account: Which it would count for.
            now: Unix seconds.
        """
        mine, all_sessions, sessions = self._counts(owner)
        room = self._room(account)
        is_full = room is not None and not room.left
        if is_full or self._quota.sessions_left(mine, all_sessions, len(sessions)):
            return None
        others = [entry for entry in self._entries() if entry.has_place and not entry.lasts and entry.owner != owner]
        idle = {entry: entry.lease.idle(now) for entry in others}
        allowed = [entry for entry in idle if self._quota.makes_room(mine, idle[entry], sessions[entry.owner])]
        longest = max(allowed, key=lambda entry: idle[entry], default=None)
        if longest is None:
            return None
        if not self._quota.sessions_left(mine, all_sessions - 1, len(sessions) - (sessions[longest.owner] == 1)):
            return None
        return (
            longest,
            f"it was idle for {idle[longest]:.0f} s, longer than others, and another key's session got its place",
        )

    # --------------------------------------------------------------------------------------------------------- memory
    def is_short(self, needed: int = 0) -> bool:
        """Returns whether the machine has too little memory for that many bytes more."""
        return self._free() - self._reserved - needed < _LEAST_FREE

    def can_write_down(self, entry: SessionEntry) -> bool:
        """Returns whether the machine has the memory to park a session: what is on a GPU passes through it."""
        needed = entry.note_facts().bytes_in_use if entry.device != "cpu" else 0
        return not needed or not self.is_short(needed)

    def reserve(self, entry: SessionEntry) -> Callable[[], None]:
        """Reserves all that the next host of a session takes at its start, until the returned function is called.

        Raises:
            Problem: overloaded: the machine has too little memory; nothing is reserved.
        """
        needed = _PROCESS_BYTES + entry.disk_bytes
        if self.is_short(needed):
            raise _short(self._free() - self._reserved, needed, self._budgets.present())
        self._reserved += needed
        return lambda: self._give_back(needed)

    def _give_back(self, nbytes: int) -> None:
        self._reserved -= nbytes


def _short(free: int, needed: int, present: Mapping[str, Present]) -> Problem:
    """Returns the problem of a session for which the machine has too little memory: it says who uses most."""
    by_account = sorted(present.items(), key=lambda item: item[1].memory_bytes, reverse=True)[:_NAMED]
    users = ", ".join(
        f"{name} has {used.memory_bytes >> 20} MiB in {used.sessions} sessions" for name, used in by_account
    )
    problem = overloaded(
        f"the machine has {max(free, 0) >> 20} MiB of memory left, and a process for this session takes "
        f"{needed >> 20} MiB, beyond {_LEAST_FREE >> 20} MiB that stay free; no idle session can be parked. Of the "
        f"arrays, {users or 'no session has any'}"
    )
    facts = [
        {"account": name, "sessions": used.sessions, "memory_bytes": used.memory_bytes} for name, used in by_account
    ]
    problem.details = {"free": max(free, 0), "asked": needed, "reserve": _LEAST_FREE, "accounts": facts}
    return problem
