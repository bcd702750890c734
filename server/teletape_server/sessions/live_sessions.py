"""The sessions that there are, by owner and id, and why others have ended."""

from __future__ import annotations

import logging
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any, Final

from teletape_server.budgets.budgets import Budgets
from teletape_server.hosts.protocols import Host
from teletape_server.ipc.durations import Durations
from teletape_server.ipc.leases import Reason
from teletape_server.problems import Problem, shutting_down
from teletape_server.sessions.ended_sessions import Boot, Ended, EndedSessions, damaged, recovering, session_ended
from teletape_server.sessions.entry import SessionEntry
from teletape_server.sessions.hosting.meter import Meter
from teletape_server.sessions.lifecycle import LOST
from teletape_server.sessions.quotas import Quota
from teletape_server.sessions.record import Key
from teletape_server.sessions.store import Store
from teletape_server.sessions.usage import Spent, Usage

FAULTS: Final = (Reason.WORKER_DIED, Reason.STUCK, Reason.DEADLINE)  #: Reasons that are warnings in the log.

log = logging.getLogger("teletape")


class SessionTable(dict[Key, SessionEntry]):
    """Sessions by owner and id, which also finds those of an account without a look at all others.

    Attributes:
        by_account: The sessions of each account that has any.
    """

    def __init__(self) -> None:
        super().__init__()
        self.by_account: dict[str, dict[Key, SessionEntry]] = {}

    def __setitem__(self, key: Key, entry: SessionEntry) -> None:
        self.pop(key, None)
        super().__setitem__(key, entry)
        self.by_account.setdefault(entry.account, {})[key] = entry

    def __delitem__(self, key: Key) -> None:
        entry = self[key]
        super().__delitem__(key)
        mine = self.by_account[entry.account]
        del mine[key]
        if not mine:
            del self.by_account[entry.account]

    def pop(self, key: Key, default: Any = None) -> Any:
        """Removes a session, if it is there; returns it, or else the default."""
        entry = self.get(key, default)
        if key in self:
            del self[key]
        return entry

    def of_chain(self, names: Collection[str], budgets: Budgets) -> Iterator[SessionEntry]:
        """Yields the sessions of the accounts that are, or are in a group that is, one of these accounts."""
        for account, entries in self.by_account.items():
            if not set(names).isdisjoint(budgets.chain(account)):
                yield from entries.values()


