"""The places and the memory that sessions take, and which session is parked, or ends, to make room for another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, NamedTuple

from teletape_server.budgets.budgets import Budgets, Room
from teletape_server.budgets.limits import Present
from teletape_server.ipc.confinement import LEAST_FREE
from teletape_server.ipc.page import IDLE_BYTES
from teletape_server.problems import Problem, overloaded
from teletape_server.sessions.entry import SessionEntry
from teletape_server.sessions.hosting.ledger import Ledger, Reservation
from teletape_server.sessions.lifecycle import Phase
from teletape_server.sessions.quotas import Quota
from teletape_wire import timestamp

_PROCESS_BYTES: Final = 64 << 20  # of a process that has no arrays yet
_SMALL_BODY: Final = 1 << 20  # bytes of a body that does not count until it is there
_NAMED: Final = 5  # accounts that a refusal names, those with most memory


class Holding(NamedTuple):
    """What an account has of the machine's memory.

    Attributes:
        account: Its name.
        sessions: That have a place.
        memory_bytes: Of their arrays, as of their last answers; without those on a GPU.
        reserved_bytes: That they may have without asking.
    """

    account: str
    sessions: int
    memory_bytes: int
    reserved_bytes: int


class Memory(NamedTuple):
    """The machine's memory.

    Attributes:
        free: Bytes that processes can still take.
        promised: Bytes of these that are reserved and not used yet.
        reserve: Bytes that are never promised.
        accounts: Who has what, most first.
    """

    free: int
    promised: int
    reserve: int
    accounts: Sequence[Holding]


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
        self._ledger = Ledger(lambda: self._free(), LEAST_FREE)

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

    def frees(self, account: str | None, now: float, *, has_parking: bool) -> float | None:
        """Returns when the next session of an account gives up what it has, if it gets no request.

        Args:
            account: Of a key, an owner or a group; None: of all.
            now: Unix seconds, as what is returned. None: no session is idle.
            has_parking: Whether a session that lasts is parked for it, as for a place, before it has no time left.
        """
        times = []
        for entry in self._entries():
            if not entry.has_place or entry.running or (account is None and entry.host is None):
                continue
            if account is None or account in self._budgets.chain(entry.account):
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
        """Returns whether the machine has too little memory for that many bytes more, beyond what is promised."""
        return not self._ledger.fits(needed)

    def can_write_down(self, entry: SessionEntry) -> bool:
        """Returns whether the machine has the memory to park a session: what is on a GPU passes through it."""
        needed = entry.note_facts().bytes_in_use if entry.device != "cpu" else 0
        return not needed or not self.is_short(needed)

    def reserve(self, entry: SessionEntry) -> Reservation:
        """Reserves what the next host of a session takes at its start, and some for what it does then.

        Raises:
            Problem: overloaded: the machine has too little memory; nothing is reserved.
        """
        return self._reserve(entry.account, min(IDLE_BYTES + entry.disk_bytes, entry.memory_limit), "this session")

    def reserve_process(self, name: str, most: int) -> Reservation:
        """Does the same for a process that has no session; `most`: bytes that it may have reserved."""
        return self._reserve(name, min(IDLE_BYTES, most), name)

    def _reserve(self, account: str, nbytes: int, purpose: str) -> Reservation:
        reservation = self._ledger.reserve(account, nbytes, _PROCESS_BYTES)
        if reservation is None:
            needed = nbytes + _PROCESS_BYTES
            lack = f"a process for {purpose} takes {needed >> 20} MiB"
            problem = overloaded(f"{self._lack(lack)}. {self._users()}")
            problem.details = self._facts(needed)
            raise problem
        return reservation

    def most_reserved(self, entry: SessionEntry, needed: int) -> int:
        """Returns the bytes that a session may have reserved.

        Args:
            entry: The session.
            needed: Bytes that it needs in all.

        Raises:
            Problem: resource_exhausted: the sessions of its account may not have that.
        """
        limits = self._budgets.chain_limits(entry.account, "memory_bytes")
        if not limits or entry.record.state.phase is not Phase.LIVE:  # what it has had it gets again
            return entry.memory_limit
        in_use = entry.note_facts().bytes_in_use
        present = {each.account: Present(memory_bytes=each.memory_bytes) for each in self.memory().accounts}
        self._budgets.check_memory(entry.account, needed - in_use, present)
        left = min(limit - self._budgets.now_used(name, present).memory_bytes for name, limit in limits)
        return int(min(entry.memory_limit, in_use + left))

    def extend(self, reservation: Reservation, needed: int, limit: int) -> None:
        """Has a reservation cover what a session needs; see `Ledger.extend`.

        Raises:
            Problem: resource_exhausted: the machine has too little memory.
        """
        if not self._ledger.extend(reservation, needed, limit):
            more = needed - reservation.reserved
            lack = f"this session needs {more >> 20} MiB more than it has reserved"
            advice = "Release values or tapes, end or park a session (GET /v1/sessions), or try again later"
            text = f"{self._lack(lack)}. {self._users()}. {advice}"
            raise Problem("resource_exhausted", text, **self._facts(more))

    def admit_body(self, nbytes: int) -> Callable[[], None]:
        """Counts the body of a request before any of it comes, until the returned function is called: then it is there.

        Raises:
            Problem: overloaded: it is large, and the machine has too little memory.
        """
        if nbytes < _SMALL_BODY:
            return _nothing
        if self.is_short(nbytes):
            problem = overloaded(f"{self._lack(f'the request has a body of {nbytes >> 20} MiB')}. {self._users()}")
            problem.details = self._facts(nbytes)
            raise problem
        self._ledger.coming += nbytes
        return lambda: self._note_come(nbytes)

    def _note_come(self, nbytes: int) -> None:
        self._ledger.coming -= nbytes

    def extend_if_free(self, reservation: Reservation, needed: int, limit: int) -> None:
        """Extends a reservation, which covers what a session needs, if there is room."""
        self._ledger.extend(reservation, needed, limit)

    def release(self, reservation: Reservation) -> None:
        """Ends a reservation; the second time it does nothing."""
        self._ledger.release(reservation)

    def reclaim(self) -> bool:
        """Has sessions that run nothing give back what they do not use; returns whether any begins to."""
        return self._ledger.reclaim()

    def memory(self) -> Memory:
        """Returns who uses the machine's memory, and what is left of it."""
        entries, reserved = self._entries(), self._ledger.reserved_by()
        used: Counter[str] = Counter()
        for entry in entries:
            used[entry.account] += entry.note_facts().bytes_in_use if entry.device == "cpu" else 0
        sessions = Counter(entry.account for entry in entries if entry.has_place)
        names = sorted({*used, *reserved}, key=lambda name: max(used[name], reserved[name]), reverse=True)
        accounts = [Holding(name, sessions[name], used[name], reserved[name]) for name in names]
        return Memory(self._free(), self._ledger.promised() + self._ledger.coming, LEAST_FREE, accounts)

    def _lack(self, lack: str) -> str:
        memory = self.memory()
        return (
            f"the machine has {max(memory.free, 0) >> 20} MiB of memory left, {memory.promised >> 20} MiB of that are "
            f"reserved by sessions, and {lack}, beyond {LEAST_FREE >> 20} MiB that stay free; no idle session can be "
            "parked"
        )

    def _users(self) -> str:
        users = ", ".join(
            f"{each.account} has {each.memory_bytes >> 20} MiB in {each.sessions} sessions, and "
            f"{each.reserved_bytes >> 20} MiB reserved"
            for each in self.memory().accounts[:_NAMED]
        )
        return f"Of the arrays, {users or 'no session has any'}"

    def _facts(self, needed: int) -> dict[str, Any]:
        """Returns the details of a refusal: what the machine has, and when a session gives up some of that."""
        memory = self.memory()
        used = memory.promised + sum(each.memory_bytes for each in memory.accounts)
        limit = used + max(memory.free - memory.promised - LEAST_FREE, 0)
        frees = None if needed > limit else self._budgets.frees(None, True)  # what is too much stays so
        return {
            "free": max(memory.free, 0),
            "promised": memory.promised,
            "used": used,
            "asked": needed,
            "limit": limit,
            "reserve": LEAST_FREE,
            "accounts": [each._asdict() for each in memory.accounts[:_NAMED]],
            **({} if frees is None else {"frees_at": timestamp(frees)}),
        }


def _nothing() -> None:
    """Does nothing."""
