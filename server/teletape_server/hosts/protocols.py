"""What the front needs from a place where a session runs; today that is a process on this machine.

A request is a method's name, parameters and a body; its answer is progress, then one reply. The method
(`handlers.methods`) reads the body, so that the front neither parses bodies nor runs engine code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from teletape_engine.arrays.cpu import DeviceFacts
from teletape_server.durable.open_logs import OpenLog
from teletape_server.hosts.loans import Account, Lender, LendingSession, Loan, Loans
from teletape_server.hosts.running import HostGone as HostGone
from teletape_server.hosts.running import Reply as Reply
from teletape_server.hosts.running import Running as Running
from teletape_server.ipc.durations import Durations, Served
from teletape_server.ipc.heads import Approval, Label
from teletape_server.ipc.leases import Reason
from teletape_server.ipc.page import Page
from teletape_server.ipc.rights import NO_RIGHT, Right


class BodyBuffer(Protocol):
    """Memory into which a request's body is written before the request is submitted."""

    view: memoryview

    def let_go(self, start: int, end: int) -> None:
        """Notes that this process will not read or write a part of the body again."""

    def discard(self) -> None:
        """Frees the memory of a request that will not be submitted."""


class HostFacts(NamedTuple):
    """What is known of a session's work without asking its host.

    Attributes:
        bytes_in_use: Of its arrays, as of the last answer.
        worked: When the host has last worked for a request that it has read itself, in Unix seconds; 0: it has not.
        cpu_seconds: Of the thread that computes, as of the last request that has ended.
        compute_seconds: That its requests have run.
        running, waiting: Requests that run now, and that the host has not begun; what waits on a connection that is
            lent is not known.
        frames: That have run.
        lent: Connections that are lent to it.
        durations: Of the requests that have run, from when they came to the host.
        written: The number of the last record in the session's log.
        answered: How long the requests took that the host has read and answered itself, by their labels.
        calls: Those of them that ask published functions.
        running_seconds: That the request which runs now has run; 0: none runs, or it has only begun.
        kernel_seconds: CPU time of its own process since it was open, as the kernel counts it; 0: not known.
        bytes_reserved: Of the machine's memory, for its arrays; 0: none is reserved.
    """

    bytes_in_use: int = 0
    worked: float = 0.0
    cpu_seconds: float = 0.0
    compute_seconds: float = 0.0
    running: int = 0
    waiting: int = 0
    frames: int = 0
    lent: int = 0
    durations: Durations = Durations()
    written: int = 0
    answered: Mapping[Label, Durations] = MappingProxyType({})
    calls: Mapping[Account, Served] = MappingProxyType({})
    running_seconds: float = 0.0
    kernel_seconds: float = 0.0
    bytes_reserved: int = 0

    @classmethod
    def of(
        cls, page: Page, loans: Loans, unanswered: int, *, running_seconds: float, kernel_seconds: float
    ) -> HostFacts:
        """Returns what the page of a process says, with its loans, and its requests that are not answered."""
        is_running = page.is_running
        return cls(
            *(page.bytes_in_use, loans.worked, page.cpu_seconds, page.compute_seconds),
            *(int(is_running), max(unanswered - is_running, 0), page.frames, len(loans)),
            *(page.durations, page.written, loans.answered, loans.calls),
            running_seconds=running_seconds if is_running else 0.0,
            kernel_seconds=kernel_seconds,
            bytes_reserved=page.reserved,
        )


class Reserved(Protocol):
    """The memory of the machine that is reserved for a host.

    Attributes:
        look: Returns the bytes that the host uses of them, those that are missing from the machine's free memory; and
            those that are reserved as far as it knows. The host sets it.
        give_back: Has the host give back what it does not use, soon, if it runs nothing; returns whether there is much
            of that. The host sets it.
    """

    look: Callable[[], tuple[int, int]]
    give_back: Callable[[], bool]

    @property
    def reserved(self) -> int:
        """Bytes."""

    async def extend(self, needed: int) -> None:
        """Has more reserved, so that it covers the bytes that are needed in all, perhaps after a wait.

        Raises:
            Problem: resource_exhausted: there is no room.
        """


class Beginning(NamedTuple):
    """What a host had when it was open.

    Attributes:
        recovered: What it has brought back from a log: `record`, `cut_bytes`, `seconds`; None: nothing.
        last_client: The highest number of a client that a caller has chosen.
    """

    recovered: Mapping[str, Any] | None = None
    last_client: int = 0


