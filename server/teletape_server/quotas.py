"""Limits on sessions, memory, bodies and waiting requests: functions of counts that the caller passes."""

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
        bodies_per_key: Bytes of one owner's request bodies that are being received or not answered yet.
        bodies: The same of all owners.
        waiting: Unanswered requests of one session.
    """

    sessions_per_key: int
    sessions: int
    memory_limit: int
    bodies_per_key: int
    bodies: int
    waiting: int = 32

    def admit(self, mine: int, all_sessions: int) -> None:
        """Checks that an owner may have one more session.

        Args:
            mine: Live sessions of the owner.
            all_sessions: Live sessions of all owners.

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

    def sessions_left(self, mine: int, all_sessions: int) -> int:
        """Returns how many more sessions an owner may create now; the arguments are those of `admit`."""
        return max(min(self.sessions_per_key - mine, self.sessions - all_sessions), 0)

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
        for code, under_way, whose, limit, remedy in (
            ("busy", mine, "of your requests", self.bodies_per_key, "Send it after an answer"),
            ("resource_exhausted", all_bytes, "of requests to this server", self.bodies, "Send it again later"),
        ):
            if under_way and under_way + length > limit:
                raise Problem(
                    code,
                    f"a body of {length} bytes is too much now: {under_way} bytes {whose} are under way, the limit is "
                    f"{limit}. {remedy}",
                    headers={"Retry-After": "1"},
                    found=under_way,
                    limit=limit,
                )