class LiveSessions:
    """The sessions of all owners.

    Args:
        store: Keeps their records.
        quota: What an owner may have.
        boot: The server's run.
        clock: Returns Unix seconds.
        budgets: What accounts may use.

    Attributes:
        store, clock, budgets: See above.
        meter: Counts what sessions use.
        by_key: Those that live, those of single requests too.
        starting: Those whose first host starts: nothing finds them yet.
        ended: The last ones that have ended.
        created: How many were created since the start of the server, without those of single requests.
        on_end: Called with each session that ends, why, and the same for people; not with those of single requests.
        starts: How long the starts of hosts took, by what they were for: `created`, `run`, `woken`, `recovered`.
        failed_starts, parked: How often a host could not be started, and sessions were parked.
        stopping: Whether the server is about to end: no session and no request is taken.
    """

    def __init__(self, store: Store, quota: Quota, boot: Boot, clock: Callable[[], float], budgets: Budgets) -> None:
        self.store, self._quota, self.clock, self.budgets = store, quota, clock, budgets
        self.meter = Meter(budgets, clock)
        self.by_key, self.starting = SessionTable(), SessionTable()
        self.ended = EndedSessions(boot)
        self.created, self.stopping = 0, False
        self.starts: defaultdict[str, Durations] = defaultdict(Durations)
        self.failed_starts = self.parked = 0
        self.on_end: Callable[[SessionEntry, Reason, str], None] = lambda *_: None
        self._spent: defaultdict[str, Spent] = defaultdict(Spent)  # by owner, of hosts that have ended

    def check_running(self) -> None:
        """Returns unless the server is about to end.

        Raises:
            Problem: shutting_down.
        """
        if self.stopping:
            raise shutting_down()

    # -------------------------------------------------------------------------------------------------------- finding
    def all(self) -> list[SessionEntry]:
        """Returns the live sessions of all owners, oldest first; without those of single requests."""
        return [entry for entry in self.by_key.values() if not entry.record.is_run]

    def with_starting(self) -> list[SessionEntry]:
        """Returns the same with those that start."""
        return [*self.all(), *(entry for entry in self.starting.values() if not entry.record.is_run)]

    def owned_by(self, owner: str) -> list[SessionEntry]:
        """Returns the owner's live sessions, oldest first."""
        return [entry for entry in self.all() if entry.owner == owner]

    def of_accounts(self, names: Collection[str]) -> list[SessionEntry]:
        """Returns the sessions that count for one of these accounts, those that start and those of single requests."""
        return [entry for table in (self.by_key, self.starting) for entry in table.of_chain(names, self.budgets)]

    def devices_in_use(self) -> Counter[str]:
        """Returns how many sessions compute on each device, those of single requests too."""
        return Counter(entry.device for entry in self.by_key.values() if entry.host is not None)

    def ended_reason(self, owner: str, id: str) -> Ended | None:
        """Returns why and when a session ended; None: it lives, or that is not known any more."""
        return None if (owner, id) in self.by_key else self.ended.get((owner, id))

    def gone(self, entry: SessionEntry) -> Problem:
        """Returns the problem of a session whose host has ended; another one may go on with it."""
        if self.by_key.get(entry.record.key) is entry and entry.lasts:
            state = entry.record.state
            return damaged(entry.id, state.why) if state.phase in LOST else recovering(entry.id)
        ended = self.ended.get(entry.record.key) or Ended(Reason.WORKER_DIED, "its process is gone", self.clock())
        return session_ended(entry.id, ended, is_run=entry.record.is_run)

    # ------------------------------------------------------------------------------------------------------- counting
    def usage(self, *, runs: tuple[int, int], begun: int, body_bytes: int) -> Usage:
        """Returns what is in use now, and what was counted; see `Usage`."""
        return Usage.of(
            self.by_key.values(),
            runs=runs,
            begun=begun,
            created=self.created,
            ended=self.ended.reasons,
            body_bytes=body_bytes,
            spent=self._spent,
        )

    def measure(self, *entries: SessionEntry) -> None:
        """Notes the bytes that sessions take on a disk, and limits those whose logs grow."""
        used: dict[str, int] = {}
        for entry in entries:
            if entry.log is not None or not entry.disk_bytes:
                before, entry.disk_bytes = entry.disk_bytes, self.store.nbytes(entry.record)
                for name in used.keys() & self.budgets.chain(entry.account):
                    used[name] += entry.disk_bytes - before
            if entry.log is not None:
                entry.log.limit(self._quota.disk(self._disk_left(entry, used)))

    def _disk_left(self, entry: SessionEntry, used: dict[str, int]) -> float:
        """Returns the bytes that its account, and the group of that, leave for the files of a session.

        Args:
            entry: The session.
            used: Bytes of the files of all sessions of each account, as far as they are added up already.
        """
        left = [math.inf]
        for name, limit in self.budgets.chain_limits(entry.account, "disk_bytes"):
            if name not in used:
                used[name] = sum([each.disk_bytes for each in self.by_key.of_chain([name], self.budgets)])
            left.append(limit - used[name] + entry.disk_bytes)
        return min(left)

    # ------------------------------------------------------------------------------------------------------- changing
    def change(self, entry: SessionEntry, **changes: Any) -> None:
        """Changes what is known of a session, here and in the store."""
        entry.record = replace(entry.record, **changes)
        if not entry.record.is_run:
            self.store.put(entry.record)

    def add(self, entry: SessionEntry) -> None:
        """Notes that a session lives."""
        self.by_key[entry.record.key] = entry
        self.created += not entry.record.is_run
        self.ended.forget(entry.record.key)

    def note_beginning(self, entry: SessionEntry, host: Host) -> None:
        """Notes that a host of a session has begun, and says what it has cut from the log."""
        host.name, host.log_facts = f"session {entry.id} of {entry.owner}", entry.log_facts
        entry.begin(host.beginning, host.facts().written)
        if cut := (host.beginning.recovered or {}).get("cut_bytes"):
            log.warning("%s: %d bytes of a write that was not finished are cut", host.name, cut, extra=entry.log_facts)

    def let_go(self, entry: SessionEntry, host: Host) -> None:
        """Notes that the host of a session that goes on has ended, and what it had."""
        self._spend(entry, host)
        if entry.log is not None:
            self.store.close_log(entry.log)
            self.measure(entry)
            entry.log = None

    def _spend(self, entry: SessionEntry, host: Host) -> None:
        """Counts what a host has used that ends."""
        facts = host.facts()
        self._spent[entry.owner].add(facts)
        self.meter.note(entry, facts)

    def remove(self, entry: SessionEntry, reason: Reason, text: str) -> None:
        """Notes the end of a session, after which nothing finds it; the second time it does nothing."""
        key = entry.record.key
        if self.by_key.get(key) is not entry:
            return
        del self.by_key[key]
        self._spent[entry.owner].add_bodies(entry)
        self.ended.reasons[reason] += not entry.record.is_run or reason in FAULTS
        if entry.host is not None:
            self._spend(entry, entry.host)
        self.change(entry, state=entry.record.state.end(reason))
        if reason not in FAULTS:
            log.info("session %s of %s ended: %s", entry.id, entry.owner, text, extra=entry.log_facts)
        if not entry.record.is_run:
            self.on_end(entry, reason, text)
        if entry.record.is_run and reason not in (*FAULTS, Reason.SHUTDOWN):  # no question for it can come
            return
        self.ended.add(key, Ended(reason, text, self.clock()))
