"""What the sessions of a server use, for those who watch it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from teletape_server.ipc.leases import Reason
from teletape_server.sessions.entry import SessionEntry


class Usage(NamedTuple):
    """What the sessions use.

    Attributes:
        sessions: Live sessions.
        runs: Requests without a session that run, and that wait for their turn.
        begun: Those that have begun since the start.
        created: Sessions created since the start.
        bytes: That they use, as of their last answers.
        body_bytes: Of request bodies under way.
        requests: That are not answered yet.
        ended: Sessions that have ended, by reason.
        lent: Connections that are lent to their hosts.
        lent_frames: Frames that hosts have read from such connections.
    """

    sessions: int
    runs: tuple[int, int]
    begun: int
    created: int
    bytes: int
    body_bytes: int
    requests: int
    ended: Mapping[Reason, int]
    lent: int
    lent_frames: int

    @classmethod
    def of(
        cls,
        entries: Collection[SessionEntry],
        *,
        sessions: int,
        runs: tuple[int, int],
        begun: int,
        created: int,
        ended: Mapping[Reason, int],
        body_bytes: int,
        lent_frames: int,
    ) -> Usage:
        """Returns what live sessions use.

        Args:
            entries: The live sessions, those of single requests too.
            sessions: How many of them are none of single requests.
            runs: Requests without a session that run, and that wait.
            begun: Those that have begun since the start.
            created: Sessions created since the start.
            ended: Sessions that have ended, by reason.
            body_bytes: Bytes of request bodies under way.
            lent_frames: Of sessions that have ended.
        """
        all_facts = [entry.note_facts() for entry in entries]
        return cls(
            sessions=sessions,
            runs=runs,
            begun=begun,
            created=created,
            bytes=sum(facts.bytes_in_use for facts in all_facts),
            body_bytes=body_bytes,
            requests=sum(len(entry.running) for entry in entries),
            ended=ended,
            lent=sum(facts.lent for facts in all_facts),
            lent_frames=lent_frames + sum(facts.frames for facts in all_facts),
        )
