"""How much an owner may have: pure rules over counts that the caller gives."""

from __future__ import annotations

from dataclasses import dataclass

from teletape_server.problems import Problem


@dataclass(frozen=True)
class Quota:
    """The limits of this server.

    Attributes:
        sessions_per_key: Live sessions of one owner.
        sessions: Live sessions in all.
        memory_limit: Bytes of arrays in one session.
        waiting: Requests that one session has not answered yet.
    """

    sessions_per_key: int
    sessions: int
    memory_limit: int
    waiting: int = 32

    def admit(self, mine: int, all_sessions: int) -> None:
        """Whether one more session may begin.

        Raises:
            Problem: too_many_sessions.
        """
        if mine >= self.sessions_per_key:
            raise Problem(
                "too_many_sessions",
                f"you have {mine} sessions, the limit is {self.sessions_per_key}: end one first (GET /v1/sessions)",
                found=mine,
                limit=self.sessions_per_key,
            )
        if all_sessions >= self.sessions:
            raise Problem(
                "too_many_sessions",
                f"this server has {all_sessions} sessions, the limit is {self.sessions}: try again later",
                found=all_sessions,
                limit=self.sessions,
            )

    def memory(self, asked: int | None) -> int:
        """The memory limit of a session that asks for `asked` bytes; None: as much as it may.

        Raises:
            Problem: invalid_request, for more than a session may have.
        """
        if asked is None:
            return self.memory_limit
        if asked > self.memory_limit:
            raise Problem(
                "invalid_request",
                f"memory_limit {asked} is too much: a session may have {self.memory_limit} bytes",
                found=asked,
                limit=self.memory_limit,
            )
        return asked

    def queue(self, waiting: int) -> None:
        """Whether a session takes one more request.

        Raises:
            Problem: busy.
        """
        if waiting >= self.waiting:
            raise Problem(
                "busy",
                f"{waiting} requests wait in this session already: send the next when one is answered",
                headers={"Retry-After": "1"},
                waiting=waiting,
            )
