"""What each key has of the server now: sessions, memory, requests, and its part of the processors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from teletape_server.hosts.protocols import HostFacts
from teletape_server.sessions.entry import SessionEntry


class KeyUse(NamedTuple):
    """What the sessions of one owner have now; those of single requests are in all but their number.

    Attributes:
        owner: Whose they are.
        sessions: Those that have a process.
        bytes: In use by them, as of their last answers.
        computing: Of their processes compute now.
        waiting: Of their requests wait.
        share: The part of the processors that is the owner's while these compute, from 0 to 1.
        reserved: Bytes of the machine's memory that they have reserved.
    """

    owner: str
    sessions: int = 0
    bytes: int = 0
    computing: int = 0
    waiting: int = 0
    share: float = 0.0
    reserved: int = 0


class IdleSession(NamedTuple):
    """The session that is idle for longest.

    Attributes:
        owner, id: Whose it is, and its name.
        seconds: Since its last work.
        bytes: In use by it.
    """

    owner: str
    id: str
    seconds: float
    bytes: int


class Box(NamedTuple):
    """What the keys of a server have at a time.

    Attributes:
        keys: By owner, those that have most of the processors and of memory first.
        idle: The session that is idle for longest; None: none is idle.
        facts: What is known of the work of each session that has a process.
    """

    keys: Mapping[str, KeyUse]
    idle: IdleSession | None
    facts: Mapping[SessionEntry, HostFacts]

    def others(self, owner: str) -> list[str]:
        """Returns the other owners for whom processors compute now."""
        return [key.owner for key in self.keys.values() if key.share and key.owner != owner]


def box_of(
    entries: Collection[SessionEntry],
    waiting_runs: Iterable[str],
    parts: Callable[[Mapping[str, int]], Mapping[str, float]],
    now: float,
) -> Box:
    """Returns what the keys of a server have.

    Args:
        entries: The live sessions, those of single requests too.
        waiting_runs: The owners of requests without a session that wait for their turn.
        parts: Returns the part of the processors that each owner gets, by how many processes of each compute.
        now: Unix seconds.
    """
    facts = {entry: entry.note_facts() for entry in entries if entry.host is not None}
    computing = [entry for entry, known in facts.items() if known.running]
    busy, on_cpu = (
        Counter(entry.owner for entry in computing),
        Counter(entry.owner for entry in computing if entry.device == "cpu"),
    )
    sessions = Counter(entry.owner for entry in facts if not entry.record.is_run)
    nbytes, reserved, waiting = Counter[str](), Counter[str](), Counter(waiting_runs)
    for entry in entries:
        known = facts.get(entry)
        waiting[entry.owner] += len(entry.running) if known is None else known.waiting
        nbytes[entry.owner] += 0 if known is None else known.bytes_in_use
        reserved[entry.owner] += 0 if known is None else known.bytes_reserved
    shares = parts(on_cpu)
    keys = [
        KeyUse(
            *(owner, sessions[owner], nbytes[owner], busy[owner], waiting[owner]),
            *(round(shares.get(owner, 0.0), 3), reserved[owner]),
        )
        for owner in {*nbytes, *waiting}
    ]
    keys = [key for key in keys if any(key[1:])]
    keys.sort(key=lambda key: (-key.share, -key.bytes, -key.waiting, key.owner))
    return Box({key.owner: key for key in keys}, _longest_idle(facts, now), facts)


def _longest_idle(facts: Mapping[SessionEntry, HostFacts], now: float) -> IdleSession | None:
    idle = {entry: entry.lease.idle(now) for entry in facts if not entry.record.is_run and not facts[entry].running}
    longest = max(idle, key=lambda entry: idle[entry], default=None)
    if longest is None or not idle[longest]:
        return None
    return IdleSession(longest.owner, longest.id, round(idle[longest], 1), facts[longest].bytes_in_use)
