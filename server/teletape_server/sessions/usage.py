"""What the sessions of a server use, for those who watch it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple

from teletape_server.hosts.protocols import HostFacts
from teletape_server.ipc.durations import Durations
from teletape_server.ipc.heads import FRAME, Label
from teletape_server.ipc.leases import Reason
from teletape_server.sessions.entry import SessionEntry
from teletape_server.sessions.lifecycle import Phase


class Spent:
    """What the sessions of one owner have used since the start of the server.

    Attributes:
        sessions: Those that live.
        bytes: That these use, as of their last answers.
        disk_bytes: Of the files of these.
        compute_seconds, cpu_seconds: Of all, those that have ended too; see `HostFacts`.
        body_bytes, answer_bytes: Of requests and answers that passed the server's process, the same.
        durations, answered: The same.
    """

    def __init__(self) -> None:
        self.sessions = self.bytes = self.disk_bytes = self.body_bytes = self.answer_bytes = 0
        self.durations = Durations()
        self.compute_seconds = self.cpu_seconds = 0.0
        self.answered: defaultdict[Label, Durations] = defaultdict(Durations)

    def add(self, facts: HostFacts | Spent) -> None:
        """Adds what a session has used, and no session."""
        self.compute_seconds += facts.compute_seconds
        self.cpu_seconds += facts.cpu_seconds
        self.durations += facts.durations
        for label, durations in facts.answered.items():
            self.answered[label] += durations

    def add_bodies(self, entry: SessionEntry) -> None:
        """Adds the bytes of a session's requests and answers."""
        self.body_bytes += entry.body_bytes
        self.answer_bytes += entry.answer_bytes

    @property
    def queue_seconds(self) -> float:
        """Seconds that the requests have waited in sessions' processes."""
        return max(self.durations.seconds - self.compute_seconds, 0.0)

    @property
    def lent_frames(self) -> int:
        """How many frames hosts have read and answered themselves."""
        return self.answered[FRAME].total

    @property
    def lent_requests(self) -> int:
        """How many other requests they have."""
        return sum(durations.total for durations in self.answered.values()) - self.lent_frames


class Usage(NamedTuple):
    """What the sessions use.

    Attributes:
        states: How many sessions have each state; see `Phase`.
        runs: Requests without a session that run, and that wait for their turn.
        begun: Those that have begun since the start.
        created: Sessions created since the start.
        body_bytes: Of request bodies under way.
        requests: That are not answered yet.
        ended: Sessions that have ended, by reason.
        lent: Connections that are lent to their hosts.
        spent: By owner; sessions of single requests are in all but the number of sessions.
    """

    states: Mapping[str, int]
    runs: tuple[int, int]
    begun: int
    created: int
    body_bytes: int
    requests: int
    ended: Mapping[Reason, int]
    lent: int
    spent: Mapping[str, Spent]

    @property
    def bytes(self) -> int:
        """That live sessions use, as of their last answers."""
        return sum(spent.bytes for spent in self.spent.values())

    @property
    def disk_bytes(self) -> int:
        """Of the files of live sessions."""
        return sum(spent.disk_bytes for spent in self.spent.values())

    @property
    def sessions(self) -> int:
        """How many sessions there are."""
        return sum(self.states.values())

    @property
    def answered(self) -> Mapping[Label, Durations]:
        """How long the requests took that hosts have read and answered themselves, by their labels."""
        answered: defaultdict[Label, Durations] = defaultdict(Durations)
        for spent in self.spent.values():
            for label, durations in spent.answered.items():
                answered[label] += durations
        return answered

    @classmethod
    def of(
        cls,
        entries: Collection[SessionEntry],
        *,
        runs: tuple[int, int],
        begun: int,
        created: int,
        ended: Mapping[Reason, int],
        body_bytes: int,
        spent: Mapping[str, Spent],
    ) -> Usage:
        """Returns what live sessions use.

        Args:
            entries: The live sessions, those of single requests too.
            runs: Requests without a session that run, and that wait.
            begun: Those that have begun since the start.
            created: Sessions created since the start.
            ended: Sessions that have ended, by reason.
            body_bytes: Bytes of request bodies under way.
            spent: By sessions that have ended.
        """
        by_owner: defaultdict[str, Spent] = defaultdict(Spent)
        for owner, before in spent.items():
            by_owner[owner].add(before)
            by_owner[owner].body_bytes, by_owner[owner].answer_bytes = before.body_bytes, before.answer_bytes
        lent, states = 0, Counter(dict.fromkeys(Phase, 0))
        for entry in entries:
            facts, mine = entry.note_facts(), by_owner[entry.owner]
            mine.add(facts)
            mine.bytes += facts.bytes_in_use
            mine.add_bodies(entry)
            if not entry.record.is_run:
                mine.sessions += 1
                mine.disk_bytes += entry.disk_bytes
                states[entry.record.state.phase] += 1
            lent += facts.lent
        return cls(
            states={phase.value: count for phase, count in states.items()},
            runs=runs,
            begun=begun,
            created=created,
            body_bytes=body_bytes,
            requests=sum(len(entry.running) for entry in entries),
            ended=ended,
            lent=lent,
            spent=by_owner,
        )
