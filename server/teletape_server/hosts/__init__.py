"""Where sessions run. `Host` is the seam: today a worker process, later an actor on another machine.

A request is a kind, parameters and a body; its answer comes as progress, then one reply. What is asked is the kind's
business (`kinds`), so the front neither parses bodies nor runs engine code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


class Reply(NamedTuple):
    """A request's answer.

    Attributes:
        code: None, or a problem's code; then `facts` has its message and details.
        content_type: Of the body.
        body: Its bytes; the host uses their memory again once every view of it is gone.
        facts: What the front should know without reading the body: bytes_in_use.
    """

    code: str | None
    content_type: str
    body: memoryview
    facts: Mapping[str, Any]


class HostGone(Exception):  # a state, which the caller turns into a problem
    """The host ended before it answered; the message says why."""


@dataclass(eq=False)
class Running:
    """A request that was submitted. Any number may wait for its answer.

    Attributes:
        reply: Resolves to the reply, or raises HostGone.
        done, total: How many commands of how many are done.
        iteration, iterations: How many iterations the loop in the next one has taken, of how many (0: not known).
    """

    reply: asyncio.Future[Reply]
    done: int = 0
    total: int = 0
    iteration: int = 0
    iterations: int = 0


class Room(Protocol):
    """Where a request's body is written before it is submitted."""

    view: memoryview

    def discard(self) -> None:
        """Gives the room back; the request will not be submitted."""


class Host(Protocol):
    """One session's home.

    Attributes:
        device: Where the session computes.
        ended: Resolves to the reason once the session is gone.
        running: Requests submitted and not yet answered.
    """

    device: str
    ended: asyncio.Future[str]
    running: set[Running]

    def room(self, length: int) -> Room:
        """Room for a body of `length` bytes.

        Raises:
            HostGone: The host has ended.
            OSError: The machine has no memory for it.
        """

    def submit(
        self, kind: str, params: Mapping[str, Any], *, content_type: str = "", room: Room | None = None
    ) -> Running:
        """Hands over a request; requests run one after the other, in this order.

        Raises:
            HostGone: The host has ended.
        """

    def cancel(self) -> None:
        """Asks what runs and what waits to stop at its next step."""

    async def end(self, reason: str) -> None:
        """Ends the session; what runs gets HostGone with that reason."""


@dataclass(frozen=True)
class Start:
    """What a new session needs.

    Attributes:
        device: cpu or gpu:N.
        memory_limit: Bytes that its arrays may take.
        max_body: Bytes of the largest request.
        max_iterations: Iterations that the loops of one command may take.
        time_limit: Seconds that a request may compute.
    """

    device: str
    memory_limit: int
    max_body: int
    max_iterations: int | None = None
    time_limit: float = float("inf")


class Hosts(Protocol):
    """Makes hosts."""

    def prepare(self) -> None:
        """Begins what makes the next start quick."""

    async def start(self, start: Start) -> Host:
        """A new session's host.

        Raises:
            TeletapeError: The device cannot be used; the message says what is missing.
            HostGone: It ended while it started.
        """

    async def devices(self) -> list[str]:
        """The devices that sessions can have."""

    async def close(self) -> None:
        """Ends every host."""
