"""A live session: whose it is, where it runs, when it ends."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple, TypeAlias

from teletape_server.hosts.protocols import Host, Reply, Running
from teletape_server.ipc.leases import Lease

Key: TypeAlias = tuple[str, str]  #: Owner and id of a session.


class LastProblem(NamedTuple):
    """The last problem that a session's host has answered.

    Attributes:
        code, message: The problem's.
        time: Unix seconds.
    """

    code: str
    message: str
    time: float


class SessionEntry:
    """One live session.

    Attributes:
        id, owner: Its name, and whose it is.
        host: Where it runs.
        memory_limit: Bytes that its arrays may take.
        dtype: Of numbers without one that meet no tensor.
        created_at: Unix seconds.
        problems: Number of requests that were answered with a problem.
        last_problem: The last of these problems.
        receiving: Number of requests whose body is being received.
        client_numbers: The numbers of clients that join: even, so that they are not the session's own, and rising.
        running_frames: Running frames by their identity, so that a retry waits for the first one.
        running_keys: Running requests by their Idempotency-Key, each with its hash, likewise.
    """

    def __init__(self, key: Key, host: Host, lease: Lease, *, memory_limit: int, dtype: str, now: float) -> None:
        self.owner, self.id = key
        self.host = host
        self._lease = lease
        self.memory_limit = memory_limit
        self.dtype = dtype
        self.created_at = now
        self._bytes_in_use = 0
        self._answers = 0
        self.problems = 0
        self.last_problem: LastProblem | None = None
        self.receiving = 0
        self.client_numbers = itertools.count(2, 2)
        self.running_frames: dict[Any, Running] = {}
        self.running_keys: dict[str, tuple[bytes, Running]] = {}

    @property
    def log_facts(self) -> dict[str, str]:
        """Whose log lines they are: `extra` of logging."""
        return {"session": self.id, "owner": self.owner}

    @property
    def lease(self) -> Lease:
        """When it ends."""
        self.host.handed.note_work()
        return self._lease

    @property
    def bytes_in_use(self) -> int:
        """Bytes of its arrays as of the last answer."""
        own = self.host.handed.bytes_in_use
        return self._bytes_in_use if own is None else own

    @property
    def answers(self) -> int:
        """Number of requests that were answered, those of handed connections too."""
        return self._answers + self.host.handed.frames

    def note_reply(self, reply: Reply, now: float) -> None:
        """Notes what a reply says about the session."""
        self._answers += 1
        if reply.code is not None:
            self.problems += 1
            self.last_problem = LastProblem(reply.code, str(reply.facts.get("message", "")), now)
        self._bytes_in_use = reply.facts.get("bytes_in_use", self._bytes_in_use)

    def note_key(self, key: str, digest: bytes, running: Running) -> None:
        """Notes that the request with that key runs, for its retries."""
        self.running_keys[key] = digest, running
        running.reply.add_done_callback(lambda _: self.running_keys.pop(key, None))

    def extend(self, now: float, seconds: float) -> None:
        """Keeps the session for at least `seconds` from now; see `Lease`."""
        self._lease.extend(now, seconds)
        self.host.handed.note_terms()
