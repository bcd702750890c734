"""The places that sessions take: how many an owner may have, and whose session ends to make room for another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection

from teletape_server.sessions.entry import SessionEntry
from teletape_server.sessions.quotas import Quota


class Places:
    """Holds the sessions of all owners to a quota.

    Args:
        quota: What an owner may have.
        counted: Returns the sessions that take a place.
    """

    def __init__(self, quota: Quota, counted: Callable[[], Collection[SessionEntry]]) -> None:
        self._quota, self._counted = quota, counted

    def _counts(self, owner: str) -> tuple[int, int, int]:
        """Returns the sessions of an owner, those of all, and the owners that have one."""
        sessions = Counter(entry.owner for entry in self._counted() if not entry.record.is_run)
        return sessions[owner], sessions.total(), len(sessions)

    def admit(self, owner: str) -> None:
        """Checks that an owner may have one more session.

        Raises:
            Problem: too_many_sessions, overloaded.
        """
        self._quota.admit(*self._counts(owner))

    def left(self, owner: str) -> tuple[int, int]:
        """Returns how many sessions an owner may have, and how many more can be created now."""
        return self._quota.sessions_per_key, self._quota.sessions_left(*self._counts(owner))

    def to_end(self, owner: str, entries: Collection[SessionEntry], now: float) -> tuple[SessionEntry, str] | None:
        """Returns the session that ends, since an owner has a better right to its place, and why; None: no session.

        Args:
            owner: Who wants one more.
            entries: The sessions that could end.
            now: Unix seconds.
        """
        mine, all_sessions, owners = self._counts(owner)
        if mine >= self._quota.sessions_per_key or self._quota.sessions_left(mine, all_sessions, owners):
            return None
        sessions = Counter(entry.owner for entry in entries)
        idle = {entry: entry.lease.idle(now) for entry in entries if entry.owner != owner}
        allowed = [entry for entry in idle if self._quota.makes_room(mine, idle[entry], sessions[entry.owner])]
        longest = max(allowed, key=lambda entry: idle[entry], default=None)
        if longest is None:
            return None
        if not self._quota.sessions_left(mine, all_sessions - 1, owners - (sessions[longest.owner] == 1)):
            return None
        return (
            longest,
            f"it was idle for {idle[longest]:.0f} s, longer than others, and another key's session got its place",
        )
