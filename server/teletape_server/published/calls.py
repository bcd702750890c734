"""A call of a published function, on its way to a process and back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from teletape_server.hosts.protocols import Host
from teletape_server.models.published.contract import Published
from teletape_server.sessions.counted_bodies import CountedBody


class Part(NamedTuple):
    """The answer to a call.

    Attributes:
        body: Its body.
        content_type: Of the body.
    """

    body: bytes | memoryview
    content_type: str


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
        sizes: Batches by their number of calls.
        queue_seconds: That calls have waited.
        compute_seconds: That batches have taken.
    """

    calls: Counter[str] = field(default_factory=Counter)
    problems: int = 0
    sizes: Counter[int] = field(default_factory=Counter)
    queue_seconds: float = 0.0
    compute_seconds: float = 0.0