class Ending(NamedTuple):
    """Why a host ended.

    Attributes:
        reason: For programs.
        text: For people.
        may_be_by_request: Whether a request that ran may be the cause.
    """

    reason: Reason
    text: str
    may_be_by_request: bool = True


class Host(Protocol):
    """The place where one session runs.

    Attributes:
        name: What the log calls the session.
        log_facts: What log lines about it have beside their text.
        ended: Resolves to the reason as soon as the session has ended.
        running: Requests submitted and not yet answered.
        left: Of these, after the end of a host whose session goes on: what another host may do in its place. None of
            them can have been done, or else it is known again.
    """

    name: str
    log_facts: dict[str, str]
    ended: asyncio.Future[Ending]
    running: set[Running]
    left: list[Running]

    async def open(self, start: Start) -> None:
        """Opens the session; what follows is for a host that is open.

        Raises:
            TeletapeError: The device cannot be used; the message says what is missing.
            HostGone: The host has ended.
            OSError: There are too many open files.
        """

    def body_buffer(self, length: int) -> BodyBuffer:
        """Returns memory for a body of `length` bytes.

        Raises:
            HostGone: The host has ended.
            OSError: The machine has too little memory.
        """

    def submit(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        content_type: str = "",
        body: BodyBuffer | None = None,
        running: Running | None = None,
    ) -> Running:
        """Takes a request; requests run one after the other, in the order of submission.

        Args:
            method: Its name; see `handlers.methods`.
            params: Of the method.
            content_type: Of the body.
            body: The body; None: there is none.
            running: The request, if an earlier host has left it.

        Raises:
            HostGone: The host has ended.
        """

    def map(self, name: str, file: int) -> None:
        """Maps a file, read only, for a method that is submitted later and takes it by this name.

        Args:
            name: See above.
            file: Its descriptor, which is closed here.
        """

    def cancel(self, *, is_stopping: bool = False) -> None:
        """Asks running and waiting requests to stop at their next step.

        Args:
            is_stopping: Whether that is so because the server stops, which their callers are told.
        """

    @property
    def beginning(self) -> Beginning:
        """What the host had when it was open."""

    def facts(self) -> HostFacts:
        """Returns what is known of the session's work; that costs no message."""

    def lend(
        self, lender: Lender, transport: asyncio.BaseTransport, approval: Approval, session: LendingSession
    ) -> Loan | None:
        """Lends a connection to the host, which reads and answers its requests until it is reclaimed or returned.

        Args:
            lender: The connection, which must read nothing until then.
            transport: Its transport.
            approval: What the host has to know of its requests.
            session: The session.

        Returns:
            The loan; None if the host takes none now. One with TLS is never lent: the socket has only its bytes.
        """

    @property
    def lent(self) -> int:
        """Connections that are lent to it."""

    def reclaim(self) -> None:
        """Reclaims the connections with a running request, so that others can join or cancel it."""

    async def recall(self) -> None:
        """Reclaims all connections, and waits until what has come over them is read."""

    async def suspend(self) -> bool:
        """Ends the host so that another one can go on with the session; returns whether what it had is in a base."""

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
        slow_after: Seconds from which on one that has run is written into the log.
        idempotency_window: Seconds for which an Idempotency-Key is known.
        dedicated: Whether it gets a process of its own on a GPU; on the CPU it has one.
        resets: Whether nothing of a request is there for the next one.
        log: What the session's requests are written to; None: nothing of it outlives the host.
        last_client: The highest number that this server has given to one of its clients; 0: it does not know.
        owner: Whose it is.
        right: What its owner has a right to of a GPU that sessions share.
        memory: What is reserved for it, of the machine's memory; None: its limit alone counts.
    """

    device: str
    memory_limit: int
    max_body: int
    max_iterations: int | None = None
    time_limit: float = float("inf")
    slow_after: float = float("inf")
    idempotency_window: float = 3600.0
    dedicated: bool = False
    resets: bool = False
    log: OpenLog | None = None
    last_client: int = 0
    owner: str = ""
    right: Right = NO_RIGHT
    memory: Reserved | None = None

    def facts(self) -> dict[str, Any]:
        """Returns what the process gets of this."""
        own = ("log", "memory")
        facts = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in own}
        return {**facts, "durable": None if self.log is None else self.log.facts}


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
