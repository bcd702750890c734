"""A call of a published function, on its way to a process and back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from teletape_server.handlers.published.batching import MOST_CALLS
from teletape_server.hosts.protocols import Host
from teletape_server.ipc.durations import Batches
from teletape_server.models.published.contract import Published
from teletape_server.sessions.counted_bodies import CountedBody

#: Questions that several calls can be computed together for.
TOGETHER: Final = frozenset({"call", "value_and_gradient", "gradient", "vjp", "jvp", "hvp"})


class Part(NamedTuple):
    """The answer to a call.

    Attributes:
        body: Its body.
        content_type: Of the body.
        seconds: That the call has taken of its batch.
    """

    body: bytes | memoryview
    content_type: str
    seconds: float = 0.0


@dataclass(eq=False)
class Call:
    """A call of a published function.

    Attributes:
        owner: Whose it is.
        name: The function's.
        published: The version.
        question: What is asked of it.
        params: Of the method: the type of the answer, and what the query says.
        content_type, body: Its body.
        time_limit: Seconds from its arrival that its caller gives it; None: it does not say.
        reply: Resolves to the answer, or raises a Problem.
        received: The body, if a process has received it; then `body` is empty.
        is_again: Whether a process has ended that computed it alone, or had it over a lent connection.
        account: Which it counts for; empty: the owner's.
    """

    owner: str
    name: str
    published: Published
    question: str
    params: Mapping[str, Any]
    content_type: str
    body: bytes | bytearray | memoryview
    time_limit: float | None
    reply: asyncio.Future[Part]
    received: CountedBody | None = None
    is_again: bool = False
    account: str = ""

    @property
    def length(self) -> int:
        """Bytes of its body."""
        return len(self.body) if self.received is None else len(self.received.view)

    @property
    def key(self) -> Hashable:
        """Equal for calls that may be computed together."""
        return self.published.version, self.question


@dataclass
class Receiver:
    """The process that receives a large body; it has what `Bodies.buffer` needs of a session.

    Attributes:
        owner: Whose body it is.
        awake_host: The process.
        receiving: Bodies that are being received.
    """

    owner: str
    awake_host: Host
    receiving: int = 0


@dataclass
class Counts:
    """What is counted for a function.

    Attributes:
        calls: By question.
        problems: Calls that were answered with a problem.
        batches: Of calls that were computed together, and their times.
    """

    calls: Counter[str] = field(default_factory=Counter)
    problems: int = 0
    batches: Batches = field(default_factory=Batches)


def most_together(published: Published, question: str) -> int:
    """Returns how many calls with a question to a version may be computed together."""
    return MOST_CALLS if question in TOGETHER and not published.rows else 1
