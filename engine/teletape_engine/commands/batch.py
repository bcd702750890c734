"""A batch: the commands that a session executes as one unit, and what happens to ids before, after and on failure."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from teletape_engine.commands.base import Command, Id


class OnFailure(enum.StrEnum):
    """What the ids name that a failed batch should have created. Commands before the failure stay done in any case."""

    POISON = "poison"  #: The failure: whoever uses such an id gets its message. For callers who send ahead of answers.
    FREE = "free"  #: Nothing: they can be used for something else.
    ROLLBACK = "rollback"  #: Nothing, and the ids that earlier commands of the batch created are free again as well.


@dataclass(frozen=True, slots=True)
class Batch:
    """An ordered list of commands.

    Attributes:
        commands: The commands.
        releases: Ids that are released after the last command that mentions them.
        client: The number of the client that sends it; 0: none, and the batch has no place in a sequence.
        seq: Its place in the client's sequence of batches, from 1 up.
        nonce: 16 bytes that no other batch has: a retry has the same.
        temporaries: Ids that end with the batch, whether or not it fails, and are free again.
        on_failure: What the ids name that a failed batch should have created.
    """

    commands: tuple[Command, ...]
    releases: tuple[Id, ...] = ()
    client: int = 0
    seq: int = 0
    nonce: bytes = b""
    temporaries: tuple[Id, ...] = ()
    on_failure: OnFailure = OnFailure.POISON
