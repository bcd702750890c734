"""What is noted of who did what."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias, get_args

Action: TypeAlias = Literal[
    "session.created",
    "session.ended",
    "session.seen",
    "key.created",
    "key.rotated",
    "key.revoked",
    "tokens.revoked",
    "limits.changed",
    "function.published",
    "function.aliased",
    "function.deleted",
]
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)


class Entry(NamedTuple):
    """One line of the audit.

    Attributes:
        at: When, in Unix seconds.
        action: What was done. `session.seen`: an admin has looked into another owner's session.
        owner, key: Who did it, and the id of the key; empty: the server itself, or whoever uses one without keys.
        address: From where; empty: over a Unix socket, or by the server itself.
        subject: Of what: OWNER:ID of a session, the id of a key, an account, or the name of a published function.
        detail: How, or why.
        number: Its place, from 1 on; 0: it has none yet.
    """

    at: float
    action: Action
    owner: str
    key: str
    address: str
    subject: str
    detail: str
    number: int = 0
