"""What the front needs from a place where sessions run; today that is a worker process on this machine.

A request is a method's name, parameters and a body; its answer is progress, then one reply. The method
(`handlers.methods`) reads the body, so that the front neither parses bodies nor runs engine code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from teletape_engine.arrays.cpu import DeviceFacts
from teletape_server.hosts.handed_connections import HandedConnections
from teletape_server.hosts.running import HostGone as HostGone
from teletape_server.hosts.running import Reply as Reply
from teletape_server.hosts.running import Running as Running
from teletape_server.hosts.watchdog import Ending


class BodyBuffer(Protocol):
    """Memory into which a request's body is written before the request is submitted."""

    view: memoryview

    def let_go(self, start: int, end: int) -> None:
        """Notes that this process will not read or write a part of the body again."""

    def discard(self) -> None:
        """Frees the memory of a request that will not be submitted."""


class Host(Protocol):
    """The place where one session runs.

    Attributes:
        name: What the log calls the session.
        log_facts: What log lines about it have beside their text.
        device: Where the session computes.
        ended: Resolves to the reason as soon as the session has ended.
        running: Requests submitted and not yet answered.
        handed: The connections that the host serves itself.
    """

    name: str
    log_facts: dict[str, str]
    device: str
    ended: asyncio.Future[Ending]
    running: set[Running]

    @property
    def handed(self) -> HandedConnections:
        """The connections that the host serves itself."""

    def body_buffer(self, length: int) -> BodyBuffer:
        """Returns memory for a body of `length` bytes.

        Raises:
            HostGone: The host has ended.
            OSError: The machine has too little memory.
        """

    def submit(
        self, method: str, params: Mapping[str, Any], *, content_type: str = "", body: BodyBuffer | None = None
    ) -> Running:
        """Hands over a request; requests run one after the other, in the order of submission.

        Raises:
            HostGone: The host has ended.
        """

    def cancel(self, *, is_stopping: bool = False) -> None:
        """Asks running and waiting requests to stop at their next step.

        Args:
            is_stopping: Whether that is so because the server stops, which their callers are told.
        """

    async def end(self, ending: Ending) -> None:
        """Ends the session; its unanswered requests raise HostGone with the reason's text."""


@dataclass(frozen=True)
class Start:
    """What a new session needs.

    Attributes:
        device: cpu or gpu:N.
        memory_limit: Bytes that its arrays may take.
        max_body: Bytes of the largest request.
        max_iterations: Iterations that the loops of one command may take; None: no limit.
        time_limit: Seconds that a request may compute.
        idempotency_window: Seconds for which an Idempotency-Key is known.
        dedicated: Whether it gets a process of its own on a GPU; on the CPU it has one.
    """

    device: str
    memory_limit: int
    max_body: int
    max_iterations: int | None = None
    time_limit: float = float("inf")
    idempotency_window: float = 3600.0
    dedicated: bool = False


class Hosts(Protocol):
    """Starts hosts."""

    def prepare(self) -> None:
        """Begins the work that makes the next start quick."""

    def lack(self) -> str:
        """Returns why no session could start now, as far as that is known; empty: one could."""

    async def start(self, start: Start) -> Host:
        """Starts a host with a new session.

        Raises:
            TeletapeError: The device cannot be used; the message says what is missing.
            HostGone: The host ended while it started.
        """

    async def devices(self) -> list[DeviceFacts]:
        """Returns what is known of the machine's devices, the CPU first; at most two seconds old."""

    async def close(self) -> None:
        """Ends every host."""
